#!/usr/bin/env bash
# Whether sources, scripts and the files for the forge are as tools want them, and texts in plain
# English (words.py): tests/style.sh format|shell|forge|words. Exit code 77: the tool is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  format)
    tool=$(command -v clang-format-14 || command -v clang-format || true)
    if [[ -z $tool || $("$tool" --version) != *"version 14."* ]]; then
      echo "skipped: no clang-format 14 here (Debian: clang-format-14); others format differently"
      exit 77
    fi
    if ! said=$(tests/project_files.py '*.h' '*.cc' 'proto/*.proto' |
        xargs -d '\n' "$tool" --dry-run --Werror 2>&1); then
      echo "Not as $tool -i leaves them:"
      sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: error: .*/  \1/p' <<<"$said" | sort -u
      exit 1
    fi ;;
  shell)
    mapfile -t scripts < <(tests/project_files.py '*.sh' .ci/run)
    for script in "${scripts[@]}"; do bash -n "$script"; done
    if ! command -v shellcheck >/dev/null; then
      echo "skipped: no shellcheck here (Debian: shellcheck): shell scripts are only parsed"
      exit 77
    fi
    shellcheck --external-sources --severity=warning "${scripts[@]}" ;;
  forge)
    check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
    check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
    pre-commit validate-config
    python3 -m json.tool .devcontainer/devcontainer.json >/dev/null ;;
  words) tests/words.py ;;
  *) echo "Usage: tests/style.sh format|shell|forge|words" >&2; exit 2 ;;
esac
