# shellcheck shell=bash
# Sourced by deploy/demo.sh and tests/run.sh: sections with headings and times, and the build.

# Prints the time in milliseconds.
now_ms() {
  local now=${EPOCHREALTIME/[.,]/}
  echo "${now:0:-3}"
}

# Begins a section.
heading() {
  section_start=$(now_ms)
  printf '\n== %s\n' "$1"
}

# Ends it, and adds a row NAME for print_times.
section_names=()
section_times=()
end_section() {
  section_names+=("$1")
  section_times+=("$(($(now_ms) - section_start))")
}

print_times() {
  printf '\n== Time\n'
  local i total=0
  for i in "${!section_names[@]}"; do
    print_time "${section_times[i]}" "${section_names[i]}"
    total=$((total + section_times[i]))
  done
  print_time "$total" "all"
}

print_time() {
  printf '%6d.%d s  %s\n' "$(($1 / 1000))" "$(($1 % 1000 / 100))" "$2"
}

# About ten of ninja's lines: enough to show progress.
ninja_progress() {
  local line shown=0 tenth
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    if ((tenth > shown)); then
      echo "  ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps"
      shown=$tenth
    fi
  done
}

# build_preset PRESET LOG [TARGET...]: configures and builds, in the folder of CMakePresets.json.
# Output goes to LOG; if the build fails, the errors are shown.
build_preset() {
  local preset=$1 log=$2
  shift 2
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
    # The compiler reports the included files, without a run of the preprocessor; precompiled
    # headers are compared by their contents.
    export CCACHE_DEPEND=${CCACHE_DEPEND-1}
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}
  fi
  mkdir -p "$(dirname "$log")"
  local build=(cmake --build --preset "$preset")
  [[ $# == 0 ]] || build+=(--target "$@")
  echo "cmake --preset $preset, then ${build[*]} (log: $log)"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    tail -n 30 "$log"
    return 1
  fi
  if ! "${build[@]}" 2>&1 | tee -a "$log" | ninja_progress; then
    grep -A 20 -m 3 -E '^FAILED|error:' "$log" || tail -n 30 "$log"
    return 1
  fi
}
