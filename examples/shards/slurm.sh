#!/usr/bin/env bash
# `bash slurm.sh` in the repository, on a file system that all nodes share, with the results of the base branch in baseline/.
set -euo pipefail

# A dead shard is named by the merge. `scontrol requeue JOB_INDEX` runs one again.
sbatch --wait --array=1-8 --wrap 'agenteval run --shard auto --baseline baseline --out "shards/$SLURM_ARRAY_TASK_ID"' || true
sbatch --wait --wrap 'agenteval merge shards/* -o merged --baseline baseline --fail-on none'

# What may be worse runs side by side with the base commit, if there is anything.
sbatch --wait --array=1-8 --wrap 'agenteval prove merged --shard auto --out "proofs/$SLURM_ARRAY_TASK_ID"' || true
sbatch --wait --wrap 'agenteval merge proofs/* -o agenteval-report'
