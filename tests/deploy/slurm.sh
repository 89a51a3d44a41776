# shellcheck shell=bash
# Sourced by slurm_test.sh: a Slurm of two nodes on this machine, a spillwayd, jobs and their files.
# Expects `root` and `work`, a folder that goes with the script; start_server sets `server`.
# shellcheck disable=SC2154,SC2034

readonly nodes=(node1 node2)
readonly cpus=4  # Of each node.
readonly node_mib=131072
pids=()

# Ends what `start` started, and no other process.
stop() {
  local pid
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}

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

# free_ports COUNT
free_ports() {
  python3 -c '
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))' "$1"
}

# The partition `gpu` is the one whose jobs must name a graph; jobs with one that have no file for
# metrics get the site's. The filter is the sample except for these two lines.
configure_filter() {
  sed -e 's/^local must_have_a_graph = {}$/local must_have_a_graph = { gpu = true }/' \
    -e "s|^local variables = {}\$|local variables = { SPILLWAY_METRICS_TEXTFILE = '$work/site.prom' }|" \
    "$root/deploy/slurm/cli_filter.lua" >"$work/etc/cli_filter.lua"
  [[ $(diff "$root/deploy/slurm/cli_filter.lua" "$work/etc/cli_filter.lua" | grep -c '^>') == 2 ]]
}

start_slurm() {
  local ports
  read -ra ports < <(free_ports 3)
  # Others may look in: munge refuses folders that it finds too open, or that its clients cannot
  # reach.
  chmod 755 "$work"
  mkdir -m 755 "$work"/{run,log,state,etc,local,local.node1,local.node2}
  dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 status=none
  chmod 600 "$work/munge.key"
  cat >"$work/etc/slurm.conf" <<CONF
ClusterName=spillway
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/run/munge.sock
SlurmctldPort=${ports[0]}
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/%n.pid
SlurmdSpoolDir=$work/spool.%n
StateSaveLocation=$work/state
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog=$root/deploy/slurm/task_prolog.sh
CliFilterPlugins=lua
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
NodeName=DEFAULT CPUs=$cpus RealMemory=$node_mib State=UNKNOWN
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=${ports[1]}
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=${ports[2]}
PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE State=UP
PartitionName=debug Default=YES
PartitionName=gpu
CONF
  : >"$work/etc/cgroup.conf"
  configure_filter || { echo "cli_filter.lua is not as this test expects"; return 1; }
  export SLURM_CONF=$work/etc/slurm.conf
  start "$work/log/munged" munged --force --foreground --socket="$work/run/munge.sock" \
    --key-file="$work/munge.key" --pid-file="$work/run/munged.pid" \
    --seed-file="$work/run/munge.seed" --log-file="$work/log/munged.log"
  wait_until 10 test -S "$work/run/munge.sock" || return 1
  start "$work/log/slurmctld" slurmctld -D -i -f "$SLURM_CONF"
  local node
  for node in "${nodes[@]}"; do
    # $work/local is a disk of the node's own: the same path, another folder on each.
    start "$work/log/$node" unshare --mount sh -ec '
      mount --bind "$1/local.$2" "$1/local"
      exec slurmd -D -f "$SLURM_CONF" -N "$2"' sh "$work" "$node"
  done
  wait_until 60 nodes_are_idle
}

nodes_are_idle() {
  [[ $(sinfo -h -N -p debug -o '%N %T' | sort | paste -sd,) == "node1 idle,node2 idle" ]]
}

# start_server FLAG...
start_server() {
  start "$work/spillwayd" spillwayd --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 "$@"
  wait_until 10 grep -q '^metrics on' "$work/spillwayd" || return 1
  server=$(sed -nE 's/^spillwayd .* listening on //p' "$work/spillwayd")
  metrics_url=$(sed -nE 's/^metrics on //p' "$work/spillwayd")
}

# server_count asked|made: rewrites requested from the server so far, and those of them that it made
# itself, not from its cache or from another request at the same time.
server_count() {
  python3 -c '
import re, sys, urllib.request
text = urllib.request.urlopen(sys.argv[1]).read().decode()
def total(name, label=""):
    found = [float(line.split()[-1]) for line in text.splitlines()
             if re.match(name + "[ {]", line) and label in line]
    assert found, "the server has no metric " + name
    return int(sum(found))
count = total("spillway_requests_total", "method=\"Rewrite")
if sys.argv[2] == "made":
    count -= total("spillway_shared_rewrites_total") + total("spillway_cached_rewrites_total")
print(count)' "$metrics_url" "$1"
}

# A server that takes connections and never answers: its port is in $work/silent.
start_silent_server() {
  start "$work/silent" python3 -uc '
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1])
connections = []
while True:
    connections.append(server.accept())
    print("connected")'
  wait_until 10 grep -q . "$work/silent"
}

# field JOB NAME
field() {
  scontrol -o show job "$1" | grep -oP "\b$2=\K\S+"
}

job_ended() {
  [[ $(field "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]]
}

job_is_pending() {
  [[ $(field "$1" JobState) == PENDING ]]
}

no_job_is_left() {
  [[ -z $(squeue -h -o %i) ]]
}

# new_job NAME: the folder of a job: its output `log`, its tasks' files, and by default its cache
# and its metrics.
new_job() {
  folder=$work/$1
  mkdir "$folder"
}

# queue VARIABLES ARGUMENTS OF SBATCH...: submits, and leaves the number in `job`.
queue() {
  local variables=$1
  shift
  job=$(sbatch --parsable --chdir="$folder" --output="$folder/log" --open-mode=append --export="ALL,\
SPILLWAY_CACHE_DIR=$folder/cache,SPILLWAY_METRICS_TEXTFILE=$folder/m.prom,$variables" "$@")
}

finish() {
  wait_until 120 job_ended "$job" || { echo "job $job does not end"; scontrol show job "$job"; }
}

is() {
  [[ $1 == "$2" ]] || { echo "is '$1' and not '$2'"; [[ ! -e $folder/log ]] || cat "$folder/log"; return 1; }
}

state_is() {
  is "$(field "$job" JobState) $(field "$job" ExitCode)" "$1"
}

# tasks_got COUNT GRAPH: as `write_graph` left it.
tasks_got() {
  is "$(cat "$folder"/task.* | sort | uniq -c | sed -E 's/^ +//')" "$1 $2"
}

# hook_runs RESULT COUNT [FILE]
hook_runs() {
  is "$(sed -nE "s/^spillway_hook_runs_total\{result=\"$1\"\} //p" "${3:-$folder/m.prom}")" "$2"
}

# Nothing but whole entries and locks.
nothing_temporary() {
  local left
  left=$(find "$folder" -name '.*' ! -name . -o -name '*spillway-*')
  is "$left" ""
}
