#!/usr/bin/env bash
# `bash aws-batch.sh` submits the jobs. Their image has the repository with its history, agenteval and the AWS CLI;
# $results/baseline has the results of the base branch; the first run has none, and nothing to prove.
set -euo pipefail
results=${RESULTS:-s3://my-bucket/agenteval/$(git rev-parse HEAD)}

submit() {
  aws batch submit-job --job-name "agenteval-$1" --job-queue my-queue --job-definition my-definition \
    --container-overrides "command=bash,examples/shards/aws-batch.sh,$1" "${@:2}" --query jobId --output text
}

step() { # DIRECTORY SCRIPT: runs a script with the directory as $0, and uploads what it has written, whatever its status
  aws s3 cp --recursive "$results" .
  local status=0
  bash -c "$2" "$1" || status=$?
  [ ! -d "$1" ] || aws s3 cp --recursive "$1" "$results/$1"
  return "$status"
}

case ${1:-} in
  shard) step "shards/$AWS_BATCH_JOB_ARRAY_INDEX" 'agenteval run --shard auto $([ ! -d baseline ] || echo --baseline baseline) --out "$0"' ;;
  merge) step merged 'agenteval merge shards/* -o "$0" $([ ! -d baseline ] || echo --baseline baseline) --fail-on none' ;;
  prove) step "proofs/$AWS_BATCH_JOB_ARRAY_INDEX" '[ ! -d baseline ] || agenteval prove merged --shard auto --out "$0"' ;;
  gate) step agenteval-report 'agenteval merge $([ -d baseline ] && echo proofs/* || echo merged) -o "$0"' ;;
  *)
    shards=$(submit shard --array-properties size=8)
    # Batch starts no job that depends on a failed one: after a dead shard, run `aws-batch.sh merge` to see which.
    merge=$(submit merge --depends-on "jobId=$shards")
    proofs=$(submit prove --depends-on "jobId=$merge" --array-properties size=8)
    submit gate --depends-on "jobId=$proofs"
    ;;
esac
