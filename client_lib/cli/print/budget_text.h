// Prints reports of the strategy `budget`: for each GPU, how its plan was found.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_BUDGET_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_BUDGET_TEXT_H_

#include <string>
#include <vector>

#include "spillway/v1/report.pb.h"

namespace spillway::cli {

// Adds the rows of one GPU of `report` (rows for FormatFacts). `is_known`: whether the memory of
// its step is completely known.
void AddBudgetSearch(const v1::BudgetDevice& device, const v1::BudgetReport& report, bool is_known,
                     std::vector<std::vector<std::string>>* facts);

// Whether its GPUs are planned even if the graph fits unchanged.
bool PlansWhatFits(const v1::BudgetReport& report);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_BUDGET_TEXT_H_
