// Small linear programs, some of whose variables are 0 or 1, solved exactly by GLPK: an oracle that
// knows nothing of swaps.
//
// Thread safety: one thread at a time.
#ifndef SPILLWAY_TESTS_TESTING_INTEGER_PROGRAM_H_
#define SPILLWAY_TESTS_TESTING_INTEGER_PROGRAM_H_

#include <utility>
#include <vector>

struct glp_prob;

namespace spillway::testing {

class IntegerProgram {
 public:
  IntegerProgram();
  ~IntegerProgram();
  IntegerProgram(const IntegerProgram&) = delete;
  IntegerProgram& operator=(const IntegerProgram&) = delete;

  // A variable that is 0 or 1, or any number from 0 on; one of it costs so much. Its index.
  int AddChoice(double cost);
  int AddNumber(double cost);
  // The sum of factor * variable is at least `least`.
  void AddRow(const std::vector<std::pair<int, double>>& terms, double least);

  enum class Outcome { kOptimal, kImpossible, kGivenUp };
  // The values of the least cost; gives up after some seconds (nearly all that tests ask takes
  // milliseconds).
  Outcome Minimize();
  double value(int variable) const;
  bool is_chosen(int variable) const { return value(variable) > 0.5; }
  double cost() const;

 private:
  glp_prob* const problem_;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_INTEGER_PROGRAM_H_
