// Writes the program's output: all or nothing.
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

// An output that the command line names. The name is looked at once, when the value is made. A
// value.
class OutputPath {
 public:
  // None.
  OutputPath() = default;
  // Standard output for "-", none if `name` is empty, otherwise the file of that name. `flag`: the
  // flag that named it, for messages.
  OutputPath(const std::string& name,  // NOLINT(google-explicit-constructor): a name is an output.
             absl::string_view flag = "");

  bool given() const { return !name_.empty(); }
  bool is_standard_output() const { return is_standard_output_; }
  // As given.
  const std::string& name() const { return name_; }
  // Of a file: absolute, without symbolic links.
  const std::string& path() const { return path_; }
  const std::string& flag() const { return flag_; }

 private:
  std::string name_, path_, flag_;
  bool is_standard_output_ = false;
};

// One open output. A file is written and synced to disk without its name, or under a temporary one,
// and gets its name in Commit (pending_file.h): readers see the old file or the whole new one.
// Without a Commit nothing is left. Standard output ("-") and anything but a regular file
// (/dev/null, a pipe) is written directly. Symbolic links are followed, and a replaced file keeps
// its mode. Several processes, also on several machines, may write one path concurrently: one of
// the files remains, whole. Not thread-safe.
//
//   auto file = OutputFile::Create(path, token);  // Fails early if the path is not writable.
//   (*file)->Write(bytes);
//   (*file)->Commit();
class OutputFile {
 public:
  // Opens `output`, which must be given, for writing. Errors are FileErrors.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const OutputPath& output,
                                                            const CancellationToken& token);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Writes `bytes`, the whole content, and syncs them to disk. CANCELLED if the token is.
  absl::Status Write(absl::string_view bytes);

  // Gives the file its name. REQUIRES: Write succeeded.
  absl::Status Commit();

  // Whether Write takes effect immediately and cannot be undone.
  bool direct() const { return !pending_.has_value(); }

 private:
  OutputFile(std::string path, const CancellationToken& token)
      : path_(std::move(path)), token_(token) {}
  absl::Status Begin();
  int fd() const { return direct() ? fd_ : pending_->fd(); }

  std::string path_;  // As given, or its link target.
  int fd_ = -1;       // If written directly.
  // Of a file: its folder, and its mode.
  Folder folder_;
  std::optional<PendingFile> pending_;
  mode_t mode_ = 0;
  const CancellationToken token_;
};

// Creates an OutputFile for each output that is given, in order. Returns the first error.
absl::StatusOr<std::vector<std::unique_ptr<OutputFile>>> CreateOutputs(
    const std::vector<OutputPath>& outputs, const CancellationToken& token);

// Writes contents[i] to outputs[i] and commits them: direct outputs are written last, and no file
// gets its name before all are written. REQUIRES: as many contents as outputs.
absl::Status WriteOutputs(const std::vector<std::unique_ptr<OutputFile>>& outputs,
                          const std::vector<std::string>& contents);

// For binary output, named `what`: CONFLICTING_OPTIONS if it goes to standard output and that is a
// terminal.
absl::Status CheckNotBinaryOnTerminal(const OutputPath& output, absl::string_view what = "graph");

// Creates the output, writes `bytes` and commits it. Cannot be cancelled: the caller bounds it by
// other means.
absl::Status WriteUserFile(const OutputPath& output, absl::string_view bytes);

// Whether both are the same file, existing or not; standard output is not a file.
bool SameFile(const OutputPath& a, const OutputPath& b);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_OUTPUT_FILE_H_
