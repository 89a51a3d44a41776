// A trainer in C++ on TensorFlow's own library: its tensorflow::GraphDef is rewritten before
// Session::Create. Trains the original and the rewritten graph and compares the losses, which must
// be bitwise equal.
//
//   tensorflow_trainer GRAPH [HOST:PORT]
//
// GRAPH is tests/graphs/mnist_deep/graph.pb. README.md says how to build this against the
// TensorFlow that pip installs.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "spillway/rewrite_message.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

namespace {

constexpr int kSteps = 4;
constexpr int kBatch = 8;
constexpr int kPixels = 784;
constexpr int kClasses = 10;

using Feeds = std::vector<std::pair<std::string, tensorflow::Tensor>>;

// The same numbers for every run.
Feeds MakeFeeds(int step) {
  std::mt19937 random(step + 1);
  tensorflow::Tensor images(tensorflow::DT_FLOAT, {kBatch, kPixels});
  for (int i = 0; i < images.NumElements(); ++i) {
    images.flat<float>()(i) = static_cast<float>(random() % 256) / 255;
  }
  tensorflow::Tensor labels(tensorflow::DT_FLOAT, {kBatch, kClasses});
  labels.flat<float>().setZero();
  for (int i = 0; i < kBatch; ++i) labels.matrix<float>()(i, random() % kClasses) = 1;
  tensorflow::Tensor keep(tensorflow::DT_FLOAT, tensorflow::TensorShape({}));
  keep.scalar<float>()() = 0.5f;
  return {{"x:0", images}, {"y_:0", labels}, {"dropout/keep_prob:0", keep}};
}

// One thread and no Grappler, so that all runs of a graph give the same bits.
tensorflow::SessionOptions MakeSessionOptions() {
  tensorflow::SessionOptions options;
  options.config.set_inter_op_parallelism_threads(1);
  options.config.set_intra_op_parallelism_threads(1);
  options.config.mutable_graph_options()->mutable_rewrite_options()->set_disable_meta_optimizer(
      true);
  options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
      tensorflow::OptimizerOptions::L0);
  return options;
}

tensorflow::Status Train(const tensorflow::GraphDef& graph, std::vector<float>* losses) {
  std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession(MakeSessionOptions()));
  TF_RETURN_IF_ERROR(session->Create(graph));
  TF_RETURN_IF_ERROR(session->Run({}, {}, {"init"}, nullptr));
  for (int step = 0; step < kSteps; ++step) {
    std::vector<tensorflow::Tensor> outputs;
    TF_RETURN_IF_ERROR(
        session->Run(MakeFeeds(step), {"loss/Mean:0"}, {"adam_optimizer/Adam"}, &outputs));
    losses->push_back(outputs[0].scalar<float>()());
  }
  return session->Close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "Usage: tensorflow_trainer GRAPH [HOST:PORT]\n";
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  tensorflow::GraphDef original;
  if (!original.ParseFromIstream(&file)) {
    std::cerr << argv[1] << ": cannot be read as a GraphDef\n";
    return 1;
  }

  // The only lines that a trainer has to add.
  tensorflow::GraphDef graph = original;
  spillway::RewriteMessageOptions options;
  // The default strategy would find that so small a graph needs no swapping.
  options.options_json = R"({"scope": {}})";
  if (argc > 2) options.target = argv[2];
  const spillway::RewriteMessageResult result = spillway::RewriteMessage(options, &graph);
  if (!result.ok()) {
    std::cerr << result.message << " [" << result.reason << "]\n";
    return 1;
  }
  std::cout << "nodes: " << original.node_size() << " -> " << graph.node_size() << "\n";
  if (graph.node_size() == original.node_size()) {
    std::cerr << "nothing was swapped\n";
    return 1;
  }

  std::vector<float> expected;
  std::vector<float> losses;
  tensorflow::Status status = Train(original, &expected);
  if (status.ok()) status = Train(graph, &losses);
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  bool same = true;
  for (int step = 0; step < kSteps; ++step) {
    std::cout << "step " << step << ": loss " << expected[step] << ", rewritten " << losses[step]
              << "\n";
    same = same && std::memcmp(&expected[step], &losses[step], sizeof(float)) == 0;
  }
  std::cout << (same ? "same losses" : "THE LOSSES DIFFER") << "\n";
  return same ? 0 : 1;
}
