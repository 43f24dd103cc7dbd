#include "graph/term_syntax.h"

#include <charconv>
#include <limits>

namespace taso {
namespace {

constexpr int max_depth = 100;

class TermParser {
 public:
  explicit TermParser(TokenCursor& cursor) : cursor_(cursor) {}

  Expected<TermSyntax> term(int depth) {
    TASO_RETURN_IF_ERROR(check_depth(depth));
    TermSyntax result;
    result.where = cursor_.peek().where;
    TASO_ASSIGN(result.name, cursor_.expect_identifier("a tensor or an operator"));
    if (cursor_.accept("(")) {
      result.is_application = true;
      TASO_RETURN_IF_ERROR(arguments(result, depth));
    }
    if (cursor_.accept(".")) {
      const SourceLocation where = cursor_.peek().where;
      TASO_ASSIGN(const std::int64_t port, cursor_.expect_integer("the number of an output after '.'"));
      if (port < 0 || port > std::numeric_limits<std::int32_t>::max())
        return bad_input("output number " + std::to_string(port) + " is out of range", where);
      result.port = static_cast<std::uint32_t>(port);
    }
    return result;
  }

  Expected<ExpressionSyntax> expression(int depth) {
    TASO_RETURN_IF_ERROR(check_depth(depth));
    TASO_ASSIGN(ExpressionSyntax left, product(depth));
    while (cursor_.at("+") || cursor_.at("-")) {
      const SourceLocation where = cursor_.peek().where;
      const bool plus = cursor_.next().text == "+";
      TASO_ASSIGN(ExpressionSyntax right, product(depth));
      left = binary(plus ? AttributeExpression::Kind::add : AttributeExpression::Kind::subtract, std::move(left),
                    std::move(right), where);
      TASO_RETURN_IF_ERROR(check_depth(++depth));
    }
    return left;
  }

 private:
  Status check_depth(int depth) const {
    if (depth > max_depth)
      return bad_input("nested more than " + std::to_string(max_depth) + " deep; name parts by 'where'",
                       cursor_.peek().where);
    return {};
  }

  static ExpressionSyntax binary(AttributeExpression::Kind operation, ExpressionSyntax left, ExpressionSyntax right,
                                 SourceLocation where) {
    ExpressionSyntax result;
    result.kind = ExpressionSyntax::Kind::binary;
    result.operation = operation;
    result.where = std::move(where);
    result.operands.push_back(std::move(left));
    result.operands.push_back(std::move(right));
    return result;
  }

  Status arguments(TermSyntax& result, int depth) {
    if (!cursor_.at(";") && !cursor_.at(")")) {
      do {
        TASO_ASSIGN(TermSyntax argument, term(depth + 1));
        result.arguments.push_back(std::move(argument));
      } while (cursor_.accept(","));
    }
    if (cursor_.accept(";")) {
      do {
        TermSyntax::Attribute attribute;
        attribute.where = cursor_.peek().where;
        TASO_ASSIGN(attribute.name, cursor_.expect_identifier("the name of an attribute of " + result.name));
        for (const TermSyntax::Attribute& other : result.attributes)
          if (other.name == attribute.name)
            return bad_input("attribute " + attribute.name + " of " + result.name + " is given twice", attribute.where);
        TASO_RETURN_IF_ERROR(cursor_.expect("=", "after attribute " + attribute.name));
        TASO_ASSIGN(attribute.value, expression(depth + 1));
        result.attributes.push_back(std::move(attribute));
      } while (cursor_.accept(","));
    }
    return cursor_.expect(")", "or ',' in " + result.name + "(...)");
  }

  Expected<ExpressionSyntax> product(int depth) {
    TASO_ASSIGN(ExpressionSyntax left, factor(depth));
    while (cursor_.at("*") || cursor_.at("//")) {
      const SourceLocation where = cursor_.peek().where;
      const bool times = cursor_.next().text == "*";
      TASO_ASSIGN(ExpressionSyntax right, factor(depth));
      left = binary(times ? AttributeExpression::Kind::multiply : AttributeExpression::Kind::floor_divide,
                    std::move(left), std::move(right), where);
      TASO_RETURN_IF_ERROR(check_depth(++depth));
    }
    return left;
  }

  // A factor: a sign, a primary, list elements.
  Expected<ExpressionSyntax> factor(int depth) {
    const SourceLocation where = cursor_.peek().where;
    if (cursor_.at("-") && cursor_.peek(1).kind != TokenKind::integer) {
      cursor_.next();
      TASO_RETURN_IF_ERROR(check_depth(depth));
      TASO_ASSIGN(ExpressionSyntax operand, factor(depth + 1));
      if (operand.kind == ExpressionSyntax::Kind::real) {
        operand.real = -operand.real;
        operand.where = where;
        return operand;
      }
      ExpressionSyntax zero;
      zero.where = where;
      return binary(AttributeExpression::Kind::subtract, std::move(zero), std::move(operand), where);
    }
    TASO_ASSIGN(ExpressionSyntax result, primary(depth));
    while (cursor_.at("[")) {
      ExpressionSyntax element;
      element.kind = ExpressionSyntax::Kind::element;
      element.where = cursor_.next().where;
      TASO_ASSIGN(element.integer, cursor_.expect_integer("the number of a list element"));
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the number of a list element"));
      TASO_RETURN_IF_ERROR(check_depth(++depth));
      element.operands.push_back(std::move(result));
      result = std::move(element);
    }
    return result;
  }

  Expected<ExpressionSyntax> primary(int depth) {
    ExpressionSyntax result;
    result.where = cursor_.peek().where;
    if (cursor_.peek().kind == TokenKind::real) {
      const std::string digits = cursor_.next().text;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.real);
      if (error != std::errc{}) return bad_input("real number " + digits + " is out of range", result.where);
      result.kind = ExpressionSyntax::Kind::real;
      return result;
    }
    if (cursor_.accept("(")) {
      TASO_ASSIGN(result, expression(depth + 1));
      TASO_RETURN_IF_ERROR(cursor_.expect(")", "after an expression"));
      return result;
    }
    if (cursor_.accept("[")) {
      result.kind = ExpressionSyntax::Kind::list;
      if (!cursor_.at("]")) {
        do {
          TASO_ASSIGN(ExpressionSyntax element, expression(depth + 1));
          result.operands.push_back(std::move(element));
        } while (cursor_.accept(","));
      }
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "or ',' in a list"));
      return result;
    }
    if (cursor_.peek().kind == TokenKind::identifier) {
      result.name = cursor_.next().text;
      result.kind = ExpressionSyntax::Kind::name;
      if (result.name == "inf" || result.name == "nan") {
        result.kind = ExpressionSyntax::Kind::real;
        result.real =
            result.name == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      }
      if (result.name == "length" && cursor_.at("(")) {
        cursor_.next();
        result.kind = ExpressionSyntax::Kind::length;
        TASO_ASSIGN(ExpressionSyntax list, expression(depth + 1));
        result.operands.push_back(std::move(list));
        TASO_RETURN_IF_ERROR(cursor_.expect(")", "after length(..."));
        return result;
      }
      if (result.name == "value" && cursor_.accept("(")) {
        result.kind = ExpressionSyntax::Kind::value;
        TASO_ASSIGN(result.name, cursor_.expect_identifier("a tensor in value(...)"));
        TASO_RETURN_IF_ERROR(cursor_.expect(")", "after value(..."));
        return result;
      }
      if ((result.name == "dim" || result.name == "rank") && cursor_.at("(")) {
        cursor_.next();
        const bool rank = result.name == "rank";
        result.kind = rank ? ExpressionSyntax::Kind::rank : ExpressionSyntax::Kind::dimension;
        TASO_ASSIGN(result.name, cursor_.expect_identifier(rank ? "a tensor in rank(...)" : "a tensor in dim(...)"));
        if (!rank) {
          TASO_RETURN_IF_ERROR(cursor_.expect(",", "before the axis in dim(...)"));
          TASO_ASSIGN(ExpressionSyntax axis, expression(depth + 1));
          result.operands.push_back(std::move(axis));
        }
        TASO_RETURN_IF_ERROR(cursor_.expect(")", rank ? "after rank(..." : "after dim(..."));
      }
      return result;
    }
    if (cursor_.peek().kind == TokenKind::integer || cursor_.at("-")) {
      TASO_ASSIGN(result.integer, cursor_.expect_integer("an attribute value"));
      return result;
    }
    return cursor_.unexpected("an attribute value");
  }

  TokenCursor& cursor_;
};

}  // namespace

Expected<TermSyntax> parse_term(TokenCursor& cursor) { return TermParser(cursor).term(0); }
Expected<ExpressionSyntax> parse_expression(TokenCursor& cursor) { return TermParser(cursor).expression(0); }

const char* describe(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::integer:
      return "an integer";
    case AttributeKind::real:
      return "a real number";
    case AttributeKind::integers:
      return "a list of integers";
    case AttributeKind::symbol:
      return "the name of a function";
  }
  return "?";
}

std::string arity_problem(const OperatorSignature& signature, std::size_t count) {
  if (count >= signature.min_inputs && count <= signature.max_inputs) return "";
  std::string text = signature.min_inputs == signature.max_inputs ? "reads "
                     : count < signature.min_inputs               ? "reads at least "
                                                                  : "reads at most ";
  const std::size_t bound = count < signature.min_inputs ? signature.min_inputs : signature.max_inputs;
  return text + std::to_string(bound) + (bound == 1 ? " tensor" : " tensors") + ", here are " + std::to_string(count);
}

std::string attribute_names(const OperatorSignature& signature) {
  std::string text;
  for (const AttributeSignature& attribute : signature.attributes) text += (text.empty() ? "" : ", ") + attribute.name;
  return text.empty() ? "none" : text;
}

}  // namespace taso
