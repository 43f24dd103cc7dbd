/// An operator application as a straight-line program.
///
/// The evaluator of specifications (operators/evaluate.h) walks a loop nest; the generator evaluates one application
/// millions of times. It is therefore evaluated once over a ring that writes down what is computed (`TapeRing`), and
/// the recording, a *tape*, is run from then on. The tape also tells on which arguments the result depends linearly,
/// and gives the derivative of any linear functional of the outputs (reverse accumulation; Griewank and Walther,
/// "Evaluating Derivatives", 2008, chapter 3), which is how a fingerprint is had without its tensor.
///
/// Registers: the elements of all arguments in all worlds, then constants, then one per instruction. Register numbers
/// of operands are smaller than that of the result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "operators/evaluate.h"

namespace taso {

struct Tape {
  enum class Op : std::uint8_t { add, subtract, multiply, divide, call, call2, maximum, minimum };
  struct Instruction {
    Op op = Op::add;
    std::uint32_t a = 0, b = 0;  ///< Registers; of an extremum the first entry in `sets` and their number.
    std::uint32_t function = 0;  ///< Entry of `functions`.
  };
  std::vector<std::uint32_t> arguments;  ///< First register of each argument, then the number of argument registers.
  std::vector<Mod61> constants;
  std::vector<double> real_constants;  ///< The same constants as real numbers.
  std::vector<Instruction> code;
  std::vector<std::uint32_t> sets;
  std::vector<const FunctionDefinition*> functions;
  std::vector<std::vector<std::uint32_t>> outputs;  ///< Per output, the register of each element, world by world.
  bool separable = false;                           ///< Every output is affine in all arguments together.
  bool bilinear = false;  ///< Two arguments, and every output is affine in each while the other is fixed.

  [[nodiscard]] std::size_t registers() const { return arguments.back() + constants.size() + code.size(); }
  [[nodiscard]] std::size_t argument_size(std::size_t argument) const {
    return arguments[argument + 1] - arguments[argument];
  }

  /// Fills `values` (one per register) for the given arguments. False where a division by zero occurs.
  [[nodiscard]] bool run(std::span<const Mod61* const> inputs, const FieldRing& ring, std::vector<Mod61>& values) const;
  /// Derivatives of `sum of functional[i] * output[port][i]` by every argument register, at the values of a run.
  /// Meaningful for arguments in which the output is affine.
  void derive(std::size_t port, std::span<const Mod61> functional, const std::vector<Mod61>& values,
              std::vector<Mod61>& adjoints) const;
};

/// Records one application in every world. Empty if the tape would be longer than `max_length`, or the application
/// cannot be evaluated (integer arguments, a division by the number 0).
[[nodiscard]] std::optional<Tape> record_tape(std::span<const OperatorInstance> worlds, const FieldRing& field,
                                              std::size_t max_length = 4'000'000);

/// sum of a[i] * b[i].
[[nodiscard]] inline Mod61 dot(const Mod61* a, const Mod61* b, std::size_t count) {
  __extension__ using Wide = unsigned __int128;
  Wide total = 0;
  std::size_t i = 0;
  while (i < count) {
    // Each product is below 2^122: 32 of them and a remainder below 2^68 fit into 128 bits.
    const std::size_t end = count - i > 32 ? i + 32 : count;
    for (; i < end; ++i) total += static_cast<Wide>(a[i].value()) * b[i].value();
    total = (total & Mod61::prime) + (total >> 61);
  }
  total = (total & Mod61::prime) + (total >> 61);
  return Mod61::from_bits(static_cast<std::uint64_t>(total));
}

}  // namespace taso
