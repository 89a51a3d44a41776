#include "tests/testing/training_graph.h"

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "tests/testing/data_types.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::testing {
namespace {

using Dims = std::vector<int64_t>;
using Names = std::vector<std::string>;

// Images in the blocks: kSide x kSide with kWidth channels.
constexpr int64_t kSide = 28, kWidth = 64, kClasses = 1000;

void SetShape(const Dims& dims, TensorShapeProto* shape) {
  for (int64_t dim : dims) shape->add_dim()->set_size(dim);
}

AttrValue TypeAttr(int type) {
  AttrValue value;
  value.set_type(type);
  return value;
}
AttrValue IntAttr(int64_t i) {
  AttrValue value;
  value.set_i(i);
  return value;
}
AttrValue BoolAttr(bool b) {
  AttrValue value;
  value.set_b(b);
  return value;
}
AttrValue StringAttr(const std::string& s) {
  AttrValue value;
  value.set_s(s);
  return value;
}
AttrValue ShapeAttr(const Dims& dims) {
  AttrValue value;
  SetShape(dims, value.mutable_shape());
  return value;
}
AttrValue IntsAttr(const Dims& ints) {
  AttrValue value;
  value.mutable_list();
  for (int64_t i : ints) value.mutable_list()->add_i(i);
  return value;
}

using Attrs = std::map<std::string, AttrValue>;

class Writer {
 public:
  explicit Writer(bool shapes) : shapes_(shapes) {}

  // Adds a node with these output shapes; returns its name.
  std::string Node(const std::string& name, const std::string& op, const Names& inputs = {},
                   const std::vector<Dims>& shapes = {}, const Attrs& attrs = {}) {
    node_.Clear();
    node_.set_name(name);
    node_.set_op(op);
    for (const std::string& input : inputs) node_.add_input(input);
    for (const auto& [key, value] : attrs) (*node_.mutable_attr())[key] = value;
    if (shapes_ && !shapes.empty()) {
      auto* list = (*node_.mutable_attr())["_output_shapes"].mutable_list();
      for (const Dims& dims : shapes) SetShape(dims, list->add_shape());
    }
    scratch_.clear();
    {
      google::protobuf::io::StringOutputStream stream(&scratch_);
      google::protobuf::io::CodedOutputStream out(&stream);
      out.SetSerializationDeterministic(true);
      constexpr uint32_t kNodeField = 1 << 3 | 2;  // GraphDef.node, length-delimited.
      out.WriteTag(kNodeField);
      out.WriteVarint32(static_cast<uint32_t>(node_.ByteSizeLong()));
      node_.SerializeWithCachedSizes(&out);
    }
    bytes_ += scratch_;
    ++count_;
    return name;
  }

  std::string Floats(const std::string& name, float value, const Dims& dims = {}) {
    AttrValue tensor;
    tensor.mutable_tensor()->set_dtype(kFloat);
    SetShape(dims, tensor.mutable_tensor()->mutable_tensor_shape());
    tensor.mutable_tensor()->add_float_val(value);
    return Node(name, "Const", {}, {dims}, {{"dtype", TypeAttr(kFloat)}, {"value", tensor}});
  }

  std::string Ints(const std::string& name, const Dims& values) {
    const Dims dims = {static_cast<int64_t>(values.size())};
    AttrValue tensor;
    tensor.mutable_tensor()->set_dtype(kInt32);
    SetShape(dims, tensor.mutable_tensor()->mutable_tensor_shape());
    for (int64_t value : values) tensor.mutable_tensor()->add_int_val(static_cast<int32_t>(value));
    return Node(name, "Const", {}, {dims}, {{"dtype", TypeAttr(kInt32)}, {"value", tensor}});
  }

  int64_t count() const { return count_; }
  std::string TakeBytes() { return std::move(bytes_); }

 private:
  const bool shapes_;
  NodeDef node_;
  int64_t count_ = 0;
  std::string scratch_;
  std::string bytes_;
};

// Forward ops are written immediately, gradients and updates when the tape runs.
class Net {
 public:
  explicit Net(const TrainingGraphOptions& options)
      : options_(options),
        w_(options.shapes),
        dims_({options.batch, kSide, kSide, kWidth}),
        lr_(w_.Floats(options.optimizer_scope + "/learning_rate", 0.01f)),
        momentum_(w_.Floats(options.optimizer_scope + "/momentum", 0.9f)) {}

  std::string Make(int64_t blocks) {
    std::string x = w_.Node("images", "Placeholder", {}, {dims_},
                            {{"dtype", TypeAttr(kFloat)}, {"shape", ShapeAttr(dims_)}});
    w_.Node("labels", "Placeholder", {}, {{options_.batch}},
            {{"dtype", TypeAttr(kInt32)}, {"shape", ShapeAttr({options_.batch})}});
    for (int64_t i = 0; i < blocks; ++i) x = Block(x, absl::StrCat("block", i));
    std::string dy = Head(x);
    for (auto grad = tape_.rbegin(); grad != tape_.rend(); ++grad) dy = (*grad)(dy);
    w_.Node("init", "NoOp", inits_);
    w_.Node(options_.optimizer_scope + "/train_op", "NoOp", updates_);
    std::string side = "loss/Mean";
    for (int64_t i = 0; w_.count() < options_.nodes; ++i) {
      side = w_.Node(absl::StrCat("schedule/Identity_", i), "Identity", {side}, {{}}, Float());
    }
    return w_.TakeBytes();
  }

  int64_t count() const { return w_.count(); }

 private:
  using Grad = std::function<std::string(const std::string&)>;

  static Attrs Float() { return {{"T", TypeAttr(kFloat)}}; }

  static Attrs With(Attrs attrs, const Attrs& more) {
    attrs.insert(more.begin(), more.end());
    return attrs;
  }

  static const Attrs& ConvAttrs() {
    static const Attrs attrs = {{"T", TypeAttr(kFloat)},
                                {"strides", IntsAttr({1, 1, 1, 1})},
                                {"padding", StringAttr("SAME")},
                                {"data_format", StringAttr("NHWC")},
                                {"use_cudnn_on_gpu", BoolAttr(true)},
                                {"explicit_paddings", IntsAttr({})},
                                {"dilations", IntsAttr({1, 1, 1, 1})}};
    return attrs;
  }

  static Attrs MatMulAttrs(bool transpose_a, bool transpose_b) {
    return {{"T", TypeAttr(kFloat)},
            {"transpose_a", BoolAttr(transpose_a)},
            {"transpose_b", BoolAttr(transpose_b)}};
  }

  std::string Gradient(const std::string& name) const {
    return absl::StrCat(options_.gradients_scope, "/", name);
  }

  // Adds a variable and its momentum, both with initializers. Returns the node that reads it.
  std::string Variable(const std::string& name, const Dims& dims, float value) {
    const std::pair<std::string, float> parts[] = {{name, value}, {name + "/Momentum", 0.0f}};
    for (const auto& [part, start] : parts) {
      w_.Node(part, "VariableV2", {}, {dims},
              {{"dtype", TypeAttr(kFloat)},
               {"shape", ShapeAttr(dims)},
               {"container", StringAttr("")},
               {"shared_name", StringAttr("")}});
      w_.Floats(part + "/initial", start, dims);
      w_.Node(part + "/Assign", "Assign", {part, part + "/initial"}, {dims},
              {{"T", TypeAttr(kFloat)},
               {"use_locking", BoolAttr(true)},
               {"validate_shape", BoolAttr(true)}});
      inits_.push_back(absl::StrCat("^", part, "/Assign"));
    }
    return w_.Node(name + "/read", "Identity", {name}, {dims}, Float());
  }

  void Update(const std::string& variable, const std::string& gradient, const Dims& dims) {
    const std::string name =
        absl::StrCat(options_.optimizer_scope, "/update_",
                     absl::StrReplaceAll(variable, {{"/", "_"}}), "/ApplyMomentum");
    w_.Node(name, "ApplyMomentum", {variable, variable + "/Momentum", lr_, gradient, momentum_},
            {dims},
            With(Float(), {{"use_locking", BoolAttr(false)}, {"use_nesterov", BoolAttr(false)}}));
    updates_.push_back("^" + name);
  }

  // Conv2D, BiasAdd, Relu. `*grad` turns the gradient of the result into that of x.
  std::string ConvBiasRelu(const std::string& x, const std::string& name, Grad* grad) {
    const Dims kernel_dims = {3, 3, kWidth, kWidth}, bias_dims = {kWidth};
    const Attrs nhwc = With(Float(), {{"data_format", StringAttr("NHWC")}});
    const std::string kernel = Variable(name + "/w", kernel_dims, 0.01f);
    const std::string bias = Variable(name + "/b", bias_dims, 0.0f);
    const std::string y = w_.Node(name + "/Conv2D", "Conv2D", {x, kernel}, {dims_}, ConvAttrs());
    const std::string z = w_.Node(name + "/BiasAdd", "BiasAdd", {y, bias}, {dims_}, nhwc);
    const std::string out = w_.Node(name + "/Relu", "Relu", {z}, {dims_}, Float());
    *grad = [=](const std::string& dy) {
      const std::string g = Gradient(name);
      const std::string d =
          w_.Node(g + "/Relu_grad/ReluGrad", "ReluGrad", {dy, out}, {dims_}, Float());
      const std::string db =
          w_.Node(g + "/BiasAdd_grad/BiasAddGrad", "BiasAddGrad", {d}, {bias_dims}, nhwc);
      const std::string conv = g + "/Conv2D_grad";
      const std::string shapes =
          w_.Node(conv + "/ShapeN", "ShapeN", {x, kernel}, {{4}, {4}},
                  With(Float(), {{"N", IntAttr(2)}, {"out_type", TypeAttr(kInt32)}}));
      std::string dx = w_.Node(conv + "/Conv2DBackpropInput", "Conv2DBackpropInput",
                               {shapes, kernel, d}, {dims_}, ConvAttrs());
      std::string dw = w_.Node(conv + "/Conv2DBackpropFilter", "Conv2DBackpropFilter",
                               {x, shapes + ":1", d}, {kernel_dims}, ConvAttrs());
      // The gating of tf.train.Optimizer.
      const std::string gate = w_.Node(conv + "/tuple/group_deps", "NoOp", {"^" + dx, "^" + dw});
      dx = w_.Node(conv + "/tuple/control_dependency", "Identity", {dx, "^" + gate}, {dims_},
                   Float());
      dw = w_.Node(conv + "/tuple/control_dependency_1", "Identity", {dw, "^" + gate},
                   {kernel_dims}, Float());
      Update(name + "/w", dw, kernel_dims);
      Update(name + "/b", db, bias_dims);
      return dx;
    };
    return out;
  }

  std::string Block(const std::string& x, const std::string& name) {
    Grad grad_a, grad_b;
    const std::string a = ConvBiasRelu(x, name + "/a", &grad_a);
    const std::string b = ConvBiasRelu(a, name + "/b", &grad_b);
    const std::string out = w_.Node(name + "/add", "AddV2", {x, b}, {dims_}, Float());
    tape_.push_back([=](const std::string& dy) {
      const std::string back = grad_a(grad_b(dy));
      return w_.Node(Gradient(name + "/AddN"), "AddN", {dy, back}, {dims_},
                     With(Float(), {{"N", IntAttr(2)}}));
    });
    return out;
  }

  // Mean over the image, matmul, cross entropy, and back. Returns the gradient of x.
  std::string Head(const std::string& x) {
    const int64_t batch = options_.batch;
    const Attrs mean = With(Float(), {{"Tidx", TypeAttr(kInt32)}, {"keep_dims", BoolAttr(false)}});
    const std::string pooled =
        w_.Node("pool/Mean", "Mean", {x, w_.Ints("pool/axes", {1, 2})}, {{batch, kWidth}}, mean);
    const std::string fc = Variable("fc/w", {kWidth, kClasses}, 0.01f);
    const std::string logits = w_.Node("fc/MatMul", "MatMul", {pooled, fc}, {{batch, kClasses}},
                                       MatMulAttrs(false, false));
    const std::string xent =
        w_.Node("loss/xentropy", "SparseSoftmaxCrossEntropyWithLogits", {logits, "labels"},
                {{batch}, {batch, kClasses}}, With(Float(), {{"Tlabels", TypeAttr(kInt32)}}));
    w_.Node("loss/Mean", "Mean", {xent, w_.Ints("loss/axes", {0})}, {{}}, mean);

    const std::string ones =
        w_.Floats(Gradient("loss/ones"), 1.0f / static_cast<float>(batch), {batch, 1});
    std::string d =
        w_.Node(Gradient("loss/mul"), "Mul", {ones, xent + ":1"}, {{batch, kClasses}}, Float());
    const std::string dfc = w_.Node(Gradient("fc/MatMul_1"), "MatMul", {pooled, d},
                                    {{kWidth, kClasses}}, MatMulAttrs(true, false));
    Update("fc/w", dfc, {kWidth, kClasses});
    d = w_.Node(Gradient("fc/MatMul"), "MatMul", {d, fc}, {{batch, kWidth}},
                MatMulAttrs(false, true));
    const std::string shape = w_.Ints(Gradient("pool/shape"), {batch, 1, 1, kWidth});
    d = w_.Node(Gradient("pool/Reshape"), "Reshape", {d, shape}, {{batch, 1, 1, kWidth}},
                With(Float(), {{"Tshape", TypeAttr(kInt32)}}));
    const std::string multiples = w_.Ints(Gradient("pool/multiples"), {1, kSide, kSide, 1});
    return w_.Node(Gradient("pool/Tile"), "Tile", {d, multiples}, {dims_},
                   With(Float(), {{"Tmultiples", TypeAttr(kInt32)}}));
  }

  const TrainingGraphOptions& options_;
  Writer w_;
  const Dims dims_;
  const std::string lr_, momentum_;
  Names inits_, updates_;
  std::vector<Grad> tape_;
};

int64_t CountNodes(int64_t blocks) {
  TrainingGraphOptions options;
  options.nodes = 0;
  Net net(options);
  net.Make(blocks);
  return net.count();
}

}  // namespace

std::string MakeTrainingGraph(const TrainingGraphOptions& options) {
  if (options.nodes < kMinTrainingGraphNodes) {
    std::cerr << "a training graph has " << kMinTrainingGraphNodes << " nodes or more\n";
    std::abort();
  }
  const int64_t with_one = CountNodes(1);
  const int64_t per_block = CountNodes(2) - with_one;
  return Net(options).Make(1 + (options.nodes - with_one) / per_block);
}

}  // namespace spillway::testing
