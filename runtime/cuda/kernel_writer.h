/// One kernel of a generated text (source.h) while it is written, and the functions that such texts call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/tensor_type.h"
#include "runtime/cuda/functions.h"
#include "runtime/cuda/program.h"
#include "runtime/cuda/source.h"
#include "runtime/cuda/walk.h"

namespace taso::cuda {

/// The type of a floating-point element in generated text: "float", "Half", "BFloat16".
[[nodiscard]] const char* type_of(ElementType element);
/// The type of elements of so many bytes that only move.
[[nodiscard]] const char* type_of_width(std::size_t width);
/// A float as C++ writes it, the same number.
[[nodiscard]] std::string literal(float value);
/// An element as a float, from an expression for it; and back.
[[nodiscard]] std::string widened(ElementType element, const std::string& expression);
[[nodiscard]] std::string narrowed(ElementType element, const std::string& expression);
/// How many elements 16 bytes hold.
[[nodiscard]] std::int64_t pack_of(ElementType element);
/// The statement that loads so many elements from an address into an array of floats; and back.
[[nodiscard]] std::string loading_pack(ElementType element, const std::string& address, const std::string& array);
[[nodiscard]] std::string storing_pack(ElementType element, const std::string& address, const std::string& array);
/// f(x); p and q are clip's bounds.
[[nodiscard]] std::string text_of(Function function, const std::string& x, float p = 0, float q = 0);
/// f(x, y).
[[nodiscard]] std::string text_of(Binary function, const std::string& x, const std::string& y);

/// The definitions of types and functions that `kernels` use, and of those that these use.
[[nodiscard]] std::string definitions_for(std::string_view kernels);

/// Extents of a Walk or Box, and strides of a walk's function, one per axis.
template <class Space>
[[nodiscard]] std::vector<std::int64_t> extents_of(const Space& space) {
  return {space.extents, space.extents + space.rank};
}
template <int K>
[[nodiscard]] std::vector<std::int64_t> strides_of_walk(const Walk<K>& walk, int function) {
  return {walk.strides[function], walk.strides[function] + walk.rank};
}

/// Writes a kernel line by line. Indices are ints where all that is added up of them fits, else long longs.
class KernelWriter {
 public:
  explicit KernelWriter(std::string name) { kernel_.name = std::move(name); }

  /// A parameter that points to elements of a type; its name. `alignment`: what it has to be a multiple of.
  std::string reads(const Slot& slot, const std::string& type, std::size_t alignment = 1);
  std::string writes(const Slot& slot, const std::string& type, std::size_t alignment = 1);
  /// The two parameters of a kernel that notes errors: `error` and `number`.
  void note_errors() { kernel_.notes_errors = true; }

  /// Tells of numbers that indices go up to, each the sum over axes of extents and strides, and of others.
  void span_over(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides, std::int64_t more = 0);
  /// The same of all functions of a walk.
  template <int K>
  void span_over(const Walk<K>& walk, std::int64_t more = 0) {
    for (int function = 0; function < K; ++function) span_over(extents_of(walk), strides_of_walk(walk, function), more);
  }
  [[nodiscard]] const char* index_type() const { return wide_ ? "long long" : "int"; }
  /// A number among indices.
  [[nodiscard]] std::string number(std::int64_t value) const;

  void line(const std::string& text);
  void open(const std::string& text) {
    line(text + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }

  /// Declares the coordinates of the element of a box that has the number `index` (an expression, of index_type()):
  /// their names. Nothing is declared where there is one axis.
  [[nodiscard]] std::vector<std::string> coordinates(const std::string& prefix, const std::string& index,
                                                     std::span<const std::int64_t> extents);
  /// The sum of coordinates times strides; "0" if there is none.
  [[nodiscard]] std::string sum(const std::vector<std::string>& coordinates,
                                std::span<const std::int64_t> strides) const;
  /// The value of a walk's function at coordinates of its space.
  template <int K>
  [[nodiscard]] std::string sum(const std::vector<std::string>& coordinates, const Walk<K>& walk, int function) const {
    return sum(coordinates, strides_of_walk(walk, function));
  }

  /// Begins a kernel of the kind *each* with `count` calls: declares `i`, and returns where there is no such call.
  void begin_each(std::int64_t count);
  /// Begins a kernel of teams (elements.h): declares `begin` and, if it is used, `row`, and returns or goes along where
  /// there is no such row. A thread's elements are begin, begin + team_step, ... below the `count` of a row.
  /// `exchanges`: whether teams sum or compare.
  void begin_team(std::int64_t rows, std::int64_t count, TeamShape shape, bool uses_row, bool exchanges = true);
  /// Opens a loop over a thread's elements of a row: `i`.
  void open_row(std::int64_t count);
  /// The condition that is true in one thread of a team that has a row.
  [[nodiscard]] std::string leads() const;
  [[nodiscard]] int team_step() const;
  /// The sum or maximum over the team.
  [[nodiscard]] std::string team_sum(const std::string& x) const { return of_team("sum", x); }
  [[nodiscard]] std::string team_maximum(const std::string& x) const { return of_team("maximum", x); }
  /// A kernel of blocks that wait for their threads.
  void begin_blocks(std::int64_t blocks);

  /// The whole kernel; the writer is of no more use.
  [[nodiscard]] std::string text() const;
  /// The same as a function that a kernel calls in each of its blocks; its last parameter is the number of the block
  /// among those that are for it.
  [[nodiscard]] std::string text_of_function() const;
  /// The same kernel, its operands numbered as a whole's: of its input and output i, that whole's inputs[i] and
  /// outputs[i].
  [[nodiscard]] KernelWriter with_operands(std::span<const std::uint32_t> inputs,
                                           std::span<const std::uint32_t> outputs) const;
  /// A kernel in which each of several has blocks of its own, which call its function. The kernels note no errors.
  [[nodiscard]] static KernelWriter beside(std::string name, std::span<const KernelWriter* const> kernels);
  [[nodiscard]] GeneratedKernel kernel() const { return kernel_; }

 private:
  [[nodiscard]] std::string of_team(const std::string& function, const std::string& x) const;
  std::string add_parameter(const Slot& slot, const std::string& type, std::size_t alignment, char letter);
  [[nodiscard]] std::vector<std::string> declarations() const;

  GeneratedKernel kernel_;
  std::vector<std::string> parameter_types_, parameter_names_;
  std::string body_;
  int depth_ = 1;
  bool wide_ = false;
  TeamShape shape_ = TeamShape::warp;
};

}  // namespace taso::cuda
