// Parses the sizes to explore from flags.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_SIZE_LIST_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_SIZE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {

// Appends the sizes of `texts`, one for each occurrence of `flag`: lists of numbers and ranges
// FROM:TO or FROM:TO:STEP. BAD_OPTION if one cannot be parsed. The core checks the range of the
// numbers.
absl::Status AddSizeLists(const std::string& flag, const std::vector<std::string>& texts,
                          v1::ExploreOptions* options);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_SIZE_LIST_H_
