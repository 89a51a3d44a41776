// Strings, sounds and other encoded data.
#include <algorithm>

#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// StringJoin(inputs...): those that are not scalars have the same shape.
void StringJoin(ShapeContext& c) {
  ShapeId shape = kScalar;
  bool all_known = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const ShapeId in = c.input(i);
    if (!c.known(in)) all_known = false;
    if (c.rank(in) > 0) shape = shape == kScalar ? in : c.Merge(shape, in);
  }
  if (all_known || shape != kScalar) c.set(0, shape);
}

// StringNGrams(data, data_splits) -> ngrams, ngrams_splits.
void NGrams(ShapeContext& c) {
  c.set(0, c.OfRank(1));
  c.set(1, c.WithRank(1, 1));
}

// UnicodeEncode(input_values, input_splits): a string per row.
void UnicodeEncode(ShapeContext& c) { c.set(0, c.Make({c.Sub(c.dim(c.WithRank(1, 1), 0), 1)})); }

// UnicodeDecode(input) -> row_splits, and vectors of all characters.
void UnicodeDecode(ShapeContext& c) {
  c.set_all(c.OfRank(1));
  c.set(0, c.Make({c.Add(c.Elements(c.input(0)), 1)}));
}

// DecodeRaw(bytes): the elements of each string.
void DecodeRaw(ShapeContext& c) { c.set(0, c.Concat(c.input(0), c.OfRank(1))); }

// DecodePaddedRaw(input_bytes, fixed_length in bytes).
void DecodePaddedRaw(ShapeContext& c) {
  const int64_t length = std::max(c.ScalarValue(1), kUnknownDim);
  c.set(0, c.Concat(c.input(0), c.Make({c.Div(length, ElementBytes(c.output_type(0)))})));
}

// DecodeProtoV2(bytes) -> sizes, and the values of each field.
void DecodeProto(ShapeContext& c) {
  c.set_all(c.Concat(c.input(0), c.OfRank(1)));
  c.set(0, c.Concat(c.input(0), c.Make({c.num_outputs() - 1})));
}

// EncodeProto(sizes [batch..., fields], values [batch..., repetitions] of each field).
void EncodeProto(ShapeContext& c) {
  ShapeId batch = kUnknownShape;
  for (int i = 0; i < c.num_inputs(); ++i) {
    batch = c.Merge(batch, c.Slice(c.WithRankAtLeast(i, 1), 0, -1));
  }
  c.set(0, batch);
}

// ReduceJoin(inputs, reduction_indices): as any reduction.
void ReduceJoin(ShapeContext& c) { FindShapeFunction("All")(c); }

// Fingerprint(data): one per row, with the method's number of bytes.
void Fingerprint(ShapeContext& c) {
  c.set(0, c.Make({c.dim(c.WithRankAtLeast(0, 1), 0), kUnknownDim}));
}

// ---- Sounds: samples [samples, channels].

// DecodeWav(contents) -> audio, sample_rate.
void DecodeWav(ShapeContext& c) {
  c.set(0, c.Make({std::max(c.Int("desired_samples", kUnknownDim), kUnknownDim),
                   std::max(c.Int("desired_channels", kUnknownDim), kUnknownDim)}));
  c.set(1, kScalar);
}

// AudioSpectrogram(input) -> [channels, windows, frequencies].
void Spectrogram(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 2);
  const int64_t size = c.Int("window_size"), stride = c.Int("stride"), length = c.dim(in, 0);
  constexpr int64_t kMaxWindow = int64_t{1} << 40;
  if (size < 2 || size > kMaxWindow || stride < 1) return c.set(0, c.OfRank(3));
  int64_t padded = 1;  // The transform's size is a power of two.
  while (padded < size) padded *= 2;
  const int64_t windows = length < 0      ? kUnknownDim
                          : length < size ? 0
                                          : 1 + (length - size) / stride;
  c.set(0, c.Make({c.dim(in, 1), windows, 1 + padded / 2}));
}

// Mfcc(spectrogram [channels, windows, frequencies], sample_rate).
void Mfcc(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 3);
  const int64_t count = c.Int("dct_coefficient_count", 13);
  c.set(0, c.Make({c.dim(in, 0), c.dim(in, 1), std::max(count, kUnknownDim)}));
}

constexpr ShapeRule kStringRules[] = {
    {"AsString", Unchanged},
    {"AudioSpectrogram", Spectrogram},
    {"DecodeBase64", Unchanged},
    {"DecodeCompressed", Unchanged},
    {"DecodeJSONExample", Unchanged},
    {"DecodePaddedRaw", DecodePaddedRaw},
    {"DecodeProtoV2", DecodeProto},
    {"DecodeRaw", DecodeRaw},
    {"DecodeWav", DecodeWav},
    {"EncodeBase64", Unchanged},
    {"EncodeProto", EncodeProto},
    {"Fingerprint", Fingerprint},
    {"Mfcc", Mfcc},
    {"ReduceJoin", ReduceJoin},
    {"RegexFullMatch", Unchanged},
    {"RegexReplace", Unchanged},
    {"StaticRegexFullMatch", Unchanged},
    {"StaticRegexReplace", Unchanged},
    {"StringJoin", StringJoin},
    {"StringLength", Unchanged},
    {"StringLower", Unchanged},
    {"StringNGrams", NGrams},
    {"StringStrip", Unchanged},
    {"StringToHashBucket", Unchanged},
    {"StringToHashBucketFast", Unchanged},
    {"StringToHashBucketStrong", Unchanged},
    {"StringToNumber", Unchanged},
    {"StringUpper", Unchanged},
    {"Substr", BroadcastBinary},
    {"UnicodeDecode", UnicodeDecode},
    {"UnicodeDecodeWithOffsets", UnicodeDecode},
    {"UnicodeEncode", UnicodeEncode},
    {"UnicodeScript", Unchanged},
    {"UnicodeTranscode", Unchanged},
};

}  // namespace

absl::Span<const ShapeRule> StringShapeRules() { return kStringRules; }

}  // namespace spillway::core
