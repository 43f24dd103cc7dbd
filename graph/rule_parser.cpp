#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "graph/pattern.h"
#include "graph/term_syntax.h"
#include "support/file.h"
#include "support/lexer.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

constexpr std::array<std::string_view, 10> reserved = {"rule",  "axiom", "where",  "if",  "for",
                                                       "proof", "class", "expect", "inf", "nan"};

bool is_reserved(std::string_view name) { return std::find(reserved.begin(), reserved.end(), name) != reserved.end(); }

struct Definition {
  TermSyntax term;
  SourceLocation where;
  bool used = false;
};

// A variable that `for` declares.
struct Given {
  std::string name;
  SourceLocation where;
};

// Turns the syntax of one statement into a Substitution.
class Resolver {
 public:
  Resolver(const OperatorCatalog& catalog, Substitution& rule, std::map<std::string, Definition>& definitions)
      : catalog_(catalog), rule_(rule), definitions_(definitions) {}

  Status sides(const std::vector<TermSyntax>& source, const std::vector<Given>& given,
               const std::vector<TermSyntax>& target) {
    in_source_ = true;
    TASO_RETURN_IF_ERROR(side(source, rule_.source));
    TASO_RETURN_IF_ERROR(check_uses());
    in_source_ = false;
    for (const Given& variable : given) TASO_RETURN_IF_ERROR(declare(variable));
    TASO_RETURN_IF_ERROR(side(target, rule_.target));
    TASO_RETURN_IF_ERROR(check_uses());
    for (const auto& [name, definition] : definitions_)
      if (!definition.used) return bad_input("'" + name + "' is named by 'where' but not used", definition.where);
    return {};
  }

  // That something speaks of every given variable, once all conditions are resolved.
  [[nodiscard]] Status check_given(const std::vector<Given>& given) const {
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!used_[used_.size() - given.size() + i])
        return bad_input("'" + given[i].name + "' is declared by 'for' but not used", given[i].where);
    return {};
  }

  Expected<Condition> condition(Condition::Relation relation, const ExpressionSyntax& left,
                                const ExpressionSyntax& right) {
    Condition result;
    result.relation = relation;
    if (result.of_elements()) {
      if (left.kind != ExpressionSyntax::Kind::name)
        return bad_input("expected a tensor variable of the source", left.where);
      result.left.kind = Kind::elements;
      TASO_ASSIGN(result.left.index, tensor_named(left.name, left.where));
      return result;
    }
    TASO_ASSIGN(result.left, expression(left));
    if (!result.compares()) {
      TASO_RETURN_IF_ERROR(check_uses());
      TASO_ASSIGN(const AttributeKind kind, kind_of(result.left, left.where));
      if (kind != AttributeKind::real)
        return bad_input(std::string("finite is for real numbers, this is ") + describe(kind), left.where);
      return result;
    }
    TASO_ASSIGN(result.right, expression(right));
    TASO_RETURN_IF_ERROR(check_uses());
    TASO_ASSIGN(const AttributeKind a, kind_of(result.left, left.where));
    TASO_ASSIGN(const AttributeKind b, kind_of(result.right, right.where));
    if (!are_comparable(relation, a, b))
      return bad_input(std::string(describe(a)) + " cannot be compared with " + describe(b) + " here" +
                           (a != b ? "; l[0] is an element of a list l" : ""),
                       left.where);
    return result;
  }

 private:
  // Whether a condition may be true and may be false: a list equals no number, but all of its elements may be below
  // one.
  static bool are_comparable(Condition::Relation relation, AttributeKind a, AttributeKind b) {
    const bool ordered = relation == Condition::Relation::less || relation == Condition::Relation::less_equal;
    auto both_in = [&](AttributeKind first, AttributeKind second) {
      return (a == first || a == second) && (b == first || b == second);
    };
    if (both_in(AttributeKind::integer, AttributeKind::real)) return true;
    return ordered ? both_in(AttributeKind::integer, AttributeKind::integers) : a == b;
  }

  // A reference to a tensor: a value, and whether an output of it has been chosen.
  struct Reference {
    PatternValue value;
    bool chosen = true;
  };
  struct Use {
    AttributeExpression expression;
    std::optional<AttributeKind> required;
    std::string what;
    SourceLocation where;
  };

  Status declare(const Given& given) {
    if (rule_.is_axiom) return bad_input("only a rule has variables that are given", given.where);
    if (is_reserved(given.name) || catalog_.is_function(given.name))
      return bad_input("'" + given.name + "' is a word of the language or a function", given.where);
    auto& names = rule_.attribute_variables;
    if (std::find(names.begin(), names.end(), given.name) != names.end())
      return bad_input("'" + given.name + "' has a value already: it occurs in the source or stands behind 'for' twice",
                       given.where);
    names.push_back(given.name);
    kinds_.emplace_back(AttributeKind::integer);
    used_.push_back(false);
    return {};
  }

  Status side(const std::vector<TermSyntax>& terms, Pattern& pattern) {
    pattern_ = &pattern;
    memo_.clear();
    for (const TermSyntax& term : terms) {
      TASO_ASSIGN(const PatternValue value, tensor(term));
      if (in_source_ && !rule_.is_axiom && value.is_variable)
        return bad_input("an output of the source must be computed by an operator, '" + term.name + "' is a variable",
                         term.where);
      pattern.outputs.push_back(value);
    }
    return {};
  }

  // The tensor a term denotes; an operator with several outputs needs a port.
  Expected<PatternValue> tensor(const TermSyntax& term) {
    TASO_ASSIGN(Reference reference, resolve(term));
    if (reference.chosen) return reference.value;
    const std::optional<std::size_t> outputs = output_count(pattern_->nodes[reference.value.index]);
    if (outputs != std::size_t{1})
      return bad_input(pattern_->nodes[reference.value.index].op + " has " +
                           (outputs ? std::to_string(*outputs) + " outputs" : std::string("several outputs")) +
                           ", choose one: .0, .1, ...",
                       term.where);
    return reference.value;
  }

  Expected<Reference> resolve(const TermSyntax& term) {
    Reference result;
    if (term.is_application) {
      TASO_ASSIGN(const std::uint32_t node, application(term));
      result = {{false, node, 0}, false};
    } else if (auto definition = definitions_.find(term.name); definition != definitions_.end()) {
      TASO_ASSIGN(result, named(term.name, definition->second, term.where));
    } else {
      TASO_ASSIGN(result.value, variable(term));
    }
    if (!term.port) return result;
    if (result.chosen)
      return bad_input("'" + term.name + "' is one tensor, there is no output " + std::to_string(*term.port),
                       term.where);
    const PatternNode& node = pattern_->nodes[result.value.index];
    if (const auto outputs = output_count(node); outputs && *term.port >= *outputs)
      return bad_input(node.op + " has " + std::to_string(*outputs) + (*outputs == 1 ? " output" : " outputs") +
                           ", no output " + std::to_string(*term.port),
                       term.where);
    result.value.port = *term.port;
    result.chosen = true;
    return result;
  }

  Expected<Reference> named(const std::string& name, Definition& definition, const SourceLocation& where) {
    if (auto known = memo_.find(name); known != memo_.end()) {
      if (!known->second) return bad_input("'" + name + "' is defined by itself", where);
      return *known->second;
    }
    if (memo_.size() > 1000) return bad_input("more than 1000 names in one statement", where);
    if (++nesting_ > 200) return bad_input("names nested more than 200 deep", where);
    definition.used = true;
    memo_[name] = std::nullopt;
    TASO_ASSIGN(const Reference reference, resolve(definition.term));
    memo_[name] = reference;
    --nesting_;
    return reference;
  }

  Expected<PatternValue> variable(const TermSyntax& term) {
    if (is_reserved(term.name)) return bad_input("'" + term.name + "' is a word of the language", term.where);
    auto& names = rule_.tensor_variables;
    const auto place = std::find(names.begin(), names.end(), term.name);
    if (place == names.end()) {
      if (!in_source_)
        return bad_input("tensor '" + term.name + "' of the target does not occur in the source", term.where);
      names.push_back(term.name);
      return PatternValue{true, static_cast<std::uint32_t>(names.size() - 1), 0};
    }
    return PatternValue{true, static_cast<std::uint32_t>(place - names.begin()), 0};
  }

  Expected<std::uint32_t> application(const TermSyntax& term) {
    const OperatorSignature* signature = catalog_.signature(term.name);
    if (signature == nullptr) return bad_input("unknown operator '" + term.name + "'", term.where);
    if (const std::string problem = arity_problem(*signature, term.arguments.size()); !problem.empty())
      return bad_input(term.name + " " + problem, term.where);
    PatternNode node;
    node.op = term.name;
    for (const TermSyntax& argument : term.arguments) {
      TASO_ASSIGN(const PatternValue input, tensor(argument));
      node.inputs.push_back(input);
    }
    for (const AttributeSignature& declared : signature->attributes) {
      const auto given = std::find_if(term.attributes.begin(), term.attributes.end(),
                                      [&](const TermSyntax::Attribute& a) { return a.name == declared.name; });
      AttributeExpression value;
      if (given == term.attributes.end()) {
        if (!declared.default_value)
          return bad_input("attribute " + declared.name + " of " + term.name + " is missing", term.where);
        value.literal = *declared.default_value;
      } else {
        TASO_ASSIGN(value, expression(given->value));
        // An integer where a real is declared is that real.
        if (value.kind == Kind::literal && declared.kind == AttributeKind::real)
          if (const auto* integer = std::get_if<std::int64_t>(&value.literal))
            value.literal = static_cast<double>(*integer);
        if (in_source_) TASO_RETURN_IF_ERROR(bind(value, declared.kind, given->where));
        uses_.push_back({value, declared.kind, "attribute " + declared.name + " of " + term.name, given->where});
      }
      node.attributes.emplace_back(declared.name, std::move(value));
    }
    for (const TermSyntax::Attribute& given : term.attributes)
      if (std::none_of(signature->attributes.begin(), signature->attributes.end(),
                       [&](const AttributeSignature& a) { return a.name == given.name; }))
        return bad_input(term.name + " has no attribute '" + given.name + "'; it has " + attribute_names(*signature),
                         given.where);
    std::sort(node.attributes.begin(), node.attributes.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    auto& nodes = pattern_->nodes;
    const auto same = std::find(nodes.begin(), nodes.end(), node);
    if (same != nodes.end()) return static_cast<std::uint32_t>(same - nodes.begin());
    nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes.size() - 1);
  }

  // A variable that stands alone in an attribute of the source, or in a list there, is bound by it.
  Status bind(const AttributeExpression& value, AttributeKind kind, const SourceLocation& where) {
    if (value.kind == Kind::variable) {
      auto& known = kinds_[value.index];
      if (known && *known != kind)
        return bad_input("attribute variable '" + rule_.attribute_variables[value.index] + "' is " + describe(*known) +
                             " elsewhere, here it must be " + describe(kind),
                         where);
      known = kind;
    }
    if (value.kind == Kind::list)
      for (const AttributeExpression& element : value.operands)
        if (element.kind == Kind::variable) TASO_RETURN_IF_ERROR(bind(element, AttributeKind::integer, where));
    return {};
  }

  Expected<std::uint32_t> tensor_named(const std::string& name, const SourceLocation& where) {
    const auto& names = rule_.tensor_variables;
    const auto place = std::find(names.begin(), names.end(), name);
    if (place != names.end()) return static_cast<std::uint32_t>(place - names.begin());
    if (definitions_.count(name) != 0)
      return bad_input("the shape of '" + name + "' is not at hand: only variables of the source can be asked", where);
    if (!in_source_) return bad_input("tensor '" + name + "' does not occur in the source", where);
    rule_.tensor_variables.push_back(name);
    shape_only_.emplace_back(name, where);
    return static_cast<std::uint32_t>(names.size() - 1);
  }

  Expected<AttributeExpression> expression(const ExpressionSyntax& syntax) {
    AttributeExpression result;
    switch (syntax.kind) {
      case ExpressionSyntax::Kind::integer:
        result.literal = syntax.integer;
        return result;
      case ExpressionSyntax::Kind::real:
        result.literal = syntax.real;
        return result;
      case ExpressionSyntax::Kind::name: {
        if (catalog_.is_function(syntax.name)) {
          result.literal = SymbolValue{syntax.name};
          return result;
        }
        if (is_reserved(syntax.name)) return bad_input("'" + syntax.name + "' is a word of the language", syntax.where);
        auto& names = rule_.attribute_variables;
        const auto place = std::find(names.begin(), names.end(), syntax.name);
        result.kind = Kind::variable;
        result.index = static_cast<std::uint32_t>(place - names.begin());
        if (place == names.end()) {
          if (!in_source_)
            return bad_input("attribute variable '" + syntax.name + "' is not bound by the source", syntax.where);
          names.push_back(syntax.name);
          kinds_.emplace_back();
          used_.push_back(false);
        }
        used_[result.index] = true;
        return result;
      }
      case ExpressionSyntax::Kind::value:
        return bad_input(
            "value(...) is for maps of nodes; in a rule, fill(; shape=s, value=e) binds the number of a constant",
            syntax.where);
      case ExpressionSyntax::Kind::rank: {
        result.kind = Kind::rank;
        TASO_ASSIGN(result.index, tensor_named(syntax.name, syntax.where));
        return result;
      }
      case ExpressionSyntax::Kind::length: {
        result.kind = Kind::length;
        TASO_ASSIGN(AttributeExpression list, expression(syntax.operands[0]));
        result.operands.push_back(std::move(list));
        return result;
      }
      case ExpressionSyntax::Kind::dimension: {
        result.kind = Kind::dimension;
        TASO_ASSIGN(result.index, tensor_named(syntax.name, syntax.where));
        TASO_ASSIGN(AttributeExpression axis, expression(syntax.operands[0]));
        if (axis.kind == Kind::literal) {
          const auto* number = std::get_if<std::int64_t>(&axis.literal);
          if (number == nullptr || *number >= 0)
            return bad_input("an axis is counted from the end: -1 is the last; found " + to_string(axis.literal),
                             syntax.operands[0].where);
          result.axis = *number;
        } else {
          result.operands.push_back(std::move(axis));
        }
        return result;
      }
      case ExpressionSyntax::Kind::element: {
        result.kind = Kind::element;
        result.axis = syntax.integer;
        TASO_ASSIGN(AttributeExpression list, expression(syntax.operands[0]));
        result.operands.push_back(std::move(list));
        return result;
      }
      case ExpressionSyntax::Kind::list: {
        std::vector<std::int64_t> numbers;
        for (const ExpressionSyntax& element : syntax.operands) {
          TASO_ASSIGN(AttributeExpression operand, expression(element));
          if (operand.kind == Kind::literal && std::holds_alternative<std::int64_t>(operand.literal))
            numbers.push_back(std::get<std::int64_t>(operand.literal));
          result.operands.push_back(std::move(operand));
        }
        if (numbers.size() == result.operands.size()) {
          result.operands.clear();
          result.literal = std::move(numbers);
        } else {
          result.kind = Kind::list;
        }
        return result;
      }
      case ExpressionSyntax::Kind::binary: {
        result.kind = syntax.operation;
        for (const ExpressionSyntax& operand : syntax.operands) {
          TASO_ASSIGN(AttributeExpression value, expression(operand));
          result.operands.push_back(std::move(value));
        }
        return result;
      }
    }
    return internal_error("unknown kind of expression");
  }

  // Variables may be used in the source before the place that binds them, so uses are checked when a side is complete.
  Status check_uses() {
    for (const Use& use : uses_) {
      TASO_ASSIGN(const AttributeKind kind, kind_of(use.expression, use.where));
      const bool fits = !use.required || kind == *use.required ||
                        (kind == AttributeKind::integer && *use.required == AttributeKind::real);
      if (!fits)
        return bad_input(use.what + " must be " + describe(*use.required) + ", this is " + describe(kind), use.where);
    }
    uses_.clear();
    for (const auto& [name, where] : shape_only_) {
      bool found = false;
      const auto index =
          static_cast<std::uint32_t>(std::find(rule_.tensor_variables.begin(), rule_.tensor_variables.end(), name) -
                                     rule_.tensor_variables.begin());
      for (const PatternNode& node : rule_.source.nodes)
        found = found || std::count(node.inputs.begin(), node.inputs.end(), PatternValue{true, index, 0}) != 0;
      if (!found) return bad_input("tensor '" + name + "' does not occur in the source", where);
    }
    shape_only_.clear();
    return {};
  }

  Expected<AttributeKind> kind_of(const AttributeExpression& value, const SourceLocation& where) const {
    switch (value.kind) {
      case Kind::literal:
        return static_cast<AttributeKind>(value.literal.index());
      case Kind::variable:
        if (!kinds_[value.index])
          return bad_input("attribute variable '" + rule_.attribute_variables[value.index] +
                               "' is not bound by the source: it must stand alone in an attribute there, or in a list",
                           where);
        return *kinds_[value.index];
      case Kind::rank:
        return AttributeKind::integer;
      case Kind::length: {
        TASO_ASSIGN(const AttributeKind kind, kind_of(value.operands[0], where));
        if (kind != AttributeKind::integers)
          return bad_input(std::string("only a list has a length, this is ") + describe(kind), where);
        return AttributeKind::integer;
      }
      case Kind::elements:
        return internal_error("the elements of a tensor are no attribute value");
      case Kind::dimension:
        for (const AttributeExpression& axis : value.operands) {
          TASO_ASSIGN(const AttributeKind kind, kind_of(axis, where));
          if (kind != AttributeKind::integer)
            return bad_input(std::string("an axis must be an integer, this is ") + describe(kind), where);
        }
        return AttributeKind::integer;
      case Kind::list:
        for (const AttributeExpression& element : value.operands) {
          TASO_ASSIGN(const AttributeKind kind, kind_of(element, where));
          if (kind != AttributeKind::integer)
            return bad_input(std::string("an element of a list must be an integer, this is ") + describe(kind), where);
        }
        return AttributeKind::integers;
      case Kind::element: {
        TASO_ASSIGN(const AttributeKind kind, kind_of(value.operands[0], where));
        if (kind != AttributeKind::integers)
          return bad_input(std::string("only a list has elements, this is ") + describe(kind), where);
        return AttributeKind::integer;
      }
      case Kind::add:
      case Kind::subtract:
      case Kind::multiply:
      case Kind::floor_divide: {
        TASO_ASSIGN(const AttributeKind left, kind_of(value.operands[0], where));
        TASO_ASSIGN(const AttributeKind right, kind_of(value.operands[1], where));
        const std::optional<AttributeKind> kind = kind_of_arithmetic(value.kind, left, right);
        if (!kind)
          return bad_input(std::string("arithmetic between ") + describe(left) + " and " + describe(right), where);
        return *kind;
      }
    }
    return internal_error("unknown kind of attribute expression");
  }

  // Number of outputs of a pattern node, if its attributes determine it.
  [[nodiscard]] std::optional<std::size_t> output_count(const PatternNode& node) const {
    Attributes attributes;
    for (const auto& [name, value] : node.attributes) {
      if (value.kind == Kind::literal)
        attributes.set(name, value.literal);
      else if (value.kind == Kind::list)
        attributes.set(name, std::vector<std::int64_t>(value.operands.size()));
    }
    if (const PieceAttributes* const names = catalog_.pieces(node.op); names != nullptr) {
      const AttributeValue* sizes = attributes.find(names->sizes);
      if (sizes == nullptr || !std::holds_alternative<std::vector<std::int64_t>>(*sizes)) return std::nullopt;
      return std::get<std::vector<std::int64_t>>(*sizes).size();
    }
    return catalog_.output_count(node.op, attributes);
  }

  const OperatorCatalog& catalog_;
  Substitution& rule_;
  std::map<std::string, Definition>& definitions_;
  Pattern* pattern_ = nullptr;
  bool in_source_ = true;
  int nesting_ = 0;
  std::map<std::string, std::optional<Reference>> memo_;  // Names of `where` on this side; empty while being defined.
  std::vector<std::optional<AttributeKind>> kinds_;       // Of the attribute variables; empty until bound.
  std::vector<bool> used_;                                // Whether attribute variables were met in an expression.
  std::vector<Use> uses_;
  std::vector<std::pair<std::string, SourceLocation>> shape_only_;  // Tensors first met in dim or rank.
};

class RuleParser {
 public:
  RuleParser(std::vector<Token> tokens, const OperatorCatalog& catalog)
      : cursor_(std::move(tokens)), catalog_(catalog) {}

  Expected<std::vector<Substitution>> file() {
    std::vector<Substitution> rules;
    std::map<std::string, SourceLocation> names;
    while (!cursor_.at_end()) {
      TASO_ASSIGN(Substitution rule, statement());
      const auto [place, added] = names.emplace(rule.name, rule.where);
      if (!added)
        return bad_input("there is a rule '" + rule.name + "' already, at line " + std::to_string(place->second.line),
                         rule.where);
      rules.push_back(std::move(rule));
    }
    return rules;
  }

 private:
  Expected<Substitution> statement() {
    Substitution rule;
    rule.where = cursor_.peek().where;
    if (cursor_.accept("axiom"))
      rule.is_axiom = true;
    else if (!cursor_.accept("rule"))
      return cursor_.unexpected("'rule NAME:' or 'axiom NAME:'");
    TASO_ASSIGN(rule.name, cursor_.expect_identifier("a name"));
    if (is_reserved(rule.name)) return bad_input("'" + rule.name + "' is a word of the language", rule.where);
    TASO_RETURN_IF_ERROR(cursor_.expect(":", "after the name"));
    TASO_ASSIGN(const std::vector<TermSyntax> source, terms());
    const SourceLocation arrow = cursor_.peek().where;
    TASO_RETURN_IF_ERROR(cursor_.expect(rule.is_axiom ? "=" : "=>",
                                        rule.is_axiom ? "between the sides of an axiom" : "after the source"));
    TASO_ASSIGN(const std::vector<TermSyntax> target, terms());
    if (source.size() != target.size())
      return bad_input("the left side has " + std::to_string(source.size()) + " outputs, the right side " +
                           std::to_string(target.size()),
                       arrow);
    std::map<std::string, Definition> definitions;
    std::vector<PendingCondition> conditions;
    std::vector<Given> given;
    TASO_RETURN_IF_ERROR(clauses(rule, definitions, conditions, given));
    Resolver resolver(catalog_, rule, definitions);
    TASO_RETURN_IF_ERROR(resolver.sides(source, given, target));
    for (const PendingCondition& pending : conditions) {
      TASO_ASSIGN(Condition condition, resolver.condition(pending.relation, pending.left, pending.right));
      rule.conditions.push_back(std::move(condition));
    }
    TASO_RETURN_IF_ERROR(resolver.check_given(given));
    return rule;
  }

  struct PendingCondition {
    Condition::Relation relation;
    ExpressionSyntax left, right;
  };

  Expected<std::vector<TermSyntax>> terms() {
    std::vector<TermSyntax> result;
    do {
      TASO_ASSIGN(TermSyntax term, parse_term(cursor_));
      result.push_back(std::move(term));
    } while (cursor_.accept(","));
    return result;
  }

  Status clauses(Substitution& rule, std::map<std::string, Definition>& definitions,
                 std::vector<PendingCondition>& conditions, std::vector<Given>& given) {
    while (true) {
      if (cursor_.accept("where")) {
        do {
          Definition definition;
          definition.where = cursor_.peek().where;
          TASO_ASSIGN(const std::string name, cursor_.expect_identifier("a name for a part"));
          if (is_reserved(name)) return bad_input("'" + name + "' is a word of the language", definition.where);
          TASO_RETURN_IF_ERROR(cursor_.expect("=", "after '" + name + "'"));
          TASO_ASSIGN(definition.term, parse_term(cursor_));
          const SourceLocation where = definition.where;
          if (!definitions.emplace(name, std::move(definition)).second)
            return bad_input("'" + name + "' is named twice", where);
        } while (cursor_.accept(","));
      } else if (cursor_.accept("if")) {
        do {
          TASO_ASSIGN(PendingCondition condition, comparison());
          conditions.push_back(std::move(condition));
        } while (cursor_.accept(","));
      } else if (cursor_.accept("for")) {
        do {
          const SourceLocation where = cursor_.peek().where;
          TASO_ASSIGN(const std::string name, cursor_.expect_identifier("a variable"));
          given.push_back({name, where});
        } while (cursor_.accept(","));
      } else if (cursor_.accept("proof")) {
        do {
          TASO_ASSIGN(std::string proof, cursor_.expect_identifier("a kind of proof"));
          if (cursor_.peek().kind == TokenKind::integer) proof += " " + cursor_.next().text;
          rule.proofs.push_back(std::move(proof));
        } while (cursor_.accept(","));
      } else if (cursor_.at("class")) {
        TASO_RETURN_IF_ERROR(numeric_class(rule));
      } else if (cursor_.accept("expect")) {
        const SourceLocation where = cursor_.peek().where;
        TASO_ASSIGN(const std::string verdict, cursor_.expect_identifier("proved, refuted or unknown"));
        if (verdict != "proved" && verdict != "refuted" && verdict != "unknown")
          return bad_input("expected proved, refuted or unknown, found '" + verdict + "'", where);
        rule.expect = verdict;
      } else if (cursor_.at_end() || cursor_.at("rule") || cursor_.at("axiom")) {
        return {};
      } else {
        return cursor_.unexpected("'where', 'for', 'if', 'proof', 'class', 'expect' or the next rule");
      }
    }
  }

  Expected<PendingCondition> comparison() {
    PendingCondition result;
    for (const auto& [name, unary] :
         {std::pair("positive", Condition::Relation::positive),
          std::pair("nonnegative", Condition::Relation::nonnegative),
          std::pair("nonzero", Condition::Relation::nonzero), std::pair("finite", Condition::Relation::finite)}) {
      if (!cursor_.at(name) || cursor_.peek(1).text != "(") continue;
      cursor_.next();
      cursor_.next();
      result.relation = unary;
      TASO_ASSIGN(result.left, parse_expression(cursor_));
      TASO_RETURN_IF_ERROR(cursor_.expect(")", std::string("after ") + name + "(..."));
      return result;
    }
    TASO_ASSIGN(result.left, parse_expression(cursor_));
    const std::string relation = cursor_.peek().text;
    bool swap = false;
    if (relation == "==")
      result.relation = Condition::Relation::equal;
    else if (relation == "!=")
      result.relation = Condition::Relation::not_equal;
    else if (relation == "<" || relation == ">")
      result.relation = Condition::Relation::less;
    else if (relation == "<=" || relation == ">=")
      result.relation = Condition::Relation::less_equal;
    else
      return cursor_.unexpected("one of == != < <= > >=");
    swap = relation[0] == '>';
    cursor_.next();
    TASO_ASSIGN(result.right, parse_expression(cursor_));
    if (swap) std::swap(result.left, result.right);
    return result;
  }

  Status numeric_class(Substitution& rule) {
    cursor_.next();
    const SourceLocation where = cursor_.peek().where;
    TASO_ASSIGN(const std::string name, cursor_.expect_identifier("a numeric class"));
    for (const NumericClass candidate :
         {NumericClass::exact, NumericClass::reassociation, NumericClass::accumulation, NumericClass::distribution})
      if (name == to_string(candidate)) {
        rule.numeric_class = candidate;
        return {};
      }
    return bad_input("expected exact, reassociation, accumulation or distribution, found '" + name + "'", where);
  }

  TokenCursor cursor_;
  const OperatorCatalog& catalog_;
};

}  // namespace

Expected<std::vector<Substitution>> parse_rules(std::string_view text, const std::string& file,
                                                const OperatorCatalog& catalog) {
  TASO_ASSIGN(std::vector<Token> tokens, tokenize(text, file));
  return RuleParser(std::move(tokens), catalog).file();
}

Expected<std::vector<Substitution>> load_rules(const std::string& path, const OperatorCatalog& catalog) {
  TASO_ASSIGN(const std::string text, read_file(path));
  return parse_rules(text, path, catalog);
}

}  // namespace taso
