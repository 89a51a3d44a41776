// Between space and batch, and between space and depth.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

using Values = absl::Span<const int64_t>;

// Moves blocks of `blocks` from space to batch (sign 1), or back.
void MoveSpaceAndBatch(ShapeContext& c, int sign, Values blocks, int block_rank,
                       absl::optional<Values> paddings) {
  const ShapeId in = c.WithRankAtLeast(0, 1 + block_rank);
  if (!c.known(in)) return;
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i = 0; i < block_rank; ++i) {
    const int64_t block = blocks.empty() ? kUnknownDim : std::max(blocks[i], kUnknownDim);
    const int64_t both = paddings && paddings->size() == 2 * static_cast<size_t>(block_rank)
                             ? c.Add((*paddings)[2 * i], (*paddings)[2 * i + 1])
                             : kUnknownDim;
    if (sign > 0) {
      const int64_t padded = c.Add(out[i + 1], both);
      if (padded >= 0 && block > 0 && padded % block != 0) {
        return c.Fail(absl::StrCat("dimension ", i + 1, " is ", padded,
                                   " with its padding, no "
                                   "multiple of the block of ",
                                   block));
      }
      out[i + 1] = c.Div(padded, block);
      out[0] = c.Mul(out[0], block);
    } else {
      out[i + 1] = c.Sub(c.Mul(out[i + 1], block), both);
      out[0] = c.Div(out[0], block);
    }
  }
  c.set(0, c.Make(out));
}

// SpaceToBatchND(input, block_shape, paddings).
void BlocksND(ShapeContext& c, int sign) {
  const int64_t rank = c.dim(c.WithRank(1, 1), 0);
  if (rank < 0 || rank >= kMaxRank) return;
  const auto blocks = c.Value(1), paddings = c.Value(2);
  MoveSpaceAndBatch(c, sign, blocks ? *blocks : Values(), static_cast<int>(rank), paddings);
}

// SpaceToBatch(input, paddings), of images.
void Blocks(ShapeContext& c, int sign) {
  const int64_t block = c.Int("block_size");
  c.WithRank(0, 4);
  MoveSpaceAndBatch(c, sign, {block, block}, 2, c.Value(1));
}

void SpaceToBatchND(ShapeContext& c) { BlocksND(c, 1); }
void BatchToSpaceND(ShapeContext& c) { BlocksND(c, -1); }
void SpaceToBatch(ShapeContext& c) {
  Blocks(c, 1);
  c.refine(0, c.OfRank(4));
}

void BatchToSpace(ShapeContext& c) {
  Blocks(c, -1);
  c.refine(0, c.OfRank(4));
}

// SpaceToDepth (sign 1) and DepthToSpace, of images in any layout.
void MoveSpaceAndDepth(ShapeContext& c, int sign) {
  const absl::string_view format = c.String("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") return;
  const ShapeId in = c.WithRank(0, 4);
  const int64_t block = c.Int("block_size");
  if (block < 1 || block > std::numeric_limits<int32_t>::max()) return;
  const int channel = format == "NHWC" ? 3 : 1, row = format == "NHWC" ? 1 : 2;
  DimVector out(c.dims(in).begin(), c.dims(in).end());
  for (int i : {row, row + 1}) {
    if (sign > 0 && out[i] >= 0 && out[i] % block != 0) {
      return c.Fail(absl::StrCat("dimension ", i, " is ", out[i], ", no multiple of ", block));
    }
    out[i] = sign > 0 ? c.Div(out[i], block) : c.Mul(out[i], block);
  }
  const int64_t depth = out[channel];
  if (sign < 0 && depth >= 0 && depth % (block * block) != 0) {
    return c.Fail(absl::StrCat("depth ", depth, " is no multiple of ", block * block));
  }
  out[channel] = sign > 0 ? c.Mul(depth, block * block) : c.Div(depth, block * block);
  c.set(0, c.Make(out));
}

void SpaceToDepth(ShapeContext& c) { MoveSpaceAndDepth(c, 1); }
void DepthToSpace(ShapeContext& c) { MoveSpaceAndDepth(c, -1); }

constexpr ShapeRule kSpaceToBatchRules[] = {
    {"BatchToSpace", BatchToSpace},     {"BatchToSpaceND", BatchToSpaceND},
    {"DepthToSpace", DepthToSpace},     {"SpaceToBatch", SpaceToBatch},
    {"SpaceToBatchND", SpaceToBatchND}, {"SpaceToDepth", SpaceToDepth},
};

}  // namespace

absl::Span<const ShapeRule> SpaceToBatchShapeRules() { return kSpaceToBatchRules; }

}  // namespace spillway::core
