// Who may call: finds a caller's account in the file --access-file, which is reloaded when it
// changes.
//
// The file is checked on a call, at most once a second, and loaded if it is valid (access_file.h).
// While it is invalid, the previous callers stay in force and one log line says why. Running calls
// are not affected.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_ACCESS_ACCESS_LIST_H_
#define SPILLWAY_SERVER_ACCESS_ACCESS_LIST_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/access/access_file.pb.h"
#include "server/access/caller_account.h"
#include "server/access/credentials.h"
#include "server/base/clock.h"
#include "server/observe/metrics.h"

namespace spillway::server {

class AccessList {
 public:
  // `metrics` and `clock` must outlive it. Errors: those of access_file.h.
  static absl::StatusOr<std::unique_ptr<AccessList>> Load(const std::string& file, Metrics& metrics,
                                                          const Clock& clock);

  AccessList(const AccessList&) = delete;
  AccessList& operator=(const AccessList&) = delete;

  // Returns the caller's account. Error: UNAUTHENTICATED, UNKNOWN_CALLER.
  absl::StatusOr<std::shared_ptr<CallerAccount>> Find(const Credentials& shown);

  // Whether any caller has a token.
  bool takes_tokens() const { return !table()->tokens.empty(); }

  absl::Time now() const { return clock_.Now(); }

 private:
  using Account = std::shared_ptr<CallerAccount>;

  // The content of a file. Immutable.
  struct Table {
    std::vector<std::pair<std::string, Account>> tokens;  // By SHA-256.
    absl::flat_hash_map<std::string, Account> certificates;
    Account anybody;  // Null: none.
  };

  AccessList(std::string file, Metrics& metrics, const Clock& clock)
      : file_(std::move(file)), metrics_(metrics), clock_(clock) {}

  std::shared_ptr<const Table> table() const {
    const absl::MutexLock lock(&table_mu_);
    return table_;
  }
  void LookAtFile();
  absl::Status ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(file_mu_);
  void Take(const AccessFile& access) ABSL_EXCLUSIVE_LOCKS_REQUIRED(file_mu_);

  const std::string file_;
  Metrics& metrics_;
  const Clock& clock_;

  absl::Mutex file_mu_;
  absl::Time checked_at_ ABSL_GUARDED_BY(file_mu_);
  std::string text_ ABSL_GUARDED_BY(file_mu_);     // The last valid content.
  std::string warning_ ABSL_GUARDED_BY(file_mu_);  // The warning logged about the current file.
  std::map<std::string, Account> accounts_ ABSL_GUARDED_BY(file_mu_);  // By name.

  mutable absl::Mutex table_mu_;
  std::shared_ptr<const Table> table_ ABSL_GUARDED_BY(table_mu_);
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_ACCESS_ACCESS_LIST_H_
