// A Connection for the tests of programs that use this library. Needs GoogleMock, which the library
// itself does not.
//
//   auto connection = std::make_shared<spillway::testing::MockConnection>();
//   EXPECT_CALL(*connection, Rewrite(_, _, _)).WillOnce(Return(absl::UnavailableError("down")));
//   Trainer trainer{spillway::Client(connection)};
//   EXPECT_FALSE(trainer.Prepare());
#ifndef SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_TESTING_MOCK_CONNECTION_H_
#define SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_TESTING_MOCK_CONNECTION_H_

#include "gmock/gmock.h"
#include "spillway/connection.h"

namespace spillway::testing {

class MockConnection : public Connection {
 public:
  MOCK_METHOD(absl::StatusOr<v1::RewriteResponse>, Rewrite,
              (absl::string_view graph_def, const v1::RewriteOptions& options,
               const CallOptions& call),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::GraphSummary>, Inspect,
              (absl::string_view graph_def, const v1::InspectOptions& options,
               const TensorsCallback& on_tensors, const CallOptions& call),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::SimulateReport>, Simulate,
              (absl::string_view graph_def, const v1::SimulateOptions& options,
               const CallOptions& call),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::ExploreReport>, Explore,
              (absl::string_view graph_def, const v1::ExploreOptions& options,
               const SizeCallback& on_size, const CallOptions& call),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::GraphDiff>, Diff,
              (absl::string_view graph_a, absl::string_view graph_b, const CallOptions& call),
              (override));
  MOCK_METHOD(absl::StatusOr<v1::GetCapabilitiesResponse>, GetCapabilities,
              (const CallOptions& call), (override));
  MOCK_METHOD(absl::StatusOr<ServingStatus>, CheckHealth,
              (absl::string_view service, const CallOptions& call), (override));
};

}  // namespace spillway::testing

#endif  // SPILLWAY_CLIENT_LIB_INCLUDE_SPILLWAY_TESTING_MOCK_CONNECTION_H_
