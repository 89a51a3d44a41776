#!/usr/bin/env bash
# Tests deploy/slurm on a real Slurm of one node.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/deploy/slurm_test.sh [--install] [--help]

Starts a Slurm of one node in a temporary folder, on free ports of this machine, and submits
deploy/slurm/train.sbatch: with a server, without one, with a command that fails, cancelled in the
middle; and a job under deploy/slurm/task_prolog.sh. Needs root, build/bin (preset `release`) and
Debian's packages slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins and munge; --install
installs what is missing. Is skipped where one of these cannot be had.

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
readonly tasks=4
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
pids=()
stop() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap stop EXIT

# start LOG COMMAND...: in the background, to be ended with this script.
start() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 &
  pids+=($!)
}

# wait_until SECONDS COMMAND...: false if COMMAND did not succeed in time.
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

source "$root/tests/deploy/checks.sh"

free_ports() {
  python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in sockets))'
}

start_slurm() {
  local ctld_port slurmd_port
  read -r ctld_port slurmd_port < <(free_ports)
  # Others may look in: munge refuses folders that it finds too open, or that its clients cannot
  # reach.
  chmod 755 "$work"
  mkdir -m 755 "$work"/{run,log,spool,state,etc,tmp}
  dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 status=none
  chmod 600 "$work/munge.key"
  cat >"$work/etc/slurm.conf" <<CONF
ClusterName=spillway
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/run/munge.sock
SlurmctldPort=$ctld_port
SlurmdPort=$slurmd_port
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/slurmd.pid
SlurmdSpoolDir=$work/spool
StateSaveLocation=$work/state
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog=$root/deploy/slurm/task_prolog.sh
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
KillWait=2
ReturnToService=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs=$tasks State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  : >"$work/etc/cgroup.conf"
  export SLURM_CONF=$work/etc/slurm.conf
  start "$work/log/munged" munged --force --foreground --socket="$work/run/munge.sock" \
    --key-file="$work/munge.key" --pid-file="$work/run/munged.pid" \
    --seed-file="$work/run/munge.seed" --log-file="$work/log/munged.log"
  wait_until 10 test -S "$work/run/munge.sock" || return 1
  start "$work/log/slurmctld" slurmctld -D -i -f "$SLURM_CONF"
  start "$work/log/slurmd" slurmd -D -f "$SLURM_CONF" -N localhost
  wait_until 60 node_is_idle
}

node_is_idle() {
  [[ $(sinfo -h -o %T) == idle ]]
}

start_server() {
  start "$work/spillwayd" spillwayd --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0
  wait_until 10 grep -q '^metrics on' "$work/spillwayd" || return 1
  server=$(sed -nE 's/^spillwayd .* listening on //p' "$work/spillwayd")
  metrics_url=$(sed -nE 's/^metrics on //p' "$work/spillwayd")
}

# What the server has rewritten so far.
server_count() {
  python3 -c '
import sys, urllib.request
text = urllib.request.urlopen(sys.argv[1]).read().decode()
counts = [int(float(line.split()[1])) for line in text.splitlines()
          if line.startswith("spillway_rewrite_outcomes_total{") and "outcome=\"rewritten\"" in line]
assert counts, "the server has no such metric"
print(sum(counts))' "$metrics_url"
}

field() {
  scontrol -o show job "$1" | grep -oP "\b$2=\K\S+"
}

job_ended() {
  [[ $(field "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]
}

# submit NAME VARIABLES COMMAND...: submits the sample with COMMAND and leaves the number in `job`.
# The job has the folder $work/NAME: its output `log`, its cache, its metrics, what its tasks write.
submit() {
  local name=$1 variables=$2
  shift 2
  folder=$work/$name
  mkdir "$folder"
  job=$(sbatch --parsable --ntasks-per-node="$tasks" --chdir="$folder" --output="$folder/log" \
    --export="ALL,SPILLWAY_CACHE_DIR=$folder/cache,SPILLWAY_METRICS_TEXTFILE=$folder/m.prom,$variables" \
    "$root/deploy/slurm/train.sbatch" "$@")
}

finish() {
  wait_until 120 job_ended "$job" || { echo "job $job does not end"; scontrol show job "$job"; }
}

# What each task of a job leaves: the graph that it was given.
readonly write_graph='printf "%s\n" "$SPILLWAY_GRAPH" >"task.$SLURM_PROCID"'

is() {
  [[ $1 == "$2" ]] || { echo "is '$1' and not '$2'"; [[ ! -e $folder/log ]] || cat "$folder/log"; return 1; }
}

tasks_got() {
  is "$(cat "$folder"/task.* | sort | uniq -c | sed -E 's/^ +//')" "$tasks $1"
}

hook_runs() {
  is "$(sed -nE "s/^spillway_hook_runs_total\{result=\"$1\"\} //p" "$folder/m.prom")" "$2"
}

# Nothing but whole entries and locks.
nothing_temporary() {
  local left
  left=$(find "$folder" -name '.*' ! -name . -o -name '*spillway-*')
  is "$left" ""
}

state_is() {
  is "$(field "$job" JobState) $(field "$job" ExitCode)" "$1"
}

with_a_server() {
  local before rewritten
  before=$(server_count)
  submit server "SPILLWAY_SERVER=$server" "$graph" sh -c "$write_graph"
  finish
  check "a job of $tasks tasks completes" state_is "COMPLETED 0:0"
  check "the server rewrote once" is "$(($(server_count) - before))" 1
  check "the hooks counted one rewrite" hook_runs rewritten 1
  check "the hooks counted $((tasks - 1)) from the cache" hook_runs cached $((tasks - 1))
  rewritten=$(head -n 1 "$folder/task.0")
  check "all tasks got the same graph" tasks_got "$rewritten"
  spillway rewrite "$graph" -o "$work/expected.pb" --quiet
  check "it is the graph of spillway rewrite" cmp "$rewritten" "$work/expected.pb"
  check "no temporary file is left" nothing_temporary
}

without_a_server() {
  submit dead "SPILLWAY_SERVER=127.0.0.1:1" "$graph" sh -c "$write_graph"
  finish
  check "without the server the job completes" state_is "COMPLETED 0:0"
  check "its tasks got the original graph" tasks_got "$graph"
  check "each task has one warning" is "$(grep -c '^spillway: ' "$folder/log")" "$tasks"
  check "the hooks counted $tasks failures" hook_runs failed_open "$tasks"
  local code=0
  srun --ntasks="$tasks" spillway run --graph "$graph" --server 127.0.0.1:1 --retries 0 --fail-closed \
    --cache-dir "$folder/cache" -- touch "$folder/ran" >"$folder/closed" 2>&1 || code=$?
  check "with --fail-closed srun ends with 5" is "$code" 5
  check "and the command did not run" test ! -e "$folder/ran"
}

exit_codes() {
  submit failing "SPILLWAY_SERVER=$server" "$graph" sh -c 'exit 9'
  finish
  check "the command's exit code is the job's" state_is "FAILED 9:0"
  submit missing "SPILLWAY_SERVER=$server" "$graph" no-such-command
  finish
  check "a command that does not exist is 127" state_is "FAILED 127:0"
}

# A server that takes connections and never says a word.
cancelled_in_the_middle() {
  start "$work/silent" python3 -uc '
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1])
connections = []
while True:
    connections.append(server.accept())
    print("connected")'
  wait_until 10 grep -q . "$work/silent"
  submit cancelled "SPILLWAY_SERVER=127.0.0.1:$(head -n 1 "$work/silent")" "$graph" touch ran
  check "a task waits for a silent server" wait_until 60 grep -q connected "$work/silent"
  scancel "$job"
  finish
  check "the job is cancelled" is "$(field "$job" JobState)" CANCELLED
  check "the node is free again" wait_until 60 node_is_idle
  check "the command did not run" test ! -e "$folder/ran"
  check "no temporary file is left" nothing_temporary
  check "the cache has the lock alone" is "$(find "$folder/cache" -type f | sed 's/.*\.//')" entry
  check "no process of the job is left" is "$(grep -lzs "^SLURM_JOB_ID=$job$" /proc/[0-9]*/environ || true)" ""
}

# The batch script gets the graph, and the tasks get the same again.
task_prolog() {
  folder=$work/prolog
  mkdir "$folder"
  cat >"$folder/job" <<'JOB'
#!/bin/sh
printf '%s\n' "$SPILLWAY_GRAPH" >task.batch
printf '%s\n' "$SPILLWAY_ORIGINAL_GRAPH" >original
srun sh -c 'printf "%s\n" "$SPILLWAY_GRAPH" >"task.$SLURM_PROCID"'
JOB
  job=$(sbatch --parsable --ntasks=$((tasks - 1)) --chdir="$folder" --output="$folder/log" --export="ALL,\
SPILLWAY_JOB_GRAPH=$graph,SPILLWAY_CACHE_DIR=$folder/cache,SPILLWAY_METRICS_TEXTFILE=$folder/m.prom" "$folder/job")
  finish
  check "under the TaskProlog a job completes" state_is "COMPLETED 0:0"
  check "batch script and tasks got the same graph" tasks_got "$(cat "$folder/task.batch")"
  check "it is the graph of spillway rewrite" cmp "$(cat "$folder/task.batch")" "$work/expected.pb"
  check "the original is the one that was given" is "$(cat "$folder/original")" "$graph"
  check "it was rewritten once" hook_runs rewritten 1
}

if ! start_slurm; then
  tail -n 5 "$work"/log/*
  echo "FAILED  Slurm starts"
  echo
  echo "0 passed, 1 failed"
  exit 1
fi
start_server
with_a_server
without_a_server
exit_codes
cancelled_in_the_middle
task_prolog

echo
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
