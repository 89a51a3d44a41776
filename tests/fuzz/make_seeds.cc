// Writes the seeds of the fuzz targets: make_seeds FOLDER makes, in it,
//   graph/       odd graphs, small graphs, and the same rewritten
//   large/       graphs too large to mutate, for graph_replay alone: megabyte names, real graphs
//   structured/  lists of operations
//   options/     options
//   plan/        plans of small_graphs.h, and the same with more or longer fields
//   text/        messages that are shown, each behind the byte that chooses its kind; likewise
//   line/        small texts, each behind the byte that chooses its kind
//   json/        messages, settings and graphs, likewise
//   simulate/    options of simulations, each with a graph or without
//   file/        files round graphs, each behind the byte that chooses its format
//   request/     calls of the server, and the same with more or longer fields
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "rewrite_core/base/wire_writer.h"
#include "rewrite_core/inspect/graph_diff.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "rewrite_core/rewriter.h"
#include "spillway/v1/check.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "tests/fuzz/length_mutator.h"
#include "tests/fuzz/small_graphs.h"
#include "tests/testing/files.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random.h"
#include "tests/testing/random_graph.h"

namespace spillway::testing {
namespace {

constexpr size_t kMegabyte = 1'000'000;
// Graphs of a few hundred bytes to a few KiB: small ones are mutated faster, and more to the point.
constexpr int kRandomGraphs = 24;
constexpr int kPrograms = 64;

class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) : path_(path) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    if (!(file << bytes) || !file.flush()) {
      std::cerr << "cannot write " << path_ / name << "\n";
      std::exit(EXIT_FAILURE);
    }
  }

 private:
  std::filesystem::path path_;
};

// A chain that can be rewritten, as text: others add odd parts.
constexpr char kChain[] = R"(x = Placeholder() @/gpu:0 {dtype=float32}
a = Relu(x) @/gpu:0 {T=float32, _output_shapes=[(4,8)]}
b = Tanh(a) @/gpu:0 {T=float32}
gradients/b = TanhGrad(b, b) @/gpu:0 {T=float32}
gradients/a = ReluGrad(gradients/b, a) @/gpu:0 {T=float32}
gradients/x = Neg(gradients/a) @/gpu:0 {T=float32}
)";

GraphDef Chain() { return ReadProto(GraphBytes(kChain)); }

// Graphs that say something TensorFlow would never write.
void WriteOddGraphs(const Folder& folder) {
  const auto odd = [&folder](const std::string& name, const GraphDef& graph) {
    folder.Write(absl::StrCat("odd_", name), WriteProto(graph));
  };
  GraphDef graph = Chain();
  odd("none", graph);
  graph.mutable_node(1)->clear_name();
  odd("empty_node_name", graph);
  graph = Chain();
  graph.mutable_node(1)->clear_op();
  odd("empty_op", graph);
  graph = Chain();
  (*graph.mutable_node(1)->mutable_attr())[""].set_i(1);
  odd("empty_attribute_name", graph);
  graph = Chain();
  graph.mutable_library()->add_function();
  graph.mutable_library()->add_gradient();
  odd("empty_function_name", graph);
  graph = Chain();
  *graph.mutable_library()->add_function()->add_node_def() = graph.node(1);
  graph.mutable_library()->mutable_function(0)->mutable_signature()->set_name("f");
  (*graph.mutable_node(2)->mutable_attr())["f"].mutable_func()->set_name("f");
  graph.mutable_node(2)->set_op("PartitionedCall");
  odd("function", graph);
  for (const char* op : {"AddN", "IdentityN", "Split", "Merge", "ConcatV2"}) {
    graph = Chain();
    graph.mutable_node(2)->set_op(op);
    (*graph.mutable_node(2)->mutable_attr())["N"].set_i(int64_t{1} << 31);
    (*graph.mutable_node(2)->mutable_attr())["num_split"].set_i(int64_t{1} << 31);
    odd(absl::StrCat("2_31_inputs_", op), graph);
  }
  graph = Chain();
  graph.mutable_node(1)->add_input("^b");
  odd("control_loop_of_two", graph);
  graph = Chain();
  graph.mutable_node(1)->add_input("^a");
  odd("control_loop_of_one", graph);
  graph = Chain();
  for (int i = 1; i < graph.node_size(); ++i) {
    graph.mutable_node(i)->add_input(absl::StrCat("^", graph.node(graph.node_size() - 1).name()));
  }
  odd("control_loops", graph);
  graph = Chain();
  graph.mutable_node(2)->set_input(0, "a:2147483647");
  odd("huge_port", graph);
  graph = Chain();
  for (int64_t size : {int64_t{1} << 62, int64_t{-2}, int64_t{1} << 31}) {
    (*graph.mutable_node(1)->mutable_attr())["_output_shapes"]
        .mutable_list()
        ->mutable_shape(0)
        ->add_dim()
        ->set_size(size);
  }
  odd("huge_shape", graph);
  graph = Chain();
  *graph.add_node() = graph.node(1);
  odd("duplicate_node", graph);
  graph = Chain();
  graph.mutable_node(1)->set_device("/job:\xff/gpu:99999999999");
  odd("device", graph);
  graph = Chain();
  graph.mutable_node(1)->set_name("lms/swapin_x_0");
  odd("foreign_swap", graph);
}

void WriteGraphs(const Folder& folder) {
  WriteOddGraphs(folder);
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  for (int seed = 0; seed < kRandomGraphs; ++seed) {
    RandomGraphOptions kind;
    kind.forward_ops = 2 + seed % 6;
    kind.conds = seed % 3 == 1;
    kind.loops = seed % 3 == 2;
    const GraphDef graph = MakeRandomGraph(seed, kind);
    Random random(seed);
    const std::string bytes = seed % 4 == 3 ? RoughenBytes(graph, &random) : WriteProto(graph);
    folder.Write(absl::StrCat("random_", seed), bytes);
    const auto rewritten = core::Rewrite(bytes, options, core::DefaultLimits(), core::StopToken());
    if (rewritten.ok() && rewritten->report().outcome() == v1::OUTCOME_REWRITTEN) {
      folder.Write(absl::StrCat("rewritten_", seed), rewritten->graph_def());
    }
  }
}

void WriteLargeGraphs(const Folder& folder) {
  const std::string large(kMegabyte, 'n');
  GraphDef graph = Chain();
  graph.mutable_node(1)->set_name(large);
  for (int i = 2; i < graph.node_size(); ++i) {
    for (std::string& input : *graph.mutable_node(i)->mutable_input()) {
      if (input == "a") input = large;
    }
  }
  folder.Write("megabyte_name", WriteProto(graph));
  graph = Chain();
  graph.mutable_node(2)->set_op(large);
  folder.Write("megabyte_op", WriteProto(graph));
  graph = Chain();
  graph.mutable_node(1)->set_device(absl::StrCat("/job:", large, "/gpu:0"));
  folder.Write("megabyte_device", WriteProto(graph));
  graph = Chain();
  (*graph.mutable_node(1)->mutable_attr())[large].set_s(large);
  folder.Write("megabyte_attribute", WriteProto(graph));
  graph = Chain();
  graph.mutable_library()->add_function()->mutable_signature()->set_name(large);
  folder.Write("megabyte_function", WriteProto(graph));
  graph = Chain();
  graph.mutable_node(2)->add_input(absl::StrCat("^", large));
  folder.Write("megabyte_input", WriteProto(graph));
  for (const char* name : {"cond_v1", "cond_v2", "lstm_while", "lstm_while_v2", "mnist_deep"}) {
    folder.Write(name, ReadTestGraph(absl::StrCat(name, "/graph.pb")));
  }
}

void WritePrograms(const Folder& folder) {
  for (int seed = 0; seed < kPrograms; ++seed) {
    Random random(seed);
    std::string bytes;
    for (int size = 8 << seed % 6; size > 0; --size) {
      bytes.push_back(static_cast<char>(random.Next()));
    }
    folder.Write(absl::StrCat("random_", seed), bytes);
  }
}

template <typename Options>
Options Parsed(const char* text) {
  Options options;
  if (!google::protobuf::TextFormat::ParseFromString(text, &options)) {
    std::cerr << "these are no options: " << text << "\n";
    std::exit(EXIT_FAILURE);
  }
  return options;
}

void WriteOptions(const Folder& folder) {
  // Names are those of the graphs that options_fuzzer.cc rewrites.
  constexpr const char* kOptions[] = {
      "",
      "strip {}",
      "scope { optimizer_scopes: 'gradients' optimizer_scopes: 'train' }",
      "scope { optimizer_scopes: 'gradients' } already_rewritten: ALREADY_REWRITTEN_REPLAN",
      "scope { optimizer_scopes: 'gradients' } devices: '/device:GPU:1'",
      "scope { optimizer_scopes: '(grad|tra).*[a-z]+$' starting_scope: 'in_' lb: 2 ub: 20 "
      "fuse_swapins: true ctrld_strategy: CTRLD_STRATEGY_DIRECT_ORDER }",
      "scope { optimizer_scopes: 'gradients' starting_op_names: 'in_0' excl_scopes: 'net0' "
      "incl_types: 'Relu' excl_types: 'Tanh' n_tensors: 2 }",
      "scope { swap_branches: true branch_threshold: 3 debug: true "
      "debug_level: 2 }",
      "step { feeds { name: 'in_0' dims: 4 dims: 1000000000 } batch_size: 2147483647 targets: "
      "'in_1:0' } cpu_device: '/cpu:0' "
      "min_tensor_bytes: 9223372036854775807",
      "outputs: OUTPUT_PATCH outputs: OUTPUT_REPORT decision_detail: DECISION_DETAIL_NONE",
      "scope { optimizer_scopes: '((((a{1,1000}){1,1000}){1,1000}))' }",
      "level {}",
      "level { swapout_threshold: 1 swapin_ahead: 1 swapin_groupby: 0 sync_mode: 3 "
      "serialization: '3:10' serialization: '-4:' serialization: '1' }",
      "level { swapout_threshold: 2 swapin_ahead: 2 swapin_groupby: 3 serialization: '::2' "
      "serialization_by_size: 1e-5 excl_output_by_scopes: 'net' incl_input_by_types: 'ReluGrad' }",
      "level { sync_mode: 1 is_training: false } devices: '/gpu:0' step { hardware { "
      "gpu_memory_bytes: 1073 } }",
      "level { swapout_threshold: 0 sync_mode: 4 serialization: '99999999999999999999:-' "
      "serialization_by_size: nan }",
      "scope { optimizer_scopes: '[' incl_scopes: '\\\\' lb: -1 ub: 2147483647 }",
  };
  int number = 0;
  for (const char* text : kOptions) {
    const auto options = Parsed<v1::RewriteOptions>(text);
    folder.Write(absl::StrCat("options_", number++), options.SerializeAsString());
  }
}

// One field of a message: `bytes`, at most 127 of them or two bytes of length, behind its number.
std::string Field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  if (bytes.size() > 127) {
    field.push_back(static_cast<char>((bytes.size() & 127) | 128));
    field.push_back(static_cast<char>(bytes.size() >> 7));
  } else {
    field.push_back(static_cast<char>(bytes.size()));
  }
  return field + bytes;
}

// Names are those of the graphs that simulate_fuzzer.cc has.
void WriteSimulations(const Folder& folder) {
  // A StepStats: of one device the name, and a node with its name, its times and an output.
  const std::string output = Field(7, Field(3, Field(4, std::string("\x10\x80\x08", 3))));
  const std::string node = Field(1, "y") + std::string("\x18\x01\x20\x64", 4) + output;
  const std::string profile = Field(1, Field(1, "/device:GPU:0/stream:all") + Field(2, node));
  constexpr const char* kOptions[] = {
      "",
      "step { batch_size: 4 }",
      "step { feeds { name: 'in' dims: -1 dims: 8 } } sizes: 1 sizes: 1000000",
      "step { feeds { name: 'in' dims: 2147483647 dims: 8 } targets: 'h:0' }",
      "step { hardware { preset: 'v100_pcie' gpu_memory_bytes: 4096 host_memory_bytes: 0 } }",
      "step { hardware { launch_s: 1 copy_latency_s: 1 d2h_bytes_per_s: 1e-300 } }",
      "step { convolution_workspace_bytes: 1125899906842624 } no_budget: true multiple_of: 64",
      "step { convolution_workspace_limit_bytes: 1125899906842624 kernel_memory: 1 }",
  };
  int number = 0;
  for (const char* text : kOptions) {
    auto options = Parsed<v1::ExploreOptions>(text);
    for (const bool measured : {false, true}) {
      if (measured) options.mutable_step()->set_profile(profile);
      const std::string bytes = options.SerializeAsString();
      const std::string whole = std::string(1, static_cast<char>(bytes.size() >> 8)) +
                                std::string(1, static_cast<char>(bytes.size())) + bytes;
      folder.Write(absl::StrCat("own_", number), whole);
      folder.Write(absl::StrCat("graph_", number++), whole + WriteProto(Chain()));
    }
  }
}

// The choices are those of kFormats in file_fuzzer.cc; 0: recognised.
void WriteFiles(const Folder& folder) {
  GraphDef graph = Chain();
  graph.mutable_library()->add_function()->mutable_signature()->set_name("f");
  const std::string bytes = WriteProto(graph);
  std::string text;
  google::protobuf::TextFormat::PrintToString(graph, &text);
  const std::string tags = Field(1, Field(4, "train"));
  const std::string meta_graph = absl::StrCat(tags, Field(2, bytes), Field(9, "kept"));
  const std::string meta_text =
      absl::StrCat("meta_info_def { tags: 'train' } # {\ngraph_def {\n", text, "}\n");
  const std::string saved_model = absl::StrCat("\x08\x01", Field(2, meta_graph));
  const std::string saved_text =
      absl::StrCat("saved_model_schema_version: 1 meta_graphs <", meta_text, "> ");
  const std::string files[] = {bytes, text, meta_graph, meta_text, saved_model, saved_text};
  for (int i = 0; i < 6; ++i) {
    folder.Write(absl::StrCat("recognised_", i), std::string(1, 0) + files[i]);
    folder.Write(absl::StrCat("given_", i), std::string(1, static_cast<char>(i + 1)) + files[i]);
  }
  folder.Write("two_meta_graphs",
               absl::StrCat(std::string(1, 5), saved_model, Field(2, Field(2, bytes))));
  folder.Write("no_graph", absl::StrCat(std::string(1, 5), "\x08\x01", Field(2, tags)));
  // Undo records within undo records, as far as Field's lengths go.
  std::string nested;
  for (int i = 0; i < 100; ++i) {
    const std::string record = Field(2, Field(1, Field(2, absl::StrCat("raw=", nested))));
    nested = Field(1, absl::StrCat(Field(1, "n"), Field(2, "NoOp"),
                                   Field(5, Field(1, "_spillway_undo") + record)));
  }
  folder.Write("nested_undo_records", absl::StrCat(std::string(1, 1), nested));
  // A length in five bytes where one would do.
  folder.Write("padded_length",
               absl::StrCat(std::string(1, 3), "\x12\x8a\x80\x80\x80", std::string(1, 0),
                            Field(1, Field(1, "x") + Field(2, "NoOp"))));
}

// A call: the byte that chooses its method, and each message behind its length.
std::string CallOf(char method, const std::vector<std::string>& messages) {
  std::string bytes(1, method);
  for (const std::string& message : messages) {
    core::AppendVarint(message.size(), &bytes);
    bytes += message;
  }
  return bytes;
}

// A method's header for the chain, then the chain as its chunk.
template <typename Request>
std::vector<std::string> UploadOf(Request header, const std::string& graph) {
  Request chunk;
  chunk.set_chunk(graph);
  header.mutable_header()->mutable_graph()->set_total_size_bytes(
      static_cast<int64_t>(graph.size()));
  return {header.SerializeAsString(), chunk.SerializeAsString()};
}

// The methods are those of request_fuzzer.cc.
void WriteRequests(const Folder& folder) {
  constexpr int kScaled = 24;
  constexpr size_t kMaxBytes = 60'000;
  const std::string graph = WriteProto(Chain());
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  options.add_devices("/gpu:0");
  v1::Step& step = *options.mutable_step();
  step.add_targets("gradients/x");
  step.add_feeds()->set_name("x");
  for (int64_t size : {4, 8}) step.mutable_feeds(0)->add_dims(size);
  v1::RewriteRequest unary;
  unary.set_graph_def(graph);
  *unary.mutable_options() = options;
  v1::StreamRewriteRequest stream;
  *stream.mutable_header()->mutable_options() = options;
  v1::InspectRequest inspect;
  inspect.mutable_header()->mutable_options()->set_tensors(true);
  v1::SimulateRequest simulate;
  *simulate.mutable_header()->mutable_options()->mutable_step() = step;
  v1::ExploreRequest explore;
  *explore.mutable_header()->mutable_options()->mutable_step() = step;
  explore.mutable_header()->mutable_options()->mutable_step()->mutable_feeds(0)->set_dims(0, -1);
  explore.mutable_header()->mutable_options()->add_sizes(2);
  v1::DiffRequest diff, chunk;
  chunk.set_chunk(graph);
  for (v1::GraphHeader* of :
       {diff.mutable_header()->mutable_graph_a(), diff.mutable_header()->mutable_graph_b()}) {
    of->set_total_size_bytes(static_cast<int64_t>(graph.size()));
  }
  const std::vector<std::vector<std::string>> calls = {
      {unary.SerializeAsString()},
      UploadOf(stream, graph),
      UploadOf(inspect, graph),
      UploadOf(simulate, graph),
      UploadOf(explore, graph),
      {diff.SerializeAsString(), chunk.SerializeAsString(), chunk.SerializeAsString()}};
  Random random(1);
  for (size_t method = 0; method < calls.size(); ++method) {
    const std::vector<std::string>& messages = calls[method];
    const char byte = static_cast<char>(method);
    folder.Write(absl::StrCat("call_", method), CallOf(byte, messages));
    for (int i = 0; i < kScaled; ++i) {
      std::vector<std::string> scaled = messages;
      std::string& one = scaled[random.Below(static_cast<int>(scaled.size()))];
      one = ScaleLengths(one, kMaxBytes, &random);
      folder.Write(absl::StrCat("scaled_", method, "_", i), CallOf(byte, scaled));
    }
  }
}

// `bytes`, and the same scaled, each behind the byte `choice` (none if below 0).
void WriteScaled(const Folder& folder, const std::string& name, int choice,
                 const std::string& bytes, int scaled) {
  constexpr size_t kMaxBytes = 20'000;
  const std::string first = choice < 0 ? "" : std::string(1, static_cast<char>(choice));
  folder.Write(name, first + bytes);
  Random random(1);
  for (int i = 0; i < scaled; ++i) {
    folder.Write(absl::StrCat(name, "_scaled_", i),
                 first + ScaleLengths(bytes, kMaxBytes, &random));
  }
}

void WritePlans(const Folder& folder) {
  constexpr const char* kOptions[] = {
      "scope { optimizer_scopes: 'gradients' }",
      "level { swapout_threshold: 1 swapin_ahead: 1 swapin_groupby: 0 serialization: ':' }",
      "budget { recompute: RECOMPUTE_OFF }", "budget { recompute: RECOMPUTE_ALL }"};
  int plans = 0;
  for (const std::string& graph : SmallGraphs()) {
    for (const char* text : kOptions) {
      auto options = Parsed<v1::RewriteOptions>(text);
      options.add_outputs(v1::OUTPUT_PLAN);
      options.mutable_step()->set_batch_size(64);
      // From nothing to do to nothing fits.
      for (const int64_t bytes : {1 << 12, 1 << 14, 1 << 16, 1 << 18}) {
        options.mutable_step()->mutable_hardware()->set_gpu_memory_bytes(bytes);
        const auto answer = core::Rewrite(graph, options, core::DefaultLimits(), core::StopToken());
        if (!answer.ok() || !answer->has_plan()) continue;
        WriteScaled(folder, absl::StrCat("plan_", plans++), -1, answer->plan().SerializeAsString(),
                    2);
      }
    }
  }
  if (plans == 0) {
    std::cerr << "no plan was made\n";
    std::exit(EXIT_FAILURE);
  }
}

// Choices are those of text_fuzzer.cc.
void WriteTexts(const Folder& folder) {
  const std::string& graph = SmallGraphs()[1];
  v1::RewriteOptions options;
  options.mutable_scope()->add_optimizer_scopes("gradients");
  options.add_outputs(v1::OUTPUT_REPORT);
  const auto limits = core::DefaultLimits();
  const auto rewrite = core::Rewrite(graph, options, limits, core::StopToken());
  v1::SimulateOptions simulation;
  simulation.set_memory(true);
  simulation.set_trace(true);
  const auto simulated = core::SimulateGraph(graph, simulation, limits, core::StopToken());
  const auto summary = core::Inspect(graph, v1::InspectOptions(), limits, core::StopToken());
  const auto diff = core::DiffGraphs(SmallGraphs()[0], SmallGraphs()[2], limits, core::StopToken());
  if (!rewrite.ok() || !simulated.ok() || !summary.ok() || !diff.ok()) {
    std::cerr << rewrite.status() << simulated.status() << summary.status() << diff.status();
    std::exit(EXIT_FAILURE);
  }
  v1::ExploreReport explored;
  for (int i = 1; i < 4; ++i) {
    v1::ExploredSize& size = *explored.add_sizes();
    size.set_size(i);
    *size.mutable_unswapped() = simulated->forecast();
  }
  v1::RunCheck check;
  check.add_missing("a");
  const google::protobuf::Message* const messages[] = {&rewrite->report(),
                                                       &rewrite->report(),
                                                       &simulated->forecast(),
                                                       &*simulated,
                                                       &explored,
                                                       &explored.sizes(0),
                                                       &*summary,
                                                       &*diff,
                                                       &check};
  int choice = 0;
  constexpr int kScaled = 8;
  for (const google::protobuf::Message* message : messages) {
    WriteScaled(folder, absl::StrCat("text_", choice), choice, message->SerializeAsString(),
                kScaled);
    ++choice;
  }
  WriteScaled(folder, "capabilities", choice++, core::Capabilities(limits).SerializeAsString(),
              kScaled);
  WriteScaled(folder, "bytes", choice++, "1234567890", 0);
  WriteScaled(folder, "nanoseconds", choice++, "-1", 0);
  WriteScaled(folder, "near_names", choice++, "worg\nword\nwork", 0);
  const std::string output = Field(7, Field(3, Field(4, std::string("\x10\x80\x08", 3))));
  const std::string node = Field(1, "a") + std::string("\x18\x01\x20\x64", 4) + output;
  WriteScaled(folder, "trace", choice++,
              Field(1, Field(1, Field(1, "/device:GPU:0/stream:all") + Field(2, node))), kScaled);
  WriteScaled(folder, "step", choice, simulated->SerializeAsString(), kScaled);
  WriteScaled(folder, "sizes", choice, explored.SerializeAsString(), kScaled);
}

// Choices are those of line_fuzzer.cc.
void WriteLines(const Folder& folder) {
  const std::pair<int, const char*> kLines[] = {
      {0,
       R"({"time":"2026-01-31T12:00:00.000Z","id":"8c5f","method":"Rewrite","ms":68.6,"code":"OK",)"
       R"("bytes_in":1,"swap_out_bytes":9223372036854775807,"outcome":"rewritten"})"},
      {0, R"({"time":"0000-00-00T99:99:99Z","ms":1e999,"code":null})"},
      {1, ""},
      {1, R"({"runs":{"rewritten":{"budget":3}},"version":1})"},
      {2, "1.5KiB"},
      {2, "16GB"},
      {2, "input=128,N,224,3"},
      {2, "8,16:32:4,x"},
      {3,
       "caller { name: \"a\" certificate: \"spiffe://x\" quota { requests_per_second: 1e300 } }\n"
       "caller { name: \"b\" anybody: true }"},
      {3, "caller { name: \"\\001\" token_sha256: \"00\" }"},
      {4, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"},
      {4, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
      {5, R"({"graph_sha256":"YQ==","swaps":[{"tensor":"a:0"}]})"},
      {5, R"({"meta_graphs":[{"index":0,"plan":{"version":1}},{"index":18446744073709551615}]})"},
      {6, R"({"preset":"v100_nvlink2","gpu_memory_bytes":"1e3","d2h_bytes_per_second":1e999})"},
      // The digest of the empty file.
      {7, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 .pb\n\na note\n\nmore"},
      {7, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 /../x\n\n"},
      {7, "failed 1 2\n\nwhy"},
  };
  int number = 0;
  for (const auto& [choice, text] : kLines) {
    WriteScaled(folder, absl::StrCat("line_", number++), choice, text, 0);
  }
}

// Choices are those of json_fuzzer.cc.
void WriteJson(const Folder& folder) {
  const std::pair<int, std::string> kTexts[] = {
      {0, R"({"budget":{},"step":{"batch_size":128,"hardware":{"preset":"v100_nvlink2"}}})"},
      {0, R"({"sizes":[1,2],"swapping":{"gpuMemoryBytes":"1"}})"},
      {0, R"({"decisions":[{"tensor":"a:0","reason":"REASON_SWAPPED","bytes":"9e18"}]})"},
      {0, "[[[[{"},
      {1, R"({"batch_size":128,"options":{"step":3,"min_tensor_bytes":4096},"hardware":"\u00ff"})"},
      {1, R"({"strategy":"scope","gpu_memory_bytes":"1.5GiB","cpu_device":"CPU:0","tls":"on"})"},
      {1, R"({"options":"{\"budget\":{}}","timeout_s":86401})"},
      {2, SmallGraphs()[0]},
      {2, SmallGraphs()[2]},
      {2, Field(1, Field(1, "a") + Field(2, "Relu") + Field(4, "/device:CPU:0"))},
  };
  int number = 0;
  for (const auto& [choice, text] : kTexts) {
    WriteScaled(folder, absl::StrCat("json_", number++), choice, text, choice == 2 ? 8 : 0);
  }
}

}  // namespace
}  // namespace spillway::testing

int main(int argc, char** argv) {
  using namespace spillway::testing;
  if (argc != 2) {
    std::cerr << "usage: make_seeds FOLDER\n";
    return EXIT_FAILURE;
  }
  google::protobuf::SetLogHandler(nullptr);  // Some strings are not UTF-8, on purpose.
  const std::filesystem::path folder = argv[1];
  WriteGraphs(Folder(folder / "graph"));
  WriteLargeGraphs(Folder(folder / "large"));
  WritePrograms(Folder(folder / "structured"));
  WriteOptions(Folder(folder / "options"));
  WriteSimulations(Folder(folder / "simulate"));
  WriteFiles(Folder(folder / "file"));
  WriteRequests(Folder(folder / "request"));
  WritePlans(Folder(folder / "plan"));
  WriteTexts(Folder(folder / "text"));
  WriteLines(Folder(folder / "line"));
  WriteJson(Folder(folder / "json"));
  return EXIT_SUCCESS;
}
