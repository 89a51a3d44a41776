// Internal. One call of grpc.health.v1.Health/Check.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_HEALTH_CHECK_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_HEALTH_CHECK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client_lib/internal/remote_call.h"
#include "grpcpp/channel.h"
#include "spillway/connection.h"

namespace spillway::internal {

// Asks the server behind `channel`, named `target` in errors, for the health of `service`.
absl::StatusOr<ServingStatus> CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                                          absl::string_view service, absl::string_view target,
                                          const CallLimits& limits, const CallHeaders& headers);

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_HEALTH_CHECK_H_
