#!/usr/bin/env bash
# Writes the man pages, from the programs' output with --help-all, by help2man: spillwayd(1),
# spillway(1), and one of each command, spillway-rewrite(1) and so on.
# Usage: man.sh BIN FOLDER. BIN has the programs. The date is that of SOURCE_DATE_EPOCH.
set -euo pipefail

readonly bin=$1 folder=$2
# Lines unwrapped, since help2man fills them; no colours.
export LC_ALL=C.UTF-8 COLUMNS=10000 NO_COLOR=1
work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
version=$("$bin/spillway" --version | sed 's/.* //')
readonly version

# page NAME TITLE PROGRAM [ARGUMENT...]: from PROGRAM's output. help2man fills lines, so the
# examples are taken out and inserted unchanged.
page() {
  local name=$1 title=$2
  shift 2
  "$@" >"$work/help"
  awk -v help="$work/$name.txt" -v examples="$work/examples" '
    /^[^ ].*:$/ && last == "" { in_examples = /^Examples?:$/ }
    { print > (in_examples ? examples : help); last = $0 }
    END { printf "" >> examples }' "$work/help"
  # Commands below a heading, with backslashes and leading dots unchanged.
  {
    if [[ -s $work/examples ]]; then
      printf '[examples]\n.EX\n'
      sed -e 1d -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/" "$work/examples"
      printf '.EE\n\n'
    fi
    printf '[see also]\n'
    [[ $name == spillway ]] || printf '.BR spillway (1),\n'
    [[ $name == spillwayd ]] || printf '.BR spillwayd (1),\n'
    printf 'the README.md of the source, and of its folders client_lib and server.\n'
  } >"$work/include"
  rm -f "$work/examples"
  # help2man takes the page's name from this.
  printf '#!/bin/sh\nexec cat "%s"\n' "$work/$name.txt" >"$work/$name"
  chmod +x "$work/$name"
  help2man --no-info --section=1 --source="Spillway $version" --manual=Spillway \
    --version-string="$version" --help-option=--help --no-discard-stderr --name="$title" \
    --include="$work/include" --output="$folder/$name.1" "$work/$name"
}

page spillwayd "rewrites TensorFlow graphs so that training fits into less GPU memory, as a service" \
  "$bin/spillwayd" --help
page spillway "rewrites TensorFlow graphs so that training fits into less GPU memory" \
  "$bin/spillway" --help-all
commands=0
while read -r command title; do
  case $command in
    help|version) continue ;;  # Their output is in the others.
  esac
  # As a part of a sentence: no capital, no full stop.
  title=${title%%. *}
  title=${title%.}
  page "spillway-$command" "${title,}" "$bin/spillway" "$command" --help-all
  commands=$((commands + 1))
done < <("$bin/spillway" --help | sed -n '/^Subcommands:$/,/^$/{s/^  *//;/^Subcommands:$/d;/^$/d;p}')
[[ $commands -gt 10 ]] || { echo "man.sh: spillway --help names $commands commands" >&2; exit 1; }
