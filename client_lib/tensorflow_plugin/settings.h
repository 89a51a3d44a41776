// What the user wants of the plug-in: from the environment, and from the file that
// SPILLWAY_SETTINGS names, a JSON object. The environment counts where both say something.
// README.md has the list.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_SETTINGS_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_SETTINGS_H_

#include <cstdint>
#include <string>

namespace spillway::tensorflow_plugin {

struct Settings {
  bool enabled = true;
  // A field of RewriteOptions.strategy; "": the default, or that of `options_json`.
  std::string strategy;
  // 0: not given.
  int64_t batch_size = 0;
  int64_t gpu_memory_bytes = 0;
  std::string hardware;
  // The rest of RewriteOptions, as a JSON object; "" for none.
  std::string options_json;
  // "": in this process.
  std::string server;
  std::string token, token_file;
  bool tls = false;
  std::string tls_ca, tls_cert, tls_key, tls_server_name;
  // As that of `spillway run`.
  int64_t timeout_s = 60;
  // End the process where a graph cannot be planned.
  bool fail_closed = false;
  // Where reports go; "": none is written.
  std::string report_dir;
  // The CPU device that stands for the GPU, and the one where its tensors wait: for trial runs
  // without a GPU.
  std::string gpu_stand_in, cpu_device;

  // One sentence that names a setting that cannot be used; "": all can. Then nothing is planned,
  // and `fail_closed` is as far as it is known.
  std::string problem;
};

// Reads all of them. Does not ask whether values that only Spillway's library knows (a strategy's
// name, a preset's) exist.
Settings ReadSettings();

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_SETTINGS_H_
