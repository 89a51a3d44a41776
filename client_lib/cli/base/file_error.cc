#include "client_lib/cli/base/file_error.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

// Marks a status; its value is the errno. It does not leave this program.
constexpr char kFileErrorTypeUrl[] = "spillway.cli/file_error";

}  // namespace

absl::Status FileError(int error_number, absl::string_view action, absl::string_view path,
                       absl::string_view advice) {
  const std::string name = path != "-"        ? core::Quoted(path)
                           : action == "read" ? "standard input"
                                              : "standard output";
  absl::Status status(
      absl::ErrnoToStatusCode(error_number),
      absl::StrCat("cannot ", action, " ", name, ": ", std::strerror(error_number), "; ", advice));
  status.SetPayload(kFileErrorTypeUrl, absl::Cord(absl::StrCat(error_number)));
  return status;
}

bool IsClosedPipe(const absl::Status& status) {
  return status.GetPayload(kFileErrorTypeUrl) == absl::Cord(absl::StrCat(EPIPE));
}

bool IsFileError(const absl::Status& status) {
  return status.GetPayload(kFileErrorTypeUrl).has_value();
}

}  // namespace spillway::cli
