// Pictures as XML: they agree with the report, for any writer.
#include "client_lib/plot/picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client_lib/plot/chrome_trace.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"
#include "tests/testing/random.h"
#include "tests/testing/xml_elements.h"

namespace spillway::plot {
namespace {

using ::spillway::testing::ParseXml;
using ::spillway::testing::Random;
using ::spillway::testing::XmlElement;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kMs = 1'000'000;

void AddSample(int64_t ns, int64_t bytes, v1::DeviceMemory* memory) {
  v1::MemorySample* sample = memory->add_timeline();
  sample->set_time_ns(ns);
  sample->set_bytes(bytes);
  if (bytes <= memory->peak_bytes()) return;
  memory->set_peak_bytes(bytes);
  memory->set_peak_ns(ns);
}

v1::TraceSpan* AddSpan(v1::Engine engine, const std::string& node, int64_t from_ns, int64_t ns,
                       v1::SimulateReport* report) {
  v1::TraceSpan* span = report->mutable_trace()->add_spans();
  span->set_node(node);
  span->set_engine(engine);
  span->set_device(0);
  span->set_start_ns(from_ns);
  span->set_given_ns(from_ns);
  span->set_duration_ns(ns);
  return span;
}

// A step of 100 ms on a GPU of 1000 MiB: 200 resident, 700 at the peak, one swap.
v1::SimulateReport Step() {
  v1::SimulateReport report;
  report.mutable_forecast()->set_fit(v1::FIT_FITS);
  report.mutable_forecast()->set_step_time_ns(100 * kMs);
  v1::DeviceForecast* device = report.mutable_forecast()->add_devices();
  device->set_device("/device:GPU:0");
  device->set_budget_bytes(1000 * kMiB);
  device->set_copy_out_bytes(300 * kMiB);
  report.mutable_hardware()->mutable_hardware()->set_preset("p100_pcie");
  report.mutable_hardware()->mutable_hardware()->set_gpu_memory_bytes(1111 * kMiB);
  report.mutable_simulated()->set_execution(v1::EXECUTION_LAUNCHED_AHEAD);
  report.mutable_simulated()->set_step_time_ns(100 * kMs);
  v1::DeviceMemory* memory = report.add_memory();
  memory->set_device("/device:GPU:0");
  memory->set_resident_bytes(200 * kMiB);
  AddSample(0, 200 * kMiB, memory);
  AddSample(10 * kMs, 500 * kMiB, memory);
  AddSample(40 * kMs, 700 * kMiB, memory);
  AddSample(60 * kMs, 250 * kMiB, memory);
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, int64_t>>{
           {"conv1:0", 300 * kMiB}, {"conv2:0", 200 * kMiB}, {"weights:0", 200 * kMiB}}) {
    v1::LiveTensor* live = memory->add_live_at_peak();
    live->mutable_tensor()->set_tensor(name);
    live->mutable_tensor()->set_size_bytes(bytes);
    live->set_resident(absl::StartsWith(name, "weights"));
  }
  AddSpan(v1::ENGINE_COMPUTE, "conv1", 0, 10 * kMs, &report);
  AddSpan(v1::ENGINE_COPY_OUT, "conv1", 10 * kMs, 20 * kMs, &report)->set_bytes(300 * kMiB);
  AddSpan(v1::ENGINE_COMPUTE, "conv2", 30 * kMs, 30 * kMs, &report)->set_waited_ns(10 * kMs);
  v1::TraceSpan* in = AddSpan(v1::ENGINE_COPY_IN, "lms/swapin_conv1", 60 * kMs, 20 * kMs, &report);
  in->set_bytes(300 * kMiB);
  in->set_copied_out(1);
  AddSpan(v1::ENGINE_COMPUTE, "gradient", 80 * kMs, 20 * kMs, &report);
  return report;
}

class Drawn {
 public:
  explicit Drawn(const absl::StatusOr<std::string>& picture) {
    EXPECT_TRUE(picture.ok()) << picture.status();
    if (!picture.ok()) return;
    text = *picture;
    std::string problem;
    elements = ParseXml(text, &problem);
    EXPECT_EQ(problem, "");
  }

  std::vector<XmlElement> Of(const std::string& style, const std::string& name = "") const {
    std::vector<XmlElement> found;
    for (const XmlElement& element : elements) {
      const auto it = element.attributes.find("class");
      if (it == element.attributes.end() || (!name.empty() && element.name != name)) continue;
      if (it->second == style || absl::StartsWith(it->second, style + " "))
        found.push_back(element);
    }
    return found;
  }
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const XmlElement& element : elements) {
      if (element.name == "text") texts.push_back(element.text);
    }
    return texts;
  }
  // The tips of elements of a style.
  std::vector<std::string> Tips(const std::string& style) const {
    std::vector<std::string> tips;
    for (const XmlElement& element : elements) {
      if (element.name != "title" || element.parent <= 0) continue;
      const auto& attributes = elements[element.parent].attributes;
      const auto it = attributes.find("class");
      if (it != attributes.end() && it->second == style) tips.push_back(element.text);
    }
    return tips;
  }

  std::string text;
  std::vector<XmlElement> elements;
};

double Number(const XmlElement& element, const std::string& name) {
  double value = std::nan("");
  const auto it = element.attributes.find(name);
  EXPECT_NE(it, element.attributes.end()) << name;
  if (it != element.attributes.end()) {
    EXPECT_TRUE(absl::SimpleAtod(it->second, &value)) << it->second;
  }
  return value;
}

// Where the panel of a picture's first GPU puts so many bytes.
double YOf(const Drawn& drawn, double bytes) {
  const XmlElement panel = drawn.Of("hit").at(0);
  return Number(panel, "y") +
         Number(panel, "height") * (1 - bytes / Number(panel, "data-end-bytes"));
}
double XOf(const Drawn& drawn, double ns) {
  const XmlElement panel = drawn.Of("hit").at(0);
  return Number(panel, "x") + Number(panel, "width") * ns / Number(panel, "data-end-ns");
}

TEST(StepPictureTest, PeakBudgetAndResidentAreTheReports) {
  const v1::SimulateReport report = Step();
  const Drawn drawn(DrawStep(report, nullptr, PictureOptions()));
  const auto peaks = drawn.Of("after-mark", "circle");
  ASSERT_THAT(peaks, SizeIs(1));
  EXPECT_EQ(Number(peaks[0], "data-peak-bytes"), 700 * kMiB);
  EXPECT_NEAR(Number(peaks[0], "cy"), YOf(drawn, 700 * kMiB), 0.06);
  EXPECT_NEAR(Number(peaks[0], "cx"), XOf(drawn, 40 * kMs), 0.06);
  const auto budgets = drawn.Of("budget", "line");
  ASSERT_THAT(budgets, SizeIs(2));  // The first is the legend's.
  EXPECT_EQ(Number(budgets[1], "data-budget-bytes"), 1000 * kMiB);
  EXPECT_NEAR(Number(budgets[1], "y1"), YOf(drawn, 1000 * kMiB), 0.06);
  const auto resident = drawn.Of("resident", "rect");
  ASSERT_GE(resident.size(), 2u);
  EXPECT_NEAR(Number(resident[1], "y"), YOf(drawn, 200 * kMiB), 0.06);
  // The line goes where the samples are.
  const auto lines = drawn.Of("after", "path");
  ASSERT_THAT(lines, SizeIs(1));
  double least_y = 1e9;
  for (const absl::string_view part :
       absl::StrSplit(lines[0].attributes.at("d"), absl::ByAnyChar("MHV"), absl::SkipEmpty())) {
    const std::vector<std::string> numbers = absl::StrSplit(part, ' ');
    if (numbers.size() == 2) {
      EXPECT_NEAR(std::stod(numbers[1]), YOf(drawn, 200 * kMiB), 0.06);
    }
  }
  for (const absl::string_view part :
       absl::StrSplit(lines[0].attributes.at("d"), 'V', absl::SkipEmpty())) {
    double y = 0;
    if (absl::SimpleAtod(part.substr(0, part.find_first_of("MHV")), &y))
      least_y = std::min(least_y, y);
  }
  EXPECT_NEAR(least_y, YOf(drawn, 700 * kMiB), 0.06);
  EXPECT_THAT(drawn.Texts(),
              AllOf(Contains("peak 700.00 MiB at 40.0 ms"), Contains("budget 1000.00 MiB"),
                    Contains("resident 200.00 MiB"), Contains("memory in use (MiB)"),
                    Contains("time in the step (ms)"),
                    Contains(HasSubstr("launched ahead, as TensorFlow runs it")),
                    Contains(HasSubstr("p100_pcie")), Contains("conv1:0")));
}

// Each tick is where its label says, and the labels are round.
TEST(StepPictureTest, Ticks) {
  const Drawn drawn(DrawStep(Step(), nullptr, PictureOptions()));
  const XmlElement panel = drawn.Of("hit").at(0);
  int y_ticks = 0, x_ticks = 0;
  for (const XmlElement& element : drawn.Of("text", "text")) {
    double value = 0;
    if (!absl::SimpleAtod(element.text, &value)) continue;
    if (element.attributes.at("text-anchor") == "end") {
      ++y_ticks;
      EXPECT_NEAR(Number(element, "y") - 4, YOf(drawn, value * kMiB), 0.11) << element.text;
      EXPECT_EQ(std::fmod(value, 200), 0) << element.text;
    } else if (element.attributes.at("text-anchor") == "middle") {
      ++x_ticks;
      EXPECT_NEAR(Number(element, "x"), XOf(drawn, value * kMs), 0.06) << element.text;
      EXPECT_EQ(std::fmod(value, 20), 0) << element.text;
    }
  }
  EXPECT_EQ(y_ticks, 6);  // 0 to 1000 MiB.
  EXPECT_EQ(x_ticks, 6);  // 0 to 100 ms.
  EXPECT_EQ(Number(panel, "data-end-bytes"), 1000 * kMiB);
}

TEST(StepPictureTest, EnginesAndSwaps) {
  const Drawn drawn(DrawStep(Step(), nullptr, PictureOptions()));
  // The legend has one of each.
  EXPECT_THAT(drawn.Of("compute", "rect"), SizeIs(1 + 3));
  EXPECT_THAT(drawn.Of("copy-out", "rect"), SizeIs(1 + 1));
  EXPECT_THAT(drawn.Of("copy-in", "rect"), SizeIs(1 + 1));
  EXPECT_THAT(drawn.Of("wait", "rect"), SizeIs(1 + 1));
  const XmlElement out = drawn.Of("copy-out", "rect")[1];
  EXPECT_NEAR(Number(out, "x"), XOf(drawn, 10 * kMs), 0.06);
  EXPECT_NEAR(Number(out, "width"), XOf(drawn, 30 * kMs) - XOf(drawn, 10 * kMs), 0.11);
  const auto swaps = drawn.Of("swap", "path");
  ASSERT_THAT(swaps, SizeIs(2));
  EXPECT_EQ(Number(swaps[1], "data-out-ns"), 10 * kMs);
  EXPECT_EQ(Number(swaps[1], "data-in-ns"), 60 * kMs);
  EXPECT_EQ(Number(swaps[1], "data-bytes"), 300 * kMiB);
  EXPECT_THAT(drawn.Tips("copy-out"), Contains("conv1: 300.00 MiB, 20.0 ms from 10.0 ms"));
  EXPECT_THAT(drawn.Tips("compute"),
              Contains("conv2: 30.0 ms from 30.0 ms, waited 10.0 ms for memory"));
  EXPECT_THAT(drawn.Tips("swap"), Contains(HasSubstr("swap of conv1: 300.00 MiB")));
  EXPECT_THAT(drawn.Texts(), AllOf(Contains("conv1"), Contains("300.00 MiB")));
}

// A recomputed node is shown beside the others, and in the legend.
TEST(StepPictureTest, WhatRunsAgain) {
  EXPECT_THAT(Drawn(DrawStep(Step(), nullptr, PictureOptions())).Of("again", "rect"), SizeIs(0));
  v1::SimulateReport step = Step();
  AddSpan(v1::ENGINE_COMPUTE, "lms/recompute_conv1_0", 80 * kMs, 10 * kMs, &step);
  AddSpan(v1::ENGINE_COPY_IN, "lms/recompute_no_kernel", 80 * kMs, 10 * kMs, &step);
  const Drawn drawn(DrawStep(step, nullptr, PictureOptions()));
  const auto again = drawn.Of("again", "rect");
  ASSERT_THAT(again, SizeIs(1 + 1));
  EXPECT_NEAR(Number(again[1], "x"), XOf(drawn, 80 * kMs), 0.06);
  EXPECT_THAT(drawn.Of("compute", "rect"), SizeIs(1 + 3));
  EXPECT_THAT(drawn.Tips("again"), Contains("lms/recompute_conv1_0: 10.0 ms from 80.0 ms"));
}

TEST(StepPictureTest, BeforeAndAfter) {
  v1::SimulateReport before = Step();
  before.mutable_forecast()->set_fit(v1::FIT_DOES_NOT_FIT);
  before.mutable_simulated()->set_unlimited_memory(true);
  before.mutable_simulated()->set_step_time_ns(50 * kMs);
  AddSample(45 * kMs, 1300 * kMiB, before.mutable_memory(0));
  const Drawn drawn(DrawStep(Step(), &before, PictureOptions()));
  const auto marks = drawn.Of("before-mark", "circle");
  ASSERT_THAT(marks, SizeIs(1));
  EXPECT_EQ(Number(marks[0], "data-peak-bytes"), 1300 * kMiB);
  EXPECT_NEAR(Number(marks[0], "cy"), YOf(drawn, 1300 * kMiB), 0.06);
  EXPECT_THAT(drawn.Of("before", "path"), SizeIs(1));
  EXPECT_THAT(drawn.Texts(),
              AllOf(Contains(AllOf(HasSubstr("before: "), HasSubstr("does not fit"),
                                   HasSubstr("unlimited memory"))),
                    Contains("before: peak 1.27 GiB at 45.0 ms"),
                    Contains("after: peak 700.00 MiB at 40.0 ms"), Contains("before: compute")));
  // The two ways of running a step are not mixed up.
  EXPECT_THAT(drawn.Texts(), Contains("launched ahead"));
  before.mutable_simulated()->set_execution(v1::EXECUTION_SYNCHRONOUS);
  EXPECT_THAT(Drawn(DrawStep(Step(), &before, PictureOptions())).Texts(),
              AllOf(Contains(HasSubstr("before: synchronous")),
                    Contains(HasSubstr("after: launched ahead")), Not(Contains("synchronous")),
                    Not(Contains("launched ahead"))));
}

// A synchronous step is marked so beside its lines, with the figures when launched ahead.
TEST(StepPictureTest, SynchronousSteps) {
  v1::SimulateReport step = Step();
  step.mutable_simulated()->set_execution(v1::EXECUTION_SYNCHRONOUS);
  step.mutable_forecast()->mutable_devices(0)->set_peak_bytes(900 * kMiB);
  step.mutable_forecast()->set_step_time_ns(120 * kMs);
  const char ahead[] =
      "launched ahead, as TensorFlow runs it: at most 900.00 MiB, a step of 120 ms";
  EXPECT_THAT(Drawn(DrawStep(step, nullptr, PictureOptions())).Texts(),
              AllOf(Contains("synchronous"), Contains(ahead)));
  EXPECT_THAT(Drawn(DrawStep(step, &step, PictureOptions())).Texts(),
              AllOf(Contains("synchronous"), Contains(absl::StrCat("after, ", ahead))));
  step.mutable_forecast()->set_fit(v1::FIT_UNKNOWN);
  EXPECT_THAT(Drawn(DrawStep(step, nullptr, PictureOptions())).Texts(),
              Not(Contains(HasSubstr("launched ahead"))));
}

// The rectangle of a text in the picture, by the largest width of a letter of 12 px.
struct Box {
  double left, right, top, bottom;
};
Box BoxOf(const XmlElement& text) {
  constexpr double kLetter = 6.5, kHeight = 11;
  const double x = Number(text, "x"), y = Number(text, "y");
  const double width = kLetter * static_cast<double>(text.text.size());
  const std::string anchor = text.attributes.at("text-anchor");
  const double left = anchor == "start" ? x : anchor == "end" ? x - width : x - width / 2;
  return {left, left + width, y - kHeight, y};
}

// Budget, peak before and peak after close together, on each of eight GPUs.
TEST(StepPictureTest, LabelsLieNeitherOnAPanelNorOnEachOther) {
  v1::SimulateReport step = Step();
  while (step.memory_size() < 8) {
    *step.add_memory() = step.memory(0);
    *step.mutable_forecast()->add_devices() = step.forecast().devices(0);
  }
  v1::SimulateReport before = step;
  for (v1::DeviceMemory& memory : *before.mutable_memory())
    AddSample(41 * kMs, 990 * kMiB, &memory);
  const Drawn drawn(DrawStep(step, &before, PictureOptions()));
  std::vector<Box> boxes;
  for (const XmlElement& element : drawn.Of("legend", "text")) boxes.push_back(BoxOf(element));
  ASSERT_GE(boxes.size(), 8u * 5u);
  const auto panels = drawn.Of("hit");
  ASSERT_THAT(panels, SizeIs(8));
  const double width = Number(drawn.elements.at(0), "width");
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].left, 0) << i;
    EXPECT_LE(boxes[i].right, width) << i;
    for (size_t j = 0; j < i; ++j) {
      EXPECT_TRUE(boxes[i].right <= boxes[j].left || boxes[j].right <= boxes[i].left ||
                  boxes[i].bottom <= boxes[j].top || boxes[j].bottom <= boxes[i].top)
          << i << " " << j;
    }
    for (const XmlElement& panel : panels) {
      const double top = Number(panel, "y");
      EXPECT_TRUE(boxes[i].bottom <= top || boxes[i].top >= top + Number(panel, "height")) << i;
    }
  }
}

TEST(StepPictureTest, HostileNames) {
  const std::string hostile = "</title><script>alert(1)</script>\"'&\x01\xff]]>";
  v1::SimulateReport report = Step();
  report.mutable_memory(0)->set_device(hostile);
  *report.add_memory() = report.memory(0);
  for (v1::LiveTensor& live : *report.mutable_memory(0)->mutable_live_at_peak()) {
    live.mutable_tensor()->set_tensor(hostile);
    live.mutable_tensor()->set_dtype(hostile);
    live.mutable_tensor()->set_shape(hostile);
  }
  for (v1::TraceSpan& span : *report.mutable_trace()->mutable_spans()) span.set_node(hostile);
  report.mutable_hardware()->mutable_hardware()->set_preset(hostile);
  PictureOptions options;
  options.title = hostile;
  options.notes = {hostile};
  const Drawn drawn(DrawStep(report, &report, options));
  EXPECT_THAT(drawn.text, Not(HasSubstr("<script")));
  EXPECT_THAT(drawn.Tips("compute"), Contains(HasSubstr("<script>alert(1)")));
  options.format = Format::kHtml;
  const auto page = DrawStep(report, nullptr, options);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(*page, "<script")).size(), 2u);  // Its own.
}

TEST(StepPictureTest, NumbersThatMakeNoSense) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  for (const int64_t wild : {kMost, kLeast, int64_t{-1}, int64_t{0}}) {
    v1::SimulateReport report = Step();
    report.mutable_simulated()->set_step_time_ns(wild);
    v1::DeviceMemory* memory = report.mutable_memory(0);
    memory->set_peak_bytes(wild);
    memory->set_peak_ns(wild);
    memory->set_resident_bytes(wild);
    AddSample(wild, wild, memory);
    for (v1::LiveTensor& live : *memory->mutable_live_at_peak()) {
      live.mutable_tensor()->set_size_bytes(wild);
    }
    report.mutable_forecast()->mutable_devices(0)->set_budget_bytes(wild);
    report.mutable_forecast()->mutable_devices(0)->set_copy_in_bytes(wild);
    *report.mutable_forecast()->add_devices() = report.forecast().devices(0);
    for (v1::TraceSpan& span : *report.mutable_trace()->mutable_spans()) {
      span.set_bytes(wild);
      span.set_given_ns(wild);
      span.set_waited_ns(wild);
    }
    for (const int32_t index : {0, 3, 99, -1, std::numeric_limits<int32_t>::min()}) {
      v1::TraceSpan* span = AddSpan(v1::ENGINE_COPY_IN, "x", wild, wild, &report);
      span->set_copied_out(index);
      AddSpan(v1::ENGINE_COMPUTE, "x", 0, 1, &report)->set_device(index);
    }
    AddSpan(static_cast<v1::Engine>(77), "x", 0, 1, &report);
    const Drawn drawn(DrawStep(report, &report, PictureOptions()));
    EXPECT_THAT(drawn.text, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf\""))));
  }
}

TEST(StepPictureTest, EmptyAndTiny) {
  v1::SimulateReport report;
  auto picture = DrawStep(report, nullptr, PictureOptions());
  EXPECT_EQ(core::GetErrorReason(picture.status()), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_THAT(std::string(picture.status().message()), HasSubstr("spillway simulate --trace"));
  report.mutable_simulated()->set_step_time_ns(0);
  picture = DrawStep(report, nullptr, PictureOptions());
  EXPECT_THAT(std::string(picture.status().message()),
              HasSubstr("no node of this step runs on a "));
  report.add_memory();
  Drawn empty(DrawStep(report, nullptr, PictureOptions()));
  EXPECT_THAT(empty.Of("after", "path"), IsEmpty());
  AddSample(0, 256, report.mutable_memory(0));
  report.mutable_simulated()->set_step_time_ns(10);
  AddSpan(v1::ENGINE_COMPUTE, "one", 0, 10, &report);
  Drawn one(DrawStep(report, nullptr, PictureOptions()));
  EXPECT_THAT(one.Texts(), AllOf(Contains("peak 256 B at 0 ns"), Contains("memory in use (bytes)"),
                                 Contains("time in the step (ns)")));
}

// A million points, and as many operations: a picture of some hundred KB, with the peak in it.
TEST(StepPictureTest, AStepOfMillions) {
  v1::SimulateReport report = Step();
  v1::DeviceMemory* memory = report.mutable_memory(0);
  memory->clear_timeline();
  report.clear_trace();
  memory->set_peak_bytes(0);
  constexpr int kPoints = 1'000'000;
  for (int i = 0; i < kPoints; ++i) {
    AddSample(100 * i, i == 654'321 ? 999 * kMiB : (i % 7) * 100 * kMiB, memory);
    if (i % 2 == 0) AddSpan(v1::ENGINE_COMPUTE, "n", 100 * i, 90, &report);
  }
  const Drawn drawn(DrawStep(report, nullptr, PictureOptions()));
  EXPECT_LT(drawn.text.size(), 400'000u);
  double least_y = 1e9;
  const std::string line = drawn.Of("after", "path").at(0).attributes.at("d");
  for (const absl::string_view part : absl::StrSplit(line, 'V', absl::SkipEmpty())) {
    double y = 0;
    if (absl::SimpleAtod(part.substr(0, part.find('H')), &y)) least_y = std::min(least_y, y);
  }
  EXPECT_NEAR(least_y, YOf(drawn, 999 * kMiB), 0.06);
}

TEST(StepPictureTest, ManyGpus) {
  v1::SimulateReport report = Step();
  for (int i = 1; i < 20; ++i) {
    *report.add_memory() = report.memory(0);
    report.mutable_memory(i)->set_device(absl::StrCat("/device:GPU:", i));
  }
  const Drawn drawn(DrawStep(report, nullptr, PictureOptions()));
  EXPECT_THAT(drawn.Of("after-mark", "circle"), SizeIs(8));
  EXPECT_THAT(drawn.Texts(), AllOf(Contains("/device:GPU:7"), Not(Contains("/device:GPU:8")),
                                   Contains("and 12 GPUs more, not drawn")));
}

TEST(StepPictureTest, ThemesAndPages) {
  PictureOptions options;
  EXPECT_THAT(*DrawStep(Step(), nullptr, options), HasSubstr("prefers-color-scheme:dark"));
  options.theme = Theme::kDark;
  const std::string dark = *DrawStep(Step(), nullptr, options);
  EXPECT_THAT(dark,
              AllOf(Not(HasSubstr("prefers-color-scheme")), HasSubstr(".paper{fill:#15181D}")));
  options.theme = Theme::kLight;
  EXPECT_THAT(*DrawStep(Step(), nullptr, options),
              AllOf(Not(HasSubstr("prefers-color-scheme")), HasSubstr(".paper{fill:#FFFFFF}")));
  options.format = Format::kHtml;
  std::string page = *DrawStep(Step(), nullptr, options);
  EXPECT_THAT(page, AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr("default-src 'none'"),
                          Not(HasSubstr("<?xml")), Not(HasSubstr("src=")), Not(HasSubstr("href")),
                          Not(HasSubstr("url("))));
  // Nothing is loaded from anywhere: the one address is the name of SVG.
  const std::vector<std::string> parts = absl::StrSplit(page, "http");
  EXPECT_EQ(parts.size(), 3u);  // And `http-equiv`.
  EXPECT_THAT(page, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
  // The picture in it is the same.
  const size_t begin = page.find("<svg"), end = page.find("</svg>");
  std::string problem;
  ParseXml(page.substr(begin, end + 6 - begin), &problem);
  EXPECT_EQ(problem, "");
}

// ---- Any report: a file of any origin.

// Fills every field with possibly wrong values, to a depth that no report of ours has.
void FillWildly(Random* random, int depth, google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message->GetReflection();
  const auto* descriptor = message->GetDescriptor();
  static const std::vector<int64_t> kNumbers = {0,       1,         -1,        255,      1 << 20,
                                                1 << 30, INT64_MAX, INT64_MIN, INT32_MAX};
  static const std::vector<double> kReals = {0,      1,        -1,           1e300,
                                             -1e300, HUGE_VAL, std::nan(""), 1e-300};
  static const std::vector<std::string> kTexts = {"",
                                                  "conv:0",
                                                  "<svg onload=\"x\">",
                                                  "]]>&amp;'\"",
                                                  std::string(1000, 'n'),
                                                  "\xe2\x80\xae",
                                                  std::string("a\0b", 3)};
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const int count = field->is_repeated() ? random->Below(5) : random->Below(4) > 0;
    for (int k = 0; k < count; ++k) {
      const bool add = field->is_repeated();
      const int64_t number = random->Pick(kNumbers);
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_INT64:
          add ? reflection->AddInt64(message, field, number)
              : reflection->SetInt64(message, field, number);
          break;
        case FieldDescriptor::CPPTYPE_INT32:
          add ? reflection->AddInt32(message, field, static_cast<int32_t>(number))
              : reflection->SetInt32(message, field, static_cast<int32_t>(number));
          break;
        case FieldDescriptor::CPPTYPE_ENUM:
          add ? reflection->AddEnumValue(message, field, random->Below(6))
              : reflection->SetEnumValue(message, field, random->Below(6));
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          if (!add) reflection->SetBool(message, field, random->OneIn(2));
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          if (!add) reflection->SetDouble(message, field, random->Pick(kReals));
          break;
        case FieldDescriptor::CPPTYPE_STRING:
          add ? reflection->AddString(message, field, random->Pick(kTexts))
              : reflection->SetString(message, field, random->Pick(kTexts));
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          if (depth == 0) break;
          FillWildly(random, depth - 1,
                     add ? reflection->AddMessage(message, field)
                         : reflection->MutableMessage(message, field));
          break;
        default:
          break;
      }
    }
  }
}

TEST(AnyReportTest, IsAPictureOrAnError) {
  int drawn = 0;
  for (int seed = 0; seed < 1'000; ++seed) {
    Random random(seed);
    v1::SimulateReport step, before;
    FillWildly(&random, 5, &step);
    FillWildly(&random, 5, &before);
    v1::ExploreReport sizes;
    FillWildly(&random, 5, &sizes);
    PictureOptions options;
    options.notes = {"a note"};
    for (const auto& picture : {DrawStep(step, nullptr, options), DrawStep(step, &before, options),
                                DrawThroughput(sizes, options)}) {
      if (!picture.ok()) {
        ASSERT_EQ(core::GetErrorReason(picture.status()), v1::ERROR_REASON_BAD_OPTION) << seed;
        continue;
      }
      ++drawn;
      std::string problem;
      ParseXml(*picture, &problem);
      ASSERT_EQ(problem, "") << seed;
      ASSERT_THAT(*picture, Not(HasSubstr("\"nan"))) << seed;
      ASSERT_THAT(*picture, Not(HasSubstr("inf\""))) << seed;
    }
    ChromeTrace trace;
    trace.Add(step, "<\"\\>");
    const auto read = nlohmann::json::parse(trace.Json(), nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(read.is_discarded()) << seed;
  }
  EXPECT_GT(drawn, 1'000);
}

v1::ExploreReport Sizes() {
  v1::ExploreReport report;
  report.set_size_is_batch(true);
  report.set_largest_fitting_size(64);
  report.set_largest_fitting_size_swapped(128);
  for (const auto& [size, rate, swapped, bound, full] :
       std::vector<std::tuple<int, double, double, double, double>>{
           {32, 180, 180, 190, 190}, {64, 200, 200, 210, 210}, {128, 0, 150, 180, 220}}) {
    v1::ExploredSize* explored = report.add_sizes();
    explored->set_size(size);
    if (rate > 0) explored->set_sizes_per_s(rate);
    explored->set_swapped_sizes_per_s(swapped);
    explored->set_bound_sizes_per_s(bound);
    explored->set_full_speed_sizes_per_s(full);
  }
  return report;
}

TEST(ThroughputPictureTest, PointsAreTheReports) {
  const Drawn drawn(DrawThroughput(Sizes(), PictureOptions()));
  const auto plain = drawn.Of("before-mark", "circle");
  const auto swapped = drawn.Of("after-mark", "circle");
  ASSERT_THAT(plain, SizeIs(2));
  ASSERT_THAT(swapped, SizeIs(3));
  EXPECT_EQ(Number(swapped[2], "data-size"), 128);
  EXPECT_EQ(Number(swapped[2], "data-per-s"), 150);
  // Where the point is, by the ticks.
  std::vector<std::pair<double, double>> x_ticks, y_ticks;
  for (const XmlElement& element : drawn.Of("text", "text")) {
    double value = 0;
    if (!absl::SimpleAtod(element.text, &value)) continue;
    if (element.attributes.at("text-anchor") == "end") {
      y_ticks.emplace_back(value, Number(element, "y") - 4);
    } else {
      x_ticks.emplace_back(value, Number(element, "x"));
    }
  }
  ASSERT_GE(x_ticks.size(), 3u);
  ASSERT_GE(y_ticks.size(), 3u);
  const auto place = [](const std::vector<std::pair<double, double>>& ticks, double value) {
    const auto& [a, at_a] = ticks.front();
    const auto& [b, at_b] = ticks.back();
    return at_a + (at_b - at_a) * (value - a) / (b - a);
  };
  // The axis of sizes is logarithmic.
  for (auto& [value, x] : x_ticks) value = std::log(value);
  EXPECT_NEAR(Number(swapped[2], "cx"), place(x_ticks, std::log(128)), 0.2);
  EXPECT_NEAR(Number(swapped[2], "cy"), place(y_ticks, 150), 0.2);
  EXPECT_THAT(drawn.Of("bound", "path"), SizeIs(1));
  EXPECT_THAT(drawn.Of("full", "path"), SizeIs(1));
  EXPECT_THAT(drawn.Texts(),
              AllOf(Contains("examples in a batch"), Contains("examples/s"),
                    Contains("largest batch without swapping: 64; with swapping: 128"),
                    Contains(HasSubstr("launched ahead"))));
}

// Sizes that no plan fits have no point and no place.
TEST(ThroughputPictureTest, EndsWhereTheDataEnds) {
  v1::ExploreReport report = Sizes();
  v1::ExploredSize* too_large = report.add_sizes();
  too_large->set_size(256);
  too_large->set_full_speed_sizes_per_s(225);
  const Drawn drawn(DrawThroughput(report, PictureOptions()));
  EXPECT_THAT(drawn.Texts(), AllOf(Contains("128"), Not(Contains("256"))));
}

TEST(ThroughputPictureTest, OfImagesAndOfNothing) {
  v1::ExploreReport report = Sizes();
  report.set_size_is_batch(false);  // Steps per second then.
  const Drawn drawn(DrawThroughput(report, PictureOptions()));
  EXPECT_EQ(Number(drawn.Of("after-mark", "circle").at(2), "data-per-s"), 1.1719);
  EXPECT_THAT(drawn.Texts(), Contains("steps/s"));
  for (v1::ExploredSize& size : *report.mutable_sizes()) {
    size.clear_sizes_per_s();
    size.set_swapped_sizes_per_s(std::nan(""));
    size.set_bound_sizes_per_s(-1);
    size.set_full_speed_sizes_per_s(HUGE_VAL);
  }
  const auto nothing = DrawThroughput(report, PictureOptions());
  EXPECT_EQ(core::GetErrorReason(nothing.status()), v1::ERROR_REASON_BAD_OPTION);
  EXPECT_THAT(std::string(nothing.status().message()), HasSubstr("no size that fits"));
}

}  // namespace
}  // namespace spillway::plot
