#include "tests/testing/graph_meta.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/testing/files.h"

namespace spillway::testing {
namespace {

nlohmann::json ReadMeta(absl::string_view graph) {
  return nlohmann::json::parse(ReadTestGraph(absl::StrCat(graph, "/meta.json")));
}

}  // namespace

std::vector<std::string> TestGraphNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(SPILLWAY_TEST_GRAPHS)) {
    if (std::filesystem::exists(entry.path() / "meta.json")) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

v1::Step RecordedStep(absl::string_view graph, RecordedBatch batch) {
  const bool run = batch == RecordedBatch::kRun;
  const nlohmann::json meta = ReadMeta(graph);
  v1::Step step;
  for (const auto& feed : meta.at(run ? "feed_spec" : "feeds")) {
    v1::Feed* fed = step.add_feeds();
    fed->set_name(feed.at("name").get<std::string>());
    for (int64_t dim : feed.at(run ? "shape" : "plan_shape")) fed->add_dims(dim);
  }
  if (step.feeds().empty()) step.set_batch_size(meta.at(run ? "run_batch" : "batch"));
  return step;
}

}  // namespace spillway::testing
