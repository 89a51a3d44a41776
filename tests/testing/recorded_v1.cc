#include "tests/testing/recorded_v1.h"

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/testing/files.h"

namespace spillway::testing {
namespace {

using nlohmann::json;

json ReadJson(const std::string& graph, const std::string& file) {
  return json::parse(ReadTestGraph(absl::StrCat(graph, "/", file)));
}

v1::RewriteOptions OptionsFrom(const json& parameters) {
  v1::RewriteOptions options;
  v1::ScopeStrategy& scope = *options.mutable_scope();
  for (const auto& [name, value] : parameters.items()) {
    if (name == "optimizer_scopes") {
      for (const auto& s : value) scope.add_optimizer_scopes(s.get<std::string>());
    } else if (name == "excl_scopes") {
      for (const auto& s : value) scope.add_excl_scopes(s.get<std::string>());
    } else if (name == "lb") {
      scope.set_lb(value.get<int>());
    } else if (name == "n_tensors") {
      scope.set_n_tensors(value.get<int>());
    } else if (name == "fuse_swapins") {
      scope.set_fuse_swapins(value.get<bool>());
    } else if (name == "swap_branches") {
      scope.set_swap_branches(value.get<bool>());
    } else if (name == "branch_threshold") {
      scope.set_branch_threshold(value.get<int>());
    } else if (name == "ctrld_strategy" && value == "direct_order") {
      scope.set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
    } else {
      std::cerr << "a recorded parameter that is not known: " << name << "\n";
      std::abort();
    }
  }
  return options;
}

RecordedSwapIn SwapInFrom(const json& swap_in) {
  return {swap_in.at("consumers").get<std::vector<std::string>>(),
          swap_in.at("trigger").get<std::string>()};
}

}  // namespace

std::vector<std::string> GraphsWithV1Orders() {
  return {"bert_base",
          "bert_tiny",
          "cnn_mnist",
          "cond_v1",
          "cond_v2",
          "horovod_like",
          "lstm_while_v2",
          "mixed_fp16",
          "mnist_deep",
          "resnet26_2tower_b2",
          "resnet50_2tower",
          "resnet50_keras",
          "resnet50_tf1",
          "resnet50_tf1_b4",
          "tfcnn_googlenet",
          "tfcnn_resnet50_2gpu",
          "tfcnn_resnet50_b200",
          "tfcnn_resnet50_nhwc_b2",
          "unet3d",
          "unet3d_s16"};
}

RecordedOrders ReadV1Orders(const std::string& graph) {
  const json record = ReadJson(graph, "v1_orders.json");
  return {record.at("seeds").get<std::vector<std::string>>(),
          record.at("backward").get<std::vector<std::string>>(), record.at("bw_start").get<int>(),
          record.at("levels").get<std::vector<std::vector<std::string>>>()};
}

std::vector<RecordedSet> ReadV1Sets(const std::string& graph) {
  const json records = ReadJson(graph, "v1_swaps.json");
  std::vector<RecordedSet> sets;
  for (const auto& [name, record] : records.items()) {
    RecordedSet set;
    set.name = name;
    set.options = OptionsFrom(record.at("parameters"));
    if (set.options.scope().optimizer_scopes().empty()) {
      for (const std::string& scope : OptimizerScopes(graph)) {
        set.options.mutable_scope()->add_optimizer_scopes(scope);
      }
    }
    if (!record.contains("error")) {
      const std::string trains = record.at("trains").get<std::string>();
      set.usable =
          !record.at("cyclic").get<bool>() && (trains == "same losses" || trains == "not run");
      set.stable = record.at("stable").get<std::set<std::string>>();
      for (const auto& [tensor, swap_ins] : record.at("swaps").items()) {
        for (const json& swap_in : swap_ins) set.swaps[tensor].push_back(SwapInFrom(swap_in));
      }
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

std::vector<std::string> OptimizerScopes(const std::string& graph) {
  return ReadJson(graph, "meta.json").at("optimizer_scopes").get<std::vector<std::string>>();
}

}  // namespace spillway::testing
