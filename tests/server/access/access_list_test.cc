#include "server/access/access_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "tests/server/manual_clock.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// SHA-256 of "abc" and of the empty string, as FIPS 180-2 and NIST's examples give them.
constexpr char kDigestOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kDigestOfNothing[] =
    "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";

constexpr char kTwoTeams[] = R"(
caller { name: "team-a" token_sha256: "%s" certificate: "a.example" }
caller { name: "team-b" certificate: "b.example" certificate: "spiffe://b" })";

class AccessListTest : public testing::Test {
 protected:
  static std::string TwoTeams() {
    std::string text = kTwoTeams;
    return text.replace(text.find("%s"), 2, kDigestOfAbc);
  }

  void Load(const std::string& text) {
    folder_.Write("callers", text);
    auto list = AccessList::Load(folder_.path("callers"), metrics_, clock_);
    ASSERT_TRUE(list.ok()) << list.status();
    list_ = *std::move(list);
  }

  // Passes the interval after which the file is checked again.
  void PassLookInterval() { clock_.Advance(absl::Seconds(1)); }

  // Returns the name of the caller with these credentials; otherwise "", and sets `refusal_`.
  std::string NameOf(const Credentials& shown) {
    const auto found = list_->Find(shown);
    refusal_ = found.status();
    if (found.ok()) return (*found)->name();
    EXPECT_EQ(refusal_.code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(core::GetErrorReason(refusal_), v1::ERROR_REASON_UNKNOWN_CALLER);
    return "";
  }
  std::string NameOfToken(const std::string& authorization) {
    return NameOf({{}, {authorization}});
  }
  std::string NameOfCertificate(const std::string& name) { return NameOf({{name}, {}}); }

  const test_certs::TempFolder folder_;
  ManualClock clock_;
  prometheus::Registry registry_;
  Metrics metrics_{registry_, "1.2.3"};
  std::unique_ptr<AccessList> list_;
  absl::Status refusal_;
};

TEST_F(AccessListTest, TokensAreKnownByTheirDigest) {
  Load(TwoTeams());
  EXPECT_EQ(NameOfToken("Bearer abc"), "team-a");
  EXPECT_EQ(NameOfToken("bearer abc"), "team-a") << "the scheme is in any case (RFC 7235)";
  EXPECT_EQ(NameOfToken("Bearer  abc "), "team-a");
  for (const char* wrong : {"Bearer ab", "Bearer abcd", "Bearer ABC", "Bearer abc abc"}) {
    EXPECT_EQ(NameOfToken(wrong), "") << wrong;
    EXPECT_THAT(std::string(refusal_.message()), Not(HasSubstr("abc")));
  }
  EXPECT_EQ(NameOfToken(absl::StrCat("Bearer ", kDigestOfAbc)), "") << "the digest is no token";
}

TEST_F(AccessListTest, WhatIsNotSpelledAsATokenIsRefused) {
  Load(absl::StrCat("caller { name: \"x\" anybody: true token_sha256: \"", kDigestOfNothing,
                    "\" }"));
  for (const char* wrong : {"", "Bearer", "Bearer ", "Basic abc", "abc", "Bearerabc"}) {
    EXPECT_EQ(NameOfToken(wrong), "") << wrong;
    EXPECT_THAT(std::string(refusal_.message()), HasSubstr("Bearer TOKEN"));
  }
  EXPECT_EQ(NameOf({{}, {"Bearer abc", "Bearer abc"}}), "");
}

TEST_F(AccessListTest, CertificatesAreKnownByAnyOfTheirNames) {
  Load(TwoTeams());
  EXPECT_EQ(NameOfCertificate("a.example"), "team-a");
  EXPECT_EQ(NameOf({{"somebody", "spiffe://b"}, {}}), "team-b");
  EXPECT_EQ(NameOfCertificate("A.example"), "");
  EXPECT_EQ(NameOfCertificate("c.example"), "");
  EXPECT_THAT(std::string(refusal_.message()), HasSubstr("'c.example'"));
  EXPECT_EQ(NameOf({}), "");
  EXPECT_THAT(std::string(refusal_.message()), HasSubstr("neither a token"));
}

TEST_F(AccessListTest, ATokenDecidesAlone) {
  Load(TwoTeams());
  EXPECT_EQ(NameOf({{"b.example"}, {"Bearer abc"}}), "team-a");
  EXPECT_EQ(NameOf({{"b.example"}, {"Bearer wrong"}}), "");
}

TEST_F(AccessListTest, AnybodyIsWhoIsNobodyElse) {
  Load(TwoTeams() + "caller { name: \"guests\" anybody: true }");
  EXPECT_EQ(NameOf({}), "guests");
  EXPECT_EQ(NameOfCertificate("c.example"), "guests");
  EXPECT_EQ(NameOfCertificate("b.example"), "team-b");
  EXPECT_EQ(NameOfToken("Bearer wrong"), "") << "a wrong token is a mistake to be told of";
}

TEST_F(AccessListTest, AChangedFileIsTakenAndKeepsWhatWasUsed) {
  Load(R"(caller { name: "x" certificate: "old" quota { requests_in_flight: 1 } })");
  const auto account = list_->Find({{"old"}, {}});
  ASSERT_TRUE(account.ok());
  ASSERT_TRUE((*account)->Begin(clock_.Now()).status.ok());
  folder_.Write("callers",
                R"(caller { name: "x" certificate: "new" quota { requests_in_flight: 2 } }
                              caller { name: "y" certificate: "old" })");
  clock_.Advance(absl::Milliseconds(999));
  EXPECT_EQ(NameOfCertificate("old"), "x") << "not looked at yet";
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(NameOfCertificate("old"), "y");
  const auto again = list_->Find({{"new"}, {}});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *account) << "the account of x";
  EXPECT_TRUE((*again)->Begin(clock_.Now()).status.ok());
  EXPECT_FALSE((*again)->Begin(clock_.Now()).status.ok()) << "the first is still in flight";
}

TEST_F(AccessListTest, ABrokenOrMissingFileKeepsTheOldCallers) {
  Load(TwoTeams());
  folder_.Write("callers", "caller { name:");
  PassLookInterval();
  EXPECT_EQ(NameOfCertificate("a.example"), "team-a");
  folder_.Write("callers", "");
  PassLookInterval();
  EXPECT_EQ(NameOfCertificate("a.example"), "team-a");
  ASSERT_EQ(rename(folder_.path("callers").c_str(), folder_.path("away").c_str()), 0);
  PassLookInterval();
  EXPECT_EQ(NameOfCertificate("a.example"), "team-a");
  folder_.Write("callers", R"(caller { name: "c" certificate: "c.example" })");
  PassLookInterval();
  EXPECT_EQ(NameOfCertificate("c.example"), "c");
  EXPECT_EQ(NameOfCertificate("a.example"), "");
}

TEST_F(AccessListTest, SeriesAreThoseOfTheFile) {
  Load(TwoTeams());
  (void)NameOfCertificate("stranger.example");
  const std::string text = prometheus::TextSerializer().Serialize(registry_.Collect());
  EXPECT_THAT(text, HasSubstr("\nspillway_caller_requests_total{caller=\"team-a\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nspillway_caller_cpu_seconds_total{caller=\"team-b\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nspillway_caller_rejected_requests_total{caller=\"team-a\","
                              "quota=\"requests_in_flight\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("stranger")));
}

TEST_F(AccessListTest, ABrokenFileAtTheStartIsAnError) {
  const std::string broken = folder_.Write("broken", "caller {\n  name: 5\n}\n");
  const absl::Status status = AccessList::Load(broken, metrics_, clock_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr(broken), HasSubstr("line 2: ")));
}

}  // namespace
}  // namespace spillway::server
