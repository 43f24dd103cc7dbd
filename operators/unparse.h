/// Definitions as text again, for messages and generated documentation. Private to the folder.
#pragma once

#include <span>
#include <string>

#include "operators/definition.h"

namespace taso {

[[nodiscard]] std::string to_text(const Expression& expression);
/// "log(x * y) = log(x) + log(y) where x > 0".
[[nodiscard]] std::string to_text(const FunctionLaw& law);
/// "(g*c)", "B..", "h".
[[nodiscard]] std::string to_text(const AxisSpec& axis);
/// "[n, (g*c), h, w]".
[[nodiscard]] std::string to_text(std::span<const AxisSpec> axes);

/// "matmul(softmax(s; axis=-1), v)".
[[nodiscard]] std::string to_text(const Application& application);

/// "integer x[n, c]".
[[nodiscard]] std::string to_text(const InputSpec& input);
/// The head of a definition: "relu(x[B..]) -> [B..]".
[[nodiscard]] std::string to_text(const OperatorDefinition& definition);
/// All of a definition that says which types it takes and gives: head, sizes and requirements.
[[nodiscard]] std::string typing_text(const OperatorDefinition& definition);

}  // namespace taso
