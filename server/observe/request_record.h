// The record of an ended request: the log line `request` and the journal line, which have the same
// fields under the same names (rewrite_core/base/journal_fields.h). Unknown fields are left out.
// README.md has the table of fields.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_SERVER_OBSERVE_REQUEST_RECORD_H_
#define SPILLWAY_SERVER_OBSERVE_REQUEST_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/caller.h"
#include "server/base/logging.h"
#include "server/base/request_id.h"
#include "server/observe/metrics.h"
#include "server/observe/rewrite_record.h"
#include "spillway/v1/error.pb.h"
#include "spillway/v1/report.pb.h"

namespace spillway::server {

struct RequestRecord {
  Method method = Method::kRewrite;
  v1::Strategy strategy = v1::STRATEGY_UNSPECIFIED;
  absl::StatusCode code = absl::StatusCode::kOk;  // As the caller saw it.
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  std::string error;  // The message, which names nodes. Empty: none.
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
  absl::Duration duration;
  Caller caller;
  std::string caller_name;  // From --access-file; empty: unknown.
  std::string id;
  std::string traceparent;
  JobNames job;
  std::optional<RewriteRecord> rewrite;
};

// Returns the fields for the log.
LogFields FieldsOf(const RequestRecord& record);

// Returns the journal line of a request that ended at `end`: one JSON object in ASCII without a
// line end. It has all fields except the error message, which names nodes.
std::string JournalLine(const RequestRecord& record, absl::Time end);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_OBSERVE_REQUEST_RECORD_H_
