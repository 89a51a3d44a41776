#include "client_lib/cli/files/picture_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "client_lib/internal/program_output.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr char kConverter[] = "rsvg-convert";
// Two pixels per unit of the picture: sharp on current screens and in print.
constexpr char kZoom[] = "--zoom=2";
constexpr absl::Duration kConvertTime = absl::Minutes(1);
// The largest picture, with eight GPUs, has a few MB.
constexpr size_t kMaxPngBytes = size_t{256} << 20;

absl::Status BadPicture(absl::string_view message, absl::string_view flag) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION, message, {{"flag", flag}});
}

}  // namespace

absl::StatusOr<PictureForm> PictureFormOf(const std::string& path, const std::string& form) {
  const std::string name = absl::AsciiStrToLower(path);
  const auto is = [&](absl::string_view wanted) {
    return form.empty() ? absl::EndsWith(name, absl::StrCat(".", wanted)) : form == wanted;
  };
  if (is("svg") || (form.empty() && path == "-")) return PictureForm::kSvg;
  if (is("html") || (form.empty() && absl::EndsWith(name, ".htm"))) return PictureForm::kHtml;
  if (is("png")) return PictureForm::kPng;
  return BadPicture(absl::StrCat("-o ", core::Quoted(path),
                                 " does not say what to draw; give a name that ends in .svg, .html "
                                 "or .png, or --as svg|html|png"),
                    "-o");
}

absl::Status CheckPng() {
  if (internal::IsProgramInPath(kConverter)) return absl::OkStatus();
  return BadPicture(absl::StrCat("a PNG is drawn by ", kConverter,
                                 ", which is in no absolute folder of PATH; install the package "
                                 "librsvg2-bin, or give -o FILE.svg or FILE.html"),
                    "--as");
}

absl::StatusOr<std::string> SvgToPng(absl::string_view svg) {
  if (absl::Status s = CheckPng(); !s.ok()) return s;
  absl::optional<std::string> png = internal::FilteredBy(
      {kConverter, "--format=png", kZoom}, svg, kMaxPngBytes, internal::Deadline(kConvertTime));
  if (png.has_value() && absl::StartsWith(*png, "\x89PNG")) return *std::move(png);
  return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                     absl::StrCat(kConverter,
                                  " has made no PNG of the picture; give -o FILE.svg, "
                                  "and run it on that to see why"));
}

}  // namespace spillway::cli
