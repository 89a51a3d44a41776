// A machine of one's own: `--hardware my_card.json` instead of a preset.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_HARDWARE_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_HARDWARE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spillway/v1/hardware.pb.h"

namespace spillway::cli {

// Whether `preset`, the value of --hardware, names a file: it has a slash, or ends in `.json`.
bool IsHardwareFile(absl::string_view preset);

// Puts the numbers of the file that `hardware->preset()` names into `hardware`, where it has none,
// and the file's preset in place of its name. The file is a Hardware (hardware.proto) in proto3's
// JSON. Errors: FileErrors; BAD_OPTION if it is none. REQUIRES: IsHardwareFile.
absl::Status TakeHardwareFile(v1::Hardware* hardware);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_HARDWARE_FILE_H_
