#!/usr/bin/env bash
# Builds the Debian packages. `build.sh --help` says how.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: deploy/debian/build.sh [--out DIR] [--work DIR] [--jobs N]

Builds spillway-server, spillway-client, libspillway0, libspillway-dev and python3-spillway on Debian
12, from a copy of this source tree (tracked and untracked files that git does not ignore; without
git, all but build*/), to which deploy/debian/ is copied as debian/. Needs the packages that
deploy/debian/control names under Build-Depends: `apt-get build-dep deploy/debian` or
deploy/install_deps.sh and then `apt-get install debhelper dh-python help2man`.

  --out DIR    where the packages go (default: build-debian/)
  --work DIR   where the copy is built; created and kept (default: a new one that is removed)
  --jobs N     the maximum number of compilers at a time (default: one for each core)

The same source gives the same bytes, whatever the folder: times are those of the changelog's last
entry, or of SOURCE_DATE_EPOCH. No tests are run: tests/run.sh does. DEB_BUILD_OPTIONS and
CMAKE_CXX_COMPILER_LAUNCHER are heeded. Exit code 0: built; 1: not built; 2: bad usage.
USAGE
}

fail() {
  echo "deploy/debian/build.sh: $1" >&2
  exit "${2:-1}"
}

out='' work='' jobs=$(nproc)
while [[ $# -gt 0 ]]; do
  case $1 in
    -h|--help) usage; exit ;;
    --out|--work|--jobs) [[ $# -gt 1 ]] || fail "$1 needs a value; see deploy/debian/build.sh --help" 2 ;;
    *) fail "unknown argument $1; see deploy/debian/build.sh --help" 2 ;;
  esac
  case $1 in
    --out) out=$(realpath -m "$2") ;;
    --work) work=$(realpath -m "$2") ;;
    --jobs) jobs=$2 ;;
  esac
  shift 2
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || fail "--jobs needs a number of at least 1, not '$jobs'" 2

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${out:-$PWD/build-debian}
command -v dpkg-buildpackage >/dev/null ||
  fail "dpkg-buildpackage is missing: apt-get install dpkg-dev debhelper dh-python help2man"

if [[ -z $work ]]; then
  work=$(mktemp -d -t spillway-debian-XXXXXX)
  trap 'rm -rf "$work"' EXIT
elif [[ -e $work ]]; then
  fail "--work $work exists already: name a new folder" 2
fi
readonly work out jobs source=$work/spillway

# Without .git and build outputs: neither may matter.
copy_source() {
  mkdir -p "$source"
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    # Files deleted here but not yet in a commit are still listed.
    git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
      [[ ! -e $file && ! -L $file ]] || printf '%s\0' "$file"
    done | tar --null --no-recursion -T - -c
  else
    tar --exclude=./.git --exclude='./build*' --exclude=./.cache --exclude=__pycache__ -c .
  fi | tar -C "$source" -x
  [[ ! -e $source/debian ]] || fail "the source tree has a debian/ of its own"
  cp -R "$source/deploy/debian" "$source/debian"
}

copy_source
# debhelper gives the build a home folder of its own, where a compiler cache would be empty.
if [[ -n ${CMAKE_CXX_COMPILER_LAUNCHER-} && -z ${CCACHE_DIR-} ]] && command -v ccache >/dev/null; then
  CCACHE_DIR=$(ccache --get-config cache_dir)
  export CCACHE_DIR
fi
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-} nocheck parallel=$jobs"
(cd "$source" && dpkg-buildpackage -us -uc -b)
mkdir -p "$out"
cp "$work"/*.deb "$work"/*.buildinfo "$work"/*.changes "$out/"
printf '\n%s has:\n' "$out"
(cd "$out" && ls -l ./*.deb)
