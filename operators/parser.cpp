#include "operators/parser.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <utility>

#include "operators/table_expressions.h"
#include "operators/unparse.h"
#include "support/lexer.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

constexpr std::array<std::string_view, 4> reductions = {"sum", "prod", "max", "min"};
constexpr std::array<std::string_view, 12> keywords = {"function", "operator", "law",  "let",  "require", "for",
                                                       "where",    "if",       "then", "else", "or",      "inf"};

bool is_keyword(std::string_view text) { return std::find(keywords.begin(), keywords.end(), text) != keywords.end(); }

/// A recursive-descent parser; one function per production of the grammar in docs/spec-language.md.
class Parser {
 public:
  explicit Parser(TokenCursor cursor) : cursor_(std::move(cursor)) {}

  /// One expression and no more.
  Expected<Expression> single_expression() { return expression(); }
  /// Where it stands.
  TokenCursor take_cursor() { return std::move(cursor_); }

  Expected<ParsedSpecification> file() {
    ParsedSpecification result;
    while (!cursor_.at_end()) {
      tensors_.clear();
      if (cursor_.at("function")) {
        TASO_ASSIGN(FunctionDefinition definition, function());
        result.functions.push_back(std::move(definition));
      } else if (cursor_.at("size")) {
        TASO_ASSIGN(SizeFunction definition, size_function());
        result.size_functions.push_back(std::move(definition));
      } else if (cursor_.at("operator")) {
        TASO_ASSIGN(OperatorDefinition definition, operator_definition());
        result.operators.push_back(std::move(definition));
      } else {
        return cursor_.unexpected("'operator', 'function' or 'size'");
      }
    }
    return result;
  }

 private:
  /// Deeper nesting than this is refused, so that no input exhausts the stack.
  static constexpr int max_depth = 100;
  static constexpr int max_operators = 1000;

  struct Depth {
    int& depth;
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
  };

  Expected<std::string> new_name(std::string_view what) {
    if (is_keyword(cursor_.peek().text) && cursor_.peek().kind == TokenKind::identifier)
      return bad_input("'" + cursor_.peek().text + "' is a word of the language and cannot be " + std::string(what),
                       cursor_.peek().where);
    return cursor_.expect_identifier(what);
  }

  /// The word for a domain before a name or axes, if there is one; else real.
  ElementDomain element_domain() {
    const bool before = cursor_.peek(1).kind == TokenKind::identifier || cursor_.peek(1).text == "[";
    for (const ElementDomain domain : {ElementDomain::integer, ElementDomain::boolean, ElementDomain::any})
      if (before && cursor_.peek().kind == TokenKind::identifier && cursor_.peek().text == to_string(domain)) {
        cursor_.next();
        return domain;
      }
    return ElementDomain::real;
  }

  /// With `domains` each may have a domain.
  Expected<std::vector<std::string>> parameters(std::vector<ElementDomain>* domains = nullptr) {
    std::vector<std::string> names;
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the parameters"));
    do {
      if (domains != nullptr) domains->push_back(element_domain());
      TASO_ASSIGN(std::string name, new_name("a parameter name"));
      if (std::find(names.begin(), names.end(), name) != names.end())
        return bad_input("parameter '" + name + "' occurs twice", cursor_.peek().where);
      names.push_back(std::move(name));
    } while (cursor_.accept(","));
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the parameters"));
    return names;
  }

  std::string documentation() {
    std::string text;
    while (cursor_.peek().kind == TokenKind::string) text += (text.empty() ? "" : " ") + cursor_.next().text;
    return text;
  }

  Expected<FunctionDefinition> function() {
    FunctionDefinition result;
    cursor_.next();
    result.where = cursor_.peek().where;
    TASO_ASSIGN(result.name, new_name("a function name"));
    TASO_ASSIGN(result.parameters, parameters(&result.parameter_domains));
    result.arity = static_cast<int>(result.parameters.size());
    if (cursor_.accept("->")) {
      const SourceLocation where = cursor_.peek().where;
      TASO_ASSIGN(const std::string word, cursor_.expect_identifier("what the value is"));
      for (const ElementDomain domain : {ElementDomain::integer, ElementDomain::boolean, ElementDomain::any})
        if (word == to_string(domain)) result.result = domain;
      if (result.result == ElementDomain::real)
        return bad_input("the value of '" + result.name + "' must be 'integer', 'boolean' or 'any', not '" + word + "'",
                         where);
    }
    if (result.is_real() && result.arity > 2)
      return bad_input("function '" + result.name + "' has " + std::to_string(result.arity) +
                           " parameters; a scalar function has one or two",
                       result.where);
    if (cursor_.accept("=")) {
      TASO_ASSIGN(result.definition, expression());
    }
    if (cursor_.accept(":")) {
      do {
        const Token fact = cursor_.peek();
        if (fact.text == "zero_at_zero")
          result.zero_at_zero = true;
        else if (fact.text == "monotone")
          result.monotone = true;
        else if (fact.text == "idempotent")
          result.idempotent = true;
        else if (fact.text == "positive")
          result.positive = true;
        else if (fact.text == "nonnegative")
          result.nonnegative = true;
        else if (fact.text == "on_positive")
          result.domain = ArgumentDomain::positive;
        else if (fact.text == "on_nonnegative")
          result.domain = ArgumentDomain::nonnegative;
        else if (fact.text == "on_nonzero")
          result.domain = ArgumentDomain::nonzero;
        else
          return cursor_.unexpected(
              "a fact: 'zero_at_zero', 'monotone', 'idempotent', 'positive', 'nonnegative', 'on_positive', "
              "'on_nonnegative' or 'on_nonzero'");
        cursor_.next();
      } while (cursor_.accept(","));
    }
    result.documentation = documentation();
    while (cursor_.at("law")) {
      TASO_ASSIGN(FunctionLaw law, function_law());
      result.laws.push_back(std::move(law));
    }
    return result;
  }

  /// Conditions are left as they are written: what they and the left side may be is checked with the names.
  Expected<FunctionLaw> function_law() {
    FunctionLaw result;
    cursor_.next();
    result.where = cursor_.peek().where;
    TASO_ASSIGN(result.left, expression());
    collect_names(result.left, result.variables);
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after the left side of a law"));
    TASO_ASSIGN(result.right, expression());
    if (!cursor_.accept("where")) return result;
    do {
      TASO_ASSIGN(FunctionLaw::Condition condition, law_condition(result));
      result.conditions.push_back(condition);
    } while (cursor_.accept(","));
    return result;
  }

  Expected<FunctionLaw::Condition> law_condition(const FunctionLaw& law) {
    FunctionLaw::Condition result;
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("a variable of the law"));
    const auto variable = std::find(law.variables.begin(), law.variables.end(), name);
    if (variable == law.variables.end())
      return bad_input("'" + name + "' is no variable of the law's left side " + to_text(law.left), where);
    result.variable = static_cast<std::size_t>(variable - law.variables.begin());
    using Relation = FunctionLaw::Condition::Relation;
    for (const auto& [text, relation] : {std::pair(">", Relation::positive), std::pair(">=", Relation::nonnegative),
                                         std::pair("<", Relation::negative), std::pair("<=", Relation::nonpositive),
                                         std::pair("!=", Relation::nonzero)})
      if (cursor_.accept(text)) {
        result.relation = relation;
        if (cursor_.peek().text != "0")
          return cursor_.unexpected("'0': a condition of a law compares a variable with 0");
        cursor_.next();
        return result;
      }
    return cursor_.unexpected("'>', '>=', '<', '<=' or '!='");
  }

  /// Names that stand for values, in the order of their first use.
  static void collect_names(const Expression& e, std::vector<std::string>& names) {
    if (e.kind == Kind::name && std::find(names.begin(), names.end(), e.name) == names.end()) names.push_back(e.name);
    for (const Expression& operand : e.operands) collect_names(operand, names);
  }

  Expected<SizeFunction> size_function() {
    SizeFunction result;
    cursor_.next();
    result.where = cursor_.peek().where;
    TASO_ASSIGN(result.name, new_name("the name of a size function"));
    TASO_ASSIGN(result.parameters, parameters());
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "before the definition of size function '" + result.name + "'"));
    TASO_ASSIGN(result.definition, expression());
    return result;
  }

  Expected<OperatorDefinition> operator_definition() {
    OperatorDefinition result;
    cursor_.next();
    result.where = cursor_.peek().where;
    TASO_ASSIGN(result.name, new_name("an operator name"));
    declare_intermediates();
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the inputs"));
    if (!cursor_.at(";") && !cursor_.at(")")) {
      do {
        TASO_ASSIGN(InputSpec input, input_spec());
        tensors_.insert(input.name);
        result.inputs.push_back(std::move(input));
      } while (cursor_.accept(","));
    }
    if (cursor_.accept(";")) {
      do {
        TASO_ASSIGN(AttributeSpec attribute, attribute_spec());
        result.attributes.push_back(std::move(attribute));
      } while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the inputs and attributes"));
    TASO_RETURN_IF_ERROR(cursor_.expect("->", "before the shape of the output"));
    result.output.where = cursor_.peek().where;
    result.output.domain = element_domain();
    if (result.output.domain == ElementDomain::real && !cursor_.at("[")) {
      TASO_ASSIGN(result.output.type, new_name("the shape of the output, or the attribute that is its element type"));
      result.output.domain = ElementDomain::any;
    }
    TASO_ASSIGN(result.output.axes, axes());
    if (cursor_.accept("for")) {
      TASO_ASSIGN(result.output.piece, new_name("the name that counts the outputs"));
      TASO_RETURN_IF_ERROR(cursor_.expect("<", "before the number of outputs"));
      TASO_ASSIGN(result.output.count, expression());
    }
    result.documentation = documentation();
    tensors_.insert("out");
    for (;;) {
      const SourceLocation where = cursor_.peek().where;
      if (cursor_.accept("law")) {
        do {
          if (cursor_.accept("commutative"))
            result.commutative = true;
          else if (cursor_.accept("associative"))
            result.associative = true;
          else if (cursor_.accept("coassociative")) {
            TASO_ASSIGN(result.coassociative, piece_attributes());
          } else
            return cursor_.unexpected("a law: 'commutative', 'associative' or 'coassociative'");
        } while (cursor_.accept(","));
      } else if (cursor_.accept("require")) {
        SizeStatement statement;
        statement.where = where;
        TASO_ASSIGN(statement.value, expression());
        if (cursor_.peek().kind != TokenKind::string)
          return cursor_.unexpected("a message in quotes after the condition of 'require'");
        statement.message = cursor_.next().text;
        result.statements.push_back(std::move(statement));
      } else if (cursor_.accept("let")) {
        const ElementDomain domain = cursor_.peek(1).text == "[" ? ElementDomain::real : element_domain();
        TASO_ASSIGN(std::string name, new_name("a name after 'let'"));
        if (domain == ElementDomain::real && at_named_application()) {
          TASO_RETURN_IF_ERROR(named_application(std::move(name), result));
        } else if (cursor_.at("[")) {
          TASO_RETURN_IF_ERROR(intermediate(std::move(name), where, result));
          result.intermediates.back().domain = domain;
        } else {
          SizeStatement statement;
          statement.where = where;
          statement.name = std::move(name);
          TASO_RETURN_IF_ERROR(cursor_.expect("=", "or '[' after the name of a 'let'"));
          TASO_ASSIGN(statement.value, expression());
          result.statements.push_back(std::move(statement));
        }
      } else if (cursor_.at("out") && cursor_.peek(1).text == "=") {
        cursor_.next();
        TASO_RETURN_IF_ERROR(named_application("out", result));
      } else if (cursor_.at("out")) {
        TASO_ASSIGN(Equation equation, output_equation());
        result.equations.push_back(std::move(equation));
      } else if (cursor_.at_end() || cursor_.at("operator") || cursor_.at("function") || cursor_.at("size")) {
        break;
      } else {
        return cursor_.unexpected("'law', 'let', 'require', 'out[...] = ...' or the next definition");
      }
    }
    return result;
  }

  /// Names of the intermediate tensors of the operator that begins here: those of a recurrence are read before they
  /// are defined.
  void declare_intermediates() {
    for (std::size_t ahead = 0;; ++ahead) {
      const Token& token = cursor_.peek(ahead);
      if (token.kind == TokenKind::end) return;
      if (token.kind != TokenKind::identifier) continue;
      if (token.text == "operator") return;
      if (token.text != "let") continue;
      const std::size_t name = cursor_.peek(ahead + 2).text == "[" ? ahead + 1 : ahead + 2;
      if (cursor_.peek(name + 1).text == "[") tensors_.insert(cursor_.peek(name).text);
    }
  }

  Expected<InputSpec> input_spec() {
    InputSpec input;
    input.domain = element_domain();
    input.where = cursor_.peek().where;
    TASO_ASSIGN(input.name, new_name("the name of an input"));
    if (cursor_.accept(".")) {
      TASO_ASSIGN(input.piece, new_name("the name that counts the inputs"));
    }
    TASO_ASSIGN(input.axes, axes());
    return input;
  }

  Expected<std::vector<AxisSpec>> axes() {
    std::vector<AxisSpec> result;
    TASO_RETURN_IF_ERROR(cursor_.expect("[", "before the axes"));
    if (cursor_.accept("]")) return result;
    do {
      TASO_ASSIGN(AxisSpec axis, axis_spec());
      result.push_back(std::move(axis));
    } while (cursor_.accept(","));
    TASO_RETURN_IF_ERROR(cursor_.expect("]", "or ',' after an axis"));
    return result;
  }

  Expected<AxisSpec> axis_spec() {
    AxisSpec axis;
    axis.where = cursor_.peek().where;
    const bool parenthesis = cursor_.at("(");
    TASO_ASSIGN(Expression value, expression());
    if (cursor_.accept("..")) {
      axis.kind = AxisSpec::Kind::rest;
      if (value.kind != Kind::name)
        return bad_input("'..' follows a name, the vector of the axes' extents", axis.where);
      axis.factors.push_back(std::move(value));
      if (cursor_.accept("(")) {
        TASO_ASSIGN(axis.length, expression());
        TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the number of axes"));
      }
      return axis;
    }
    if (parenthesis && value.kind == Kind::multiply) {
      axis.kind = AxisSpec::Kind::composite;
      flatten_product(std::move(value), axis.factors);
      return axis;
    }
    axis.factors.push_back(std::move(value));
    return axis;
  }

  static void flatten_product(Expression value, std::vector<Expression>& factors) {
    if (value.kind != Kind::multiply) {
      factors.push_back(std::move(value));
      return;
    }
    for (Expression& operand : value.operands) flatten_product(std::move(operand), factors);
  }

  Expected<AttributeSpec> attribute_spec() {
    AttributeSpec attribute;
    attribute.where = cursor_.peek().where;
    TASO_ASSIGN(attribute.name, new_name("the name of an attribute"));
    TASO_RETURN_IF_ERROR(cursor_.expect(":", "and a kind after attribute '" + attribute.name + "'"));
    if (cursor_.accept("int")) {
      attribute.kind = AttributeKind::integer;
      if (cursor_.accept("[")) {
        attribute.kind = AttributeKind::integers;
        if (!cursor_.accept("]")) {
          TASO_ASSIGN(attribute.length, expression());
          TASO_RETURN_IF_ERROR(cursor_.expect("]", "after the length of a list"));
        }
      }
    } else if (cursor_.accept("real")) {
      attribute.kind = AttributeKind::real;
    } else if (cursor_.accept("function")) {
      attribute.kind = AttributeKind::symbol;
    } else if (cursor_.accept("type")) {
      attribute.kind = AttributeKind::symbol;
      attribute.element_type = true;
    } else {
      return cursor_.unexpected("a kind: 'int', 'int[]', 'int[LENGTH]', 'real', 'function' or 'type'");
    }
    if (cursor_.accept("=")) {
      TASO_ASSIGN(attribute.default_value, default_value(attribute));
    }
    return attribute;
  }

  Expected<AttributeValue> default_value(const AttributeSpec& attribute) {
    switch (attribute.kind) {
      case AttributeKind::integer: {
        TASO_ASSIGN(const std::int64_t value, cursor_.expect_integer("an integer"));
        return AttributeValue(value);
      }
      case AttributeKind::real: {
        const double sign = cursor_.accept("-") ? -1.0 : 1.0;
        if (cursor_.peek().kind != TokenKind::real && cursor_.peek().kind != TokenKind::integer)
          return cursor_.unexpected("a number");
        return AttributeValue(sign * std::strtod(cursor_.next().text.c_str(), nullptr));
      }
      case AttributeKind::integers: {
        std::vector<std::int64_t> values;
        TASO_RETURN_IF_ERROR(cursor_.expect("[", "before the default of a list"));
        if (cursor_.accept("]")) return AttributeValue(values);
        do {
          TASO_ASSIGN(const std::int64_t value, cursor_.expect_integer("an integer"));
          values.push_back(value);
        } while (cursor_.accept(","));
        TASO_RETURN_IF_ERROR(cursor_.expect("]", "or ',' in a list"));
        return AttributeValue(values);
      }
      case AttributeKind::symbol: {
        TASO_ASSIGN(std::string name, new_name("the name of a function"));
        return AttributeValue(SymbolValue{std::move(name)});
      }
    }
    return internal_error("attribute kind");
  }

  Expected<Expression::Range> range() {
    Expression::Range result;
    TASO_ASSIGN(result.name, new_name("an index variable"));
    result.rest = cursor_.accept("..");
    TASO_RETURN_IF_ERROR(cursor_.expect("<", "and the extent of index variable '" + result.name + "'"));
    TASO_ASSIGN(Expression extent, additive());
    result.extent = std::make_shared<const Expression>(std::move(extent));
    return result;
  }

  /// (axis, sizes) or (sizes), after 'coassociative'.
  Expected<PieceAttributes> piece_attributes() {
    PieceAttributes result;
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "and the attributes of the pieces, as in 'coassociative(axis, sizes)'"));
    TASO_ASSIGN(result.sizes, cursor_.expect_identifier("the attribute with the extents of the pieces"));
    if (cursor_.accept(",")) {
      result.axis = std::move(result.sizes);
      TASO_ASSIGN(result.sizes, cursor_.expect_identifier("the attribute with the extents of the pieces"));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the attributes of the pieces"));
    return result;
  }

  /// name[I.. < A, t < n] = value, after 'let'.
  Status intermediate(std::string name, const SourceLocation& where, OperatorDefinition& definition) {
    IntermediateSpec tensor;
    Equation equation;
    tensor.name = equation.target = std::move(name);
    tensor.where = equation.where = where;
    cursor_.next();
    if (!cursor_.accept("]")) {
      do {
        Expression variable;
        variable.kind = Kind::name;
        variable.where = cursor_.peek().where;
        TASO_ASSIGN(Expression::Range index, range());
        variable.name = index.name;
        variable.rest = index.rest;
        equation.coordinates.push_back(std::move(variable));
        AxisSpec axis;
        axis.kind = index.rest ? AxisSpec::Kind::rest : AxisSpec::Kind::size;
        axis.factors.push_back(*index.extent);
        axis.where = equation.coordinates.back().where;
        tensor.axes.push_back(std::move(axis));
      } while (cursor_.accept(","));
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "or ',' after an index variable"));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after the left side of an equation"));
    TASO_ASSIGN(equation.value, expression());
    tensors_.insert(tensor.name);
    definition.intermediates.push_back(std::move(tensor));
    definition.equations.push_back(std::move(equation));
    return {};
  }

  /// Whether what stands `ahead` is the application of an operator: name(t, with a tensor t that is not read.
  [[nodiscard]] bool at_application(std::size_t ahead) const {
    if (ahead > 3 * max_depth) return true;  // nested too deep, which is said where it is parsed
    if (cursor_.peek(ahead).kind != TokenKind::identifier || cursor_.peek(ahead + 1).text != "(") return false;
    const std::string& after = cursor_.peek(ahead + 3).text;
    if (after == "(") return at_application(ahead + 2);
    return tensors_.contains(cursor_.peek(ahead + 2).text) && (after == "," || after == ";" || after == ")");
  }

  /// At "= op(x, ...)" or "[axes] = op(x, ...)", behind `let name`. Indices of an intermediate have a "<".
  [[nodiscard]] bool at_named_application() const {
    if (cursor_.at("=")) return at_application(1);
    std::size_t ahead = 1;
    if (!cursor_.at("[")) return false;
    for (int depth = 1; depth > 0; ++ahead) {
      const Token& token = cursor_.peek(ahead);
      if (token.kind == TokenKind::end || (depth == 1 && token.text == "<")) return false;
      depth += token.text == "[" ? 1 : token.text == "]" ? -1 : 0;
    }
    return cursor_.peek(ahead).text == "=" && at_application(ahead + 1);
  }

  /// [axes] = op(...), behind `let name` or `out`.
  Status named_application(std::string name, OperatorDefinition& definition) {
    std::optional<std::vector<AxisSpec>> axes;
    if (cursor_.at("[")) {
      TASO_ASSIGN(axes, this->axes());
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "before the operator that is applied"));
    TASO_ASSIGN(Application result, application());
    result.axes = std::move(axes);
    result.target = std::move(name);
    result.statements = definition.statements.size();
    result.equations = definition.equations.size();
    tensors_.insert(result.target);
    definition.applications.push_back(std::move(result));
    return {};
  }

  /// op(x, op(y), ...; name=value, ...), with .0 behind it if it has several outputs.
  Expected<Application> application() {
    Application result;
    result.where = cursor_.peek().where;
    const Depth guard(depth_);
    if (depth_ > max_depth)
      return bad_input("operators are applied deeper than " + std::to_string(max_depth), result.where);
    TASO_ASSIGN(result.op, new_name("the operator that is applied"));
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the operands"));
    while (!cursor_.at(";") && !cursor_.at(")")) {
      Application::Operand operand;
      operand.where = cursor_.peek().where;
      if (cursor_.peek(1).text == "(") {
        TASO_ASSIGN(Application inner, application());
        operand.application = std::make_shared<const Application>(std::move(inner));
      } else {
        TASO_ASSIGN(operand.tensor, new_name("an operand: a tensor, or an operator that is applied"));
      }
      result.operands.push_back(std::move(operand));
      if (!cursor_.accept(",")) break;
    }
    if (cursor_.accept(";")) {
      do {
        const SourceLocation where = cursor_.peek().where;
        TASO_ASSIGN(std::string name, new_name("the name of an attribute"));
        Expression value;
        value.kind = Kind::name;
        value.name = name;
        value.where = where;
        if (cursor_.accept("=")) {
          TASO_ASSIGN(value, expression());
        }
        result.attributes.emplace_back(std::move(name), std::move(value));
      } while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "after the operands and attributes"));
    if (cursor_.accept(".")) {
      TASO_ASSIGN(result.output, cursor_.expect_integer("the number of an output, from 0"));
    }
    return result;
  }

  /// out[...] = value where j < n
  Expected<Equation> output_equation() {
    Equation equation;
    equation.where = cursor_.peek().where;
    equation.target = cursor_.next().text;
    if (cursor_.accept(".")) {
      TASO_ASSIGN(equation.piece, new_name("the name that counts the outputs"));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("[", "after 'out'"));
    TASO_ASSIGN(equation.coordinates, coordinates());
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after the left side of an equation"));
    TASO_ASSIGN(equation.value, expression());
    if (cursor_.accept("where")) {
      do {
        TASO_ASSIGN(Expression::Range index, range());
        equation.ranges.push_back(std::move(index));
      } while (cursor_.accept(","));
    }
    return equation;
  }

  /// The rest of [c, c, ...] after the '['.
  Expected<std::vector<Expression>> coordinates() {
    std::vector<Expression> result;
    if (cursor_.accept("]")) return result;
    do {
      TASO_ASSIGN(Expression coordinate, expression());
      coordinate.rest = cursor_.accept("..");
      result.push_back(std::move(coordinate));
    } while (cursor_.accept(","));
    TASO_RETURN_IF_ERROR(cursor_.expect("]", "or ',' after a coordinate"));
    return result;
  }

  static Expression make(Kind kind, std::vector<Expression> operands, SourceLocation where) {
    Expression result;
    result.kind = kind;
    result.operands = std::move(operands);
    result.where = std::move(where);
    return result;
  }

  Expected<Expression> expression() {
    if (depth_ == 0) operators_ = 0;
    const Depth guard(depth_);
    if (depth_ > max_depth)
      return bad_input("expression nested deeper than " + std::to_string(max_depth), cursor_.peek().where);
    const SourceLocation where = cursor_.peek().where;
    if (cursor_.accept("if")) {
      TASO_ASSIGN(Expression condition, expression());
      TASO_RETURN_IF_ERROR(cursor_.expect("then", "after the condition of 'if'"));
      TASO_ASSIGN(Expression yes, expression());
      TASO_RETURN_IF_ERROR(cursor_.expect("else", "after the first branch of 'if'"));
      TASO_ASSIGN(Expression no, expression());
      return make(Kind::conditional, {std::move(condition), std::move(yes), std::move(no)}, where);
    }
    return disjunction();
  }

  /// Operators in a row nest to the left: their number in one expression is limited, too.
  Status count_operator(const SourceLocation& where) {
    if (++operators_ <= max_operators) return {};
    return bad_input("an expression of more than " + std::to_string(max_operators) + " operators", where);
  }

  Expected<Expression> disjunction() {
    TASO_ASSIGN(Expression left, conjunction());
    while (cursor_.at("||")) {
      const SourceLocation where = cursor_.next().where;
      TASO_ASSIGN(Expression right, conjunction());
      TASO_RETURN_IF_ERROR(count_operator(where));
      left = make(Kind::disjunction, {std::move(left), std::move(right)}, where);
    }
    return left;
  }

  Expected<Expression> conjunction() {
    TASO_ASSIGN(Expression left, comparison());
    while (cursor_.at("&&")) {
      const SourceLocation where = cursor_.next().where;
      TASO_ASSIGN(Expression right, comparison());
      TASO_RETURN_IF_ERROR(count_operator(where));
      left = make(Kind::conjunction, {std::move(left), std::move(right)}, where);
    }
    return left;
  }

  Expected<Expression> comparison() {
    TASO_ASSIGN(Expression left, additive());
    static constexpr std::array<std::pair<std::string_view, Kind>, 6> operators = {{{"==", Kind::equal},
                                                                                    {"!=", Kind::not_equal},
                                                                                    {"<=", Kind::less_equal},
                                                                                    {">=", Kind::greater_equal},
                                                                                    {"<", Kind::less},
                                                                                    {">", Kind::greater}}};
    for (const auto& [text, kind] : operators) {
      if (!cursor_.at(text)) continue;
      const SourceLocation where = cursor_.next().where;
      TASO_ASSIGN(Expression right, additive());
      return make(kind, {std::move(left), std::move(right)}, where);
    }
    return left;
  }

  Expected<Expression> additive() {
    TASO_ASSIGN(Expression left, multiplicative());
    while (cursor_.at("+") || cursor_.at("-")) {
      const Token symbol = cursor_.next();
      TASO_ASSIGN(Expression right, multiplicative());
      TASO_RETURN_IF_ERROR(count_operator(symbol.where));
      left = make(symbol.text == "+" ? Kind::add : Kind::subtract, {std::move(left), std::move(right)}, symbol.where);
    }
    return left;
  }

  Expected<Expression> multiplicative() {
    TASO_ASSIGN(Expression left, unary());
    while (cursor_.at("*") || cursor_.at("/") || cursor_.at("//") || cursor_.at("%")) {
      const Token symbol = cursor_.next();
      TASO_ASSIGN(Expression right, unary());
      TASO_RETURN_IF_ERROR(count_operator(symbol.where));
      const Kind kind = symbol.text == "*"    ? Kind::multiply
                        : symbol.text == "/"  ? Kind::divide
                        : symbol.text == "//" ? Kind::floor_divide
                                              : Kind::modulo;
      left = make(kind, {std::move(left), std::move(right)}, symbol.where);
    }
    return left;
  }

  Expected<Expression> unary() {
    const Depth guard(depth_);
    if (depth_ > max_depth)
      return bad_input("expression nested deeper than " + std::to_string(max_depth), cursor_.peek().where);
    const SourceLocation where = cursor_.peek().where;
    if (cursor_.accept("-")) {
      TASO_ASSIGN(Expression operand, unary());
      return make(Kind::negate, {std::move(operand)}, where);
    }
    if (cursor_.accept("!")) {
      TASO_ASSIGN(Expression operand, unary());
      return make(Kind::negation, {std::move(operand)}, where);
    }
    return postfix();
  }

  /// A primary expression followed by any number of [subscripts].
  Expected<Expression> postfix() {
    TASO_ASSIGN(Expression result, primary());
    while (cursor_.at("[")) {
      const SourceLocation where = cursor_.next().where;
      TASO_RETURN_IF_ERROR(count_operator(where));
      TASO_ASSIGN(Expression subscript, expression());
      TASO_RETURN_IF_ERROR(cursor_.expect("]", "after a subscript"));
      result = make(Kind::element, {std::move(result), std::move(subscript)}, where);
    }
    return result;
  }

  /// True at "(name <" and "(name.. <": the ranges of a reduction rather than arguments.
  [[nodiscard]] bool at_ranges() const {
    return cursor_.peek(1).text == "(" && cursor_.peek(2).kind == TokenKind::identifier &&
           (cursor_.peek(3).text == "<" || (cursor_.peek(3).text == ".." && cursor_.peek(4).text == "<"));
  }

  Expected<Expression> primary() {
    const Token token = cursor_.peek();
    Expression result;
    result.where = token.where;
    switch (token.kind) {
      case TokenKind::integer: {
        TASO_ASSIGN(result.integer, cursor_.expect_integer("an integer"));
        return result;
      }
      case TokenKind::real:
        cursor_.next();
        result.kind = Kind::real;
        result.real = std::strtod(token.text.c_str(), nullptr);
        return result;
      case TokenKind::symbol:
        if (token.text == "(") return parenthesized();
        if (token.text == "[") {
          cursor_.next();
          result.kind = Kind::list;
          TASO_ASSIGN(result.operands, arguments("]"));
          return result;
        }
        return cursor_.unexpected("an expression");
      case TokenKind::identifier:
        break;
      case TokenKind::string:
      case TokenKind::newline:
      case TokenKind::end:
        return cursor_.unexpected("an expression");
    }
    if (token.text == "inf") {
      cursor_.next();
      result.kind = Kind::infinity;
      return result;
    }
    if (is_keyword(token.text)) return cursor_.unexpected("an expression");
    const bool reduction = std::find(reductions.begin(), reductions.end(), token.text) != reductions.end();
    if ((reduction || token.text == "all") && at_ranges()) {
      cursor_.next();
      cursor_.next();
      result.kind = reduction ? Kind::reduce : Kind::all;
      result.name = token.text;
      do {
        TASO_ASSIGN(Expression::Range index, range());
        result.ranges.push_back(std::move(index));
      } while (cursor_.accept(","));
      TASO_RETURN_IF_ERROR(cursor_.expect(")", "or ',' after an index variable"));
      TASO_ASSIGN(Expression body, reduction ? multiplicative() : comparison());
      result.operands.push_back(std::move(body));
      return result;
    }
    cursor_.next();
    result.name = token.text;
    if (token.text == "valid" && cursor_.at("(")) {
      cursor_.next();
      result.kind = Kind::valid;
      TASO_ASSIGN(result.operands, arguments(")"));
      return result;
    }
    if (cursor_.accept("(")) {
      result.kind = Kind::call;
      TASO_ASSIGN(result.operands, arguments(")"));
      return result;
    }
    if (tensors_.contains(token.text)) return read(std::move(result));
    if (cursor_.accept(".")) {
      TASO_ASSIGN(Expression which, piece());
      result.kind = Kind::piece;
      result.operands.push_back(std::move(which));
      return result;
    }
    result.kind = Kind::name;
    return result;
  }

  /// The k of x.k: a name or a number.
  Expected<Expression> piece() {
    Expression which;
    which.where = cursor_.peek().where;
    if (cursor_.peek().kind == TokenKind::integer) {
      TASO_ASSIGN(which.integer, cursor_.expect_integer("an integer"));
    } else {
      which.kind = Kind::name;
      TASO_ASSIGN(which.name, new_name("a name or a number after '.'"));
    }
    return which;
  }

  Expected<Expression> read(Expression result) {
    result.kind = Kind::read;
    if (cursor_.at(".") && cursor_.peek(1).text == "flat") {
      cursor_.next();
      cursor_.next();
      result.flat = true;
    } else if (cursor_.accept(".")) {
      TASO_ASSIGN(Expression which, piece());
      result.piece = std::make_shared<const Expression>(std::move(which));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect("[", "and coordinates after tensor '" + result.name + "'"));
    TASO_ASSIGN(result.operands, coordinates());
    if (cursor_.accept("or")) {
      TASO_ASSIGN(Expression fallback, unary());
      result.fallback = std::make_shared<const Expression>(std::move(fallback));
    }
    return result;
  }

  /// (e), or the tuple (e, e, ...).
  Expected<Expression> parenthesized() {
    const SourceLocation where = cursor_.next().where;
    TASO_ASSIGN(std::vector<Expression> elements, arguments(")"));
    if (elements.empty()) return bad_input("expected an expression between '(' and ')'", where);
    if (elements.size() == 1) return std::move(elements.front());
    return make(Kind::tuple, std::move(elements), where);
  }

  /// Expressions up to and including `end`.
  Expected<std::vector<Expression>> arguments(std::string_view end) {
    std::vector<Expression> result;
    if (cursor_.accept(end)) return result;
    do {
      TASO_ASSIGN(Expression argument, expression());
      result.push_back(std::move(argument));
    } while (cursor_.accept(","));
    TASO_RETURN_IF_ERROR(cursor_.expect(end, "or ','"));
    return result;
  }

  TokenCursor cursor_;
  std::set<std::string> tensors_;  ///< Tensors of the current operator: a name among them followed by '[' is a read.
  int depth_ = 0;
  int operators_ = 0;  ///< In the outermost expression so far.
};

}  // namespace

Expected<ParsedSpecification> parse_specification(std::string_view text, const std::string& file) {
  TASO_ASSIGN(std::vector<Token> tokens, tokenize(text, file));
  return Parser(TokenCursor(std::move(tokens))).file();
}

Expected<Expression> parse_size_expression(TokenCursor& cursor) {
  Parser parser(std::move(cursor));
  Expected<Expression> result = parser.single_expression();
  cursor = parser.take_cursor();
  return result;
}

}  // namespace taso
