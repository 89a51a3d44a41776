#!/usr/bin/env bash
# Installs, builds and tests Spillway. `tests/run.sh --help` lists the sections and their times.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/run.sh [--full | --all] [--help]

Installs what is missing (Debian 12), builds and tests. At most 20 minutes on 2 cores from a fresh
clone; a few minutes when there is a build already.

  install      deploy/install_deps.sh tests
  format       clang-format 14
  shell        the shell scripts: bash -n, and shellcheck
  documents    that links, anchors and paths in them lead somewhere, that no figure stands in two of
               them, that folders and includes are as they say, and, once there are programs, that
               these take the commands they show
  API          buf on proto/: lint, and whether anything broke since proto/baseline.binpb; that it
               would notice
  release      builds the preset `release` (in build/), which the compiler may not warn of; ctest
  deploy       the Kubernetes manifests against its schemas and each other, with Helm's chart, which
               takes helm, built with Go 1.19 or later; the alert rules with promtool; the
               dashboards' expressions against a Prometheus that scrapes a server under load;
               HAProxy in front of a server, flooded; the systemd unit, and whether the files of the
               Debian packages agree
  clients      of other makers, against a real server: Python's grpcio; @grpc/grpc-js, with Node 18 or
               later; grpcurl, ghz and a client in Go, which are built with Go 1.19 or later; what
               proto/any_language.md says, as it stands there; a client and a server of tomorrow,
               whose API has grown
  Python       the Python package in process and on a server, and its wheel (Python 3.9 or later)
  faults       two replicas that are killed in turns, for 15 s, while clients call; frames of HTTP/2
               that no client would send
  sanitizers   builds the core, its fuzz targets and its tests of whole rewrites with clang 14 and the
               address and undefined-behaviour sanitizers (preset `fuzz`); runs the tests, which
               rewrite golden, hostile and damaged graphs, and fuzzes each target for 10 s. Without
               clang, the tests alone (preset `asan-core`)
  TensorFlow   makes build/tf-venv with TensorFlow 2.15.1 (Python 3.9 to 3.11), builds the plug-in with
               its headers, runs programs with and without it, compares the tables
               of ops and attributes with TensorFlow's op registry, checks the backward part that is
               found in models of many kinds, compares inferred shapes with TensorFlow's and tensor
               bytes with those that a step allocates, reads and writes SavedModels and other formats,
               trains in C++ with the sample, edits live graphs and functions by the Python package,
               and trains rewritten and edited graphs:
               tests/tensorflow/README.md, tests/client_lib/python/README.md

--full adds, and takes at most 75 minutes in all:
  sanitizers   builds all that they can run (preset `asan`), with assertions, and runs it, instead;
               fuzzes each target for a minute
  tsan         the preset `tsan` (thread sanitizer): the tests with threads (tests/CMakeLists.txt)
  TensorFlow   every graph, the small ones that train with every parameter set, instead of the
               short list; four graphs under a real memory limit: each plan trains three times
               in the memory that it was made for; the Python package with TensorFlow 2.16 and 2.21,
               in environments of their own (build/tf-2.16-venv, build/tf-2.21-venv)
  soak         a server for two minutes, with clients that crash, are slow or say nothing
  benchmarks   build/tests/benchmarks/*, with few repetitions: that they run, not how fast
  scale        a real server under small loads beside the simulation of deploy/scale
  Slurm        a real one, of two nodes on this machine: the samples of deploy/slurm
  packages     the Debian packages, built, linted, installed, upgraded and purged in a bare Debian; the
               SBOM
  image        the Dockerfile built with buildah; whether its packages have the same bytes; the
               commands of the manifests, run in it
  versions     the programs of the release at which the API froze, built in build/skew, with those of
               today: every call both ways, and a rolling upgrade under load

--all adds to that what takes some 40 minutes:
  sanitizers   fuzzes each target for 5 minutes
  dev          the preset `dev` (debug, not optimized, warnings as errors) with ctest
  TensorFlow   every graph with every parameter set, as a file and edited in place; a real memory
               limit for all of its graphs, those whose plans are known to fail included

If installing or the release build fails, the script stops. Any other section that fails does not
stop those after it, and one that takes longer than 45 minutes is ended, and has failed.
The last line is, alone on its line, `N passed, N failed` or
`N passed, N failed, N skipped`: ctest's tests, the checks of deploy, the clients' and TensorFlow's
cases, fuzz targets, one each for format, shell syntax, shellcheck, warnings, lint, breaking
changes and tables, and one for any other section that fails. Before it stands once more what
failed, with its log. Exit code 0: nothing failed; 1: something did; 2: bad usage.

What cannot be had here (clang, clang-format, shellcheck, Node, Go, Python's venv, TensorFlow,
Prometheus, HAProxy, Slurm, buildah) is skipped, with a line that says so.
Cases that are skipped inside a test that passes have such a line too, and are not counted.
Logs and results lie in build/test-results/.
USAGE
}

full=no
all=no
sanitized=fuzz
fuzz_seconds=10
for argument in "$@"; do
  case $argument in
    --full) full=yes sanitized=asan fuzz_seconds=60 ;;
    --all) full=yes all=yes sanitized=asan fuzz_seconds=300 ;;
    -h|--help) usage; exit ;;
    *) echo "tests/run.sh: there is no $argument; see tests/run.sh --help" >&2; exit 2 ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/steps.sh
source deploy/steps.sh
readonly results=build/test-results
readonly venv=build/tf-venv
readonly clients_venv=build/clients-venv
readonly deploy_venv=build/deploy-venv
readonly npm_folder=build/tools/npm
cores=$(nproc)
readonly cores
# Seconds: far more than the longest section takes on a busy machine.
readonly section_limit=2700
export PATH=$PWD/build/tools/bin:$PATH
# The tests talk to servers on this machine, never through a proxy.
export no_proxy=127.0.0.1,localhost${no_proxy:+,$no_proxy}

passed=0
failed=0
skipped=0
failed_sections=()

# count PASSED FAILED SKIPPED: adds to the counts of a section, which is a subshell.
count() {
  echo "$1 $2 $3" >>"$results/counts"
}

skip() {
  echo "skipped: $1"
  count 0 0 1
}

# end_tree PID: kills a process and all its descendants.
end_tree() {
  local child
  for child in $(cat "/proc/$1/task"/*/children 2>/dev/null); do
    end_tree "$child"
  done
  kill -KILL "$1" 2>/dev/null || true
}

# In the background: ends the running section if it takes too long.
watch_section() {
  local sleeper=
  trap 'kill $sleeper 2>/dev/null; exit' TERM
  sleep "$section_limit" >/dev/null 2>&1 &
  sleeper=$!
  wait "$sleeper"
  echo "This takes longer than $((section_limit / 60)) minutes: it is ended."
  end_tree "$(cat "$results/section.pid")"
}

watcher=
end_watcher() {
  [[ -n $watcher ]] || return 0
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  watcher=
}
trap end_watcher EXIT

# section NAME COMMAND...: runs COMMAND in a subshell and adds its counts. Sets section_ok. Never
# call it in a condition: `set -e` would have no effect in COMMAND. In COMMAND, a pipeline with a
# part that may fail, such as a missing tool, ends with `|| true`.
section() {
  local name=$1 code=0 p f s section_failed=0
  shift
  heading "$name"
  : >"$results/counts"
  watch_section &
  watcher=$!
  set +e
  (trap - EXIT; echo "$BASHPID" >"$results/section.pid"; set -e; "$@")
  code=$?
  set -e
  end_watcher
  end_section "$name"
  while read -r p f s; do
    passed=$((passed + p)) skipped=$((skipped + s)) section_failed=$((section_failed + f))
  done <"$results/counts"
  section_ok=yes
  [[ $code != 0 || $section_failed != 0 ]] || return 0
  section_ok=no
  [[ $section_failed != 0 ]] || section_failed=1
  failed=$((failed + section_failed))
  failed_sections+=("$name")
  echo "FAILED: $name"
}

# at_once COMMAND...: runs commands that use one core each, as many at a time as there are cores.
# Each is one word with its arguments. Its output is shown when it has ended.
at_once() {
  local code=0 running=0 index=0
  while [[ $# -gt 0 || $running -gt 0 ]]; do
    if [[ $# -gt 0 && $running -lt $cores ]]; then
      index=$((index + 1))
      one_of_many "$index" "$1" &
      running=$((running + 1))
      shift
    else
      wait -n || code=1
      running=$((running - 1))
    fi
  done
  return "$code"
}

one_of_many() {
  local output=$results/at-once-$1.out words code=0 start=$SECONDS
  read -ra words <<<"$2"
  set +e
  (set -e; "${words[@]}") >"$output" 2>&1
  code=$?
  printf '\n-- %s: %d s\n%s\n' "$2" $((SECONDS - start)) "$(cat "$output")"
  return "$code"
}

finish() {
  print_times
  if [[ ${#failed_sections[@]} != 0 ]]; then
    printf '\nFailed:\n'
    printf '  %s\n' "${failed_sections[@]}"
    [[ ! -s $results/failures ]] || { echo; cat "$results/failures"; }
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
  if ! find proto rewrite_core server client_lib tests \
      \( -name '*.h' -o -name '*.cc' -o -path 'proto/*.proto' \) -print0 |
      xargs -0 "$tool" --dry-run --Werror >"$log" 2>&1; then
    echo "Not as $tool -i leaves them (what differs: $log):"
    sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: error: .*/  \1/p' "$log" | sort -u
    return 1
  fi
  echo "All sources and messages are as $tool leaves them."
  count 1 0 0
}

check_shell() {
  local scripts
  mapfile -t scripts < <(find deploy tests client_lib .ci -name '*.sh' -o -path .ci/run | sort)
  printf '%s\0' "${scripts[@]}" | xargs -0 -n 1 bash -n
  count 1 0 0
  if ! command -v shellcheck >/dev/null; then
    skip "no shellcheck here (Debian: package shellcheck): shell scripts are only parsed"
    return
  fi
  shellcheck --external-sources --severity=warning "${scripts[@]}"
  count 1 0 0
  echo "bash and shellcheck have nothing to say about ${#scripts[@]} scripts."
}

check_documents() {
  run_counted "$results/documents.log" python3 tests/documents.py
}

# The output of programs shown in the documents; the programs must have been built.
check_document_commands() {
  run_counted "$results/document-commands.log" python3 tests/integration/document_commands.py
}

# build PRESET [TARGET...]
build() {
  build_preset "$1" "$results/build-$1.log" "${@:2}"
}

# Only for files compiled in this run: in a fresh clone, all of them.
check_warnings() {
  if grep -A 5 ' warning: ' "$results/build-release.log"; then
    return 1
  fi
  echo "The compiler had nothing to warn of."
  count 1 0 0
}

# keep_failures LOG COMMAND...: keeps what LOG says of failures for the end of the output, where a
# reader who has only the end finds it. Of a test that hung, the case that did not end.
keep_failures() {
  local log=$1 found
  found=$(grep -E '^(FAILED|FAIL|ERROR)\b|^not ok|\*\*\*(Failed|Timeout|Exception)|^\[  FAILED  \]' "$log" |
    head -n 20 || true)
  [[ $found != *'***Timeout'* ]] || found+=$'\n'$(grep -F '[ RUN ' "$log" | tail -n 1 || true)
  {
    echo "${*:2} ($log):"
    sed 's/^/  /' <<<"${found:-$(tail -n 10 "$log")}"
  } | cut -c1-500 >>"$results/failures"
}

# run_ctest PRESET [CTEST ARGUMENT...]
run_ctest() {
  local preset=$1 log=$results/ctest-$1.log code=0
  shift
  ctest --preset "$preset" --parallel "$cores" --no-tests=error "$@" 2>&1 | tee "$log" || code=$?
  local summary bad total away off
  summary=$(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests failed out of ([0-9]+)$/\1 \2/p' "$log")
  [[ $code == 0 ]] || keep_failures "$log" "ctest --preset $preset"
  [[ -n $summary ]] || { echo "ctest did not come to its summary."; return 1; }
  read -r bad total <<<"$summary"
  away=$(grep -cF '***Skipped' "$log" || true)
  off=$(grep -cF '***Not Run (Disabled)' "$log" || true)  # These are not in the total.
  count $((total - bad - away)) "$bad" $((away + off))
  report_skips "$(sed -nE 's/^Test project (.*)$/\1/p' "$log")/Testing/Temporary/LastTest.log"
  return "$code"
}

# Skipped cases of tests that passed; ctest does not show them.
report_skips() {
  [[ -r $1 ]] || return 0
  awk '
    /^\[ RUN      \]/ { why = "" }
    /: Skipped$/ { getline why }
    /^\[  SKIPPED \] .*\(/ { sub(/^\[  SKIPPED \] /, ""); sub(/ \(.*/, ""); print "skipped: " $0 ": " why }
  ' "$1"
}

# Installs the packages locked by tests/npm into build/tools/npm, unless they are there.
install_npm() {
  local version
  version=$(node --version 2>/dev/null | sed -nE 's/^v([0-9]+).*/\1/p' || true)
  if [[ ${version:-0} -lt 18 ]] || ! command -v npm >/dev/null; then
    skip "no Node 18 or later with npm here: buf and the client in JavaScript are not tested"
    return
  fi
  if cmp -s tests/npm/package-lock.json "$npm_folder/installed.json"; then
    echo "$npm_folder is up to date."
    return
  fi
  mkdir -p "$npm_folder"
  rm -f "$npm_folder/installed.json"
  cp tests/npm/package.json tests/npm/package-lock.json "$npm_folder/"
  if npm ci --prefix "$npm_folder" --no-audit --no-fund >"$results/npm.log" 2>&1; then
    cp tests/npm/package-lock.json "$npm_folder/installed.json"
    echo "Installed tests/npm into $npm_folder with npm."
  else
    skip "npm cannot get tests/npm here (log: $results/npm.log): buf and the client in JavaScript are not tested"
  fi
}

have_npm() {
  cmp -s tests/npm/package-lock.json "$npm_folder/installed.json"
}

run_buf() {
  (cd proto && "../$npm_folder/node_modules/.bin/buf" "$@")
}

check_api() {
  run_buf lint
  count 1 0 0
  run_buf breaking --against baseline.binpb
  count 1 0 0
  echo "No lint, and nothing broke since proto/baseline.binpb."
  run_counted "$results/api-breaking.log" \
    tests/integration/skew/breaking_test.sh "$PWD/$npm_folder/node_modules/.bin/buf"
}

# install_venv FOLDER REQUIREMENTS WHAT: a virtual environment; WHAT is not tested without it.
install_venv() {
  local folder=$1 requirements=$2 python log
  log=$results/pip-${folder##*/}.log
  if cmp -s "$requirements" "$folder/installed.txt"; then
    echo "$folder is up to date."
    return
  fi
  rm -rf "$folder"
  if ! python=$(find_python); then
    skip "no Python 3.9 to 3.11 with venv here: $3 not tested"
  elif "$python" -m venv "$folder" >"$log" 2>&1 &&
      "$folder/bin/pip" install --disable-pip-version-check -r "$requirements" >>"$log" 2>&1; then
    cp "$requirements" "$folder/installed.txt"
    echo "Installed $requirements into $folder."
  else
    skip "pip cannot get $requirements here (log: $log): $3 not tested"
  fi
}

install_clients() {
  install_venv "$clients_venv" tests/integration/foreign/requirements.txt "the client in Python is"
  install_go_clients
}

# grpcurl, ghz and protoc's plug-ins for Go, in fixed versions that Debian's Go can build, into
# build/tools/bin. Takes a minute or two on two cores, once.
install_go_clients() {
  if command -v grpcurl >/dev/null && command -v ghz >/dev/null &&
      command -v protoc-gen-go-grpc >/dev/null; then
    return
  fi
  go_install "Go's clients are" github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.1 \
    github.com/bojand/ghz/cmd/ghz@v0.93.0 google.golang.org/protobuf/cmd/protoc-gen-go@v1.33.0 \
    google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.3.0
}

# helm, and kustomize unless kubectl contains a recent one, likewise. Takes a minute, once.
install_go_kubernetes() {
  local tools=()
  command -v helm >/dev/null || tools+=(helm.sh/helm/v3/cmd/helm@v3.13.3)
  command -v kustomize >/dev/null ||
    kubectl version --client 2>/dev/null | grep '^Kustomize Version: v[5-9]' >/dev/null ||
    tools+=(sigs.k8s.io/kustomize/kustomize/v5@v5.0.3)
  [[ ${#tools[@]} == 0 ]] || go_install "what the overlays and the chart render is" "${tools[@]}"
}

# go_install WHAT TOOL...: builds tools into build/tools/bin; WHAT is not tested without them.
go_install() {
  local minor tool
  minor=$(go env GOVERSION 2>/dev/null | sed -nE 's/^go1\.([0-9]+).*/\1/p' || true)
  if [[ ${minor:-0} -lt 19 ]]; then
    skip "no Go 1.19 or later here: $1 not tested"
    return
  fi
  export GOBIN=$PWD/build/tools/bin
  for tool in "${@:2}"; do
    echo "Building $tool with $(go env GOVERSION)."
    if ! go install "$tool" >>"$results/go.log" 2>&1; then
      skip "Go cannot build $tool here (log: $results/go.log): $1 not tested"
      return
    fi
  done
}

# Each runs also if another fails.
run_clients() {
  local code=0 with_server=tests/integration/foreign/with_server.sh
  if [[ -e $clients_venv/installed.txt ]]; then
    run_counted "$results/client-python.log" "$with_server" \
      "$clients_venv/bin/python" tests/integration/foreign/python_client.py || code=1
    run_counted "$results/client-tomorrow.log" "$with_server" \
      "$clients_venv/bin/python" tests/integration/skew/tomorrow_test.py || code=1
  fi
  if have_npm; then
    run_counted "$results/client-node.log" env NODE_PATH="$PWD/$npm_folder/node_modules" \
      "$with_server" node tests/integration/foreign/node_client.js || code=1
  fi
  if command -v grpcurl >/dev/null && command -v ghz >/dev/null; then
    run_counted "$results/client-go.log" "$with_server" \
      tests/integration/foreign/go_clients.py || code=1
  fi
  run_page "$with_server" || code=1
  return "$code"
}

# run_page WITH_SERVER: runs the commands of proto/any_language.md for the tools that are installed.
run_page() {
  [[ -e $clients_venv/installed.txt ]] || return 0
  local parts=(Python)
  ! command -v grpcurl >/dev/null || parts+=(grpcurl)
  # The dependencies of the client in Go, fetched once.
  if command -v protoc-gen-go-grpc >/dev/null &&
      go mod download google.golang.org/grpc@v1.61.0 >>"$results/go.log" 2>&1; then
    parts+=(Go)
  else
    skip "Go cannot get gRPC here (log: $results/go.log): the client in Go is not tested"
  fi
  run_counted "$results/client-page.log" "$1" \
    "$clients_venv/bin/python" tests/integration/foreign/page.py "${parts[@]}"
}

# The package without TensorFlow, with any Python that can create a virtual environment.
check_python() {
  local python
  if ! python=$(find_python); then
    skip "no Python 3.9 to 3.11 with venv here: the Python package is not tested"
    return
  fi
  run_counted "$results/python.log" "$python" tests/client_lib/python/run.py
}

# Each runs also if the other fails.
check_faults() {
  local code=0
  run_with_server fault_loop.py || code=1
  run_with_server http2_test.py || code=1
  return "$code"
}

check_soak() {
  run_with_server soak.py
}

# run_with_server SCRIPT: runs a script of tests/server that uses the Python package.
run_with_server() {
  local python
  if ! python=$(find_python); then
    skip "no Python 3.9 to 3.11 with venv here: tests/server/$1 is not run"
    return
  fi
  run_counted "$results/${1%.py}.log" "$python" "tests/server/$1"
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

# Creates the virtual environment unless it exists with the current requirements.
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

# The table generated from TensorFlow's op registry.
check_op_tables() {
  "$venv/bin/python" tests/tensorflow/make_op_table.py rewrite_core/graph/op_table.inc --check
  count 1 0 0
  "$venv/bin/python" tests/tensorflow/make_output_name_table.py \
    rewrite_core/analysis/output_names.inc --check
  count 1 0 0
  "$venv/bin/python" tests/tensorflow/make_stateful_table.py \
    rewrite_core/inline/stateful_ops.inc --check
  count 1 0 0
}

# run_tensorflow SCRIPT OPTIONS...: runs a script of tests/tensorflow.
run_tensorflow() {
  run_counted "$results/tensorflow-${1%.py}.log" \
    "$venv/bin/python" "tests/tensorflow/$1" --spillway build/bin/spillway "${@:2}"
}

check_python_in_tensorflow() {
  run_counted "$results/tensorflow-python.log" \
    "$venv/bin/python" tests/client_lib/python/run.py --tensorflow
}

# The plug-in needs headers and libraries of the virtual environment, so it is built once they exist.
# The folder is then configured as before, so that later builds do not depend on the environment.
build_plugin() {
  local log=$results/build-plugin.log code=0
  {
    cmake --preset release -DSPILLWAY_TENSORFLOW_PLUGIN="$PWD/$venv/bin/python" &&
      cmake --build --preset release --target spillway_tensorflow_plugin
  } >"$log" 2>&1 || code=1
  cmake --preset release -USPILLWAY_TENSORFLOW_PLUGIN >>"$log" 2>&1 || code=1
  if [[ $code != 0 ]] || grep -q ' warning: ' "$log"; then
    tail -n 30 "$log"
    return 1
  fi
  count 1 0 0
}

check_plugin() {
  run_counted "$results/tensorflow-plugin.log" \
    "$venv/bin/python" tests/client_lib/tensorflow_plugin/plugin_test.py
}

# check_other_tensorflow VERSION: tests the Python package, and the plug-in built with 2.15, with
# another supported version of TensorFlow. Each runs also if the other fails.
check_other_tensorflow() {
  local code=0 folder=build/tf-$1-venv requirements=tests/client_lib/python/tensorflow-$1.txt
  install_venv "$folder" "$requirements" "the Python package in TensorFlow $1 is"
  [[ -e $folder/installed.txt ]] || return 0
  run_counted "$results/tensorflow-$1.log" \
    "$folder/bin/python" tests/client_lib/python/run.py --tensorflow || code=1
  run_counted "$results/tensorflow-$1-plugin.log" \
    "$folder/bin/python" tests/client_lib/tensorflow_plugin/plugin_test.py || code=1
  return "$code"
}

# Each runs also if the other fails.
check_versions() {
  local python code=0
  if ! python=$(find_python); then
    skip "no Python 3.9 to 3.11 with venv here: versions are not tested side by side"
    return
  fi
  run_counted "$results/skew.log" "$python" tests/integration/skew/skew_test.py || code=1
  run_counted "$results/rolling.log" "$python" tests/integration/skew/rolling_test.py || code=1
  return "$code"
}

# The program for users with a GPU, run here on the CPU.
check_on_a_gpu() {
  run_counted "$results/tensorflow-on_a_gpu.log" \
    env PYTHONPATH=client_lib/python SPILLWAY_LIBRARY="$PWD/build/lib/libspillway.so.0" \
    CUDA_VISIBLE_DEVICES=-1 "$venv/bin/python" tests/tensorflow/on_a_gpu.py --rehearse \
    --out "$results/on_a_gpu"
}

check_cpp_sample() {
  run_counted "$results/tensorflow-cpp.log" tests/tensorflow/cpp_sample.sh "$venv/bin/python" build
}

# Each runs also if another fails.
check_deploy() {
  local code=0
  install_venv "$deploy_venv" tests/deploy/requirements.txt "the Kubernetes manifests are"
  if [[ -e $deploy_venv/installed.txt ]]; then
    run_counted "$results/deploy-kubernetes.log" \
      "$deploy_venv/bin/python" tests/deploy/kubernetes_test.py || code=1
    run_counted "$results/deploy-chart.log" \
      "$deploy_venv/bin/python" tests/deploy/chart_test.py || code=1
  fi
  run_counted "$results/deploy-rules.log" tests/deploy/rules_test.sh || code=1
  run_counted "$results/deploy-proxy.log" tests/deploy/proxy_test.py || code=1
  run_counted "$results/deploy-dashboard.log" tests/deploy/dashboard_test.py || code=1
  run_counted "$results/deploy-scale.log" tests/deploy/scale_test.py || code=1
  run_counted "$results/deploy-packages.log" tests/deploy/packages_test.sh --quick || code=1
  return "$code"
}

# Both in the same Debian, which is set up once.
readonly debian_base=build/bookworm
check_packages() {
  run_counted "$results/packages.log" tests/deploy/packages_test.sh --install --base "$debian_base"
}

check_image() {
  if [[ -e $deploy_venv/installed.txt ]]; then
    run_counted "$results/image.log" "$deploy_venv/bin/python" tests/deploy/image_test.py --install \
      --base "$debian_base" --packages build-debian
  else
    skip "no $deploy_venv, which reads the manifests: the image is not tested"
  fi
}

# run_counted LOG COMMAND...: runs a test whose last line is a summary like ours, and counts its cases.
run_counted() {
  local log=$1 code=0 summary
  "${@:2}" 2>&1 | tee "$log" || code=$?
  summary=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1 | tr -c '0-9\n' ' ' || true)
  [[ $code == 0 && -n $summary ]] || keep_failures "$@"
  [[ -n $summary ]] || { echo "It ended without a summary: ${*:2}"; return 1; }
  local p f s
  read -r p f s <<<"$summary"
  count "$p" "$f" "${s:-0}"
  return "$code"
}

# Every graph as a file, and some edited in place; --all edits all of them.
check_training() {
  if [[ $all == yes ]]; then
    run_tensorflow run.py --all
  elif [[ $full == yes ]]; then
    local code=0
    run_tensorflow run.py --full --way graphdef || code=1
    run_tensorflow run.py --way live --self-test no || code=1
    return "$code"
  else
    run_tensorflow run.py
  fi
}

check_tensor_bytes() {
  local more=()
  [[ $full == no ]] || more=(--full)
  run_tensorflow tensor_bytes.py "${more[@]}"
}

check_memory_limit() {
  local more=()
  [[ $all == no ]] || more=(--all)
  run_tensorflow memory_limit.py --runs 3 --threads 2 "${more[@]}"
}

run_benchmarks() {
  local program found=no
  for program in build/tests/benchmarks/*; do
    [[ -f $program && -x $program ]] || continue
    found=yes
    echo "$program"
    if [[ ${program##*/} == @(rewrite|shapes)_benchmark ]]; then
      "$program" --benchmark_min_time=0.05
    else
      "$program" --quick
    fi
  done
  [[ $found == yes ]] || skip "there are no benchmarks"
}

rm -rf "$results"
mkdir -p "$results"
section "Install" deploy/install_deps.sh tests
[[ $section_ok == yes ]] || finish
section "Format" check_format
section "Shell" check_shell
section "Documents" check_documents
section "Packages" at_once make_venv install_clients install_npm install_go_kubernetes
if have_npm; then
  section "API" check_api
fi
section "Build (release)" build release
[[ $section_ok == yes ]] || finish
section "Warnings" check_warnings
section "C++ tests (release)" run_ctest release
section "Deploy, Python, clients" at_once check_deploy check_python run_clients check_faults \
  check_document_commands
if command -v clang++-14 >/dev/null; then
  section "Build ($sanitized)" build "$sanitized"
  if [[ $section_ok == yes ]]; then
    section "C++ tests (sanitizers)" run_ctest "$sanitized"
    section "Fuzzing" run_counted "$results/fuzz.log" \
      env SPILLWAY_BUILD="build-$sanitized" tests/fuzz/run.sh "$fuzz_seconds"
  fi
else
  section "Fuzzing" skip "no clang++-14 here: nothing is fuzzed, and sanitizers see only the core"
  section "Build (asan-core)" build asan-core
  if [[ $section_ok == yes ]]; then
    section "C++ tests (sanitizers)" run_ctest asan-core
  fi
fi
if have_tensorflow; then
  section "Build (plug-in)" build_plugin
  section "TensorFlow: programs" at_once check_python_in_tensorflow check_tensor_bytes check_plugin \
    "run_tensorflow shape_functions.py" "run_tensorflow backward_part.py" \
    "run_tensorflow inlining.py" \
    "run_tensorflow formats.py" check_op_tables check_cpp_sample check_on_a_gpu
  section "TensorFlow: training" check_training
  if [[ $full == yes ]]; then
    section "TensorFlow: memory limit" check_memory_limit
    section "TensorFlow: other versions" at_once "check_other_tensorflow 2.16" \
      "check_other_tensorflow 2.21"
  fi
fi
if [[ $full == yes ]]; then
  if [[ $all == yes ]]; then
    section "Build (dev)" build dev
    [[ $section_ok == no ]] || section "C++ tests (dev)" run_ctest dev
  fi
  section "Build (tsan)" build tsan
  [[ $section_ok == no ]] || section "C++ tests (tsan)" run_ctest tsan
  section "Soak" check_soak
  section "Benchmarks" run_benchmarks
  section "Scale" run_counted "$results/scale.log" tests/deploy/scale_server_test.py
  section "Slurm" run_counted "$results/slurm.log" tests/deploy/slurm_test.sh --install
  section "Debian packages" check_packages
  section "Image" check_image
  section "Versions" check_versions
fi
finish
