// A function's body written as a GraphDef, so that all that reads graphs can read it.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FUNCTION_BODY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FUNCTION_BODY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

struct FunctionBody {
  std::string graph_def;                     // Nodes `_Arg` first, one per argument, in order.
  std::vector<absl::string_view> arguments;  // Their names, views into the FunctionDef.
  std::vector<std::string> results;          // `node` or `node:port`, in order.
};

// The names of a signature's arguments of one kind (a field of OpDef); false if one is a list of
// tensors.
bool ReadArguments(absl::string_view signature, uint32_t field,
                   std::vector<absl::string_view>* names);

// The FunctionDef of that name; empty if the library has none.
using FunctionFinder = std::function<absl::string_view(absl::string_view name)>;

// Inputs are spelled as in a graph (`node:port` for `node:output:index`); all else is as it was.
// False if something cannot be told: arguments that are lists of tensors, outputs that nobody
// knows; or if the call must end (ask `stop`). Untrusted bytes: what is malformed is left to
// Graph::Parse.
bool WriteFunctionBody(absl::string_view function_def, const FunctionFinder& find,
                       const StopToken& stop, FunctionBody* body);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FUNCTION_BODY_H_
