// The contents of tests/graphs/NAME/meta.json: the feeds of one step of a graph.
#ifndef SPILLWAY_TESTS_TESTING_GRAPH_META_H_
#define SPILLWAY_TESTS_TESTING_GRAPH_META_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spillway/v1/step.pb.h"

namespace spillway::testing {

// The graphs of tests/graphs, by name.
std::vector<std::string> TestGraphNames();

enum class RecordedBatch {
  kPlanned,  // The large batch that the graph is meant for.
  kRun,      // The batch of its recorded losses; not every graph has one.
};

// The shapes of a step's feeds; if nothing is fed, its batch size, because the data then comes from
// an iterator, one batch at a time.
v1::Step RecordedStep(absl::string_view graph, RecordedBatch batch);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_GRAPH_META_H_
