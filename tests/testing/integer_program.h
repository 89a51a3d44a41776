// Small linear programs with some 0-1 variables, solved exactly by GLPK: an oracle that knows
// nothing about swaps.
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

  // Adds a 0-1 variable, or a nonnegative one, with that cost per unit. Returns its index.
  int AddChoice(double cost);
  int AddNumber(double cost);
  // Requires that the sum of factor * variable is at least `least`.
  void AddRow(const std::vector<std::pair<int, double>>& terms, double least);

  enum class Outcome { kOptimal, kImpossible, kGivenUp };
  // Returns the values with the minimum cost. Gives up after some seconds (nearly all programs in
  // tests take milliseconds).
  Outcome Minimize();
  double value(int variable) const;
  bool is_chosen(int variable) const { return value(variable) > 0.5; }
  double cost() const;

 private:
  glp_prob* const problem_;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_INTEGER_PROGRAM_H_
