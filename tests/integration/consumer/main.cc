// Rewrites a graph file with the C++ client and prints the result.
#include <fstream>
#include <iostream>
#include <sstream>

#include "spillway/client.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"
#include "spillway/v1/inspect.pb.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const spillway::Client client(spillway::MakeLocalConnection());
  spillway::v1::RewriteOptions options;
  options.mutable_scope();  // Which swaps something also in a graph that fits.
  const auto response = client.Rewrite(bytes.str(), options);
  if (!response.ok()) {
    std::cerr << response.status() << " " << spillway::ErrorInfoOf(response.status()).reason();
    return 1;
  }
  const auto original = client.Strip(response->graph_def());
  if (!original.ok() || original->graph_def() != bytes.str()) return 1;
  // Links gRPC, too.
  spillway::CallOptions call;
  call.timeout = absl::ZeroDuration();
  spillway::RemoteOptions remote;
  remote.target = "127.0.0.1:1";
  const spillway::Client far(spillway::MakeRemoteConnection(remote));
  if (!absl::IsDeadlineExceeded(far.GetCapabilities(call).status())) return 1;
  std::cout << "tensors swapped: " << response->report().swaps_size() << "\n";
}
