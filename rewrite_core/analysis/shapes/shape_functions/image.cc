// Images: resizing, cropping, decoding, colors, boxes.
#include <algorithm>

#include "rewrite_core/analysis/shapes/shape_functions/common.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// An element of an input's value, as a dimension.
int64_t DimFromValue(ShapeContext& c, int input, size_t i) {
  const auto value = c.Value(input);
  return value && i < value->size() ? std::max((*value)[i], kUnknownDim) : kUnknownDim;
}

// [batch, ?, ?, channels] of input 0, with the size (rows, columns) given by another input.
void Sized(ShapeContext& c, int size) {
  const ShapeId images = c.WithRank(0, 4);
  c.set(0, c.Make({c.dim(images, 0), DimFromValue(c, size, 0), DimFromValue(c, size, 1),
                   c.dim(images, 3)}));
}

void Resize(ShapeContext& c) { Sized(c, 1); }
void ProjectiveTransform(ShapeContext& c) { Sized(c, 2); }

void QuantizedResize(ShapeContext& c) {
  c.set_all(kScalar);
  Sized(c, 1);
}

// ExtractGlimpse(input, size, offsets [batch, 2]).
void ExtractGlimpse(ShapeContext& c) {
  Sized(c, 1);
  c.refine(0, c.Make({c.dim(c.WithRank(2, 2), 0), kUnknownDim, kUnknownDim, kUnknownDim}));
}

void LikeThird(ShapeContext& c) { c.set(0, c.input(2)); }

// CropAndResize(image, boxes [n, 4], box_ind [n], crop_size).
void CropAndResize(ShapeContext& c) {
  const ShapeId image = c.WithRank(0, 4), boxes = c.WithRank(1, 2), index = c.WithRank(2, 1);
  c.set(0, c.Make({c.MergeDims(c.dim(boxes, 0), c.dim(index, 0)), DimFromValue(c, 3, 0),
                   DimFromValue(c, 3, 1), c.dim(image, 3)}));
}

// CropAndResizeGradImage(grads, boxes, box_ind, image_size).
void CropAndResizeGradImage(ShapeContext& c) {
  c.set(0, c.OfRank(4));
  c.refine(0, c.ShapeFromValue(3));
}

// RandomCrop(image, size).
void RandomCrop(ShapeContext& c) {
  const ShapeId image = c.WithRank(0, 3);
  c.set(0, c.Make({DimFromValue(c, 1, 0), DimFromValue(c, 1, 1), c.dim(image, 2)}));
}

// ---- Decoding. The attribute channels is 0 if the file decides.
int64_t Channels(ShapeContext& c) {
  const int64_t channels = c.Int("channels");
  return channels > 0 ? channels : kUnknownDim;
}

void Decode(ShapeContext& c) { c.set(0, c.Make({kUnknownDim, kUnknownDim, Channels(c)})); }

// DecodeAndCropJpeg(contents, crop_window): the window is (row, column, rows, columns).
void DecodeAndCrop(ShapeContext& c) {
  c.set(0, c.Make({DimFromValue(c, 1, 2), DimFromValue(c, 1, 3), Channels(c)}));
}

void DecodeGif(ShapeContext& c) { c.set(0, c.Make({kUnknownDim, kUnknownDim, kUnknownDim, 3})); }

// DecodeImage: an animation has one more dimension.
void DecodeImage(ShapeContext& c) {
  if (!c.Bool("expand_animations", true)) Decode(c);
}

// EncodePng(image): one file per image.
void EncodePng(ShapeContext& c) { c.set(0, c.Slice(c.WithRankAtLeast(0, 3), 0, -3)); }

void JpegShape(ShapeContext& c) { c.set(0, c.Make({3})); }

// ---- Colors.
void UnchangedImage(ShapeContext& c) { c.set(0, c.WithRankAtLeast(0, 3)); }

// RGBToHSV: three channels.
void ThreeChannels(ShapeContext& c) {
  const ShapeId in = c.WithRankAtLeast(0, 1);
  if (c.known(in)) c.set(0, c.ReplaceDim(in, -1, c.MergeDims(c.dim(in, -1), 3)));
}

// ---- Boxes.

// SampleDistortedBoundingBox: begin, size, bboxes.
void DistortedBox(ShapeContext& c) {
  c.set_all(c.Make({3}));
  c.set(2, c.Make({1, 1, 4}));
}

// NonMaxSuppression(boxes, scores, max_output_size, ...): indices, V5 scores too, and from V4 on
// their number. They are padded on request.
void NonMaxSuppression(ShapeContext& c) {
  const ShapeId selected = c.Make(
      {c.Bool("pad_to_max_output_size") ? std::max(c.ScalarValue(2), kUnknownDim) : kUnknownDim});
  c.set_all(selected);
  const int64_t most = c.ScalarValue(2), boxes = c.dim(c.input(0), 0);
  if (most >= 0) {
    const ShapeId bound = c.Make({boxes < 0 ? most : std::min(most, boxes)});
    c.set_bound(0, bound);
    if (c.num_outputs() == 3) c.set_bound(1, bound);  // The scores.
  }
  if (c.num_outputs() > 1) c.set(c.num_outputs() - 1, kScalar);
}

// CombinedNonMaxSuppression(boxes, scores, max_output_size_per_class, max_total_size, ...).
void CombinedNonMaxSuppression(ShapeContext& c) {
  const ShapeId boxes = c.WithRank(0, 4), scores = c.WithRank(1, 3);
  const int64_t batch = c.MergeDims(c.dim(boxes, 0), c.dim(scores, 0));
  int64_t count = std::max(c.ScalarValue(3), kUnknownDim);
  if (c.Bool("pad_per_class")) {
    const int64_t all = c.Mul(std::max(c.ScalarValue(2), kUnknownDim), c.dim(scores, 2));
    count = count < 0 || all < 0 ? kUnknownDim : std::min(count, all);
  }
  c.set(0, c.Make({batch, count, 4}));
  c.set(1, c.Make({batch, count}));
  c.set(2, c.Make({batch, count}));
  c.set(3, c.Make({batch}));
}

// GenerateBoundingBoxProposals(scores, bbox_deltas, image_info, anchors, ...).
void BoxProposals(ShapeContext& c) {
  const int64_t images = c.dim(c.WithRank(0, 4), 0), count = c.Int("post_nms_topn", kUnknownDim);
  c.set(0, c.Make({images, std::max(count, kUnknownDim), 4}));
  c.set(1, c.Make({images, std::max(count, kUnknownDim)}));
}

constexpr ShapeRule kImageRules[] = {
    // Sizes.
    {"CropAndResize", CropAndResize},
    {"CropAndResizeGradBoxes", LikeThird},
    {"CropAndResizeGradImage", CropAndResizeGradImage},
    {"ExtractGlimpse", ExtractGlimpse},
    {"ExtractGlimpseV2", ExtractGlimpse},
    {"ImageProjectiveTransformV2", ProjectiveTransform},
    {"ImageProjectiveTransformV3", ProjectiveTransform},
    {"QuantizedResizeBilinear", QuantizedResize},
    {"RandomCrop", RandomCrop},
    {"ResizeArea", Resize},
    {"ResizeBicubic", Resize},
    {"ResizeBicubicGrad", ShapeOfSecond},
    {"ResizeBilinear", Resize},
    {"ResizeBilinearGrad", ShapeOfSecond},
    {"ResizeNearestNeighbor", Resize},
    {"ResizeNearestNeighborGrad", Resize},
    {"ScaleAndTranslate", Resize},
    {"ScaleAndTranslateGrad", ShapeOfSecond},
    // Files.
    {"DecodeAndCropJpeg", DecodeAndCrop},
    {"DecodeBmp", Decode},
    {"DecodeGif", DecodeGif},
    {"DecodeImage", DecodeImage},
    {"DecodeJpeg", Decode},
    {"DecodePng", Decode},
    {"EncodeJpeg", Scalars},
    {"EncodeJpegVariableQuality", Scalars},
    {"EncodePng", EncodePng},
    {"ExtractJpegShape", JpegShape},
    // Colors.
    {"AdjustContrast", UnchangedImage},
    {"AdjustContrastv2", UnchangedImage},
    {"AdjustHue", UnchangedImage},
    {"AdjustSaturation", UnchangedImage},
    {"HSVToRGB", ThreeChannels},
    {"RGBToHSV", ThreeChannels},
    // Boxes.
    {"CombinedNonMaxSuppression", CombinedNonMaxSuppression},
    {"DrawBoundingBoxes", UnchangedImage},
    {"DrawBoundingBoxesV2", UnchangedImage},
    {"GenerateBoundingBoxProposals", BoxProposals},
    {"NonMaxSuppression", NonMaxSuppression},
    {"NonMaxSuppressionV2", NonMaxSuppression},
    {"NonMaxSuppressionV3", NonMaxSuppression},
    {"NonMaxSuppressionV4", NonMaxSuppression},
    {"NonMaxSuppressionV5", NonMaxSuppression},
    {"NonMaxSuppressionWithOverlaps", NonMaxSuppression},
    {"SampleDistortedBoundingBox", DistortedBox},
    {"SampleDistortedBoundingBoxV2", DistortedBox},
    {"StatelessSampleDistortedBoundingBox", DistortedBox},
};

}  // namespace

absl::Span<const ShapeRule> ImageShapeRules() { return kImageRules; }

}  // namespace spillway::core
