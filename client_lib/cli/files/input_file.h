// Reading the program's input.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "client_lib/format/graph_file.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// Returns the file that `path` stands for: for the directory of a SavedModel its saved_model.pb, or
// if there is none, its saved_model.pbtxt; otherwise `path` itself.
std::string ResolveInput(const std::string& path);

// Reads the file `path`, or standard input for "-", into memory. The file is not mapped: if a
// mapped file is truncated meanwhile, the program dies of SIGBUS. Errors: FileError with that
// advice for an unreadable file or a directory; LIMIT_EXCEEDED above 2 GiB; CANCELLED if `token`
// is.
absl::StatusOr<std::string> ReadBytes(const std::string& path, absl::string_view advice,
                                      const CancellationToken& token);

// Reads the graph file that `path` stands for. Errors: those of ReadBytes, and EMPTY_GRAPH if it is
// empty.
absl::StatusOr<std::string> ReadInput(const std::string& path, const CancellationToken& token);

// Reads and parses the graph file that `path` stands for, in `format`, or without one in the format
// that is recognised. Errors: those of ReadInput and GraphFile::Read, the latter prefixed with the
// file's name.
absl::StatusOr<format::GraphFile> ReadGraphFile(const std::string& path,
                                                absl::optional<format::GraphFormat> format,
                                                const CancellationToken& token);

// Prefixes an error about the graph in the file `path` with the file's name; other errors are
// unchanged.
absl::Status WithInputName(const absl::Status& status, const std::string& path);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
