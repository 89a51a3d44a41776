// Any bytes as a file that holds graphs: the first byte chooses the format, the rest is the file. A
// file that is read can be written, unchanged and with another graph, and read again; and an
// anonymized file is a file.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "client_lib/format/anonymize.h"
#include "client_lib/format/graph_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace spillway::testing {
namespace {

using format::GraphFile;
using format::GraphFormat;

// The format in the first byte is one of these, or, with 0, recognised.
constexpr GraphFormat kFormats[] = {GraphFormat::kGraphDef,   GraphFormat::kGraphDefText,
                                    GraphFormat::kMetaGraph,  GraphFormat::kMetaGraphText,
                                    GraphFormat::kSavedModel, GraphFormat::kSavedModelText};

// A GraphDef with a node `x` of type `Y`: different from any input's.
constexpr char kOther[] = "\n\x06\n\x01x\x12\x01Y";

std::string GraphOf(const GraphFile& file, size_t i) { return std::string(file.graph(i)); }

// A read that worked before.
GraphFile ReadAgain(const std::string& bytes, GraphFormat format) {
  absl::StatusOr<GraphFile> file = GraphFile::Read(bytes, format);
  RequireNone(file.ok() ? "" : absl::StrCat("cannot be read again: ", file.status().ToString()));
  return *std::move(file);
}

std::string Written(const std::string& bytes, GraphFormat format,
                    std::vector<absl::optional<std::string>> graphs) {
  absl::StatusOr<std::string> out = ReadAgain(bytes, format).WithGraphs(std::move(graphs));
  RequireNone(out.ok() ? "" : absl::StrCat("cannot be written: ", out.status().ToString()));
  return *std::move(out);
}

void CheckFile(const std::string& bytes, const GraphFile& file) {
  std::vector<absl::optional<std::string>> none(file.num_graphs()), same = none, others = none;
  for (size_t i = 0; i < file.num_graphs(); ++i) {
    if (file.graph(i).empty()) continue;
    same[i] = GraphOf(file, i);
    others[i] = std::string(kOther, sizeof(kOther) - 1);
  }
  RequireNone(Written(bytes, file.format(), none) == bytes ? "" : "changed by no graph");
  RequireNone(Written(bytes, file.format(), same) == bytes ? "" : "changed by its own graphs");

  // A length whose padding cannot be kept is refused; nothing else may be.
  absl::StatusOr<std::string> changed = ReadAgain(bytes, file.format()).WithGraphs(others);
  if (changed.ok()) {
    const GraphFile again = ReadAgain(*changed, file.format());
    RequireNone(again.num_graphs() == file.num_graphs() ? "" : "another number of graphs");
    for (size_t i = 0; i < file.num_graphs(); ++i) {
      const std::string expected = others[i].has_value() ? *others[i] : GraphOf(file, i);
      RequireNone(GraphOf(again, i) == expected ? "" : "another graph than was written");
    }
    // Binary files come back: `strip` depends on it. Text is reprinted.
    if (!IsText(file.format())) {
      RequireNone(Written(*changed, file.format(), same) == bytes ? "" : "does not come back");
    }
  } else if (!absl::IsInvalidArgument(changed.status())) {
    RequireNone(changed.status().ToString());
  }

  const absl::StatusOr<format::Anonymized> anonymized = format::Anonymize(file);
  if (anonymized.ok()) ReadAgain(anonymized->bytes, file.format());
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  if (size == 0) return -1;  // Not for the corpus.
  const size_t choice = data[0] % (std::size(kFormats) + 1);
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  absl::optional<GraphFormat> format;
  if (choice > 0) format = kFormats[choice - 1];
  const auto file = GraphFile::Read(bytes, format);
  if (file.ok()) {
    CheckFile(bytes, *file);
  } else {
    RequireBlamesInput(file.status());
  }
  return 0;
}
