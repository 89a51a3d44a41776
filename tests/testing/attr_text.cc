#include "tests/testing/attr_text.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/coded_stream.h"
#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/graph/attr_value.h"
#include "rewrite_core/graph/dtype.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::testing {
namespace {

using core::AppendBytesField;
using core::AppendVarint;
using core::AppendVarintField;
using core::DataType;
using core::DataTypeFromName;
using core::DataTypeName;
using core::kDtInvalid;
using core::kUnknownDim;
using core::ParseShape;
using core::WireReader;
namespace attr_value = core::attr_value;
namespace shape_proto = core::shape_proto;

constexpr uint32_t kNoKind = 0;

// One value: its kind is the number of its field in AttrValue. A list has the same kinds under the
// same numbers, in ListValue.
struct Value {
  uint32_t kind = kNoKind;
  uint64_t number = 0;  // Int, float bits, bool, type.
  std::string bytes;    // String, shape.
};

float FloatOf(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

std::string PrintShape(absl::string_view proto) {
  const auto shape = ParseShape(proto);
  if (!shape) return "";
  if (shape->unknown_rank) return "(*)";
  return absl::StrCat("(",
                      absl::StrJoin(shape->dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(out,
                                                      dim == kUnknownDim ? "?" : absl::StrCat(dim));
                                    }),
                      ")");
}

std::string PrintValue(const Value& value) {
  switch (value.kind) {
    case attr_value::kString:
      return absl::StrCat("\"", absl::CHexEscape(value.bytes), "\"");
    case attr_value::kInt:
      return absl::StrCat(static_cast<int64_t>(value.number));
    case attr_value::kFloat:
      return absl::StrFormat("%.9gf", FloatOf(value.number));
    case attr_value::kBool:
      return value.number != 0 ? "true" : "false";
    case attr_value::kType:
      return std::string(DataTypeName(static_cast<DataType>(value.number)));
    case attr_value::kShape:
      return PrintShape(value.bytes);
    default:
      return "";
  }
}

bool IsPackable(uint32_t kind) {
  return kind != attr_value::kString && kind != attr_value::kShape && kind != attr_value::kList;
}

void AppendScalar(const Value& value, std::string* out) {
  if (value.kind == attr_value::kFloat) {
    const auto bits = static_cast<uint32_t>(value.number);
    for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(bits >> (8 * i)));
  } else {
    AppendVarint(value.number, out);
  }
}

// Appends `value` as a field of AttrValue, or of ListValue for kinds that are not packed there.
void AppendValue(const Value& value, std::string* out) {
  if (!IsPackable(value.kind)) {
    AppendBytesField(value.kind, value.bytes, out);
    return;
  }
  AppendVarint(value.kind << 3 | (value.kind == attr_value::kFloat ? 5 : 0), out);
  AppendScalar(value, out);
}

void AppendList(const std::vector<Value>& values, std::string* out) {
  std::string list;
  if (!values.empty() && IsPackable(values[0].kind)) {
    std::string packed;
    for (const Value& value : values) AppendScalar(value, &packed);
    AppendBytesField(values[0].kind, packed, &list);
  } else {
    for (const Value& value : values) AppendValue(value, &list);
  }
  AppendBytesField(attr_value::kList, list, out);
}

// Reads the values in an AttrValue or a ListValue, packed or not. Unusual encodings may be read in
// any way, since the caller checks by parsing the text again.
std::vector<Value> ReadValues(absl::string_view message) {
  std::vector<Value> values;
  WireReader reader(message);
  while (reader.Next()) {
    Value value;
    value.kind = reader.field();
    if (reader.IsBytes(value.kind) && IsPackable(value.kind)) {
      google::protobuf::io::CodedInputStream packed(
          reinterpret_cast<const uint8_t*>(reader.bytes().data()), reader.bytes().size());
      uint32_t bits = 0;
      if (value.kind == attr_value::kFloat) {
        while (packed.ReadLittleEndian32(&bits)) values.push_back({value.kind, bits, ""});
      } else {
        while (packed.ReadVarint64(&value.number)) values.push_back(value);
      }
      continue;
    }
    value.number = reader.number();
    value.bytes = std::string(reader.bytes());
    values.push_back(std::move(value));
  }
  return values;
}

bool ParseQuoted(absl::string_view* text, std::string* out) {
  size_t end = 1;
  while (end < text->size() && (*text)[end] != '"') end += (*text)[end] == '\\' ? 2 : 1;
  if (end >= text->size() || !absl::CUnescape(text->substr(1, end - 1), out)) return false;
  text->remove_prefix(end + 1);
  return true;
}

bool ParseShapeText(absl::string_view* text, std::string* out) {
  const size_t end = text->find(')');
  if (end == absl::string_view::npos) return false;
  const absl::string_view inside = text->substr(1, end - 1);
  if (inside == "*") {
    AppendVarintField(shape_proto::kUnknownRank, 1, out);
  } else if (!inside.empty()) {
    size_t begin = 0;
    while (begin <= inside.size()) {
      const size_t comma = std::min(inside.find(',', begin), inside.size());
      const absl::string_view word =
          absl::StripAsciiWhitespace(inside.substr(begin, comma - begin));
      int64_t size = kUnknownDim;
      if (word != "?" && !absl::SimpleAtoi(word, &size)) return false;
      std::string dim;
      // proto3 omits a zero.
      if (size != 0) AppendVarintField(shape_proto::kDimSize, size, &dim);
      AppendBytesField(shape_proto::kDim, dim, out);
      begin = comma + 1;
    }
  }
  text->remove_prefix(end + 1);
  return true;
}

bool ParseValue(absl::string_view* text, Value* value) {
  if (text->empty()) return false;
  if (text->front() == '"') {
    value->kind = attr_value::kString;
    return ParseQuoted(text, &value->bytes);
  }
  if (text->front() == '(') {
    value->kind = attr_value::kShape;
    return ParseShapeText(text, &value->bytes);
  }
  size_t end = 0;
  while (end < text->size() &&
         (absl::ascii_isalnum((*text)[end]) || strchr("_+-.", (*text)[end]) != nullptr)) {
    ++end;
  }
  const absl::string_view word = text->substr(0, end);
  int64_t number = 0;
  float real = 0;
  absl::string_view mantissa = word;
  if (word == "true" || word == "false") {
    value->kind = attr_value::kBool;
    value->number = word == "true";
  } else if (DataTypeFromName(word) != kDtInvalid) {
    value->kind = attr_value::kType;
    value->number = DataTypeFromName(word);
  } else if (absl::SimpleAtoi(word, &number)) {
    value->kind = attr_value::kInt;
    value->number = number;
  } else if (absl::ConsumeSuffix(&mantissa, "f") && absl::SimpleAtof(mantissa, &real)) {
    value->kind = attr_value::kFloat;
    uint32_t bits = 0;
    std::memcpy(&bits, &real, sizeof bits);
    value->number = bits;
  } else {
    return false;
  }
  text->remove_prefix(end);
  return true;
}

void SkipSpace(absl::string_view* text) { *text = absl::StripLeadingAsciiWhitespace(*text); }

}  // namespace

std::string PrintHex(absl::string_view bytes) {
  return absl::StrCat("0x", absl::BytesToHexString(bytes));
}

bool ParseHex(absl::string_view* text, std::string* out) {
  absl::string_view rest = *text;
  if (!absl::ConsumePrefix(&rest, "0x")) return false;
  size_t end = 0;
  while (end < rest.size() && absl::ascii_isxdigit(rest[end])) ++end;
  if (end % 2 != 0) return false;
  out->append(absl::HexStringToBytes(rest.substr(0, end)));
  *text = rest.substr(end);
  return true;
}

std::string PrintAttr(absl::string_view value) {
  std::string text;
  const std::vector<Value> values = ReadValues(value);
  if (values.size() == 1 && values[0].kind == attr_value::kList) {
    text = absl::StrCat("[",
                        absl::StrJoin(ReadValues(values[0].bytes), ",",
                                      [](std::string* out, const Value& item) {
                                        absl::StrAppend(out, PrintValue(item));
                                      }),
                        "]");
  } else if (values.size() == 1) {
    text = PrintValue(values[0]);
  }
  // The text is used only if it parses to exactly the same bytes.
  std::string bytes;
  absl::string_view rest = text;
  if (!text.empty() && ParseAttr(&rest, &bytes) && rest.empty() && bytes == value) return text;
  return PrintHex(value);
}

bool ParseAttr(absl::string_view* text, std::string* out) {
  if (ParseHex(text, out)) return true;
  Value value;
  if (text->empty() || text->front() != '[') {
    if (!ParseValue(text, &value)) return false;
    AppendValue(value, out);
    return true;
  }
  text->remove_prefix(1);
  std::vector<Value> values;
  for (SkipSpace(text); !absl::ConsumePrefix(text, "]"); SkipSpace(text)) {
    if (!values.empty() && !absl::ConsumePrefix(text, ",")) return false;
    SkipSpace(text);
    values.emplace_back();
    const absl::string_view item = *text;
    if (!ParseValue(text, &values.back())) return false;
    if (values.back().kind != values[0].kind) {
      *text = item;
      return false;
    }
  }
  AppendList(values, out);
  return true;
}

}  // namespace spillway::testing
