#include "rewrite_core/base/byte_text.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spillway::core {
namespace {

constexpr struct {
  absl::string_view name;
  int64_t bytes;
} kUnits[] = {
    {"B", 1},
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
};

// The bytes of the unit; 0 if there is no such unit.
int64_t UnitBytes(absl::string_view name) {
  if (name.empty()) return 1;
  for (const auto& unit : kUnits) {
    if (absl::EqualsIgnoreCase(unit.name, name)) return unit.bytes;
  }
  return 0;
}

}  // namespace

std::string BytesText(int64_t bytes) {
  constexpr const char* kNames[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes > -1024 && bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; std::abs(value) >= 1024 && unit < 3; ++unit) value /= 1024;
  return absl::StrFormat("%.2f %s", value, kNames[unit]);
}

std::string DurationText(absl::Duration duration) {
  constexpr struct {
    absl::Duration from;  // The shortest duration that is printed in this unit.
    absl::Duration unit;
    const char* name;
  } kUnits[] = {
      {absl::Seconds(10), absl::Seconds(1), "s"},
      {absl::Microseconds(10), absl::Milliseconds(1), "ms"},
      {absl::Microseconds(1), absl::Microseconds(1), "us"},
  };
  const absl::Duration size = absl::AbsDuration(duration);
  for (const auto& [from, unit, name] : kUnits) {
    if (size < from) continue;
    const double value = absl::FDivDuration(duration, unit);
    const double magnitude = std::abs(value);
    return absl::StrFormat("%.*f %s", magnitude >= 100 ? 0 : magnitude >= 1 ? 1 : 2, value, name);
  }
  return absl::StrCat(absl::ToInt64Nanoseconds(duration), " ns");
}

std::string CountText(int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

absl::optional<int64_t> ParseBytes(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  size_t end = 0;
  while (end < text.size() && (absl::ascii_isdigit(text[end]) || text[end] == '.')) ++end;
  const absl::string_view number = text.substr(0, end);
  const int64_t unit = UnitBytes(absl::StripLeadingAsciiWhitespace(text.substr(end)));
  if (unit == 0 || number.empty()) return absl::nullopt;
  int64_t whole = 0;
  if (absl::SimpleAtoi(number, &whole)) {
    if (whole > std::numeric_limits<int64_t>::max() / unit) return absl::nullopt;
    return whole * unit;
  }
  double value = 0;
  // Requires a digit on both sides of the only point.
  if (number.front() == '.' || number.back() == '.' || !absl::SimpleAtod(number, &value)) {
    return absl::nullopt;
  }
  value *= static_cast<double>(unit);
  if (!(value < 0x1p63)) return absl::nullopt;  // 2^63 is exact as a double.
  return static_cast<int64_t>(value);
}

}  // namespace spillway::core
