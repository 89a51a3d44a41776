// User-defined hardware: `--hardware my_card.json` instead of a preset.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_HARDWARE_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_HARDWARE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spillway/v1/hardware.pb.h"

namespace spillway::cli {

// Whether `preset`, the value of --hardware, names a file: it contains a slash or ends in `.json`.
bool IsHardwareFile(absl::string_view preset);

// Fills the unset numbers of `hardware` from the file that `hardware->preset()` names, and replaces
// that name by the file's preset. The file is a Hardware (hardware.proto) in proto3's JSON. Errors:
// FileErrors; BAD_OPTION if it is not one. REQUIRES: IsHardwareFile.
absl::Status TakeHardwareFile(v1::Hardware* hardware);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_HARDWARE_FILE_H_
