#!/usr/bin/env bash
# `bash aws-batch.sh` submits the jobs. The job definition's image has the repository, agenteval and the AWS CLI.
set -euo pipefail
shards=${SHARDS:-s3://my-bucket/agenteval/$(git rev-parse HEAD)}

submit() {
  aws batch submit-job --job-name "agenteval-$1" --job-queue my-queue --job-definition my-definition \
    --container-overrides "command=bash,examples/shards/aws-batch.sh,$1" "${@:2}" --query jobId --output text
}

case ${1:-} in
  run)
    agenteval run --shard auto
    aws s3 cp --recursive agenteval-report "$shards/$AWS_BATCH_JOB_ARRAY_INDEX"
    ;;
  merge)
    aws s3 cp --recursive "$shards" shards
    agenteval merge shards/* -o agenteval-report
    ;;
  *)
    array=$(submit run --array-properties size=8)
    submit merge --depends-on "jobId=$array"
    ;;
esac
