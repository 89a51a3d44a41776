// The samples work as documented, here and on a server.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/rewriter.h"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/client_lib/test_server.h"

namespace spillway::testing {
namespace {

using ::testing::HasSubstr;

const char kTrainer[] = SPILLWAY_SAMPLES_DIR "/trainer_without_tensorflow";
const char kCProgram[] = SPILLWAY_SAMPLES_DIR "/rewrite_graph";

// It does not fit unswapped into the default machine: a rewrite changes it.
const char kGraph[] = SPILLWAY_TEST_GRAPHS "/resnet50_tf1/graph_shapes.pb";

std::string Expected() {
  const auto response = core::Rewrite(ReadFile(kGraph), v1::RewriteOptions(), core::DefaultLimits(),
                                      core::StopToken());
  EXPECT_EQ(response->report().outcome(), v1::OUTCOME_REWRITTEN);
  return response->graph_def();
}

TEST(SamplesTest, TheTrainerTrainsWithTheRewrittenGraph) {
  TestServer server;
  const std::string size = std::to_string(Expected().size());
  for (const std::string& target : {std::string(), server.target()}) {
    const ChildResult result = RunChild({kTrainer, kGraph, target});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("training with " + size + " bytes"));
  }
}

TEST(SamplesTest, TheTrainerGoesOnWithTheOriginal) {
  const std::string size = std::to_string(ReadFile(kMnistPath).size());
  const ChildResult result = RunChild({kTrainer, kMnistPath, "", R"({"scoop": {}})"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("not rewritten: json is not a spillway.v1.RewriteOptions"));
  EXPECT_THAT(result.out, HasSubstr("training with " + size + " bytes"));
}

TEST(SamplesTest, TheCProgramWritesTheRewrittenGraph) {
  TestServer server;
  const TempDir folder;
  for (const std::string& target : {std::string(), server.target()}) {
    const std::string path = folder / "out.pb";
    const ChildResult result = RunChild({kCProgram, kGraph, path, target});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("rewriting"));
    EXPECT_EQ(ReadFile(path), Expected());
  }
  const ChildResult result = RunChild({kCProgram, "/dev/null", folder / "none.pb"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("[EMPTY_GRAPH]"));
}

}  // namespace
}  // namespace spillway::testing
