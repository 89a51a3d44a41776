// Graphs that are expensive for the strategy `budget`.
#ifndef SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_DEAR_GRAPHS_H_
#define SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_DEAR_GRAPHS_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace spillway::testing {

// `count` outputs of one size are read again backward. `on_host`: so are as many weights, which
// are on the CPU: each is copied to the GPU once, and held until its last reader.
inline std::string EqualGaps(int count, bool on_host) {
  const std::string type = " {T=float32, _output_shapes=[(64,64)]}\n";
  std::string text = "a0 = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\n", back;
  const std::string last = absl::StrCat("a", count);
  for (int i = 1; i <= count; ++i) {
    const std::string weight = on_host ? absl::StrCat("w", i) : "a0";
    if (on_host) absl::StrAppend(&text, weight, " = Relu(h) @/cpu:0", type);
    absl::StrAppend(&text, "a", i, " = Mul(a", i - 1, ", ", weight, ") @/gpu:0", type);
    absl::StrAppend(&text, "g", i, " = AddN(", i == count ? last : absl::StrCat("g", i + 1), ", a",
                    i, ", ", weight, ") @/gpu:0 {N=3, T=float32, _output_shapes=[(64,64)]}\n");
  }
  if (on_host) text += "h = Const() @/cpu:0 {dtype=float32, _output_shapes=[(64,64)]}\n";
  return text;
}

// `s` is read after two chains of 250 operations, by `count` nodes that need the feeds of both, and
// last by two that need only one: neither chain has a trigger for a copy of it. `t` and `u` can be
// swapped.
inline std::string ManyReaders(int count) {
  const std::string type = " @/gpu:0 {T=float32, _output_shapes=[(64,64)]}\n";
  std::string text =
      absl::StrCat("w = VariableV2() @/gpu:0 {dtype=float32, shape=(64,64)}\n", "s = MatMul(w, w)",
                   type, "t = MatMul(w, s)", type, "u = MatMul(s, w)", type);
  for (const char* chain : {"a", "b"}) {
    absl::StrAppend(&text, chain, "0 = Placeholder() @/gpu:0 {dtype=float32, shape=(64,64)}\n");
    for (int i = 1; i <= 250; ++i) {
      absl::StrAppend(&text, chain, i, " = Relu(", chain, i - 1, ")", type);
    }
  }
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "r", i, " = AddN(s, a250, b250) @/gpu:0 ",
                    "{N=3, T=float32, _output_shapes=[(64,64)]}\n");
  }
  for (const char* chain : {"a", "b"}) {
    absl::StrAppend(&text, chain, "_more = Tanh(", chain, "250)", type);
    absl::StrAppend(&text, chain, "_last = Mul(s, ", chain, "_more)", type);
  }
  absl::StrAppend(&text, "end = AddN(t, u, a_more) @/gpu:0 {N=3, T=float32, ",
                  "_output_shapes=[(64,64)]}\n");
  return text;
}

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_REWRITE_CORE_STRATEGY_BUDGET_DEAR_GRAPHS_H_
