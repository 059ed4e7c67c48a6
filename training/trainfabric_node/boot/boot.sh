#!/usr/bin/env bash
# Makes an instance a training node: packages, Python environment, first checks, Lustre, and the services that train.
# The first-boot script of the user data unpacks the training asset and runs this once per instance; running it again is
# safe. Everything lies below TRAINFABRIC_ROOT, which is / if unset.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly agent_environment=$root/etc/trainfabric/agent.env
readonly units=$root/etc/systemd/system
readonly shared_home=/shared

has() {
  command -v "$1" >/dev/null
}

# At first boot unattended-upgrades holds the locks for minutes.
wait_for_apt() {
  has apt-get || return 0
  install -d "$root/etc/apt/apt.conf.d"
  printf 'DPkg::Lock::Timeout "600";\n' >"$root/etc/apt/apt.conf.d/99trainfabric-lock-timeout"
  local lock
  for lock in "$root/var/lib/dpkg/lock-frontend" "$root/var/lib/apt/lists/lock"; do
    retry 120 5 lock_is_free "$lock" || fail "$lock is still held after ten minutes"
  done
}

lock_is_free() {
  ! has fuser || ! fuser "$1" >/dev/null 2>&1
}

# An upgrade of libc makes needrestart restart services, and with the agent the job.
keep_needrestart_away() {
  local folder=$root/etc/needrestart/conf.d
  install -d -m 0755 "$folder"
  # shellcheck disable=SC2016  # Perl, not shell
  printf '$nrconf{override_rc}{qr(^trainfabric-)} = 0;\n' >"$folder/90-trainfabric.conf"
}

install_packages() {
  if has apt-get; then
    DEBIAN_FRONTEND=noninteractive retry 5 10 apt-get update -q
    DEBIAN_FRONTEND=noninteractive retry 5 10 apt-get install -qy "$@"
  else
    retry 5 10 dnf install -qy "$@"
  fi
}

# A Python that the training code and the lock support, with the module that makes environments.
find_python() {
  local name
  for name in python3.12 python3.11 python3; do
    if has "$name" && "$name" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return 0
    fi
  done
  return 1
}

install_python() {
  find_python >/dev/null && return 0
  if has apt-get; then
    install_packages python3-venv
  else
    install_packages python3.11
  fi
  find_python >/dev/null || fail "Python 3.11 or newer is needed; use an image that has it, such as Ubuntu 24.04"
}

runs_a_command() {
  [[ ${TRAINFABRIC_TRAINING:-} == command ]]
}

# Somebody else's command brings its own Python, and torch if it uses it
lock_file() {
  if runs_a_command; then
    printf '%s' "$here/requirements-command.lock"
  else
    printf '%s' "$here/requirements.lock"
  fi
}

# The lock is copied last: an environment without it was cut short, and is made anew.
create_environment() {
  local lock venv=$install/venv
  lock=$(lock_file)
  cmp -s "$lock" "$venv/requirements.lock" && return 0
  say "making the Python environment"
  rm -rf "$venv"
  "$(find_python)" -m venv "$venv"
  retry 5 10 "$venv/bin/python" -m pip install --quiet --no-input --requirement "$lock"
  cp "$lock" "$venv/requirements.lock"
}

# Some kernels, as of Amazon Linux 2023, have the module but not the command that mounts.
install_lustre_client() {
  has mount.lustre && modinfo lustre >/dev/null 2>&1 && return 0
  say "installing the Lustre client for kernel $(uname -r)"
  if has apt-get; then
    add_lustre_repository
    apt-cache show "lustre-client-modules-$(uname -r)" >/dev/null 2>&1 ||
      fail "no Lustre client for kernel $(uname -r) yet; use an image with an older kernel, or with the client in it"
    install_packages "lustre-client-modules-$(uname -r)"
  else
    install_packages lustre-client
  fi
  modprobe lustre
}

add_lustre_repository() {
  local key=/usr/share/keyrings/fsx-ubuntu-public-key.asc release
  # shellcheck source=/dev/null
  release=$(. "$root/etc/os-release" && printf '%s' "$VERSION_CODENAME")
  install -d "$root/usr/share/keyrings" "$root/etc/apt/sources.list.d"
  retry 5 10 curl -fsSLo "$root$key" \
    https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc
  printf 'deb [signed-by=%s] https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu %s main\n' "$key" "$release" \
    >"$root/etc/apt/sources.list.d/fsx-lustre-client.list"
  retry 5 10 apt-get update -q
}

# A unit of its own instead of fstab, where _netdev alone does not order the mount behind the network and the module.
lustre_mount_unit() {
  cat <<UNIT
[Unit]
Description=FSx for Lustre at $TRAINFABRIC_LUSTRE_MOUNT_POINT
Wants=network-online.target
After=network-online.target systemd-modules-load.service configure-efa-fsx-lustre-client.service

[Mount]
What=$TRAINFABRIC_LUSTRE_DNS_NAME@tcp:/$TRAINFABRIC_LUSTRE_MOUNT_NAME
Where=$TRAINFABRIC_LUSTRE_MOUNT_POINT
Type=lustre
Options=noatime,flock,lazystatfs,_netdev
TimeoutSec=120

[Install]
WantedBy=remote-fs.target
UNIT
}

mount_lustre() {
  local name
  name=$(systemd-escape --path --suffix=mount "$TRAINFABRIC_LUSTRE_MOUNT_POINT")
  install -d "$root$TRAINFABRIC_LUSTRE_MOUNT_POINT" "$root/etc/modules-load.d" "$units"
  printf 'lustre\n' >"$root/etc/modules-load.d/trainfabric-lustre.conf"
  lustre_mount_unit >"$units/$name"
  systemctl daemon-reload
  systemctl enable --quiet "$name"
  retry 10 15 start_mount "$name" || fail "Lustre does not mount: $TRAINFABRIC_LUSTRE_DNS_NAME; see journalctl -u $name"
}

install_nfs_client() {
  has mount.nfs4 && return 0
  say "installing the NFS client"
  if has apt-get; then
    install_packages nfs-common
  else
    install_packages nfs-utils
  fi
}

# The options are those that EFS recommends, of which OpenZFS minds none.
home_mount_unit() {
  cat <<UNIT
[Unit]
Description=Shared home at $shared_home
Wants=network-online.target
After=network-online.target

[Mount]
What=$TRAINFABRIC_HOME_SERVER:$TRAINFABRIC_HOME_PATH
Where=$shared_home
Type=nfs4
Options=nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport,_netdev
TimeoutSec=120

[Install]
WantedBy=remote-fs.target
UNIT
}

mount_home() {
  local name
  [[ -n ${TRAINFABRIC_HOME_SERVER:-} ]] || return 0
  install_nfs_client
  name=$(systemd-escape --path --suffix=mount "$shared_home")
  install -d "$root$shared_home" "$units"
  home_mount_unit >"$units/$name"
  systemctl daemon-reload
  systemctl enable --quiet "$name"
  retry 10 15 systemctl start "$name" || fail "the shared home does not mount: $TRAINFABRIC_HOME_SERVER; see journalctl -u $name"
}

start_mount() {
  local probe
  systemctl start "$1" || return 1
  probe=$root$TRAINFABRIC_LUSTRE_MOUNT_POINT/.trainfabric-$(uname -n)
  touch "$probe" && rm -f "$probe"
}

# A driver that does not answer would be found minutes later, by a rank that ends without a word about it.
check_accelerators() {
  has nvidia-smi || return 0
  nvidia-smi --query-gpu=index,name --format=csv,noheader ||
    fail "the NVIDIA driver does not answer; replace the node, or check its image"
}

# How many RDMA devices the efa driver has; other drivers have some as well, as on p6-b200
efa_devices() {
  local drivers
  mapfile -t drivers < <(compgen -G "$root/sys/class/infiniband/*/device/driver")
  readlink -f -- "${drivers[@]:-/}" | grep -c '/efa$' || true
}

has_efa_devices() {
  [[ $(efa_devices) -eq $1 ]]
}

# Devices of some types come up late.
check_efa() {
  local expected=${TRAINFABRIC_EFA_DEVICES:-}
  [[ -n $expected ]] || return 0
  retry 6 5 has_efa_devices "$expected" ||
    fail "EFA devices must be $expected, got $(efa_devices); replace the node, or check its interfaces and EFA driver"
}

# What the services get beside node.env: what the AWS SDK needs of a node, and paths below the root
agent_variables() {
  cat <<VARIABLES
AWS_DEFAULT_REGION=$TRAINFABRIC_REGION
AWS_METADATA_SERVICE_NUM_ATTEMPTS=$AWS_METADATA_SERVICE_NUM_ATTEMPTS
AWS_METADATA_SERVICE_TIMEOUT=$AWS_METADATA_SERVICE_TIMEOUT
PYTHONPATH=$install/code
TRAINFABRIC_STATE_DIRECTORY=$root$TRAINFABRIC_STATE_DIRECTORY
TRAINFABRIC_LUSTRE_MOUNT_POINT=$root$TRAINFABRIC_LUSTRE_MOUNT_POINT
VARIABLES
}

# A coordinator may only control: it has neither accelerators nor EFA, and needs no data
trains() {
  [[ ${TRAINFABRIC_TRAINS:-1} != 0 ]]
}

# Services of this node, in the order in which they start: the launcher takes longest to be of use
services() {
  local starter=launcher store=rendezvous
  if runs_a_command; then
    starter=command store=
  fi
  trains && printf 'trainfabric-%s.service\n' "$starter"
  if [[ $TRAINFABRIC_ROLE == coordinator ]]; then
    printf 'trainfabric-%s.service\n' ${store:+"$store"} controller
  fi
  trains && printf 'trainfabric-%s.service\n' agent
  return 0
}

install_services() {
  local unit all
  mapfile -t all < <(services)
  install -d -m 0755 "$units" "$root$TRAINFABRIC_STATE_DIRECTORY"
  agent_variables >"$agent_environment"
  for unit in "${all[@]}"; do
    install -m 0644 "$here/$unit" "$units/$unit"
    install -d -m 0755 "$units/$unit.d"
    ! trains || printf '[Unit]\nRequiresMountsFor=%s\n' "$TRAINFABRIC_LUSTRE_MOUNT_POINT" >"$units/$unit.d/lustre.conf"
  done
  systemctl daemon-reload
  systemctl enable --quiet "${all[@]}"
  systemctl restart "${all[@]}"
}

main() {
  tell_failures
  read_variables TRAINFABRIC_REGION TRAINFABRIC_ROLE TRAINFABRIC_LUSTRE_DNS_NAME TRAINFABRIC_LUSTRE_MOUNT_NAME \
    TRAINFABRIC_LUSTRE_MOUNT_POINT TRAINFABRIC_STATE_DIRECTORY
  wait_for_apt
  keep_needrestart_away
  install_python
  create_environment
  if trains; then
    check_accelerators
    check_efa
    install_lustre_client
    mount_lustre
    mount_home
  fi
  install_services
  say "ready"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  main
fi
