#include "rewrite_core/graph/name_index.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace spillway::core {
namespace {

class NameIndexTest : public ::testing::Test {
 protected:
  // Adds `name` under the next id.
  int32_t Insert(const std::string& name) {
    names_.push_back(name);
    return index_.Insert(names_.back(), NameIndex::Tag(name),
                         static_cast<int32_t>(names_.size()) - 1, name_of_);
  }
  int32_t Find(absl::string_view name) const {
    return index_.Find(name, NameIndex::Tag(name), name_of_);
  }

  std::vector<std::string> names_;
  NameIndex index_;
  const std::function<absl::string_view(int32_t)> name_of_ = [this](int32_t id) {
    return absl::string_view(names_[id]);
  };
};

TEST_F(NameIndexTest, AnEmptyIndexFindsNothing) {
  EXPECT_EQ(Find("a"), NameIndex::kNotFound);
  index_.Reset(0);
  EXPECT_EQ(Find("a"), NameIndex::kNotFound);
  EXPECT_EQ(Find(""), NameIndex::kNotFound);
}

TEST_F(NameIndexTest, FindsEveryNameAndNoOther) {
  constexpr int kCount = 10'000;  // Many share a slot's first choice at a load of one half.
  index_.Reset(kCount);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(Insert(absl::StrCat("scope/node_", i)), NameIndex::kNotFound);
  }
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(Find(absl::StrCat("scope/node_", i)), i);
    ASSERT_EQ(Find(absl::StrCat("scope/node_", i + kCount)), NameIndex::kNotFound);
  }
}

TEST_F(NameIndexTest, ASecondInsertGivesTheFirstId) {
  index_.Reset(3);
  EXPECT_EQ(Insert("a"), NameIndex::kNotFound);
  EXPECT_EQ(Insert("b"), NameIndex::kNotFound);
  EXPECT_EQ(Insert("a"), 0);
  EXPECT_EQ(Find("a"), 0);
}

TEST_F(NameIndexTest, ItMayBeFullToWhatItWasResetTo) {
  for (size_t count : {1, 8, 9, 16, 17}) {
    names_.clear();
    index_.Reset(count);
    for (size_t i = 0; i < count; ++i) Insert(absl::StrCat("n", i));
    EXPECT_EQ(Find("other"), NameIndex::kNotFound);  // The search ends.
    EXPECT_EQ(Find(absl::StrCat("n", count - 1)), count - 1);
  }
}

TEST_F(NameIndexTest, ResetForgets) {
  index_.Reset(2);
  Insert("a");
  index_.Reset(2);
  EXPECT_EQ(Find("a"), NameIndex::kNotFound);
}

}  // namespace
}  // namespace spillway::core
