// Internal. Names on the wire that generated code does not provide.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_SERVICE_NAMES_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_SERVICE_NAMES_H_

namespace spillway::internal {

// The version of the API that this client speaks.
inline constexpr char kApiPackage[] = "spillway.v1";

// The name under which a server reports the health of RewriteService.
inline constexpr char kRewriteService[] = "spillway.v1.RewriteService";

// The method of grpc.health.v1.
inline constexpr char kHealthCheckMethod[] = "/grpc.health.v1.Health/Check";

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_SERVICE_NAMES_H_
