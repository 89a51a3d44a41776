#!/usr/bin/env bash
# The tests' needs from package registries. `tests/tools.sh --help` says more.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/tools.sh install TOOL...
       tests/tools.sh with [TOOL...] -- COMMAND...

install gets what is not there yet; what cannot be had is told, and is no error. `with` runs COMMAND
with the tools in PATH; without one of them it says so and ends with 77, for ctest: skipped.

  python   Python 3.9 to 3.11 with venv, without packages: build/python-venv
  tf, tf-2.16, tf-2.21, clients, deploy
           the same with TensorFlow, and with what the clients and the tests of deploy/ need
  npm      tests/npm: buf, and gRPC for Node 18 or later: build/tools/npm
  go       helm, kustomize, grpcurl, ghz and protoc's plug-ins, unless they are installed: built by
           Go 1.19 or later, once, in ${XDG_CACHE_HOME:-~/.cache}/spillway-tests. `with go` only adds
           to PATH: who needs them skips
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly npm_folder=$PWD/build/tools/npm logs=$PWD/build/tools/logs
readonly go_folder=${XDG_CACHE_HOME:-$HOME/.cache}/spillway-tests
# In versions that Debian's Go can build.
readonly go_programs=(
  helm.sh/helm/v3/cmd/helm@v3.13.3 sigs.k8s.io/kustomize/kustomize/v5@v5.0.3
  github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.1 github.com/bojand/ghz/cmd/ghz@v0.93.0
  google.golang.org/protobuf/cmd/protoc-gen-go@v1.33.0
  google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.3.0)
PATH=$PWD/build/tools/bin:$PATH
for program in "${go_programs[@]}"; do PATH+=:$go_folder/${program//\//_}; done
export PATH

# What `pip install -r` installs into a virtual environment.
requirements() {
  case $1 in
    python) echo /dev/null ;;
    tf) echo tests/tensorflow/requirements.txt ;;
    tf-*) echo "tests/client_lib/python/tensorflow-${1#tf-}.txt" ;;
    clients) echo tests/integration/foreign/requirements.txt ;;
    deploy) echo tests/deploy/requirements.txt ;;
    *) echo "tests/tools.sh: there is no tool $1; see tests/tools.sh --help" >&2; exit 2 ;;
  esac
}

ready() {
  case $1 in
    npm) cmp -s tests/npm/package-lock.json "$npm_folder/installed.json" ;;
    go) return 0 ;;
    *)
      requirements "$1" >/dev/null  # Ends here if there is no such tool.
      cmp -s "$(requirements "$1")" "build/$1-venv/installed.txt" &&
        "build/$1-venv/bin/python" -c '' ;;
  esac
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
  echo "There is no Python 3.9 to 3.11 with venv here."
  return 1
}

install_venv() {
  local folder=build/$1-venv python
  python=$(find_python) || { echo "$python"; return 1; }
  rm -rf "$folder"
  "$python" -m venv "$folder" &&
    "$folder/bin/pip" install --disable-pip-version-check -r "$(requirements "$1")" &&
    cat "$(requirements "$1")" >"$folder/installed.txt"
}

install_npm() {
  local version
  version=$(node --version 2>/dev/null | sed -nE 's/^v([0-9]+).*/\1/p' || true)
  [[ ${version:-0} -ge 18 ]] || { echo "There is no Node 18 or later here."; return 1; }
  mkdir -p "$npm_folder" && rm -f "$npm_folder/installed.json" &&
    cp tests/npm/package.json tests/npm/package-lock.json "$npm_folder/" &&
    npm ci --prefix "$npm_folder" --no-audit --no-fund &&
    cp tests/npm/package-lock.json "$npm_folder/installed.json"
}

# The page of clients compiles one in Go, too: its module is fetched here, once.
install_go() {
  local program name
  for program in "${go_programs[@]}"; do
    name=${program%@*} name=${name%/v5} name=${name##*/}
    command -v "$name" >/dev/null || GOBIN=$go_folder/${program//\//_} go install "$program" || return 1
  done
  go mod download google.golang.org/grpc@v1.61.0
}

install() {
  local log=$logs/$1.log how=install_venv
  [[ $1 != go && $1 != npm ]] || how=install_$1
  if { [[ $1 != go ]] && ready "$1"; } || "$how" "$1" >"$log" 2>&1; then
    echo "$1 is there."
  else
    echo "$1 cannot be had here: tests that need it are skipped (log: $log): $(tail -n 1 "$log")"
  fi
}

case ${1:-} in
  -h|--help) usage; exit ;;
  install)
    mkdir -p "$logs"
    exec 9>"$logs/lock"
    flock 9  # One installs at a time.
    for tool in "${@:2}"; do install "$tool"; done
    exit ;;
  with) shift ;;
  *) usage >&2; exit 2 ;;
esac
while [[ $# -gt 0 && $1 != -- ]]; do
  if ! ready "$1"; then
    echo "skipped: $1 is not installed (tests/tools.sh install $1)"
    exit 77
  fi
  case $1 in
    npm) export NODE_PATH=$npm_folder/node_modules PATH=$npm_folder/node_modules/.bin:$PATH ;;
    go) ;;
    *) export PATH=$PWD/build/$1-venv/bin:$PATH ;;
  esac
  shift
done
shift
exec "$@"
