#include "rewrite_core/analysis/shapes/output_signature.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rewrite_core/graph/attr_value.h"

namespace spillway::core {
namespace {

// Splits `NAME=DEFAULT`.
absl::string_view CutDefault(absl::string_view* word) {
  const size_t eq = word->find('=');
  if (eq == absl::string_view::npos) return {};
  const absl::string_view value = word->substr(eq + 1);
  *word = word->substr(0, eq);
  return value;
}

void SetType(int64_t dtype, bool is_ref, TensorFact* fact) {
  if (dtype > kRefOffset) {
    dtype -= kRefOffset;
    is_ref = true;
  }
  // Other numbers are not types.
  if (dtype < 0 || dtype > std::numeric_limits<int16_t>::max()) dtype = kDtInvalid;
  fact->dtype = static_cast<int16_t>(dtype);
  fact->is_ref = is_ref;
}

}  // namespace

OutputSignature::OutputSignature(const OpInfo& info) {
  for (absl::string_view text : absl::StrSplit(info.outputs, ' ', absl::SkipEmpty())) {
    Word word;
    if (absl::ConsumePrefix(&text, "[]")) {
      word.list_attr = text;
      fixed_ = false;
    } else {
      const size_t star = text.find('*');
      if (star != absl::string_view::npos) {
        word.number_attr = text.substr(0, star);
        const absl::string_view number = CutDefault(&word.number_attr);
        if (!absl::SimpleAtoi(number, &word.default_number)) word.default_number = -1;
        text = text.substr(star + 1);
        fixed_ = false;
      }
      word.is_ref = absl::ConsumePrefix(&text, "&");
      word.fixed_type = DataTypeFromName(text);
      if (word.fixed_type == kDtInvalid) {
        const absl::string_view otherwise = CutDefault(&text);
        word.type_attr = text;
        word.fixed_type = DataTypeFromName(otherwise);
      }
    }
    words_.push_back(word);
  }
}

int64_t OutputSignature::CountOf(const Word& word, NodeAttrs& attrs) const {
  int64_t count = 1;
  if (!word.list_attr.empty()) {
    const auto list = attrs.Find(word.list_attr);
    count = list ? CountAttrTypes(*list) : -1;
  } else if (!word.number_attr.empty()) {
    const auto number = attrs.Find(word.number_attr);
    count = number ? AttrInt(*number).value_or(-1) : word.default_number;
  }
  return count <= std::numeric_limits<int32_t>::max() ? count : -1;
}

int64_t OutputSignature::Count(NodeAttrs& attrs) const {
  return FirstPort(static_cast<int>(words_.size()), attrs);
}

int64_t OutputSignature::FirstPort(int argument, NodeAttrs& attrs) const {
  int64_t total = 0;
  for (int i = 0; i < argument && i < static_cast<int>(words_.size()); ++i) {
    const int64_t count = CountOf(words_[i], attrs);
    if (count < 0) return -1;
    total += count;
  }
  return total <= std::numeric_limits<int32_t>::max() ? total : -1;
}

void OutputSignature::SetTypes(NodeAttrs& attrs, absl::Span<TensorFact> facts) const {
  size_t port = 0;
  for (const Word& word : words_) {
    if (port >= facts.size()) return;
    if (!word.list_attr.empty()) {
      const auto list = attrs.Find(word.list_attr);
      if (!list) return;
      ForEachAttrType(*list, [&](DataType dtype) {
        SetType(dtype, false, &facts[port]);
        return ++port < facts.size();
      });
      continue;
    }
    const int64_t count = word.number_attr.empty() ? 1 : CountOf(word, attrs);
    if (count < 0) return;
    int64_t dtype = word.fixed_type;
    if (!word.type_attr.empty()) {
      if (const auto value = attrs.Find(word.type_attr)) dtype = AttrType(*value);
    }
    const size_t end = std::min(facts.size(), port + static_cast<size_t>(count));
    for (; port < end; ++port) SetType(dtype, word.is_ref, &facts[port]);
  }
}

}  // namespace spillway::core
