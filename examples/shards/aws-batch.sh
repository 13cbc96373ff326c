#!/usr/bin/env bash
# `bash aws-batch.sh` submits the jobs. Their image has the repository with its history, agenteval and the AWS CLI;
# $results/baseline has the results of the base branch.
set -euo pipefail
results=${RESULTS:-s3://my-bucket/agenteval/$(git rev-parse HEAD)}

submit() {
  aws batch submit-job --job-name "agenteval-$1" --job-queue my-queue --job-definition my-definition \
    --container-overrides "command=bash,examples/shards/aws-batch.sh,$1" "${@:2}" --query jobId --output text
}

step() { # DIRECTORY COMMAND...: runs a command, and uploads what it has written
  aws s3 cp --recursive "$results" .
  "${@:2}"
  aws s3 cp --recursive "$1" "$results/$1"
}

case ${1:-} in
  shard) step "shards/$AWS_BATCH_JOB_ARRAY_INDEX" agenteval run --shard auto --baseline baseline --out "shards/$AWS_BATCH_JOB_ARRAY_INDEX" ;;
  merge) step merged bash -c 'agenteval merge shards/* -o merged --baseline baseline --fail-on none' ;;
  prove) step "proofs/$AWS_BATCH_JOB_ARRAY_INDEX" agenteval prove merged --shard auto --out "proofs/$AWS_BATCH_JOB_ARRAY_INDEX" ;;
  gate) step agenteval-report bash -c 'agenteval merge proofs/* -o agenteval-report' ;;
  *)
    shards=$(submit shard --array-properties size=8)
    # Batch starts no job that depends on a failed one: after a dead shard, run `aws-batch.sh merge` to see which.
    merge=$(submit merge --depends-on "jobId=$shards")
    proofs=$(submit prove --depends-on "jobId=$merge" --array-properties size=8)
    submit gate --depends-on "jobId=$proofs"
    ;;
esac
