// Random numbers.
#include <algorithm>

#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// Input 0 gives the shape.
void FromShape(ShapeContext& c) { c.set(0, c.ShapeFromValue(0)); }

// RandomGamma(shape, alpha): numbers of that shape for each alpha.
void FromShapeForEach(ShapeContext& c) { c.set(0, c.Concat(c.ShapeFromValue(0), c.input(1))); }

// Multinomial(logits, num_samples).
void Multinomial(ShapeContext& c) {
  const ShapeId logits = c.WithRank(0, 2);
  c.set(0, c.Make({c.dim(logits, 0), std::max(c.ScalarValue(1), kUnknownDim)}));
}

constexpr ShapeRule kRandomRules[] = {
    {"Multinomial", Multinomial},
    {"ParameterizedTruncatedNormal", FromShape},
    {"RandomGamma", FromShapeForEach},
    {"RandomGammaGrad", BroadcastBinary},
    {"RandomPoisson", FromShapeForEach},
    {"RandomPoissonV2", FromShapeForEach},
    {"RandomShuffle", Unchanged},
    {"RandomStandardNormal", FromShape},
    {"RandomUniform", FromShape},
    {"RandomUniformInt", FromShape},
    {"StatelessMultinomial", Multinomial},
    {"StatelessParameterizedTruncatedNormal", FromShape},
    {"StatelessRandomBinomial", FromShape},
    {"StatelessRandomGammaV2", FromShape},
    {"StatelessRandomNormal", FromShape},
    {"StatelessRandomNormalV2", FromShape},
    {"StatelessRandomPoisson", FromShape},
    {"StatelessRandomUniform", FromShape},
    {"StatelessRandomUniformFullInt", FromShape},
    {"StatelessRandomUniformFullIntV2", FromShape},
    {"StatelessRandomUniformInt", FromShape},
    {"StatelessRandomUniformIntV2", FromShape},
    {"StatelessRandomUniformV2", FromShape},
    {"StatelessTruncatedNormal", FromShape},
    {"StatelessTruncatedNormalV2", FromShape},
    {"TruncatedNormal", FromShape},
};

}  // namespace

absl::Span<const ShapeRule> RandomShapeRules() { return kRandomRules; }

}  // namespace spillway::core
