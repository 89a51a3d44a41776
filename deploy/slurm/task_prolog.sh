#!/bin/sh
# A TaskProlog for slurm.conf, or for `srun --task-prolog`: jobs that set SPILLWAY_JOB_GRAPH find the
# rewritten graph in SPILLWAY_GRAPH, without a change of their scripts:
#
#   sbatch --export=ALL,SPILLWAY_JOB_GRAPH=/data/graph.pb job.sbatch
#
# SPILLWAY_RECOMPUTE (off, cheap or all), for a job or exported here for a whole site, says which
# nodes may be recomputed; otherwise the server's --default-recompute does. Likewise
# SPILLWAY_OFFLOAD=optimizer allows optimizer state in host memory. With SPILLWAY_DRY_RUN=1 nothing
# is rewritten: jobs run unchanged, and the journal and the metrics show the omitted swaps.
#
# A graph that leaves its batch open needs SPILLWAY_JOB_BATCH_SIZE too, in examples: the default
# strategy is tuned, and tuning needs sizes.
#
# Slurm runs this as the user, for the batch script and again for each task; its output is a
# protocol (`export NAME=VALUE`, `unset NAME`), and a failure cancels the task. So: nothing else
# goes to standard output, the exit code is always 0, and a graph that is rewritten already comes
# from the cache.
[ -n "${SPILLWAY_JOB_GRAPH:-}" ] || exit 0

# A task's share of the memory that Slurm gives the job on a node (--mem, --mem-per-cpu), in MiB:
# TensorFlow may pin that much, and the plan may use half of it, as its allocator rounds up to
# powers of two. Empty if Slurm does not say. In a separate shell, which odd values may end.
share_mib=$(
  if [ "${SLURM_MEM_PER_NODE:-0}" -gt 0 ]; then
    tasks=$(echo "$SLURM_TASKS_PER_NODE" | tr ',' '\n' | sed 's/(.*//' | sort -n | tail -n 1)
    echo $((SLURM_MEM_PER_NODE / tasks))
  elif [ "${SLURM_MEM_PER_CPU:-0}" -gt 0 ]; then
    echo $((SLURM_MEM_PER_CPU * ${SLURM_CPUS_PER_TASK:-1}))
  fi
) || share_mib=
if [ -n "$share_mib" ]; then
  export TF_GPU_HOST_MEM_LIMIT_IN_MB="${TF_GPU_HOST_MEM_LIMIT_IN_MB:-$share_mib}"
fi

# The job's own graph, if `spillway` fails: missing, killed, or older than a flag here.
# A value with a line break would be lines of the protocol, and is refused.
newline='
'
case $SPILLWAY_JOB_GRAPH in
  *"$newline"*)
    echo "spillway: SPILLWAY_JOB_GRAPH has a line break, which no TaskProlog can export: rename the file" >&2
    exit 0 ;;
esac

# Give the absolute path of `spillway` if it is not in the PATH of jobs.
lines=$(spillway run --graph "$SPILLWAY_JOB_GRAPH" --timeout 30s \
  ${SPILLWAY_JOB_BATCH_SIZE:+"--batch-size=$SPILLWAY_JOB_BATCH_SIZE"} \
  ${SPILLWAY_RECOMPUTE:+"--recompute=$SPILLWAY_RECOMPUTE"} \
  ${SPILLWAY_OFFLOAD:+"--offload=$SPILLWAY_OFFLOAD"} ${SPILLWAY_DRY_RUN:+--dry-run} \
  ${share_mib:+"--host-memory-bytes=$((share_mib / 2))MiB"} -- /bin/sh -c '
  for name in SPILLWAY_GRAPH SPILLWAY_ORIGINAL_GRAPH SPILLWAY_REPORT TF_GPU_HOST_MEM_LIMIT_IN_MB \
      TF_CUDNN_WORKSPACE_LIMIT_IN_MB SPILLWAY_WORKSPACE_LIMIT_IN_MB; do
    value=$(printenv "$name") || { echo "unset $name"; continue; }
    case $value in *"$0"*) echo "spillway: $name has a line break, and is not exported" >&2; exit 1 ;; esac
    printf "export %s=%s\n" "$name" "$value"
  done' "$newline") || lines=
case $lines in
  *"export SPILLWAY_GRAPH="*) printf '%s\n' "$lines" ;;
  *) printf 'export SPILLWAY_GRAPH=%s\nunset SPILLWAY_REPORT\n' "$SPILLWAY_JOB_GRAPH" ;;
esac
exit 0
