#include "client_lib/cli/per_graph.h"

#include <unistd.h>

#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client_lib/cli/input_file.h"
#include "client_lib/cli/json.h"

namespace spillway::cli {

absl::StatusOr<ExitCode> PrintPerGraph(const std::string& input,
                                       absl::optional<format::GraphFormat> format, bool json,
                                       const char* key, const Session& session,
                                       const GraphPrinter& print) {
  const absl::StatusOr<format::GraphFile> file = ReadGraphFile(input, format, session.cancellation);
  if (!file.ok()) return file.status();
  const core::StopToken stop(absl::InfiniteFuture(), session.cancellation.flag());
  const Style style = StyleOf(STDOUT_FILENO);
  std::string text;
  std::vector<MetaGraphJson> entries;
  for (size_t i = 0; i < file->num_graphs(); ++i) {
    absl::StatusOr<std::string> printed = print(file->graph(i), stop, style);
    if (!printed.ok()) return WithInputName(file->WithName(i, printed.status()), input);
    if (json) {
      entries.push_back({file->tags(i), key, *std::move(printed)});
      continue;
    }
    if (!file->NameOf(i).empty()) {
      absl::StrAppend(&text, i > 0 ? "\n" : "", style.Heading(file->NameOf(i)), "\n");
    }
    absl::StrAppend(&text, *printed);
  }
  if (json) {
    text = format::IsSavedModel(file->format()) ? MetaGraphsJson(entries) : entries[0].json;
  }
  std::cout << text;
  return ExitCode::kDone;
}

}  // namespace spillway::cli
