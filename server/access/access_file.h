// Reads and validates the file that says who may call (access_file.proto).
//
// Every error is FAILED_PRECONDITION, one sentence with the flag, the file and, if any, the line.
// It never quotes the file: a token may have been written there instead of its digest.
//
// Thread safety: pure functions except for the file system.
#ifndef SPILLWAY_SERVER_ACCESS_ACCESS_FILE_H_
#define SPILLWAY_SERVER_ACCESS_ACCESS_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/access/access_file.pb.h"

namespace spillway::server {

// Default of Quota.burst_seconds.
inline constexpr double kDefaultBurstSeconds = 10;

// Returns the content of a small file (rewrite_core/base/small_file.h).
absl::StatusOr<std::string> ReadAccessFile(const std::string& file);

// Parses `text`, the content of `file`.
absl::StatusOr<AccessFile> ParseAccessFile(const std::string& file, const std::string& text);

// Describes the callers for people: one line each, with how it is identified and its quotas.
std::string DescribeCallers(const AccessFile& access);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCESS_ACCESS_FILE_H_
