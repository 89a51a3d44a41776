// The *floor*: the time that protobuf alone takes to parse (on an arena) and serialize a GraphDef
// on one thread. Benchmarks give their times in units of it, measured in the same run.
#ifndef SPILLWAY_TESTS_BENCHMARKS_FLOOR_H_
#define SPILLWAY_TESTS_BENCHMARKS_FLOOR_H_

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "google/protobuf/arena.h"
#include "tests/testing/graph_schema.pb.h"

namespace spillway::benchmarks {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Seconds of one floor. Freeing the memory is not counted.
inline double FloorSeconds(const std::string& bytes) {
  google::protobuf::Arena arena;
  const auto begin = Clock::now();
  auto* graph = google::protobuf::Arena::CreateMessage<testing::GraphDef>(&arena);
  std::string out;
  if (!graph->ParseFromString(bytes) || !graph->SerializeToString(&out)) std::abort();
  const double seconds = SecondsSince(begin);
  if (out.size() != bytes.size()) std::abort();
  return seconds;
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace spillway::benchmarks

#endif  // SPILLWAY_TESTS_BENCHMARKS_FLOOR_H_
