#!/usr/bin/env bash
# Tests deploy/slurm on a real Slurm of two nodes.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/deploy/slurm_test.sh [--install] [--help]

Starts a Slurm of two nodes in a temporary folder, on free ports of this machine, and submits
deploy/slurm/train.sbatch: with a server, without one, on two nodes, with host memory to divide, with
a command that fails, cancelled in the middle; jobs under deploy/slurm/task_prolog.sh, one of which
is requeued; and jobs that deploy/slurm/cli_filter.lua refuses. Needs root, build/bin (preset
`release`) and Debian's packages slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins and munge;
--install installs what is missing. Is skipped where one of these cannot be had.

Ends only processes that it started. The last line is `N passed, N failed` or `N passed, N failed, N
skipped`. Exit code 0: nothing failed; 1: something did; 2: bad usage.
USAGE
}

install=no
for argument in "$@"; do
  case $argument in
    --install) install=yes ;;
    -h|--help) usage; exit ;;
    *) echo "tests/deploy/slurm_test.sh: there is no $argument; see --help" >&2; exit 2 ;;
  esac
done

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root
# It does not fit unswapped into the default machine: a rewrite changes it.
readonly graph=$root/tests/graphs/resnet50_tf1/graph_shapes.pb
readonly packages=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)
readonly tasks=4  # As train.sbatch has it per node.
export PATH=$root/build/bin:$PATH:/usr/sbin:/sbin
export no_proxy=127.0.0.1,localhost

skip() {
  echo "skipped: $1: the Slurm sample is not tested"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

installed() {
  command -v slurmctld && command -v slurmd && command -v sbatch && command -v munged
} >/dev/null

[[ $(id -u) == 0 ]] || skip "not root, as which alone a Slurm can be started here"
[[ -x $root/build/bin/spillway && -x $root/build/bin/spillwayd ]] || skip "build/bin is not built"
if ! installed && [[ $install == yes ]]; then
  echo "Installing: ${packages[*]}"
  # The packages' own services are not started: this test has its own.
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq \
      --no-install-recommends -o Dpkg::Use-Pty=0 "${packages[@]}"; } >/dev/null 2>&1 || true
fi
installed || skip "no Slurm here (Debian: ${packages[*]}; --install)"

work=$(mktemp -d)
readonly work
# shellcheck source=tests/deploy/slurm.sh
source "$root/tests/deploy/slurm.sh"
# shellcheck source=tests/deploy/checks.sh
source "$root/tests/deploy/checks.sh"
trap stop EXIT

skipped=0
skip_one() {
  echo "skipped: $1"
  skipped=$((skipped + 1))
}

# Each task of a job leaves the graph that it was given.
readonly write_graph='printf "%s\n" "$SPILLWAY_GRAPH" >"task.$SLURM_PROCID"'

# submit NAME VARIABLES COMMAND...: the sample, on one node, with COMMAND.
submit() {
  local variables=$2
  new_job "$1"
  shift 2
  queue "$variables" --nodes=1 "$root/deploy/slurm/train.sbatch" "$graph" "$@"
}

with_a_server() {
  local asked rewritten
  asked=$(server_count asked)
  submit server "SPILLWAY_SERVER=$server" sh -c "$write_graph"
  finish
  check "a job of $tasks tasks completes" state_is "COMPLETED 0:0"
  check "the server was asked once" is "$(($(server_count asked) - asked))" 1
  check "the hooks counted one rewrite" hook_runs rewritten 1
  check "the hooks counted $((tasks - 1)) from the cache" hook_runs cached $((tasks - 1))
  rewritten=$(head -n 1 "$folder/task.0")
  check "all tasks got the same graph" tasks_got "$tasks" "$rewritten"
  spillway rewrite "$graph" -o "$work/expected.pb" --quiet
  check "it is the graph of spillway rewrite" cmp "$rewritten" "$work/expected.pb"
  check "no temporary file is left" nothing_temporary
}

# journal FIELD: from the server's lines about the job `job`.
journal() {
  python3 -c '
import glob, json, sys
lines = [json.loads(line) for path in glob.glob(sys.argv[1] + "/*.jsonl") for line in open(path)]
print(*(line.get(sys.argv[3]) for line in lines if line.get("job") == sys.argv[2]))' \
    "$work/journal" "$job" "$1"
}

# The server learns the caller from Slurm.
names_of_the_job() {
  if ((${#with_journal[@]} == 0)); then
    skip_one "this spillwayd has no --journal: what it learns of a job is not looked at"
    return
  fi
  submit names "SPILLWAY_SERVER=$server" true
  finish
  check "the journal has one request of the job" is "$(journal outcome)" rewritten
  check "its user is Slurm's" is "$(journal user)" "$(id -un)"
  check "its queue is the partition" is "$(journal queue)" debug
  check "its model is the job's name" is "$(journal model)" train
}

without_a_server() {
  submit dead "SPILLWAY_SERVER=127.0.0.1:1" sh -c "$write_graph"
  finish
  check "without the server the job completes" state_is "COMPLETED 0:0"
  check "its tasks got the original graph" tasks_got "$tasks" "$graph"
  check "each task has one warning" is "$(grep -c '^spillway: ' "$folder/log")" "$tasks"
  check "the hooks counted $tasks failures" hook_runs failed_open "$tasks"
  local code=0
  srun --ntasks="$tasks" spillway run --graph "$graph" --server 127.0.0.1:1 --retries 0 --fail-closed \
    --cache-dir "$folder/cache" -- touch "$folder/ran" >"$folder/closed" 2>&1 || code=$?
  check "with --fail-closed srun ends with 5" is "$code" 5
  check "and the command did not run" test ! -e "$folder/ran"
}

# on_two_nodes NAME CACHE: two tasks on each node, each of which leaves its node and the digest of its
# graph; the metrics are each node's own.
on_two_nodes() {
  new_job "$1"
  queue "SPILLWAY_SERVER=$server,SPILLWAY_CACHE_DIR=$2,SPILLWAY_METRICS_TEXTFILE=$work/local/$1.prom" \
    --nodes=2 --ntasks-per-node=2 "$root/deploy/slurm/train.sbatch" "$graph" sh -c '
      printf "%s %s\n" "$SLURMD_NODENAME" "$(sha256sum <"$SPILLWAY_GRAPH")" >"task.$SLURM_PROCID"'
  finish
  local digest
  digest=$(sha256sum <"$work/expected.pb")
  check "$1: a job on two nodes completes" state_is "COMPLETED 0:0"
  check "$1: all tasks of both nodes have the same bytes" is "$(cat "$folder"/task.* | sort | paste -sd,)" \
    "node1 $digest,node1 $digest,node2 $digest,node2 $digest"
}

# If each node has its own cache, each node asks, and a job later none does. The server makes the
# graph once, here in an earlier job.
a_cache_per_node() {
  local asked made node
  asked=$(server_count asked) made=$(server_count made)
  on_two_nodes per_node "$work/local/cache"
  check "each node asked the server once" is "$(($(server_count asked) - asked))" 2
  check "which did not have to rewrite again" is "$(($(server_count made) - made))" 0
  for node in "${nodes[@]}"; do
    check "on $node one task rewrote" hook_runs rewritten 1 "$work/local.$node/per_node.prom"
    check "on $node the other took its graph" hook_runs cached 1 "$work/local.$node/per_node.prom"
    check "$node has one graph" is "$(find "$work/local.$node/cache" -name '*.pb' | wc -l)" 1
  done
  on_two_nodes again "$work/local/cache"
  check "the next job asks for nothing" is "$(($(server_count asked) - asked))" 2
}

# A folder that all nodes see: one rewrite for the job.
a_cache_for_all() {
  local asked
  asked=$(server_count asked)
  on_two_nodes shared "$work/shared/cache"
  check "one task of all nodes asked the server" is "$(($(server_count asked) - asked))" 1
  check "the nodes share one graph" is "$(find "$folder/cache" -name '*.pb' | wc -l)" 1
}

# report_field TASK FIELD...: of the report that the task was given.
report_field() {
  python3 -c '
import json, sys
value = json.load(open(open(sys.argv[1]).read().strip()))
for field in sys.argv[2:]:
    value = value[field]
print(value)' "$folder/report.$1" "${@:2}"
}

# 64 GiB of a node for 4 tasks: each may pin 16, and its plan uses 8 at most.
host_memory() {
  local write_report='printf "%s\n" "$SPILLWAY_REPORT" >"report.$SLURM_PROCID"
printf "%s\n" "$TF_GPU_HOST_MEM_LIMIT_IN_MB" >"task.$SLURM_PROCID"'
  new_job memory
  queue "" --nodes=1 --mem=64G "$root/deploy/slurm/train.sbatch" "$graph" sh -c "$write_report"
  finish
  check "with --mem a job completes" state_is "COMPLETED 0:0"
  check "each task may pin its share of it" tasks_got "$tasks" 16384
  check "the plan may use half of a share" is "$(report_field 0 hardware hardware host_memory_bytes)" $((8 << 30))
  new_job memory_prolog
  cat >"$folder/job" <<JOB
#!/bin/sh
srun sh -c '$write_report'
JOB
  queue "SPILLWAY_JOB_GRAPH=$graph" --ntasks=2 --nodes=1 --mem-per-cpu=4G --cpus-per-task=2 "$folder/job"
  finish
  check "under the TaskProlog, too" state_is "COMPLETED 0:0"
  check "with --mem-per-cpu a share is that of a task's CPUs" tasks_got 2 8192
  check "and the plan's half of it" is "$(report_field 1 hardware hardware host_memory_bytes)" $((4 << 30))
}

exit_codes() {
  submit failing "SPILLWAY_SERVER=$server" sh -c 'exit 9'
  finish
  check "the command's exit code is the job's" state_is "FAILED 9:0"
  submit missing "SPILLWAY_SERVER=$server" no-such-command
  finish
  check "a command that does not exist is 127" state_is "FAILED 127:0"
}

cancelled_in_the_middle() {
  start_silent_server
  submit cancelled "SPILLWAY_SERVER=127.0.0.1:$(head -n 1 "$work/silent")" touch ran
  check "a task waits for a silent server" wait_until 60 grep -q connected "$work/silent"
  scancel "$job"
  finish
  check "the job is cancelled" is "$(field "$job" JobState)" CANCELLED
  check "the nodes are free again" wait_until 60 nodes_are_idle
  check "the command did not run" test ! -e "$folder/ran"
  check "no temporary file is left" nothing_temporary
  check "the cache has the lock alone" is "$(find "$folder/cache" -type f | sed 's/.*\.//')" entry
  check "no process of the job is left" is "$(grep -lzs "^SLURM_JOB_ID=$job$" /proc/[0-9]*/environ || true)" ""
}

# Leaves the graphs of batch script and tasks; in its first run it then waits to be requeued, if a
# file says so.
write_prolog_job() {
  cat >"$folder/job" <<JOB
#!/bin/sh
printf '%s\n' "\$SPILLWAY_GRAPH" >"task.batch"
printf '%s\n' "\$SPILLWAY_ORIGINAL_GRAPH" >original
srun sh -c '$write_graph'
if [ -e requeue ] && [ -z "\$SLURM_RESTART_COUNT" ]; then
  touch waits
  sleep 120
fi
JOB
}

# The batch script gets the graph, and the tasks get the same again.
task_prolog() {
  new_job prolog
  write_prolog_job
  queue "SPILLWAY_JOB_GRAPH=$graph" --ntasks=$((tasks - 1)) "$folder/job"
  finish
  check "under the TaskProlog a job completes" state_is "COMPLETED 0:0"
  check "batch script and tasks got the same graph" tasks_got "$tasks" "$(cat "$folder/task.batch")"
  check "it is the graph of spillway rewrite" cmp "$(cat "$folder/task.batch")" "$work/expected.pb"
  check "the original is the one that was given" is "$(cat "$folder/original")" "$graph"
  check "it was rewritten once" hook_runs rewritten 1

  new_job prolog_dry
  write_prolog_job
  queue "SPILLWAY_JOB_GRAPH=$graph,SPILLWAY_DRY_RUN=1" --ntasks=1 "$folder/job"
  finish
  check "in a dry run a job under the TaskProlog completes" state_is "COMPLETED 0:0"
  check "it got the original graph" tasks_got 2 "$graph"
  check "and nothing was rewritten" hook_runs rewritten 0

  new_job prolog_dead
  write_prolog_job
  queue "SPILLWAY_JOB_GRAPH=$graph,SPILLWAY_SERVER=127.0.0.1:1" --ntasks=1 "$folder/job"
  finish
  check "without its server a job under the TaskProlog completes" state_is "COMPLETED 0:0"
  check "it got the original graph" tasks_got 2 "$graph"
  check "and the hooks counted it" hook_runs failed_open 2
}

# The same job again, with the graph that it had.
requeued() {
  local asked first
  asked=$(server_count asked)
  new_job requeued
  write_prolog_job
  touch "$folder/requeue"
  queue "SPILLWAY_JOB_GRAPH=$graph,SPILLWAY_SERVER=$server" --requeue --ntasks=1 "$folder/job"
  check "a job waits to be requeued" wait_until 60 test -e "$folder/waits"
  first=$(cat "$folder/task.batch")
  rm -f "$folder"/task.*
  scontrol requeue "$job"
  # Slurm delays it by two minutes by default.
  wait_until 60 job_is_pending "$job"
  wait_until 60 scontrol update JobId="$job" StartTime=now
  finish
  check "the requeued job completes" state_is "COMPLETED 0:0"
  check "it ran twice" is "$(field "$job" Restarts)" 1
  check "all of it got the graph of the first run" tasks_got 2 "$first"
  check "which is the graph of spillway rewrite" cmp "$first" "$work/expected.pb"
  check "the server was asked once" is "$(($(server_count asked) - asked))" 1
  check "there is one graph, of both runs" is "$(find "$folder/cache" -name '*.pb')" "$first"
  check "no temporary file is left" nothing_temporary
}

# refused TEXT COMMAND...: by the filter, with one sentence that has TEXT, and no job is queued.
refused() {
  local text=$1 output code=0
  shift
  output=$("$@" 2>&1 >"$work/queued") || code=$?
  [[ $code != 0 && ! -s $work/queued ]] || { echo "not refused ($code): $(cat "$work/queued")"; return 1; }
  [[ $(grep -c 'lua: ' <<<"$output") == 1 && $output == *"$text"* ]] || { echo "$output"; return 1; }
}

passes() {
  "$@" >"$work/queued" 2>"$work/said" || { cat "$work/said"; return 1; }
  ! grep 'lua: ' "$work/said"
}

filter() {
  local batch=(sbatch --chdir="$work" --output=/dev/null --wrap=true) name=SPILLWAY_JOB_GRAPH
  folder=$work
  : >"$work/empty.pb"
  check "in a partition of graphs a job must have one" \
    refused "Jobs of the partition gpu have to name the graph" "${batch[@]}" -p gpu
  check "and with --export=NONE it has none" \
    refused "have to name the graph" env "$name=$graph" "${batch[@]}" -p gpu --export=NONE
  check "srun, too" refused "have to name the graph" srun -p gpu true
  check "salloc, too" refused "have to name the graph" salloc -p gpu true
  check "a graph that is not there" refused "SPILLWAY_JOB_GRAPH cannot be opened (/nonexistent.pb: No such" \
    "${batch[@]}" --export="ALL,$name=/nonexistent.pb"
  check "a folder" refused "which cannot be read (Is a directory)" \
    "${batch[@]}" --export="ALL,$name=$work"
  check "an empty file" refused "it is empty" "${batch[@]}" --export="ALL,$name=$work/empty.pb"
  check "a relative path, from the environment" refused "is 'graph.pb': give an absolute path" \
    env "$name=graph.pb" "${batch[@]}"
  check "a path with a line break" refused "a line break or another control character" \
    env "$name=$work/a"$'\n'b "${batch[@]}"
  check "none of these is in the queue" no_job_is_left
  check "elsewhere no job needs a graph" passes "${batch[@]}"
  check "a graph opens the partition" passes env "$name=$graph" "${batch[@]}" -p gpu --export="$name,PATH"
  check "salloc and the steps in it" passes env "$name=$graph" "SPILLWAY_CACHE_DIR=$work/filter_cache" \
    salloc -p gpu srun -n 1 true
  # shellcheck disable=SC2016
  check "a job with a graph gets the site's variables" is "$(
    srun --export="ALL,$name=$graph,SPILLWAY_CACHE_DIR=$work/filter_cache" sh -c 'echo "$SPILLWAY_METRICS_TEXTFILE"' \
      2>"$work/said")" "$work/site.prom"
  # shellcheck disable=SC2016
  check "but for those that it has" is "$(
    srun --export="ALL,$name=$graph,SPILLWAY_CACHE_DIR=$work/filter_cache,SPILLWAY_METRICS_TEXTFILE=$work/mine.prom" \
      sh -c 'echo "$SPILLWAY_METRICS_TEXTFILE"' 2>"$work/said")" "$work/mine.prom"
  check "all jobs end" wait_until 60 no_job_is_left
}

# not_started WHAT LOG...
not_started() {
  tail -n 5 "${@:2}"
  echo "FAILED  $1 starts"
  echo
  echo "0 passed, 1 failed"
  exit 1
}

start_slurm || not_started Slurm "$work"/log/*
mkdir "$work/journal"
with_journal=()
! spillwayd --help | grep -q -e '--journal' || with_journal=(--journal "$work/journal")
start_server "${with_journal[@]}" || not_started spillwayd "$work/spillwayd"
with_a_server
names_of_the_job
without_a_server
a_cache_per_node
a_cache_for_all
host_memory
exit_codes
cancelled_in_the_middle
task_prolog
requeued
filter

echo
echo "$passed passed, $failed failed$( ((skipped == 0)) || echo ", $skipped skipped")"
[[ $failed == 0 ]]
