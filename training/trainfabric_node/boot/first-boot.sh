#!/usr/bin/env bash
# The first thing that runs on a node, once: fetches the training code and hands over to its boot script. It reaches
# the node inside the user data, with common.sh beside it. Everything lies below TRAINFABRIC_ROOT, which is / if unset.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"

# fetch ADDRESS…: the code from the first of these that gives it
fetch() {
  local address
  for address in "$@"; do
    aws s3 cp --no-progress --region "$TRAINFABRIC_REGION" "$address" "$install/code.zip" && return 0
  done
  return 1
}

# A deploy during a run takes the permission to read the run's code in the CDK's bucket away; the job has a copy.
fetch_code() {
  local key=$TRAINFABRIC_ASSET_KEY
  retry 5 10 fetch "s3://$TRAINFABRIC_ASSET_BUCKET/$key" "s3://$TRAINFABRIC_CHECKPOINT_BUCKET/code/$key"
  install -d "$install/code"
  python3 -m zipfile -e "$install/code.zip" "$install/code"
}

main() {
  tell_failures
  read_variables TRAINFABRIC_REGION TRAINFABRIC_ASSET_BUCKET TRAINFABRIC_ASSET_KEY TRAINFABRIC_CHECKPOINT_BUCKET
  fetch_code
  if [[ -e $install/boot-commands.sh ]]; then
    # shellcheck source=/dev/null
    source "$install/boot-commands.sh"
  fi
  exec bash "$install/code/trainfabric_node/boot/boot.sh"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  main
fi
