#include "rewrite_core/inline/attr_binding.h"

#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_entry.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

// The maximum nesting of functions as attributes of functions; more than programs have.
constexpr int kMaxDepth = 8;

class Binder {
 public:
  Binder(const AttrValues& values, size_t max_bytes) : values_(values), max_bytes_(max_bytes) {}

  // A map entry of a node or a NameAttrList.
  bool BindEntry(uint32_t field, absl::string_view entry, int depth, std::string* out) {
    const AttrEntry attr = ReadAttrEntry(entry);
    std::string value, bound;
    if (!BindValue(attr.value, depth, &value)) return false;
    AppendBytesField(map_entry::kKey, attr.key, &bound);
    AppendBytesField(map_entry::kValue, value, &bound);
    AppendBytesField(field, bound, out);
    return out->size() <= max_bytes_;
  }

 private:
  bool BindValue(absl::string_view value, int depth, std::string* out) {
    if (depth == kMaxDepth) return false;
    WireReader reader(value);
    while (reader.Next()) {
      if (reader.IsBytes(attr_value::kPlaceholder)) {
        const auto found = values_.find(reader.bytes());
        if (found == values_.end()) return false;
        out->append(found->second.data(), found->second.size());
      } else if (reader.IsBytes(attr_value::kFunction)) {
        if (!BindFunction(attr_value::kFunction, reader.bytes(), depth, out)) return false;
      } else if (reader.IsBytes(attr_value::kList)) {
        std::string list;
        WireReader items(reader.bytes());
        while (items.Next()) {
          if (items.IsBytes(attr_value::kListFunction)) {
            if (!BindFunction(attr_value::kListFunction, items.bytes(), depth, &list)) return false;
          } else {
            list.append(items.whole().data(), items.whole().size());
          }
        }
        AppendBytesField(attr_value::kList, list, out);
      } else {
        out->append(reader.whole().data(), reader.whole().size());
      }
      if (out->size() > max_bytes_) return false;
    }
    return reader.ok();
  }

  bool BindFunction(uint32_t field, absl::string_view name_attr_list, int depth, std::string* out) {
    std::string bound;
    WireReader reader(name_attr_list);
    while (reader.Next()) {
      if (!reader.IsBytes(name_attr_list::kAttr)) {
        bound.append(reader.whole().data(), reader.whole().size());
      } else if (!BindEntry(name_attr_list::kAttr, reader.bytes(), depth + 1, &bound)) {
        return false;
      }
    }
    AppendBytesField(field, bound, out);
    return reader.ok() && out->size() <= max_bytes_;
  }

  const AttrValues& values_;
  const size_t max_bytes_;
};

void AddEntries(uint32_t field, absl::string_view message, AttrValues* values) {
  WireReader reader(message);
  while (reader.Next() && values->size() <= kMaxAttributes) {  // More are for no call.
    if (!reader.IsBytes(field)) continue;
    const AttrEntry attr = ReadAttrEntry(reader.bytes());
    (*values)[attr.key] = attr.value;
  }
}

}  // namespace

AttrValues AttrsOfCall(CallKind kind, absl::string_view node_def) {
  AttrValues own, values;
  AddEntries(node_def::kAttr, node_def, &own);
  if (kind == CallKind::kNative || kind == CallKind::kBranch) return own;
  const auto function = own.find("f");
  if (function != own.end()) {
    AddEntries(name_attr_list::kAttr, LastPayload(function->second, attr_value::kFunction),
               &values);
  }
  return values;
}

bool BindAttrs(absl::string_view node_def, const AttrValues& values, size_t max_bytes,
               std::string* out) {
  Binder binder(values, max_bytes);
  WireReader reader(node_def);
  while (reader.Next()) {
    if (!reader.IsBytes(node_def::kAttr)) {
      out->append(reader.whole().data(), reader.whole().size());
    } else if (!binder.BindEntry(node_def::kAttr, reader.bytes(), 0, out)) {
      return false;
    }
  }
  return out->size() <= max_bytes;
}

}  // namespace spillway::core
