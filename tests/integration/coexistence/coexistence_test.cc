// Our libraries in one process with others that carry TensorFlow's proto names, or functions with
// the names of the libraries that ours need.
#include <signal.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/client_lib/child_process.h"

namespace spillway::testing {
namespace {

// A library to load, and its function to call.
using Library = std::vector<std::string>;

Library LocalLibrary(const std::string& name, const std::string& function) {
  return {std::string(SPILLWAY_COEXISTENCE_DIR "/lib") + name + ".so", function};
}

const Library kTensorFlowNames = LocalLibrary("tensorflow_names", "use_tensorflow_names");
const Library kTensorFlowNamesAgain =
    LocalLibrary("tensorflow_names_again", "use_tensorflow_names");
const Library kForeignNames = LocalLibrary("foreign_names", "use_foreign_names");
const Library kCApi = LocalLibrary("c_api_user", "use_c_api");
const Library kClient = LocalLibrary("client_user", "use_client");

ChildResult LoadAndUse(const std::vector<Library>& libraries) {
  std::vector<std::string> command = {SPILLWAY_COEXISTENCE_DIR "/load_and_use"};
  for (const Library& library : libraries) {
    command.insert(command.end(), library.begin(), library.end());
  }
  return RunChild(command);
}

void ExpectAllWork(const std::vector<Library>& libraries) {
  const ChildResult result = LoadAndUse(libraries);
  EXPECT_EQ(result.exit_code, 0) << result.err << " signal " << result.signal;
  EXPECT_EQ(result.out, "all work\n");
}

TEST(CoexistenceTest, TwoLibrariesWithTensorFlowsNamesAbort) {
  // The failure of the tests below if ours carried them.
  const ChildResult result = LoadAndUse({kTensorFlowNames, kTensorFlowNamesAgain});
  EXPECT_EQ(result.signal, SIGABRT) << result.out << result.err;
}

TEST(CoexistenceTest, TheCApiAfterTensorFlowsNames) { ExpectAllWork({kTensorFlowNames, kCApi}); }
TEST(CoexistenceTest, TheCApiBeforeTensorFlowsNames) { ExpectAllWork({kCApi, kTensorFlowNames}); }
TEST(CoexistenceTest, TheClientAfterTensorFlowsNames) {
  ExpectAllWork({kTensorFlowNames, kClient});
}
TEST(CoexistenceTest, TheClientBeforeTensorFlowsNames) {
  ExpectAllWork({kClient, kTensorFlowNames});
}
TEST(CoexistenceTest, BothOfOursInEitherOrder) {
  ExpectAllWork({kCApi, kTensorFlowNames, kClient});
  ExpectAllWork({kClient, kTensorFlowNames, kCApi});
}

TEST(CoexistenceTest, TheClientIsBoundToForeignFunctions) {
  // It links protobuf as every C++ library does. This is why the C API exists.
  const ChildResult result = LoadAndUse({kForeignNames, kClient});
  EXPECT_EQ(result.signal, SIGABRT) << result.out << result.err;
  EXPECT_NE(result.err.find("bound to a foreign"), std::string::npos) << result.err;
}

TEST(CoexistenceTest, TheCApiIsNotBoundToForeignFunctions) {
  ExpectAllWork({kForeignNames, kCApi});
  ExpectAllWork({kCApi, kForeignNames});
}

}  // namespace
}  // namespace spillway::testing
