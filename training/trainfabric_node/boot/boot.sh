#!/usr/bin/env bash
# Makes an instance a training node: packages, Python environment, Lustre, limits, and the agent as a service.
# The user data writes node.env, unpacks the training asset and runs this once per instance; running it again is safe.
# A coordinator that cannot become one fails the job and releases the fleet: nobody else would, and nodes cost money.
set -euo pipefail

readonly node_environment=/etc/trainfabric/node.env
readonly agent_environment=/etc/trainfabric/agent.env
readonly install=/opt/trainfabric
readonly unit=trainfabric-agent.service
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly here
reason=

say() {
  printf 'trainfabric boot: %s\n' "$*"
}

fail() {
  reason=$*
  say "$reason" >&2
  exit 1
}

# retry TIMES SECONDS COMMAND…: until it succeeds
retry() {
  local times=$1 pause=$2 attempt
  shift 2
  for ((attempt = 1; attempt <= times; attempt++)); do
    "$@" && return 0
    say "attempt $attempt of $times failed: $*"
    ((attempt == times)) || sleep "$pause"
  done
  reason="$times attempts failed: $*"
  return 1
}

has() {
  command -v "$1" >/dev/null
}

# At first boot unattended-upgrades holds the locks for minutes.
wait_for_apt() {
  has apt-get || return 0
  printf 'DPkg::Lock::Timeout "600";\n' >/etc/apt/apt.conf.d/99trainfabric-lock-timeout
  local lock
  for lock in /var/lib/dpkg/lock-frontend /var/lib/apt/lists/lock; do
    retry 120 5 lock_is_free "$lock" || fail "$lock is still held after ten minutes"
  done
}

lock_is_free() {
  ! has fuser || ! fuser "$1" >/dev/null 2>&1
}

# An upgrade of libc makes needrestart restart services, and with the agent the job.
keep_needrestart_away() {
  local folder=${1:-/etc/needrestart/conf.d}
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

# The lock is copied last: an environment without it was cut short, and is made anew.
create_environment() {
  local lock=$here/requirements.lock venv=$install/venv
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
  release=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
  retry 5 10 curl -fsSLo "$key" \
    https://fsx-lustre-client-repo-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc
  printf 'deb [signed-by=%s] https://fsx-lustre-client-repo.s3.amazonaws.com/ubuntu %s main\n' "$key" "$release" \
    >/etc/apt/sources.list.d/fsx-lustre-client.list
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
  install -d "$TRAINFABRIC_LUSTRE_MOUNT_POINT"
  printf 'lustre\n' >/etc/modules-load.d/trainfabric-lustre.conf
  lustre_mount_unit >"/etc/systemd/system/$name"
  systemctl daemon-reload
  systemctl enable --quiet "$name"
  retry 10 15 start_mount "$name" || fail "Lustre does not mount: $TRAINFABRIC_LUSTRE_DNS_NAME; see journalctl -u $name"
}

start_mount() {
  local probe
  systemctl start "$1" || return 1
  probe=$TRAINFABRIC_LUSTRE_MOUNT_POINT/.trainfabric-$(uname -n)
  touch "$probe" && rm -f "$probe"
}

# efa_devices [FOLDER]: how many RDMA devices the efa driver has; other drivers have some as well, as on p6-b200
efa_devices() {
  local folder=${1:-/sys/class/infiniband} device count=0
  for device in "$folder"/*; do
    if [[ $(basename -- "$(readlink -f -- "$device/device/driver")") == efa ]]; then
      count=$((count + 1))
    fi
  done
  printf '%d\n' "$count"
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

agent_variables() {
  printf 'AWS_DEFAULT_REGION=%s\n' "$TRAINFABRIC_REGION"
}

install_agent() {
  local drop_in=/etc/systemd/system/$unit.d
  install -d -m 0755 "$drop_in" "$TRAINFABRIC_STATE_DIRECTORY"
  agent_variables >"$agent_environment"
  install -m 0644 "$here/$unit" "/etc/systemd/system/$unit"
  printf '[Unit]\nRequiresMountsFor=%s\n' "$TRAINFABRIC_LUSTRE_MOUNT_POINT" >"$drop_in/lustre.conf"
  systemctl daemon-reload
  systemctl enable --quiet "$unit"
  systemctl restart "$unit"
}

read_variables() {
  set -a
  # shellcheck source=/dev/null
  source "${1:-$node_environment}"
  set +a
  : "${TRAINFABRIC_REGION:?}" "${TRAINFABRIC_LUSTRE_DNS_NAME:?}" "${TRAINFABRIC_LUSTRE_MOUNT_NAME:?}"
  : "${TRAINFABRIC_LUSTRE_MOUNT_POINT:?}" "${TRAINFABRIC_STATE_DIRECTORY:?}"
}

# Groups of this environment, workers first
group_names() {
  aws ssm get-parameter --region "$TRAINFABRIC_REGION" --name "/trainfabric/$TRAINFABRIC_ENVIRONMENT/environment" \
    --query Parameter.Value --output text |
    python3 -c 'import json, sys; v = json.load(sys.stdin); print(v["worker_group"] or "", v["coordinator_group"])'
}

release_fleet() {
  local groups group status=0
  groups=$(group_names) || return 1
  for group in $groups; do
    say "asking for no nodes of $group any more"
    aws autoscaling set-desired-capacity --region "$TRAINFABRIC_REGION" \
      --auto-scaling-group-name "$group" --desired-capacity 0 --no-honor-cooldown || status=1
  done
  return "$status"
}

# Key of the record that ends the run that holds the environment
outcome_key() {
  aws s3 cp --region "$TRAINFABRIC_REGION" "s3://$TRAINFABRIC_CHECKPOINT_BUCKET/jobs/current.json" - |
    python3 -c 'import json, sys; v = json.load(sys.stdin); print("jobs/%s/runs/%04d/outcome.json" % (v["job"], v["run"]))'
}

outcome() {
  python3 -c 'import json, sys; print(json.dumps(dict(state="failed", detail=sys.argv[1], ended=sys.argv[2])))' \
    "$1" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
}

# abandon REASON: what conclude of the agent does, in its order: whoever sees the outcome may start the next run at once
abandon() {
  local why=$1 key address
  key=$(outcome_key) || key=
  retry 5 10 release_fleet || why+="; its nodes could not be released: scale the Auto Scaling groups to zero"
  say "$why" >&2
  [[ -n $key ]] || return 0
  address=s3://$TRAINFABRIC_CHECKPOINT_BUCKET/$key
  aws s3 ls --region "$TRAINFABRIC_REGION" "$address" >/dev/null && return 0
  outcome "$why" | aws s3 cp --region "$TRAINFABRIC_REGION" - "$address" >/dev/null ||
    say "the job could not be marked as failed; end it with trainfabric job stop --force" >&2
}

# leave STATUS: the last thing that happens, however boot ended; an agent that runs already sees to its job itself
leave() {
  trap - ERR EXIT
  (($1 != 0)) || exit 0
  say "failed: ${reason:=a variable in $node_environment is missing}" >&2
  if [[ ${TRAINFABRIC_ROLE:-} == coordinator ]] && ! systemctl is-active --quiet "$unit"; then
    abandon "boot of the coordinator $(uname -n) failed: $reason"
  fi
  exit "$1"
}

main() {
  set -o errtrace
  trap 'reason=${reason:-line $LINENO: $BASH_COMMAND}' ERR
  trap 'leave $?' EXIT
  read_variables
  wait_for_apt
  keep_needrestart_away
  install_python
  create_environment
  check_efa
  install_lustre_client
  mount_lustre
  install_agent
  say "ready"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  main
fi
