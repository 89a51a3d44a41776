#!/usr/bin/env bash
# Runs the starts of README.md as a newcomer runs them. `tests/integration/starts.sh --help` says how.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/integration/starts.sh --install | --installed

Runs the commands of README.md's quick start (install; a job script; Python; a trainer in C++; a
server), taken from the file, in a temporary folder. What a newcomer replaces is replaced: a graph of
tests/graphs, a preset for --hardware auto, a certificate and a host. Not run: what needs TensorFlow
(tests/tensorflow has it) or a cluster, and deploy/portable/build.sh, for which pip builds the wheel.

  --install     builds and installs Spillway first, into /usr/local. Meant for a bare Debian:
                tests/bare_root.sh -- tests/integration/starts.sh --install
  --installed   uses the Spillway that is installed; without root

Prints a line for each start, and last `N passed, N failed`. Exit code 1 if one failed.
USAGE
}

case ${1-} in
  --install|--installed) readonly mode=$1 ;;
  -h|--help) usage; exit ;;
  *) echo "tests/integration/starts.sh: give --install or --installed; see --help" >&2; exit 2 ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly source=$PWD
work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT

# block TEXT LANGUAGE: the first fenced block of that language behind the first line that has TEXT.
block() {
  awk -v text="$1" -v fence="\`\`\`$2" '
    index($0, text) { seen = 1 }
    inside && /^```/ { exit }
    inside { print }
    seen && $0 == fence { inside = 1 }' "$source/README.md" >"$work/block"
  [[ -s $work/block ]] || { echo "README.md has no block $2 behind: $1" >&2; return 1; }
  cat "$work/block"
}

start_install() {
  local commands
  commands=$(block "To install on Debian 12" sh)
  command -v sudo >/dev/null || commands=${commands//sudo /}
  (cd "$source" && bash -euxc "$commands") && spillway --version
}

# `run` trains on the rewritten graph: the trainer finds swap nodes in the file that it is given.
start_job_script() {
  cat >train.py <<'PY'
import os
graph = open(os.environ["SPILLWAY_GRAPH"], "rb").read()
assert b"lms/swapout" in graph, "not rewritten"
print("train.py: %d bytes" % len(graph))
PY
  local commands
  commands=$(block "### A job script" sh)
  commands=${commands//--hardware auto/--hardware v100_nvlink2}
  PATH=$work/bin:$PATH bash -euxc "$commands" | tee job.out
  grep -q "train.py: " job.out
}

start_python() {
  python3 -m venv builder >/dev/null
  SPILLWAY_LIBRARY=$(library) builder/bin/pip wheel --quiet --wheel-dir . "$source/client_lib/python"
  python3 -m venv user >/dev/null
  (
    # shellcheck source=/dev/null
    source user/bin/activate
    bash -euxc "$(block "### Python" sh)"
    python - <<'PY'
import spillway
graph_def = open("graph.pb", "rb").read()
result = spillway.rewrite(graph_def, batch_size=256)
assert b"lms/swapout" in result.graph_def
print(result)
print(spillway.simulate(graph_def, batch_size=256))
PY
  )
}

start_cpp() {
  mkdir -p cpp
  {
    block "### A trainer in C++" cpp | grep '^#include'
    cat <<'CPP'
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
struct Message {  // What RewriteMessage needs of one.
  std::string bytes;
  std::string SerializeAsString() const { return bytes; }
  bool ParseFromArray(const void* data, int size) {
    bytes.assign(static_cast<const char*>(data), size);
    return true;
  }
};
#define LOG(severity) std::cerr
int main() {
  std::ifstream file("with_batch.pb", std::ios::binary);
  Message graph_def{{std::istreambuf_iterator<char>(file), {}}};
CPP
    block "### A trainer in C++" cpp | grep -v '^#include'
    cat <<'CPP'
  std::cout << "swapped: " << (graph_def.bytes.find("lms/swapout") != std::string::npos) << "\n";
}
CPP
  } >cpp/trainer.cc
  {
    echo 'cmake_minimum_required(VERSION 3.25)'
    echo 'project(trainer CXX)'
    echo 'add_executable(trainer trainer.cc)'
    block "### A trainer in C++" cmake
  } >cpp/CMakeLists.txt
  cmake -S cpp -B cpp/build >cpp/log && cmake --build cpp/build >>cpp/log
  cpp/build/trainer | tee cpp/out
  grep -q "swapped: 1" cpp/out
}

# The first line stays in the foreground in the README; here it gets a certificate and a journal.
start_server() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout server.key -out server.pem \
    -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
  local commands first
  commands=$(block "### A server for a cluster" sh | grep -v '^kubectl')
  first=${commands%%$'\n'*}
  mkdir -p journal
  # shellcheck disable=SC2086  # Words of the command.
  $first --journal journal >server.log 2>&1 &
  local server=$! i
  # shellcheck disable=SC2064  # Now: it is a local variable.
  trap "kill $server 2>/dev/null || true" EXIT
  for ((i = 0; i < 100; ++i)); do
    spillway health --server localhost:7070 --tls-ca server.pem >/dev/null 2>&1 && break
    sleep 0.1
  done
  spillway rewrite graph.pb -o out.pb --batch-size 256 --quiet --job starts \
    --server localhost:7070 --tls-ca server.pem >/dev/null
  commands=${commands#*$'\n'}
  commands=${commands//--server host:7070 --tls/--server localhost:7070 --tls-ca server.pem}
  commands=${commands//\/var\/log\/spillway/journal}
  bash -euxc "$commands" | tee server.out
  grep -q starts server.out
  kill "$server"
  wait "$server"
}

# The library that is installed.
library() {
  find /usr/local/lib /usr/lib "${SPILLWAY_PREFIX:-/usr/local}/lib" -name 'libspillway.so' 2>/dev/null |
    head -n 1
}

passed=0 failed=0
# start NAME: runs start_NAME in the work folder, in a shell of its own that ends with its first error.
start() {
  printf '\n== %s\n' "$1"
  # Not `|| code=$?`: that would let the commands in there fail unnoticed.
  set +e
  (
    set -e
    cd "$work"
    "start_$1"
  )
  local code=$?
  set -e
  if [[ $code == 0 ]]; then
    passed=$((passed + 1))
    echo "$1: passed"
  else
    failed=$((failed + 1))
    echo "$1: failed"
  fi
}

mkdir "$work/bin"
ln -s "$(command -v python3 || echo /usr/bin/python3)" "$work/bin/python"
gunzip -c tests/graphs/resnet50_free/graph.pb.gz >"$work/graph.pb"
# The C++ start gives no batch size, so its graph has to fix it.
cp tests/graphs/resnet50_tf1/graph_shapes.pb "$work/with_batch.pb"
if [[ $mode == --install ]]; then
  start install
  # Further parts of a newcomer's machine: pip's environments, and a way to make a certificate.
  apt-get install -y --no-install-recommends python3-venv openssl >/dev/null
fi
start job_script
start python
start cpp
start server
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed == 0 ]]
