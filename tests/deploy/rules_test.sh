#!/usr/bin/env bash
# Tests deploy/prometheus with promtool.
set -euo pipefail

usage() {
  cat <<'USAGE'
Usage: tests/deploy/rules_test.sh [--help]

Checks deploy/prometheus with promtool: the configuration, the rules (with lint), their unit tests,
and that every alert has a unit test that fires it and one in which it is silent, a summary, and a
section of RUNBOOK.md with its severity that its annotation `runbook` leads to. Needs promtool, from
PATH or from build/tools/bin (deploy/install_deps.sh tests puts it there); is skipped without.

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
readonly rules=spillway.rules.yml unit_tests=spillway.rules_test.yml runbook=RUNBOOK.md

if ! command -v promtool >/dev/null; then
  echo "skipped: no promtool here (deploy/install_deps.sh tests): the alert rules are not tested"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

source "$root/tests/deploy/checks.sh"

# In the unit tests, a line `alertname: NAME` is followed by its expected alerts.
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

# Prints the alert of the rules, up to the next one.
alert_of() {
  sed -nE "/^ *- alert: $1\$/,/^ *runbook:/p" "$rules"
}

has_runbook_entry() {
  local rule section
  rule=$(alert_of "$1")
  grep -qE '^ *summary: "..+"$' <<<"$rule" || { echo "$1 has no summary."; return 1; }
  grep -qF "runbook: \"deploy/prometheus/$runbook#${1,,}\"" <<<"$rule" || {
    echo "The annotation runbook of $1 is not deploy/prometheus/$runbook#${1,,}."
    return 1
  }
  section=$(sed -nE "/^## $1\$/,/^- Do:/p" "$runbook")
  grep -q '^- Look:' <<<"$section" && grep -q '^- Do:' <<<"$section" || {
    echo "$runbook has no section $1 with - Look: and - Do:."
    return 1
  }
  grep -qE "^$(sed -nE 's/^ *severity: //p' <<<"$rule"): " <<<"$section" || {
    echo "The section $1 of $runbook does not begin with the severity of the rule."
    return 1
  }
}

every_section_has_an_alert() {
  diff <(sed -nE 's/^## //p' "$runbook" | sort) <(alerts | sort)
}

alerts() {
  sed -nE 's/^ *- alert: *([A-Za-z]+)$/\1/p' "$rules"
}

check "prometheus.yml is a valid configuration" promtool check config prometheus.yml
check "$rules passes the lint" promtool check rules --lint=all --lint-fatal "$rules"
check "$unit_tests passes" promtool test rules "$unit_tests"
while read -r alert; do
  check "$alert has a unit test that fires it and one that does not" fires_and_is_silent "$alert"
  check "$alert has a summary and an entry of $runbook" has_runbook_entry "$alert"
done < <(alerts)
check "every section of $runbook has an alert" every_section_has_an_alert

echo
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
