#include "verifier/solver_ring.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "support/random.h"

namespace taso {
namespace {

constexpr std::uint64_t rlimit = 100'000;

/// Terms of sort Real as a ring; what defines quotients, extrema and functions is collected as assumptions.
class SolverRing {
 public:
  using Element = smt::Expr;

  explicit SolverRing(smt::Context& context) : context_(context), real_(context.real_sort()), zero_(context.real(0)) {}

  Element variable() { return context_.fresh("x", real_); }
  Element number(double value) {
    if (!std::isfinite(value)) return infinity(value < 0);
    return value == 0 ? zero_ : context_.real(value);
  }
  Element add(const Element& a, const Element& b) { return a == zero_ ? b : b == zero_ ? a : context_.add(a, b); }
  Element subtract(const Element& a, const Element& b) { return b == zero_ ? a : context_.subtract(a, b); }
  Element multiply(const Element& a, const Element& b) {
    return a == zero_ || b == zero_ ? zero_ : context_.multiply(a, b);
  }
  Element divide(const Element& a, const Element& b) {
    Element quotient = context_.fresh("q", real_);
    assume(context_.equal(context_.multiply(quotient, b), a));
    assume(context_.negation(context_.equal(b, zero_)));
    return quotient;
  }
  Element call(const FunctionDefinition& function, const Element& x) {
    if (x == zero_ && function.zero_at_zero) return zero_;
    Calls& calls = calls_[function.name];
    if (!calls.function.valid()) {
      const smt::Sort arguments[] = {real_};
      calls.function = context_.function(function.name, arguments, real_);
      if (function.zero_at_zero) {
        const Element at[] = {zero_};
        assume(context_.equal(calls.function(at), zero_));
      }
    }
    const Element at[] = {x};
    Element result = calls.function(at);
    for (const auto& [argument, value] : calls.made) {
      if (argument == x) return result;
      if (!function.monotone) continue;
      assume(context_.implies(context_.less_equal(argument, x), context_.less_equal(value, result)));
      assume(context_.implies(context_.less_equal(x, argument), context_.less_equal(result, value)));
    }
    calls.made.emplace_back(x, result);
    if (function.idempotent) {
      const Element again[] = {result};
      assume(context_.equal(calls.function(again), result));
    }
    return result;
  }
  Element call(const FunctionDefinition& function, const Element& x, const Element& y) {
    const smt::Sort arguments[] = {real_, real_};
    const Element at[] = {x, y};
    return context_.function(function.name, arguments, real_)(at);
  }
  Element extremum(bool maximum, std::span<const Element> values) {
    if (values.size() == 1) return values[0];
    Element best = context_.fresh("m", real_);
    std::vector<Element> attained;
    for (const Element& value : values) {
      assume(maximum ? context_.less_equal(value, best) : context_.less_equal(best, value));
      attained.push_back(context_.equal(value, best));
    }
    assume(context_.disjunction(attained));
    return best;
  }
  Element infinity(bool /*negative*/) {
    infinite_ = true;
    return zero_;
  }
  [[nodiscard]] static Status status() { return {}; }
  [[nodiscard]] bool infinite() const { return infinite_; }
  [[nodiscard]] const std::vector<Element>& assumptions() const { return assumptions_; }

 private:
  struct Calls {
    smt::Function function;
    std::vector<std::pair<Element, Element>> made;
  };
  void assume(const Element& formula) { assumptions_.push_back(formula); }

  smt::Context& context_;
  smt::Sort real_;
  Element zero_;
  std::map<std::string, Calls> calls_;
  std::vector<Element> assumptions_;
  bool infinite_ = false;
};

}  // namespace

smt::Answer smt_agreement(const TypedInstance& typed, std::uint64_t seed) {
  smt::Context context;
  SolverRing ring(context);
  Random random(seed, "indices for Z3");
  std::vector<RingTensor<smt::Expr>> inputs;
  for (const TensorType& type : typed.instance.variables) {
    RingTensor<smt::Expr> tensor;
    tensor.shape = type.shape;
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      if (type.element == ElementType::f32)
        tensor.elements.push_back(ring.variable());
      else
        tensor.integers.push_back(-static_cast<std::int64_t>(random.below(2)));
    }
    inputs.push_back(std::move(tensor));
  }
  const auto left = typed.source.run(ring, inputs), right = typed.target.run(ring, inputs);
  if (!left || !right || ring.infinite()) return smt::Answer::unknown;
  std::vector<smt::Expr> differences;
  for (std::size_t i = 0; i < left->size(); ++i)
    for (std::size_t e = 0; e < (*left)[i].elements.size(); ++e) {
      const smt::Expr &a = (*left)[i].elements[e], &b = (*right)[i].elements[e];
      if (!(a == b)) differences.push_back(context.negation(context.equal(a, b)));
    }
  if (differences.empty()) return smt::Answer::unsatisfiable;
  smt::Solver solver(context, {.model_based_quantifiers = false, .rlimit = rlimit, .watchdog_seconds = 2});
  for (const smt::Expr& assumption : ring.assumptions()) solver.add(assumption);
  solver.add(context.disjunction(differences));
  return solver.check().answer;
}

}  // namespace taso
