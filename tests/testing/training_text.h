// Small training steps in the text form (tests/testing/text_form.h), for tests of optimizer state.
#ifndef SPILLWAY_TESTS_TESTING_TRAINING_TEXT_H_
#define SPILLWAY_TESTS_TESTING_TRAINING_TEXT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace spillway::testing {

// A layer of 256 x 256 weights, 256 KiB, with a slot of as many for its optimizer: reads `in`,
// which has 8 rows of 256, makes NAME/out, and from the gradient `grad` of that makes NAME/back.
// Its update is NAME/train; NAME/scaled is all that is between the gradient of the weights and it.
inline std::string TrainedLayer(absl::string_view name, absl::string_view in,
                                absl::string_view grad) {
  const std::string layer(name);
  const auto node = [&](absl::string_view text) { return absl::StrCat(layer, "/", text, "\n"); };
  const std::string weights = "{dtype=float32, shape=(256,256), _output_shapes=[(256,256)]";
  const std::string with = absl::StrCat("_class=[\"loc:@", layer, "/w\"]");
  const auto of = [&](absl::string_view what) { return absl::StrCat(layer, "/", what); };
  const std::string square = "_output_shapes=[(256,256)]}", rows = "_output_shapes=[(8,256)]}";
  return absl::StrCat(
      node("w = VariableV2() @/gpu:0 " + weights + "}"),
      node("m = VariableV2() @/gpu:0 " + weights + ", " + with + "}"),
      node("init = Const() @/gpu:0 {dtype=float32, " + square),
      node("assign = Assign(" + of("w") + ", " + of("init") + ") @/gpu:0 {T=float32, " + with +
           ", " + square),
      node("read = Identity(" + of("w") + ") @/gpu:0 {T=float32, " + with + ", " + square),
      node(absl::StrCat("out = MatMul(", in, ", ", of("read"), ") @/gpu:0 {T=float32, ", rows)),
      node(absl::StrCat("grad = MatMul(", in, ", ", grad,
                        ") @/gpu:0 {T=float32, transpose_a=true, ", square)),
      node(absl::StrCat("back = MatMul(", grad, ", ", of("read"),
                        ") @/gpu:0 {T=float32, transpose_b=true, ", rows)),
      node("scale = Const() @/gpu:0 {dtype=float32, _output_shapes=[()]}"),
      node("scaled = Mul(" + of("grad") + ", " + of("scale") + ") @/gpu:0 {T=float32, " + square),
      node("train = ApplyMomentum(" + of("w") + ", " + of("m") + ", " + of("scale") + ", " +
           of("scaled") + ", " + of("scale") + ") @/gpu:0 {T=float32, " + with + ", " + square));
}

// Two such layers, `a` and `b`, and the step `train`, which has no loss: the gradient of the output
// is the output.
inline std::string TrainedLayers() {
  return absl::StrCat(
      "x = RandomUniform(shape) @/gpu:0 {T=int32, dtype=float32, _output_shapes=[(8,256)]}\n"
      "shape = Const() {dtype=int32, _output_shapes=[(2)]}\n",
      TrainedLayer("a", "x", "b/back"), TrainedLayer("b", "a/out", "b/out"),
      "train = NoOp(^a/train, ^b/train) @/gpu:0\n");
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_TRAINING_TEXT_H_
