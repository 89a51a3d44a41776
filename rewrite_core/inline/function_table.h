// The functions of a graph's library, for inlining: which may be inlined, what their bodies call,
// and how large a call of them becomes, counted before anything is built.
//
// Thread safety: immutable after Read.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_FUNCTION_TABLE_H_
#define SPILLWAY_REWRITE_CORE_INLINE_FUNCTION_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/stop_token.h"
#include "spillway/v1/inlining.pb.h"

namespace spillway::core {

// How nodes of an op type use functions.
enum class CallKind : uint8_t {
  kNone,
  kPartitioned,  // PartitionedCall, StatefulPartitionedCall: calls the function in attribute f.
  kNative,       // Calls the function that is its op type.
  kBranch,       // Likewise, with the semantics of kPartitioned: made by lowering.
  kIf,
  kCase,
  kWhile,  // And their stateless forms: lowered if their attribute requests it.
  kOther,  // Runs functions in a way that is not inlined.
};

// The maximum that a call adds. Sums saturate.
struct InlinedSize {
  int64_t nodes = 0;
  int64_t inputs = 0;
  // Bytes, and the number of times that the call's name is added: it prefixes names in the body.
  int64_t bytes = 0;
  int64_t prefixes = 0;

  void Add(const InlinedSize& other);
  // The bytes added for a call name of that length, with that many further bytes per node.
  int64_t BytesAt(int64_t name_size, int64_t bytes_per_node) const;
};

class FunctionTable {
 public:
  static constexpr int32_t kNoFunction = -1;

  struct Function {
    absl::string_view name;
    absl::string_view function_def;
    bool has_attrs = false;  // Its signature has attributes, which nodes of the body may refer to.
    bool is_stateful = false;  // By its signature.
    bool has_switch =
        false;  // There is a Switch in its body, or in that of a function called there by name.
    // Why its calls are kept; UNSPECIFIED: the function may be inlined.
    v1::KeptCallReason kept = v1::KEPT_CALL_REASON_UNSPECIFIED;
    InlinedSize size;  // The size of a call, including nested calls.
  };

  // Reads the library of `graph_def`. The only error is that of `stop`. The bytes must outlive the
  // table.
  static absl::StatusOr<FunctionTable> Read(absl::string_view graph_def, const StopToken& stop);

  // Returns kNoFunction for an unknown name.
  int32_t Find(absl::string_view name) const;
  const Function& operator[](int32_t function) const { return functions_[function]; }
  int32_t size() const { return static_cast<int32_t>(functions_.size()); }

  CallKind KindOf(absl::string_view op) const;

 private:
  friend class FunctionScanner;

  std::vector<Function> functions_;
  absl::flat_hash_map<absl::string_view, int32_t> by_name_;
};

// Whether and how nodes of that op type run functions, for any library.
CallKind KindOfOp(absl::string_view op);

// Whether a node of that kind is replaced by its function.
bool IsCall(CallKind kind);
// Whether the node with these bytes is lowered to Switch, Merge and the like, with calls of its
// functions.
bool IsLowered(CallKind kind, absl::string_view node_def);

// The name of the function that such a node calls; and the names of all functions of a lowered one:
// the branches from `else` (or 0) on; condition and body.
absl::string_view CalledFunction(CallKind kind, absl::string_view node_def);
std::vector<absl::string_view> LoweredFunctions(CallKind kind, absl::string_view node_def);

// The size that lowering a node adds besides the calls. New names are prefixed with the node's.
InlinedSize LoweringSize(absl::string_view node_def);

// Whether an attribute of a function or a call marks it for compilation by XLA
// (MarkedForXlaCompilation in TensorFlow's grappler/optimizers/function_optimizer.cc).
bool IsCompiledAttr(absl::string_view key, absl::string_view value);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_FUNCTION_TABLE_H_
