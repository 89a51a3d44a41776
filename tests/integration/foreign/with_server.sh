#!/usr/bin/env bash
# Runs a client that is not ours against a real spillwayd: with_server.sh COMMAND [ARGUMENT...]
#
# COMMAND finds in its environment
#   SPILLWAY_SERVER           HOST:PORT of a spillwayd that runs until COMMAND has ended
#   SPILLWAY_PROTO            the folder of the .proto files
#   SPILLWAY_SMALL, _LARGE    files: a graph of 50 KB, for one message, and one of 1 MB, for a stream
#   SPILLWAY_SMALL_REWRITTEN, SPILLWAY_LARGE_REWRITTEN
#                             their rewrites by `spillway rewrite`, in its own process, with the
#                             options scope { fuse_swapins: true lb: 5 } min_tensor_bytes: 4096
#   SPILLWAY_BIN              the programs' folder, which it may be given (default: build/bin)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
readonly root bin=${SPILLWAY_BIN:-$root/build/bin}
export SPILLWAY_BIN=$bin
folder=$(mktemp -d)
readonly folder
server=

stop() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$folder"
}
trap stop EXIT

export SPILLWAY_PROTO=$root/proto
export SPILLWAY_SMALL=$root/tests/graphs/cond_v1/graph_shapes.pb
export SPILLWAY_LARGE=$root/tests/graphs/resnet50_tf1/graph_shapes.pb
export SPILLWAY_SMALL_REWRITTEN=$folder/small.pb
export SPILLWAY_LARGE_REWRITTEN=$folder/large.pb
for size in SMALL LARGE; do
  input=SPILLWAY_$size output=SPILLWAY_${size}_REWRITTEN
  "$bin/spillway" rewrite "${!input}" -o "${!output}" --quiet \
    --strategy scope --fuse-swapins --lb 5 --min-tensor-bytes 4096
  if cmp -s "${!input}" "${!output}"; then
    echo "with_server.sh: ${!input} was not changed, so a client could be wrong unseen" >&2
    exit 1
  fi
done

# The server writes its address to a pipe, so that no client must wait for a file to fill.
mkfifo "$folder/out"
"$bin/spillwayd" --listen 127.0.0.1:0 --metrics-listen none \
  >"$folder/out" 2>"$folder/log" &
server=$!
if ! read -r line <"$folder/out"; then
  echo "with_server.sh: spillwayd did not start: $(cat "$folder/log")" >&2
  exit 1
fi
export SPILLWAY_SERVER=${line##* }
# Clients of other makers use any proxy, even for this machine.
export no_proxy=127.0.0.1,localhost${no_proxy:+,$no_proxy}
export NO_PROXY=$no_proxy no_grpc_proxy=$no_proxy

code=0
"$@" || code=$?
if [[ $code != 0 ]]; then
  echo "The last lines of spillwayd's log:"
  tail -n 5 "$folder/log"
fi
exit "$code"
