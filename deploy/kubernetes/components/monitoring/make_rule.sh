#!/usr/bin/env bash
# Writes prometheus-rule.yaml, beside it: deploy/prometheus/spillway.rules.yml as a resource of
# prometheus-operator. Run it after a change there; `--print` writes to the standard output.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"

rule() {
  cat <<'HEAD'
# Written by make_rule.sh; do not edit.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: spillway
  namespace: spillway
  labels:
    app.kubernetes.io/name: spillway
    app.kubernetes.io/part-of: spillway
spec:
HEAD
  sed 's/^./  &/' ../../../prometheus/spillway.rules.yml
}

case ${1:-} in
  '') rule >prometheus-rule.yaml ;;
  --print) rule ;;
  *) echo "usage: make_rule.sh [--print]" >&2; exit 2 ;;
esac
