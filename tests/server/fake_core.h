// Stand-ins for core::Rewrite.
#ifndef SPILLWAY_TESTS_SERVER_FAKE_CORE_H_
#define SPILLWAY_TESTS_SERVER_FAKE_CORE_H_

#include <atomic>

#include "server/base/options.h"

namespace spillway::server {

// Answers with the unchanged graph and a report with figures that no two fields share.
absl::StatusOr<v1::RewriteResponse> FakeRewrite(absl::string_view graph_def,
                                                const v1::RewriteOptions& options,
                                                const v1::Limits& limits,
                                                const core::StopToken& stop,
                                                core::PlanReuse* reuse);

// A core that holds every rewrite until it is opened or the rewrite is stopped. Thread-safe; must
// outlive the server.
class Gate {
 public:
  ~Gate() { Open(); }

  RewriteFunction AsFunction();
  void Open();

  int running() const { return running_; }
  // Rewrites that ended because their stop token fired.
  int stopped() const { return stopped_; }

 private:
  std::atomic<int> running_{0};
  std::atomic<int> stopped_{0};
  std::atomic<bool> open_{false};
};

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_FAKE_CORE_H_
