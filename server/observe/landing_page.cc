#include "server/observe/landing_page.h"

#include <CivetServer.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/capabilities.h"

namespace spillway::server {
namespace {

// Contains nothing of the request or the options: anyone who reaches the port may read it.
std::string Page() {
  return absl::StrCat(
      "spillwayd ", core::Version(),
      ": inserts swap nodes into TensorFlow graphs, by gRPC on other ports (--listen).\n"
      "\n"
      "/metrics   metrics for Prometheus\n"
      "\n"
      "Is it healthy? `spillway health --server HOST:PORT` asks a port of --listen by\n"
      "grpc.health.v1.Health, as a gRPC probe of Kubernetes does.\n");
}

// Returns 0 to leave a request to the handlers of the exposer, which know only the addresses of
// metrics.
int BeginRequest(mg_connection* connection) {
  const mg_request_info& request = *mg_get_request_info(connection);
  if (absl::string_view(request.request_method) != "GET" ||
      absl::string_view(request.local_uri) != "/") {
    return 0;
  }
  const std::string page = Page();
  mg_send_http_ok(connection, "text/plain; charset=utf-8", static_cast<long long>(page.size()));
  mg_write(connection, page.data(), page.size());
  return 200;
}

}  // namespace

const CivetCallbacks& LandingPage() {
  static const CivetCallbacks callbacks = [] {
    CivetCallbacks made;
    made.begin_request = BeginRequest;
    return made;
  }();
  return callbacks;
}

}  // namespace spillway::server
