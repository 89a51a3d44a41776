#include "tests/fuzz/length_mutator.h"

#include <algorithm>
#include <vector>

#include "rewrite_core/base/wire_reader.h"
#include "rewrite_core/base/wire_writer.h"

namespace spillway::testing {
namespace {

constexpr int kMaxDoublings = 14;
// Messages in messages; the bytes of a graph look like some, too.
constexpr int kMaxDepth = 16;
// A tag and a length take no more.
constexpr size_t kMaxHeader = 10;

struct WireField {
  absl::string_view whole;
  uint32_t number;
  bool is_bytes;
  absl::string_view payload;  // If it is.
};

// None if `message` is not one.
std::vector<WireField> FieldsOf(absl::string_view message) {
  std::vector<WireField> fields;
  core::WireReader reader(message);
  while (reader.Next()) {
    const bool is_bytes = reader.IsBytes(reader.field());
    fields.push_back({reader.whole(), reader.field(), is_bytes,
                      is_bytes ? reader.bytes() : absl::string_view()});
  }
  if (!reader.ok()) fields.clear();
  return fields;
}

// `text` some power of two times, in at most `max_size` bytes; once if there is no room for more.
std::string Repeated(absl::string_view text, size_t max_size, Random* random) {
  const size_t most = max_size / std::max<size_t>(text.size(), 1);
  size_t times = std::min(size_t{1} << random->Between(1, kMaxDoublings), most);
  std::string repeated(text);
  for (; times > 1; --times) repeated.append(text.data(), text.size());
  return repeated;
}

std::string Scale(absl::string_view message, size_t max_size, int depth, Random* random);

// One field's new form.
std::string ScaleField(const WireField& field, size_t max_size, int depth, Random* random) {
  const auto with_payload = [&field](absl::string_view payload) {
    std::string bytes;
    core::AppendBytesField(field.number, payload, &bytes);
    return bytes;
  };
  if (!field.is_bytes || max_size < field.whole.size() + kMaxHeader) {
    return random->OneIn(4) ? "" : Repeated(field.whole, max_size, random);
  }
  if (depth < kMaxDepth && random->OneIn(2) && !FieldsOf(field.payload).empty()) {
    return with_payload(Scale(field.payload, max_size - kMaxHeader, depth + 1, random));
  }
  switch (random->Below(8)) {
    case 0:
      return "";
    case 1:
      return with_payload(field.payload.substr(0, field.payload.size() / 2));
    case 2:
    case 3:
    case 4:
      return with_payload(
          Repeated(field.payload.empty() ? "x" : field.payload, max_size - kMaxHeader, random));
    default:
      return Repeated(field.whole, max_size, random);
  }
}

std::string Scale(absl::string_view message, size_t max_size, int depth, Random* random) {
  const std::vector<WireField> fields = FieldsOf(message);
  if (fields.empty()) return Repeated(message.empty() ? "\n" : message, max_size, random);
  const WireField& field = random->Pick(fields);
  const size_t others = message.size() - field.whole.size();
  const size_t begin = field.whole.data() - message.data();
  std::string scaled(message.substr(0, begin));
  scaled += ScaleField(field, max_size - std::min(others, max_size), depth, random);
  const absl::string_view behind = message.substr(begin + field.whole.size());
  scaled.append(behind.data(), behind.size());
  return scaled;
}

}  // namespace

std::string ScaleLengths(absl::string_view message, size_t max_size, Random* random) {
  std::string scaled = Scale(message, max_size, 0, random);
  // A field that grew into one with a longer header.
  return scaled.size() <= max_size ? scaled : std::string(message);
}

}  // namespace spillway::testing
