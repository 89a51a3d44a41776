#include "client_lib/plot/chrome_trace.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client_lib/plot/text.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::plot {
namespace {

// Threads of a process; those of the host are created as needed.
enum Thread { kCompute = 1, kCopyOut = 2, kCopyIn = 3 };

// Microseconds, to the nanosecond.
std::string Micros(int64_t nanoseconds) {
  const int64_t whole = nanoseconds / 1000;
  return absl::StrFormat("%d.%03d", whole, nanoseconds - whole * 1000);
}

// `"ts":12.345`.
std::string At(int64_t nanoseconds) { return absl::StrCat("\"ts\":", Micros(nanoseconds)); }

std::string PlaceOf(int64_t process, int64_t thread) {
  return absl::StrCat("\"pid\":", process, ",\"tid\":", thread);
}

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

const char* CategoryOf(v1::Engine engine) {
  switch (engine) {
    case v1::ENGINE_COMPUTE:
      return "compute";
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

// The host runs any number of concurrent operations, but a thread shows one at a time: each goes to
// the first free thread.
class HostLanes {
 public:
  // Its number, from 1 on.
  int64_t Take(const v1::TraceSpan& span) {
    const auto free = std::find_if(ends_.begin(), ends_.end(),
                                   [&](int64_t end) { return end <= span.start_ns(); });
    const int64_t lane = free - ends_.begin();
    if (free == ends_.end()) {
      // Beyond the maximum, concurrent operations overlap in the last thread.
      if (ends_.size() == kMost) return lane;
      ends_.push_back(0);
    }
    ends_[lane] = span.start_ns() + span.duration_ns();
    return lane + 1;
  }
  size_t size() const { return ends_.size(); }

 private:
  static constexpr size_t kMost = 64;
  std::vector<int64_t> ends_;
};

}  // namespace

void ChromeTrace::Event(absl::string_view event) {
  absl::StrAppend(&events_, events_.empty() ? "" : ",\n", "{", event, "}");
}

void ChromeTrace::NameProcess(int64_t process, absl::string_view name) {
  Event(absl::StrCat("\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", process,
                     ",\"args\":{\"name\":", JsonText(name), "}"));
  Event(absl::StrCat("\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":", process,
                     ",\"args\":{\"sort_index\":", process, "}"));
}

void ChromeTrace::NameThread(int64_t process, int thread, absl::string_view name) {
  Event(absl::StrCat("\"ph\":\"M\",\"name\":\"thread_name\",", PlaceOf(process, thread),
                     ",\"args\":{\"name\":", JsonText(name), "}"));
  Event(absl::StrCat("\"ph\":\"M\",\"name\":\"thread_sort_index\",", PlaceOf(process, thread),
                     ",\"args\":{\"sort_index\":", thread, "}"));
}

void ChromeTrace::AddMemory(const v1::DeviceMemory& memory, int64_t process) {
  for (const v1::MemorySample& sample : memory.timeline()) {
    if (sample.time_ns() < 0) continue;
    Event(absl::StrCat("\"ph\":\"C\",\"name\":\"memory in use\",\"pid\":", process, ",",
                       At(sample.time_ns()), ",\"args\":{\"bytes\":", sample.bytes(), "}"));
  }
  if (memory.timeline().empty() || memory.peak_ns() < 0) return;
  Event(absl::StrCat("\"ph\":\"i\",\"s\":\"p\",\"name\":\"peak of memory\",",
                     PlaceOf(process, kCompute), ",", At(memory.peak_ns()), ",\"args\":{\"bytes\":",
                     memory.peak_bytes(), ",\"resident_bytes\":", memory.resident_bytes(),
                     ",\"in_words\":", JsonText(core::BytesText(memory.peak_bytes())), "}"));
}

void ChromeTrace::AddSpans(const v1::SimulateReport& report, int64_t first_process) {
  const v1::StepTrace& trace = report.trace();
  const int gpus = std::max(report.forecast().devices_size(), report.memory_size());
  const int64_t host_process = first_process + gpus;
  HostLanes lanes;
  for (const v1::TraceSpan& span : trace.spans()) {
    const bool is_host = span.engine() == v1::ENGINE_HOST;
    if (!IsSound(span) || (!is_host && ThreadOf(span.engine()) == 0)) continue;
    if (!is_host && (span.device() < 0 || span.device() >= gpus)) continue;
    const std::string place = is_host
                                  ? PlaceOf(host_process, lanes.Take(span))
                                  : PlaceOf(first_process + span.device(), ThreadOf(span.engine()));
    std::string about = absl::StrCat("\"given_ns\":", span.given_ns());
    if (span.bytes() > 0) absl::StrAppend(&about, ",\"bytes\":", span.bytes());
    if (span.waited_ns() > 0) {
      absl::StrAppend(&about, ",\"waited_for_memory_ns\":", span.waited_ns());
    }
    const char* category = CategoryOf(span.engine());
    Event(absl::StrCat("\"ph\":\"X\",\"name\":", JsonText(span.node()), ",\"cat\":\"", category,
                       "\",", place, ",", At(span.start_ns()),
                       ",\"dur\":", Micros(span.duration_ns()), ",\"args\":{", about, "}"));
    if (!span.has_copied_out() || span.copied_out() < 0 ||
        span.copied_out() >= trace.spans_size()) {
      continue;
    }
    const v1::TraceSpan& out = trace.spans(span.copied_out());
    if (!IsSound(out) || out.engine() != v1::ENGINE_COPY_OUT || out.device() < 0 ||
        out.device() >= gpus) {
      continue;
    }
    const std::string flow =
        absl::StrCat("\"name\":\"swap\",\"cat\":\"swap\",\"id\":", next_flow_++);
    Event(absl::StrCat("\"ph\":\"s\",", flow, ",", PlaceOf(first_process + out.device(), kCopyOut),
                       ",", At(out.start_ns())));
    Event(absl::StrCat("\"ph\":\"f\",\"bp\":\"e\",", flow, ",", place, ",", At(span.start_ns())));
  }
  if (lanes.size() == 0) return;
  NameProcess(host_process, "host");
  for (size_t lane = 1; lane <= lanes.size(); ++lane) {
    NameThread(host_process, static_cast<int>(lane), absl::StrCat("operations ", lane));
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
      &about_, about_.empty() ? "" : ",", "{\"graph\":", JsonText(name), ",\"execution\":\"",
      simulated.execution() == v1::EXECUTION_SYNCHRONOUS ? "synchronous" : "launched ahead",
      "\",\"unlimited_memory\":", simulated.unlimited_memory() ? "true" : "false",
      ",\"step_time_ns\":", simulated.step_time_ns(),
      ",\"hardware\":", JsonText(report.hardware().hardware().preset()), "}");
}

std::string ChromeTrace::Json() const {
  return absl::StrCat(
      "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"made_by\":\"spillway\",\"steps\":[", about_,
      "]},\"traceEvents\":[\n", events_, "\n]}\n");
}

}  // namespace spillway::plot
