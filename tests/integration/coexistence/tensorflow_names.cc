// A library that carries TensorFlow's proto names, as TensorFlow does.
#include "tensorflow/core/framework/graph.pb.h"

// 0: the messages work.
extern "C" int use_tensorflow_names() {
  tensorflow::GraphDef graph;
  graph.add_node()->set_name("x");
  tensorflow::GraphDef parsed;
  if (!parsed.ParseFromString(graph.SerializeAsString())) return 1;
  return parsed.node(0).name() == "x" ? 0 : 1;
}
