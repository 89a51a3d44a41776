// Writing the program's output: all of it or nothing.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_OUTPUT_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_OUTPUT_FILE_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/cli/files/folder.h"
#include "client_lib/cli/files/pending_file.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// One output. A file is written and brought to the disk without its name, or under a temporary one,
// and gets its name by Commit (pending_file.h): whoever looks sees the old file or the whole new
// one. Without a Commit nothing is left. Standard output ("-") and what is no regular file
// (/dev/null, a pipe) are written directly. A symbolic link is followed, and the mode of a file
// that is replaced stays. Several processes, also on several machines, may write one path at once:
// one of the files stays, whole. Not thread-safe.
//
//   auto file = OutputFile::Create(path, token);  // Early: says at once if it cannot be written.
//   (*file)->Write(bytes);
//   (*file)->Commit();
class OutputFile {
 public:
  // Opens `path` for writing. Errors are FileErrors.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path,
                                                            const CancellationToken& token);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Writes `bytes`, all there are, and brings them to the disk. CANCELLED if the token is.
  absl::Status Write(absl::string_view bytes);

  // Gives the file its name. REQUIRES: Write succeeded.
  absl::Status Commit();

  // True if Write shows at once, and cannot be taken back.
  bool direct() const { return !pending_.has_value(); }

 private:
  OutputFile(std::string path, const CancellationToken& token)
      : path_(std::move(path)), token_(token) {}
  absl::Status Begin();
  int fd() const { return direct() ? fd_ : pending_->fd(); }

  std::string path_;  // As given, or what that links to.
  int fd_ = -1;       // Of what is written directly.
  // Of a file: where it is to be, and with which mode.
  Folder folder_;
  std::optional<PendingFile> pending_;
  mode_t mode_ = 0;
  const CancellationToken token_;
};

// One OutputFile per path that is not empty, in order; the first error where one cannot be opened.
absl::StatusOr<std::vector<std::unique_ptr<OutputFile>>> CreateOutputs(
    const std::vector<std::string>& paths, const CancellationToken& token);

// Writes contents[i] to outputs[i] and commits them: what cannot be taken back is written last, and
// no file gets its name before all are written. REQUIRES: as many contents as outputs.
absl::Status WriteOutputs(const std::vector<std::unique_ptr<OutputFile>>& outputs,
                          const std::vector<std::string>& contents);

// For binary output, `what`: CONFLICTING_OPTIONS if `path` is standard output and that is a
// terminal.
absl::Status CheckNotBinaryOnTerminal(const std::string& path, absl::string_view what = "graph");

// Creates `path`, writes `bytes` and commits it. Not cancelled: for who bounds it otherwise.
absl::Status WriteUserFile(const std::string& path, absl::string_view bytes);

// Whether both paths name one file, existing or not; "-" is no file.
bool SameFile(const std::string& a, const std::string& b);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_OUTPUT_FILE_H_
