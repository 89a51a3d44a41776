#!/usr/bin/env bash
# Installs the packages to build Spillway, and with `tests` also those of its tests, on Debian 12.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: deploy/install_deps.sh [build|packages|tests]

Installs missing packages with apt on Debian 12. Installed ones are left alone: a second run
changes nothing and takes no time.

  build     (default) compiler, libraries, and Python for the demo's tables
  packages  the same and the tools of deploy/debian/build.sh: debhelper, dh-python, help2man
  tests     those of build and of the tests: venv; clang, for the fuzz targets; clang-format;
          shellcheck; GLPK, for exact solutions; Node with npm, and Go, unless installed otherwise;
          Prometheus with promtool, which are unpacked into build/tools
          from Debian's package `prometheus`, so that no service is installed

Uses sudo if it does not run as root.
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly root

# GoogleTest and Benchmark are here, not below: CMake looks for them whichever target is built.
readonly build_packages=(
  build-essential cmake ninja-build pkg-config ccache
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler libabsl-dev libre2-dev
  prometheus-cpp-dev libcli11-dev libspdlog-dev libssl-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  python3)
readonly package_packages=(debhelper dh-python help2man)
test_packages=(ca-certificates python3-venv clang-14 libclang-rt-14-dev clang-format-14
  shellcheck haproxy openssl libglpk-dev jq)
command -v node >/dev/null || test_packages+=(nodejs npm)
command -v go >/dev/null || test_packages+=(golang-go)
readonly test_packages

installed() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

# Package lists are fetched once, and only if something is missing.
updated=no
update_lists() {
  [[ $updated == no ]] || return 0
  echo "Fetching package lists."
  as_root apt-get update -qq
  updated=yes
}

install_missing() {
  local missing=()
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  if [[ ${#missing[@]} == 0 ]]; then
    echo "All $# packages are installed."
    return
  fi
  if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
    echo "Missing: ${missing[*]}" >&2
    echo "Installing them takes root: run this script as root, or install sudo." >&2
    exit 1
  fi
  echo "Installing: ${missing[*]}"
  update_lists
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null
}

have_tool() {
  command -v "$1" >/dev/null || [[ -x $root/build/tools/bin/$1 ]]
}

# No error: tests that need Prometheus or promtool are skipped without it.
unpack_prometheus() {
  if have_tool prometheus && have_tool promtool; then
    return
  fi
  echo "Unpacking Debian's package prometheus into build/tools/bin."
  local folder
  folder=$(mktemp -d)
  if (cd "$folder" && apt-get download -qq prometheus 2>/dev/null && dpkg-deb -x prometheus_*.deb .) ||
     (update_lists && cd "$folder" && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb .); then
    mkdir -p "$root/build/tools/bin"
    cp "$folder/usr/bin/prometheus" "$folder/usr/bin/promtool" "$root/build/tools/bin/"
  else
    echo "It is not available: tests that need Prometheus or promtool will be skipped."
  fi
  rm -rf "$folder"
}

main() {
  case ${1:-build} in
    -h|--help) usage; exit ;;
    build|packages|tests) ;;
    *) usage >&2; exit 2 ;;
  esac
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is not a Debian system: install the packages that ${BASH_SOURCE[0]} lists, then build" \
      "as CONTRIBUTING.md says." >&2
    exit 1
  fi
  if [[ ${1:-build} == tests ]]; then
    install_missing "${build_packages[@]}" "${test_packages[@]}"
    unpack_prometheus
  elif [[ ${1:-build} == packages ]]; then
    install_missing "${build_packages[@]}" "${package_packages[@]}"
  else
    install_missing "${build_packages[@]}"
  fi
}

main "$@"
