#include "rewrite_core/graph/canonical_form.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/types/span.h"
#include "rewrite_core/base/sha256.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

using Write = absl::FunctionRef<void(absl::string_view)>;

// The consumer (a digest) is slow for small pieces, and does not poll the stop token within large
// ones.
constexpr size_t kPieceBytes = size_t{64} << 10;

// The messages of a GraphDef in which there is a map at some depth, and the entries of these maps.
enum class Type {
  kPlain,  // None of them: stays unchanged.
  kGraph,
  kNode,
  kAttrEntry,
  kAttrValue,
  kListValue,
  kNameAttrList,
  kLibrary,
  kFunction,
  kArgAttrsEntry,
  kArgAttrs,
};

struct FieldType {
  Type type = Type::kPlain;
  bool is_map = false;
};

// The type of the length-delimited field `field` in a message of type `parent`.
FieldType TypeOf(Type parent, uint32_t field) {
  switch (parent) {
    case Type::kGraph:
      if (field == graph_def::kNode) return {Type::kNode};
      if (field == graph_def::kLibrary) return {Type::kLibrary};
      break;
    case Type::kLibrary:
      if (field == library_def::kFunction) return {Type::kFunction};
      break;
    case Type::kFunction:
      if (field == function_def::kNode) return {Type::kNode};
      if (field == function_def::kAttr) return {Type::kAttrEntry, true};
      if (field == function_def::kArgAttr) return {Type::kArgAttrsEntry, true};
      if (field == function_def::kReturn || field == function_def::kControlReturn ||
          field == function_def::kResourceArgUniqueId) {
        return {Type::kPlain, true};
      }
      break;
    case Type::kArgAttrsEntry:
      if (field == map_entry::kValue) return {Type::kArgAttrs};
      break;
    case Type::kArgAttrs:
      if (field == function_def::kArgAttrsAttr) return {Type::kAttrEntry, true};
      break;
    case Type::kNode:
      if (field == node_def::kAttr) return {Type::kAttrEntry, true};
      break;
    case Type::kAttrEntry:
      if (field == map_entry::kValue) return {Type::kAttrValue};
      break;
    case Type::kAttrValue:
      if (field == attr_value::kList) return {Type::kListValue};
      if (field == attr_value::kFunction) return {Type::kNameAttrList};
      break;
    case Type::kListValue:
      if (field == attr_value::kListFunction) return {Type::kNameAttrList};
      break;
    case Type::kNameAttrList:
      if (field == name_attr_list::kAttr) return {Type::kAttrEntry, true};
      break;
    case Type::kPlain:
      break;
  }
  return {};
}

struct Field {
  uint32_t number;
  absl::string_view key;     // For a map's entry.
  absl::string_view header;  // Tag and size.
  absl::string_view bytes;   // A message of this type:
  Type type;
};

// A field of any type, in its wire form.
absl::string_view KeyOf(absl::string_view entry) {
  absl::string_view key;
  WireReader reader(entry);
  while (reader.Next()) {
    if (reader.field() == map_entry::kKey) key = reader.whole();
  }
  return key;
}

class Writer {
 public:
  Writer(const StopToken& stop, Write write) : stop_(stop), poll_(stop), write_(write) {}

  absl::Status WriteGraph(absl::string_view bytes) {
    absl::Status status = WriteMessage(Type::kGraph, bytes, 0);
    if (status.ok()) write_(buffer_);
    return status;
  }

 private:
  // A message of that type, `depth` messages deep.
  absl::Status WriteMessage(Type type, absl::string_view bytes, int depth) {
    if (type == Type::kPlain || depth > kMaxSortedDepth) return WriteBytes(bytes);
    std::vector<Field> entries;  // Map entries, until all are read.
    bool sorts = true;
    WireReader reader(bytes);
    while (reader.Next()) {
      if (poll_.Tick()) return stop_.status("canonical form");
      const absl::string_view whole = reader.whole();
      const FieldType found =
          reader.IsBytes(reader.field()) ? TypeOf(type, reader.field()) : FieldType();
      if (found.type == Type::kPlain && !found.is_map) {
        if (absl::Status s = WriteBytes(whole); !s.ok()) return s;
        continue;
      }
      Field field = {reader.field(), "", whole.substr(0, whole.size() - reader.bytes().size()),
                     reader.bytes(), found.type};
      if (!found.is_map || !sorts) {
        if (absl::Status s = WriteFields({field}, depth); !s.ok()) return s;
        continue;
      }
      field.key = KeyOf(field.bytes);
      entries.push_back(field);
      sorts = entries.size() <= kMaxSortedEntries;
      if (sorts) continue;
      // Too many: writes those so far, and all that follow, in their original order.
      if (absl::Status s = WriteFields(entries, depth); !s.ok()) return s;
      entries.clear();
    }
    if (!reader.ok()) {
      if (absl::Status s = WriteBytes(reader.rest()); !s.ok()) return s;
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Field& a, const Field& b) {
      return std::tie(a.number, a.key) < std::tie(b.number, b.key);
    });
    return WriteFields(entries, depth);
  }

  absl::Status WriteFields(absl::Span<const Field> fields, int depth) {
    for (const Field& field : fields) {
      if (absl::Status s = WriteBytes(field.header); !s.ok()) return s;
      if (absl::Status s = WriteMessage(field.type, field.bytes, depth + 1); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  absl::Status WriteBytes(absl::string_view bytes) {
    while (buffer_.size() + bytes.size() >= kPieceBytes) {
      const absl::string_view part = bytes.substr(0, kPieceBytes - buffer_.size());
      buffer_.append(part.data(), part.size());
      write_(buffer_);
      buffer_.clear();
      bytes.remove_prefix(part.size());
      // Takes about as long as a poller's stride of steps.
      if (stop_.ShouldStop(StopPoller::kStride)) return stop_.status("canonical form");
    }
    buffer_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  const StopToken& stop_;
  StopPoller poll_;
  const Write write_;
  std::string buffer_;
};

}  // namespace

absl::Status WriteCanonicalForm(absl::string_view graph_def, const StopToken& stop, Write write) {
  return Writer(stop, write).WriteGraph(graph_def);
}

absl::StatusOr<std::string> CanonicalSha256(absl::string_view graph_def, const StopToken& stop) {
  Sha256 sha256;
  absl::Status status = WriteCanonicalForm(
      graph_def, stop, [&sha256](absl::string_view piece) { sha256.Update(piece); });
  if (!status.ok()) return status;
  const std::string digest = sha256.Finish();
  if (digest.empty()) return NoSha256Error("ask for no plan");
  return absl::BytesToHexString(digest);
}

}  // namespace spillway::core
