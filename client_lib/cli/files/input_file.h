// Reading the program's input.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "client_lib/format/graph_file.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// The file that `path` stands for: in the directory of a SavedModel its saved_model.pb, or, where
// there is none, its saved_model.pbtxt; otherwise `path` itself.
std::string ResolveInput(const std::string& path);

// The bytes of the file `path`, or of standard input for "-". Read once into memory and not mapped:
// a mapped file that someone truncates meanwhile ends the program with SIGBUS. An unreadable file
// or a directory is a FileError with that advice, one of more than 2 GiB LIMIT_EXCEEDED; CANCELLED
// if `token` is.
absl::StatusOr<std::string> ReadBytes(const std::string& path, absl::string_view advice,
                                      const CancellationToken& token);

// The bytes of the graph file that `path` stands for. Errors as ReadBytes', and EMPTY_GRAPH if
// there are none.
absl::StatusOr<std::string> ReadInput(const std::string& path, const CancellationToken& token);

// The graph file that `path` stands for, in `format` or, without, in the one that it is recognised
// as. Errors as ReadInput's and GraphFile::Read's, the latter with the file's name in front.
absl::StatusOr<format::GraphFile> ReadGraphFile(const std::string& path,
                                                absl::optional<format::GraphFormat> format,
                                                const CancellationToken& token);

// An error about the graph in the file `path`, with its name in front; any other as it is.
absl::Status WithInputName(const absl::Status& status, const std::string& path);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_INPUT_FILE_H_
