/// What a generated kernel computes of floating-point elements, while its text is written (source_steps.h): values,
/// numbered in the order in which they are made. A line makes one, by a load or from others, or stores one; in the text
/// value n is the constant float `vn`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/kernel_writer.h"
#include "runtime/cuda/program.h"

namespace taso::cuda {

/// What a value is called in the text.
[[nodiscard]] std::string of_value(int value);

/// A line of what is computed of an element.
struct ElementLine {
  enum class Kind : std::uint8_t { load, compute, store };
  Kind kind = Kind::load;
  int value = 0;            ///< Made, or stored.
  std::size_t operand = 0;  ///< Loaded: a source; stored: a target.
  std::string text;         ///< What is computed.
  std::vector<int> reads;   ///< Values in it.
};

/// What is computed of an element, in the order of lines. Functions that add a line that makes a value return it.
class ElementLines {
 public:
  int load(std::size_t source);
  int compute(std::string text, std::vector<int> reads);
  int unary(Function function, int x, float p = 0, float q = 0);
  int binary(Binary function, int x, int y);
  void store(std::size_t target, int value);
  /// A value that comes from elsewhere.
  int given() { return made_++; }
  /// Copies instructions [first, last) from registers to values: `place` is the value of each register.
  void add(const ElementCode& code, int first, int last, std::array<int, max_registers>& place);

  /// Leaves out what nothing reads but what is left out; `read`: what is read besides. `keeps` goes on to mean the same
  /// line.
  void prune(std::set<int> read, std::size_t& keeps);
  /// Numbers sources anew: 0, 1, ... in the order of the first line that loads them. The old number of each.
  std::vector<std::size_t> renumber_sources();

  [[nodiscard]] std::span<const ElementLine> all() const { return lines_; }

 private:
  int add(ElementLine line);

  std::vector<ElementLine> lines_;
  int made_ = 0;
};

/// An operand of a kernel: where it lies, along the axes of the index space and along those of a row.
struct PlacedOperand {
  Slot slot;
  std::vector<std::int64_t> strides, along;
};

/// Operands of one type that have an index space in common, and what is computed of their elements.
struct LineKernel {
  ElementType element = ElementType::f32;
  std::vector<std::int64_t> extents;
  std::vector<PlacedOperand> sources, targets;
  ElementLines code;

  /// Takes operands of a chain, whose code has their strides along `rank` axes.
  void place(const ChainOperands& operands, const ElementCode& strides, int rank);
  /// Leaves out sources that nothing loads.
  void keep_used_sources();
};

/// The lines for every element of a box of `extents`.
struct ElementKernel : LineKernel {};

/// The operands as parameters, sources, then targets: their names. `packed`: those that vary along the innermost axis
/// have to begin at multiples of 16 bytes.
[[nodiscard]] std::vector<std::string> name_operands(KernelWriter& writer, const LineKernel& kernel,
                                                     bool packed = false);

/// Writes lines. `loaded(source)` is the float that a load makes, `storing(target, value)` the assignment of a store.
void write_lines(KernelWriter& writer, std::span<const ElementLine> lines,
                 const std::function<std::string(std::size_t)>& loaded,
                 const std::function<std::string(std::size_t, const std::string&)>& storing);
/// The same where each load and store is one element of an operand's memory, at the index that `at` tells of it.
/// `names` are those of pointers, of sources, then targets.
void write_lines(KernelWriter& writer, std::span<const ElementLine> lines, const LineKernel& kernel,
                 const std::vector<std::string>& names, const std::function<std::string(const PlacedOperand&)>& at);

/// The number of elements of a box.
[[nodiscard]] std::int64_t elements_in(std::span<const std::int64_t> extents);

}  // namespace taso::cuda
