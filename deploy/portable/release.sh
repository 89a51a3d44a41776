#!/usr/bin/env bash
# Makes the files of a release. `release.sh --help` says more.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: deploy/portable/release.sh [--tensorflow PYTHON] [--jobs N] [--mirror URL] [--suite SUITE]...

Runs build.sh, then test.sh, which take the same options. If nothing failed, it leaves, in
build-portable/spillway-VERSION/, the files to publish:

  spillway-VERSION-linux-x86_64.tar.gz, spillway_lms-VERSION-....whl and, with --tensorflow,
  spillway_tensorflow-VERSION-....whl     as build.sh describes them
  spillway-VERSION-sources.txt            the versions of the libraries linked in
  SHA256SUMS                              of all of them: `sha256sum --check SHA256SUMS`

Needs root, for test.sh. Exit code 0: all was made and passed; 1: something failed; 2: bad usage.
USAGE
}

fail() {
  echo "deploy/portable/release.sh: $1" >&2
  exit "${2:-1}"
}

build_options=() test_options=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h|--help) usage; exit ;;
    --tensorflow|--jobs|--mirror|--suite)
      [[ $# -gt 1 ]] || fail "$1 needs a value; see deploy/portable/release.sh --help" 2 ;;
    *) fail "unknown argument $1; see deploy/portable/release.sh --help" 2 ;;
  esac
  [[ $1 == --suite ]] || build_options+=("$1" "$2")
  [[ $1 == --jobs ]] || test_options+=("$1" "$2")
  shift 2
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly dist=build-portable/dist
# A folder of this name means complete and tested: an earlier run's must not count as this one's.
rm -rf build-portable/spillway-*

deploy/portable/build.sh "${build_options[@]}"
deploy/portable/test.sh "${test_options[@]}"

tars=("$dist"/spillway-*-linux-x86_64.tar.gz)
name=$(basename "${tars[0]}" -linux-x86_64.tar.gz)
readonly version=${name#spillway-} work=build-portable/release
rm -rf "$work"
mkdir "$work"
for file in "${tars[@]}" "$dist"/*.whl; do
  [[ $(basename "$file") == *"-$version-"* ]] || fail "$file is not of version $version"
  cp "$file" "$work/"
done
cp "$dist/sources.txt" "$work/$name-sources.txt"
(cd "$work" && sha256sum -- * >SHA256SUMS)
mv "$work" "build-portable/$name"

printf '\nbuild-portable/%s/SHA256SUMS:\n' "$name"
cat "build-portable/$name/SHA256SUMS"
