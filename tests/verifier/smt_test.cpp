// The wrapper of Z3: answers, scopes, triggers, numbers.

#include <gtest/gtest.h>

#include "verifier/smt/solver.h"

namespace taso::smt {
namespace {

class SmtTest : public ::testing::Test {
 protected:
  Context c;
  Sort things = c.uninterpreted_sort("Thing");
  Expr a = c.constant("a", things), b = c.constant("b", things);
  Function f = c.function("f", std::vector<Sort>{things}, things);
  Expr apply(const Expr& x) { return f(std::vector<Expr>{x}); }
};

TEST_F(SmtTest, EqualArgumentsGiveEqualResults) {
  Solver solver(c, {});
  solver.add(c.equal(a, b));
  solver.add(c.negation(c.equal(apply(a), apply(b))));
  EXPECT_EQ(solver.check().answer, Answer::unsatisfiable);
}

TEST_F(SmtTest, ScopesForget) {
  Solver solver(c, {});
  {
    const Solver::Scope scope(solver);
    solver.add(c.negation(c.equal(a, a)));
    EXPECT_EQ(solver.check().answer, Answer::unsatisfiable);
  }
  EXPECT_EQ(solver.check().answer, Answer::satisfiable);
}

TEST_F(SmtTest, TriggersInstantiate) {
  const Expr x = c.constant("x", things);
  const std::vector<Expr> variables{x}, triggers{apply(apply(x))};
  Solver solver(c, {});
  solver.add(c.forall(variables, triggers, c.equal(apply(apply(x)), x), "inverse"));
  solver.add(c.negation(c.equal(apply(apply(a)), a)));
  EXPECT_EQ(solver.check().answer, Answer::unsatisfiable);
}

TEST_F(SmtTest, UnknownIsNotNo) {
  const Expr x = c.constant("x", things);
  const std::vector<Expr> variables{x}, triggers{apply(x)};
  Solver solver(c, {});
  solver.add(c.forall(variables, triggers, c.equal(apply(x), x), "identity"));
  solver.add(c.negation(c.equal(a, b)));
  const Result result = solver.check();
  EXPECT_EQ(result.answer, Answer::unknown);
  EXPECT_FALSE(result.reason.empty());
}

// Matching that never ends: every f(x) makes an f(f(x)).
class EndlessTest : public SmtTest {
 protected:
  Result check(const SolverOptions& options) {
    const Expr x = c.constant("x", things);
    const std::vector<Expr> variables{x}, triggers{apply(x)};
    const Function g = c.function("g", std::vector<Sort>{things, things}, things);
    Solver solver(c, options);
    const Expr both = g(std::vector<Expr>{apply(apply(x)), x});
    solver.add(c.forall(variables, triggers, c.equal(both, apply(x)), "endless"));
    solver.add(c.negation(c.equal(apply(a), b)));
    return solver.check();
  }
};

TEST_F(EndlessTest, ResourceLimitEndsIt) { EXPECT_EQ(check({.rlimit = 20000}).answer, Answer::unknown); }

TEST_F(EndlessTest, WatchdogEndsIt) { EXPECT_EQ(check({.watchdog_seconds = 0.05}).answer, Answer::unknown); }

TEST_F(SmtTest, NumbersAreExact) {
  Solver solver(c, {});
  solver.add(c.negation(c.equal(c.real(0.375), c.multiply(c.real(3), c.real(0.125)))));
  EXPECT_EQ(solver.check().answer, Answer::unsatisfiable);
  Solver other(c, {});
  other.add(c.equal(c.real(0.1), c.divide(c.to_real(c.integer(1)), c.to_real(c.integer(10)))));
  EXPECT_EQ(other.check().answer, Answer::unsatisfiable) << "0.1 is not a tenth";
}

TEST_F(SmtTest, GoalsCanBeWritten) {
  Solver solver(c, {});
  solver.add(c.equal(apply(a), b));
  const std::string text = solver.smt2();
  EXPECT_NE(text.find("(declare-sort Thing 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("(check-sat)"), std::string::npos);
}

}  // namespace
}  // namespace taso::smt
