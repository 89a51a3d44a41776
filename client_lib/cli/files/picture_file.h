// In which form a picture is written, and PNG, which another program makes of SVG.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_PICTURE_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_PICTURE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

enum class PictureForm { kSvg, kHtml, kPng };

// By `form` (`svg`, `html`, `png`), or if that is empty by the end of the name `path`; standard
// output is SVG. BAD_OPTION if neither says.
// `flag`: whose value `path` is.
absl::StatusOr<PictureForm> PictureFormOf(const std::string& path, const std::string& form,
                                          absl::string_view flag = "-o");

// OK if SvgToPng can be expected to work. Else BAD_OPTION, with the package that is missing.
absl::Status CheckPng(absl::string_view flag = "-o");

// By rsvg-convert, found in an absolute folder of PATH and run without a shell. Errors: as
// CheckPng, and INTERNAL if it fails, or takes longer than a minute.
absl::StatusOr<std::string> SvgToPng(absl::string_view svg);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_PICTURE_FILE_H_
