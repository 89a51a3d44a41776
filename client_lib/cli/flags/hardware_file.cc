#include "client_lib/cli/flags/hardware_file.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/file_error.h"
#include "google/protobuf/util/json_util.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/small_file.h"

namespace spillway::cli {

bool IsHardwareFile(absl::string_view preset) {
  return absl::StrContains(preset, '/') || absl::EndsWith(preset, ".json");
}

absl::Status TakeHardwareFile(v1::Hardware* hardware) {
  const std::string path = hardware->preset();
  const absl::StatusOr<std::string> json = core::ReadSmallFile(path);
  if (!json.ok()) {
    return FileError(json.status(), path,
                     "give the name of a preset (spillway capabilities lists them), or a file");
  }
  v1::Hardware machine;
  const auto parsed = google::protobuf::util::JsonStringToMessage(*json, &machine);
  if (!parsed.ok()) {
    // The first line only: the others show the position in the text.
    const std::string why(parsed.message());
    return core::InvalidError(
        v1::ERROR_REASON_BAD_OPTION,
        absl::StrCat("--hardware ", core::Quoted(path), " is no machine (",
                     absl::string_view(why).substr(0, why.find('\n')),
                     "); give the fields of Hardware, as hardware.proto has them, in JSON"),
        {{"flag", "--hardware"}, {"value", path}});
  }
  // Other flags override the file.
  hardware->clear_preset();
  machine.MergeFrom(*hardware);
  *hardware = std::move(machine);
  return absl::OkStatus();
}

}  // namespace spillway::cli
