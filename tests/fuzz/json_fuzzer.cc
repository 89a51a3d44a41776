// Any bytes as JSON for the C API and as input of the TensorFlow plug-in: the first byte chooses
// between a message in JSON, the plug-in's settings, and a graph from TensorFlow.
#include <stdlib.h>

#include <string>

#include "client_lib/tensorflow_plugin/graph_facts.h"
#include "client_lib/tensorflow_plugin/owner.h"
#include "client_lib/tensorflow_plugin/request.h"
#include "client_lib/tensorflow_plugin/settings.h"
#include "spillway/spillway.h"
#include "spillway/v1/options.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/scratch.h"

namespace spillway::testing {
namespace {

namespace plugin = ::spillway::tensorflow_plugin;

// Of spillway.h, in which all others are found.
constexpr const char* kMessages[] = {"RewriteOptions", "SimulateOptions", "ExploreOptions",
                                     "RewriteReport", "Plan"};

// Functions that settings call.
plugin::Library TheLibrary() {
  plugin::Library library = {};
  library.status_message = spillway_status_message;
  library.status_reason = spillway_status_reason;
  library.status_free = spillway_status_free;
  library.buffer_data = spillway_buffer_data;
  library.buffer_size = spillway_buffer_size;
  library.buffer_free = spillway_buffer_free;
  library.message_from_json = spillway_message_from_json;
  library.find_gpu_memory = [](int64_t* bytes) -> spillway_status* {
    *bytes = int64_t{16} << 30;
    return nullptr;
  };
  return library;
}

void ReadMessage(const std::string& text) {
  for (const char* name : kMessages) {
    spillway_buffer *message = nullptr, *json = nullptr;
    spillway_status* status = spillway_message_from_json(name, text.data(), text.size(), &message);
    const bool ok = status == nullptr;
    RequireNone(ok || *spillway_status_message(status) != '\0' ? "" : "no message");
    spillway_status_free(status);
    if (!ok) continue;
    status = spillway_message_to_json(name, spillway_buffer_data(message),
                                      spillway_buffer_size(message), &json);
    RequireNone(status == nullptr ? "" : spillway_status_message(status));
    spillway_buffer_free(json);
    spillway_buffer_free(message);
  }
}

void ReadSettings(const std::string& text) {
  static const Scratch scratch;
  setenv("SPILLWAY_SETTINGS", scratch.Write("settings.json", text).c_str(), 1);
  const plugin::Settings settings = plugin::ReadSettings();
  if (!settings.problem.empty()) return;
  plugin::GraphFacts facts;
  facts.devices = {"/job:localhost/replica:0/task:0/device:GPU:0"};
  std::string problem;
  const std::string options = plugin::MakeOptions(TheLibrary(), settings, facts, &problem);
  v1::RewriteOptions parsed;
  RequireNone(!problem.empty() || parsed.ParseFromString(options) ? "" : "no RewriteOptions");
}

void ReadGraph(const std::string& graph) {
  const plugin::GraphFacts facts = plugin::ReadGraph(graph, {"a", "b"}, {"b:0"});
  if (!facts.ok) return;
  const std::string moved = plugin::MoveNodes(graph, "CPU:0", "GPU:0");
  const plugin::GraphFacts of_moved = plugin::ReadGraph(moved, {"a", "b"}, {"b:0"});
  RequireNone(of_moved.ok && of_moved.node_count == facts.node_count &&
                      of_moved.targets == facts.targets
                  ? ""
                  : "moving its nodes changed the graph");
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  if (size == 0) return -1;  // Not for the corpus.
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      ReadMessage(bytes);
      break;
    case 1:
      ReadSettings(bytes);
      break;
    default:
      ReadGraph(bytes);
  }
  return 0;
}
