// Whole rewrites, each in a file that people can read: tests/golden/cases/NAME.golden. A file holds
// comments (`#`), and sections that begin with a line `== TITLE`:
//
//   == options              RewriteOptions in protobuf's text form
//   == graph                the graph in the text form (tests/testing/text_form.h)
//   == rewritten            the expected graph, without the attributes _spillway_undo; or the one
//                           word `unchanged`
//   == decisions            expected verdicts, `TENSOR REASON`, in the order of decision (optional)
//   == error                instead of the two: the expected ErrorReason, then words that the
//                           message holds
//
// Expected values are derived by hand, in the comments. There is no way to update a file from our
// own output; with SPILLWAY_GOLDEN_ACTUAL=1 the output is written beside it as NAME.golden.actual.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/rewriter.h"
#include "tests/testing/core_test_util.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_schema.pb.h"
#include "tests/testing/text_form.h"

namespace spillway::core {
namespace {

using testing::ParseGraphText;
using testing::PrintGraph;

using Lines = std::vector<std::string>;

struct GoldenCase {
  std::string name;
  std::string path;
};

// Sections by title, without comments and empty lines.
std::map<std::string, Lines> ReadSections(const std::string& path) {
  const std::vector<std::string> known = {"options", "graph", "rewritten", "decisions", "error"};
  std::map<std::string, Lines> sections;
  std::string title;
  for (absl::string_view line : absl::StrSplit(testing::ReadFile(path), '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (absl::ConsumePrefix(&line, "== ")) {
      title = std::string(line);
      EXPECT_NE(std::find(known.begin(), known.end(), title), known.end()) << title;
      EXPECT_EQ(sections.count(title), 0u) << title << " twice";
      sections[title];
    } else {
      sections[title].emplace_back(line);
    }
  }
  return sections;
}

// The graph's lines in the one spelling that printing gives.
Lines Canonical(const std::string& bytes) {
  const testing::TestGraph graph = testing::TestGraph::FromBytes(bytes);
  return absl::StrSplit(PrintGraph(*graph), '\n', absl::SkipEmpty());
}

std::string WithoutUndo(const std::string& bytes) {
  testing::GraphDef graph;
  EXPECT_TRUE(graph.ParseFromString(bytes));
  for (testing::NodeDef& node : *graph.mutable_node()) node.mutable_attr()->erase("_spillway_undo");
  return graph.SerializeAsString();
}

// The difference as `diff` shows it, by a longest common subsequence; empty without one.
std::string Diff(const Lines& expected, const Lines& actual) {
  const size_t n = expected.size(), m = actual.size();
  std::vector<std::vector<int>> common(n + 1, std::vector<int>(m + 1, 0));
  for (size_t i = n; i-- > 0;) {
    for (size_t j = m; j-- > 0;) {
      common[i][j] = expected[i] == actual[j] ? common[i + 1][j + 1] + 1
                                              : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string diff;
  bool differs = false;
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && expected[i] == actual[j]) {
      absl::StrAppend(&diff, "  ", expected[i++], "\n");
      ++j;
    } else if (j == m || (i < n && common[i + 1][j] >= common[i][j + 1])) {
      absl::StrAppend(&diff, "- ", expected[i++], "\n");
      differs = true;
    } else {
      absl::StrAppend(&diff, "+ ", actual[j++], "\n");
      differs = true;
    }
  }
  return differs ? diff : "";
}

void ExpectLines(absl::string_view what, const Lines& expected, const Lines& actual) {
  const std::string diff = Diff(expected, actual);
  if (!diff.empty()) ADD_FAILURE() << what << " (- expected, + actual):\n" << diff;
}

class GoldenTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenTest, IsWhatTheFileSays) {
  const auto sections = ReadSections(GetParam().path);
  ASSERT_EQ(sections.count("options"), 1u);
  ASSERT_EQ(sections.count("graph"), 1u);
  ASSERT_NE(sections.count("error"), sections.count("rewritten")) << "one of the two";
  v1::RewriteOptions options;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrJoin(sections.at("options"), "\n"), &options));
  const auto before = ParseGraphText(absl::StrJoin(sections.at("graph"), "\n"));
  ASSERT_THAT(before, testing::IsOk());

  const auto response = Rewrite(*before, options, DefaultLimits(), StopToken());
  std::string actual;
  if (!response.ok()) {
    const std::string reason = v1::ErrorReason_Name(GetErrorReason(response.status()));
    actual = absl::StrCat("== error\n", absl::StripPrefix(reason, "ERROR_REASON_"), "\n",
                          response.status().message(), "\n");
  } else {
    actual = absl::StrCat("== rewritten\n",
                          absl::StrJoin(Canonical(WithoutUndo(response->graph_def())), "\n"), "\n");
  }
  Lines decisions;
  if (response.ok()) {
    for (const v1::Decision& d : response->report().decisions()) {
      decisions.push_back(
          absl::StrCat(d.tensor(), " ", absl::StripPrefix(v1::Reason_Name(d.reason()), "REASON_")));
    }
    absl::StrAppend(&actual, "== decisions\n", absl::StrJoin(decisions, "\n"), "\n");
  }
  if (std::getenv("SPILLWAY_GOLDEN_ACTUAL") != nullptr) {
    std::ofstream(GetParam().path + ".actual") << actual;
  }

  if (sections.count("error") > 0) {
    ASSERT_FALSE(response.ok()) << "no error, but:\n" << actual;
    const Lines& expected = sections.at("error");
    ASSERT_GE(expected.size(), 1u);
    EXPECT_EQ(absl::StrCat("ERROR_REASON_", expected[0]),
              v1::ErrorReason_Name(GetErrorReason(response.status())));
    for (size_t i = 1; i < expected.size(); ++i) {
      EXPECT_THAT(std::string(response.status().message()), ::testing::HasSubstr(expected[i]));
    }
    return;
  }
  ASSERT_THAT(response, testing::IsOk());
  if (sections.at("rewritten") == Lines{"unchanged"}) {
    ExpectLines("graph", Canonical(*before), Canonical(response->graph_def()));
    EXPECT_EQ(response->graph_def(), *before) << "not the same bytes";
  } else {
    const auto expected = ParseGraphText(absl::StrJoin(sections.at("rewritten"), "\n"));
    ASSERT_THAT(expected, testing::IsOk());
    ExpectLines("graph", Canonical(*expected), Canonical(WithoutUndo(response->graph_def())));
    v1::RewriteOptions strip;
    strip.mutable_strip();
    const auto stripped = Rewrite(response->graph_def(), strip, DefaultLimits(), StopToken());
    ASSERT_THAT(stripped, testing::IsOk());
    EXPECT_EQ(stripped->graph_def(), *before) << "strip does not give the bytes back";
  }
  if (sections.count("decisions") > 0) {
    ExpectLines("decisions", sections.at("decisions"), decisions);
  }
}

std::vector<GoldenCase> Cases() {
  std::vector<GoldenCase> cases;
  for (const auto& entry : std::filesystem::directory_iterator(SPILLWAY_GOLDEN_CASES)) {
    if (entry.path().extension() != ".golden") continue;
    cases.push_back({entry.path().stem().string(), entry.path().string()});
  }
  std::sort(cases.begin(), cases.end(),
            [](const GoldenCase& a, const GoldenCase& b) { return a.name < b.name; });
  if (cases.empty()) std::cerr << "no cases in " << SPILLWAY_GOLDEN_CASES << "\n";
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, ::testing::ValuesIn(Cases()), testing::CaseName());

TEST(GoldenRunnerTest, ADifferenceIsShownLineByLine) {
  EXPECT_EQ(Diff({"a", "b", "c"}, {"a", "b", "c"}), "");
  EXPECT_EQ(Diff({"a", "b", "c"}, {"a", "x", "c", "d"}), "  a\n- b\n+ x\n  c\n+ d\n");
  EXPECT_EQ(Diff({"a"}, {}), "- a\n");
}

TEST(GoldenRunnerTest, ThereAreCases) { EXPECT_GE(Cases().size(), 8u); }

}  // namespace
}  // namespace spillway::core
