// Whether the reader of a text chose which ops may be recomputed.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_RECOMPUTE_CHOICE_H_
#define SPILLWAY_CLIENT_LIB_TEXT_RECOMPUTE_CHOICE_H_

#include <cstdint>

#include "spillway/v1/options.pb.h"

namespace spillway::text {

enum class RecomputeChoice : uint8_t {
  kDefault,  // That a faster choice exists is said first.
  kGiven,    // It is in the details.
};

// The choice of a request with this BudgetStrategy.recompute.
inline RecomputeChoice ChoiceOf(v1::Recompute recompute) {
  return recompute == v1::RECOMPUTE_UNSPECIFIED ? RecomputeChoice::kDefault
                                                : RecomputeChoice::kGiven;
}

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_RECOMPUTE_CHOICE_H_
