// Forecasts of steps as text for people.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_FORECAST_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_FORECAST_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/text/style.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::text {

// Adds the row of FormatFacts that says that the machine of an answer is assumed, if it is.
void AddAssumed(const v1::HardwareReport& report, std::vector<std::vector<std::string>>* facts);

// A step before and after a rewrite, side by side; nothing if `report` has no forecast.
std::string FormatBeforeAndAfter(const v1::RewriteReport& report, Style style);

// Returns remarks on it, for FormatFacts.
std::vector<std::vector<std::string>> ForecastFacts(const v1::RewriteReport& report);

// The output of `spillway simulate`.
std::string FormatSimulation(const v1::SimulateReport& report, Style style);

// A forecast alone: whether it fits, its GPUs and its time.
std::string FormatForecast(const v1::Forecast& forecast, Style style);

// The output of `spillway inspect --memory`; at most `top` rows per table.
std::string FormatMemory(const v1::SimulateReport& report, int top, Style style);

// The output of `spillway explore`: a row for each size, as it arrives, then the result. Columns
// have fixed widths, since later rows are unknown. Not thread-safe.
class ExplorationText {
 public:
  struct Columns {
    bool size_is_batch = false;  // As ExploreReport has it.
    bool swapping = false;       // As ExploreOptions has it.
  };
  ExplorationText(Columns columns, Style style) : columns_(columns), style_(style) {}

  // Returns the row of one size; the first call puts the heading above it.
  std::string Row(const v1::ExploredSize& size);

  // Returns the text below the rows: the largest size that fits, the machine and the step.
  std::string Result(const v1::ExploreReport& report) const;

 private:
  std::string Heading(const std::vector<size_t>& widths) const;

  const Columns columns_;
  const Style style_;
  bool has_rows_ = false;
};

// The same of a whole report, with the sizes in its order.
std::string FormatExploration(const v1::ExploreReport& report, Style style);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_FORECAST_TEXT_H_
