// What Spillway is asked for: RewriteOptions from the settings and from what is known of the graph
// and the machine.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REQUEST_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REQUEST_H_

#include <string>

#include "client_lib/tensorflow_plugin/graph_facts.h"
#include "client_lib/tensorflow_plugin/library.h"
#include "client_lib/tensorflow_plugin/settings.h"

namespace spillway::tensorflow_plugin {

// A serialized RewriteOptions. If there is none, "" and `*problem` is a sentence that says what to
// set.
std::string MakeOptions(const Library& library, const Settings& settings, const GraphFacts& facts,
                        std::string* problem);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REQUEST_H_
