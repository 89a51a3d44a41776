#include "rewrite_core/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"

namespace spillway::core {
namespace {

// FIPS 180-2, appendix B.1; and the digest of the empty string.
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string Hex(const absl::StatusOr<std::string>& digest) {
  return digest.ok() ? absl::BytesToHexString(*digest) : digest.status().ToString();
}

TEST(Sha256Test, KnownAnswers) {
  EXPECT_EQ(Hex(Sha256Of("abc", StopToken())), kOfAbc);
  EXPECT_EQ(Hex(Sha256Of("", StopToken())), kOfNothing);
}

TEST(Sha256Test, PiecesGiveWhatTheWholeGives) {
  Sha256 pieces;
  pieces.Update("a");
  pieces.Update("");
  pieces.Update("bc");
  EXPECT_EQ(Hex(pieces.Finish()), kOfAbc);
  // More than one stride of the one-shot form.
  const std::string large(5 << 20, 'a');
  Sha256 whole;
  whole.Update(large);
  EXPECT_EQ(Hex(whole.Finish()), Hex(Sha256Of(large, StopToken())));
}

TEST(Sha256Test, LooksAtTheStopToken) {
  const std::string large(5 << 20, 'a');
  const StopToken stop = StopToken::AfterStepsForTest(1);
  EXPECT_EQ(Sha256Of(large, stop).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace spillway::core
