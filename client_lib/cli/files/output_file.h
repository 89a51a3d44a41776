// Writing the program's output: all of it or nothing.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FILES_OUTPUT_FILE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FILES_OUTPUT_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spillway/cancellation.h"

namespace spillway::cli {

// One output. A file is written under a temporary name beside its final one, brought to the disk,
// and renamed by Commit: whoever looks sees the old file or the whole new one. Without a Commit
// nothing is left. Standard output ("-") and what is no regular file (/dev/null, a pipe) are
// written directly. A symbolic link is followed. Not thread-safe.
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
  bool direct() const { return temporary_path_.empty(); }

 private:
  OutputFile(std::string path, const CancellationToken& token)
      : path_(std::move(path)), token_(token) {}
  absl::Status OpenTemporary(unsigned mode);

  std::string path_;            // As given, or what that links to.
  std::string temporary_path_;  // Empty if written directly.
  int fd_ = -1;
  const CancellationToken token_;
};

// One OutputFile per path that is not empty, in order; the first error where one cannot be opened.
absl::StatusOr<std::vector<std::unique_ptr<OutputFile>>> CreateOutputs(
    const std::vector<std::string>& paths, const CancellationToken& token);

// Writes contents[i] to outputs[i] and commits them: what cannot be taken back is written last, and
// no file gets its name before all are written. REQUIRES: as many contents as outputs.
absl::Status WriteOutputs(const std::vector<std::unique_ptr<OutputFile>>& outputs,
                          const std::vector<std::string>& contents);

// CONFLICTING_OPTIONS if `path` is standard output, that is a terminal, and what would be written
// there, `what`, is no text.
absl::Status CheckNotBinaryOnTerminal(const std::string& path, bool is_text,
                                      absl::string_view what = "graph");

// Whether both paths name one file, existing or not; "-" is no file.
bool SameFile(const std::string& a, const std::string& b);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FILES_OUTPUT_FILE_H_
