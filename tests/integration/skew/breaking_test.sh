#!/usr/bin/env bash
# That `buf lint` has no complaint about proto/, that nothing broke since baseline.binpb, and that
# `buf breaking` holds the API: in one copy of proto/ are changes of every kind that breaks a
# client, a rebuilt program, or a stored report, and buf must name each; in another are those that
# may be made, and buf must be silent. And that today's API breaks nothing of that in the commit in
# RELEASE: baseline.binpb is rebuilt at every release, that is not.
#
#   breaking_test.sh BUF
#
# BUF is the program buf. Takes some seconds. The last line is `N passed, N failed` or `N passed, N
# failed, N skipped`.
set -euo pipefail

readonly buf=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
readonly root
# shellcheck source=tests/deploy/checks.sh
source "$root/tests/deploy/checks.sh"
work=$(mktemp -d)
readonly work
trap 'rm -rf "$work"' EXIT

# change FOLDER FILE SCRIPT: sed's SCRIPT has to change FILE in the copy of proto/ in FOLDER.
change() {
  local file=$1/spillway/v1/$2
  cp "$file" "$work/before"
  sed -i -E "$3" "$file"
  ! cmp -s "$file" "$work/before"
}

# has FILE WORDS: buf's output on FILE has WORDS, in this order, in one line.
has() {
  grep -qE "^spillway/v1/$1:[0-9:]+.*$2" "$work/said" && return
  grep "^spillway/v1/$1" "$work/said" || cat "$work/said"
  return 1
}

# Breaking changes: a name, the file, sed's script, and buf's output about it.
breaks=(
  "a field with another number" options.proto 's/^(  optional double max_slowdown) = 3;/\1 = 33;/'
  'field "3" with name "max_slowdown".* deleted'
  "a field of another type" step.proto
  's/^  int64 convolution_workspace_bytes = 6;/  double convolution_workspace_bytes = 6;/'
  '"convolution_workspace_bytes".* changed type from "int64" to "double"'
  "a list that was one value" report.proto
  's/^  string summary = 2;/  repeated string summary = 2;/'
  'name "summary".* changed cardinality'
  "a figure that can be absent, and could not" report.proto
  's/^  int64 swap_out_bytes = 5;/  optional int64 swap_out_bytes = 5;/'
  '"swap_out_bytes".* changed cardinality'
  "a field removed" report.proto '/^  Advice advice = 15;/d'
  'field "15" with name "advice".* deleted'
  "a field removed, with its number and its name reserved" report.proto
  's/^  repeated Warning warnings = 14;/  reserved 14;\n  reserved "warnings";/'
  'field "14" with name "warnings".* deleted'
  "a field with another name" report.proto
  's/^  int64 node_count_before = 4;/  int64 nodes_before = 4;/'
  'changed name from "node_count_before"'
  "a field that leaves its oneof" diff.proto
  's/^  string swap_out = 3;/  oneof way { string swap_out = 3; }/'
  '"swap_out".* oneof'
  "a value of an enum removed" report.proto '/^  OUTCOME_FOREIGN = 4;/d'
  'enum value "4" on enum "Outcome".* deleted'
  "a value of an enum with another number" report.proto
  's/^  WARNING_CODE_NO_GPU = 6;/  WARNING_CODE_NO_GPU = 60;/'
  'enum value "6" on enum "WarningCode".* deleted'
  "a value of an enum with another name" error.proto
  's/^  ERROR_REASON_DOES_NOT_FIT = 27;/  ERROR_REASON_TOO_TIGHT = 27;/'
  'changed name from "ERROR_REASON_DOES_NOT_FIT"'
  "a method removed" rewrite_service.proto '/^  rpc Explore\(/d' 'RPC "Explore".* deleted'
  "a method with another answer" rewrite_service.proto
  's/^(  rpc Diff\(stream DiffRequest\) returns) \(DiffResponse\)/\1 (SimulateResponse)/'
  '"Diff".* response type'
  "a method that streams, and did not" rewrite_service.proto
  's/^(  rpc Rewrite\(RewriteRequest\) returns) \(RewriteResponse\)/\1 (stream RewriteResponse)/'
  '"Rewrite".* streaming'
  "a message removed" report.proto
  '/^message EdgeCount \{/,/^}/d; s/EdgeCount added/NameCount added/'
  'message "EdgeCount".* deleted'
  "another package of generated code" check.proto
  's/^option java_package = .*/option java_package = "another";/'
  '"java_package".* changed'
)
in_proto() {
  (cd "$root/proto" && "$buf" "$@")
}
check "buf lint has nothing to say" in_proto lint
check "nothing broke since baseline.binpb" in_proto breaking --against baseline.binpb

cp -r "$root/proto" "$work/breaks"
for ((i = 0; i < ${#breaks[@]}; i += 4)); do
  change "$work/breaks" "${breaks[i + 1]}" "${breaks[i + 2]}" ||
    { echo "FAILED  ${breaks[i]}: nothing in ${breaks[i + 1]} matches"; failed=$((failed + 1)); }
done
code=0
(cd "$work/breaks" && "$buf" breaking --against baseline.binpb) >"$work/said" 2>&1 || code=$?
check "buf refuses what breaks" test "$code" = 100
for ((i = 0; i < ${#breaks[@]}; i += 4)); do
  check "it names ${breaks[i]}" has "${breaks[i + 1]}" "${breaks[i + 3]}"
done

cp -r "$root/proto" "$work/grows"
readonly new_rpc='  rpc Tomorrow(GetCapabilitiesRequest) returns (GetCapabilitiesResponse);'
grow() {
  change "$work/grows" options.proto \
    's/^(  repeated string devices = 6;)/\1\n  bool of_tomorrow = 99;/' &&
  change "$work/grows" report.proto \
    's/^(  OUTCOME_STRIPPED = 5;)/\1\n  OUTCOME_OF_TOMORROW = 99;/' &&
  change "$work/grows" rewrite_service.proto "s/^(  rpc GetCapabilities\(.*)/$new_rpc\n\1/" &&
  change "$work/grows" report.proto \
    's/^  string summary = 2;/  string summary = 2 [deprecated = true];/' &&
  (cd "$work/grows" && "$buf" breaking --against baseline.binpb)
}
check "a new field, value or method, and one that is deprecated, are no break" grow

skipped=
commit=$(<"$root/tests/integration/skew/RELEASE")
if git -C "$root" archive "$commit" proto 2>/dev/null | tar -x -C "$work" 2>/dev/null; then
  check "today's API breaks nothing of the frozen one" in_proto breaking --against "$work/proto"
else
  echo "skipped: this tree has no commit $commit (a shallow clone, or none): only baseline.binpb is held"
  skipped=", 1 skipped"
fi

echo
echo "$passed passed, $failed failed$skipped"
[[ $failed == 0 ]]
