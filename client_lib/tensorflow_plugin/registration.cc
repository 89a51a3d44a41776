// TensorFlow's entry points: TF_InitGraph, once for each plug-in library it loads, and the
// optimizer for each graph that has a node on a device of the registered type
// (PluginGraphOptimizerRegistry::CreateOptimizers), last of all optimizers and twice
// (MetaOptimizer::OptimizeGraph in meta_optimizer.cc).
//
// No exception leaves, and no error: TensorFlow takes one from TF_InitGraph for a failed import.
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "client_lib/internal/tensorflow_settings.h"
#include "client_lib/tensorflow_plugin/log.h"
#include "client_lib/tensorflow_plugin/planner.h"
#include "client_lib/tensorflow_plugin/settings.h"
#include "client_lib/tensorflow_plugin/tensorflow_api.h"

namespace spillway::tensorflow_plugin {
namespace {

// The device type of this library. A library registers for one type, and a graph may lie on the GPU
// whole or in part: so two are built.
constexpr char kDeviceType[] = SPILLWAY_PLUGIN_DEVICE_TYPE;

// No device is of this type: so registered, the plug-in is never called. Each is another one, as no
// type may be registered twice. TensorFlow keeps the pointer.
const char* NoDeviceType() {
  static int count = 0;
  char* const name = new char[64];
  std::snprintf(name, 64, "SPILLWAY_OFF_%p_%d", static_cast<void*>(&count), ++count);
  return name;
}

// One optimizer, which TensorFlow makes for a graph and shows it twice.
void* Create() { return new ShownGraphs(); }
void Destroy(void* optimizer) { delete static_cast<ShownGraphs*>(optimizer); }

void Fill(const void* data, size_t size, TF_Buffer* out) {
  void* const copy = std::malloc(size == 0 ? 1 : size);
  if (copy == nullptr) return;  // An empty graph: TensorFlow continues with its own.
  std::memcpy(copy, data, size);
  out->data = copy;
  out->length = size;
  out->data_deallocator = [](void* bytes, size_t) { std::free(bytes); };
}

void Optimize(void* self, const TF_Buffer* graph, const TF_GrapplerItem* item, TF_Buffer* out,
              TF_Status*) {
  std::optional<std::string> planned;
  try {
    GraphToPlan to_plan;
    to_plan.graph = {static_cast<const char*>(graph->data), graph->length};
    to_plan.kept = KeptNodes(item);
    to_plan.fetched = FetchedNodes(item);
    planned = static_cast<ShownGraphs*>(self)->Plan(TheSettings(), kDeviceType, std::move(to_plan));
  } catch (const std::exception& error) {
    planned.reset();
    const std::string failure = std::string("unexpected failure: ") + error.what();
    if (TheSettings().fail_closed) FailClosed(failure + "; please report it");
    LogOnce(failure + "; the program runs without swaps. Please report it");
  }
  if (planned.has_value()) {
    Fill(planned->data(), planned->size(), out);
  } else {
    Fill(graph->data, graph->length, out);
  }
}

std::string FileName(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Whether another copy of this library was loaded before it: in TensorFlow's folder of plug-ins and
// by TF_PLUGGABLE_DEVICE_LIBRARY_PATH, say. TensorFlow ends a process in which two optimizers are
// registered for one type of device.
bool IsSecondCopy() {
  static bool registered = false;
  if (registered) return true;
  registered = true;
  internal::ReserveWorkspaceLimit();
  struct Search {
    const void* own;
    std::string name;
    bool own_seen = false, other_before = false;
  };
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&IsSecondCopy), &info) == 0) return false;
  Search search = {info.dli_fbase, FileName(info.dli_fname)};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* data) {
        auto* const s = static_cast<Search*>(data);
        // Libraries are listed in the order in which they were loaded.
        if (reinterpret_cast<const void*>(object->dlpi_addr) == s->own) s->own_seen = true;
        if (!s->own_seen && FileName(object->dlpi_name) == s->name) s->other_before = true;
        return 0;
      },
      &search);
  return search.other_before;
}

// Not of TheSettings(), which are read when there is a graph: a program may set some after its
// import of TensorFlow.
bool WantsSameBits() {
  try {
    const Settings settings = ReadSettings();
    return settings.enabled && settings.same_bits;
  } catch (const std::exception&) {
    return false;  // Problems are reported with the first graph.
  }
}

}  // namespace
}  // namespace spillway::tensorflow_plugin

extern "C" __attribute__((visibility("default"))) void TF_InitGraph(
    TP_OptimizerRegistrationParams* params, TF_Status*) {
  using namespace spillway::tensorflow_plugin;
  const bool again = IsSecondCopy();
  std::string problem;
  if (!again) problem = FindTensorFlow(__builtin_return_address(0), *params);
  // Both libraries find the same: one reports it.
  if (!problem.empty() && kDeviceType == std::string("CPU")) {
    Log(problem + "; the program runs without swaps");
  }
  // The struct sizes stay as TensorFlow has set them, and so do the toggles of its own optimizers,
  // except one. An optimizer is off if a plug-in or the session says so (BOTH_NOT_OFF in
  // meta_optimizer.cc), in each graph with a node on a device of the plug-in's type.
  if (!again && problem.empty() && WantsSameBits()) {
    params->optimizer_configs->arithmetic_optimization = TF_TriState_Off;
  }
  params->device_type = again || !problem.empty() ? NoDeviceType() : kDeviceType;
  params->optimizer->create_func = Create;
  params->optimizer->destroy_func = Destroy;
  params->optimizer->optimize_func = Optimize;
}
