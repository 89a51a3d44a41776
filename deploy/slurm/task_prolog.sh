#!/bin/sh
# A TaskProlog for slurm.conf, or for `srun --task-prolog`: jobs that set SPILLWAY_JOB_GRAPH find the
# rewritten graph in SPILLWAY_GRAPH, without a change of their scripts:
#
#   sbatch --export=ALL,SPILLWAY_JOB_GRAPH=/data/graph.pb job.sbatch
#
# A graph that leaves its batch open needs SPILLWAY_JOB_BATCH_SIZE too, in examples: the default
# strategy is tuned, and tuning needs sizes.
#
# Slurm runs this as the user, for the batch script and again for each task; what it prints is a
# protocol (`export NAME=VALUE`, `unset NAME`), and a failure cancels the task. So: nothing else goes
# to standard output, the exit code is 0 whatever happens, and a graph that is rewritten already
# comes from the cache.
[ -n "${SPILLWAY_JOB_GRAPH:-}" ] || exit 0

# Give the absolute path of `spillway` where it is not in the PATH of jobs.
spillway run --graph "$SPILLWAY_JOB_GRAPH" --timeout 30s \
  ${SPILLWAY_JOB_BATCH_SIZE:+"--batch-size=$SPILLWAY_JOB_BATCH_SIZE"} -- /bin/sh -c '
  for name in SPILLWAY_GRAPH SPILLWAY_ORIGINAL_GRAPH SPILLWAY_REPORT TF_GPU_HOST_MEM_LIMIT_IN_MB; do
    if value=$(printenv "$name"); then
      printf "export %s=%s\n" "$name" "$value"
    else
      echo "unset $name"
    fi
  done'
exit 0
