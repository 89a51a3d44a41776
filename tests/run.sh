#!/usr/bin/env bash
# Installs, builds and tests Spillway. `tests/run.sh --help` says what.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/run.sh [--full | --all] [--help]

Installs what is missing (Debian 12), builds, and has ctest run what can be run here. At most 17
minutes on 2 cores from a fresh clone, beside what package registries take; a few minutes when there
is a build already.

  release     builds the preset `release` (in build/), of which the compiler may not warn, and the
              TensorFlow plug-in; its C++ tests, and suites in other languages, by ctest's labels:
              documents (and format), api, deploy, clients, python, tensorflow (2.15)
  sanitizers  builds the core, its fuzz targets and its tests of whole rewrites with clang 14 and the
              address and undefined-behaviour sanitizers (preset `fuzz`), and fuzzes each target for
              10 s. Without clang, the tests alone (preset `asan-core`)

--full takes at most 80 minutes in all. It adds every graph and a real memory limit in TensorFlow, the
Python package in TensorFlow 2.16 and 2.21, and the labels soak, benchmarks, slurm (a real one, of two
nodes), packages (Debian's, in a bare Debian), image (by buildah) and versions (today's programs beside
those of the API's release). It runs everything under the sanitizers (preset `asan`), fuzzes for
40 s each, and runs the tests with threads under the thread sanitizer (preset `tsan`).

--all adds some 60 minutes: 5 minutes for each fuzz target, 10 for each bad day of the server, the
preset `dev`, every graph with every parameter set, a memory limit for all graphs.

If installing or the release build fails, the script stops; nothing else stops what comes after it.
Single entries: `ctest --preset release -L deploy`, `-R chart`, `--rerun-failed`; `-N` lists them. At
the end stand the slowest entries, what was skipped, since its tool cannot be had here, what failed,
with its log in build/test-results/, and alone on the last line `N passed, N failed` or `N passed, N
failed, N skipped`, of ctest's entries and the steps here. Exit code 0: nothing failed; 1: something
did; 2: bad usage.
USAGE
}

tools=(python tf clients deploy npm go)
level=plain sanitized=fuzz left_out='^(full|all)$'
export SPILLWAY_FUZZ_SECONDS=10
for argument in "$@"; do
  case $argument in
    --full) level=full sanitized=asan left_out='^(short|all)$' SPILLWAY_FUZZ_SECONDS=40 ;;
    --all) level=all sanitized=asan left_out='^(short|not-all)$' SPILLWAY_FUZZ_SECONDS=300 ;;
    -h|--help) usage; exit ;;
    *) echo "tests/run.sh: there is no $argument; see tests/run.sh --help" >&2; exit 2 ;;
  esac
done
targets=(all)
[[ $level == plain ]] || tools+=(tf-2.16 tf-2.21) targets+=(benchmarks)

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/steps.sh
source deploy/steps.sh
readonly results=$PWD/build/test-results
# Debian's Prometheus, unpacked by deploy/install_deps.sh.
export PATH=$PWD/build/tools/bin:$PATH
# The tests talk to servers on this machine, never through a proxy.
export no_proxy=127.0.0.1,localhost${no_proxy:+,$no_proxy}

# step NAME COMMAND...: COMMAND must say by its exit code whether it failed: `set -e` is off in it.
step() {
  local state=ok
  heading "$1"
  "${@:2}" || state=FAILED
  end_section "$1"
  echo "$state $1" >>"$results/steps.txt"
  [[ $state == ok ]] || echo "FAILED: $1"
  [[ $state == ok ]]
}

finish() {
  print_times
  tests/results.py "$results" && exit 0 || exit 1
}

build() {
  build_preset "$1" "$results/build-$1.log" "${@:2}"
}

# Only of files that were compiled in this run: in a fresh clone, all of them.
no_warnings() {
  ! grep -A 5 ' warning: ' "$results/build-$1.log"
}

run_ctest() {
  ctest --preset "$1" --parallel "$(nproc)" --no-tests=error --output-junit "$results/$1.xml" \
    --test-output-size-passed 1000000 --test-output-size-failed 1000000 "${@:2}" 2>&1 |
    tee "$results/ctest-$1.log"
}

wait_for_tools() {
  wait "$tools_process"
  cat "$results/tools.log"
}

# It needs headers of the environment. The folder is then configured as before, so that later builds
# do not depend on that.
build_plugin() {
  local log=$results/build-plugin.log code=0
  {
    cmake --preset release -DSPILLWAY_TENSORFLOW_PLUGIN="$PWD/build/tf-venv/bin/python" &&
      cmake --build --preset release --target spillway_tensorflow_plugin
  } >"$log" 2>&1 || code=1
  cmake --preset release -USPILLWAY_TENSORFLOW_PLUGIN >>"$log" 2>&1 || code=1
  [[ $code == 0 ]] && no_warnings plugin && return
  tail -n 30 "$log"
  return 1
}

# build_ahead [PRESET]: begins to build it while tests run, which wait a lot, and takes only the time
# that these leave. As a process group, which ends with this script.
ahead_process=
trap '[[ -z $ahead_process ]] || kill -- "-$ahead_process" 2>/dev/null || true' EXIT
build_ahead() {
  [[ -n $1 ]] || return 0
  set -m
  (
    renice -n 19 -p "$BASHPID" >/dev/null
    build "$1"
  ) >"$results/ahead-$1.log" 2>&1 </dev/null &
  ahead_process=$!
  set +m
}

# Waits for what build_ahead began.
built_ahead() {
  local code=0
  wait "$ahead_process" || code=1
  ahead_process=
  cat "$results/ahead-$1.log"
  return "$code"
}

rm -rf "$results"
mkdir -p "$results"
step "Install" deploy/install_deps.sh tests || finish
tests/tools.sh install "${tools[@]}" >"$results/tools.log" 2>&1 &
tools_process=$!
step "Build (release)" build release "${targets[@]}" || finish
step "Warnings" no_warnings release || true
step "Tools" wait_for_tools || true
if tests/tools.sh with tf -- true; then step "Build (plug-in)" build_plugin || true; fi
if ! command -v clang++-14 >/dev/null; then
  echo "skipped: no clang++-14 here: nothing is fuzzed, and sanitizers see only the core"
  sanitized=asan-core
fi
presets=("$sanitized")
[[ $level == plain ]] || presets+=(tsan)
[[ $level != all ]] || presets+=(dev)
build_ahead "$sanitized"
step "Tests (release)" run_ctest release -LE "$left_out" || true
for i in "${!presets[@]}"; do
  preset=${presets[i]} built=0
  step "Build ($preset)" built_ahead "$preset" || built=$?
  build_ahead "${presets[i + 1]-}"
  [[ $built != 0 ]] || step "Tests ($preset)" run_ctest "$preset" || true
done
finish
