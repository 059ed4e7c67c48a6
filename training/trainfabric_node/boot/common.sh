# shellcheck shell=bash
# What the first-boot script and boot.sh have in common: both source it, and the user data carries it to the node.
# A coordinator that cannot become one fails the job and releases the fleet, a worker gives itself back: nobody else
# would, and nodes cost money.

root=${TRAINFABRIC_ROOT:-}
readonly root
readonly node_environment=$root/etc/trainfabric/node.env
# shellcheck disable=SC2034  # both scripts that source this use it
readonly install=$root/opt/trainfabric
readonly controller=trainfabric-controller.service
readonly agent=trainfabric-agent.service
# A metadata service that is slow reads as missing credentials: the AWS SDK waits one second, once
export AWS_METADATA_SERVICE_TIMEOUT=5 AWS_METADATA_SERVICE_NUM_ATTEMPTS=5
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

# Groups of the workers of this environment, a line each; nothing if it has none
worker_groups() {
  aws ssm get-parameter --region "$TRAINFABRIC_REGION" --name "/trainfabric/$TRAINFABRIC_ENVIRONMENT/environment" \
    --query Parameter.Value --output text |
    python3 -c 'import json, sys; [print(g["name"]) for g in json.load(sys.stdin)["groups"] if g["role"] == "worker"]'
}

# Members of a running job are protected, and would outlive a desired capacity of zero. The service takes 50 at a time.
unprotect() {
  aws autoscaling describe-auto-scaling-groups --region "$TRAINFABRIC_REGION" --auto-scaling-group-names "$1" \
    --query 'AutoScalingGroups[].Instances[] | [?ProtectedFromScaleIn].InstanceId' --output text |
    xargs -r -n 50 aws autoscaling set-instance-protection --region "$TRAINFABRIC_REGION" \
      --auto-scaling-group-name "$1" --no-protected-from-scale-in --instance-ids
}

release_workers() {
  local groups group status=0
  groups=$(worker_groups) || return 1
  for group in $groups; do
    unprotect "$group" || status=1
    aws autoscaling set-desired-capacity --region "$TRAINFABRIC_REGION" \
      --auto-scaling-group-name "$group" --desired-capacity 0 --no-honor-cooldown || status=1
  done
  return "$status"
}

# As cloud-init has it
instance_id() {
  cat "$root/var/lib/cloud/data/instance-id"
}

# give_back RUN: this node, so that its group launches no other, unless it is another run that holds the environment now
give_back() {
  local run option=--should-decrement-desired-capacity id
  id=$(instance_id) || return 1
  run=$(run_prefix 2>/dev/null) && [[ $run != "$1" ]] && option=--no-should-decrement-desired-capacity
  aws autoscaling terminate-instance-in-auto-scaling-group --region "$TRAINFABRIC_REGION" \
    --instance-id "$id" "$option" >/dev/null
}

go() {
  retry 5 10 give_back "$1" || say "this node could not be given back: terminate it" >&2
}

# Below which key the records lie of the run that holds the environment
run_prefix() {
  local spec
  spec=$(aws s3 cp --region "$TRAINFABRIC_REGION" "s3://$TRAINFABRIC_CHECKPOINT_BUCKET/jobs/current.json" -) || return 1
  python3 -c 'import json, sys; v = json.load(sys.stdin); print("jobs/%s/runs/%04d/" % (v["job"], v["run"]))' <<<"$spec"
}

# record KEY NAME VALUE…: a JSON object in the checkpoint bucket
record() {
  local key=$1
  shift
  python3 -c 'import json, sys; a = sys.argv[1:]; print(json.dumps(dict(zip(a[::2], a[1::2]))))' "$@" |
    aws s3 cp --region "$TRAINFABRIC_REGION" - "s3://$TRAINFABRIC_CHECKPOINT_BUCKET/$key" >/dev/null
}

time_now() {
  date -u +%Y-%m-%dT%H:%M:%SZ
}

# conclude RUN REASON: unless it has ended already
conclude() {
  local key=${1}outcome.json
  aws s3 ls --region "$TRAINFABRIC_REGION" "s3://$TRAINFABRIC_CHECKPOINT_BUCKET/$key" >/dev/null && return 0
  record "$key" state failed detail "$2" ended "$(time_now)"
}

# abandon REASON: workers first, because whoever sees the outcome may start the next run, whose workers must not go; this
# node last, because that ends the script: nobody would be left to write the outcome.
abandon() {
  local why=$1 run
  run=$(run_prefix) || run=
  retry 5 10 release_workers || why+="; its workers could not be released: scale their Auto Scaling groups to zero"
  say "$why" >&2
  [[ -z $run ]] || retry 5 10 conclude "$run" "$why" ||
    say "the job could not be marked as failed; end it with trainfabric job stop --force" >&2
  go "$run"
}

# withdraw REASON: a worker that cannot become one says so to the job and goes; the controller asks for another
withdraw() {
  local run id
  run=$(run_prefix) || run=
  id=$(instance_id) || id=unknown
  [[ -z $run ]] ||
    record "${run}nodes/$id.json" instance_id "$id" role worker state failed detail "boot: $1" updated "$(time_now)" ||
    say "the job could not be told" >&2
  go "$run"
}

is_active() {
  systemctl is-active --quiet "$1"
}

# leave STATUS: the last thing that happens, however boot ended; a service that runs already sees to its job itself
leave() {
  trap - ERR EXIT
  (($1 != 0)) || exit 0
  local why=${reason:-exit status $1}
  say "failed: $why" >&2
  case ${TRAINFABRIC_ROLE:-} in
    coordinator) is_active "$controller" || abandon "boot of the coordinator $(uname -n) failed: $why" ;;
    worker) is_active "$agent" || withdraw "$why" ;;
  esac
  exit "$1"
}

tell_failures() {
  set -o errtrace
  trap 'reason=${reason:-line $LINENO: $BASH_COMMAND}' ERR
  trap 'leave $?' EXIT
}
