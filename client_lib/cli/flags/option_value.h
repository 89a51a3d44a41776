// Parses the texts after a flag as the value of a proto field, by the field's type.
//
// Syntax: a list whose flag is given once is split at commas (`\,` is a comma inside an item); if
// the flag is repeated, each text is one item, including its commas. Everything else is one text,
// given once. Fields whose names end in `_bytes` accept units (1536, 1.5KiB, 16GB:
// base/byte_text.h); a field of type bytes takes a file, whose content is its value.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_VALUE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_VALUE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "spillway/v1/options.pb.h"

namespace spillway::cli {

// Sets `field` of `message` from `texts`, one for each occurrence of `flag`. The error is
// BAD_OPTION and names flag and value. Ranges are checked by the core, not here.
absl::Status SetField(absl::string_view flag, const std::vector<std::string>& texts,
                      const google::protobuf::FieldDescriptor* field,
                      google::protobuf::Message* message);

// `--lb is given 2 times; give it once`: for every flag with one value.
std::string RepeatedText(absl::string_view flag, size_t times);

// Splits at commas, except `\,`. Items may be empty.
std::vector<std::string> SplitList(absl::string_view text);

enum class FeedSizes { kFixed, kMayVary };

// Sets `feed` from `NAME=128,224,224,3`, or with values from `NAME=2:8,4`; `NAME=` is a scalar,
// `NAME=true` (or `NAME=:true`) one with its value. kMayVary: a dimension may also be N, the size
// that varies, which becomes -1. The error is BAD_OPTION and names flag and value.
absl::Status AddFeed(absl::string_view flag, const std::string& text, FeedSizes sizes,
                     v1::Feed* feed);

// Returns the spellings of an enum's values: without the common prefix, in lower case, without
// UNSPECIFIED. `keep` and `replan` for AlreadyRewritten.
std::vector<std::string> EnumSpellings(const google::protobuf::EnumDescriptor* type);

// Returns the value syntax of `field` for --help: `N`, `A,B,...`, `keep|replan`, ...
std::string ValueSyntax(const google::protobuf::FieldDescriptor* field);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_VALUE_H_
