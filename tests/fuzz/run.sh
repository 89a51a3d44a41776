#!/usr/bin/env bash
# Runs the fuzz targets of a build, one on each core: tests/fuzz/run.sh [SECONDS [TARGET...]]
# (default: SPILLWAY_FUZZ_SECONDS, or 20 s, each of all). SPILLWAY_BUILD is the build folder (default:
# build-fuzz). The last line is `N passed, N failed`.
#
# Interesting inputs of a run are kept in its folder `corpus`, so that the next one continues from
# there. An input that fails is left in `findings`: tests/fuzz/README.md says what to do with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly build=${SPILLWAY_BUILD:-build-fuzz}
readonly seconds=${1:-${SPILLWAY_FUZZ_SECONDS:-20}}
shift $(($# > 0))
targets=("$@")
if [[ $# == 0 ]]; then
  for fuzzer in "$build"/tests/*_fuzzer; do
    fuzzer=${fuzzer##*/}
    targets+=("${fuzzer%_fuzzer}")
  done
fi

# The largest input, in bytes: enough for a graph of some dozen nodes. Larger ones are slower, and
# find less.
max_size() {
  case $1 in
    graph | file) echo 4096 ;;
    request) echo 65536 ;;  # Its limits are smaller than that.
    *) echo 512 ;;
  esac
}

# One input may take 10 s and 1 GiB, under sanitizers.
readonly limits=(-timeout=10 -rss_limit_mb=1024)

# fuzz TARGET: reports the outcome.
fuzz() {
  local target=$1 log=$build/$1.log
  local folders=("$build/corpus/$target" "$build/tests/fuzz/seeds/$target")
  [[ ! -d tests/fuzz/corpus/$target ]] || folders+=("tests/fuzz/corpus/$target")
  mkdir -p "${folders[0]}"
  if "$build/tests/${target}_fuzzer" "${limits[@]}" -max_len="$(max_size "$target")" \
      -max_total_time="$seconds" -print_final_stats=1 -print_funcs=0 \
      -artifact_prefix="$build/findings/${target}_" "${folders[@]}" >"$log" 2>&1; then
    echo "ok      $target: $(sed -nE 's/^Done ([0-9]+) runs in ([0-9]+).*/\1 inputs in \2 s/p' "$log"),"\
      "$(sed -nE 's/^#[0-9]+\tDONE +cov: ([0-9]+) ft: ([0-9]+).*/\1 edges, \2 features/p' "$log")"
    return
  fi
  echo "FAILED  $target (log: $log)"
  grep -m 1 -A 5 -E '^(fuzzed|built|==[0-9]+==ERROR|.*runtime error)' "$log" | cut -c 1-1000 || true
  sed -nE "s|.*Test unit written to (.*)|  reproduce: $build/tests/${target}_replay \1|p" "$log"
  return 1
}

mkdir -p "$build/findings"
[[ -d $build/tests/fuzz/seeds ]] || "$build/tests/make_seeds" "$build/tests/fuzz/seeds"
passed=0 failed=0 running=0
# One has ended: the next may start.
collect() {
  if wait -n; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  running=$((running - 1))
}
for target in "${targets[@]}"; do
  [[ $running -lt $(nproc) ]] || collect
  fuzz "$target" &
  running=$((running + 1))
done
while [[ $running -gt 0 ]]; do collect; done
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
