#!/usr/bin/env bash
# Builds client_lib/samples/tensorflow_trainer.cc against the TensorFlow of a virtual environment,
# and runs it here and against a server. The last line is `N passed, N failed`.
# Usage: cpp_sample.sh PYTHON BUILD_DIR
set -euo pipefail

if [[ $# != 2 ]]; then
  echo "Usage: $0 PYTHON BUILD_DIR" >&2
  exit 2
fi
readonly python=$1
build=$(cd "$2" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
readonly build root work
readonly graph=$root/tests/graphs/mnist_deep/graph.pb
server=
cleanup() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
export TF_CPP_MIN_LOG_LEVEL=2 TF_ENABLE_ONEDNN_OPTS=0
unset LD_LIBRARY_PATH

passed=0
failed=0
# check NAME COMMAND...
check() {
  local name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "ok    $name"
    passed=$((passed + 1))
  else
    echo "FAIL  $name"
    tail -n 30 "$work/log"
    failed=$((failed + 1))
  fi
}

finish() {
  echo "$passed passed, $failed failed"
  [[ $failed == 0 ]] || exit 1
  exit 0
}

# As TensorFlow itself says: its headers, its C++ ABI, its libraries.
tf_info() {
  "$python" -c "import tensorflow as tf; print($1)"
}
compile() {
  local flags folder
  flags=$(tf_info '" ".join(tf.sysconfig.get_compile_flags())') || return 1
  folder=$(tf_info 'tf.sysconfig.get_lib()') || return 1
  # shellcheck disable=SC2086
  g++ -std=c++17 -O1 -w $flags -I"$root/client_lib/include" -I"$root/proto" \
    "$root/client_lib/samples/tensorflow_trainer.cc" -o "$work/tensorflow_trainer" \
    -L"$folder" -l:libtensorflow_cc.so.2 -l:libtensorflow_framework.so.2 \
    -L"$build/lib" -lspillway -Wl,-rpath,"$folder" -Wl,-rpath,"$build/lib"
}

trains() {
  "$work/tensorflow_trainer" "$graph" "$@" >"$work/out" || return 1
  cat "$work/out"
  grep -qx 'same losses' "$work/out"
}

# TensorFlow exports protobuf, RE2 and BoringSSL of its own: nothing of ours may be bound to these. Not
# looked at is libspillway.so itself: it has no part of these, and std::string is the same everywhere.
is_isolated() {
  # `set -e` does not hold in a condition, and `check` is one.
  LD_DEBUG=bindings LD_DEBUG_OUTPUT="$work/bindings" "$work/tensorflow_trainer" "$graph" \
    >/dev/null || return 1
  cat "$work"/bindings.* >"$work/all" || return 1
  grep -q 'binding file .*/libspillway_client.so.0 .* to .*/libprotobuf.so.32 ' "$work/all" || return 1
  ! grep -E 'binding file [^ ]*/lib(spillway_client|protobuf|grpc|gpr|absl|re2|ssl|crypto|upb)[^ ]* .* to [^ ]*/libtensorflow' \
    "$work/all" | head -n 20 | grep .
}

start_server() {
  "$build/bin/spillwayd" --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 >"$work/server" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    address=$(sed -nE 's/.*listening on ([0-9.:]+).*/\1/p' "$work/server" | head -n 1)
    [[ -z $address ]] || return 0
    kill -0 "$server" || break
    sleep 0.1
  done
  cat "$work/server"
  return 1
}

check "compile and link against TensorFlow" compile
[[ $failed == 0 ]] || finish
check "train: the same losses, rewritten in process" trains
check "our libraries are bound to none of TensorFlow's symbols" is_isolated
check "start a server" start_server
[[ $failed == 0 ]] || finish
check "train: the same losses, rewritten on the server" trains "$address"
finish
