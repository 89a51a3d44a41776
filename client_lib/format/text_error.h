// Syntax errors in text files, with line and column.
#ifndef SPILLWAY_CLIENT_LIB_FORMAT_TEXT_ERROR_H_
#define SPILLWAY_CLIENT_LIB_FORMAT_TEXT_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client_lib/format/graph_place.h"
#include "google/protobuf/io/tokenizer.h"
#include "rewrite_core/base/error.h"

namespace spillway::format {

// Returns MALFORMED_GRAPH: "line L, column C: MESSAGE", both from 1.
inline absl::Status TextError(TextPosition position, absl::string_view message) {
  const std::string line = absl::StrCat(position.line + 1);
  const std::string column = absl::StrCat(position.column + 1);
  return core::InvalidError(v1::ERROR_REASON_MALFORMED_GRAPH,
                            absl::StrCat("line ", line, ", column ", column, ": ", message),
                            {{"line", line}, {"column", column}});
}

// Keeps the first error that protobuf finds in a text that is at `start` in its file.
class FirstTextError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstTextError(TextPosition start = {}) : start_(start) {}

  void AddError(int line, int column, const std::string& message) override {
    if (!status_.ok()) return;
    status_ = TextError({start_.line + line, column + (line == 0 ? start_.column : 0)}, message);
  }
  const absl::Status& status() const { return status_; }

 private:
  const TextPosition start_;
  absl::Status status_;
};

}  // namespace spillway::format

#endif  // SPILLWAY_CLIENT_LIB_FORMAT_TEXT_ERROR_H_
