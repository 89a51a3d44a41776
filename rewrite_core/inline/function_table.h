// The functions of a graph's library as inlining sees them: which may be inlined, whom their bodies
// call, and how large a call of them becomes, counted before anything is built.
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

// What nodes of an op type do with functions.
enum class CallKind : uint8_t {
  kNone,
  kPartitioned,  // PartitionedCall, StatefulPartitionedCall: calls the function in attribute f.
  kNative,       // Calls the function that is its op type.
  kBranch,       // Likewise, but as kPartitioned does it: a side of an If that was lowered.
  kIf,
  kCase,
  kWhile,  // And their stateless forms: lowered, if their attribute says so.
  kOther,  // Runs functions in a way that is not inlined.
};

// What a call adds, at most. Sums saturate.
struct InlinedSize {
  int64_t nodes = 0;
  int64_t inputs = 0;
  // Bytes, and how often the call's name comes in: names in the body begin with it.
  int64_t bytes = 0;
  int64_t prefixes = 0;

  void Add(const InlinedSize& other);
  // In a graph where the call has a name of that length, and nodes get so many bytes besides.
  int64_t BytesAt(int64_t name_size, int64_t bytes_per_node) const;
};

class FunctionTable {
 public:
  static constexpr int32_t kNoFunction = -1;

  struct Function {
    absl::string_view name;
    absl::string_view function_def;
    bool has_attrs = false;  // Attributes of its signature, which nodes of the body may refer to.
    bool has_switch =
        false;  // A Switch in its body, or in that of a function called there by name.
    // Why its calls stay; UNSPECIFIED: it may be inlined, as far as the function goes.
    v1::KeptCallReason kept = v1::KEPT_CALL_REASON_UNSPECIFIED;
    InlinedSize size;  // Of a call, with the calls in it.
  };

  // Reads the library of `graph_def`. The only error is that of `stop`. The bytes must outlive the
  // table.
  static absl::StatusOr<FunctionTable> Read(absl::string_view graph_def, const StopToken& stop);

  // kNoFunction: there is none of that name.
  int32_t Find(absl::string_view name) const;
  const Function& operator[](int32_t function) const { return functions_[function]; }
  int32_t size() const { return static_cast<int32_t>(functions_.size()); }

  CallKind KindOf(absl::string_view op) const;

 private:
  friend class FunctionScanner;

  std::vector<Function> functions_;
  absl::flat_hash_map<absl::string_view, int32_t> by_name_;
};

// Whether nodes of these op types run functions, whatever the library.
CallKind KindOfOp(absl::string_view op);

// Whether a node of that kind is replaced by its function; `node_def`: the bytes of the node.
bool IsCall(CallKind kind);
// Whether it is lowered to Switch, Merge and their like, with calls of its functions.
bool IsLowered(CallKind kind, absl::string_view node_def);

// The name of the function that a node of such a kind calls; and of all that one calls which is
// lowered: branches from `else` (or 0) on; condition and body.
absl::string_view CalledFunction(CallKind kind, absl::string_view node_def);
std::vector<absl::string_view> LoweredFunctions(CallKind kind, absl::string_view node_def);

// What lowering a node adds besides the calls. Names begin with the node's own.
InlinedSize LoweringSize(absl::string_view node_def);

// Whether attributes, those of a function or of a call, say that XLA compiles it
// (MarkedForXlaCompilation in TensorFlow's grappler/optimizers/function_optimizer.cc).
bool IsCompiledAttr(absl::string_view key, absl::string_view value);

// Adds and multiplies numbers of at least 0; what does not fit becomes the largest.
int64_t SaturatingAdd(int64_t a, int64_t b);
int64_t SaturatingMultiply(int64_t a, int64_t b);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_FUNCTION_TABLE_H_
