#include "client_lib/tensorflow_plugin/tensorflow_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <vector>

namespace spillway::tensorflow_plugin {
namespace {

// The first release that this plug-in is tested with.
constexpr int kMajor = 2, kMinor = 15;

struct Api {
  decltype(&TF_Version) version;
  decltype(&TF_NewStatus) new_status;
  decltype(&TF_DeleteStatus) delete_status;
  decltype(&TF_GetCode) get_code;
  decltype(&TF_GetNodesToPreserveListSize) kept_size;
  decltype(&TF_GetNodesToPreserveList) kept;
  decltype(&TF_GetFetchNodesListSize) fetched_size;
  decltype(&TF_GetFetchNodesList) fetched;
};
Api api = {};

template <typename Function>
void Find(void* library, const char* name, Function* function, std::string* missing) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr && missing->empty()) *missing = name;
}

template <typename Size, typename List>
std::set<std::string> Names(const TF_GrapplerItem* item, Size size, List list) {
  std::set<std::string> names;
  TF_Status* const status = api.new_status();
  int count = 0;
  size_t bytes = 0;
  size(item, &count, &bytes, status);
  if (api.get_code(status) == TF_OK && count > 0) {
    std::vector<char*> values(count);
    std::vector<size_t> lengths(count);
    std::vector<char> storage(bytes + 1);
    list(item, values.data(), lengths.data(), count, storage.data(), bytes, status);
    if (api.get_code(status) == TF_OK) {
      for (int i = 0; i < count; ++i) names.emplace(values[i], lengths[i]);
    }
  }
  api.delete_status(status);
  return names;
}

}  // namespace

std::string FindTensorFlow(const void* caller, const TP_OptimizerRegistrationParams& params) {
  const std::string needs = "; the plug-in needs TensorFlow " + std::to_string(kMajor) + "." +
                            std::to_string(kMinor) + " or later of version " +
                            std::to_string(kMajor);
  Dl_info info;
  void* library = nullptr;
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr) {
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  }
  if (library == nullptr) return "the plug-in does not know which library has called it" + needs;
  std::string missing;
  Find(library, "TF_Version", &api.version, &missing);
  Find(library, "TF_NewStatus", &api.new_status, &missing);
  Find(library, "TF_DeleteStatus", &api.delete_status, &missing);
  Find(library, "TF_GetCode", &api.get_code, &missing);
  Find(library, "TF_GetNodesToPreserveListSize", &api.kept_size, &missing);
  Find(library, "TF_GetNodesToPreserveList", &api.kept, &missing);
  Find(library, "TF_GetFetchNodesListSize", &api.fetched_size, &missing);
  Find(library, "TF_GetFetchNodesList", &api.fetched, &missing);
  int major = 0, minor = 0;
  if (api.version != nullptr && std::sscanf(api.version(), "%d.%d", &major, &minor) == 2 &&
      (major != kMajor || minor < kMinor)) {
    return std::string("this is TensorFlow ") + api.version() + needs;
  }
  if (!missing.empty()) return "this TensorFlow has no function " + missing + needs;
  // The structs grow at their ends (grappler.h, "struct_size").
  if (params.struct_size < TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE ||
      params.major_version != GO_MAJOR || params.optimizer == nullptr ||
      params.optimizer->struct_size < TP_OPTIMIZER_STRUCT_SIZE) {
    return std::string("the interface for graph optimizers of TensorFlow ") + api.version() +
           " differs; build the plug-in with its headers";
  }
  return "";
}

std::set<std::string> KeptNodes(const TF_GrapplerItem* item) {
  return Names(item, api.kept_size, api.kept);
}

std::set<std::string> FetchedNodes(const TF_GrapplerItem* item) {
  return Names(item, api.fetched_size, api.fetched);
}

}  // namespace spillway::tensorflow_plugin
