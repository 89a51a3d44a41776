// Recurrent cells and layers that are one op, and sequence losses (CTC).
#include "rewrite_core/analysis/shapes/shape_functions/common.h"
#include "rewrite_core/analysis/shapes/shape_table.h"

namespace spillway::core {
namespace {

// LSTMBlockCell(x [batch, inputs], cs_prev [batch, cells], ...) -> i, cs, f, o, ci, co, h.
void LstmCell(ShapeContext& c) {
  const ShapeId x = c.WithRank(0, 2), state = c.WithRank(1, 2);
  c.set_all(c.Make({c.MergeDims(c.dim(x, 0), c.dim(state, 0)), c.dim(state, 1)}));
}

// LSTMBlockCellGrad(x, cs_prev, ...) -> cs_prev_grad, dicfo (the four gates), wci_grad, wcf_grad,
// wco_grad.
void LstmCellGrad(ShapeContext& c) {
  const ShapeId x = c.WithRank(0, 2), state = c.WithRank(1, 2);
  const int64_t batch = c.MergeDims(c.dim(x, 0), c.dim(state, 0)), cells = c.dim(state, 1);
  c.set_all(c.Make({cells}));
  c.set(0, c.Make({batch, cells}));
  c.set(1, c.Make({batch, c.Mul(cells, 4)}));
}

// BlockLSTM(seq_len_max, x [time, batch, inputs], cs_prev, h_prev, w, wci, wcf, wco, b [4 * cells])
// -> i, cs, f, o, ci, co, h, each for all times.
void BlockLstm(ShapeContext& c) {
  const ShapeId x = c.WithRank(1, 3), bias = c.WithRank(8, 1);
  c.set_all(c.Make({c.dim(x, 0), c.dim(x, 1), c.Div(c.dim(bias, 0), 4)}));
}

// BlockLSTMGrad(seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, ...): the gradients of these.
void BlockLstmGrad(ShapeContext& c) {
  constexpr int kRanks[] = {3, 2, 2, 2, 1, 1, 1, 1};
  for (int i = 0; i < 8; ++i) c.set(i, c.WithRank(i + 1, kRanks[i]));
}

// GRUBlockCellGrad(x [batch, inputs], h_prev [batch, cells], w_ru [..., 2 * cells], ...) -> d_x,
// d_h_prev, d_c_bar, d_r_bar_u_bar.
void GruCellGrad(ShapeContext& c) {
  const ShapeId x = c.WithRank(0, 2), state = c.WithRank(1, 2);
  const int64_t batch = c.MergeDims(c.dim(x, 0), c.dim(state, 0)), cells = c.dim(state, 1);
  c.set_all(c.Make({batch, cells}));
  c.set(0, c.Make({batch, c.dim(x, 1)}));
  c.set(3, c.Make({batch, c.MergeDims(c.Mul(cells, 2), c.dim(c.WithRank(2, 2), 1))}));
}

// ---- cuDNN: whole layers. Without time_major, time and batch are swapped in inputs and outputs.

// CudnnRNN(input [time, batch, inputs], input_h [layers, batch, units], input_c, params, ...) ->
// output, output_h, output_c, and outputs for the gradient, chosen by cuDNN.
void CudnnRnn(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 3), h = c.WithRank(1, 3);
  const int64_t directions = c.String("direction") == "bidirectional" ? 2 : 1;
  c.set(0, c.Make({c.dim(in, 0), c.dim(in, 1), c.Mul(c.dim(h, 2), directions)}));
  c.set(1, c.input(1));
  const bool lstm = c.String("rnn_mode", "lstm") == "lstm";
  // Only an LSTM has cells; with a projection their size differs from h's.
  if (!lstm) c.set(2, kScalar);
  if (lstm) c.set(2, c.Has("num_proj") ? c.input(2) : c.input(1));
}

// CudnnRNNBackprop(input, input_h, input_c, params, ...): the gradients of these.
void CudnnBackprop(ShapeContext& c) {
  for (int i = 0; i < 4; ++i) c.set(i, c.input(i));
}

void CudnnParamsSize(ShapeContext& c) { c.set(0, c.Make({1})); }

// CudnnRNNParamsToCanonical -> matrices, and as many vectors (V2 counts them separately).
void CudnnToCanonical(ShapeContext& c) {
  const int64_t matrices = c.Int("num_params", c.Int("num_params_weights"));
  for (int i = 0; i < c.num_outputs(); ++i) c.set(i, c.OfRank(i < matrices ? 2 : 1));
}

// ---- Connectionist temporal classification, of inputs [time, batch, classes].

// CTCLoss(inputs, labels_indices, labels_values, sequence_length) -> loss, gradient.
void CtcLoss(ShapeContext& c) {
  const ShapeId in = c.WithRank(0, 3), lengths = c.WithRank(3, 1);
  const int64_t batch = c.MergeDims(c.dim(in, 1), c.dim(lengths, 0));
  c.set(0, c.Make({batch}));
  c.set(1, c.Make({c.dim(in, 0), batch, c.dim(in, 2)}));
}

// CTC*Decoder(inputs, sequence_length): sparse matrices (indices, values and shape of each path),
// and their log probability.
void CtcDecode(ShapeContext& c, int64_t paths) {
  const ShapeId in = c.WithRank(0, 3), lengths = c.WithRank(1, 1);
  if (paths < 0 || paths > c.num_outputs() || c.num_outputs() != 3 * paths + 1) return;
  for (int i = 0; i < paths; ++i) {
    c.set(i, c.Make({kUnknownDim, 2}));
    c.set(i + static_cast<int>(paths), c.OfRank(1));
    c.set(i + static_cast<int>(2 * paths), c.Make({2}));
  }
  c.set(static_cast<int>(3 * paths), c.Make({c.MergeDims(c.dim(in, 1), c.dim(lengths, 0)), paths}));
}

void CtcGreedy(ShapeContext& c) { CtcDecode(c, 1); }
void CtcBeamSearch(ShapeContext& c) { CtcDecode(c, c.Int("top_paths")); }

constexpr ShapeRule kRecurrentRules[] = {
    {"BlockLSTM", BlockLstm},
    {"BlockLSTMGrad", BlockLstmGrad},
    {"BlockLSTMGradV2", BlockLstmGrad},
    {"BlockLSTMV2", BlockLstm},
    {"CTCBeamSearchDecoder", CtcBeamSearch},
    {"CTCGreedyDecoder", CtcGreedy},
    {"CTCLoss", CtcLoss},
    {"CTCLossV2", CtcLoss},
    {"CudnnRNN", CudnnRnn},
    {"CudnnRNNBackprop", CudnnBackprop},
    {"CudnnRNNBackpropV2", CudnnBackprop},
    {"CudnnRNNBackpropV3", CudnnBackprop},
    {"CudnnRNNCanonicalToParams", OneVector},
    {"CudnnRNNCanonicalToParamsV2", OneVector},
    {"CudnnRNNParamsSize", CudnnParamsSize},
    {"CudnnRNNParamsToCanonical", CudnnToCanonical},
    {"CudnnRNNParamsToCanonicalV2", CudnnToCanonical},
    {"CudnnRNNV2", CudnnRnn},
    {"CudnnRNNV3", CudnnRnn},
    {"GRUBlockCell", LstmCell},
    {"GRUBlockCellGrad", GruCellGrad},
    {"LSTMBlockCell", LstmCell},
    {"LSTMBlockCellGrad", LstmCellGrad},
};

}  // namespace

absl::Span<const ShapeRule> RecurrentShapeRules() { return kRecurrentRules; }

}  // namespace spillway::core
