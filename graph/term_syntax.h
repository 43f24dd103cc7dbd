/// Syntax trees of terms and attribute expressions, shared by the parsers of rules and of graphs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "support/lexer.h"

namespace taso {

/// An attribute expression as written; names are not resolved yet.
struct ExpressionSyntax {
  enum class Kind : std::uint8_t {
    integer,
    real,       ///< `integer`, `real`.
    name,       ///< `name`.
    list,       ///< [operands...].
    dimension,  ///< dim(name, operands[0]).
    rank,       ///< rank(name).
    value,      ///< value(name): in maps of nodes, the one element of a constant tensor.
    length,     ///< length(operands[0]).
    element,    ///< operands[0][integer].
    binary,     ///< operands[0] `operation` operands[1].
  };
  Kind kind = Kind::integer;
  SourceLocation where;
  std::int64_t integer = 0;
  double real = 0;
  std::string name;
  AttributeExpression::Kind operation = AttributeExpression::Kind::add;  ///< Kind binary.
  std::vector<ExpressionSyntax> operands;
};

/// A term as written: `name`, or `name(arguments...; attributes...)`, either followed by `.port`.
struct TermSyntax {
  struct Attribute {
    std::string name;
    ExpressionSyntax value;
    SourceLocation where;
  };
  std::string name;
  SourceLocation where;
  bool is_application = false;
  std::vector<TermSyntax> arguments;
  std::vector<Attribute> attributes;
  std::optional<std::uint32_t> port;
};

/// Parses one term; fails where it is nested deeper than a person would write.
[[nodiscard]] Expected<TermSyntax> parse_term(TokenCursor& cursor);
/// Parses one attribute expression.
[[nodiscard]] Expected<ExpressionSyntax> parse_expression(TokenCursor& cursor);

/// "integer", "real number", "list of integers", "function name".
[[nodiscard]] const char* describe(AttributeKind kind);
/// "reads 2 inputs", "reads at least 1 input": what the number of inputs of an operator must be, or an empty text if
/// `count` is right.
[[nodiscard]] std::string arity_problem(const OperatorSignature& signature, std::size_t count);
/// "strides, pads, dilations", for messages.
[[nodiscard]] std::string attribute_names(const OperatorSignature& signature);

}  // namespace taso
