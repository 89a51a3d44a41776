// Simulations of any bytes: two bytes say how long the options are (ExploreOptions, a profile among
// them), the rest is the graph; without a rest, graphs that stay the same.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/inspect/explore.h"
#include "rewrite_core/inspect/inspect.h"
#include "rewrite_core/inspect/simulate_graph.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/testing/graph_text.h"
#include "tests/testing/proto_graph.h"
#include "tests/testing/random_graph.h"

namespace spillway::testing {
namespace {

constexpr uint64_t kMixedSeed = 7;
// One input takes a second at most, under sanitizers too; then its work must stop.
constexpr int64_t kMaxSteps = 1'000'000;
constexpr int kMaxSizes = 4;
// The allocator's rounding: buffers are reported exactly, peaks as they are allocated.
constexpr int64_t kAllocation = 256;

std::vector<std::string> MakeGraphs() {
  RandomGraphOptions mixed;
  mixed.forward_ops = 12;
  mixed.conds = mixed.loops = true;
  constexpr char kPlain[] = R"(in = Placeholder() {dtype=float32, shape=(?,8)}
w = VariableV2() @/gpu:0 {dtype=float32, shape=(8,8)}
y = MatMul(in, w) @/gpu:0 {T=float32}
z = Relu(y) @/gpu:0 {T=float32}
g = ReluGrad(z, y) @/gpu:0 {T=float32}
h = MatMul(in, g) @/gpu:1 {T=float32, transpose_a=true}
u = ApplyGradientDescent(w, h, h) @/gpu:0 {T=float32}
)";
  return {WriteProto(MakeRandomGraph(kMixedSeed, mixed)), GraphBytes(kPlain)};
}

// What must hold of an error: it blames the input, or is that of the steps.
std::string WrongError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kCancelled:
      return "";
    default:
      return status.ToString();
  }
}

bool MayFit(const v1::Forecast& forecast) { return forecast.fit() != v1::FIT_DOES_NOT_FIT; }

std::string CheckForecast(const v1::Forecast& forecast, int64_t budget) {
  for (const v1::DeviceForecast& device : forecast.devices()) {
    if (device.resident_bytes() < 0 || device.peak_bytes() < device.resident_bytes()) {
      return absl::StrCat("a peak below what is resident: ", device.ShortDebugString());
    }
    if (MayFit(forecast) && device.peak_bytes() > budget) {
      return absl::StrCat("it fits, and not: ", device.ShortDebugString());
    }
    if (device.stall_ns() < 0 || device.compute_ns() < 0 || device.copy_in_bytes() < 0) {
      return absl::StrCat("below 0: ", device.ShortDebugString());
    }
    if (!device.has_bounds() || !MayFit(forecast)) continue;
    if (device.bounds().step_time_ns() > forecast.step_time_ns() ||
        device.bounds().memory_bytes() > device.peak_bytes()) {
      return absl::StrCat("better than its bounds: ", forecast.ShortDebugString());
    }
  }
  return "";
}

std::string CheckReport(const v1::SimulateReport& report) {
  const int64_t budget = report.hardware().device_budget_bytes();
  for (const v1::DeviceMemory& memory : report.memory()) {
    int64_t alive = 0, most = 0;
    for (const v1::LiveTensor& live : memory.live_at_peak()) {
      const int64_t bytes = live.tensor().size_bytes();
      alive += (bytes + kAllocation - 1) / kAllocation * kAllocation;
    }
    for (const v1::MemorySample& sample : memory.timeline()) most = std::max(most, sample.bytes());
    // Workspaces are not tensors.
    if (alive > most) return absl::StrCat(alive, " bytes alive in ", most);
    if (memory.peak_bytes() != most) return absl::StrCat("peak ", memory.peak_bytes(), ", ", most);
  }
  int64_t last_ns = 0;
  const auto& devices = report.forecast().devices();
  std::vector<int64_t> out(devices.size()), in(devices.size());
  for (const v1::TraceSpan& span : report.trace().spans()) {
    if (span.engine() == v1::ENGINE_COPY_OUT) out[span.device()] += span.bytes();
    if (span.engine() == v1::ENGINE_COPY_IN) in[span.device()] += span.bytes();
    if (span.start_ns() < last_ns || span.duration_ns() < 0 || span.waited_ns() < 0 ||
        span.given_ns() > span.start_ns()) {
      return absl::StrCat("out of order: ", span.ShortDebugString());
    }
    last_ns = span.start_ns();
    if (span.start_ns() + span.duration_ns() > report.simulated().step_time_ns()) {
      return absl::StrCat("after the step's end: ", span.ShortDebugString());
    }
  }
  for (int i = 0; i < devices.size(); ++i) {
    if (out[i] != devices[i].copy_out_bytes() || in[i] != devices[i].copy_in_bytes()) {
      return absl::StrCat("other copies than in the forecast: ", out[i], " out, ", in[i], " in");
    }
  }
  return CheckForecast(report.forecast(), budget);
}

std::string CheckGraph(const std::string& graph, const v1::ExploreOptions& options) {
  v1::SimulateOptions simulate_options;
  *simulate_options.mutable_step() = options.step();
  simulate_options.set_no_budget(options.no_budget());
  simulate_options.set_memory(true);
  simulate_options.set_trace(true);
  simulate_options.set_execution(graph.size() % 2 == 0 ? v1::EXECUTION_LAUNCHED_AHEAD
                                                       : v1::EXECUTION_SYNCHRONOUS);
  const auto simulate = [&] {
    return core::SimulateGraph(graph, simulate_options, FuzzLimits(),
                               core::StopToken::AfterStepsForTest(kMaxSteps));
  };
  const auto report = simulate();
  if (!report.ok()) {
    if (std::string wrong = WrongError(report.status()); !wrong.empty()) return wrong;
  } else {
    if (std::string wrong = CheckReport(*report); !options.no_budget() && !wrong.empty())
      return wrong;
    const auto again = simulate();
    if (!again.ok() || again->SerializeAsString() != report->SerializeAsString()) {
      return "another report on a second run";
    }
  }
  v1::InspectOptions inspect;
  *inspect.mutable_step()->mutable_feeds() = options.step().feeds();
  inspect.set_tensors(true);
  const absl::Status listed =
      core::Inspect(graph, inspect, FuzzLimits(), core::StopToken::AfterStepsForTest(kMaxSteps),
                    [](v1::InspectResponse&&) { return true; });
  if (std::string wrong = WrongError(listed); !wrong.empty()) return wrong;
  const auto explored =
      core::Explore(graph, options, FuzzLimits(), core::StopToken::AfterStepsForTest(kMaxSteps));
  return WrongError(explored.status());
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  static const auto& graphs = *new std::vector<std::string>(MakeGraphs());
  if (size < 2) return -1;
  const size_t length = std::min<size_t>(data[0] << 8 | data[1], size - 2);
  spillway::v1::ExploreOptions options;
  if (!options.ParseFromArray(data + 2, static_cast<int>(length)))
    return -1;  // Not for the corpus.
  if (options.sizes_size() > kMaxSizes) options.mutable_sizes()->Truncate(kMaxSizes);
  const std::string rest(reinterpret_cast<const char*>(data) + 2 + length, size - 2 - length);
  for (const std::string& graph : rest.empty() ? graphs : std::vector<std::string>{rest}) {
    const std::string failure = CheckGraph(graph, options);
    if (failure.empty()) continue;
    RequireNone(absl::StrCat(failure, "\noptions: ", options.ShortDebugString(), "\ngraph:\n",
                             DescribeGraph(graph)));
  }
  return 0;
}
