// Writes a function's body as a GraphDef, so that code that reads graphs can read it.
//
// Thread safety: a pure function.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_BODY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_BODY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

struct FunctionBody {
  std::string graph_def;                     // Nodes `_Arg` first, one per argument, in order.
  std::vector<absl::string_view> arguments;  // Their names, views into the FunctionDef.
  std::vector<std::string> results;          // `node` or `node:port`, in order.
};

// Reads the names of a signature's arguments of one kind (a field of OpDef). False if one is a list
// of tensors, or if stopped.
bool ReadArguments(absl::string_view signature, uint32_t field, const StopToken& stop,
                   std::vector<absl::string_view>* names);

// Returns the FunctionDef of that name; empty if the library has none.
using FunctionFinder = std::function<absl::string_view(absl::string_view name)>;

// Spells inputs as in a graph (`node:port` for `node:output:index`) and copies everything else
// unchanged. False if something is unknown (arguments that are lists of tensors, outputs of unknown
// ops), or if the call must end (check `stop`). Untrusted bytes: malformed parts are left to
// Graph::Parse.
bool WriteFunctionBody(absl::string_view function_def, const FunctionFinder& find,
                       const StopToken& stop, FunctionBody* body);

// The tensor of a body's graph that FunctionBody::results spells; nullopt if it has no such node.
absl::optional<Tensor> FindResult(const Graph& body, absl::string_view spelling);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_BODY_H_
