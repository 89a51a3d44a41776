// What a report of the strategy `budget` looks like: for each GPU how its plan was found.
#ifndef SPILLWAY_CLIENT_LIB_CLI_BUDGET_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_BUDGET_TEXT_H_

#include <string>
#include <vector>

#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// Adds the rows of one GPU (rows for FormatFacts).
void AddBudgetSearch(const v1::BudgetDevice& device, v1::PlanningEffort effort,
                     std::vector<std::vector<std::string>>* facts);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_BUDGET_TEXT_H_
