#include "rewrite_core/base/strong_id.h"

#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"

namespace spillway::core {
namespace {

using Row = StrongId<struct RowTag>;
using Column = StrongId<struct ColumnTag>;

// Code that must not compile, each beside code that must.
static_assert(!std::is_convertible<int, Row>::value, "a number is not a row by itself");
static_assert(std::is_constructible<Row, int>::value, "");
static_assert(std::is_constructible<Row, size_t>::value, "");
static_assert(!std::is_convertible<Column, Row>::value, "a column is no row");
static_assert(!std::is_constructible<Row, Column>::value, "not even explicitly");
static_assert(std::is_constructible<Row, Row>::value, "");
static_assert(!std::is_assignable<Row&, Column>::value, "");
static_assert(!std::is_assignable<Row&, int>::value, "");
static_assert(std::is_assignable<Row&, Row>::value, "");
static_assert(!std::is_constructible<Row, double>::value, "a fraction is no index");
static_assert(!std::is_convertible<Row*, int32_t*>::value, "");
// Arrays of ids are as cheap as arrays of numbers.
static_assert(sizeof(Row) == sizeof(int32_t), "");
static_assert(std::is_trivial<Row>::value, "");

TEST(StrongIdTest, IsUsedAsTheNumber) {
  const std::vector<int> values = {10, 11, 12};
  int sum = 0;
  for (Row row(0); row < 3; ++row) sum += values[row];
  EXPECT_EQ(sum, 33);
  EXPECT_EQ(Row(-1).value(), -1);
  EXPECT_TRUE(Row(1) < Row(2));
  EXPECT_FALSE(Row(2) == Row(3));
  Row row(5);
  EXPECT_EQ(--row, 4);
}

TEST(StrongIdTest, Hashes) {
  absl::flat_hash_set<Row> rows = {Row(1), Row(2), Row(1)};
  EXPECT_EQ(rows.size(), 2);
  EXPECT_TRUE(rows.contains(Row(2)));
  EXPECT_FALSE(rows.contains(Row(3)));
}

}  // namespace
}  // namespace spillway::core
