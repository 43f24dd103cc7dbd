/// Arithmetic on sizes and indices at concrete shapes: every index expression of the language is an affine function of
/// loop variables with known coefficients, a size is one without variables. Private to the folder.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "operators/lowered_body.h"
#include "support/status.h"

namespace taso {

/// A vector of sizes; the usual ones are in place.
using Sizes = absl::InlinedVector<std::int64_t, 6>;

/// A scalar (one component) or a vector.
struct IndexValue {
  bool vector = false;
  absl::InlinedVector<Affine, 1> components;

  static IndexValue of(std::int64_t value) { return {false, {Affine{value, {}}}}; }
  static IndexValue of(std::span<const std::int64_t> values);
};

/// What names stand for; inner declarations are at the back. Names are those of a definition, which outlives this.
class Environment {
 public:
  [[nodiscard]] const IndexValue* find(std::string_view name) const;
  [[nodiscard]] IndexValue* find(std::string_view name);
  void bind(std::string_view name, IndexValue value) { entries_.emplace_back(name, std::move(value)); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  void shrink(std::size_t size) {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(size), entries_.end());
  }

 private:
  absl::InlinedVector<std::pair<std::string_view, IndexValue>, 16> entries_;
};

/// Smallest and largest value of an affine function whose variables range over [0, extents[v]), extents positive.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> interval(const Affine& affine,
                                                             const std::vector<std::int64_t>& extents);

/// Evaluates checked expressions. The first failure (a division by zero, a vector of the wrong length, an overflow)
/// is kept in status(); values after it are meaningless but harmless.
class IndexEvaluator {
 public:
  using SizeFunctions = std::map<std::string, SizeFunction, std::less<>>;
  IndexEvaluator(const SizeFunctions& functions, const Environment& environment, const Attributes& attributes,
                 const std::vector<std::int64_t>* loop_extents = nullptr)
      : functions_(functions), environment_(&environment), attributes_(attributes), loop_extents_(loop_extents) {}

  [[nodiscard]] IndexValue value(const Expression& expression);
  /// A size.
  [[nodiscard]] std::int64_t integer(const Expression& expression);
  /// A vector of sizes.
  [[nodiscard]] Sizes integers(const Expression& expression);
  /// A condition on sizes.
  [[nodiscard]] bool condition(const Expression& expression);
  [[nodiscard]] const Status& status() const { return status_; }
  void clear_status() {
    if (!status_) status_ = {};
  }

  Affine add(const Affine& a, const Affine& b, const Expression& where);
  Affine scale(const Affine& a, std::int64_t factor, const Expression& where);

 private:
  const IndexValue& named(const Expression& expression) const;
  void fail(const Expression& expression, const std::string& what);
  std::int64_t constant(const Affine& affine, const Expression& where);
  Sizes constants(const IndexValue& value, const Expression& where);
  std::int64_t combine(const Expression& expression, std::int64_t a, std::int64_t b);
  IndexValue call(const Expression& expression);
  IndexValue arithmetic(const Expression& expression);
  Affine combine(const Expression& expression, const Affine& a, const Affine& b);
  double real(const Expression& expression);

  const SizeFunctions& functions_;
  const Environment* environment_;
  const Attributes& attributes_;
  const std::vector<std::int64_t>* loop_extents_;
  Status status_;
};

}  // namespace taso
