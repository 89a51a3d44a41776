// Writes a function's body as a GraphDef, so that code that reads graphs can read it.
//
// Thread safety: pure functions; none for FunctionResults.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_BODY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_BODY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
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

// As LastPayload (wire_reader.h), for a message of any length. False if stopped.
bool FindPayload(absl::string_view message, uint32_t field, StopPoller* poll,
                 absl::string_view* payload);

// Reads the names of a signature's arguments of one kind (a field of OpDef). False if one is a list
// of tensors, or if stopped.
bool ReadArguments(absl::string_view signature, uint32_t field, StopPoller* poll,
                   std::vector<absl::string_view>* names);

// Returns the FunctionDef of that name; empty if the library has none.
using FunctionFinder = std::function<absl::string_view(absl::string_view name)>;

// The positions of functions' results, by name. One for all bodies of a library: however many call
// a function, its signature is read once.
class FunctionResults {
 public:
  // -1 if the function has none of that name, or one that is a list, or if stopped.
  int Find(absl::string_view function_def, absl::string_view name, StopPoller* poll);

 private:
  // By the begin of the FunctionDef.
  absl::flat_hash_map<const char*, absl::flat_hash_map<absl::string_view, int>> results_;
};

// Spells inputs as in a graph (`node:port` for `node:output:index`) and copies everything else
// unchanged. False if something is unknown (arguments that are lists of tensors, outputs of unknown
// ops), or if the call must end (check `stop`). Untrusted bytes: malformed parts are left to
// Graph::Parse. `results`: those of the library.
bool WriteFunctionBody(absl::string_view function_def, const FunctionFinder& find,
                       const StopToken& stop, FunctionBody* body, FunctionResults* results);

// The tensor of a body's graph that FunctionBody::results spells; nullopt if it has no such node.
absl::optional<Tensor> FindResult(const Graph& body, absl::string_view spelling);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_BODY_H_
