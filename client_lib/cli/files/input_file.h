// The program's input: what a name on the command line stands for, and reading it.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "client_lib/format/graph_file.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// An input that the command line names. The name is looked at once, when the value is made. A
// value.
class InputPath {
 public:
  InputPath() = default;
  // Standard input for "-", otherwise the file of that name.
  InputPath(std::string name);  // NOLINT(google-explicit-constructor): a name is an input.
  // The same for a graph. For the folder of a SavedModel, its saved_model.pb, or if there is none,
  // its saved_model.pbtxt.
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

// Reads all of `input` into memory. The file is not mapped: if a mapped file is truncated
// meanwhile, the program dies of SIGBUS. Errors: FileError with that advice for an unreadable file
// or a folder; LIMIT_EXCEEDED above 2 GiB; CANCELLED if `token` is.
absl::StatusOr<std::string> ReadBytes(const InputPath& input, absl::string_view advice,
                                      const CancellationToken& token);

// Reads a graph. Errors: those of ReadBytes, and EMPTY_GRAPH if it is empty.
absl::StatusOr<std::string> ReadInput(const InputPath& graph, const CancellationToken& token);

// Reads and parses a graph, in `format`, or without one in the format that is recognised. Errors:
// those of ReadInput and GraphFile::Read, the latter prefixed with the file's name.
absl::StatusOr<format::GraphFile> ReadGraphFile(const InputPath& graph,
                                                absl::optional<format::GraphFormat> format,
                                                const CancellationToken& token);

// Prefixes an error about a graph with the name of its file; other errors are unchanged.
absl::Status WithInputName(const absl::Status& status, const InputPath& graph);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
