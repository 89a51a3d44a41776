#include "rewrite_core/base/message_cost.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::core {
namespace {

MessageCost CostOfWire(const google::protobuf::Message& type, const std::string& wire) {
  return CostOf(*type.GetDescriptor(), wire);
}

// Protobuf's own figure for the memory of a parsed message is the reference.
void ExpectCovers(const google::protobuf::Message& message) {
  const std::string wire = message.SerializeAsString();
  std::unique_ptr<google::protobuf::Message> parsed(message.New());
  ASSERT_TRUE(parsed->ParseFromString(wire));
  const int64_t cost = CostOfWire(message, wire).memory_bytes;
  EXPECT_GE(cost, static_cast<int64_t>(parsed->SpaceUsedLong()));
  // Nor far above, or honest requests would be refused.
  EXPECT_LE(cost, 6 * static_cast<int64_t>(parsed->SpaceUsedLong()) + 1024);
}

TEST(MessageCostTest, CoversWhatParsingTakes) {
  v1::RewriteOptions options;
  ExpectCovers(options);
  options.mutable_scope()->set_lb(3);
  for (int i = 0; i < 1000; ++i) {
    options.mutable_scope()->add_excl_scopes(absl::StrCat("scope", i, std::string(i % 40, 'x')));
  }
  ExpectCovers(options);
  for (int i = 0; i < 5000; ++i) options.mutable_step()->add_feeds();  // Two bytes each.
  ExpectCovers(options);
  v1::Feed& feed = *options.mutable_step()->add_feeds();
  for (int i = 0; i < 10'000; ++i) feed.add_dims(i % 2);  // Packed, a byte each.
  ExpectCovers(options);
  options.mutable_step()->set_profile(std::string(100'000, 'p'));
  ExpectCovers(options);
}

TEST(MessageCostTest, BlobsAreFieldsOfBytesAlone) {
  v1::RewriteOptions options;
  options.mutable_scope()->add_excl_scopes(std::string(1000, 's'));
  EXPECT_EQ(CostOfWire(options, options.SerializeAsString()).blob_bytes, 0);
  options.mutable_step()->set_profile(std::string(300, 'p'));
  EXPECT_EQ(CostOfWire(options, options.SerializeAsString()).blob_bytes, 300);
}

TEST(MessageCostTest, FieldsOfANewerApiCountToo) {
  v1::RewriteOptions options;
  // Field 1000, a varint, repeatedly.
  std::string wire;
  for (int i = 0; i < 1000; ++i) wire += std::string("\xc0\x3e\x01", 3);
  EXPECT_GT(CostOfWire(options, wire).memory_bytes, 16'000);
}

// A field with the wrong wire type is kept as an unknown field, which takes more memory:
// GraphHeader.total_size_bytes as a string of one byte used to be counted as one number.
TEST(MessageCostTest, CoversFieldsOfEveryWireType) {
  const v1::StreamRewriteHeader header;
  const v1::GraphHeader graph;
  const v1::RewriteOptions options;
  const v1::Feed feed;
  const v1::Hardware hardware;
  // Behind a tag: a number, 8 bytes, texts, groups (empty, of numbers, of texts, of groups), 4
  // bytes.
  struct Payload {
    int wire_type;
    std::string bytes;
  };
  const Payload payloads[] = {{0, "\x01"},
                              {1, std::string(8, 'x')},
                              {2, std::string("\0", 1)},
                              {2, "\x01x"},
                              {2, "\x14" + std::string(20, 'x')},
                              {3, ""},
                              {3, "\x08\x01\x08\x01\x08\x01"},
                              {3, std::string("\x0a\0\x0a\0", 4)},
                              {3, "\x0b\x0c\x0b\x0c"},
                              {5, std::string(4, 'x')}};
  for (const google::protobuf::Message* type :
       {static_cast<const google::protobuf::Message*>(&header),
        static_cast<const google::protobuf::Message*>(&graph),
        static_cast<const google::protobuf::Message*>(&options),
        static_cast<const google::protobuf::Message*>(&feed),
        static_cast<const google::protobuf::Message*>(&hardware)}) {
    for (int field = 1; field <= 15; ++field) {
      for (const Payload& payload : payloads) {
        std::string one(1, static_cast<char>(field << 3 | payload.wire_type));
        one += payload.bytes;
        if (payload.wire_type == 3) one += static_cast<char>(field << 3 | 4);
        for (const int count : {1, 17, 1000}) {
          std::string wire;
          for (int i = 0; i < count; ++i) wire += one;
          std::unique_ptr<google::protobuf::Message> parsed(type->New());
          if (!parsed->ParseFromString(wire)) continue;
          EXPECT_GE(CostOfWire(*type, wire).memory_bytes,
                    static_cast<int64_t>(parsed->SpaceUsedLong()))
              << type->GetTypeName() << " field " << field << ", wire type " << payload.wire_type
              << ", " << payload.bytes.size() << " bytes, " << count << " times";
        }
      }
    }
  }
}

TEST(MessageCostTest, MalformedBytesAndDeepNestsEnd) {
  const v1::RewriteRequest request;
  EXPECT_GT(CostOfWire(request, std::string(100, '\xff')).memory_bytes, 0);
  EXPECT_GT(CostOfWire(request, "").memory_bytes, 0);
}

}  // namespace
}  // namespace spillway::core
