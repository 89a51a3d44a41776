#!/usr/bin/env bash
# Tests deploy/prometheus with promtool.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/deploy/rules_test.sh [--help]

Checks deploy/prometheus with promtool: the configuration, the rules (with lint), their unit tests,
and that every alert has a unit test that fires it and one in which it is silent. Needs promtool,
from PATH or from build/tools/bin (deploy/install_deps.sh tests puts it there); is skipped without.

The last line is `N passed, N failed` or `N passed, N failed, N skipped`. Exit code 0: nothing
failed; 1: something did; 2: bad usage.
USAGE
}

case ${1:-} in
  '') ;;
  -h|--help) usage; exit ;;
  *) echo "tests/deploy/rules_test.sh: there is no $1; see --help" >&2; exit 2 ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PATH=$PATH:$root/build/tools/bin
cd "$root/deploy/prometheus"
readonly rules=spillway.rules.yml unit_tests=spillway.rules_test.yml

if ! command -v promtool >/dev/null; then
  echo "skipped: no promtool here (deploy/install_deps.sh tests): the alert rules are not tested"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

source "$root/tests/deploy/checks.sh"

# In the unit tests, a line `alertname: NAME` is followed by what is expected of it.
fires_and_is_silent() {
  local after
  after=$(grep -A 1 -E "alertname: $1\$" "$unit_tests" || true)
  if ! grep -qE 'exp_alerts: *$' <<<"$after"; then
    echo "No unit test of $unit_tests fires $1: add one."
    return 1
  fi
  if ! grep -qF 'exp_alerts: []' <<<"$after"; then
    echo "No unit test of $unit_tests expects $1 to be silent: add one."
    return 1
  fi
}

check "prometheus.yml is a valid configuration" promtool check config prometheus.yml
check "$rules passes the lint" promtool check rules --lint=all --lint-fatal "$rules"
check "$unit_tests passes" promtool test rules "$unit_tests"
while read -r alert; do
  check "$alert has a unit test that fires it and one that does not" fires_and_is_silent "$alert"
done < <(sed -nE 's/^ *- alert: *([A-Za-z]+)$/\1/p' "$rules")

echo
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
