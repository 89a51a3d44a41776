#!/usr/bin/env bash
# Shows Spillway at work: builds it, starts the server, and sends it the training graph of ResNet-50.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: deploy/demo.sh [--help]

Installs what is missing (Debian 12), builds the two programs, starts the server on free ports of
this machine, sends it a ResNet-50 training graph that is too large for a GPU of 16 GB, and shows
the report and the counters. Then it takes the swaps out again and compares the bytes. Needs no GPU
and no TensorFlow. The first run takes a few minutes, nearly all of it building; later ones take
seconds.

Its files are in build/demo/. The server is stopped at the end, also after Ctrl-C.
USAGE
}

case ${1:-} in
  '') ;;
  -h|--help) usage; exit ;;
  *) echo "deploy/demo.sh: unknown argument $1; see deploy/demo.sh --help" >&2; exit 2 ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source deploy/steps.sh
readonly spillway=build/bin/spillway
readonly spillwayd=build/bin/spillwayd
readonly graph=tests/graphs/resnet50_tf1/graph_shapes.pb
readonly out=build/demo
# The server is on this machine: never use a proxy.
export no_proxy=127.0.0.1,localhost${no_proxy:+,$no_proxy}

server_pid=
stop_server() {
  [[ -n $server_pid ]] || return 0
  local pid=$server_pid
  server_pid=
  kill -TERM "$pid" 2>/dev/null || true
  wait "$pid"
}

on_exit() {
  local code=$?
  stop_server || true
  if [[ $code != 0 ]]; then
    echo
    echo "The demo did not finish (exit code $code). Logs are in $out."
  fi
}
trap on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits for the server's two lines and reads the addresses from them.
await_server() {
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    address=$(sed -nE 's/^spillwayd [^ ]+ listening on (.*)$/\1/p' "$out/server.out")
    metrics=$(sed -nE 's/^metrics on (.*)$/\1/p' "$out/server.out")
    [[ -z $address || -z $metrics ]] || return 0
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  echo "The server did not start:"
  cat "$out/server.out" "$out/server.log"
  return 1
}

scrape() {
  python3 -c 'import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' "$metrics" >"$1"
}

# Prints a command as it would be typed, in lines of at most 100 columns, and runs it. Standard
# error goes to standard output, so that the order is kept in a file, too.
show() {
  local line="\$" part i
  for ((i = 1; i <= $#; ++i)); do
    part=${!i}
    if [[ $part == -* && $i -lt $# ]]; then  # A flag and its value stay together.
      local next=$((i + 1))
      [[ ${!next} == -* ]] || { part+=" ${!next}"; i=$next; }
    fi
    if ((${#line} + ${#part} > 97)); then
      echo "$line \\"
      line="     "
    fi
    line+=" $part"
  done
  echo "$line"
  "$@" 2>&1
}

mkdir -p "$out"
echo "Spillway's demo. Paths are relative to $PWD."

heading "1. Install"
deploy/install_deps.sh build
end_section "Install"

heading "2. Build"
echo "The first time, this takes some minutes."
build_preset release "$out/build.log" spillway spillwayd
end_section "Build"

heading "3. Start the server"
echo "\$ $spillwayd --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 2>$out/server.log"
# Created here, since it may be read before the server's shell has created it.
: >"$out/server.out"
"$spillwayd" --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 >>"$out/server.out" 2>"$out/server.log" &
server_pid=$!
await_server
cat "$out/server.out"
scrape "$out/metrics_before.txt"
end_section "Start the server"

heading "4. Rewrite ResNet-50"
echo "The graph: one training step at batch 200, 224x224 images, with gradients and Momentum. The
machine: a P100 of 16 GB, for which it is too large; named, so that nvidia-smi is not used."
show "$spillway" rewrite "$graph" --server "$address" --hardware p100_pcie \
  -o "$out/resnet50_swapped.pb" --report "$out/report.json"
echo
echo "The largest of the swapped tensors, from $out/report.json:"
python3 deploy/demo_tables.py swaps "$out/report.json"
end_section "Rewrite"

heading "5. What the server counted"
scrape "$out/metrics_after.txt"
echo "Counters of $metrics that changed:"
python3 deploy/demo_tables.py counters "$out/metrics_before.txt" "$out/metrics_after.txt"
end_section "Counters"

heading "6. Take the swaps out again"
show "$spillway" strip "$out/resnet50_swapped.pb" --server "$address" -o "$out/resnet50_stripped.pb" --quiet
cmp "$graph" "$out/resnet50_stripped.pb"
echo "$out/resnet50_stripped.pb and $graph are equal, byte for byte."
end_section "Strip"

heading "7. Stop the server"
stop_server
echo "SIGTERM sent; the server finished its requests and exited with 0."
end_section "Stop the server"

print_times
cat <<NEXT

The rewritten graph is $out/resnet50_swapped.pb. To train with it, import it where the model
was built; fetch and feed by the same names as before:

    import tensorflow.compat.v1 as tf
    graph_def = tf.GraphDef.FromString(open("$out/resnet50_swapped.pb", "rb").read())
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        session.run("init")
        session.run("train_op", {"images:0": images, "labels:0": labels})

In the training job, set the variable that \`advice\` names above, and merge the config_proto_text of
$out/report.json into the session's configuration.

To rewrite a graph of your own: $spillway rewrite --help. It needs no server. Say which machine it
is for (--hardware, --gpu-memory-bytes) and, if the graph leaves it open, the batch (--batch-size).
NEXT
