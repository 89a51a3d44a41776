#include "tests/testing/recorded_v2.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "rewrite_core/analysis/machine/device_name.h"
#include "rewrite_core/graph/dtype.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_schema.pb.h"
#include "tests/testing/recorded_v1.h"

namespace spillway::testing {
namespace {

using nlohmann::json;

constexpr char kCpuDevice[] = "/cpu:0";

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << "\n";
  std::abort();
}

json ReadV2Json(const std::string& graph, const std::string& file) {
  return json::parse(ReadTestGraph(absl::StrCat(graph, "/", file)));
}

// LevelStrategy uses IBM's names. The memory to tune for, in GiB, is the step's.
void ReadParameters(json parameters, RecordedSetV2* set) {
  set->with_collections = parameters.erase("collections") > 0;
  if (const auto memory = parameters.find("autotune_gpu_mem"); memory != parameters.end()) {
    set->options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(
        static_cast<int64_t>(memory->get<double>() * (1 << 30)));
    parameters.erase(memory);
  }
  const auto status =
      google::protobuf::util::JsonStringToMessage(parameters.dump(), set->options.mutable_level());
  if (!status.ok()) Die(absl::StrCat(set->name, ": ", status.ToString()));
  const v1::LevelStrategy& level = set->options.level();
  set->tuned = level.swapout_threshold() < 0 || level.swapin_ahead() < 0;
}

RecordedSwapV2 SwapFrom(const json& record) {
  RecordedSwapV2 swap;
  swap.swap_out = record.at("swap_out").get<std::string>();
  for (const json& in : record.at("swap_ins")) {
    RecordedSwapInV2& swap_in = swap.swap_ins.emplace_back();
    swap_in.name = in.at("name").get<std::string>();
    swap_in.triggers = in.at("triggers").get<std::set<std::string>>();
    for (const json& consumer : in.at("consumers")) {
      swap_in.consumers.push_back(
          absl::StrCat(consumer.at(0).get<std::string>(), "[", consumer.at(1).get<int>(), "]"));
    }
    std::sort(swap_in.consumers.begin(), swap_in.consumers.end());
  }
  std::sort(swap.swap_ins.begin(), swap.swap_ins.end(),
            [](const auto& a, const auto& b) { return a.consumers < b.consumers; });
  return swap;
}

template <typename T>
std::optional<T> Find(const json& record, const std::string& key) {
  const auto it = record.find(key);
  return it == record.end() ? std::nullopt : std::optional<T>(it->get<T>());
}

RecordedSetV2 SetFrom(const std::string& name, const json& record) {
  RecordedSetV2 set;
  set.name = name;
  ReadParameters(record.at("parameters"), &set);
  set.edit_ms = record.at("edit_ms").get<double>();
  const json& reported = record.at("reported");
  set.level_count = Find<int32_t>(reported, "levels");
  set.vertex_count = Find<int64_t>(reported, "vertices");
  set.edge_count = Find<int64_t>(reported, "edges");
  set.error = record.value("error", "");
  if (!set.error.empty()) return set;
  set.trains = record.at("trains").get<std::string>();
  set.cyclic = record.at("cyclic").get<bool>();
  set.usable = !set.cyclic && (set.trains == "same losses" || set.trains == "not run");
  set.run_count = record.at("runs").get<int>();
  set.stable = record.at("stable").get<std::set<std::string>>();
  for (const auto& [tensor, swap] : record.at("swaps").items()) {
    set.swaps[tensor] = SwapFrom(swap);
  }
  set.controls = record.at("controls").get<std::set<std::pair<std::string, std::string>>>();
  return set;
}

// As the graph spells them; empty if it has only one.
std::vector<std::string> SeveralGpus(const std::string& graph) {
  const auto devices =
      ReadV2Json(graph, "meta.json").at("gpu_devices").get<std::vector<std::string>>();
  std::set<std::string> indices;  // The same device may be spelled in two ways.
  for (const std::string& device : devices) indices.insert(core::ParseDeviceName(device).index);
  return indices.size() > 1 ? devices : std::vector<std::string>();
}

// The GraphDef being edited, by name. Node pointers stay valid, since fields of messages do.
class Editor {
 public:
  explicit Editor(const std::string& bytes) {
    if (!graph_.ParseFromString(bytes)) Die("not a GraphDef");
    for (NodeDef& node : *graph_.mutable_node()) by_name_[node.name()] = &node;
  }

  NodeDef* Find(const std::string& name) {
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) Die(absl::StrCat("there is no node ", name));
    return it->second;
  }

  NodeDef* AddSwapNode(const std::string& name, const std::string& input) {
    NodeDef* node = graph_.add_node();
    node->set_name(name);
    node->set_op("Identity");
    node->set_device(kCpuDevice);
    // The graphs in tests that use this contain no other swaps.
    (*node->mutable_attr())["T"].set_type(core::kDtFloat32);
    node->add_input(input);
    by_name_[name] = node;
    return node;
  }

  std::string Serialize() const { return graph_.SerializeAsString(); }

 private:
  GraphDef graph_;
  std::map<std::string, NodeDef*> by_name_;
};

}  // namespace

std::vector<std::string> GraphsWithV2Records() {
  std::vector<std::string> graphs = GraphsWithV1Orders();
  // For these TFLMS v1 fails or is too slow.
  for (const char* graph : {"lstm_while", "tfcnn_inception3_4gpu", "wide_chain_10k"}) {
    graphs.push_back(graph);
  }
  return graphs;
}

RecordedLevelsV2 ReadV2Levels(const std::string& graph) {
  const json record = ReadV2Json(graph, "v2_levels.json");
  return {record.at("levels").get<std::vector<std::vector<std::string>>>(),
          record.at("inactive").get<std::vector<std::string>>()};
}

std::vector<RecordedSetV2> ReadV2Sets(const std::string& graph) {
  const json records = ReadV2Json(graph, "v2_swaps.json");
  std::vector<RecordedSetV2> sets;
  const std::vector<std::string> gpus = SeveralGpus(graph);
  for (const auto& [name, record] : records.items()) {
    sets.push_back(SetFrom(name, record));
    sets.back().options.mutable_devices()->Add(gpus.begin(), gpus.end());
  }
  return sets;
}

std::string ApplyRecordedV2(const std::string& graph_def, const std::string& name,
                            const std::string& set) {
  const json record = ReadV2Json(name, "v2_swaps.json").at(set);
  Editor editor(graph_def);
  for (const auto& [tensor, swap] : record.at("swaps").items()) {
    const std::string swap_out = swap.at("swap_out").get<std::string>();
    editor.AddSwapNode(swap_out, tensor);
    for (const json& swap_in : swap.at("swap_ins")) {
      const std::string swap_in_name = swap_in.at("name").get<std::string>();
      NodeDef* node = editor.AddSwapNode(swap_in_name, swap_out);
      for (const json& trigger : swap_in.at("triggers")) {
        node->add_input(absl::StrCat("^", trigger.get<std::string>()));
      }
      for (const json& consumer : swap_in.at("consumers")) {
        editor.Find(consumer.at(0).get<std::string>())
            ->set_input(consumer.at(1).get<int>(), swap_in_name);
      }
    }
  }
  for (const json& control : record.at("controls")) {
    editor.Find(control.at(1).get<std::string>())
        ->add_input(absl::StrCat("^", control.at(0).get<std::string>()));
  }
  return editor.Serialize();
}

v1::Hardware P100AsObserved() {
  v1::Hardware hardware;
  hardware.set_preset("p100_pcie");
  hardware.set_d2h_bytes_per_s(6e9);
  hardware.set_h2d_bytes_per_s(6e9);
  return hardware;
}

}  // namespace spillway::testing
