// Every door has the same calls: the service, the C++ client and its connections, the C API, the
// Python package and the program are compared with the one list, doors.txt.
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/test_graphs.h"

namespace spillway::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Names = std::set<std::string>;

constexpr char kProgram[] = SPILLWAY_BIN_DIR "/spillway";
constexpr char kRoot[] = SPILLWAY_SOURCE_DIR;

std::string Source(const std::string& path) {
  const std::string text = ReadFile(absl::StrCat(kRoot, "/", path));
  EXPECT_FALSE(text.empty()) << path;
  return text;
}

// The first group of each match of `pattern`.
Names Found(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Names names;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

// From `begin` to the next `end`.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t first = text.find(begin);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find(end, first + begin.size()) - first);
}

enum Column { kMethod, kGrpc, kClient, kConnection, kC, kPython, kCommand, kColumns };

class DoorsTest : public ::testing::Test {
 protected:
  DoorsTest() {
    for (absl::string_view line : absl::StrSplit(Source("tests/client_lib/doors.txt"), '\n')) {
      if (line.empty() || line[0] == '#') continue;
      std::vector<std::string> cells = absl::StrSplit(line, '|');
      EXPECT_EQ(cells.size(), size_t{kColumns}) << line;
      cells.resize(kColumns);
      for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
      rows_.push_back(cells);
    }
  }

  // The names in a column, of the rows with calls unless `all`.
  Names In(Column column, bool all = true) const {
    Names names;
    for (const std::vector<std::string>& row : rows_) {
      if (row[column] == "-" || (!all && row[kMethod] == "local")) continue;
      for (absl::string_view name : absl::StrSplit(row[column], ',')) names.emplace(name);
    }
    return names;
  }

  std::vector<std::vector<std::string>> rows_;
};

TEST_F(DoorsTest, TheService) {
  const auto* file = v1::RewriteRequest::descriptor()->file();
  ASSERT_EQ(file->service_count(), 1);
  Names methods;
  for (int i = 0; i < file->service(0)->method_count(); ++i) {
    methods.insert(file->service(0)->method(i)->name());
  }
  EXPECT_EQ(methods, In(kGrpc));
}

TEST_F(DoorsTest, TheClientAndItsConnections) {
  const std::string client = Between(Source("client_lib/include/spillway/client.h"),
                                     "class SPILLWAY_EXPORT Client", " private:");
  EXPECT_EQ(Found(client, R"(\n  (?:absl::StatusOr|std::future)<[^;(]*> (\w+)\()"), In(kClient));
  const std::string connection = Between(Source("client_lib/include/spillway/connection.h"),
                                         "class SPILLWAY_EXPORT Connection", "\n};");
  const Names methods = Found(connection, R"(virtual absl::StatusOr<[^;(]*> (\w+)\()");
  EXPECT_EQ(methods, In(kConnection));
  // The mock of users' tests would not compile without one, and so would no connection of ours.
  EXPECT_EQ(Found(Source("client_lib/include/spillway/testing/mock_connection.h"),
                  R"(MOCK_METHOD\([^,]*, (\w+),)"),
            methods);
}

TEST_F(DoorsTest, TheCApi) {
  const std::string header = Source("client_lib/include/spillway/spillway.h");
  // All that are not about a handle of options or a call.
  EXPECT_EQ(Found(header, R"(spillway_status\* spillway_(?!client_|call_)(\w+)\()"), In(kC));
}

TEST_F(DoorsTest, ThePythonPackage) {
  const std::string all = Between(Source("client_lib/python/spillway/__init__.py"), "__all__", "]");
  EXPECT_EQ(Found(all, R"re("([a-z]\w*)")re"), In(kPython));
  EXPECT_EQ(Found(Source("client_lib/python/spillway/_client.py"), R"(\n    def ([a-z]\w*)\(self)"),
            In(kPython, /*all=*/false));
}

TEST_F(DoorsTest, TheProgram) {
  const ChildResult help = RunChild({kProgram, "--help"});
  ASSERT_EQ(help.exit_code, 0) << help.err;
  const size_t commands = help.out.find("\nSubcommands:");
  ASSERT_NE(commands, std::string::npos) << help.out;
  EXPECT_EQ(Found(Between(help.out.substr(commands), "\nSubcommands:", "\n\n"), R"(\n  (\w+))"),
            In(kCommand));
}

// Each command with a call may use a server, in the same words.
TEST_F(DoorsTest, TheConnectionFlagsOfEveryCommand) {
  for (const std::string& command : In(kCommand, /*all=*/false)) {
    const std::string help = RunChild({kProgram, command, "--help-all"}).out;
    for (const char* flag :
         {"--server", "--timeout", "--tls", "--tls-ca", "--tls-cert", "--tls-key",
          "--tls-server-name", "--token-file", "--token-in-clear", "--request-id"}) {
      EXPECT_THAT(help, HasSubstr(absl::StrCat("  ", flag, " "))) << command;
    }
    EXPECT_EQ(absl::StrContains(help, "--retries"), command != "health") << command;
    const bool rewrites =
        command == "rewrite" || command == "apply" || command == "strip" || command == "run";
    EXPECT_EQ(absl::StrContains(help, "--hedge-after"), rewrites) << command;
    EXPECT_THAT(help, Not(HasSubstr("lways in this process"))) << command;
  }
}

// So that its answers in process are a server's: it has no other source.
TEST_F(DoorsTest, TheProgramUsesOnlyTheClient) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(absl::StrCat(kRoot, "/client_lib/cli"))) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_THAT(Found(ReadFile(entry.path()), R"re(#include "(rewrite_core/(?!base/)[^"]*)")re"),
                IsEmpty())
        << entry.path();
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace spillway::testing
