#include "rewrite_core/graph/attr_value.h"

#include "google/protobuf/io/coded_stream.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::core {
namespace {

// The last field of that number, as protobuf takes it for a singular field.
absl::optional<absl::string_view> LastBytes(absl::string_view message, uint32_t field) {
  absl::optional<absl::string_view> found;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.IsBytes(field)) found = reader.bytes();
  }
  return reader.ok() ? found : absl::nullopt;
}

absl::optional<uint64_t> LastVarint(absl::string_view message, uint32_t field) {
  absl::optional<uint64_t> found;
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.IsVarint(field)) found = reader.number();
  }
  return reader.ok() ? found : absl::nullopt;
}

// Calls visit(item) for the items of a list's field until it returns false. False for a non-list.
template <typename Visit>
bool ForEachVarint(absl::string_view value, uint32_t field, const Visit& visit) {
  const auto list = LastBytes(value, attr_value::kList);
  if (!list) return false;
  WireReader reader(*list);
  while (reader.Next()) {
    // Packed, as proto3 writes them, or one by one.
    if (reader.IsVarint(field)) {
      if (!visit(reader.number())) return true;
    } else if (reader.IsBytes(field)) {
      google::protobuf::io::CodedInputStream packed(
          reinterpret_cast<const uint8_t*>(reader.bytes().data()), reader.bytes().size());
      uint64_t item = 0;
      while (packed.ReadVarint64(&item)) {
        if (!visit(item)) return true;
      }
    }
  }
  return reader.ok();
}

}  // namespace

DataType AttrType(absl::string_view value) {
  return static_cast<DataType>(LastVarint(value, attr_value::kType).value_or(kDtInvalid));
}

absl::optional<int64_t> AttrInt(absl::string_view value) {
  const auto number = LastVarint(value, attr_value::kInt);
  if (!number) return absl::nullopt;
  return static_cast<int64_t>(*number);
}

absl::optional<bool> AttrBool(absl::string_view value) {
  const auto number = LastVarint(value, attr_value::kBool);
  if (!number) return absl::nullopt;
  return *number != 0;
}

absl::optional<absl::string_view> AttrString(absl::string_view value) {
  return LastBytes(value, attr_value::kString);
}

absl::optional<Shape> AttrShape(absl::string_view value) {
  const auto shape = LastBytes(value, attr_value::kShape);
  return shape ? ParseShape(*shape) : absl::nullopt;
}

absl::optional<absl::string_view> AttrFunction(absl::string_view value) {
  const auto function = LastBytes(value, attr_value::kFunction);
  return function ? LastBytes(*function, name_attr_list::kName) : absl::nullopt;
}

bool ForEachAttrType(absl::string_view value, const std::function<bool(DataType)>& visit) {
  return ForEachVarint(value, attr_value::kListType,
                       [&](uint64_t item) { return visit(static_cast<DataType>(item)); });
}

std::vector<int64_t> AttrInts(absl::string_view value, size_t limit) {
  std::vector<int64_t> items;
  const bool is_list = ForEachVarint(value, attr_value::kListInt, [&](uint64_t item) {
    if (items.size() == limit) return false;
    items.push_back(static_cast<int64_t>(item));
    return true;
  });
  if (!is_list) items.clear();
  return items;
}

int CountAttrTypes(absl::string_view value) {
  int count = 0;
  return ForEachAttrType(value, [&](DataType) { return ++count > 0; }) ? count : -1;
}

int CountAttrShapes(absl::string_view value) {
  const auto list = LastBytes(value, attr_value::kList);
  if (!list) return -1;
  int count = 0;
  WireReader reader(*list);
  while (reader.Next()) count += reader.IsBytes(attr_value::kListShape);
  return reader.ok() ? count : -1;
}

std::vector<Shape> AttrShapes(absl::string_view value, int64_t limit) {
  std::vector<Shape> shapes;
  const auto list = LastBytes(value, attr_value::kList);
  if (!list) return shapes;
  WireReader reader(*list);
  while (static_cast<int64_t>(shapes.size()) < limit && reader.Next()) {
    if (!reader.IsBytes(attr_value::kListShape)) continue;
    auto shape = ParseShape(reader.bytes());
    if (!shape) break;
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

std::vector<absl::string_view> AttrStrings(absl::string_view value) {
  std::vector<absl::string_view> items;
  const auto list = LastBytes(value, attr_value::kList);
  if (!list) return items;
  WireReader reader(*list);
  while (reader.Next()) {
    if (reader.IsBytes(attr_value::kListString)) items.push_back(reader.bytes());
  }
  if (!reader.ok()) items.clear();
  return items;
}

std::vector<absl::string_view> AttrFunctions(absl::string_view value) {
  std::vector<absl::string_view> items;
  const auto list = LastBytes(value, attr_value::kList);
  if (!list) return items;
  WireReader reader(*list);
  while (reader.Next()) {
    if (!reader.IsBytes(attr_value::kListFunction)) continue;
    items.push_back(LastBytes(reader.bytes(), name_attr_list::kName).value_or(""));
  }
  if (!reader.ok()) items.clear();
  return items;
}

absl::optional<Shape> ParseShape(absl::string_view shape_proto) {
  Shape shape;
  WireReader reader(shape_proto);
  while (reader.Next()) {
    if (reader.IsVarint(shape_proto::kUnknownRank)) shape.unknown_rank = reader.number() != 0;
    if (!reader.IsBytes(shape_proto::kDim)) continue;
    const auto size = LastVarint(reader.bytes(), shape_proto::kDimSize);
    const auto dim = static_cast<int64_t>(size.value_or(0));
    shape.dims.push_back(dim < 0 ? kUnknownDim : dim);
  }
  if (!reader.ok()) return absl::nullopt;
  return shape;
}

std::string TypeAttr(DataType dtype) {
  std::string out;
  AppendVarintField(attr_value::kType, dtype, &out);
  return out;
}

std::string BoolAttr(bool value) {
  std::string out;
  AppendVarintField(attr_value::kBool, value, &out);
  return out;
}

std::string IntAttr(int64_t value) {
  std::string attr;
  AppendVarintField(attr_value::kInt, static_cast<uint64_t>(value), &attr);
  return attr;
}

std::string StringAttr(absl::string_view value) {
  std::string out;
  AppendBytesField(attr_value::kString, value, &out);
  return out;
}

std::string StringListAttr(absl::Span<const std::string> values) {
  std::string list, out;
  for (const std::string& value : values) AppendBytesField(attr_value::kListString, value, &list);
  AppendBytesField(attr_value::kList, list, &out);
  return out;
}

}  // namespace spillway::core
