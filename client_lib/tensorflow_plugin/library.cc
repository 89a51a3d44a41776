#include "client_lib/tensorflow_plugin/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>

namespace spillway::tensorflow_plugin {
namespace {

constexpr char kName[] = "libspillway.so.0";
constexpr char kVariable[] = "SPILLWAY_LIBRARY";

// The folder of this plug-in; "" if the loader does not know it.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&LoadLibrary), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

// The library, or null and dlerror()'s sentence.
void* Open(std::string* error) {
  const int mode = RTLD_NOW | RTLD_LOCAL;
  if (const char* given = std::getenv(kVariable); given != nullptr && *given != '\0') {
    void* const library = dlopen(given, mode);
    if (library == nullptr) *error = dlerror();
    return library;
  }
  if (void* const library = dlopen(kName, mode | RTLD_NOLOAD)) return library;
  const std::string folder = OwnFolder();
  for (const std::string& place : {folder + "/" + kName, folder + "/../spillway/lib/" + kName}) {
    if (folder.empty() || access(place.c_str(), F_OK) != 0) continue;
    void* const library = dlopen(place.c_str(), mode);
    if (library == nullptr) *error = dlerror();
    return library;
  }
  void* const library = dlopen(kName, mode);
  if (library == nullptr) *error = dlerror();
  return library;
}

struct Loaded {
  Library library = {};
  std::string problem;
};

Loaded Load() {
  Loaded loaded;
  std::string error;
  void* const handle = Open(&error);
  if (handle == nullptr) {
    loaded.problem = "the plug-in cannot load Spillway's library (" + error +
                     "); install the package spillway-lms of the same version beside it, or set " +
                     kVariable + " to a " + kName;
    return loaded;
  }
  std::string missing;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(handle, name));
    if (*function == nullptr && missing.empty()) missing = name;
  };
  Library& l = loaded.library;
  find("spillway_status_code", &l.status_code);
  find("spillway_status_message", &l.status_message);
  find("spillway_status_reason", &l.status_reason);
  find("spillway_status_free", &l.status_free);
  find("spillway_buffer_data", &l.buffer_data);
  find("spillway_buffer_size", &l.buffer_size);
  find("spillway_buffer_free", &l.buffer_free);
  find("spillway_client_options_new", &l.client_options_new);
  find("spillway_client_options_free", &l.client_options_free);
  find("spillway_client_options_set_target", &l.client_options_set_target);
  find("spillway_client_options_set_tls", &l.client_options_set_tls);
  find("spillway_client_options_set_token_file", &l.client_options_set_token_file);
  find("spillway_client_new", &l.client_new);
  find("spillway_client_free", &l.client_free);
  find("spillway_call_new", &l.call_new);
  find("spillway_call_free", &l.call_free);
  find("spillway_call_set_timeout_ms", &l.call_set_timeout_ms);
  find("spillway_call_set_token", &l.call_set_token);
  find("spillway_rewrite_graph", &l.rewrite_graph);
  find("spillway_text", &l.text);
  find("spillway_find_gpu_memory", &l.find_gpu_memory);
  find("spillway_message_from_json", &l.message_from_json);
  find("spillway_message_to_json", &l.message_to_json);
  if (!missing.empty()) {
    loaded.problem = std::string(kName) + " has no function " + missing +
                     ", so it is older than the plug-in; install both of the same version";
  }
  return loaded;
}

}  // namespace

const Library* LoadLibrary(std::string* problem) {
  static const Loaded* const loaded = new Loaded(Load());
  *problem = loaded->problem;
  return problem->empty() ? &loaded->library : nullptr;
}

}  // namespace spillway::tensorflow_plugin
