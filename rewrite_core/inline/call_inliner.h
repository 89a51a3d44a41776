// Decides which calls are inlined, and copies their bodies into a work graph.
//
// Thread safety: none; one inlining owns it.
#ifndef SPILLWAY_REWRITE_CORE_INLINE_CALL_INLINER_H_
#define SPILLWAY_REWRITE_CORE_INLINE_CALL_INLINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/flow/control_flow.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/inline/attr_binding.h"
#include "rewrite_core/inline/function_table.h"
#include "rewrite_core/inline/inline_body.h"
#include "rewrite_core/inline/work_graph.h"
#include "spillway/v1/inlining.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "spillway/v1/step.pb.h"

namespace spillway::core {

class LoweredNodes;  // In lowering.cc.

class CallInliner {
 public:
  CallInliner(const FunctionTable& table, const v1::Step& step, const v1::Limits& limits,
              const StopToken& stop, WorkGraph* work, v1::Inlining* summary);

  // The only error is that of `stop`.
  absl::Status Run();

  // Whether a call was kept because of the limits.
  bool too_large() const { return too_large_; }
  // Whether a While was lowered.
  bool lowered_loops() const { return lowered_loops_; }

 private:
  // The NodeDefs of a body's nodes, with the attributes of a call.
  using BoundNodes = std::vector<absl::string_view>;
  // How a call is used.
  struct Use {
    bool by_control = false;  // Some node waits for its end.
    bool at_all = false;
    int32_t last_port = -1;  // The last port read.
  };
  // A call that is about to be replaced.
  struct Call {
    NodeId id = kNoNode;
    CallKind kind = CallKind::kNone;
    absl::string_view node_def;
    const InlineBody* body = nullptr;
    AttrValues attrs;                         // Only for a function with attributes.
    const BoundNodes* bound_nodes = nullptr;  // Likewise.
    int num_data = 0;                         // Data inputs.
    std::vector<DataType> input_types;
    // For a lowered call: the functions, and the types of the results.
    std::vector<absl::string_view> functions;
    std::vector<DataType> result_types;
  };

  CallKind KindOf(NodeId id) const;
  Use UseOf(NodeId id) const;
  // Whether inlining this call keeps the graph within limits; if so, counts it.
  bool Admit(NodeId id, const InlinedSize& added);
  const InlineBody* BodyOf(int32_t function);
  // Returns UNSPECIFIED if `*call` may be replaced.
  v1::KeptCallReason Check(NodeId id, CallKind kind, Call* call);
  v1::KeptCallReason CheckTypes(const Call& call, std::vector<DataType>* input_types);
  v1::KeptCallReason CheckLowered(NodeId id, CallKind kind, Call* call);
  bool FitsLowered(const Call& call, const InlineBody& body, size_t function) const;
  bool BindNodes(int32_t function, Call* call);
  void Note(NodeId id, CallKind kind, v1::KeptCallReason reason);

  // Whether the call must end, checked for each node that is made for a replaced one.
  bool Stops(NodeId replaced) {
    return poll_.Tick(1 + static_cast<int64_t>(work_.name(replaced).size()) / kNameBytesPerStep);
  }

  // Incomplete if stopped.
  void Replace(const Call& call);
  void Lower(const Call& call);
  void LowerBranches(const Call& call, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& controls, LoweredNodes* nodes, Expansion* made);
  void LowerLoop(const Call& call, const std::vector<Tensor>& inputs,
                 const std::vector<Tensor>& controls, LoweredNodes* nodes, Expansion* made);
  // Adds the further control inputs that TensorFlow gives a call before inlining it.
  void AddStrictInputs(const Call& call, std::vector<Tensor>* controls);
  absl::optional<Tensor> FrameControl(NodeId call);
  void FindFrameControls();
  bool StatesShapes(NodeId id);
  bool IsReference(Tensor tensor, const InlineBody& current);
  bool IsReference(const Graph& graph, Tensor tensor);
  DataType TypeOf(const BorderType& type, const Call& call) const;
  absl::string_view DeviceOf(absl::string_view device, absl::string_view call_device);

  const FunctionTable& table_;
  const StopToken& stop_;
  StopPoller poll_;
  WorkGraph& work_;
  v1::Inlining& summary_;
  absl::flat_hash_set<NodeId> fed_;
  std::vector<CallKind> kinds_;                      // By op id of the original graph.
  std::vector<std::unique_ptr<InlineBody>> bodies_;  // Per function.
  std::vector<bool> read_;                           // Per function: whether reading was attempted.
  FunctionResults function_results_;
  // By function and attributes; null if they cannot be bound.
  absl::flat_hash_map<std::string, std::unique_ptr<BoundNodes>> bound_;
  absl::flat_hash_map<std::pair<absl::string_view, absl::string_view>, absl::string_view> devices_;
  // How much the graph may still grow, and the remaining bytes of bound attributes.
  int64_t nodes_left_ = 0, inputs_left_ = 0, bytes_left_ = 0, bound_bytes_left_ = 0;
  bool too_large_ = false;
  bool lowered_loops_ = false;
  bool frames_known_ = false;
  absl::optional<ControlFlowAnalysis> frames_;  // For the original graph, if it has loops.
  absl::flat_hash_map<FrameId, Tensor> frame_controls_;
  // By node, which very many calls may read: whether it is an Enter of a loop constant, and whether
  // it states the shapes of its outputs.
  absl::flat_hash_map<NodeId, bool> is_constant_, states_shapes_;
  // Of a node's first outputs, those that are references. A call may read very many of one node.
  struct References {
    int32_t count = 0;
    absl::flat_hash_set<int32_t> ports;
  };
  absl::flat_hash_map<std::pair<const Graph*, NodeId>, References> references_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_INLINE_CALL_INLINER_H_
