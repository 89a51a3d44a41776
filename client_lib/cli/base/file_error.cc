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

absl::Status Marked(const absl::Status& why, int error_number, absl::string_view action,
                    absl::string_view name, absl::string_view advice) {
  absl::Status status(
      why.code(), absl::StrCat("cannot ", action, " ", name, ": ", why.message(), "; ", advice));
  status.SetPayload(kFileErrorTypeUrl, absl::Cord(absl::StrCat(error_number)));
  return status;
}

}  // namespace

absl::Status FileError(int error_number, absl::string_view action, absl::string_view path,
                       absl::string_view advice) {
  const std::string name = path != "-"        ? core::Quoted(path)
                           : action == "read" ? "standard input"
                                              : "standard output";
  return Marked(absl::Status(absl::ErrnoToStatusCode(error_number), std::strerror(error_number)),
                error_number, action, name, advice);
}

absl::Status FileError(const absl::Status& why, absl::string_view path, absl::string_view advice) {
  return Marked(why, /*error_number=*/0, "read", core::Quoted(path), advice);
}

bool IsClosedPipe(const absl::Status& status) {
  return status.GetPayload(kFileErrorTypeUrl) == absl::Cord(absl::StrCat(EPIPE));
}

bool IsFileError(const absl::Status& status) {
  return status.GetPayload(kFileErrorTypeUrl).has_value();
}

}  // namespace spillway::cli
