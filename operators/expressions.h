/// Making expressions and looking into them, as composition does before they are checked: sorts are not known yet.
/// Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operators/definition.h"

namespace taso {

/// Neighbouring axes of a tensor.
using Axes = std::vector<AxisSpec>;

[[nodiscard]] Expression name_of(std::string name, const SourceLocation& where, bool rest = false);
[[nodiscard]] Expression integer_of(std::int64_t value, const SourceLocation& where);
/// An expression of a kind that has operands; `name`: of a call.
[[nodiscard]] Expression make(Expression::Kind kind, std::vector<Expression> operands, const SourceLocation& where,
                              std::string name = {});
[[nodiscard]] Expression literal_of(const AttributeValue& value, const SourceLocation& where);

/// The value of an integer made of literals, `+`, `-` and `*`; none beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> constant(const Expression& e);
/// A number, or a list of numbers.
[[nodiscard]] bool is_literal(const Expression& e);
[[nodiscard]] bool same_text(const Expression& a, const Expression& b);
/// The names of sizes that an expression has.
void collect_names(const Expression& e, std::set<std::string>& names);

/// The extent of one axis: the product of its factors.
[[nodiscard]] Expression extent_of(const AxisSpec& axis);
/// The vector of the extents of several axes.
[[nodiscard]] Expression extents_of(const Axes& axes, const SourceLocation& where);

}  // namespace taso
