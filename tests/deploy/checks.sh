# shellcheck shell=bash
# Sourced by the shell tests here: checks that are counted in `passed` and `failed`.

passed=0
failed=0

# check NAME COMMAND...: COMMAND's output is shown if it fails.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    sed 's/^/        /' <<<"$output"
  fi
}
