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

// Protobuf's own count of what a parsed message takes is the oracle.
void ExpectCovers(const google::protobuf::Message& message) {
  const std::string wire = message.SerializeAsString();
  std::unique_ptr<google::protobuf::Message> parsed(message.New());
  ASSERT_TRUE(parsed->ParseFromString(wire));
  const int64_t cost = CostOfWire(message, wire).memory_bytes;
  EXPECT_GE(cost, static_cast<int64_t>(parsed->SpaceUsedLong()));
  // Nor far above: an honest request would be refused.
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
  // Field 1000, a varint, again and again.
  std::string wire;
  for (int i = 0; i < 1000; ++i) wire += std::string("\xc0\x3e\x01", 3);
  EXPECT_GT(CostOfWire(options, wire).memory_bytes, 16'000);
}

TEST(MessageCostTest, MalformedBytesAndDeepNestsEnd) {
  const v1::RewriteRequest request;
  EXPECT_GT(CostOfWire(request, std::string(100, '\xff')).memory_bytes, 0);
  EXPECT_GT(CostOfWire(request, "").memory_bytes, 0);
}

}  // namespace
}  // namespace spillway::core
