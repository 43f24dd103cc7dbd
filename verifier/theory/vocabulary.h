/// The functions of the logic in which the theory of operators is written (verifier/theory/theory.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operators/registry.h"
#include "verifier/attribute_kinds.h"
#include "verifier/smt/solver.h"

namespace taso::theory {

using smt::Expr;

/// The functions of the logic for one registry, made on first use.
class Vocabulary {
 public:
  explicit Vocabulary(const OperatorRegistry& registry)
      : registry_(registry),
        tensor_(context_.uninterpreted_sort("Tensor")),
        list_(context_.uninterpreted_sort("IntegerList")),
        symbol_(context_.uninterpreted_sort("Scalar")),
        integer_(context_.integer_sort()),
        real_(context_.real_sort()) {}

  smt::Context& context() { return context_; }
  [[nodiscard]] const OperatorRegistry& registry() const { return registry_; }
  [[nodiscard]] const smt::Sort& tensor() const { return tensor_; }
  [[nodiscard]] const smt::Sort& list() const { return list_; }
  [[nodiscard]] const smt::Sort& symbol() const { return symbol_; }
  [[nodiscard]] const smt::Sort& integer() const { return integer_; }
  [[nodiscard]] const smt::Sort& real() const { return real_; }

  [[nodiscard]] Expr apply(const std::string& name, const smt::Sort& result, std::vector<Expr> arguments,
                           const std::vector<smt::Sort>& sorts);

  Expr make_list(const std::vector<Expr>& elements) {
    return apply("list_" + std::to_string(elements.size()), list_, elements,
                 std::vector<smt::Sort>(elements.size(), integer_));
  }
  Expr get(const Expr& list, std::int64_t element) {
    return apply("list_get", integer_, {list, context_.integer(element)}, {list_, integer_});
  }
  Expr dimension(const Expr& tensor, const Expr& axis) {
    return apply("dim", integer_, {tensor, axis}, {tensor_, integer_});
  }
  Expr shape(const Expr& tensor) { return apply("shape", list_, {tensor}, {tensor_}); }
  /// A shape with one axis left out, and that with an extent put in its place.
  Expr without_axis(const Expr& shape, const Expr& axis) {
    return apply("without_axis", list_, {shape, axis}, {list_, integer_});
  }
  Expr with_axis(const Expr& others, const Expr& axis, const Expr& extent) {
    return apply("with_axis", list_, {others, axis, extent}, {list_, integer_, integer_});
  }
  Expr length(const Expr& list) { return apply("length", integer_, {list}, {list_}); }
  Expr rank(const Expr& tensor) { return apply("rank", integer_, {tensor}, {tensor_}); }
  /// Arithmetic beyond linear is not interpreted; products commute.
  Expr product(const Expr& a, const Expr& b) { return apply("times", integer_, {a, b}, {integer_, integer_}); }
  Expr quotient(const Expr& a, const Expr& b) { return apply("over", integer_, {a, b}, {integer_, integer_}); }
  Expr function_name(const std::string& name) { return context_.constant("fn." + name, symbol_); }

  Expr real_literal(double value) {
    if (std::isfinite(value)) return context_.real(value);
    return context_.constant(std::isnan(value) ? "real.nan" : value > 0 ? "real.inf" : "real.minus_inf", real_);
  }

  /// Output `port` of `op` applied to tensors; attributes are in name order.
  [[nodiscard]] Expr application(const std::string& op, std::uint32_t port, const std::vector<Expr>& tensors,
                                 const std::vector<std::pair<Kindness, Expr>>& attributes);

 private:
  const OperatorRegistry& registry_;
  smt::Context context_;
  smt::Sort tensor_, list_, symbol_, integer_, real_;
  std::map<std::string, smt::Function> functions_;
};

}  // namespace taso::theory
