/// Machine numbers: doubles, integers of n bits that wrap around, and truth values, as a ring (operators/ring.h). The
/// one over which definitions are evaluated that compute with more than reals.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "operators/evaluate.h"
#include "operators/instance.h"
#include "operators/ring.h"

namespace taso {

/// The ring of one application. Its arithmetic and functions of reals are those of doubles.
class MachineRing {
 public:
  using Element = MachineNumber;
  static constexpr bool folds_extrema = true;
  /// `defined`: values that ONNX leaves open are a failure.
  explicit MachineRing(const MachineTypes& types, bool defined = false) : types_(types), defined_(defined) {}
  static MachineNumber number(double value);
  static MachineNumber add(const MachineNumber& a, const MachineNumber& b) { return {a.real + b.real, 0}; }
  static MachineNumber subtract(const MachineNumber& a, const MachineNumber& b) { return {a.real - b.real, 0}; }
  static MachineNumber multiply(const MachineNumber& a, const MachineNumber& b) { return {a.real * b.real, 0}; }
  static MachineNumber divide(const MachineNumber& a, const MachineNumber& b) { return {a.real / b.real, 0}; }
  [[nodiscard]] MachineNumber call(const FunctionDefinition& function, std::span<const MachineNumber> arguments);
  [[nodiscard]] MachineNumber call(const FunctionDefinition& function, const MachineNumber& x) {
    return call(function, std::span(&x, 1));
  }
  [[nodiscard]] MachineNumber call(const FunctionDefinition& function, const MachineNumber& x, const MachineNumber& y) {
    const MachineNumber arguments[] = {x, y};
    return call(function, arguments);
  }
  static MachineNumber extremum(bool maximum, std::span<const MachineNumber> values);
  static MachineNumber infinity(bool negative) { return {DoubleRing::infinity(negative), 0}; }
  [[nodiscard]] Status status() const { return status_; }

 private:
  MachineTypes types_;
  bool defined_;
  Status status_;
};

/// The types that functions of the application are of.
[[nodiscard]] MachineTypes machine_types(const OperatorInstance& instance);

/// Element `index` of an array of reals, integers or truth values.
[[nodiscard]] MachineNumber load_number(const std::byte* elements, ElementType type, std::size_t index);
/// Writes element `index`: a real rounded, an integer wrapped.
void store_number(std::byte* elements, ElementType type, std::size_t index, const MachineNumber& number);

/// As evaluate_machine_numbers(), and fails where ONNX leaves a value open, so that runtimes differ: what is computed
/// when a model is written must be what its runtime would have computed.
[[nodiscard]] Expected<std::vector<RingTensor<double>>> evaluate_defined(
    const OperatorInstance& instance, std::span<const RingTensor<double>* const> inputs);

}  // namespace taso
