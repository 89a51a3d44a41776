#include "rewrite_core/inline/function_table.h"

#include <algorithm>
#include <utility>

#include "rewrite_core/base/saturating.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"
#include "rewrite_core/graph/op_registry.h"

namespace spillway::core {
namespace {

// Bytes per border node (argument and result Identities, and the two control nodes) besides names:
// op, attributes, undo record, `Func/`, `/output/_N`.
constexpr int64_t kBorderNodeBytes = 192;
// Extra bytes per node of a body: an undo record (without the call's name), longer sizes, and for
// each input another spelling (`Func/CALL/output/_N` for `CALL:output:3`).
constexpr int64_t kBodyNodeBytes = 96;
constexpr int64_t kInputBytes = 40;
// The maximum number of times that an input of a call is spelled: by the argument's Identity, in
// its colocation, and by the control node; and in the record of the original call.
constexpr int64_t kCallCopies = 4;
// A control input from the call's input control node.
constexpr int64_t kControlInputBytes = 48;

// A field of OpDef.
constexpr uint32_t kIsStateful = 17;

// A call of a branch is named NODE/branch12/_34.
constexpr int64_t kBranchNameBytes = 40;

// A node in a body that calls a function.
struct Callee {
  int32_t function;
  CallKind kind;
  int64_t name_size;
  int64_t device_size;
};

}  // namespace

int64_t InlinedSize::BytesAt(int64_t name_size, int64_t bytes_per_node) const {
  const int64_t names = SaturatingMultiply(prefixes, SaturatingAdd(name_size, 1));
  return SaturatingAdd(SaturatingAdd(bytes, names), SaturatingMultiply(nodes, bytes_per_node));
}

CallKind KindOfOp(absl::string_view op) {
  if (op == "PartitionedCall" || op == "StatefulPartitionedCall") return CallKind::kPartitioned;
  if (op == "If" || op == "StatelessIf") return CallKind::kIf;
  if (op == "Case" || op == "StatelessCase") return CallKind::kCase;
  if (op == "While" || op == "StatelessWhile") return CallKind::kWhile;
  constexpr absl::string_view kOthers[] = {"For", "RemoteCall", "SymbolicGradient",
                                           "TPUPartitionedCall"};
  return std::find(std::begin(kOthers), std::end(kOthers), op) == std::end(kOthers)
             ? CallKind::kNone
             : CallKind::kOther;
}

void InlinedSize::Add(const InlinedSize& other) {
  nodes = SaturatingAdd(nodes, other.nodes);
  inputs = SaturatingAdd(inputs, other.inputs);
  bytes = SaturatingAdd(bytes, other.bytes);
  prefixes = SaturatingAdd(prefixes, other.prefixes);
}

bool IsCall(CallKind kind) {
  return kind == CallKind::kPartitioned || kind == CallKind::kNative || kind == CallKind::kBranch;
}

bool IsLowered(CallKind kind, absl::string_view node_def) {
  if (kind != CallKind::kIf && kind != CallKind::kCase && kind != CallKind::kWhile) return false;
  bool lowered = false;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key == "_lower_using_switch_merge") lowered = AttrBool(entry.value).value_or(false);
  }
  return lowered;
}

std::vector<absl::string_view> LoweredFunctions(CallKind kind, absl::string_view node_def) {
  const absl::string_view first = kind == CallKind::kIf ? "else_branch" : "cond";
  const absl::string_view second = kind == CallKind::kIf ? "then_branch" : "body";
  std::vector<absl::string_view> functions(kind == CallKind::kCase ? 0 : 2);
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (kind == CallKind::kCase) {
      if (entry.key == "branches") functions = AttrFunctions(entry.value);
    } else if (entry.key == first || entry.key == second) {
      functions[entry.key == second] = AttrFunction(entry.value).value_or(absl::string_view());
    }
  }
  return functions;
}

InlinedSize LoweringSize(absl::string_view node_def) {
  // The choosing node, the nodes after it, and the final ones. And for each input and each output
  // up to five: Enter, Merge, Switch, NextIteration, Exit.
  constexpr int64_t kFixedNodes = 8, kNodesPerTensor = 5;
  int64_t tensors = 0, branches = 2, names = 0, device = 0;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (reader.IsBytes(node_def::kInput)) {
      ++tensors;
      names += static_cast<int64_t>(reader.bytes().size());
    }
    if (reader.IsBytes(node_def::kDevice)) device = static_cast<int64_t>(reader.bytes().size());
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key == "Tout") tensors += std::max(CountAttrTypes(entry.value), 0);
    if (entry.key == "branches") {
      branches =
          std::max<int64_t>(branches, static_cast<int64_t>(AttrFunctions(entry.value).size()));
    }
  }
  InlinedSize size;
  size.nodes = SaturatingAdd(kFixedNodes + branches, SaturatingMultiply(kNodesPerTensor, tensors));
  // Each reads at most three nodes; calls, Merges of branches and the node after them read more.
  size.inputs = SaturatingAdd(SaturatingMultiply(3, size.nodes),
                              SaturatingMultiply(SaturatingMultiply(2, branches), tensors + 2));
  size.prefixes = SaturatingAdd(SaturatingMultiply(2, size.nodes), size.inputs);
  size.bytes = SaturatingAdd(
      SaturatingMultiply(size.nodes, kBorderNodeBytes + device),
      SaturatingAdd(SaturatingMultiply(size.inputs, kControlInputBytes),
                    // An input's name occurs in the node's own name and in its colocation.
                    SaturatingMultiply(SaturatingAdd(branches, 12), names)));
  return size;
}

absl::string_view CalledFunction(CallKind kind, absl::string_view node_def) {
  if (kind == CallKind::kNative || kind == CallKind::kBranch)
    return LastPayload(node_def, node_def::kOp);
  absl::string_view function;
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) continue;
    const AttrEntry entry = ReadAttrEntry(reader.bytes());
    if (entry.key == "f") function = AttrFunction(entry.value).value_or(absl::string_view());
  }
  return function;
}

bool IsCompiledAttr(absl::string_view key, absl::string_view value) {
  if (key != "_XlaMustCompile" && key != "_XlaCompile" && key != "_xla_compile_id" &&
      key != "_tpu_replicate") {
    return false;
  }
  return AttrBool(value).value_or(false) || !AttrString(value).value_or("").empty();
}

// Fills the table: reads each function once, then goes from callees to callers.
class FunctionScanner {
 public:
  FunctionScanner(absl::string_view graph_def, const StopToken& stop)
      : graph_def_(graph_def), stop_(stop), poll_(stop) {}

  absl::StatusOr<FunctionTable> Run() {
    if (!FindFunctions() || !Scan() || !AddUp()) return stop_.status("inline");
    return std::move(table_);
  }

 private:
  // Each returns false if the call must end.

  bool FindFunctions() {
    WireReader reader(graph_def_);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      if (!reader.IsBytes(graph_def::kLibrary)) continue;
      WireReader library(reader.bytes());
      while (library.Next()) {
        if (poll_.Tick()) return false;
        if (library.IsBytes(library_def::kFunction) && !AddFunction(library.bytes())) return false;
      }
    }
    return true;
  }

  bool AddFunction(absl::string_view function_def) {
    FunctionTable::Function function;
    function.function_def = function_def;
    int attributes = 0;
    WireReader reader(function_def);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      if (reader.IsBytes(function_def::kSignature)) {
        function.is_stateful = false;  // The last signature counts.
        WireReader signature(reader.bytes());
        while (signature.Next()) {
          if (poll_.Tick()) return false;
          if (signature.IsVarint(kIsStateful)) function.is_stateful = signature.number() != 0;
          if (signature.IsBytes(function_def::kSignatureName)) function.name = signature.bytes();
          if (signature.IsBytes(op_def::kAttrDef)) function.has_attrs = true;
        }
      } else if (reader.IsBytes(function_def::kAttr)) {
        ++attributes;
        const AttrEntry attr = ReadAttrEntry(reader.bytes());
        if (attr.key == "_noinline" && AttrBool(attr.value).value_or(false)) {
          function.kept = v1::KEPT_CALL_REASON_NOINLINE;
        } else if (attr.key == "api_implements") {
          function.kept = v1::KEPT_CALL_REASON_IMPLEMENTATION_GROUP;
        } else if (IsCompiledAttr(attr.key, attr.value)) {
          function.kept = v1::KEPT_CALL_REASON_COMPILED;
        }
      }
    }
    if (!reader.ok() || attributes > kMaxAttributes) {
      function.kept = v1::KEPT_CALL_REASON_BAD_FUNCTION;
    }
    const auto number = static_cast<int32_t>(table_.functions_.size());
    const auto [entry, is_new] = table_.by_name_.try_emplace(function.name, number);
    if (is_new) {
      table_.functions_.push_back(function);
    } else {
      table_.functions_[entry->second].kept = v1::KEPT_CALL_REASON_DUPLICATE_FUNCTION;
    }
    return true;
  }

  // The size of each function without nested calls, and those calls.
  bool Scan() {
    callees_.resize(table_.functions_.size());
    for (size_t i = 0; i < table_.functions_.size(); ++i) {
      if (table_.functions_[i].kept == v1::KEPT_CALL_REASON_UNSPECIFIED && !ScanFunction(i)) {
        return false;
      }
    }
    return true;
  }

  bool ScanFunction(size_t number) {
    InlinedSize& size = table_.functions_[number].size;
    const auto add = [&size](int64_t nodes, int64_t inputs, size_t bytes, int64_t prefixes) {
      size.nodes += nodes;
      size.inputs += inputs;
      size.bytes = SaturatingAdd(size.bytes, static_cast<int64_t>(bytes));
      size.prefixes += prefixes;
    };
    // The two control nodes.
    add(2, 1, 2 * kBorderNodeBytes + kControlInputBytes, 3);
    WireReader reader(table_.functions_[number].function_def);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      if (reader.IsBytes(function_def::kSignature)) {
        WireReader signature(reader.bytes());
        while (signature.Next()) {
          if (poll_.Tick()) return false;
          // An argument's Identity: its name, and the input control node.
          if (signature.IsBytes(op_def::kInputArg)) {
            add(1, 3, kBorderNodeBytes + kControlInputBytes, 2);
          }
          // A result's: its name, input, colocation, and the output control node.
          if (signature.IsBytes(op_def::kOutputArg)) {
            add(1, 2, kBorderNodeBytes + kControlInputBytes, 4);
          }
        }
      } else if (reader.IsBytes(function_def::kReturn)) {
        add(0, 0, 2 * reader.bytes().size() + kInputBytes, 0);
      } else if (reader.IsBytes(function_def::kControlReturn)) {
        add(0, 1, reader.bytes().size() + kInputBytes, 1);
      } else if (reader.IsBytes(function_def::kNode)) {
        if (!ScanNode(number, reader.bytes())) return false;
        add(1, 0, kBodyNodeBytes, 1);
      }
    }
    return true;
  }

  bool ScanNode(size_t number, absl::string_view node_def) {
    InlinedSize& size = table_.functions_[number].size;
    absl::string_view op, name, device;
    int64_t inputs = 0, names = 0, attributes = 0;
    WireReader reader(node_def);
    while (reader.Next()) {
      if (poll_.Tick()) return false;
      inputs += reader.IsBytes(node_def::kInput);
      if (reader.IsBytes(node_def::kOp)) op = reader.bytes();
      if (reader.IsBytes(node_def::kName)) name = reader.bytes();
      if (reader.IsBytes(node_def::kDevice)) device = reader.bytes();
      if (!reader.IsBytes(node_def::kAttr)) continue;
      names += NamesIn(ReadAttrEntry(reader.bytes()));
      ++attributes;
    }
    if (attributes > kMaxAttributes) {
      table_.functions_[number].kept = v1::KEPT_CALL_REASON_BAD_FUNCTION;
      return true;
    }
    const auto [known, is_new] = ops_.try_emplace(op);
    if (is_new) {
      known->second = {FindOp(op).control_flow == ControlFlow::kSwitch, table_.KindOf(op)};
    }
    const auto [is_switch, kind] = known->second;
    if (is_switch) table_.functions_[number].has_switch = true;
    const bool lowers = IsLowered(kind, node_def);
    const bool calls = IsCall(kind) || lowers;
    if (inputs == 0 || calls) {  // It waits for the input control node.
      ++inputs;
      ++size.prefixes;
      size.bytes = SaturatingAdd(size.bytes, kControlInputBytes);
    }
    const int64_t copies = calls ? kCallCopies : 1;
    size.inputs += copies * inputs;
    size.prefixes += copies * (inputs + names);
    size.bytes = SaturatingAdd(
        size.bytes, SaturatingMultiply(copies, SaturatingAdd(static_cast<int64_t>(node_def.size()),
                                                             kInputBytes * (inputs + names))));
    if (!calls) return true;
    if (!lowers) {
      AddCallee(number, CalledFunction(kind, node_def), kind, name.size(), device.size());
      return true;
    }
    // The lowered node, and its branches as calls. Names are prefixed with the call's name, then
    // the node's.
    InlinedSize lowered = LoweringSize(node_def);
    lowered.bytes = lowered.BytesAt(static_cast<int64_t>(name.size()), 0);
    size.Add(lowered);
    for (absl::string_view branch : LoweredFunctions(kind, node_def)) {
      if (poll_.Tick()) return false;
      AddCallee(number, branch, kind, name.size() + kBranchNameBytes, device.size());
    }
    return true;
  }

  void AddCallee(size_t number, absl::string_view name, CallKind kind, size_t name_size,
                 size_t device_size) {
    const int32_t function = table_.Find(name);
    if (function == FunctionTable::kNoFunction ||
        table_.functions_[function].kept != v1::KEPT_CALL_REASON_UNSPECIFIED) {
      return;
    }
    callees_[number].push_back(
        {function, kind, static_cast<int64_t>(name_size), static_cast<int64_t>(device_size)});
  }

  // The number of names in an attribute that are prefixed with the call's name.
  static int64_t NamesIn(const AttrEntry& attr) {
    if (attr.key == "frame_name") return 1;
    return attr.key == "_class" ? static_cast<int64_t>(AttrStrings(attr.value).size()) : 0;
  }

  // Tarjan's strongly connected components, with an explicit stack: callees are completed before
  // callers. Calls of functions on a cycle are kept; other functions add the sizes of their calls.
  bool AddUp() {
    const auto count = static_cast<int32_t>(table_.functions_.size());
    struct Visit {
      int32_t function;
      size_t next = 0;  // The next of its callees.
    };
    std::vector<int32_t> index(count, -1), low(count, 0);
    std::vector<bool> on_stack(count, false);
    std::vector<int32_t> stack;
    std::vector<Visit> path;
    int32_t next_index = 0;
    const auto enter = [&](int32_t function) {
      index[function] = low[function] = next_index++;
      stack.push_back(function);
      on_stack[function] = true;
      path.push_back({function});
    };
    for (int32_t root = 0; root < count; ++root) {
      if (index[root] >= 0) continue;
      enter(root);
      while (!path.empty()) {
        if (poll_.Tick()) return false;
        Visit& visit = path.back();
        const int32_t function = visit.function;
        if (visit.next < callees_[function].size()) {
          const int32_t callee = callees_[function][visit.next++].function;
          if (index[callee] < 0) {
            enter(callee);
          } else if (on_stack[callee]) {
            low[function] = std::min(low[function], index[callee]);
          }
          continue;
        }
        path.pop_back();
        if (!path.empty()) {
          const int32_t caller = path.back().function;
          low[caller] = std::min(low[caller], low[function]);
        }
        if (low[function] != index[function]) continue;
        const bool alone = stack.back() == function;
        int32_t member = -1;
        do {
          member = stack.back();
          stack.pop_back();
          on_stack[member] = false;
          if (!alone || CallsItself(member)) {
            table_.functions_[member].kept = v1::KEPT_CALL_REASON_RECURSION;
          }
        } while (member != function);
        if (!AddCallees(function)) return false;
      }
    }
    return true;
  }

  bool CallsItself(int32_t function) const {
    const std::vector<Callee>& callees = callees_[function];
    return std::any_of(callees.begin(), callees.end(),
                       [function](const Callee& callee) { return callee.function == function; });
  }

  bool AddCallees(int32_t function) {
    FunctionTable::Function& caller = table_.functions_[function];
    if (caller.kept != v1::KEPT_CALL_REASON_UNSPECIFIED) return true;
    for (const Callee& callee : callees_[function]) {
      if (poll_.Tick()) return false;
      const FunctionTable::Function& called = table_.functions_[callee.function];
      if (called.kept != v1::KEPT_CALL_REASON_UNSPECIFIED) continue;
      caller.has_switch |= callee.kind == CallKind::kNative && called.has_switch;
      InlinedSize added = called.size;
      added.bytes = called.size.BytesAt(callee.name_size, callee.device_size);
      caller.size.Add(added);
    }
    return true;
  }

  const absl::string_view graph_def_;
  const StopToken& stop_;
  StopPoller poll_;
  FunctionTable table_;
  std::vector<std::vector<Callee>> callees_;  // Per function.
  // For each op type: whether it is a Switch, and how it uses functions.
  absl::flat_hash_map<absl::string_view, std::pair<bool, CallKind>> ops_;
};

absl::StatusOr<FunctionTable> FunctionTable::Read(absl::string_view graph_def,
                                                  const StopToken& stop) {
  return FunctionScanner(graph_def, stop).Run();
}

int32_t FunctionTable::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoFunction : found->second;
}

CallKind FunctionTable::KindOf(absl::string_view op) const {
  // A library must not redefine one of TensorFlow's ops; TensorFlow rejects it.
  const CallKind kind = KindOfOp(op);
  if (kind != CallKind::kNone || by_name_.empty()) return kind;
  return by_name_.contains(op) ? CallKind::kNative : CallKind::kNone;
}

}  // namespace spillway::core
