# shellcheck shell=bash
# What the first-boot script and boot.sh have in common: both source it, and the user data carries it to the node.
# A coordinator that cannot become one fails the job and releases the fleet: nobody else would, and nodes cost money.

root=${TRAINFABRIC_ROOT:-}
readonly root
readonly node_environment=$root/etc/trainfabric/node.env
# shellcheck disable=SC2034  # both scripts that source this use it
readonly install=$root/opt/trainfabric
readonly controller=trainfabric-controller.service
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

# read_variables NAME…: of node.env, which must have these
read_variables() {
  local name
  set -a
  # shellcheck source=/dev/null
  source "$node_environment"
  set +a
  for name in "$@"; do
    [[ -n ${!name:-} ]] || fail "$name must stand in $node_environment"
  done
}

# Groups of this environment, workers first
group_names() {
  aws ssm get-parameter --region "$TRAINFABRIC_REGION" --name "/trainfabric/$TRAINFABRIC_ENVIRONMENT/environment" \
    --query Parameter.Value --output text |
    python3 -c 'import json, sys; v = json.load(sys.stdin); print(v["worker_group"] or "", v["coordinator_group"])'
}

# Members of a running job are protected, and would outlive a desired capacity of zero. The service takes 50 at a time.
unprotect() {
  aws autoscaling describe-auto-scaling-groups --region "$TRAINFABRIC_REGION" --auto-scaling-group-names "$1" \
    --query 'AutoScalingGroups[].Instances[] | [?ProtectedFromScaleIn].InstanceId' --output text |
    xargs -r -n 50 aws autoscaling set-instance-protection --region "$TRAINFABRIC_REGION" \
      --auto-scaling-group-name "$1" --no-protected-from-scale-in --instance-ids
}

release_group() {
  local status=0
  say "asking for no nodes of $1 any more"
  unprotect "$1" || status=1
  aws autoscaling set-desired-capacity --region "$TRAINFABRIC_REGION" \
    --auto-scaling-group-name "$1" --desired-capacity 0 --no-honor-cooldown || status=1
  return "$status"
}

release_fleet() {
  local groups group status=0
  groups=$(group_names) || return 1
  for group in $groups; do
    release_group "$group" || status=1
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

# abandon REASON: what the controller does to conclude, in its order: who sees the outcome may start the next run at once
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

# leave STATUS: the last thing that happens, however boot ended; a controller that runs sees to its job itself
leave() {
  trap - ERR EXIT
  (($1 != 0)) || exit 0
  say "failed: ${reason:=exit status $1}" >&2
  if [[ ${TRAINFABRIC_ROLE:-} == coordinator ]] && ! systemctl is-active --quiet "$controller"; then
    abandon "boot of the coordinator $(uname -n) failed: $reason"
  fi
  exit "$1"
}

tell_failures() {
  set -o errtrace
  trap 'reason=${reason:-line $LINENO: $BASH_COMMAND}' ERR
  trap 'leave $?' EXIT
}
