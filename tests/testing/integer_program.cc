#include "tests/testing/integer_program.h"

#include <glpk.h>

namespace spillway::testing {
namespace {

constexpr int kMaxMs = 2'000;

}  // namespace

IntegerProgram::IntegerProgram() : problem_(glp_create_prob()) {
  glp_term_out(GLP_OFF);
  glp_set_obj_dir(problem_, GLP_MIN);
}

IntegerProgram::~IntegerProgram() { glp_delete_prob(problem_); }

int IntegerProgram::AddChoice(double cost) {
  const int column = glp_add_cols(problem_, 1);
  glp_set_col_kind(problem_, column, GLP_BV);
  glp_set_obj_coef(problem_, column, cost);
  return column;
}

int IntegerProgram::AddNumber(double cost) {
  const int column = glp_add_cols(problem_, 1);
  glp_set_col_bnds(problem_, column, GLP_LO, 0, 0);
  glp_set_obj_coef(problem_, column, cost);
  return column;
}

void IntegerProgram::AddRow(const std::vector<std::pair<int, double>>& terms, double least) {
  // GLPK counts from 1.
  std::vector<int> columns = {0};
  std::vector<double> factors = {0};
  for (const auto& [column, factor] : terms) {
    columns.push_back(column);
    factors.push_back(factor);
  }
  const int row = glp_add_rows(problem_, 1);
  glp_set_row_bnds(problem_, row, GLP_LO, least, 0);
  glp_set_mat_row(problem_, row, static_cast<int>(terms.size()), columns.data(), factors.data());
}

IntegerProgram::Outcome IntegerProgram::Minimize() {
  // GLPK's own presolver would make this unnecessary, but fails if it leaves no column.
  glp_smcp relaxed;
  glp_init_smcp(&relaxed);
  relaxed.tm_lim = kMaxMs;
  if (glp_simplex(problem_, &relaxed) != 0) return Outcome::kGivenUp;
  if (glp_get_status(problem_) == GLP_NOFEAS) return Outcome::kImpossible;
  if (glp_get_status(problem_) != GLP_OPT) return Outcome::kGivenUp;
  glp_iocp how;
  glp_init_iocp(&how);
  how.mir_cuts = how.cov_cuts = GLP_ON;
  how.tm_lim = kMaxMs;
  if (glp_intopt(problem_, &how) != 0) return Outcome::kGivenUp;
  switch (glp_mip_status(problem_)) {
    case GLP_OPT:
      return Outcome::kOptimal;
    case GLP_NOFEAS:
      return Outcome::kImpossible;
    default:
      return Outcome::kGivenUp;
  }
}

double IntegerProgram::value(int variable) const { return glp_mip_col_val(problem_, variable); }

double IntegerProgram::cost() const { return glp_mip_obj_val(problem_); }

}  // namespace spillway::testing
