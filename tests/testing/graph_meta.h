// What tests/graphs/NAME/meta.json says of a graph: how one step of it is fed, and what it fetches.
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
  kPlanned,  // The large one that the graph is for.
  kRun,      // The one of its recorded losses; not every graph has one.
};

// The shapes that a step of the graph is fed with; where nothing is fed, its batch size: what is
// not fed comes out of an iterator, a batch at a time.
v1::Step RecordedStep(absl::string_view graph, RecordedBatch batch);

// What a training loop runs: the train op and the loss.
std::vector<std::string> RecordedFetches(absl::string_view graph);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_GRAPH_META_H_
