// The TensorFlow functions that the plug-in calls. They are looked up in the library that called
// the plug-in, not linked: if a TensorFlow lacks one of them, it must still be importable.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_TENSORFLOW_API_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_TENSORFLOW_API_H_

#include <set>
#include <string>

#include "tensorflow/c/experimental/grappler/grappler.h"

namespace spillway::tensorflow_plugin {

// Looks them up, given an address in TensorFlow's code. Returns "" if the plug-in works with this
// TensorFlow; otherwise a sentence that says why not.
std::string FindTensorFlow(const void* caller, const TP_OptimizerRegistrationParams& params);

// Return the nodes that must be kept (fed, fetched, with side effects), and the results. Empty if
// TensorFlow does not provide them. REQUIRES: FindTensorFlow has succeeded.
std::set<std::string> KeptNodes(const TF_GrapplerItem* item);
std::set<std::string> FetchedNodes(const TF_GrapplerItem* item);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_TENSORFLOW_API_H_
