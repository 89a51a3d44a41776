#include "rewrite_core/graph/undo.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

constexpr char kAdded[] = "added";
constexpr char kCallPrefix[] = "call=";
constexpr char kIdle[] = "idle";
constexpr char kRawPrefix[] = "raw=";

absl::Status BadRecord(absl::string_view name, absl::string_view item) {
  return Error(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_BAD_UNDO_RECORD,
               absl::StrCat("the undo record of node ", Quoted(name), " is damaged at ",
                            Quoted(item), "; start from the original graph"),
               {{"node", name}, {"field", kUndoAttr}, {"value", item}});
}

}  // namespace

std::string UndoAttr(const UndoRecord& record) {
  std::vector<std::string> items;
  if (record.call) {
    items.push_back(absl::StrCat(kCallPrefix, *record.call));
  } else if (record.added) {
    items.push_back(kAdded);
  }
  if (record.idle) items.push_back(kIdle);
  if (record.raw) items.push_back(absl::StrCat(kRawPrefix, *record.raw));
  for (const auto& [position, spelling] : record.inputs) {
    items.push_back(absl::StrCat(position, "=", spelling));
  }
  for (const std::string& control : record.controls) items.push_back(absl::StrCat("^", control));
  return StringListAttr(items);
}

absl::StatusOr<UndoRecord> ParseUndoAttr(absl::string_view name, absl::string_view value) {
  UndoRecord record;
  const std::vector<absl::string_view> items = AttrStrings(value);
  if (items.empty()) return BadRecord(name, "its start");
  for (absl::string_view item : items) {
    const absl::string_view whole = item;
    if (item == kAdded) {
      record.added = true;
    } else if (item == kIdle && items.size() == 2) {
      record.idle = true;
    } else if (absl::ConsumePrefix(&item, kCallPrefix)) {
      record.added = true;
      record.call = std::string(item);
    } else if (absl::ConsumePrefix(&item, kRawPrefix)) {
      record.raw = std::string(item);
    } else if (absl::ConsumePrefix(&item, "^")) {
      record.controls.emplace_back(item);
    } else {
      const size_t eq = item.find('=');
      int position = -1;
      if (eq == absl::string_view::npos || !absl::SimpleAtoi(item.substr(0, eq), &position) ||
          position < 0 || item.size() == eq + 1 || item[eq + 1] == '^' ||
          (!record.inputs.empty() && position <= record.inputs.back().first)) {
        return BadRecord(name, whole);
      }
      record.inputs.emplace_back(position, std::string(item.substr(eq + 1)));
    }
  }
  // These two stand alone.
  const size_t expected = record.idle ? 2 : 1;
  if ((record.added || record.raw) && items.size() > expected) return BadRecord(name, items[1]);
  if (record.idle && !record.raw) return BadRecord(name, kIdle);
  return record;
}

absl::Status AppendUndone(absl::string_view name, absl::string_view node_def,
                          const UndoRecord& record, const StopToken& stop, StopPoller* poll,
                          std::string* out) {
  if (record.added) return absl::OkStatus();
  if (record.raw) {
    out->append(*record.raw);
    return absl::OkStatus();
  }
  // Added control inputs are the last with their spelling, so find the inputs first.
  std::vector<absl::string_view> inputs;
  WireReader scan(node_def);
  while (scan.Next()) {
    if (poll->Tick()) return stop.status("strip");
    if (scan.IsBytes(node_def::kInput)) inputs.push_back(scan.bytes());
  }
  const auto num_data = std::count_if(inputs.begin(), inputs.end(), [](absl::string_view input) {
    return input.empty() || input[0] != '^';
  });
  absl::flat_hash_map<absl::string_view, int> to_drop;
  for (const std::string& control : record.controls) {
    if (poll->Tick()) return stop.status("strip");
    ++to_drop[control];
  }
  std::vector<bool> dropped(inputs.size(), false);
  for (size_t i = inputs.size(); i-- > 0 && absl::ConsumePrefix(&inputs[i], "^");) {
    if (poll->Tick()) return stop.status("strip");
    const auto it = to_drop.find(inputs[i]);
    if (it == to_drop.end()) continue;
    dropped[i] = true;
    if (--it->second == 0) to_drop.erase(it);
  }
  if (!to_drop.empty()) return BadRecord(name, absl::StrCat("^", to_drop.begin()->first));
  if (!record.inputs.empty() && record.inputs.back().first >= num_data) {
    return BadRecord(name, absl::StrCat(record.inputs.back().first));
  }
  std::string node;
  node.reserve(node_def.size());
  size_t position = 0;
  auto original = record.inputs.begin();
  WireReader reader(node_def);
  while (reader.Next()) {
    if (poll->Tick()) return stop.status("strip");
    if (reader.IsBytes(node_def::kInput)) {
      const size_t i = position++;
      if (dropped[i]) continue;
      if (original != record.inputs.end() && original->first == static_cast<int>(i)) {
        AppendBytesField(node_def::kInput, original->second, &node);
        ++original;
        continue;
      }
    }
    if (IsUndoField(reader)) {
      continue;
    }
    node.append(reader.whole().data(), reader.whole().size());
  }
  AppendBytesField(graph_def::kNode, node, out);
  return absl::OkStatus();
}

}  // namespace spillway::core
