// A library that uses libspillway_client.so, to be loaded in any order.
#include "spillway/client.h"
#include "spillway/local_connection.h"

// 0: the client works, and gives the core's error.
extern "C" int use_client() {
  const spillway::Client client(spillway::MakeLocalConnection());
  const auto response = client.Rewrite("", spillway::v1::RewriteOptions());
  return spillway::ErrorInfoOf(response.status()).reason() == "EMPTY_GRAPH" ? 0 : 1;
}
