// The plug-in's settings, from the environment and from the file that SPILLWAY_SETTINGS names, a
// JSON object. The environment takes precedence. README.md lists the settings.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_SETTINGS_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_SETTINGS_H_

#include <cstdint>
#include <string>

namespace spillway::tensorflow_plugin {

struct Settings {
  bool enabled = true;
  // A field of RewriteOptions.strategy; "": the default, or the one in `options_json`.
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
  // Like that of `spillway run`.
  int64_t timeout_s = 60;
  // Whether Grappler's arithmetic optimizations are off. They look at how many nodes read a tensor,
  // so that they may compute other last bits in a planned graph. Read when TensorFlow is imported.
  bool same_bits = false;
  // Whether to end the process if a graph cannot be planned.
  bool fail_closed = false;
  // The folder for reports; "": none is written.
  std::string report_dir;
  // For trial runs without a GPU: the CPU device that stands for the GPU, and the one that holds
  // its swapped-out tensors.
  std::string gpu_stand_in, cpu_device;

  // A sentence that names an invalid setting; "": all are valid. If set, nothing is planned, and
  // `fail_closed` is set as far as it could be read.
  std::string problem;
};

// Reads all settings. Does not check values that only Spillway's library knows (names of strategies
// and presets).
Settings ReadSettings();

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_SETTINGS_H_
