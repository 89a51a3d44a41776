// Properties of every rewrite, checked with protobuf and the naive executor alone.
#ifndef SPILLWAY_TESTS_PROPERTY_PROPERTIES_H_
#define SPILLWAY_TESTS_PROPERTY_PROPERTIES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/rewrite_service.pb.h"
#include "tests/testing/graph_schema.pb.h"
#include "tests/testing/random.h"

namespace spillway::testing {

// The outcome of one case.
struct Verdict {
  std::string failure;  // The property that does not hold, and how; empty if all do.
  bool refused = false;
  int swaps = 0;
};

// Rewrites `input` with `options` and checks, if it is rewritten:
//   strip            gives `input` back, byte for byte
//   acyclic          except the loops' own back edges
//   deterministic    the same bytes again, and with the feeds in another order
//   idempotent       the result is KEPT, and REPLAN gives the same bytes
//   executes alike   every original node is dead or alive as before and reads and gives the same
//                    values, for all truth values of up to 5 predicates, or for 16 samples
//   patch            leads from the input message to the returned one
//   report           agrees with counts in the result
//   plan             applied, gives the same bytes
//   needs            (level) swap-ins and readers of swapped tensors wait for nodes that run;
//                    (budget, and a pace edge) or need no feed or other source that they do
//                    without, and no write
// and otherwise that it is returned unchanged, or refused for a reason that lies in the options. A
// Rewrite must never return INTERNAL; a plan that is applied may be refused as BAD_PLAN.
//
// A graph of kind kAnyShapes may also be refused for the shapes that its ops take (BAD_INPUT); one
// of kind kAny for any reason, or be taken for one that another program rewrote.
enum class GraphKind { kValid, kAnyShapes, kAny };
Verdict CheckRewrite(const std::string& input, const v1::RewriteOptions& options, Random* random,
                     GraphKind kind = GraphKind::kValid);

// The error, if any, in the answer to `input`, which may be any bytes:
//   an error         blames the input or the options, or reports that a search limit was reached
//   transport        the answer can be sent and read
//   not rewritten    the bytes are the input, unless they were to be stripped
//   strip            a rewritten graph gives `input` back (as it was before any rewrite)
//   idempotent       rewriting the result again changes nothing
//   diff             finds in a graph that was not rewritten before the swaps reported, and no more
std::string CheckAnswer(const std::string& input, const v1::RewriteOptions& options,
                        const v1::Limits& limits);

// Random options of the strategy `scope` for a graph whose backward part is under `gradients`.
v1::RewriteOptions RandomOptions(const GraphDef& graph, Random* random);

// Random options of the strategy `level`, tuned or given, for any graph.
v1::RewriteOptions RandomLevelOptions(const GraphDef& graph, Random* random);

// The same with its option `pace`.
v1::RewriteOptions RandomPacedLevelOptions(const GraphDef& graph, Random* random);

// Random options of the strategy `budget`, for any graph: from far too little memory to ample.
v1::RewriteOptions RandomBudgetOptions(const GraphDef& graph, Random* random);

// `factor` if long runs are requested (SPILLWAY_LONG_TESTS=1), otherwise 1.
int LongRunFactor(int factor);

// Everything needed to run a case again by hand.
std::string DescribeCase(absl::string_view what, absl::string_view failure,
                         const std::string& input, const v1::RewriteOptions& options);

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_PROPERTY_PROPERTIES_H_
