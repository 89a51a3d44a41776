// Builds the request: RewriteOptions from the settings, the graph and the machine.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REQUEST_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REQUEST_H_

#include <string>

#include "client_lib/tensorflow_plugin/graph_facts.h"
#include "client_lib/tensorflow_plugin/library.h"
#include "client_lib/tensorflow_plugin/settings.h"

namespace spillway::tensorflow_plugin {

// Returns a serialized RewriteOptions, or "" on failure, with a sentence that says what to set in
// `*problem`.
std::string MakeOptions(const Library& library, const Settings& settings, const GraphFacts& facts,
                        std::string* problem);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REQUEST_H_
