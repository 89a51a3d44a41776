#!/usr/bin/env bash
# The shared libraries show the public API and nothing else.
# Usage: exports_test.sh LIB_DIR SPILLWAY_H
set -euo pipefail

readonly folder=$1 header=$2

# Reads demangled symbols, one a line, and prints those that are not of the C++ client's public API.
not_public() {
  grep -vE \
    -e '^((vtable|VTT|typeinfo|typeinfo name|guard variable) for )?spillway::v1::' \
    -e '^(typeinfo|typeinfo name|vtable) for spillway::Connection$' \
    -e '^spillway::(Client|CancellationToken|CancellationCallback)::' \
    -e '^spillway::(MakeLocalConnection|MakeRemoteConnection|ServingStatusName|ErrorInfoOf|ErrorReasonOf)\(' \
    -e '^(spillway::v1::[A-Za-z]+\* )?google::protobuf::Arena::CreateMaybeMessage<spillway::v1::' \
    -e '^descriptor_table_spillway_2fv1_2f[a-z_0-9]+_2eproto$' \
    -e '^spillway_internal_call_table$' || true
}

symbols() {
  nm -D --defined-only -C "$1" | sed -E 's/^[0-9a-f]+ . //'
}

# The filter itself: forbidden symbols are found.
for private in 'spillway::core::Rewrite(int)' 'spillway::internal::RetryLoop::NextPause()' \
    'google::protobuf::Message::New()' 'std::vector<int>::push_back(int)' 'main'; do
  [[ $(not_public <<<"$private") == "$private" ]] || { echo "the filter lets $private pass"; exit 1; }
done

code=0
bad=$(symbols "$folder/libspillway_client.so" | not_public)
if [[ -n $bad ]]; then
  echo "libspillway_client.so shows what is not public:"
  head -n 20 <<<"$bad"
  code=1
fi
[[ $(symbols "$folder/libspillway_client.so" | grep -c 'spillway::Client::Rewrite') -ge 1 ]] ||
  { echo "libspillway_client.so does not show spillway::Client::Rewrite"; code=1; }

# Exactly the header's declarations.
declared=$(grep -oE '\bspillway_[a-z0-9_]+\(' "$header" | tr -d '(' | sort -u)
shown=$(symbols "$folder/libspillway.so" | sort -u)
if ! diff <(echo "$declared") <(echo "$shown"); then
  echo "libspillway.so (>) is not what spillway.h declares (<)"
  code=1
fi
exit "$code"
