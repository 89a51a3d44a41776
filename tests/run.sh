#!/usr/bin/env bash
# Installs, builds and tests Spillway. `tests/run.sh --help` says what and how long.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/run.sh [--full] [--help]

Installs what is missing (Debian 12), builds and tests. At most 20 minutes on 2 cores from a fresh
clone; a few minutes when there is a build already.

  install      deploy/install_deps.sh tests
  format       clang-format 14, if it is installed
  release      builds the preset `release` (in build/) and runs ctest
  deploy       the alert rules with promtool; the dashboard's expressions against a Prometheus that
               scrapes a server under load
  TensorFlow   makes build/tf-venv with TensorFlow 2.15.1 (Python 3.9 to 3.11), compares the op table
               with TensorFlow's op registry, checks the backward part that is found in models of
               many kinds, and trains rewritten graphs: tests/tensorflow/README.md

--full adds, and may take an hour or more:
  dev          the preset `dev` (debug, warnings as errors) with ctest
  asan         the preset `asan` (address and undefined-behaviour sanitizers) with ctest
  tsan         the preset `tsan` (thread sanitizer); ctest without the labels `integration` and
               `grpc`: Debian's gRPC is not built for it, and it reports races inside that are none;
               and without `property`, whose tests have one thread
  TensorFlow   every graph with every parameter set, instead of the short list
  benchmarks   build/tests/benchmarks/*, with few repetitions: that they run, not how fast

If installing or the release build fails, the script stops. Any other section that fails does not
stop those after it. The last line is, alone on its line, `N passed, N failed` or
`N passed, N failed, N skipped`: ctest's tests, the checks of deploy, TensorFlow's cases, one each for
format and op table, and one for any other section that fails. Exit code 0: nothing failed; 1:
something did; 2: bad usage.

What cannot be had here (clang-format, TensorFlow, Prometheus) is skipped, with a line that says so.
Cases that are skipped inside a test that passes have such a line too, and are not counted.
Logs and results lie in build/test-results/.
USAGE
}

full=no
for argument in "$@"; do
  case $argument in
    --full) full=yes ;;
    -h|--help) usage; exit ;;
    *) echo "tests/run.sh: there is no $argument; see tests/run.sh --help" >&2; exit 2 ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
source deploy/steps.sh
readonly results=build/test-results
readonly venv=build/tf-venv
readonly cores=$(nproc)
export PATH=$PWD/build/tools/bin:$PATH
# The tests talk to servers on this machine, never through a proxy.
export no_proxy=127.0.0.1,localhost${no_proxy:+,$no_proxy}

passed=0
failed=0
skipped=0
failed_sections=()

# count PASSED FAILED SKIPPED: for use in a section, which is a subshell.
count() {
  echo "$1 $2 $3" >>"$results/counts"
}

skip() {
  echo "skipped: $1"
  count 0 0 1
}

# section NAME COMMAND...: runs COMMAND in a subshell and adds what it counted. Sets section_ok. Never
# call it in a condition: `set -e` would not hold in COMMAND.
section() {
  local name=$1 code=0 p f s section_failed=0
  shift
  heading "$name"
  : >"$results/counts"
  set +e
  (set -e; "$@")
  code=$?
  set -e
  end_section "$name"
  while read -r p f s; do
    passed=$((passed + p)) skipped=$((skipped + s)) section_failed=$((section_failed + f))
  done <"$results/counts"
  section_ok=yes
  [[ $code != 0 ]] || return 0
  section_ok=no
  [[ $section_failed != 0 ]] || section_failed=1
  failed=$((failed + section_failed))
  failed_sections+=("$name")
  echo "FAILED: $name"
}

finish() {
  print_times
  if [[ ${#failed_sections[@]} != 0 ]]; then
    printf '\nFailed:\n'
    printf '  %s\n' "${failed_sections[@]}"
  fi
  echo
  if [[ $skipped == 0 ]]; then
    echo "$passed passed, $failed failed"
  else
    echo "$passed passed, $failed failed, $skipped skipped"
  fi
  [[ $failed == 0 ]] || exit 1
  exit 0
}

check_format() {
  local tool
  tool=$(command -v clang-format-14 || command -v clang-format || true)
  if [[ -z $tool || $("$tool" --version) != *"version 14."* ]]; then
    skip "no clang-format 14 here (Debian: package clang-format); others format differently"
    return
  fi
  local log=$results/format.log
  if ! find rewrite_core server client_lib tests \( -name '*.h' -o -name '*.cc' \) -print0 |
      xargs -0 "$tool" --dry-run --Werror >"$log" 2>&1; then
    echo "Not as $tool -i leaves them (what differs: $log):"
    sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: error: .*/  \1/p' "$log" | sort -u
    return 1
  fi
  echo "All sources are as $tool leaves them."
  count 1 0 0
}

build() {
  build_preset "$1" "$results/build-$1.log"
}

# run_ctest PRESET [CTEST ARGUMENT...]
run_ctest() {
  local preset=$1 log=$results/ctest-$1.log code=0
  shift
  ctest --preset "$preset" --parallel "$cores" --no-tests=error "$@" 2>&1 | tee "$log" || code=$?
  local summary bad total away off
  summary=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$log")
  [[ -n $summary ]] || return 1
  read -r bad total <<<"$summary"
  away=$(grep -cF '***Skipped' "$log" || true)
  off=$(grep -cF '***Not Run (Disabled)' "$log" || true)  # These are not in the total.
  count $((total - bad - away)) "$bad" $((away + off))
  report_skips "$(sed -nE 's/^Test project (.*)$/\1/p' "$log")/Testing/Temporary/LastTest.log"
  return "$code"
}

# Cases that skipped themselves inside a test that passed; ctest does not show them.
report_skips() {
  [[ -r $1 ]] || return 0
  awk '
    /^\[ RUN      \]/ { why = "" }
    /: Skipped$/ { getline why }
    /^\[  SKIPPED \] .*\(/ { sub(/^\[  SKIPPED \] /, ""); sub(/ \(.*/, ""); print "skipped: " $0 ": " why }
  ' "$1"
}

find_python() {
  local candidate
  for candidate in python3.11 python3.10 python3.9 /usr/bin/python3 python3; do
    if "$candidate" -c 'import sys, venv, ensurepip
sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# Makes the virtual environment unless it is there with today's requirements.
make_venv() {
  local requirements=tests/tensorflow/requirements.txt python
  if cmp -s "$requirements" "$venv/installed.txt" && "$venv/bin/python" -c '' 2>/dev/null; then
    echo "$venv is up to date."
    return
  fi
  if ! python=$(find_python); then
    skip "no Python 3.9 to 3.11 with venv here: TensorFlow is not tested"
    return
  fi
  echo "Installing $(tr '\n' ' ' < <(grep -v '^#' "$requirements"))into $venv with $python." \
    "Log: $results/pip.log"
  rm -rf "$venv"
  if "$python" -m venv "$venv" >"$results/pip.log" 2>&1 &&
     "$venv/bin/pip" install --disable-pip-version-check -r "$requirements" >>"$results/pip.log" 2>&1
  then
    cp "$requirements" "$venv/installed.txt"
    return
  fi
  grep -E '^ERROR' "$results/pip.log" || tail -n 3 "$results/pip.log"
  skip "pip cannot get TensorFlow here: it is not tested"
}

have_tensorflow() {
  cmp -s tests/tensorflow/requirements.txt "$venv/installed.txt"
}

check_op_table() {
  "$venv/bin/python" tests/tensorflow/make_op_table.py rewrite_core/graph/op_table.inc --check
  count 1 0 0
}

# run_tensorflow SCRIPT OPTIONS...: one of tests/tensorflow.
run_tensorflow() {
  run_counted "$results/tensorflow-${1%.py}.log" \
    "$venv/bin/python" "tests/tensorflow/$1" --spillway build/bin/spillway "${@:2}"
}

# The second runs also if the first fails.
check_deploy() {
  local code=0
  run_counted "$results/deploy-rules.log" tests/deploy/rules_test.sh || code=1
  run_counted "$results/deploy-dashboard.log" tests/deploy/dashboard_test.py || code=1
  return "$code"
}

# run_counted LOG COMMAND...: a test whose last line is a summary like ours; its cases are counted.
run_counted() {
  local log=$1 code=0 summary
  "${@:2}" 2>&1 | tee "$log" || code=$?
  summary=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1 | tr -c '0-9\n' ' ')
  [[ -n $summary ]] || return 1
  local p f s
  read -r p f s <<<"$summary"
  count "$p" "$f" "${s:-0}"
  return "$code"
}

run_benchmarks() {
  local program found=no
  for program in build/tests/benchmarks/*; do
    [[ -f $program && -x $program ]] || continue
    found=yes
    echo "$program"
    if [[ ${program##*/} =~ ^(scale|service)_benchmark$ ]]; then
      "$program" --quick
    else
      "$program" --benchmark_min_time=0.05
    fi
  done
  [[ $found == yes ]] || skip "there are no benchmarks"
}

rm -rf "$results"
mkdir -p "$results"
section "Install" deploy/install_deps.sh tests
[[ $section_ok == yes ]] || finish
section "Format" check_format
section "Build (release)" build release
[[ $section_ok == yes ]] || finish
section "C++ tests (release)" run_ctest release
section "Deploy" check_deploy
section "TensorFlow: install" make_venv
if have_tensorflow; then
  section "TensorFlow: op table" check_op_table
  section "TensorFlow: backward part" run_tensorflow backward_part.py
  if [[ $full == yes ]]; then
    section "TensorFlow: training" run_tensorflow run.py --full
  else
    section "TensorFlow: training" run_tensorflow run.py
  fi
fi
if [[ $full == yes ]]; then
  for preset in dev asan tsan; do
    section "Build ($preset)" build "$preset"
    [[ $section_ok == yes ]] || continue
    if [[ $preset == tsan ]]; then
      section "C++ tests (tsan)" run_ctest tsan --label-exclude '^(integration|grpc|property)$'
    else
      section "C++ tests ($preset)" run_ctest "$preset"
    fi
  done
  section "Benchmarks" run_benchmarks
fi
finish
