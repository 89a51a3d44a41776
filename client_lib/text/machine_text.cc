#include "client_lib/text/machine_text.h"

#include "absl/strings/str_cat.h"

namespace spillway::text {

std::string AssumedText(const v1::HardwareReport& hardware) {
  if (!hardware.preset_assumed()) return "";
  // nvidia-smi may be there, and name GPUs that are no machine with a preset.
  return absl::StrCat(hardware.hardware().preset(),
                      " is assumed: no hardware is named, and nvidia-smi does not tell it here "
                      "(spillway capabilities lists the presets)");
}

}  // namespace spillway::text
