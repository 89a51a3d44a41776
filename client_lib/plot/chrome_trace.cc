#include "client_lib/plot/chrome_trace.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/plot/text.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/graph/graph_def_fields.h"

namespace spillway::plot {
namespace {

// Threads of a process; those of the host are created as needed.
enum Thread { kCompute = 1, kCopyOut = 2, kCopyIn = 3 };

using Object = nlohmann::ordered_json;

std::string Dumped(const Object& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Object::error_handler_t::replace);
}

// Times are in microseconds, to the nanosecond.
double Micros(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

int ThreadOf(v1::Engine engine) {
  switch (engine) {
    case v1::ENGINE_COMPUTE:
      return kCompute;
    case v1::ENGINE_COPY_OUT:
      return kCopyOut;
    case v1::ENGINE_COPY_IN:
      return kCopyIn;
    default:
      return 0;
  }
}

const char* CategoryOf(const v1::TraceSpan& span) {
  switch (span.engine()) {
    case v1::ENGINE_COMPUTE:
      return core::IsCloneName(span.node()) ? "recompute" : "compute";
    case v1::ENGINE_COPY_OUT:
      return "copy out";
    case v1::ENGINE_COPY_IN:
      return "copy in";
    default:
      return "host";
  }
}

bool IsSound(const v1::TraceSpan& span) {
  return span.start_ns() >= 0 && span.duration_ns() >= 0 &&
         span.start_ns() <= INT64_MAX - span.duration_ns();
}

// Any number of operations run at once, but a thread shows one at a time: each goes to the first
// free thread.
class Lanes {
 public:
  // Its number, from 1 on.
  int64_t Take(int64_t start_ns, int64_t end_ns) {
    const auto free =
        std::find_if(ends_.begin(), ends_.end(), [&](int64_t end) { return end <= start_ns; });
    const int64_t lane = free - ends_.begin();
    if (free == ends_.end()) {
      // Beyond the maximum, concurrent operations overlap in the last thread.
      if (ends_.size() == kMost) return lane;
      ends_.push_back(0);
    }
    ends_[lane] = end_ns;
    return lane + 1;
  }
  size_t size() const { return ends_.size(); }

 private:
  static constexpr size_t kMost = 64;
  std::vector<int64_t> ends_;
};

}  // namespace

void ChromeTrace::Event(const Object& event) {
  absl::StrAppend(&events_, events_.empty() ? "" : ",\n", Dumped(event));
}

void ChromeTrace::NameProcess(int64_t process, absl::string_view name) {
  Event(
      {{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", Clean(name)}}}});
  Event({{"ph", "M"},
         {"name", "process_sort_index"},
         {"pid", process},
         {"args", {{"sort_index", process}}}});
}

void ChromeTrace::NameThread(int64_t process, int64_t thread, absl::string_view name) {
  Event({{"ph", "M"},
         {"name", "thread_name"},
         {"pid", process},
         {"tid", thread},
         {"args", {{"name", Clean(name)}}}});
  Event({{"ph", "M"},
         {"name", "thread_sort_index"},
         {"pid", process},
         {"tid", thread},
         {"args", {{"sort_index", thread}}}});
}

void ChromeTrace::NameLanes(int64_t process, size_t count) {
  for (size_t lane = 1; lane <= count; ++lane) {
    NameThread(process, static_cast<int64_t>(lane), absl::StrCat("operations ", lane));
  }
}

void ChromeTrace::AddBytes(const char* name, int64_t process, int64_t time_ns, int64_t bytes) {
  Event({{"ph", "C"},
         {"name", name},
         {"pid", process},
         {"ts", Micros(time_ns)},
         {"args", {{"bytes", bytes}}}});
}

void ChromeTrace::AddMemory(const v1::DeviceMemory& memory, int64_t process) {
  for (const v1::MemorySample& sample : memory.timeline()) {
    if (sample.time_ns() >= 0) {
      AddBytes("memory in use", process, sample.time_ns(), sample.bytes());
    }
  }
  if (memory.timeline().empty() || memory.peak_ns() < 0) return;
  Event({{"ph", "i"},
         {"s", "p"},
         {"name", "peak of memory"},
         {"pid", process},
         {"tid", kCompute},
         {"ts", Micros(memory.peak_ns())},
         {"args",
          {{"bytes", memory.peak_bytes()},
           {"resident_bytes", memory.resident_bytes()},
           {"in_words", core::BytesText(memory.peak_bytes())}}}});
}

void ChromeTrace::AddSpans(const v1::SimulateReport& report, int64_t first_process) {
  const v1::StepTrace& trace = report.trace();
  const int gpus = std::max(report.forecast().devices_size(), report.memory_size());
  const int64_t host_process = first_process + gpus;
  Lanes lanes;
  for (const v1::TraceSpan& span : trace.spans()) {
    const bool is_host = span.engine() == v1::ENGINE_HOST;
    if (!IsSound(span) || (!is_host && ThreadOf(span.engine()) == 0)) continue;
    if (!is_host && (span.device() < 0 || span.device() >= gpus)) continue;
    const int64_t process = is_host ? host_process : first_process + span.device();
    const int64_t thread = is_host
                               ? lanes.Take(span.start_ns(), span.start_ns() + span.duration_ns())
                               : ThreadOf(span.engine());
    Object about = Object::object({{"given_ns", span.given_ns()}});
    if (span.bytes() > 0) about["bytes"] = span.bytes();
    if (span.waited_ns() > 0) about["waited_for_memory_ns"] = span.waited_ns();
    Event({{"ph", "X"},
           {"name", Clean(span.node())},
           {"cat", CategoryOf(span)},
           {"pid", process},
           {"tid", thread},
           {"ts", Micros(span.start_ns())},
           {"dur", Micros(span.duration_ns())},
           {"args", about}});
    if (!span.has_copied_out() || span.copied_out() < 0 ||
        span.copied_out() >= trace.spans_size()) {
      continue;
    }
    const v1::TraceSpan& out = trace.spans(span.copied_out());
    if (!IsSound(out) || out.engine() != v1::ENGINE_COPY_OUT || out.device() < 0 ||
        out.device() >= gpus) {
      continue;
    }
    const auto flow = [&](Object event, int64_t at_process, int64_t at_thread, int64_t time_ns) {
      event.update({{"name", "swap"},
                    {"cat", "swap"},
                    {"id", next_flow_},
                    {"pid", at_process},
                    {"tid", at_thread},
                    {"ts", Micros(time_ns)}});
      Event(event);
    };
    flow(Object::object({{"ph", "s"}}), first_process + out.device(), kCopyOut, out.start_ns());
    flow(Object::object({{"ph", "f"}, {"bp", "e"}}), process, thread, span.start_ns());
    ++next_flow_;
  }
  if (lanes.size() == 0) return;
  NameProcess(host_process, "host");
  NameLanes(host_process, lanes.size());
}

void ChromeTrace::AddMeasured(const text::CheckTrace& trace) {
  int64_t start = INT64_MAX;
  std::map<absl::string_view, std::vector<text::CheckTrace::Span>> devices;
  for (const text::CheckTrace::Span& span : trace.spans) {
    start = std::min(start, span.start_ns);
    devices[span.device].push_back(span);
  }
  for (auto& [device, spans] : devices) {
    const int64_t process = next_process_++;
    NameProcess(process, absl::StrCat("measured: ", device));
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
    });
    Lanes lanes;
    for (const text::CheckTrace::Span& span : spans) {
      Event({{"ph", "X"},
             {"name", Clean(span.name)},
             {"cat", "measured"},
             {"pid", process},
             {"tid", lanes.Take(span.start_ns, span.end_ns)},
             {"ts", Micros(span.start_ns - start)},
             {"dur", Micros(span.end_ns - span.start_ns)}});
    }
    NameLanes(process, lanes.size());
    const auto records = trace.records.find(device);
    if (records == trace.records.end()) continue;
    int64_t held = 0;
    for (const text::CheckTrace::Record& record : records->second) {
      if (__builtin_add_overflow(held, record.bytes, &held)) break;
      const int64_t time_ns = std::clamp<int64_t>(record.time_us, 0, INT64_MAX / 1000) * 1000;
      AddBytes("memory taken by the step", process, std::max<int64_t>(0, time_ns - start), held);
    }
  }
}

void ChromeTrace::Add(const v1::SimulateReport& report, absl::string_view name) {
  const int gpus = std::max(report.forecast().devices_size(), report.memory_size());
  const int64_t first = next_process_;
  next_process_ += gpus + 1;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const std::string device = gpu < report.forecast().devices_size()
                                   ? report.forecast().devices(gpu).device()
                                   : report.memory(gpu).device();
    NameProcess(first + gpu, absl::StrCat(name, name.empty() ? "" : ": ", GpuName(device)));
    NameThread(first + gpu, kCompute, "compute");
    NameThread(first + gpu, kCopyOut, "copy out");
    NameThread(first + gpu, kCopyIn, "copy in");
    if (gpu < report.memory_size()) AddMemory(report.memory(gpu), first + gpu);
  }
  AddSpans(report, first);
  const v1::SimulatedStep& simulated = report.simulated();
  absl::StrAppend(
      &about_, about_.empty() ? "" : ",",
      Dumped({{"graph", Clean(name)},
              {"execution", simulated.execution() == v1::EXECUTION_SYNCHRONOUS ? "synchronous"
                                                                               : "launched ahead"},
              {"unlimited_memory", simulated.unlimited_memory()},
              {"step_time_ns", simulated.step_time_ns()},
              {"hardware", Clean(report.hardware().hardware().preset())}}));
}

std::string ChromeTrace::Json() const {
  return absl::StrCat(
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"made_by\":\"spillway\",\"steps\":[", about_,
      "]},\"traceEvents\":[\n", events_, "\n]}\n");
}

}  // namespace spillway::plot
