// The functions of TensorFlow that the plug-in calls. They are found in the library that called the
// plug-in, not linked: a plug-in that misses one of them must not keep that TensorFlow from being
// imported.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_TENSORFLOW_API_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_TENSORFLOW_API_H_

#include <set>
#include <string>

#include "tensorflow/c/experimental/grappler/grappler.h"

namespace spillway::tensorflow_plugin {

// Finds them, given an address in TensorFlow's code. "" if the plug-in can work with this
// TensorFlow; otherwise one sentence that says why not.
std::string FindTensorFlow(const void* caller, const TP_OptimizerRegistrationParams& params);

// Both after FindTensorFlow has succeeded: the nodes that have to stay (fed, fetched, with
// effects), and the results. Empty if TensorFlow cannot say.
std::set<std::string> KeptNodes(const TF_GrapplerItem* item);
std::set<std::string> FetchedNodes(const TF_GrapplerItem* item);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_TENSORFLOW_API_H_
