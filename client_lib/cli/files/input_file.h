// The program's input: the meaning of a name on the command line, and reading it.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "client_lib/format/graph_file.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// An input that the command line names. The name is resolved once, when the value is made. A value.
class InputPath {
 public:
  InputPath() = default;
  // Standard input for "-", otherwise the file of that name.
  InputPath(std::string name);  // NOLINT(google-explicit-constructor): a name is an input.
  // The same for a graph. For the folder of a SavedModel, its saved_model.pb, or without one, its
  // saved_model.pbtxt.
  static InputPath Graph(const std::string& name);

  // As given; empty: not given.
  const std::string& name() const { return name_; }
  // The file to read; for messages on standard input.
  const std::string& path() const { return path_; }
  bool is_standard_input() const { return is_standard_input_; }
  // Whether the name of a graph is that of a folder.
  bool is_folder() const { return is_folder_; }
  // The folder that the file is in.
  std::string Folder() const;

 private:
  std::string name_, path_;
  bool is_standard_input_ = false;
  bool is_folder_ = false;
};

// A file's kind determines its maximum size: a name may stand for anything, even a file without an
// end. Machines and tokens are small files (rewrite_core/base/small_file.h).
enum class FileKind { kGraph, kGraphOrReport, kReport, kPlan, kProfile, kJournal };

// Whether a file with these bytes is JSON, such as a report, rather than a graph: no graph begins
// with a brace.
bool IsJson(absl::string_view bytes);

// Reads all of `input` into memory. The file is not mapped: if a mapped file is truncated
// meanwhile, the program dies of SIGBUS. Errors: FileError with that advice for an unreadable file
// or a folder, or if there is no memory for it; LIMIT_EXCEEDED above the limit of its kind, of
// which one byte more is read; CANCELLED if `token` is.
absl::StatusOr<std::string> ReadBytes(const InputPath& input, FileKind kind,
                                      absl::string_view advice, const CancellationToken& token);

// Reads a graph, or a report if one is allowed. Errors: those of ReadBytes, and EMPTY_GRAPH if it
// is empty.
absl::StatusOr<std::string> ReadInput(const InputPath& graph, const CancellationToken& token,
                                      FileKind kind = FileKind::kGraph);

// Reads and parses a graph, in `format`, or without one in the recognised format. Errors: those of
// ReadInput and GraphFile::Read, the latter prefixed with the file's name.
absl::StatusOr<format::GraphFile> ReadGraphFile(const InputPath& graph,
                                                absl::optional<format::GraphFormat> format,
                                                const CancellationToken& token);

// Prefixes an error about a graph with the name of its file; other errors are unchanged.
absl::Status WithInputName(const absl::Status& status, const InputPath& graph);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
