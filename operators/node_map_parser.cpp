/// Parsing of map files, and what can be checked of a mapping by itself.

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "operators/node_maps.h"
#include "support/lexer.h"

namespace taso {
namespace {

using Syntax = ExpressionSyntax::Kind;

constexpr std::array<std::string_view, 6> map_comparisons = {"==", "!=", "<=", ">=", "<", ">"};

const char* describe_node_value(AttributeKind kind) {
  return kind == AttributeKind::symbol ? "a string" : describe(kind);
}

std::string name_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

/// A recursive-descent parser; one function per production of the grammar in docs/onnx.md.
class MapParser {
 public:
  MapParser(std::vector<Token> tokens, const OperatorRegistry& registry)
      : cursor_(std::move(tokens)), registry_(registry) {}

  Expected<NodeMapFile> file() {
    NodeMapFile result;
    while (!cursor_.at_end()) {
      mapping_ = {};
      if (cursor_.accept("allow")) {
        TASO_RETURN_IF_ERROR(allowed_domain(result));
        continue;
      }
      TASO_RETURN_IF_ERROR(node());
      const SourceLocation application = cursor_.peek().where;
      TASO_RETURN_IF_ERROR(this->application());
      if (cursor_.accept("where")) {
        do TASO_RETURN_IF_ERROR(condition());
        while (cursor_.accept(","));
      }
      TASO_RETURN_IF_ERROR(check_inputs(application));
      result.mappings.push_back(std::move(mapping_));
    }
    return result;
  }

 private:
  [[nodiscard]] std::string subject() const { return type_name(mapping_.domain, mapping_.type); }

  /// What follows "allow": a domain that a mapping has, of this file or one before it.
  Status allowed_domain(NodeMapFile& file) {
    const SourceLocation where = cursor_.peek().where;
    std::string domain;
    if (cursor_.peek().kind == TokenKind::string) {
      domain = cursor_.next().text;
    } else {
      TASO_ASSIGN(domain, dotted_name("a domain after 'allow', such as com.microsoft"));
    }
    std::set<std::string> known;
    const auto note = [&](const NodeMapping& mapping) {
      if (!mapping.domain.empty()) known.insert(mapping.domain);
    };
    for (const NodeMapping& mapping : file.mappings) note(mapping);
    for (const auto& mapping : registry_.node_maps().all()) note(*mapping);
    if (!known.contains(domain))
      return bad_input("no map before has operators of the domain '" + domain + "'; there are maps of " +
                           name_list({known.begin(), known.end()}),
                       where);
    file.allowed_domains.push_back(std::move(domain));
    return {};
  }

  /// NAME { "." NAME }
  Expected<std::string> dotted_name(const std::string& what) {
    TASO_ASSIGN(std::string name, cursor_.expect_identifier(what));
    while (cursor_.accept(".")) {
      TASO_ASSIGN(const std::string part, cursor_.expect_identifier("the rest of a domain after '.'"));
      name += "." + part;
    }
    return name;
  }

  // ---------------------------------------------------------------------------------------------- the node

  Status node() {
    mapping_.where = cursor_.peek().where;
    TASO_RETURN_IF_ERROR(type());
    TASO_RETURN_IF_ERROR(versions());
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the inputs of " + subject()));
    if (!cursor_.at(";") && !cursor_.at(")")) {
      do TASO_RETURN_IF_ERROR(input());
      while (cursor_.accept(","));
    }
    if (!mapping_.inputs.empty() && mapping_.inputs.back() == NodeMapping::nothing)
      return bad_input("the last input of " + subject() + " is '_'; inputs that are absent at the end are not written",
                       mapping_.where);
    if (cursor_.accept(";")) {
      do TASO_RETURN_IF_ERROR(attribute());
      while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "or ',' after the inputs and attributes of " + subject()));
    TASO_RETURN_IF_ERROR(cursor_.expect("->", "and the outputs after the node " + subject() + "(...)"));
    do TASO_RETURN_IF_ERROR(output());
    while (cursor_.accept(","));
    return cursor_.expect("=", "and the operator after the outputs of " + subject());
  }

  Status type() {
    if (cursor_.peek().kind == TokenKind::string) {
      mapping_.domain = cursor_.next().text;
      TASO_RETURN_IF_ERROR(cursor_.expect(":", "and another one after the domain"));
      TASO_RETURN_IF_ERROR(cursor_.expect(":", "after the domain"));
    } else {
      TASO_ASSIGN(std::string name, dotted_name("the type of a node, such as com.acme::Silu"));
      const bool has_domain = cursor_.at(":");
      if (!has_domain && name.find('.') != std::string::npos)
        return cursor_.unexpected("'::' and the type of the node after the domain " + name);
      if (!has_domain) {
        mapping_.type = std::move(name);
        return {};
      }
      cursor_.next();
      TASO_RETURN_IF_ERROR(cursor_.expect(":", "after the domain"));
      mapping_.domain = std::move(name);
    }
    if (mapping_.domain == "taso")
      return bad_input("nodes of the domain taso are operators by their names; no map can say otherwise",
                       mapping_.where);
    if (mapping_.domain == "ai.onnx") mapping_.domain.clear();
    TASO_ASSIGN(mapping_.type, cursor_.expect_identifier("the type of the node after the domain"));
    return {};
  }

  Status versions() {
    const Token& token = cursor_.peek();
    if (token.kind != TokenKind::identifier) return {};
    const SourceLocation where = token.where;
    const std::string digits = token.text.substr(1);
    if (token.text[0] != 'v' || digits.empty() || digits.size() > 9 ||
        !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return cursor_.unexpected("versions such as v1, v7..12 or v13.., or '(' and the inputs of " + subject());
    cursor_.next();
    mapping_.first = mapping_.last = std::stoll(digits);
    if (cursor_.accept("..")) {
      mapping_.last = std::numeric_limits<std::int64_t>::max();
      if (cursor_.peek().kind == TokenKind::integer) {
        TASO_ASSIGN(mapping_.last, cursor_.expect_integer("the last version"));
      }
    }
    if (mapping_.first < 1 || mapping_.last < mapping_.first)
      return bad_input("there is no version in v" + digits + ".." + std::to_string(mapping_.last) +
                           "; the first is at least 1 and not above the last",
                       where);
    return {};
  }

  Status input() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(std::string name, cursor_.expect_identifier("the name of an input of " + subject()));
    if (mapping_.variadic)
      return bad_input("input '" + name + "' follows one that stands for all others; nothing can follow it", where);
    if (name != NodeMapping::nothing) TASO_RETURN_IF_ERROR(check_new(name, where));
    mapping_.variadic = cursor_.accept("..");
    if (mapping_.variadic && name == NodeMapping::nothing)
      return bad_input("'_..' stands for nothing; inputs that are absent at the end are not written", where);
    mapping_.inputs.push_back(std::move(name));
    return {};
  }

  Status check_new(const std::string& name, const SourceLocation& where) const {
    const bool known = std::find(mapping_.inputs.begin(), mapping_.inputs.end(), name) != mapping_.inputs.end() ||
                       mapping_.find_attribute(name) != nullptr;
    if (known) return bad_input("'" + name + "' occurs twice in the node " + subject() + "(...)", where);
    return {};
  }

  Status attribute() {
    NodeMapping::Attribute result;
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(result.name, cursor_.expect_identifier("the name of an attribute of " + subject()));
    TASO_RETURN_IF_ERROR(check_new(result.name, where));
    TASO_RETURN_IF_ERROR(cursor_.expect(":", "and a kind after attribute " + result.name));
    if (cursor_.accept("int")) {
      if (cursor_.accept("[")) {
        result.kind = AttributeKind::integers;
        TASO_RETURN_IF_ERROR(cursor_.expect("]", "after 'int['"));
      }
    } else if (cursor_.accept("real")) {
      result.kind = AttributeKind::real;
    } else if (cursor_.accept("string")) {
      result.kind = AttributeKind::symbol;
    } else {
      return cursor_.unexpected("a kind: 'int', 'real', 'int[]' or 'string'");
    }
    if (cursor_.at("{")) TASO_RETURN_IF_ERROR(table(result));
    if (cursor_.accept("=")) {
      const SourceLocation place = cursor_.peek().where;
      TASO_ASSIGN(result.default_value, literal(result.kind, "the default of attribute " + result.name));
      const auto is_default = [&](const auto& entry) { return entry.first == *result.default_value; };
      if (!result.table.empty() && std::none_of(result.table.begin(), result.table.end(), is_default))
        return bad_input("the default of attribute " + result.name + " is none of its values", place);
    }
    mapping_.attributes.push_back(std::move(result));
    return {};
  }

  Status table(NodeMapping::Attribute& attribute) {
    if (attribute.kind != AttributeKind::integer && attribute.kind != AttributeKind::symbol)
      return bad_input("attribute " + attribute.name + " is " + describe(attribute.kind) +
                           "; only integers and strings can be listed with what they stand for",
                       cursor_.peek().where);
    cursor_.next();
    do {
      const SourceLocation where = cursor_.peek().where;
      TASO_ASSIGN(AttributeValue from, literal(attribute.kind, "a value of attribute " + attribute.name));
      for (const auto& entry : attribute.table)
        if (entry.first == from) return bad_input("a value of attribute " + attribute.name + " occurs twice", where);
      TASO_RETURN_IF_ERROR(cursor_.expect(":", "and what the value stands for"));
      const SourceLocation place = cursor_.peek().where;
      TASO_ASSIGN(const ExpressionSyntax syntax, parse_expression(cursor_));
      TASO_ASSIGN(AttributeValue to, constant(syntax, "what a value of attribute " + attribute.name + " stands for"));
      if (!attribute.table.empty() && kind_of(attribute.table[0].second) != kind_of(to))
        return bad_input("the values of attribute " + attribute.name + " stand for things of different kinds: " +
                             describe(kind_of(attribute.table[0].second)) + " and " + describe(kind_of(to)),
                         place);
      attribute.table.emplace_back(std::move(from), std::move(to));
    } while (cursor_.accept(","));
    return cursor_.expect("}", "or ',' after a value of attribute " + attribute.name);
  }

  /// A literal of a kind, as a node holds it: a real is a float.
  Expected<AttributeValue> literal(AttributeKind kind, const std::string& what) {
    const SourceLocation where = cursor_.peek().where;
    if (kind == AttributeKind::symbol) {
      if (cursor_.peek().kind != TokenKind::string) return cursor_.unexpected("a string in quotes, " + what);
      return AttributeValue(SymbolValue{cursor_.next().text});
    }
    TASO_ASSIGN(const ExpressionSyntax syntax, parse_expression(cursor_));
    TASO_ASSIGN(AttributeValue value, constant(syntax, what));
    if (kind == AttributeKind::real && kind_of(value) == AttributeKind::integer)
      value = static_cast<double>(std::get<std::int64_t>(value));
    if (kind_of(value) != kind)
      return bad_input(what + " is " + describe(kind_of(value)) + "; " + describe(kind) + " is declared", where);
    if (kind == AttributeKind::real) {
      const double real = std::get<double>(value);
      if (std::isfinite(real) && std::abs(real) > std::numeric_limits<float>::max())
        return bad_input(what + " is too large for a float, which nodes hold", where);
      value = static_cast<double>(static_cast<float>(real));
    }
    return value;
  }

  /// A number, a list of integers or a function.
  Expected<AttributeValue> constant(const ExpressionSyntax& syntax, const std::string& what) {
    switch (syntax.kind) {
      case Syntax::integer:
        return AttributeValue(syntax.integer);
      case Syntax::real:
        if (std::isnan(syntax.real)) break;
        return AttributeValue(syntax.real);
      case Syntax::name:
        if (!registry_.is_function(syntax.name))
          return bad_input("'" + syntax.name + "' is not a declared function of one parameter", syntax.where);
        return AttributeValue(SymbolValue{syntax.name});
      case Syntax::list: {
        std::vector<std::int64_t> list;
        for (const ExpressionSyntax& entry : syntax.operands) {
          if (entry.kind != Syntax::integer)
            return bad_input("an entry of " + what + " is not an integer; lists are of integers", entry.where);
          list.push_back(entry.integer);
        }
        return AttributeValue(std::move(list));
      }
      default:
        break;
    }
    return bad_input(what + " must be a number, a list of integers or a function", syntax.where);
  }

  Status output() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(std::string name, cursor_.expect_identifier("the name of an output of " + subject()));
    if (name != NodeMapping::nothing &&
        std::find(mapping_.outputs.begin(), mapping_.outputs.end(), name) != mapping_.outputs.end())
      return bad_input("output '" + name + "' occurs twice", where);
    mapping_.outputs.push_back(std::move(name));
    return {};
  }

  // --------------------------------------------------------------------------------------- the application

  Status application() {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(mapping_.op, cursor_.expect_identifier("the operator that " + subject() + " stands for"));
    const OperatorDefinition* definition = registry_.find(mapping_.op);
    if (definition == nullptr)
      return bad_input("unknown operator '" + mapping_.op + "'; a *.op file here or in a folder before must define it",
                       where);
    TASO_RETURN_IF_ERROR(cursor_.expect("(", "before the inputs of " + mapping_.op));
    if (!cursor_.at(";") && !cursor_.at(")")) {
      do TASO_RETURN_IF_ERROR(argument(*definition));
      while (cursor_.accept(","));
    }
    if (const std::string problem = arity_problem(definition->signature, mapping_.arguments.size()); !problem.empty())
      return bad_input(mapping_.op + " " + problem, where);
    mapping_.valued.assign(mapping_.inputs.size(), false);
    if (cursor_.accept(";")) {
      do TASO_RETURN_IF_ERROR(value(*definition));
      while (cursor_.accept(","));
    }
    TASO_RETURN_IF_ERROR(cursor_.expect(")", "or ',' in " + mapping_.op + "(...)"));
    for (const AttributeSpec& spec : definition->attributes)
      if (!spec.default_value && find_value(spec.name) == nullptr)
        return bad_input(mapping_.op + " needs attribute '" + spec.name + "', " + describe(spec.kind), where);
    const auto named = std::count_if(mapping_.outputs.begin(), mapping_.outputs.end(),
                                     [](const std::string& name) { return name != NodeMapping::nothing; });
    if (named == 0 || (named > 1 && !definition->several_outputs()))
      return bad_input(mapping_.op + (definition->several_outputs() ? " has outputs" : " has one output") + ", " +
                           subject() + " names " + std::to_string(named) +
                           "; what the operator does not compute is '_'",
                       where);
    mapping_.broadcasting = cursor_.accept("broadcasting");
    if (mapping_.broadcasting && has_integers(*definition))
      return bad_input("inputs of " + mapping_.op + " are coordinates; only elements are broadcast", where);
    return {};
  }

  static bool has_integers(const OperatorDefinition& definition) {
    return definition.over_reals && std::any_of(definition.inputs.begin(), definition.inputs.end(),
                                                [](const InputSpec& input) { return input.integers(); });
  }

  Status argument(const OperatorDefinition& definition) {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("an input of " + subject()));
    const auto place = std::find(mapping_.inputs.begin(), mapping_.inputs.end(), name);
    if (place == mapping_.inputs.end() || name == NodeMapping::nothing)
      return bad_input(
          "'" + name + "' is not an input of " + subject() + "; its inputs are " + name_list(mapping_.inputs), where);
    const auto index = static_cast<std::size_t>(place - mapping_.inputs.begin());
    const bool all = cursor_.accept("..");
    const bool is_all = mapping_.variadic && index + 1 == mapping_.inputs.size();
    if (all != is_all)
      return bad_input(
          all ? "input '" + name + "' of " + subject() + " is one tensor; without '..' it is read as one"
              : "input '" + name + "' of " + subject() + " is any number of tensors; write '" + name + "..'",
          where);
    if (all && (!definition.variadic() || !mapping_.arguments.empty()))
      return bad_input("'" + name + "..' must be all inputs of an operator that reads any number of them", where);
    mapping_.arguments.push_back(index);
    return {};
  }

  Status check_inputs(const SourceLocation& where) const {
    for (std::size_t i = 0; i < mapping_.inputs.size(); ++i)
      if (mapping_.inputs[i] != NodeMapping::nothing && !mapping_.valued[i] &&
          std::find(mapping_.arguments.begin(), mapping_.arguments.end(), i) == mapping_.arguments.end())
        return bad_input("input '" + mapping_.inputs[i] + "' is not read by " + mapping_.op +
                             "(...); an input that must be absent is '_'",
                         where);
    return {};
  }

  [[nodiscard]] const ExpressionSyntax* find_value(std::string_view name) const {
    for (const auto& [known, value] : mapping_.values)
      if (known == name) return &value;
    return nullptr;
  }

  Status value(const OperatorDefinition& definition) {
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(std::string name, cursor_.expect_identifier("an attribute of " + mapping_.op));
    const AttributeSpec* spec = definition.find_attribute(name);
    if (spec == nullptr)
      return bad_input(
          mapping_.op + " has no attribute '" + name + "'; it has " + attribute_names(definition.signature), where);
    if (find_value(name) != nullptr)
      return bad_input("attribute '" + name + "' of " + mapping_.op + " is given twice", where);
    TASO_RETURN_IF_ERROR(cursor_.expect("=", "after attribute " + name));
    const SourceLocation place = cursor_.peek().where;
    TASO_ASSIGN(ExpressionSyntax expression, parse_expression(cursor_));
    TASO_ASSIGN(const AttributeKind kind, check(expression, true));
    mark_valued(expression);
    if (kind != spec->kind && !(spec->kind == AttributeKind::real && kind == AttributeKind::integer))
      return bad_input(
          "attribute '" + name + "' of " + mapping_.op + " is " + describe(spec->kind) + ", here is " + describe(kind),
          place);
    mapping_.values.emplace_back(std::move(name), std::move(expression));
    return {};
  }

  // ------------------------------------------------------------------------------------------- expressions

  /// Notes the inputs of which an expression reads the number.
  void mark_valued(const ExpressionSyntax& e) {
    for (std::size_t i = 0; i < mapping_.inputs.size(); ++i)
      if (e.kind == Syntax::value && mapping_.inputs[i] == e.name) mapping_.valued[i] = true;
    for (const ExpressionSyntax& operand : e.operands) mark_valued(operand);
  }

  /// That an expression names an input.
  Status check_input(const ExpressionSyntax& e) const {
    const auto place = std::find(mapping_.inputs.begin(), mapping_.inputs.end(), e.name);
    if (place == mapping_.inputs.end() || e.name == NodeMapping::nothing)
      return bad_input(
          "'" + e.name + "' is not an input of " + subject() + "; its inputs are " + name_list(mapping_.inputs),
          e.where);
    return {};
  }

  /// The kind of an expression's value, once its names are found. `mapped`: attributes are what they stand for.
  Expected<AttributeKind> check(const ExpressionSyntax& e, bool mapped) const {
    const auto integer = [&](const ExpressionSyntax& operand, const char* what) -> Status {
      TASO_ASSIGN(const AttributeKind kind, check(operand, mapped));
      if (kind != AttributeKind::integer)
        return bad_input(std::string(what) + " must be an integer, it is " + describe(kind), operand.where);
      return {};
    };
    switch (e.kind) {
      case Syntax::integer:
        return AttributeKind::integer;
      case Syntax::real:
        if (std::isnan(e.real)) return bad_input("an attribute cannot be nan", e.where);
        return AttributeKind::real;
      case Syntax::name: {
        if (const NodeMapping::Attribute* attribute = mapping_.find_attribute(e.name))
          return mapped && !attribute->table.empty() ? kind_of(attribute->table[0].second) : attribute->kind;
        if (registry_.is_function(e.name)) return AttributeKind::symbol;
        std::vector<std::string> names;
        for (const NodeMapping::Attribute& attribute : mapping_.attributes) names.push_back(attribute.name);
        return bad_input("'" + e.name + "' is not a function, nor an attribute of " + subject() +
                             "; its attributes are " + name_list(names),
                         e.where);
      }
      case Syntax::list:
        for (const ExpressionSyntax& entry : e.operands) TASO_RETURN_IF_ERROR(integer(entry, "an entry of a list"));
        return AttributeKind::integers;
      case Syntax::value:
        TASO_RETURN_IF_ERROR(check_input(e));
        if (mapping_.variadic && e.name == mapping_.inputs.back())
          return bad_input("input '" + e.name + "' of " + subject() + " is any number of tensors; one has a value",
                           e.where);
        return AttributeKind::real;
      case Syntax::dimension:
        if (mapped)
          return bad_input("an attribute is no extent: only conditions look at those, and of constants", e.where);
        TASO_RETURN_IF_ERROR(integer(e.operands[0], "an axis"));
        [[fallthrough]];
      case Syntax::rank:
        TASO_RETURN_IF_ERROR(check_input(e));
        return AttributeKind::integer;
      case Syntax::length:
      case Syntax::element: {
        TASO_ASSIGN(const AttributeKind kind, check(e.operands[0], mapped));
        if (kind != AttributeKind::integers)
          return bad_input(std::string("this must be a list of integers, it is ") + describe(kind),
                           e.operands[0].where);
        return AttributeKind::integer;
      }
      case Syntax::binary:
        for (const ExpressionSyntax& operand : e.operands)
          TASO_RETURN_IF_ERROR(integer(operand, "an operand of arithmetic"));
        return AttributeKind::integer;
    }
    return internal_error("an expression of no kind");
  }

  Status condition() {
    NodeMapping::Condition result;
    result.where = cursor_.peek().where;
    TASO_ASSIGN(result.left, parse_expression(cursor_));
    const auto sign = std::find_if(map_comparisons.begin(), map_comparisons.end(),
                                   [&](std::string_view text) { return cursor_.at(text); });
    if (sign == map_comparisons.end()) return cursor_.unexpected("a comparison: ==, !=, <, <=, > or >=");
    result.comparison = cursor_.next().text;
    const bool equality = result.comparison == "==" || result.comparison == "!=";
    TASO_ASSIGN(const AttributeKind left, check(result.left, false));
    const bool is_text = result.left.kind == Syntax::name && left == AttributeKind::symbol;
    if (cursor_.peek().kind == TokenKind::string) {
      if (!is_text || mapping_.find_attribute(result.left.name) == nullptr)
        return bad_input("only an attribute that is a string can be compared with one", result.where);
      result.text = cursor_.next().text;
    } else {
      if (is_text) return cursor_.unexpected("a string in quotes to compare " + result.left.name + " with");
      TASO_ASSIGN(result.right, parse_expression(cursor_));
      TASO_ASSIGN(const AttributeKind right, check(result.right, false));
      const auto is_number = [](AttributeKind kind) {
        return kind == AttributeKind::integer || kind == AttributeKind::real;
      };
      if (left != right && !(is_number(left) && is_number(right)))
        return bad_input(std::string("compared are ") + describe_node_value(left) + " and " +
                             describe_node_value(right) + ", which are never equal",
                         result.where);
      if (!equality && !is_number(left))
        return bad_input("lists are equal or not; '" + result.comparison + "' compares numbers", result.where);
    }
    if (!equality && result.text)
      return bad_input("strings are equal or not; '" + result.comparison + "' compares numbers", result.where);
    mark_valued(result.left);
    if (!result.text) mark_valued(result.right);
    mapping_.conditions.push_back(std::move(result));
    return {};
  }

  TokenCursor cursor_;
  const OperatorRegistry& registry_;
  NodeMapping mapping_;
};

}  // namespace

const NodeMapping::Attribute* NodeMapping::find_attribute(std::string_view name) const {
  for (const Attribute& attribute : attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

std::string type_name(std::string_view domain, std::string_view type) {
  return (domain.empty() ? "" : std::string(domain) + "::") + std::string(type);
}

Expected<NodeMapFile> parse_node_maps(std::string_view text, const std::string& file,
                                      const OperatorRegistry& registry) {
  TASO_ASSIGN(std::vector<Token> tokens, tokenize(text, file));
  return MapParser(std::move(tokens), registry).file();
}

}  // namespace taso
