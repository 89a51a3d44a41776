// Prints reports of the strategy `budget`: for each GPU, how its plan was found.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_BUDGET_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_BUDGET_TEXT_H_

#include <string>
#include <vector>

#include "client_lib/text/style.h"
#include "spillway/v1/report.pb.h"

namespace spillway::text {

// Whether the sizes of all tensors of a step are known.
enum class Sizes { kKnown, kPartlyKnown };

// Adds the rows of one GPU of `report` (rows for FormatFacts).
void AddBudgetSearch(const v1::BudgetDevice& device, const v1::BudgetReport& report, Sizes sizes,
                     Style style, std::vector<std::vector<std::string>>* facts);

// Whether its GPUs are planned even if the graph fits unchanged.
bool PlansWhatFits(const v1::BudgetReport& report);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_BUDGET_TEXT_H_
