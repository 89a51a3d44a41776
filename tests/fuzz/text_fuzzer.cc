// Any bytes as a message that is shown: the first byte chooses the kind and the result (a text, a
// picture, a trace, a comparison with a run), the rest is the message.
#include <string>

#include "client_lib/plot/chrome_trace.h"
#include "client_lib/plot/picture.h"
#include "client_lib/text/check_run.h"
#include "client_lib/text/check_trace.h"
#include "client_lib/text/message_text.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/simulate.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace spillway::testing {
namespace {

// Those of client_lib/text/message_text.cc.
constexpr const char* kTexts[] = {
    "RewriteReport", "RewriteReport line", "Forecast",  "SimulateReport", "ExploreReport",
    "ExploredSize",  "GraphSummary",       "GraphDiff", "RunCheck",       "GetCapabilitiesResponse",
    "bytes",         "nanoseconds",        "near names"};
constexpr size_t kNumTexts = sizeof(kTexts) / sizeof(kTexts[0]);

void CheckRunOf(const std::string& bytes) {
  const auto trace = text::ReadCheckTrace(bytes);
  RequireBlamesInput(trace.status());
  if (!trace.ok()) return;
  plot::ChromeTrace chrome;
  chrome.AddMeasured(*trace);
  (void)chrome.Json();
  v1::RewriteReport report;
  v1::Decision& decision = *report.add_decisions();
  decision.set_tensor("a:0");
  decision.set_reason(v1::REASON_SWAPPED);
  RequireBlamesInput(text::CheckRun(report, *trace).status());
}

void Draw(const std::string& bytes) {
  plot::PictureOptions options;
  v1::SimulateReport step;
  if (step.ParseFromString(bytes)) {
    for (const plot::Format format : {plot::Format::kSvg, plot::Format::kHtml}) {
      options.format = format;
      RequireBlamesInput(plot::DrawStep(step, &step, options).status());
    }
    plot::ChromeTrace chrome;
    chrome.Add(step, "name");
    (void)chrome.Json();
  }
  v1::ExploreReport explored;
  if (explored.ParseFromString(bytes)) {
    RequireBlamesInput(plot::DrawThroughput(explored, options).status());
  }
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  if (size == 0) return -1;  // Not for the corpus.
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t choice = data[0] % (kNumTexts + 2);
  if (choice < kNumTexts) {
    RequireBlamesInput(spillway::text::TextOf(kTexts[choice], bytes).status());
  } else if (choice == kNumTexts) {
    CheckRunOf(bytes);
  } else {
    Draw(bytes);
  }
  return 0;
}
