// Forecasts of steps as text for people.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_FORECAST_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_FORECAST_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/text/style.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::text {

// Adds rows of warnings for FormatFacts: first that the machine of an answer is assumed, if it is.
void AddWarnings(const v1::RewriteReport& report, Style style,
                 std::vector<std::vector<std::string>>* facts);

// A step before and after a rewrite, side by side; nothing if `report` has no forecast.
std::string FormatBeforeAndAfter(const v1::RewriteReport& report, Style style);

// Returns remarks on it, for FormatFacts.
std::vector<std::vector<std::string>> ForecastFacts(const v1::RewriteReport& report);

// The same in short: whether the returned graph fits, if that is not sure, and the machine.
std::vector<std::vector<std::string>> ShortForecastFacts(const v1::RewriteReport& report);

// The output of `spillway simulate`: whether the step fits, its memory and time, and the potential
// of swapping.
std::string FormatSimulation(const v1::SimulateReport& report, Style style);

// The output of `spillway simulate --verbose`.
std::string FormatSimulationDetails(const v1::SimulateReport& report, Style style);

// A forecast alone: whether it fits, its GPUs and its time.
std::string FormatForecast(const v1::Forecast& forecast, Style style);

// The output of `spillway inspect --memory`; at most `top` rows per table.
std::string FormatMemory(const v1::SimulateReport& report, int top, Style style);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_FORECAST_TEXT_H_
