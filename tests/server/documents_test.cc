// The tables of server/README.md agree with the program: its flags with their defaults, its
// metrics, its failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/access/access_file.h"
#include "server/flags.h"
#include "server/observe/request_record.h"
#include "server/server.h"
#include "spillway/v1/error.pb.h"
#include "tests/server/test_client.h"
#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

// Returns the section under the heading `## name`.
std::string Section(const std::string& heading) {
  std::ifstream file(SPILLWAY_SERVER_README);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t begin = text.find(absl::StrCat("\n## ", heading, "\n"));
  EXPECT_NE(begin, std::string::npos) << heading;
  return text.substr(begin + 1, text.find("\n## ", begin + 1) - begin - 1);
}

// Returns the rows of the table there, without its header, each cell stripped.
std::vector<std::vector<std::string>> Table(const std::string& heading) {
  const std::string section = Section(heading);
  std::vector<std::vector<std::string>> rows;
  for (const absl::string_view line : absl::StrSplit(section, '\n')) {
    if (!absl::StartsWith(line, "| `")) continue;
    std::vector<std::string> cells;
    for (absl::string_view cell : absl::StrSplit(line.substr(1), '|')) {
      cells.emplace_back(absl::StripAsciiWhitespace(cell));
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

// The names in a cell such as "`x`, `y`".
std::vector<std::string> Names(const std::string& cell) {
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(cell, ", ")) {
    names.emplace_back(absl::StripSuffix(absl::StripPrefix(name, "`"), "`"));
  }
  return names;
}

// `x` from "`x` ..."; "" from "".
std::string Code(const std::string& cell) {
  const std::vector<std::string> parts = absl::StrSplit(cell, '`');
  return parts.size() < 3 ? "" : parts[1];
}

TEST(DocumentsTest, FlagsAreThoseOfHelpWithTheirDefaults) {
  std::map<std::string, std::string> documented;
  for (const auto& row : Table("Flags")) {
    const std::vector<std::string> words = absl::StrSplit(Code(row[0]), ' ');
    EXPECT_TRUE(documented.emplace(words[0], Code(row[1])).second) << words[0] << " twice";
    EXPECT_GT(row[2].size(), 10u) << words[0] << " is not explained";
  }
  const char* const arguments[] = {"spillwayd", "--help"};
  const std::string help = ParseFlags(2, arguments).text;
  std::map<std::string, std::string> real;
  // `  -h,--help  ...` and `  --flag TYPE=default  ...`.
  const std::regex flag(R"((^|\n)  (?:-h,)?(--[a-z-]+)(?: ([^ \n]+))?)");
  for (std::sregex_iterator it(help.begin(), help.end(), flag), end; it != end; ++it) {
    const std::string type = (*it)[3];
    const size_t equals = type.rfind('=');
    real[(*it)[2]] = equals == std::string::npos ? "" : type.substr(equals + 1);
  }
  EXPECT_GT(real.size(), 20u) << help;
  EXPECT_EQ(documented, real);
}

TEST(DocumentsTest, MetricsAreThoseOfAScrape) {
  std::map<std::string, std::string> documented;
  for (const auto& row : Table("Metrics")) {
    for (const std::string& name : Names(row[0])) {
      EXPECT_TRUE(documented.emplace(name, row[1]).second) << name << " twice";
    }
    EXPECT_GT(row[2].size(), 3u) << row[0] << " is not explained";
  }
  const test_certs::TempFolder folder;
  Options options = TestOptions();  // With a caller, because its metrics have no series otherwise.
  options.access_file = folder.Write("callers", "caller { name: \"x\" anybody: true }");
  const auto server = Server::BuildAndStart(options);
  ASSERT_TRUE(server.ok()) << server.status();
  std::map<std::string, std::string> real;
  for (const absl::string_view line : absl::StrSplit((*server)->Scrape(), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (absl::StartsWith(line, "# TYPE ")) real[words[2]] = words[3];
  }
  EXPECT_GT(real.size(), 20u);
  EXPECT_EQ(documented, real);
}

// A record with every field set, which is also that of a failure.
TEST(DocumentsTest, FieldsAreThoseOfTheJournal) {
  std::set<std::string> documented;
  for (const auto& row : Table("Journal")) {
    for (const std::string& field : Names(row[0])) {
      EXPECT_TRUE(documented.insert(field).second) << field << " twice";
    }
    EXPECT_GT(row[1].size(), 5u) << row[0] << " is not explained";
  }
  RequestRecord record;
  record.code = absl::StatusCode::kInternal;
  record.caller = {"ipv4:127.0.0.1:1", "certificate"};
  record.caller_name = "caller";
  record.id = "id";
  record.traceparent = "traceparent";
  record.job = {"job", "user", "queue", "model"};
  RewriteRecord rewrite;
  rewrite.outcome = v1::OUTCOME_REWRITTEN;
  core::RewriteFigures& figures = rewrite.figures;
  figures.machine = "custom";
  figures.fit = v1::FIT_FITS;
  figures.swapped_tensors = figures.recomputed_nodes = 1;
  figures.host_peak_bytes = figures.step_before_ns = figures.step_after_ns = 1;
  core::GpuFigures gpu;
  gpu.peak_after_bytes = gpu.budget_bytes = gpu.need_bytes = 1;
  figures.gpus.push_back(gpu);
  record.rewrite = rewrite;
  const auto line = nlohmann::json::parse(JournalLine(record, absl::UnixEpoch()));
  std::set<std::string> real;
  for (const auto& [name, value] : line.items()) real.insert(name);
  EXPECT_EQ(documented, real);
}

TEST(DocumentsTest, TheExampleOfCallersCanBeUsed) {
  const std::vector<std::string> parts = absl::StrSplit(Section("Who may call"), "\n```\n");
  ASSERT_GT(parts.size(), 2u);
  const auto access = ParseAccessFile("README.md", parts[1]);
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->caller_size(), 3);
}

TEST(DocumentsTest, FailuresAreTheReasonsOfTheApi) {
  std::set<std::string> documented;
  for (const auto& row : Table("Failures")) {
    for (const std::string& reason : Names(row[0])) {
      EXPECT_TRUE(documented.insert(reason).second) << reason << " twice";
    }
    EXPECT_GT(row[1].size(), 5u) << row[0] << " has no code";
    EXPECT_GT(row[2].size(), 10u) << row[0] << " does not say what to do";
  }
  std::set<std::string> real;
  const google::protobuf::EnumDescriptor& reasons = *v1::ErrorReason_descriptor();
  for (int i = 0; i < reasons.value_count(); ++i) {
    if (reasons.value(i)->number() == 0) continue;
    real.emplace(absl::StripPrefix(reasons.value(i)->name(), "ERROR_REASON_"));
  }
  EXPECT_EQ(documented, real);
}

}  // namespace
}  // namespace spillway::server
