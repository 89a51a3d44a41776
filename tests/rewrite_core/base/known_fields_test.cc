#include "rewrite_core/base/known_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "spillway/v1/options.pb.h"
#include "spillway/v1/plan.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "tests/testing/matchers.h"

namespace spillway::core {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FileDescriptor;
using testing::IsInvalid;
using testing::IsOk;

void Add(int number, google::protobuf::Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(number, 1);
}

TEST(KnownFieldsTest, AFieldOfANewerApi) {
  v1::RewriteOptions options;
  options.mutable_level()->set_sync_mode(1);
  EXPECT_THAT(CheckKnownFields(options), IsOk());
  Add(4000, options.mutable_step()->add_feeds());
  EXPECT_THAT(
      CheckKnownFields(options),
      IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION,
                "Feed has field 4000, which this server does not know; see GetCapabilities"));
}

TEST(KnownFieldsTest, AFieldThatWasRemovedIsNamed) {
  v1::RewriteOptions options;
  Add(12, &options);
  EXPECT_THAT(CheckKnownFields(options),
              IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION,
                        "RewriteOptions has field 12, swap_encoding, which was removed from the "
                        "API; leave it out"));
  v1::RewriteOptions level;
  Add(16, level.mutable_level());
  EXPECT_THAT(CheckKnownFields(level), IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION,
                                                 "LevelStrategy has field 16, autotune_gpu_mem,"));
  v1::Plan plan;
  Add(4, &plan);
  EXPECT_THAT(CheckKnownFields(plan),
              IsInvalid(v1::ERROR_REASON_UNKNOWN_OPTION, "Plan has field 4, swap_encoding,"));
}

int CheckReserved(const Descriptor& message) {
  EXPECT_EQ(message.reserved_range_count(), message.reserved_name_count()) << message.full_name();
  for (int i = 0; i < message.reserved_range_count(); ++i) {
    const Descriptor::ReservedRange& range = *message.reserved_range(i);
    EXPECT_EQ(range.end, range.start + 1) << message.full_name() << ": one by one";
  }
  int reserved = message.reserved_range_count();
  for (int i = 0; i < message.nested_type_count(); ++i) {
    reserved += CheckReserved(*message.nested_type(i));
  }
  return reserved;
}

int CheckReserved(const FileDescriptor& file) {
  int reserved = 0;
  for (int i = 0; i < file.message_type_count(); ++i) {
    reserved += CheckReserved(*file.message_type(i));
  }
  for (int i = 0; i < file.dependency_count(); ++i) {
    if (file.dependency(i)->package() == file.package()) {
      reserved += CheckReserved(*file.dependency(i));
    }
  }
  return reserved;
}

TEST(KnownFieldsTest, NumbersAndNamesAreReservedInTheSameOrder) {
  EXPECT_GE(CheckReserved(*v1::RewriteRequest::descriptor()->file()) +
                CheckReserved(*v1::Plan::descriptor()->file()),
            3);
}

}  // namespace
}  // namespace spillway::core
