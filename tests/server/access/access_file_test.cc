#include "server/access/access_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

using test_certs::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The digest of "abc", as FIPS 180-2 gives it.
constexpr char kDigest[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string TokenLine(const std::string& digest) {
  return absl::StrCat("token_sha256: \"", digest, "\"");
}

TEST(AccessFileTest, EveryFieldIsRead) {
  const auto access =
      ParseAccessFile("f", absl::StrCat("# Comments are allowed.\n",
                                        "caller {\n"
                                        "  name: \"team-a\"\n"
                                        "  certificate: \"a.example\"\n"
                                        "  certificate: \"b.example\"\n",
                                        TokenLine(kDigest),
                                        "\n"
                                        "  quota {\n"
                                        "    requests_per_second: 2.5\n"
                                        "    requests_in_flight: 4\n"
                                        "    graph_bytes_per_second: 1e8\n"
                                        "    cpu_seconds_per_second: 0.5\n"
                                        "    burst_seconds: 30\n"
                                        "  }\n"
                                        "}\n"
                                        "caller { name: \"guests\" anybody: true }"));
  ASSERT_TRUE(access.ok()) << access.status();
  ASSERT_EQ(access->caller_size(), 2);
  const AccessFile::Caller& caller = access->caller(0);
  EXPECT_EQ(caller.name(), "team-a");
  EXPECT_THAT(caller.certificate(), testing::ElementsAre("a.example", "b.example"));
  EXPECT_THAT(caller.token_sha256(), testing::ElementsAre(kDigest));
  EXPECT_EQ(caller.quota().requests_per_second(), 2.5);
  EXPECT_EQ(caller.quota().requests_in_flight(), 4);
  EXPECT_EQ(caller.quota().graph_bytes_per_second(), 1e8);
  EXPECT_EQ(caller.quota().cpu_seconds_per_second(), 0.5);
  EXPECT_EQ(caller.quota().burst_seconds(), 30);
  EXPECT_TRUE(access->caller(1).anybody());
  EXPECT_EQ(DescribeCallers(*access),
            "caller team-a certificates=2 tokens=1 anybody=false requests_per_second=2.5 "
            "requests_in_flight=4 graph_bytes_per_second=100000000 cpu_seconds_per_second=0.5 "
            "burst_seconds=30\n"
            "caller guests certificates=0 tokens=0 anybody=true requests_per_second=none "
            "requests_in_flight=none graph_bytes_per_second=none cpu_seconds_per_second=none "
            "burst_seconds=10");
}

TEST(AccessFileTest, FaultsAreNamedWithTheirLine) {
  const std::string ok = absl::StrCat("caller { name: \"x\" ", TokenLine(kDigest), " }\n");
  const std::string upper = absl::AsciiStrToUpper(kDigest);
  const struct {
    std::string text;
    const char* line;
    const char* what;
  } cases[] = {
      {"", "line 1", "no caller"},
      {"# nothing but a comment\n", "line 1", "no caller"},
      {ok + "caler { }\n", "line 2", "no such field"},
      {ok + "caller {\n  nmae: \"y\"\n}\n", "line 3", "no such field"},
      {ok + "caller {\n  name: \"y\n}\n", "line 3", "text format"},
      {ok + "caller {\n  name: \"y\"\n", "line 4", "text format"},
      {ok + "caller {\n  name: \"y\"\n  anybody: perhaps\n}\n", "line 5", "not a value"},
      {"caller { anybody: true }", "line 1", "needs a name"},
      {ok + "\ncaller { name: \"a b\" anybody: true }", "line 3", "1 to 64 letters"},
      {ok + "\ncaller { name: \"a\\\"b\" anybody: true }", "line 3", "1 to 64 letters"},
      {absl::StrCat("caller { name: \"", std::string(65, 'n'), "\" anybody: true }"), "line 1",
       "1 to 64 letters"},
      {ok + "caller { name: \"x\" anybody: true }", "line 2", "another caller is named x"},
      {ok + "caller {\n  name: \"y\"\n}\n", "line 2", "the caller y cannot be recognized"},
      {"caller { name: \"y\" certificate: \"\" }", "line 1", "1 to 128 bytes"},
      {"caller {\n name: \"y\"\n certificate: \"c\"\n certificate: \"c\"\n}", "line 4", "twice"},
      {"caller { name: \"y\"\n token_sha256: \"secret\" }", "line 2", "64 hexadecimal digits"},
      {absl::StrCat("caller { name: \"y\"\n", TokenLine(std::string(64, 'g')), " }"), "line 2",
       "64 hexadecimal digits"},
      {ok + absl::StrCat("caller { name: \"y\"\n", TokenLine(upper), " }"), "line 3", "twice"},
      {"caller { name: \"y\" anybody: true }\ncaller { name: \"z\" anybody: true }", "line 2",
       "another caller has anybody"},
      {"caller { name: \"y\" anybody: true quota {\n requests_per_second: 0 } }", "line 2",
       "requests_per_second is 0"},
      {"caller { name: \"y\" anybody: true quota {\n requests_in_flight: -3 } }", "line 2",
       "requests_in_flight is -3"},
      {"caller { name: \"y\" anybody: true quota {\n\n cpu_seconds_per_second: nan } }", "line 3",
       "cpu_seconds_per_second is nan"},
      {"caller { name: \"y\" anybody: true quota {\n\n burst_seconds: inf } }", "line 3",
       "burst_seconds is inf"},
      {"caller { name: \"y\" anybody: true quota { requests_in_flight: 3000000000 } }", "line 1",
       "not a value"},
  };
  for (const auto& bad : cases) {
    const absl::Status status = ParseAccessFile("callers.txtpb", bad.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << bad.text;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("--access-file callers.txtpb: "),
                      HasSubstr(absl::StrCat(bad.line, ": ")), HasSubstr(bad.what)));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

// A token written into the file in plain text appears in no log.
TEST(AccessFileTest, NoFaultQuotesWhatMayBeAToken) {
  for (const char* text : {
           "caller { name: \"y\" token_sha256: \"t0pSecret\" }",
           "caller { name: \"y\" token_sha256: t0pSecret }",
           "caller { name: \"y\" token: \"t0pSecret\" }",
           "caller { name: \"y\" t0pSecret }",
           "caller { name: \"y\" anybody: t0pSecret }",
           "t0pSecret",
           "t0pSecret: 1",
           "[t0pSecret]: 1",
           "caller { name: \"y\" anybody: true quota { requests_per_second: t0pSecret } }",
           "caller { name: \"y\" token_sha256: \"t0pSecret }",
           "caller { name: \"t0pSecret !\" anybody: true }",
       }) {
    const absl::Status status = ParseAccessFile("f", text).status();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("t0pSecret"))) << text;
  }
}

TEST(AccessFileTest, TooManyCallersAreRefused) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&text, "caller { name: \"n", i, "\" certificate: \"c", i, "\" }\n");
  }
  EXPECT_TRUE(ParseAccessFile("f", text).ok());
  EXPECT_THAT(
      std::string(
          ParseAccessFile("f", text + "caller { name: \"y\" anybody: true }").status().message()),
      HasSubstr("1001 callers"));
}

TEST(AccessFileTest, FilesThatCannotBeReadAreNamed) {
  const TempFolder folder;
  const std::string none = folder.path("none");
  EXPECT_THAT(std::string(ReadAccessFile(none).status().message()),
              AllOf(HasSubstr("--access-file"), HasSubstr(none), HasSubstr("No such file")));
  EXPECT_THAT(std::string(ReadAccessFile(folder.path(".")).status().message()),
              HasSubstr("not a regular file"));
  const std::string large = folder.Write("large", std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(std::string(ReadAccessFile(large).status().message()),
              HasSubstr("more than 1048576 bytes"));
  EXPECT_EQ(ReadAccessFile(folder.Write("text", "x")).value(), "x");
}

}  // namespace
}  // namespace spillway::server
