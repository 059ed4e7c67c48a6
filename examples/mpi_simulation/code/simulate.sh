#!/usr/bin/env bash
# Runs once on every node. The first starts the ranks of all with Open MPI, which reaches the others over SSH: with a key
# of this epoch, on a port of its own, open in the nodes' security group alone. The others host ranks until it has ended.
set -euo pipefail

readonly port=2222
readonly shared=$TRAINFABRIC_LUSTRE/mpi/$TRAINFABRIC_JOB/epoch-$TRAINFABRIC_EPOCH
readonly own=${TMPDIR:-/tmp}/mpi-$TRAINFABRIC_EPOCH-$NODE_RANK
readonly key=$shared/key

wait_for() { # COUNT GLOB: until so many files are there
  local found=()
  until mapfile -t found < <(compgen -G "$2") && ((${#found[@]} >= $1)); do
    sleep 1
  done
}

serve() {
  ssh-keygen -q -t ed25519 -N '' -f "$own/host"
  "$(command -v sshd)" -D -e -p "$port" -h "$own/host" -o "AuthorizedKeysFile=$key.pub" -o StrictModes=no \
    -o PasswordAuthentication=no -o UsePAM=no -o PidFile=none &
  daemon=$!
  trap 'kill "$daemon"; rm -rf "$own"' EXIT
  touch "$shared/up-$NODE_RANK"
}

run_all() {
  wait_for "$NNODES" "$shared/up-*"
  local status=0
  OMPI_MCA_plm_ssh_args="-p $port -i $key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null" \
    mpirun --host "$(sed "s/,/:$NPROC_PER_NODE,/g; s/\$/:$NPROC_PER_NODE/" <<<"$TRAINFABRIC_HOSTS")" \
    -np "$WORLD_SIZE" -x FI_PROVIDER=efa "${SIMULATION:-./simulation}" || status=$?
  printf '%d\n' "$status" >"$shared/ended.new"
  mv "$shared/ended.new" "$shared/ended"
}

mkdir -p "$shared" "$own"
if [[ $NODE_RANK == 0 && ! -e $key ]]; then
  (umask 077 && ssh-keygen -q -t ed25519 -N '' -f "$key.new")
  mv "$key.new.pub" "$key.pub"
  mv "$key.new" "$key"
fi
wait_for 1 "$key"
serve
[[ $NODE_RANK == 0 ]] && run_all
wait_for 1 "$shared/ended"
exit "$(<"$shared/ended")"
