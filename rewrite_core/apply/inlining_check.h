// InliningCheck: the implementation of VerifyInlining (inlining_verifier.h, which has the rules).
// First each node is assigned to the call it claims to come from, by its name; then all claims are
// checked.
//
// Thread safety: none; one call owns it.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_INLINING_CHECK_H_
#define SPILLWAY_REWRITE_CORE_APPLY_INLINING_CHECK_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/shapes/function_body.h"
#include "rewrite_core/base/stop_token.h"
#include "rewrite_core/graph/dtype.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/inline/function_table.h"

namespace spillway::core {

class InliningCheck {
 public:
  InliningCheck(const Graph& before, const Graph& after, const StopToken& stop)
      : before_(before), after_(after), stop_(stop), poll_(stop) {}

  absl::Status Run();

 private:
  using Attrs = std::map<absl::string_view, absl::string_view>;

  // A function's body, parsed again.
  struct Body {
    std::string bytes;
    absl::optional<Graph> graph;
    int num_arguments = 0;
    std::vector<Tensor> results;
    std::vector<NodeId> control_returns;
    bool has_attrs = false;
  };
  // An inlined call: in the graph (no caller), or in an inlined body.
  struct Call {
    int caller = -1;        // Index in calls_.
    NodeId node = kNoNode;  // In before_ or in the caller's body.
    std::string name;       // As used in the names of its nodes.
    std::string device;     // Where it would run.
    absl::string_view node_def;
    const Body* body = nullptr;
    CallKind kind = CallKind::kPartitioned;
    // The Identities, in after_. For an If or Case: Switches and Merges. For a While: Enters and
    // Exits (kNoNode: a resource, which a loop passes through unchanged).
    std::vector<NodeId> arguments, results;
    NodeId start = kNoNode, end = kNoNode;   // The control nodes.
    std::vector<NodeId> images;              // Per node of the body; kNoNode: an inlined call.
    absl::flat_hash_map<NodeId, int> calls;  // Per such node: its index in calls_.
    std::deque<std::string> bound;           // For a function with attributes: the body's nodes.
    // For an If or Case: the node that chooses the branch, the node after each side, and the
    // branches' calls. For a While: its LoopCond; the nodes that its condition and body wait for;
    // their calls.
    NodeId chooser = kNoNode;
    std::vector<NodeId> pivots;
    std::vector<int> branches;
    std::vector<NodeId> merges, switches, nexts;  // For a While, parallel to its results.
    // For a branch of its lowered caller (which has no node): its index and attributes.
    int branch = -1;
    absl::string_view function;
    std::string attrs;

    bool is_native() const { return kind == CallKind::kNative; }
    bool is_loop() const { return kind == CallKind::kWhile; }
    bool is_lowered() const {
      return is_loop() || kind == CallKind::kIf || kind == CallKind::kCase;
    }
  };

  // A VERIFY_FAILED error.
  static absl::Status Wrong(absl::string_view check, absl::string_view node,
                            absl::string_view what);
  // The attributes of a node without the undo record.
  static Attrs AttrsOf(absl::string_view node_def);
  // All fields other than name, op, input, device and attributes.
  static std::string OtherFields(absl::string_view node_def);

  // inlining_verifier.cc: identifies the nodes.
  absl::Status CheckUndo();

  absl::Status ReadLibrary();

  // Identifies each node of after_.
  absl::Status SortNodes();

  static bool MayBeInlined(CallKind kind);

  // Records that a branch exists, given a border's name without `Func/`: `NODE/BRANCH/_N/WHAT/_M`.
  void NoteBranch(absl::string_view name);

  // Claims and returns the unclaimed nodes with that name and op.
  std::vector<NodeId> TakeNodes(absl::string_view name, absl::string_view what,
                                absl::string_view op);

  // Finds the nodes that claim to be a call's borders.
  absl::Status FindBorders(Call* call);

  // Finds the nodes that claim to be a lowered If or Case; likewise for a While.
  absl::Status FindLowered(Call* call);
  absl::Status FindLoop(Call* call);

  // Whether `now` in after_ is `then`, a tensor of before_ (`caller` -1) or of a body: the tensor
  // itself, or one forwarded by a chain of border Identities.
  bool Is(Tensor now, Tensor then, int caller) const;

  // The inlined call that makes a tensor; null if none.
  const Call* CallAt(Tensor then, int caller) const;
  // Goes from a resource after loops to the one before them.
  void SkipLoops(Tensor* then, int caller) const;

  // The border node that stands for a tensor; nullopt if its producer was not inlined.
  absl::optional<Tensor> BorderOf(Tensor then, int caller) const;

  // Goes from a tensor with a border node to the tensor that the border forwards.
  bool FollowBorder(Tensor* then, int* caller) const;

  // Checks the graph's nodes that were not inlined calls.
  absl::Status CheckGraph();

  absl::Status ReadCalls();

  absl::Status CheckCalls();

  // Checks the node in the place of one of the graph's calls.
  absl::Status CheckKept(NodeId id) const;

  // Reads a call's function, the images of the body's nodes, and the inlined calls in it.
  absl::Status ReadCall(int number);

  // Reads the branches of a lowered node, each of which is a call, and the Switches of their
  // inputs, which are named after the inputs' producers.
  absl::Status ReadLowered(int number);
  absl::Status ReadBranch(int number, int branch, absl::string_view function);

  // The inputs of a call's node, in before_ or in the caller's body.
  absl::Span<const Tensor> InputsOf(const Call& call) const;

  // The node of after_ that makes a tensor: its border, if it has one. kNoNode if none.
  NodeId NodeNow(Tensor then, int caller) const;

  // The number of inputs before the control inputs.
  static size_t NumData(absl::Span<const Tensor> inputs);

  // The first unclaimed Switch of the lowered node that reads that tensor.
  NodeId FindSwitch(const Call& call, Tensor input);

  // The attributes of the NameAttrList in an attribute, in the form of a node's.
  static std::string BranchAttrs(absl::string_view node_def, absl::string_view key);

  // Finds the node of after_ that claims to be that node of the body: `CALL/NODE`, or
  // `CALL/NODE_1`, ... if that name was taken. A call without such a node was inlined.
  absl::Status FindImage(int number, NodeId id);

  // Whether a call of that name has unclaimed borders, or claimed ones (IsBorderTaken).
  bool HasBorders(absl::string_view name) const { return BordersOf(name) == 1; }
  // HasBorders for a lowered If or Case.
  bool HasLowered(absl::string_view name, CallKind kind) const;
  bool IsBorderTaken(absl::string_view name) const { return BordersOf(name) == 2; }
  int BordersOf(absl::string_view name) const;

  static absl::string_view NodeDefOf(const Call& call, NodeId id);

  absl::StatusOr<const Body*> BodyOfFunction(absl::string_view name);

  // Where a node with `device` in the body of `call` runs: missing parts are the call's.
  static std::string DeviceOf(const Call& call, absl::string_view device);

  absl::Status CheckBody(int number);

  // Whether a node has the attributes `then` of the body's node, in terms of the call.
  bool SameAttrs(const Call& call, NodeId image, Attrs then) const;

  // Whether `border` names an Identity that forwards an output of the node named in `name`.
  bool IsHandedOn(absl::string_view name, absl::string_view border) const;
  bool IsHandedOn(NodeId node, NodeId border) const;
  // Whether a node is an Identity at a call's border.
  bool Forwards(NodeId border) const;

  // Whether `loc:@NODE` names no existing node; such nodes form a group, represented by the first
  // of them.
  bool IsNowhere(const Call& call, absl::string_view name) const;
  absl::Status FindGroups();
  std::vector<std::string> Colocation(const Call& call, NodeId image,
                                      absl::string_view value) const;

  absl::Status CheckBorders(int number);

  absl::Status CheckResults(int number) const;

  // Checks that a branch reads its side of the Switches, or its loop's variables, and waits for its
  // pivot.
  absl::Status CheckBranch(int number);
  Tensor BranchInput(const Call& whole, int branch, size_t i) const;

  // Whether `now` is result `port` of a call, or the tensor that it forwards.
  bool IsResult(Tensor now, int number, int32_t port) const;

  // Checks a lowered If or Case: Switches of all its inputs, by its predicate; Merges of its
  // branches' results; and its end, which runs when either branch ends.
  absl::Status CheckLowered(int number);

  // Checks a lowered While: an entered frame, and a Merge and a Switch of each variable, by its
  // condition; the body's results feed the next iteration, and leave by the Exits.
  absl::Status CheckLoop(int number);
  absl::Status CheckLoopVariable(int number, size_t i, DataType type, int64_t parallel) const;
  // Whether a node of after_ has exactly that op and those attributes.
  bool IsMade(NodeId id, absl::string_view op,
              const std::map<absl::string_view, std::string>& attrs) const;

  // Whether a Switch is colocated with the producer of `input`, its first input.
  bool IsBeside(NodeId id, Tensor input, int caller) const;

  // Checks that the chooser keeps the call's waits, and otherwise waits only for the call's inputs.
  absl::Status CheckChooserWaits(const Call& call, absl::Span<const Tensor> inputs,
                                 size_t num_data) const;

  static std::vector<DataType> TypesOf(const Attrs& attrs, absl::string_view key);

  // Checks that the start waits for everything that the call waited for, and otherwise only for its
  // own inputs or its frame.
  absl::Status CheckStart(const Call& call, absl::Span<const Tensor> inputs, size_t num_data) const;

  // Whether a call in a body waits for its caller's control node: it does if it has no other waits.
  bool Inherits(const Call& call, size_t num_controls) const;

  // Checks that `now` are the `controls` of a call, which reads its data from `sources`, and
  // otherwise only these or its frame.
  absl::Status CheckWaits(const Call& call, absl::Span<const Tensor> now,
                          absl::Span<const Tensor> controls,
                          const std::vector<Tensor>& sources) const;

  absl::Status CheckEnd(const Call& call, int number) const;

  // Checks that every node that claims to come from a call was claimed.
  absl::Status CheckRest();

  const Graph& before_;
  const Graph& after_;
  const StopToken& stop_;
  mutable StopPoller poll_;
  absl::optional<FunctionTable> table_;
  std::vector<NodeId> origin_;  // Per node of after_: its id in before_; kNoNode: from a call.
  std::vector<bool> claimed_;   // Per node of after_: whether it has been identified.
  std::vector<int> call_of_;    // Per node of before_: its index in calls_, or -1.
  std::vector<NodeId> kept_;    // Nodes of after_ in place of calls.
  // By `Func/CALL/WHAT` or `NODE/WHAT`: nodes of that name, in order.
  absl::flat_hash_map<std::string, std::vector<NodeId>> borders_;
  // By such a name: the position of the next Switch (FindSwitch).
  absl::flat_hash_map<absl::string_view, size_t> next_switch_;
  // By `NODE/BRANCH`: the names of such branches.
  absl::flat_hash_map<std::string, std::vector<absl::string_view>> branches_;
  absl::flat_hash_map<std::string, std::unique_ptr<Body>> bodies_;  // By function.
  FunctionResults function_results_;
  std::deque<Call> calls_;
  // Results of SkipLoops and Is, for all nodes that they visited: calls in series may have very
  // many readers. By loop and port: the resource before it. By caller and tensor: a tensor of
  // after_ that it is.
  mutable absl::flat_hash_map<std::pair<const Call*, int32_t>, Tensor> before_loops_;
  mutable absl::flat_hash_map<std::tuple<int, NodeId, int32_t>, Tensor> known_;
  absl::flat_hash_map<absl::string_view, NodeId> groups_;  // By name: the first of the group.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_INLINING_CHECK_H_
