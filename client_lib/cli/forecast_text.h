// Forecasts of steps as text for people.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FORECAST_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_FORECAST_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/cli/style.h"
#include "spillway/v1/report.pb.h"
#include "spillway/v1/simulate.pb.h"

namespace spillway::cli {

// A step before and after a rewrite, side by side; nothing if `report` has no forecast.
std::string FormatBeforeAndAfter(const v1::RewriteReport& report, Style style);

// What there is to say of it in words, for FormatFacts.
std::vector<std::vector<std::string>> ForecastFacts(const v1::RewriteReport& report);

// What `spillway simulate` prints.
std::string FormatSimulation(const v1::SimulateReport& report, Style style);

// What `spillway inspect --memory` prints; at most `top` rows a table.
std::string FormatMemory(const v1::SimulateReport& report, int top, Style style);

// What `spillway explore` prints.
std::string FormatExploration(const v1::ExploreReport& report, Style style);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FORECAST_TEXT_H_
