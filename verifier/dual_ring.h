/// Dual numbers a + b e with e^2 = 0 over any ring: evaluating a definition gives its outputs and their derivatives
/// along a direction, exactly.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operators/evaluate.h"
#include "operators/instance.h"
#include "operators/ring.h"

namespace taso {

/// A value and its derivative along the direction.
template <class Element>
struct DualNumber {
  Element value{}, slope{};
};

/// The ring of dual numbers (operators/ring.h). The derivatives of primitive functions are given: operators of as many
/// inputs without axes as the function has parameters, evaluated over the base ring. An extremum has the slope of the
/// element that it is; where several are and their slopes differ it has none, which is a failure.
template <class Base>
class DualRing {
 public:
  using Element = DualNumber<typename Base::Element>;
  /// The derivatives of a function by its parameters; null where they are not known.
  using Derivatives = std::function<const std::vector<OperatorInstance>*(const std::string& function)>;

  /// The base must outlive the ring.
  DualRing(Base& base, Derivatives derivatives) : base_(base), derivatives_(std::move(derivatives)) {}

  Element number(double value) { return {base_.number(value), base_.number(0)}; }
  Element add(const Element& a, const Element& b) { return {base_.add(a.value, b.value), base_.add(a.slope, b.slope)}; }
  Element subtract(const Element& a, const Element& b) {
    return {base_.subtract(a.value, b.value), base_.subtract(a.slope, b.slope)};
  }
  Element multiply(const Element& a, const Element& b) {
    return {base_.multiply(a.value, b.value),
            base_.add(base_.multiply(a.value, b.slope), base_.multiply(a.slope, b.value))};
  }
  Element divide(const Element& a, const Element& b) {
    const auto quotient = base_.divide(a.value, b.value);
    return {quotient, base_.divide(base_.subtract(a.slope, base_.multiply(quotient, b.slope)), b.value)};
  }
  Element call(const FunctionDefinition& function, const Element& x) {
    const std::vector<OperatorInstance>* partial = find(function);
    return {base_.call(function, x.value), partial == nullptr ? x.slope : along((*partial)[0], {x.value}, x.slope)};
  }
  Element call(const FunctionDefinition& function, const Element& x, const Element& y) {
    const std::vector<OperatorInstance>* partial = find(function);
    if (partial == nullptr) return {base_.call(function, x.value, y.value), x.slope};
    return {base_.call(function, x.value, y.value), base_.add(along((*partial)[0], {x.value, y.value}, x.slope),
                                                              along((*partial)[1], {x.value, y.value}, y.slope))};
  }
  Element extremum(bool maximum, std::span<const Element> set) {
    std::vector<typename Base::Element> values;
    for (const Element& element : set) values.push_back(element.value);
    const auto value = base_.extremum(maximum, values);
    std::optional<typename Base::Element> slope;
    for (const Element& element : set) {
      if (!(element.value == value)) continue;
      if (slope && !(*slope == element.slope)) fail("several elements are the extremum");
      slope = element.slope;
    }
    if (!slope) fail("an extremum is none of its elements");
    return {value, slope.value_or(base_.number(0))};
  }
  Element infinity(bool negative) { return {base_.infinity(negative), base_.number(0)}; }
  [[nodiscard]] Status status() const { return status_ ? base_.status() : status_; }

 private:
  const std::vector<OperatorInstance>* find(const FunctionDefinition& function) {
    const std::vector<OperatorInstance>* found = derivatives_(function.name);
    if (found == nullptr) fail("no table has a derivative of " + function.name);
    return found;
  }
  /// A derivative at a point, times a slope; a slope of 0 asks for no value.
  typename Base::Element along(const OperatorInstance& partial, const std::vector<typename Base::Element>& point,
                               const typename Base::Element& slope) {
    if (slope == base_.number(0)) return slope;
    std::vector<RingTensor<typename Base::Element>> inputs;
    for (const auto& x : point) inputs.push_back({{}, {x}, {}});
    std::vector<const RingTensor<typename Base::Element>*> pointers;
    for (const auto& input : inputs) pointers.push_back(&input);
    const auto result = evaluate(partial, base_, std::span<const RingTensor<typename Base::Element>* const>(pointers));
    if (result) return base_.multiply((*result)[0].elements[0], slope);
    if (status_) status_ = result.error();
    return slope;
  }
  void fail(const std::string& what) {
    if (status_) status_ = bad_input(what);
  }

  Base& base_;
  Derivatives derivatives_;
  Status status_;
};

}  // namespace taso
