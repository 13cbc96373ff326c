#!/usr/bin/env bash
# `bash slurm.sh` in the repository, on a file system that all nodes share.
set -euo pipefail
array=$(sbatch --parsable --array=1-8 --wrap 'agenteval run --shard auto --out "shards/$SLURM_ARRAY_TASK_ID"')
# afterany: the merge names a dead shard. `scontrol requeue JOB_INDEX` runs one again.
sbatch --wait --dependency="afterany:$array" --wrap 'agenteval merge shards/* -o agenteval-report'
