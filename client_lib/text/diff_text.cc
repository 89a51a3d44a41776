#include "client_lib/text/diff_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::text {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr size_t kMargin = 2;

// Device strings may contain control characters, which a terminal would interpret.
std::string DeviceText(const std::string& device) {
  return device.empty() ? "no stated device" : absl::CHexEscape(device);
}

// "578 Identity, 3 NoOp", most frequent first.
template <typename Nodes>
std::string ByOp(const Nodes& nodes) {
  std::vector<std::string> ops;
  for (const v1::DiffNode& node : nodes) ops.push_back(node.op());
  std::sort(ops.begin(), ops.end());
  std::vector<std::pair<int64_t, std::string>> counts;
  for (const std::string& op : ops) {
    if (counts.empty() || counts.back().second != op) counts.emplace_back(0, op);
    ++counts.back().first;
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& count) {
    absl::StrAppend(out, count.first, " ", count.second);
  });
}

// Whether neither a swap nor a clone explains it.
bool IsOther(const v1::DiffNode& node) { return !node.in_swap() && node.runs_again().empty(); }
bool IsOther(const v1::InputChange& change) { return !change.in_swap() && !change.made_again(); }

template <typename Entries>
int64_t CountOthers(const Entries& entries) {
  return std::count_if(entries.begin(), entries.end(),
                       [](const auto& entry) { return IsOther(entry); });
}

// Control inputs unrelated to swaps and clones.
int64_t CountOtherControls(const v1::GraphDiff& diff) {
  absl::flat_hash_set<absl::string_view> again;
  for (const v1::DiffNode& node : diff.added()) {
    if (!node.runs_again().empty()) again.insert(node.name());
  }
  int64_t count = 0;
  for (const auto* changes : {&diff.controls_added(), &diff.controls_removed()}) {
    for (const v1::ControlChange& change : *changes) {
      count +=
          !change.in_swap() && !again.contains(change.node()) && !again.contains(change.control());
    }
  }
  return count;
}

bool IsMadeAgain(const v1::InputChange& change) { return change.made_again(); }
bool IsMadeAgain(const v1::ControlChange&) { return false; }

// "317, all by swaps"; "3"; "320, 317 of them by swaps, 3 by recomputation".
template <typename Entries>
std::string CountText(const Entries& entries) {
  int64_t swaps = 0, again = 0;
  for (const auto& entry : entries) {
    swaps += entry.in_swap();
    again += IsMadeAgain(entry);
  }
  const int64_t all = entries.size();
  std::string text = absl::StrCat(all);
  if (swaps > 0) {
    absl::StrAppend(&text, swaps == all ? ", all" : absl::StrCat(", ", swaps, " of them"),
                    " by swaps");
  }
  if (again > 0) {
    absl::StrAppend(&text, again == all ? ", all" : absl::StrCat(", ", again), " by recomputation");
  }
  return text;
}

std::string Signed(int64_t number) { return absl::StrCat(number < 0 ? "" : "+", number); }

Rows Facts(const v1::GraphDiff& diff) {
  Rows rows = {
      {"nodes", absl::StrCat(diff.node_count_a(), " -> ", diff.node_count_b(), " (",
                             Signed(diff.node_count_b() - diff.node_count_a()), ")")},
      {"size", absl::StrCat(core::BytesText(diff.graph_bytes_a()), " -> ",
                            core::BytesText(diff.graph_bytes_b()))},
  };
  const auto add = [&rows](const char* what, bool any, const std::string& text) {
    if (any) rows.push_back({what, text});
  };
  add("calls inlined", !diff.inlined_calls().empty(),
      absl::StrCat(diff.inlined_calls_size(), ", with ",
                   FormatCount(diff.inlined_node_count(), "node"), " of their functions"));
  add("nodes added", !diff.added().empty(), ByOp(diff.added()));
  add("nodes removed", !diff.removed().empty(), ByOp(diff.removed()));
  add("nodes changed", !diff.changed().empty(), absl::StrCat(diff.changed_size()));
  add("data inputs rewired", !diff.rewired().empty(), CountText(diff.rewired()));
  add("control edges added", !diff.controls_added().empty(), CountText(diff.controls_added()));
  add("control edges removed", !diff.controls_removed().empty(),
      CountText(diff.controls_removed()));
  add("records of Spillway", diff.bookkeeping_count() > 0,
      absl::StrCat("on ", FormatCount(diff.bookkeeping_count(), "node"), " of both graphs"));
  add("encoded differently", diff.reencoded_count() > 0,
      FormatCount(diff.reencoded_count(), "node"));
  add("order of nodes", diff.reordered(), "different");
  add("function library", diff.library_changed(), "different");
  add("versions", diff.versions_changed(), "different");
  add("unknown fields", diff.other_fields_changed(), "different");
  return rows;
}

std::string SwapInText(const v1::FoundSwapIn& swap_in) {
  const std::string consumers =
      absl::StrJoin(swap_in.consumers(), ", ", [](std::string* out, const v1::InputRef& consumer) {
        absl::StrAppend(out, consumer.node(), " (input ", consumer.input_index(), ")");
      });
  return absl::StrCat(
      swap_in.name(), " brings it back for ", consumers,
      swap_in.triggers().empty()
          ? " at once: it has no trigger"
          : absl::StrCat(" when ", absl::StrJoin(swap_in.triggers(), " and "),
                         swap_in.triggers_size() == 1 ? " has" : " have", " ended"));
}

std::string SwapText(const v1::FoundSwap& swap, Style style) {
  const std::string size =
      swap.has_size_bytes() ? core::BytesText(swap.size_bytes()) : "size unknown";
  std::string text =
      Paragraph(absl::StrCat(swap.tensor(), " (", size, ") is kept on ", DeviceText(swap.device()),
                             " from ", swap.swap_out(), swap.swap_ins().empty() ? "" : ";"),
                kMargin, style);
  for (int i = 0; i < swap.swap_ins_size(); ++i) {
    const bool last = i + 1 == swap.swap_ins_size();
    absl::StrAppend(&text, Paragraph(absl::StrCat(SwapInText(swap.swap_ins(i)), last ? "" : ";"),
                                     2 * kMargin, style));
  }
  return text;
}

std::string NodeText(const v1::DiffNode& node) {
  return absl::StrCat(node.name(), " (", node.op(), " on ", DeviceText(node.device()), ")");
}

std::string ChangeText(const v1::NodeChange& change) {
  std::vector<std::string> parts;
  if (change.has_op_b()) parts.push_back(absl::StrCat("op ", change.op_a(), " -> ", change.op_b()));
  if (change.has_device_b()) {
    parts.push_back(absl::StrCat("from ", DeviceText(change.device_a()), " to ",
                                 DeviceText(change.device_b())));
  }
  const auto add = [&parts](const char* what, const auto& names) {
    if (names.empty()) return;
    parts.push_back(absl::StrCat(FormatCount(names.size(), "attribute"), " ", what, ": ",
                                 absl::StrJoin(names, ", ")));
  };
  add("added", change.attributes_added());
  add("removed", change.attributes_removed());
  add("changed", change.attributes_changed());
  return absl::StrJoin(parts, "; ");
}

// One line per kind of change: adding shapes to a graph changes every node in the same way.
std::string ChangesText(const google::protobuf::RepeatedPtrField<v1::NodeChange>& changes,
                        Style style) {
  constexpr size_t kMaxNames = 3;
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;
  absl::flat_hash_map<std::string, size_t> positions;
  for (const v1::NodeChange& change : changes) {
    const std::string text = ChangeText(change);
    const auto [it, is_new] = positions.try_emplace(text, kinds.size());
    if (is_new) kinds.push_back({text, {}});
    kinds[it->second].second.push_back(change.name());
  }
  std::string list;
  for (const auto& [text, names] : kinds) {
    const size_t shown = std::min(names.size(), kMaxNames);
    const std::string others =
        names.size() > shown
            ? absl::StrCat(" and ", FormatCount(names.size() - shown, "other node"))
            : "";
    absl::StrAppend(
        &list, Paragraph(absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                                      others, ": ", text),
                         kMargin, style));
  }
  return list.empty() ? "" : absl::StrCat("\n", style.Heading("nodes changed"), "\n", list);
}

std::string InputText(const v1::InputChange& change) {
  return absl::StrCat(change.node(), " input ", change.input_index(), ": ",
                      change.has_tensor_a() ? change.tensor_a() : "(none)", " -> ",
                      change.has_tensor_b() ? change.tensor_b() : "(none)");
}

std::string ControlText(const v1::ControlChange& change) {
  return absl::StrCat(change.node(), " waits for ", change.control());
}

// A table with a heading of the `entries` that `shown` accepts; empty without any.
template <typename Entries, typename Shown, typename Text>
std::string List(const char* head, const Entries& entries, Style style, Shown shown, Text text) {
  std::string list;
  for (const auto& entry : entries) {
    if (shown(entry)) absl::StrAppend(&list, Paragraph(text(entry), kMargin, style));
  }
  return list.empty() ? "" : absl::StrCat("\n", style.Heading(head), "\n", list);
}

// The number of differences that neither swaps nor clones explain.
int64_t CountOtherDifferences(const v1::GraphDiff& diff) {
  return CountOthers(diff.added()) + diff.removed_size() + diff.changed_size() +
         CountOthers(diff.rewired()) + CountOtherControls(diff) + diff.library_changed() +
         diff.versions_changed() + diff.other_fields_changed();
}

std::string ClosingLine(const v1::GraphDiff& diff) {
  int64_t swap_ins = 0;
  int64_t without_trigger = 0;
  for (const v1::FoundSwap& swap : diff.swaps()) {
    swap_ins += swap.swap_ins_size();
    without_trigger +=
        std::count_if(swap.swap_ins().begin(), swap.swap_ins().end(),
                      [](const v1::FoundSwapIn& swap_in) { return swap_in.triggers().empty(); });
  }
  const int64_t others = CountOtherDifferences(diff);
  const std::string swaps = diff.swaps().empty()
                                ? "no swaps"
                                : absl::StrCat(FormatCount(diff.swaps_size(), "tensor"),
                                               " swapped out, ", FormatCount(swap_ins, "swap-in"),
                                               ", ", without_trigger, " without trigger");
  const auto again =
      std::count_if(diff.added().begin(), diff.added().end(),
                    [](const v1::DiffNode& node) { return !node.runs_again().empty(); });
  const std::string nodes =
      again == 0 ? "" : absl::StrCat(FormatCount(again, "node"), " recomputed, ");
  const std::string calls =
      diff.inlined_calls().empty()
          ? ""
          : absl::StrCat(FormatCount(diff.inlined_calls_size(), "call"), " inlined, ");
  return absl::StrCat("\n", calls, nodes, swaps,
                      "; other differences: ", others == 0 ? "none" : absl::StrCat(others), "\n");
}

}  // namespace

std::string FormatGraphDiff(const v1::GraphDiff& diff, Style style) {
  if (diff.identical()) return "the files are identical\n";
  if (diff.same_graph()) {
    return absl::StrCat("the graphs are the same, the files are encoded differently\n",
                        FormatFacts(Facts(diff), style));
  }
  const auto all = [](const auto&) { return true; };
  const auto others = [](const auto& entry) { return IsOther(entry); };
  const auto runs_again = [](const v1::DiffNode& node) { return !node.runs_again().empty(); };
  std::string text = FormatFacts(Facts(diff), style);
  absl::StrAppend(&text, List("calls inlined", diff.inlined_calls(), style, all,
                              [](const std::string& call) { return call; }));
  if (!diff.swaps().empty()) absl::StrAppend(&text, "\n", style.Heading("swaps"), "\n");
  for (const v1::FoundSwap& swap : diff.swaps()) absl::StrAppend(&text, SwapText(swap, style));
  absl::StrAppend(
      &text,
      List("recomputed nodes", diff.added(), style, runs_again, [](const v1::DiffNode& node) {
        return absl::StrCat(NodeText(node), " recomputes ", node.runs_again());
      }));
  absl::StrAppend(&text, List("other nodes added", diff.added(), style, others, NodeText),
                  List("nodes removed", diff.removed(), style, all, NodeText),
                  ChangesText(diff.changed(), style),
                  List("other data inputs rewired", diff.rewired(), style, others, InputText),
                  List("control edges added", diff.controls_added(), style, all, ControlText),
                  List("control edges removed", diff.controls_removed(), style, all, ControlText),
                  ClosingLine(diff));
  return text;
}

}  // namespace spillway::text
