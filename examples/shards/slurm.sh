#!/usr/bin/env bash
# `bash slurm.sh` in the repository, on a file system that all nodes share, with the results of the base branch in baseline/.
set -euo pipefail
results=${RESULTS:-agenteval-runs/$(git rev-parse HEAD)}
shards() { sbatch --wait --array=1-8 --wrap "$1" || true; }

if [ ! -d baseline ]; then # the first run, which has nothing to prove
  shards "agenteval run --shard auto --out $results/shards/\$SLURM_ARRAY_TASK_ID"
  exec sbatch --wait --wrap "agenteval merge $results/shards/* -o $results/report"
fi

# A dead shard is named by the merge. `scontrol requeue JOB_INDEX` runs one again.
shards "agenteval run --shard auto --baseline baseline --out $results/shards/\$SLURM_ARRAY_TASK_ID"
sbatch --wait --wrap "agenteval merge $results/shards/* -o $results/merged --baseline baseline --fail-on none"

# What may be worse runs side by side with the base commit, if there is anything.
shards "agenteval prove $results/merged --shard auto --out $results/proofs/\$SLURM_ARRAY_TASK_ID"
sbatch --wait --wrap "agenteval merge $results/proofs/* -o $results/report"
