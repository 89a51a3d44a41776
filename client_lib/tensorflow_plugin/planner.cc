#include "client_lib/tensorflow_plugin/planner.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "client_lib/internal/tensorflow_settings.h"
#include "client_lib/tensorflow_plugin/graph_facts.h"
#include "client_lib/tensorflow_plugin/library.h"
#include "client_lib/tensorflow_plugin/log.h"
#include "client_lib/tensorflow_plugin/owner.h"
#include "client_lib/tensorflow_plugin/report.h"
#include "client_lib/tensorflow_plugin/request.h"

namespace spillway::tensorflow_plugin {
namespace {

constexpr char kCpu[] = "CPU", kGpu[] = "GPU";
// The name of the GPU's stand-in in a trial run while Spillway looks at the graph.
constexpr char kFirstGpu[] = "GPU:0";
// In a report as JSON.
constexpr std::string_view kUnknownFit = "\"FIT_UNKNOWN\"";

// The limit of cuDNN's workspaces that a report as JSON advises, in MiB; 0: none.
int WorkspaceLimitOf(const std::string& report) {
  const size_t found = report.find(std::string("\"") + internal::kWorkspaceLimit + "=");
  if (found == report.npos) return 0;
  const std::string_view rest = std::string_view(report).substr(found + 1);
  return internal::WorkspaceLimitMib(rest.substr(0, rest.find('"')));
}

// For people: TensorFlow does not pass function names to optimizers.
std::string NameOf(const GraphToPlan& item, const GraphFacts& facts) {
  std::string name;
  if (!item.fetched.empty()) {
    name = *item.fetched.begin();
  } else if (!facts.targets.empty()) {
    name = facts.targets.front();
  }
  return name.empty() ? "graph" : name;
}

class Planner {
 public:
  Planner(const Settings& settings, const GraphToPlan& item, const GraphFacts& facts)
      : settings_(settings),
        item_(item),
        facts_(facts),
        name_(NameOf(item, facts)),
        described_("graph of '" + name_ + "' (" + std::to_string(facts.node_count) + " nodes)") {}

  void ReportXla() const {
    LogOnce(
        described_ +
        ": its step is compiled by XLA, which knows no swaps, so it is left as it is; for swaps "
        "pass jit_compile=False to the model's compile or to tf.function (Keras 3 chooses XLA by "
        "itself on a GPU)");
  }

  // `unknown`: as in PlanGraph.
  std::optional<std::string> Plan(bool has_gpu, bool* unknown) {
    if (!settings_.problem.empty()) return Refuse(settings_.problem);
    const bool rehearsal = !settings_.gpu_stand_in.empty();
    if (rehearsal && has_gpu) {
      return Refuse("SPILLWAY_GPU_STAND_IN is '" + settings_.gpu_stand_in +
                    "', but the graph has nodes on a GPU; the setting is for machines without one");
    }
    // The producer of a fed tensor does not run, and Spillway only learns feeds of placeholders.
    if (!facts_.fed_ops.empty()) {
      return Refuse(described_ + ": it feeds '" + facts_.fed_ops.front() +
                    "', which is no placeholder; feed a placeholder");
    }
    std::string problem;
    const Library* const library = LoadLibrary(&problem);
    if (library == nullptr) return Refuse(problem);
    const std::string options = MakeOptions(*library, settings_, facts_, &problem);
    if (!problem.empty()) return Refuse(described_ + ": " + problem);

    std::string moved;
    if (rehearsal) moved = MoveNodes(item_.graph, settings_.gpu_stand_in, kFirstGpu);
    const std::string_view original = rehearsal ? std::string_view(moved) : item_.graph;
    std::string graph, report, cost;
    problem = Rewrite(*library, original, options, &graph, &report, &cost);
    if (!problem.empty()) return Refuse(described_ + ": " + problem);
    const bool unchanged = graph.empty() || graph == original;
    *unknown = unchanged && report.find(kUnknownFit) != report.npos;
    if (*unknown && item_.said_unknown) return std::nullopt;
    std::string line = described_ + ": " + cost;
    if (!settings_.report_dir.empty()) {
      const std::string path = WriteReport(settings_.report_dir, name_, report, &problem);
      line += "; " + (path.empty() ? problem : "report: " + path);
    }
    LogOnce(line);
    for (const std::string& misfit : internal::SettingWarnings()) LogOnce(misfit);
    if (unchanged) return std::nullopt;  // Nothing was to be done.
    if (const std::string late = internal::LimitWorkspaces(WorkspaceLimitOf(report));
        !late.empty()) {
      LogOnce(late);
    }
    return rehearsal ? MoveNodes(graph, kFirstGpu, settings_.gpu_stand_in) : graph;
  }

 private:
  std::nullopt_t Refuse(const std::string& why) const {
    // If the settings are the cause, their names are those of the variables.
    std::string line = why;
    if (why.find("batch_size") != why.npos && settings_.batch_size == 0) {
      line += "; batch_size is SPILLWAY_JOB_BATCH_SIZE here";
    }
    if (settings_.fail_closed) {
      FailClosed(line + "; the process ends, as SPILLWAY_FAIL_CLOSED requires");
    }
    LogOnce(line + "; the program runs without swaps");
    return std::nullopt;
  }

  // The rewritten graph, the report as JSON, and the rewrite's cost, or why it was not made, in
  // words. Returns the problem, or "".
  std::string Rewrite(const Library& library, std::string_view graph, const std::string& options,
                      std::string* rewritten, std::string* report, std::string* cost) const {
    const Owner<spillway_client_options> where(library.client_options_new(),
                                               library.client_options_free);
    std::string problem;
    const auto failed = [&](spillway_status* status) {
      if (problem.empty()) problem = TakeMessage(library, status);
      return !problem.empty();
    };
    const Settings& s = settings_;
    if (!s.server.empty() &&
        failed(library.client_options_set_target(where.get(), s.server.c_str()))) {
      return problem;
    }
    if (s.tls || !s.tls_ca.empty() || !s.tls_cert.empty() || !s.tls_key.empty() ||
        !s.tls_server_name.empty()) {
      const auto text = [](const std::string& t) { return t.empty() ? nullptr : t.c_str(); };
      if (failed(library.client_options_set_tls(where.get(), text(s.tls_ca), text(s.tls_cert),
                                                text(s.tls_key), text(s.tls_server_name)))) {
        return problem;
      }
    }
    if (!s.token_file.empty() &&
        failed(library.client_options_set_token_file(where.get(), s.token_file.c_str()))) {
      return problem;
    }
    spillway_client* client = nullptr;
    if (failed(library.client_new(where.get(), &client))) return problem;
    const Owner<spillway_client> client_owner(client, library.client_free);
    const Owner<spillway_call> call(library.call_new(), library.call_free);
    if (failed(library.call_set_timeout_ms(call.get(), s.timeout_s * 1000))) return problem;
    if (!s.token.empty() && s.token_file.empty() &&
        failed(library.call_set_token(call.get(), s.token.c_str()))) {
      return problem;
    }
    spillway_buffer *graph_out = nullptr, *report_out = nullptr, *json = nullptr, *line = nullptr;
    if (failed(library.rewrite_graph(client, graph.data(), graph.size(), options.data(),
                                     options.size(), call.get(), &graph_out, &report_out))) {
      return problem;
    }
    const Owner<spillway_buffer> graph_owner(graph_out, library.buffer_free);
    const Owner<spillway_buffer> report_owner(report_out, library.buffer_free);
    const char* const bytes = library.buffer_data(report_out);
    const size_t size = library.buffer_size(report_out);
    if (failed(library.message_to_json("RewriteReport", bytes, size, &json))) return problem;
    const Owner<spillway_buffer> json_owner(json, library.buffer_free);
    if (failed(library.text("RewriteReport line", bytes, size, &line))) return problem;
    const Owner<spillway_buffer> line_owner(line, library.buffer_free);
    rewritten->assign(BytesOf(library, graph_out));
    report->assign(BytesOf(library, json));
    cost->assign(BytesOf(library, line));
    return "";
  }

  const Settings& settings_;
  const GraphToPlan& item_;
  const GraphFacts& facts_;
  const std::string name_, described_;
};

}  // namespace

const Settings& TheSettings() {
  static const Settings* const settings = new Settings(ReadSettings());
  return *settings;
}

std::optional<std::string> PlanGraph(const Settings& settings, std::string_view registered_for,
                                     const GraphToPlan& item, bool* unknown) {
  if (!settings.enabled) return std::nullopt;
  const GraphFacts facts = ReadGraph(item.graph, item.kept, item.fetched);
  const bool xla = !facts.trains && facts.xla_trains;
  if (!facts.ok || (!facts.trains && !xla) || facts.has_swaps) return std::nullopt;
  const auto has = [&facts](const auto& predicate) {
    return std::any_of(facts.devices.begin(), facts.devices.end(), predicate);
  };
  const auto of_type = [](std::string_view type) {
    return [type](const std::string& device) { return IsOfType(device, type); };
  };
  if (registered_for == kGpu && has(of_type(kCpu))) return std::nullopt;
  const bool has_gpu = has(of_type(kGpu));
  const bool has_stand_in = has([&settings](const std::string& device) {
    return !settings.gpu_stand_in.empty() && IsDevice(device, settings.gpu_stand_in);
  });
  if (!has_gpu && !has_stand_in && settings.problem.empty()) return std::nullopt;
  bool ignored = false;
  Planner planner(settings, item, facts);
  if (!xla) return planner.Plan(has_gpu, unknown == nullptr ? &ignored : unknown);
  planner.ReportXla();
  return std::nullopt;
}

std::optional<std::string> ShownGraphs::Plan(const Settings& settings,
                                             std::string_view registered_for, GraphToPlan item) {
  std::set<std::string> key = item.kept;
  key.insert(item.fetched.begin(), item.fetched.end());
  const size_t checksum = std::hash<std::string_view>()(item.graph);
  item.said_unknown = !key.empty() && key == left_alone_;
  if (item.said_unknown && (!unknown_.has_value() || *unknown_ == checksum)) return std::nullopt;
  left_alone_.clear();
  bool unknown = false;
  std::optional<std::string> planned = PlanGraph(settings, registered_for, item, &unknown);
  if (planned.has_value()) return planned;
  left_alone_ = std::move(key);
  unknown_.reset();
  if (unknown) unknown_ = checksum;
  return std::nullopt;
}

}  // namespace spillway::tensorflow_plugin
