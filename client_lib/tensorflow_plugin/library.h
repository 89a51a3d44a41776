// Spillway's library, libspillway.so.0. It is loaded when the first graph is planned, not linked: a
// missing library must not prevent TensorFlow from being imported. libspillway.so itself keeps its
// protobuf apart from TensorFlow's (client_lib/c_api/load_shared.cc).
//
// Search order: the file that SPILLWAY_LIBRARY names; a copy that the process has already loaded;
// beside the plug-in, and in the Python package `spillway` beside its folder, where wheels install
// it; the system's loader path. The Python package uses the same file, so the process has a single
// copy of Spillway.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LIBRARY_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LIBRARY_H_

#include <string>

#include "spillway/spillway.h"

namespace spillway::tensorflow_plugin {

// The functions that the plug-in calls, each with the contract of its namesake in spillway.h.
struct Library {
  decltype(&spillway_status_code) status_code;
  decltype(&spillway_status_message) status_message;
  decltype(&spillway_status_reason) status_reason;
  decltype(&spillway_status_free) status_free;
  decltype(&spillway_buffer_data) buffer_data;
  decltype(&spillway_buffer_size) buffer_size;
  decltype(&spillway_buffer_free) buffer_free;
  decltype(&spillway_client_options_new) client_options_new;
  decltype(&spillway_client_options_free) client_options_free;
  decltype(&spillway_client_options_set_target) client_options_set_target;
  decltype(&spillway_client_options_set_tls) client_options_set_tls;
  decltype(&spillway_client_options_set_token_file) client_options_set_token_file;
  decltype(&spillway_client_new) client_new;
  decltype(&spillway_client_free) client_free;
  decltype(&spillway_call_new) call_new;
  decltype(&spillway_call_free) call_free;
  decltype(&spillway_call_set_timeout_ms) call_set_timeout_ms;
  decltype(&spillway_call_set_token) call_set_token;
  decltype(&spillway_rewrite_graph) rewrite_graph;
  decltype(&spillway_text) text;
  decltype(&spillway_find_gpu_memory) find_gpu_memory;
  decltype(&spillway_message_from_json) message_from_json;
  decltype(&spillway_message_to_json) message_to_json;
};

// Returns the library, loaded once, or null if it cannot be loaded, with a sentence that says why
// in `*problem`.
const Library* LoadLibrary(std::string* problem);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LIBRARY_H_
