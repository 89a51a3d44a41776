#include "rewrite_core/strategy/common/name_pattern.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "re2/re2.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using testing::IsInvalid;
using testing::IsOk;
using Kind = NamePattern::Kind;

bool Matches(Kind kind, const std::string& text, const std::string& name) {
  return testing::ValueOrDie(NamePattern::Create(kind, text, "option"), text).Matches(name);
}

struct MatchCase {
  Kind kind;
  std::string text, name;
  bool matches;
};

TEST(NamePatternTest, MatchesByHand) {
  const std::vector<MatchCase> cases = {
      {Kind::kPrefix, "gradients", "gradients/a", true},
      {Kind::kPrefix, "gradients", "gradients_1/a", true},  // A prefix, not a scope.
      {Kind::kPrefix, "gradients", "my/gradients", false},
      {Kind::kPrefix, "gradients/", "gradients", false},
      {Kind::kPrefix, "G", "G", true},
      {Kind::kExact, "a/b", "a/b", true},
      {Kind::kExact, "a/b", "a/b/c", false},
      {Kind::kExact, "a/b", "x/a/b", false},
      {Kind::kScope, "loss", "loss", true},
      {Kind::kScope, "loss", "loss/x/y", true},
      {Kind::kScope, "loss", "loss_1", false},
      {Kind::kScope, "loss", "los", false},
      {Kind::kScope, "loss/", "loss", true},
      {Kind::kScope, "loss/", "loss/x", true},
      {Kind::kScope, "loss//", "loss//x", true},  // One slash is dropped, not two.
      {Kind::kScope, "loss//", "loss/x", false},
      // "a dot matches anything"
      {Kind::kPrefix, "a.c", "abc/x", true},
      {Kind::kPrefix, "a.c", "ac", false},
      {Kind::kExact, "a.c", "a.c", true},
      {Kind::kExact, "a.c", "a/c", true},
      {Kind::kExact, "a\\.c", "a.c", true},
      {Kind::kExact, "a\\.c", "abc", false},
      {Kind::kScope, "a\\.c", "a.c/d", true},
      {Kind::kScope, "a\\.c$", "a.c", true},
      {Kind::kScope, "a\\.c$", "a.c/d", false},
      {Kind::kPrefix, "a\\.c", "a.cd", true},
      {Kind::kPrefix, "a$", "ab", false},
      {Kind::kScope, "l[ao]ss", "lass/x", true},
      {Kind::kScope, "l[ao]ss", "less/x", false},
      {Kind::kPrefix, "tower_\\d+/", "tower_12/a", true},
      {Kind::kPrefix, "tower_\\d+/", "tower_/a", false},
      {Kind::kPrefix, ".*grad", "a/b/grad", true},
      // Characters without a special meaning in regular expressions.
      {Kind::kPrefix, "a-b_c/d", "a-b_c/d", true},
      {Kind::kPrefix, "a>b", "a>b", true},
  };
  for (const MatchCase& c : cases) {
    EXPECT_EQ(Matches(c.kind, c.text, c.name), c.matches) << c.text << " on " << c.name;
  }
}

// The expression into which v1 inserts the text.
std::string Pasted(Kind kind, absl::string_view text) {
  switch (kind) {
    case Kind::kPrefix:
      return absl::StrCat("^", text);
    case Kind::kExact:
      return absl::StrCat("^", text, "$");
    case Kind::kScope:
      return absl::StrCat("^", absl::StripSuffix(text, "/"), "(/.*)?$");
  }
  return "";
}

std::string RandomText(std::mt19937* random, absl::string_view alphabet, int max_length) {
  std::string text;
  for (int n = 1 + (*random)() % max_length; n > 0; --n) {
    text += alphabet[(*random)() % alphabet.size()];
  }
  return text;
}

TEST(NamePatternTest, PlainTextsAndRegularExpressionsMeanTheSameToRe2) {
  std::mt19937 random(7);
  int matched = 0, special = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Kind kind = static_cast<Kind>(i % 3);
    // Half of the texts have only characters that plain comparison handles.
    const std::string text = RandomText(&random,
                                        i % 2 == 0   ? "ab/_-"
                                        : i % 4 == 1 ? "ab/.*|()[]?"
                                                     : "ab/_.\\$-",
                                        4);
    const RE2 regex(Pasted(kind, text), RE2::Quiet);
    const auto pattern = NamePattern::Create(kind, text, "option");
    if (text == "/" && kind == Kind::kScope) {
      EXPECT_FALSE(pattern.ok());
      continue;
    }
    ASSERT_EQ(pattern.ok(), regex.ok()) << text;
    if (!regex.ok()) continue;
    special += i % 2;
    for (int k = 0; k < 5; ++k) {
      const std::string name = RandomText(&random, "ab/_-.$\\", 5);
      const bool expected = RE2::PartialMatch(name, regex);
      matched += expected;
      ASSERT_EQ(pattern->Matches(name), expected) << text << " on " << name;
    }
  }
  EXPECT_GT(matched, 5'000);
  EXPECT_GT(special, 3'000);
}

struct BadCase {
  std::string name;
  Kind kind;
  std::string text;
  v1::ErrorReason reason;
};

class BadPatternTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadPatternTest, IsRefused) {
  const auto pattern = NamePattern::Create(GetParam().kind, GetParam().text, "excl_scopes");
  EXPECT_THAT(pattern, IsInvalid(GetParam().reason, "excl_scopes has "));
  EXPECT_EQ(testing::ErrorDetailOf(pattern, "option"), "excl_scopes");
}

INSTANTIATE_TEST_SUITE_P(
    NamePattern, BadPatternTest,
    ::testing::Values(
        BadCase{"Empty", Kind::kPrefix, "", v1::ERROR_REASON_BAD_OPTION},
        BadCase{"OnlyASlash", Kind::kScope, "/", v1::ERROR_REASON_BAD_OPTION},
        BadCase{"OpenBracket", Kind::kPrefix, "a(b", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"OpenClass", Kind::kExact, "a[b", v1::ERROR_REASON_BAD_REGEX},
        // Closes the bracket of the tail in v1; an error here.
        BadCase{"CloseBracket", Kind::kScope, "a)", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"NothingToRepeat", Kind::kPrefix, "**", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"Lookahead", Kind::kPrefix, "a(?=b)", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"NegativeLookahead", Kind::kPrefix, "(?!a)", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"Lookbehind", Kind::kScope, "(?<=a)b", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"BackReference", Kind::kScope, "(a)\\1", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"TrailingBackslash", Kind::kPrefix, "a\\", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"Explosion", Kind::kPrefix, "((a{100}){100}){100}", v1::ERROR_REASON_BAD_REGEX},
        BadCase{"TooLong", Kind::kPrefix, std::string(4096, 'a') + ".",
                v1::ERROR_REASON_BAD_REGEX}),
    testing::CaseName());

TEST(NamePatternTest, TheTwinsAreAccepted) {
  for (const char* text : {"a(b)", "a[b]", "a*", "(?:a)", "(a)b", "a\\\\", "(a{10}){10}"}) {
    EXPECT_THAT(NamePattern::Create(Kind::kScope, text, "o"), IsOk()) << text;
  }
  EXPECT_THAT(NamePattern::Create(Kind::kPrefix, std::string(4095, 'a') + ".", "o"), IsOk());
  // A plain text of any length is only compared.
  EXPECT_THAT(NamePattern::Create(Kind::kPrefix, std::string(100'000, 'a'), "o"), IsOk());
}

// A pattern that takes exponential time in a backtracking engine.
TEST(NamePatternTest, MatchingTakesLinearTime) {
  EXPECT_FALSE(Matches(Kind::kExact, "(a*)*(a*)*(a*)*b", std::string(50'000, 'a')));
}

TEST(NamePatternTest, OnePatternPerText) {
  const auto patterns = CreatePatterns(Kind::kScope, {"a", "b."}, "o", {});
  ASSERT_THAT(patterns, IsOk());
  ASSERT_EQ(patterns->size(), 2u);
  EXPECT_TRUE((*patterns)[1].Matches("bx/y"));
  EXPECT_EQ((*patterns)[1].text(), "b.");
  EXPECT_THAT(CreatePatterns(Kind::kScope, {"a", "b("}, "o", {}),
              IsInvalid(v1::ERROR_REASON_BAD_REGEX, "'b('"));
  EXPECT_THAT(CreatePatterns(Kind::kScope, {}, "o", {}), IsOk());
}

std::vector<std::string> Times(size_t count, const std::string& text) {
  return std::vector<std::string>(count, text);
}

// Each list at its limit, and one above it.
TEST(NamePatternTest, ListsHaveLimits) {
  EXPECT_THAT(CreatePatterns(Kind::kScope, Times(kMaxPatterns, "conv"), "o", {}), IsOk());
  EXPECT_THAT(CreatePatterns(Kind::kScope, Times(kMaxPatterns + 1, "conv"), "o", {}),
              IsInvalid(v1::ERROR_REASON_LIMIT_EXCEEDED, absl::StrCat(kMaxPatterns + 1)));
  EXPECT_THAT(CreatePatterns(Kind::kScope, Times(kMaxRegexes, "conv."), "o", {}), IsOk());
  EXPECT_THAT(CreatePatterns(Kind::kScope, Times(kMaxRegexes + 1, "conv."), "o", {}),
              IsInvalid(v1::ERROR_REASON_LIMIT_EXCEEDED, "100"));
}

// Names escaped by Python's re.escape or by a script: they are compared as text, so they do not
// count as expressions.
TEST(NamePatternTest, EscapedNamesAreNoExpressions) {
  const auto patterns =
      CreatePatterns(Kind::kPrefix, Times(kMaxPatterns, "tower\\-0/a\\.b\\+1$"), "o", {});
  ASSERT_THAT(patterns, IsOk());
  const NamePattern& pattern = patterns->front();
  EXPECT_EQ(pattern.program_size(), 0);
  EXPECT_EQ(pattern.text(), "tower\\-0/a\\.b\\+1$");
  EXPECT_TRUE(pattern.Matches("tower-0/a.b+1"));
  EXPECT_FALSE(pattern.Matches("tower-0/a.b+1/c"));
  EXPECT_FALSE(pattern.Matches("tower-0/axb+1"));
}

// Tens of bytes that RE2 compiles to hundreds of kilobytes.
TEST(NamePatternTest, ExpressionsThatCountAreLimitedTogether) {
  const std::string counts = "(a{30}b{30}){30}";
  EXPECT_THAT(CreatePatterns(Kind::kScope, {counts}, "o", {}), IsOk());
  EXPECT_THAT(CreatePatterns(Kind::kScope, Times(20, counts), "o", {}),
              IsInvalid(v1::ERROR_REASON_LIMIT_EXCEEDED, "20000"));
  EXPECT_THAT(CreatePatterns(Kind::kScope, {"((a{100}){100}){100}"}, "o", {}),
              IsInvalid(v1::ERROR_REASON_BAD_REGEX, "a{100}"));
}

TEST(NamePatternTest, EachExpressionIsStoppedBefore) {
  const StopToken stop = StopToken::AfterStepsForTest(5 * StopPoller::kStride);
  EXPECT_EQ(CreatePatterns(Kind::kScope, Times(50, "a{100}"), "o", stop).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_LE(stop.steps_after_stop(), StopPoller::kStride);
}

}  // namespace
}  // namespace spillway::core
