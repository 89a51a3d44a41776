#include "rewrite_core/base/wire_reader.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "rewrite_core/base/wire_writer.h"

namespace spillway::core {
namespace {

using google::protobuf::internal::WireFormatLite;

// One line per field: its number, its value and its extent; then whether the bytes are well formed.
std::string Read(const std::string& bytes) {
  std::string text;
  WireReader reader(bytes);
  while (reader.Next()) {
    absl::StrAppend(&text, reader.field(), "=");
    if (reader.IsVarint(reader.field())) absl::StrAppend(&text, "n", reader.number());
    if (reader.IsFixed32(reader.field())) absl::StrAppend(&text, "f", reader.number());
    if (reader.IsBytes(reader.field())) {
      absl::StrAppend(&text, "b", reader.bytes().data() - bytes.data(), "+", reader.bytes().size());
    }
    absl::StrAppend(&text, "@", reader.whole().data() - bytes.data(), "+", reader.whole().size(),
                    "\n");
  }
  return text + (reader.ok() ? "ok" : "malformed");
}

// The same, as protobuf reads it field by field.
std::string ReadWithProtobuf(const std::string& bytes) {
  std::string text;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  while (true) {
    const int begin = stream.CurrentPosition();
    const uint32_t tag = stream.ReadTag();
    if (tag == 0) return text + (begin == static_cast<int>(bytes.size()) ? "ok" : "malformed");
    absl::StrAppend(&text, tag >> 3, "=");
    bool ok = true;
    uint64_t number = 0;
    uint32_t size = 0;
    switch (tag & 7) {
      case WireFormatLite::WIRETYPE_VARINT:
        ok = stream.ReadVarint64(&number);
        absl::StrAppend(&text, "n", number);
        break;
      case WireFormatLite::WIRETYPE_FIXED32:
        ok = stream.ReadLittleEndian32(&size);
        absl::StrAppend(&text, "f", size);
        break;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        ok = stream.ReadVarint32(&size);
        const int at = stream.CurrentPosition();
        ok = ok && size <= bytes.size() - at && stream.Skip(static_cast<int>(size));
        absl::StrAppend(&text, "b", at, "+", size);
        break;
      }
      default:
        ok = WireFormatLite::SkipField(&stream, tag);
    }
    if (!ok) return text.substr(0, text.rfind('\n') + 1) + "malformed";
    absl::StrAppend(&text, "@", begin, "+", stream.CurrentPosition() - begin, "\n");
  }
}

TEST(WireReaderTest, ReadsEachKindOfField) {
  std::string bytes;
  AppendVarintField(1, 127, &bytes);
  AppendBytesField(2, "ab", &bytes);
  bytes += std::string("\x1d\x05\0\0\0", 5);  // Field 3, four bytes.
  EXPECT_EQ(Read(bytes), "1=n127@0+2\n2=b4+2@2+4\n3=f5@6+5\nok");
  EXPECT_EQ(Read(""), "ok");
}

TEST(WireReaderTest, TellsBytesThatAreCutOff) {
  std::string bytes;
  AppendBytesField(2, "abc", &bytes);
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_EQ(Read(bytes.substr(0, size)), "malformed") << size;
  }
}

// Sizes and numbers around those that need another byte, and randomly damaged bytes.
TEST(WireReaderTest, ReadsWhatProtobufReads) {
  const std::vector<uint64_t> numbers = {0,     1,     127,        128,         16383,
                                         16384, 40000, 1ull << 32, ~uint64_t{0}};
  std::mt19937 random(1);
  const auto below = [&random](size_t n) { return random() % n; };
  int well_formed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (size_t fields = below(6); fields > 0; --fields) {
      const uint32_t field = below(3) == 0 ? 1 + below(5000) : 1 + below(15);
      switch (below(5)) {
        case 0:
          AppendVarintField(field, numbers[below(numbers.size())], &bytes);
          break;
        case 1:
          AppendBytesField(field, std::string(numbers[below(below(50) == 0 ? 7 : 4)], 'x'), &bytes);
          break;
        case 2:
          AppendVarint(field << 3 | WireFormatLite::WIRETYPE_FIXED32, &bytes);
          bytes += "four";
          break;
        case 3:
          AppendVarint(field << 3 | WireFormatLite::WIRETYPE_FIXED64, &bytes);
          bytes += "in eight";
          break;
        default:
          AppendVarint(field << 3 | WireFormatLite::WIRETYPE_START_GROUP, &bytes);
          AppendVarintField(1, 300, &bytes);
          AppendVarint(field << 3 | WireFormatLite::WIRETYPE_END_GROUP, &bytes);
      }
    }
    if (!bytes.empty() && below(2) == 0) bytes[below(bytes.size())] = static_cast<char>(random());
    if (below(4) == 0) bytes.resize(below(bytes.size() + 1));
    const std::string expected = ReadWithProtobuf(bytes);
    ASSERT_EQ(Read(bytes), expected) << "round " << round;
    well_formed += expected.size() >= 2 && expected.substr(expected.size() - 2) == "ok";
  }
  EXPECT_GT(well_formed, 5000);
  EXPECT_LT(well_formed, 19000);
}

}  // namespace
}  // namespace spillway::core
