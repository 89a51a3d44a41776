#!/usr/bin/env bash
# Builds the programs of the release at which the API froze: the commit in RELEASE, in build/skew.
#
# Prints the folder that has its bin/spillway, bin/spillwayd and lib/libspillway.so.0; its sources
# are around it. Minutes on two cores, once: existing files are kept. The compiler's output goes to
# build/skew/build.log. Exit code 3: it is not available here, for the reason on standard output; 1:
# it does not build.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
readonly root folder=$root/build/skew
commit=$(<"$root/tests/integration/skew/RELEASE")
readonly commit src=$folder/src log=$folder/build.log

if [[ $(cat "$folder/built" 2>/dev/null) == "$commit" ]]; then
  echo "$src/build"
  exit
fi
if ! git -C "$root" cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "this tree has no commit $commit (a shallow clone, or none)"
  exit 3
fi
rm -rf "$folder"
mkdir -p "$src"
git -C "$root" archive "$commit" | tar -x -C "$src"
# As deploy/steps.sh has it for today's, so that a cache of the compiler is used.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  export CCACHE_DEPEND=${CCACHE_DEPEND-1}
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}
fi
if ! (cd "$src" && cmake --preset release -DSPILLWAY_TESTS=OFF && cmake --build --preset release \
    --target spillway spillwayd spillway_shared spillway_client_shared) >"$log" 2>&1; then
  echo "$commit does not build:" >&2
  { grep -A 20 -m 3 -E '^FAILED|error:' "$log" || tail -n 30 "$log"; } >&2
  exit 1
fi
echo "$commit" >"$folder/built"
echo "$src/build"
