#include "client_lib/tensorflow_plugin/request.h"

#include "client_lib/tensorflow_plugin/owner.h"
#include "nlohmann/json.hpp"

namespace spillway::tensorflow_plugin {
namespace {

using nlohmann::json;

// The strategy, of those in the oneof RewriteOptions.strategy, that needs no budget.
constexpr char kWithoutBudget[] = "scope";

// The object at `key`, made if missing.
json& ObjectAt(json& parent, const char* key) {
  json& child = parent[key];
  if (!child.is_object()) child = json::object();
  return child;
}

// The memory of a GPU, from the settings or nvidia-smi. False: neither has it.
bool FillMemory(const Library& library, json& options) {
  json& hardware = ObjectAt(ObjectAt(options, "step"), "hardware");
  if (hardware.contains("gpu_memory_bytes") || hardware.contains("preset")) return true;
  int64_t bytes = 0;
  if (!TakeMessage(library, library.find_gpu_memory(&bytes)).empty() || bytes == 0) {
    return options.contains(kWithoutBudget);
  }
  hardware["gpu_memory_bytes"] = bytes;
  hardware["gpu_memory_source"] = "MEMORY_SOURCE_NVIDIA_SMI";
  return true;
}

// A CPU device with the job, replica and task of the graph's: the graph is placed already, and a
// node without a full name could not be.
std::string FullName(const std::string& device, const GraphFacts& facts) {
  if (device.find("/job:") != device.npos || facts.devices.empty()) return device;
  const std::string task(TaskOf(*facts.devices.begin()));
  return task + (device.find('/') == 0 ? device : "/device:" + device);
}

}  // namespace

std::string MakeOptions(const Library& library, const Settings& settings, const GraphFacts& facts,
                        std::string* problem) {
  json options = json::object();
  if (!settings.options_json.empty()) options = json::parse(settings.options_json);
  if (!settings.strategy.empty()) ObjectAt(options, settings.strategy.c_str());
  json& step = ObjectAt(options, "step");
  json& hardware = ObjectAt(step, "hardware");
  if (settings.batch_size > 0) step["batch_size"] = settings.batch_size;
  if (!settings.hardware.empty()) hardware["preset"] = settings.hardware;
  if (settings.gpu_memory_bytes > 0) hardware["gpu_memory_bytes"] = settings.gpu_memory_bytes;
  if (!FillMemory(library, options)) {
    *problem =
        "the GPU's memory size is not known (nvidia-smi does not report it); set "
        "SPILLWAY_GPU_MEMORY_BYTES (e.g. 16GiB) or SPILLWAY_HARDWARE";
    return "";
  }
  if (!step.contains("targets")) step["targets"] = facts.targets;
  if (!settings.cpu_device.empty()) options["cpu_device"] = FullName(settings.cpu_device, facts);
  if (options.contains("budget") && options["budget"].contains("offload") &&
      options["budget"]["offload"] != "OFFLOAD_OFF") {
    *problem =
        "the plug-in cannot keep state in host memory (offload): the variables exist already, "
        "where TensorFlow has placed them; rewrite the GraphDef before its session starts";
    return "";
  }
  // TensorFlow has already inlined calls.
  if (!options.contains("inline_calls")) options["inline_calls"] = "INLINE_CALLS_NEVER";
  if (settings.report_dir.empty()) options["decision_detail"] = "DECISION_DETAIL_NONE";
  // The environment may have any bytes; the library names unusable values.
  const std::string text = options.dump(-1, ' ', false, json::error_handler_t::replace);
  spillway_buffer* message = nullptr;
  *problem = TakeMessage(
      library, library.message_from_json("RewriteOptions", text.data(), text.size(), &message));
  if (!problem->empty()) {
    *problem = "the settings (SPILLWAY_STRATEGY, SPILLWAY_OPTIONS) are not valid RewriteOptions: " +
               *problem;
    return "";
  }
  const Owner<spillway_buffer> owner(message, library.buffer_free);
  return std::string(BytesOf(library, message));
}

}  // namespace spillway::tensorflow_plugin
