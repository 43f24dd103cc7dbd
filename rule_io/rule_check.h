/// Operators of a rule file one by one: what they are, and whether a rule can be told at all. Internal to rule_io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rule_io/rule_collection.h"
#include "rule_io/vocabulary.h"
#include "support/status.h"

namespace taso::rule_io {

/// Kinds, numbers of inputs, parameters and their values, and that every operator is used. What follows may rely on it.
[[nodiscard]] Status check_rule(const FileRule& rule);

/// bad_input: "source operator 1 (concat): message".
[[nodiscard]] Error operator_problem(const FileOperator& op, bool is_source, std::size_t number,
                                     const std::string& message);

[[nodiscard]] inline OperatorType type(const FileOperator& op) { return static_cast<OperatorType>(op.type); }
[[nodiscard]] std::optional<std::int32_t> parameter(const FileOperator& op, Parameter key);
/// Of a required parameter, or one that check_rule() has seen.
[[nodiscard]] std::int32_t given(const FileOperator& op, Parameter key);
[[nodiscard]] std::size_t output_count(const FileOperator& op);

/// PM_PERM of a transposition as a permutation, outermost axis first; nothing if it is none.
[[nodiscard]] std::optional<std::vector<std::size_t>> permutation(const FileOperator& op);

}  // namespace taso::rule_io
