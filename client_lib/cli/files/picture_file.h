// The file formats of pictures. PNG is converted from SVG by another program.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_PICTURE_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_PICTURE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace spillway::cli {

enum class PictureForm { kSvg, kHtml, kPng };

// Returns the form given by `form` (`svg`, `html`, `png`), or if that is empty, by the extension of
// `path`; standard output is SVG. BAD_OPTION if neither determines it.
absl::StatusOr<PictureForm> PictureFormOf(const std::string& path, const std::string& form);

// Returns OK if SvgToPng can be expected to work, otherwise BAD_OPTION naming the missing package.
absl::Status CheckPng();

// Converts with rsvg-convert, found in an absolute folder of PATH and run without a shell. Errors:
// those of CheckPng, and INTERNAL if it fails or takes longer than a minute.
absl::StatusOr<std::string> SvgToPng(absl::string_view svg);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_PICTURE_FILE_H_
