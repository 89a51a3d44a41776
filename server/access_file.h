// The file that says who may call (access_file.proto): read, and checked as a whole.
//
// Every error is FAILED_PRECONDITION, one sentence with the flag, the file and, where there is one,
// the line. It never quotes what stands there: that may be a token that somebody wrote instead of
// its digest.
//
// Thread safety: pure functions but for the file system.
#ifndef SPILLWAY_SERVER_ACCESS_FILE_H_
#define SPILLWAY_SERVER_ACCESS_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/access_file.pb.h"

namespace spillway::server {

// Of a quota's burst_seconds.
inline constexpr double kDefaultBurstSeconds = 10;

// What a regular file of at most 1 MiB holds.
absl::StatusOr<std::string> ReadAccessFile(const std::string& file);

// What `text`, the content of `file`, says.
absl::StatusOr<AccessFile> ParseAccessFile(const std::string& file, const std::string& text);

// For people: a line for each caller, with how it is known and its quotas.
std::string DescribeCallers(const AccessFile& access);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCESS_FILE_H_
