// Writes simulated and measured steps in the Trace Event format of Perfetto (ui.perfetto.dev) and
// chrome://tracing: a process for each GPU, a thread for each engine, the memory as a counter, its
// peak as an instant, swaps as flows from the copy out to the copy in.
//
// The format: "Trace Event Format",
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_CHROME_TRACE_H_
#define SPILLWAY_CLIENT_LIB_PLOT_CHROME_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "client_lib/text/check_trace.h"
#include "nlohmann/json_fwd.hpp"
#include "spillway/v1/simulate.pb.h"

namespace spillway::plot {

class ChromeTrace {
 public:
  // Adds the step of a report with memory and trace. `name`: a prefix of its GPUs' names, for files
  // with several graphs; may be empty.
  void Add(const v1::SimulateReport& report, absl::string_view name = "");

  // Adds a traced step: a process for each device, its times relative to the start of the step.
  void AddMeasured(const text::CheckTrace& trace);

  // Returns everything added, with a final newline.
  std::string Json() const;

 private:
  void Event(const nlohmann::ordered_json& event);
  void NameProcess(int64_t process, absl::string_view name);
  void NameThread(int64_t process, int64_t thread, absl::string_view name);
  // Names threads of operations: 1 to `count`.
  void NameLanes(int64_t process, size_t count);
  void AddBytes(const char* name, int64_t process, int64_t time_ns, int64_t bytes);
  void AddMemory(const v1::DeviceMemory& memory, int64_t process);
  void AddSpans(const v1::SimulateReport& report, int64_t first_process);

  std::string events_;
  std::string about_;  // Of each simulated step.
  int64_t next_process_ = 1;
  int64_t next_flow_ = 1;
};

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_CHROME_TRACE_H_
