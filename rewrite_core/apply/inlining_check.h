// InliningCheck: the work of VerifyInlining (inlining_verifier.h), which has the rules. First each
// node is given to what it claims to come from, by its name; then all that is claimed is checked.
//
// Thread safety: none, one call owns it.
#ifndef SPILLWAY_REWRITE_CORE_APPLY_INLINING_CHECK_H_
#define SPILLWAY_REWRITE_CORE_APPLY_INLINING_CHECK_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "rewrite_core/analysis/device_name.h"
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

  // A function's body, read anew.
  struct Body {
    std::string bytes;
    absl::optional<Graph> graph;
    int num_arguments = 0;
    std::vector<Tensor> results;
    std::vector<NodeId> control_returns;
    bool has_attrs = false;
  };
  // A call that was inlined: of the graph (no caller), or of a body that was.
  struct Call {
    int caller = -1;        // Index in calls_.
    NodeId node = kNoNode;  // In before_, or in the caller's body.
    std::string name;       // As its nodes have it.
    DeviceName device;      // Where it would run.
    absl::string_view node_def;
    const Body* body = nullptr;
    CallKind kind = CallKind::kPartitioned;
    // The Identities, in after_. Of an If or Case: Switches and Merges. Of a While: Enters, and
    // Exits (kNoNode: a resource, which a loop hands on as it is).
    std::vector<NodeId> arguments, results;
    NodeId start = kNoNode, end = kNoNode;   // The control nodes.
    std::vector<NodeId> images;              // Per node of the body; kNoNode: an inlined call.
    absl::flat_hash_map<NodeId, int> calls;  // Per such node: its index in calls_.
    std::deque<std::string> bound;           // Of a function with attributes: the bodies' nodes.
    // Of an If or Case: what chooses a branch, the node behind each side, and the branches' calls.
    // Of a While: its LoopCond; what its condition and its body wait for; their calls.
    NodeId chooser = kNoNode;
    std::vector<NodeId> pivots;
    std::vector<int> branches;
    std::vector<NodeId> merges, switches, nexts;  // Of a While, as its results.
    // Of a branch (of its caller, which was lowered; it has no node): which one, and its
    // attributes.
    int branch = -1;
    absl::string_view function;
    std::string attrs;

    bool is_native() const { return kind == CallKind::kNative; }
    bool is_loop() const { return kind == CallKind::kWhile; }
    bool is_lowered() const {
      return is_loop() || kind == CallKind::kIf || kind == CallKind::kCase;
    }
  };

  // VERIFY_FAILED.
  static absl::Status Wrong(absl::string_view check, absl::string_view node,
                            absl::string_view what);
  // The attributes of a node but for the undo record.
  static Attrs AttrsOf(absl::string_view node_def);
  // What is neither name, op, input, device nor attribute.
  static std::string OtherFields(absl::string_view node_def);

  // inlining_verifier.cc: what each node is.
  absl::Status CheckUndo();

  absl::Status ReadLibrary();

  // What each node of after_ is.
  absl::Status SortNodes();

  static bool MayBeInlined(CallKind kind);

  // Of the name of a border, without `Func/`, `NODE/BRANCH/_N/WHAT/_M`: there is such a branch.
  void NoteBranch(absl::string_view name);

  // The nodes of that name and op that nobody has claimed, which are claimed now.
  std::vector<NodeId> TakeNodes(absl::string_view name, absl::string_view what,
                                absl::string_view op);

  // The nodes that claim to be a call's borders.
  absl::Status FindBorders(Call* call);

  // The nodes that claim to be what an If or Case was lowered to; likewise of a While.
  absl::Status FindLowered(Call* call);
  absl::Status FindLoop(Call* call);

  // Whether `now` in after_ is what `then` is, a tensor of before_ (`caller` -1) or of a body: the
  // tensor itself, or what Identities at the borders hand on, one behind the other.
  bool Is(Tensor now, Tensor then, int caller) const;

  // The call that makes a tensor; null: none that was inlined.
  const Call* CallAt(Tensor then, int caller) const;
  // From a resource behind a loop to that before it.
  void SkipLoops(Tensor* then, int* caller) const;

  // The border node that stands for a tensor; none: it is made by a node that was not inlined.
  absl::optional<Tensor> BorderOf(Tensor then, int caller) const;

  // From a tensor that has a border node to what that hands on.
  bool FollowBorder(Tensor* then, int* caller) const;

  // Nodes of the graph but for those that were calls.
  absl::Status CheckGraph();

  absl::Status ReadCalls();

  absl::Status CheckCalls();

  // The node in the place of a call of the graph.
  absl::Status CheckKept(NodeId id) const;

  // Its function, the images of the body's nodes, and the calls in it that were inlined.
  absl::Status ReadCall(int number);

  // The branches of what was lowered, each a call; and the Switches of what they take, which are
  // named by where that comes from.
  absl::Status ReadLowered(int number);
  absl::Status ReadBranch(int number, int branch, absl::string_view function);

  // Of a call: as its node has them, in before_ or in the caller's body.
  absl::Span<const Tensor> InputsOf(const Call& call) const;

  // The node of after_ that makes a tensor: its border, if it has one. kNoNode: there is none.
  NodeId NodeNow(Tensor then, int caller) const;

  // How many inputs come before the control inputs.
  static size_t NumData(absl::Span<const Tensor> inputs);

  // The first Switch of what was lowered, claimed by nobody, of that tensor.
  NodeId FindSwitch(const Call& call, Tensor input);

  // The attributes of a NameAttrList in an attribute, as a node's.
  static std::string BranchAttrs(absl::string_view node_def, absl::string_view key);

  // The node of after_ that claims to be that node of the body: `CALL/NODE`, or `CALL/NODE_1`, ...
  // where that was taken. A call without one was inlined.
  absl::Status FindImage(int number, NodeId id);

  // Whether there are borders of a call of that name that nobody has claimed, or somebody has.
  bool HasBorders(absl::string_view name) const { return BordersOf(name) == 1; }
  // Likewise for what an If or Case was lowered to.
  bool HasLowered(absl::string_view name, CallKind kind) const;
  bool IsBorderTaken(absl::string_view name) const { return BordersOf(name) == 2; }
  int BordersOf(absl::string_view name) const;

  static absl::string_view NodeDefOf(const Call& call, NodeId id);

  absl::StatusOr<const Body*> BodyOfFunction(absl::string_view name);

  // Where a node runs that names `device` in the body of `call`: parts that it leaves open are the
  // call's.
  static DeviceName DeviceOf(const Call& call, absl::string_view device);

  static bool IsDevice(absl::string_view now, const DeviceName& wanted);

  absl::Status CheckBody(int number);

  // Whether a node has the attributes `then` of the body's, in terms of the call.
  bool SameAttrs(const Call& call, NodeId image, Attrs then) const;

  // Whether `border` names an Identity that hands on what the node in `name` makes.
  bool IsHandedOn(absl::string_view name, absl::string_view border) const;
  bool IsHandedOn(NodeId node, NodeId border) const;

  // Whether `loc:@NODE` names no node at all; nodes that do so are a group, and the first of them
  // stands for it.
  bool IsNowhere(const Call& call, absl::string_view name) const;
  absl::Status FindGroups();
  std::vector<std::string> Colocation(const Call& call, NodeId image,
                                      absl::string_view value) const;

  absl::Status CheckBorders(int number);

  absl::Status CheckResults(int number) const;

  // A branch takes its side of the Switches, or what its loop hands it, and waits for its pivot.
  absl::Status CheckBranch(int number);
  Tensor BranchInput(const Call& whole, int branch, size_t i) const;

  // Whether `now` is result `port` of a call, or what that hands on.
  bool IsResult(Tensor now, int number, int32_t port) const;

  // An If or Case: Switches of all that it takes, by its predicate; Merges of what its branches
  // give; and its end, which is there when a branch is.
  absl::Status CheckLowered(int number);

  // A While: a frame that is entered, a Merge and a Switch of each variable, by its condition; what
  // its body gives goes round, and leaves by the Exits.
  absl::Status CheckLoop(int number);
  absl::Status CheckLoopVariable(int number, size_t i, DataType type, int64_t parallel) const;
  // Whether a node of after_ has that op and those attributes, and nothing else.
  bool IsMade(NodeId id, absl::string_view op,
              const std::map<absl::string_view, std::string>& attrs) const;

  // Whether a Switch runs where `input`, which it reads first, is made.
  bool IsBeside(NodeId id, Tensor input, int caller) const;

  // Behind the predicate: what the node waited for, and no more than its inputs besides.
  absl::Status CheckChooserWaits(const Call& call, absl::Span<const Tensor> inputs,
                                 size_t num_data) const;

  static std::vector<DataType> TypesOf(const Attrs& attrs, absl::string_view key);

  // Waits for all that the call waited for. More only for its own inputs, or the frame that it is
  // in.
  absl::Status CheckStart(const Call& call, absl::Span<const Tensor> inputs, size_t num_data) const;

  // A call in a body gets the control node of its caller if it waits for nothing else.
  bool Inherits(const Call& call, size_t num_controls) const;

  // Whether `now` are `controls` of a call, which takes its data from `sources`; and more only for
  // these, or the frame that it is in.
  absl::Status CheckWaits(const Call& call, absl::Span<const Tensor> now,
                          absl::Span<const Tensor> controls,
                          const std::vector<Tensor>& sources) const;

  absl::Status CheckEnd(const Call& call, int number) const;

  // Whatever claims to come from a call was found to.
  absl::Status CheckRest();

  const Graph& before_;
  const Graph& after_;
  const StopToken& stop_;
  StopPoller poll_;
  absl::optional<FunctionTable> table_;
  std::vector<NodeId> origin_;  // Per node of after_: its id in before_; kNoNode: from a call.
  std::vector<bool> claimed_;   // Per node of after_: what it is is known.
  std::vector<int> call_of_;    // Per node of before_: its index in calls_, or -1.
  std::vector<NodeId> kept_;    // Nodes of after_ in the place of calls.
  // By `Func/CALL/WHAT` or `NODE/WHAT`: nodes of that name, in order.
  absl::flat_hash_map<std::string, std::vector<NodeId>> borders_;
  // By `NODE/BRANCH`: the names of such branches.
  absl::flat_hash_map<std::string, std::vector<absl::string_view>> branches_;
  absl::flat_hash_map<std::string, std::unique_ptr<Body>> bodies_;  // By function.
  std::deque<Call> calls_;
  absl::flat_hash_map<absl::string_view, NodeId> groups_;  // By name: the first of the group.
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_APPLY_INLINING_CHECK_H_
