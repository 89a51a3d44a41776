// What a report of the strategy `budget` looks like: for each GPU how its plan was found.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_BUDGET_TEXT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_BUDGET_TEXT_H_

#include <string>
#include <vector>

#include "spillway/v1/report.pb.h"

namespace spillway::cli {

enum class Sizes { kKnown, kPartlyKnown };

// Adds the rows of one GPU of `report` (rows for FormatFacts). `sizes`: of the tensors of its step.
void AddBudgetSearch(const v1::BudgetDevice& device, const v1::BudgetReport& report, Sizes sizes,
                     std::vector<std::vector<std::string>>* facts);

// Whether its GPUs are planned even where the graph fits as it came.
bool PlansWhatFits(const v1::BudgetReport& report);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_BUDGET_TEXT_H_
