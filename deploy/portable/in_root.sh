#!/usr/bin/env bash
# Run by test.sh in a bare Debian, in /try: the wheel and the tar file, without a network.
set -euo pipefail
cd /try

# Bare: no linked library is installed.
if dpkg-query -W -f '${Package}\n' | grep -E '^lib(grpc|protobuf|absl|re2|prometheus|stdc\+\+)' |
    grep -v '^libstdc++6$'; then
  echo "this Debian has libraries that could replace those linked in" >&2
  exit 1
fi

python3 -m venv venv
venv/bin/pip install --quiet --no-index --disable-pip-version-check spillway_lms-*.whl
tar -xzf spillway-*-linux-x86_64.tar.gz
bin=$(echo spillway-*/bin)

"$bin/spillway" version
"$bin/spillway" rewrite graph.pb -o program.pb --quiet --strategy scope --fuse-swapins --lb 5 \
  --min-tensor-bytes 4096
cmp program.pb expected.pb

mkfifo out
"$bin/spillwayd" --listen 127.0.0.1:0 --metrics-listen none >out 2>log &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
read -r line <out || { cat log; exit 1; }
venv/bin/python use_wheel.py graph.pb expected.pb "${line##* }"
"$bin/spillway" health --server "${line##* }"
venv/bin/spillway health --server "${line##* }"
kill -TERM "$server"
wait "$server"
