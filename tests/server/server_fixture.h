// A server in this process with a client connected to it.
#ifndef SPILLWAY_TESTS_SERVER_SERVER_FIXTURE_H_
#define SPILLWAY_TESTS_SERVER_SERVER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/server.h"
#include "tests/server/http_get.h"
#include "tests/server/manual_clock.h"
#include "tests/server/test_client.h"

namespace spillway::server {

class ServerFixture : public ::testing::Test {
 protected:
  // Starts, or restarts, with `options`.
  void Start(const Options& options) {
    client_.reset();
    server_.reset();
    absl::StatusOr<std::unique_ptr<Server>> server = Server::BuildAndStart(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = std::make_unique<TestClient>(address());
  }

  void SetUp() override { Start(TestOptions()); }

  // After every test, in any case: nothing is held.
  void TearDown() override {
    if (server_ != nullptr) {
      EXPECT_TRUE(NothingInFlight());
    }
  }

  bool NothingInFlight() const {
    return Eventually([&] {
      return server_->inflight_bytes() == 0 && server_->memory_bytes() == 0 &&
             server_->inflight_requests() == 0 && Metric("spillway_inflight_bytes") == 0 &&
             Metric("spillway_inflight_requests") == 0 && Metric("spillway_queued_requests") == 0;
    });
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", server_->port()); }
  std::string Scrape() const { return server_->Scrape(); }
  double Metric(const std::string& series) const { return Sample(Scrape(), series); }

  // Requests that ended so.
  double Requests(const std::string& method, const std::string& code,
                  const std::string& strategy = "scope") const {
    return Metric(absl::StrCat("spillway_requests_total{code=\"", code, "\",method=\"", method,
                               "\",strategy=\"", strategy, "\"}"));
  }

  // Requests whose deadline passed or that were cancelled. If a deadline passes, which of both the
  // server sees depends on whose clock is first; each is right.
  double EndedByCaller(const std::string& method) const {
    return Requests(method, "DEADLINE_EXCEEDED") + Requests(method, "CANCELLED");
  }

  ManualClock clock_;  // For options.clock.
  std::unique_ptr<Server> server_;
  std::unique_ptr<TestClient> client_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_SERVER_FIXTURE_H_
