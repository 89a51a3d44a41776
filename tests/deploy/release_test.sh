#!/usr/bin/env bash
# Tests deploy/portable/release.sh in a folder where build.sh and test.sh are stand-ins: the real ones
# take half an hour. The last line is `N passed, N failed`; exit code 1: something failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/deploy/checks.sh
source tests/deploy/checks.sh

work=$(mktemp -d -t spillway-release-XXXXXX)
readonly work dist=$work/build-portable/dist made=$work/build-portable/spillway-1.2.3
readonly wheel=spillway_lms-1.2.3-py3-none-manylinux_2_31_x86_64.whl
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/deploy/portable"
cp deploy/portable/release.sh "$work/deploy/portable/"
cat >"$work/deploy/portable/build.sh" <<BUILD
echo "build.sh \$*" >>"$work/calls"
[[ ! -e "$work/build-fails" ]] || exit 1
rm -rf "$dist" && mkdir -p "$dist"
echo tar >"$dist/spillway-1.2.3-linux-x86_64.tar.gz"
echo wheel >"$dist/\$(cat "$work/wheel")"
echo grpc >"$dist/sources.txt"
BUILD
cat >"$work/deploy/portable/test.sh" <<TEST
echo "test.sh \$*" >>"$work/calls"
[[ ! -e "$work/test-fails" ]]
TEST
sed -i '1i #!/usr/bin/env bash' "$work"/deploy/portable/{build,test}.sh
chmod +x "$work"/deploy/portable/{build,test}.sh
echo "$wheel" >"$work/wheel"

# release CODE [OPTION...]: that it ends with CODE.
release() {
  local code=0
  rm -f "$work/calls"
  "$work/deploy/portable/release.sh" "${@:2}" || code=$?
  [[ $code == "$1" ]] || { echo "it ended with $code"; return 1; }
}

has_the_files() {
  diff <(cd "$made" && ls) - <<FILES
SHA256SUMS
spillway-1.2.3-linux-x86_64.tar.gz
spillway-1.2.3-sources.txt
$wheel
FILES
}

# Every file but the list itself; a changed one is noticed.
sums_are_right() {
  (cd "$made" && sha256sum --check --strict SHA256SUMS) || return 1
  [[ $(wc -l <"$made/SHA256SUMS") == 3 ]] || { cat "$made/SHA256SUMS"; return 1; }
  echo more >>"$made/$wheel"
  ! (cd "$made" && sha256sum --check --quiet SHA256SUMS) || { echo "a changed file passes"; return 1; }
}

was_called() {
  diff "$work/calls" -
}

refuses() {
  release "$@" || return 1
  [[ ! -e $made ]] || { echo "it left $made"; return 1; }
}

check "it makes a release" release 0 --tensorflow python --jobs 2 --mirror m --suite a --suite b
check "each step gets its options" was_called <<'CALLS'
build.sh --tensorflow python --jobs 2 --mirror m
test.sh --tensorflow python --mirror m --suite a --suite b
CALLS
check "it has these files, with the version in their names" has_the_files
check "the checksums are of all files" sums_are_right
check "again, it is made anew" release 0
check "without options there are none" was_called <<<$'build.sh \ntest.sh '
check "the checksums are right again" sums_are_right

touch "$work/build-fails"
check "if the build fails, nothing is left, not even of before" refuses 1
rm "$work/build-fails"
touch "$work/test-fails"
check "if a test fails, nothing is left" refuses 1
rm "$work/test-fails"
echo "${wheel/1.2.3/1.2.4}" >"$work/wheel"
check "a file of another version is refused" refuses 1
check "an unknown option is refused" refuses 2 --tensor python
check "an option without its value is refused" refuses 2 --jobs

echo
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
