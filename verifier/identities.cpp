#include "verifier/identities.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

/// A tensor: a variable of the rule, or an output of an operator application.
struct Term {
  std::uint32_t node = 0, port = 0;
  auto operator<=>(const Term&) const = default;
};

struct TermNode {
  bool variable = false;
  std::uint32_t index = 0;  // of the variable
  std::string op;
  std::vector<Term> inputs;
  std::vector<std::pair<std::string, AttributeExpression>> attributes;
  bool operator==(const TermNode&) const = default;
};

/// Equal terms are one node.
class Terms {
 public:
  std::uint32_t intern(TermNode node) {
    const auto found = std::find(nodes_.begin(), nodes_.end(), node);
    if (found != nodes_.end()) return static_cast<std::uint32_t>(found - nodes_.begin());
    nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  Term variable(std::uint32_t index) {
    TermNode node;
    node.variable = true;
    node.index = index;
    return {intern(std::move(node)), 0};
  }
  [[nodiscard]] const TermNode& operator[](Term term) const { return nodes_[term.node]; }

  std::vector<Term> add(const Pattern& pattern) {
    std::vector<std::uint32_t> numbers;
    auto term = [&](const PatternValue& value) {
      return value.is_variable ? variable(value.index) : Term{numbers[value.index], value.port};
    };
    for (const PatternNode& node : pattern.nodes) {
      TermNode result;
      result.op = node.op;
      for (const PatternValue& input : node.inputs) result.inputs.push_back(term(input));
      result.attributes = node.attributes;
      numbers.push_back(intern(std::move(result)));
    }
    std::vector<Term> outputs;
    for (const PatternValue& output : pattern.outputs) outputs.push_back(term(output));
    return outputs;
  }

  /// All terms below, themselves included, each once, operands first.
  void collect(Term term, std::vector<Term>& found) const {
    if (std::find(found.begin(), found.end(), term) != found.end()) return;
    for (const Term& input : nodes_[term.node].inputs) collect(input, found);
    found.push_back(term);
  }

  /// `term` with `from` replaced by `to`, and other outputs of its node left as they are.
  Term replace(Term term, Term from, Term to) {
    if (term == from) return to;
    TermNode node = nodes_[term.node];
    bool changed = false;
    for (Term& input : node.inputs) {
      const Term next = replace(input, from, to);
      changed = changed || next != input;
      input = next;
    }
    return changed ? Term{intern(std::move(node)), term.port} : term;
  }

 private:
  std::vector<TermNode> nodes_;
};

AttributeExpression literal_expression(AttributeValue value) {
  AttributeExpression result;
  result.literal = std::move(value);
  return result;
}

AttributeExpression element_of(AttributeExpression list, std::size_t index) {
  AttributeExpression result;
  result.kind = Kind::element;
  result.axis = static_cast<std::int64_t>(index);
  result.operands = {std::move(list)};
  return result;
}

/// What an axiom's variables stand for.
struct Bindings {
  std::vector<std::optional<Term>> tensors;
  std::vector<std::optional<AttributeExpression>> attributes;
};

/// One direction of one output of an axiom.
struct Rewrite {
  const Substitution* axiom = nullptr;
  bool forward = true;
  std::size_t output = 0;
  [[nodiscard]] const Pattern& from() const { return forward ? axiom->source : axiom->target; }
  [[nodiscard]] const Pattern& to() const { return forward ? axiom->target : axiom->source; }
};

/// Applies axioms to terms.
class Rewriter {
 public:
  Rewriter(Terms& terms, const OperatorRegistry& registry) : terms_(terms), registry_(registry) {}

  /// All results of a rewrite at the top of a term.
  std::vector<Term> apply(const Rewrite& rewrite, Term term) {
    const PatternValue& top = rewrite.from().outputs[rewrite.output];
    if (top.is_variable) return {};
    Bindings empty;
    empty.tensors.resize(rewrite.axiom->tensor_variables.size());
    empty.attributes.resize(rewrite.axiom->attribute_variables.size());
    std::vector<Term> results;
    for (Bindings& bindings : match(rewrite.from(), top, term, empty)) {
      const std::optional<Term> result = build(rewrite.to(), rewrite.to().outputs[rewrite.output], bindings);
      if (result && *result != term && std::find(results.begin(), results.end(), *result) == results.end())
        results.push_back(*result);
    }
    return results;
  }

 private:
  std::vector<Bindings> match(const Pattern& pattern, const PatternValue& value, Term term, const Bindings& so_far) {
    if (value.is_variable) {
      const auto& bound = so_far.tensors[value.index];
      if (bound) return *bound == term ? std::vector<Bindings>{so_far} : std::vector<Bindings>{};
      std::vector<Bindings> result{so_far};
      result[0].tensors[value.index] = term;
      return result;
    }
    const PatternNode& node = pattern.nodes[value.index];
    const TermNode actual = terms_[term];
    if (actual.variable || actual.op != node.op || term.port != value.port ||
        actual.inputs.size() != node.inputs.size() || actual.attributes.size() != node.attributes.size())
      return {};
    std::vector<std::vector<Term>> orders{actual.inputs};
    if (actual.inputs.size() == 2 && actual.inputs[0] != actual.inputs[1] && registry_.is_commutative(node.op))
      orders.push_back({actual.inputs[1], actual.inputs[0]});
    std::vector<Bindings> results;
    for (const std::vector<Term>& order : orders) {
      std::vector<Bindings> states{so_far};
      for (std::size_t i = 0; i < order.size(); ++i) {
        std::vector<Bindings> next;
        for (const Bindings& state : states)
          for (Bindings& matched : match(pattern, node.inputs[i], order[i], state)) next.push_back(std::move(matched));
        states = std::move(next);
      }
      for (Bindings& state : states) {
        bool fits = true;
        // What binds a variable first, then what is computed from variables.
        for (const bool computed : {false, true})
          for (std::size_t a = 0; a < node.attributes.size() && fits; ++a)
            fits = attribute(node.attributes[a].second, actual.attributes[a].second, state, computed);
        if (fits) results.push_back(std::move(state));
      }
    }
    return results;
  }

  bool attribute(const AttributeExpression& wanted, const AttributeExpression& actual, Bindings& state, bool computed) {
    switch (wanted.kind) {
      case Kind::variable: {
        auto& bound = state.attributes[wanted.index];
        if (!bound) bound = actual;
        return *bound == actual;
      }
      case Kind::literal:
        return wanted == actual;
      case Kind::list: {
        const auto* values = std::get_if<std::vector<std::int64_t>>(&actual.literal);
        const bool literal = actual.kind == Kind::literal && values != nullptr;
        const std::size_t length = literal                     ? values->size()
                                   : actual.kind == Kind::list ? actual.operands.size()
                                                               : wanted.operands.size();
        if (length != wanted.operands.size() ||
            (!literal && actual.kind != Kind::list && actual.kind != Kind::variable))
          return false;
        for (std::size_t i = 0; i < length; ++i) {
          const AttributeExpression part = literal                     ? literal_expression((*values)[i])
                                           : actual.kind == Kind::list ? actual.operands[i]
                                                                       : element_of(actual, i);
          if (!attribute(wanted.operands[i], part, state, computed)) return false;
        }
        return true;
      }
      default: {
        if (!computed) return true;
        const std::optional<AttributeExpression> value = substitute(wanted, state);
        return value && *value == actual;
      }
    }
  }

  /// An attribute of the axiom in terms of the rule; nothing where it asks for the extent of what is no variable.
  std::optional<AttributeExpression> substitute(const AttributeExpression& expression, const Bindings& state) {
    AttributeExpression result = expression;
    if (expression.kind == Kind::variable) return state.attributes[expression.index];
    if (expression.names_tensor()) {
      const auto& tensor = state.tensors[expression.index];
      if (!tensor || !terms_[*tensor].variable) return std::nullopt;
      result.index = terms_[*tensor].index;
    }
    for (AttributeExpression& operand : result.operands) {
      auto value = substitute(operand, state);
      if (!value) return std::nullopt;
      operand = std::move(*value);
    }
    if (result.kind == Kind::dimension && result.operands.size() == 1 && result.operands[0].kind == Kind::literal)
      if (const auto* axis = std::get_if<std::int64_t>(&result.operands[0].literal)) {
        result.axis = *axis;
        result.operands.clear();
      }
    return result.kind == Kind::list ? folded(std::move(result)) : result;
  }

  /// [s[0], s[1]] is s, taken to have these elements; a list of numbers is one.
  static AttributeExpression folded(AttributeExpression list) {
    if (list.operands.empty()) return list;
    const AttributeExpression& first = list.operands.front();
    std::vector<std::int64_t> numbers;
    bool elements = first.kind == Kind::element && first.operands[0].kind == Kind::variable;
    for (std::size_t i = 0; i < list.operands.size(); ++i) {
      const AttributeExpression& operand = list.operands[i];
      elements = elements && operand == element_of(first.operands[0], i);
      if (operand.kind == Kind::literal)
        if (const auto* number = std::get_if<std::int64_t>(&operand.literal)) numbers.push_back(*number);
    }
    if (elements) return AttributeExpression(first.operands[0]);
    return numbers.size() == list.operands.size() ? literal_expression(numbers) : list;
  }

  std::optional<Term> build(const Pattern& pattern, const PatternValue& value, const Bindings& state) {
    if (value.is_variable) return state.tensors[value.index];
    const PatternNode& node = pattern.nodes[value.index];
    TermNode result;
    result.op = node.op;
    for (const PatternValue& input : node.inputs) {
      const auto term = build(pattern, input, state);
      if (!term) return std::nullopt;
      result.inputs.push_back(*term);
    }
    for (const auto& [name, expression] : node.attributes) {
      auto attribute = substitute(expression, state);
      if (!attribute) return std::nullopt;
      result.attributes.emplace_back(name, std::move(*attribute));
    }
    return Term{terms_.intern(std::move(result)), value.port};
  }

  Terms& terms_;
  const OperatorRegistry& registry_;
};

using Equation = std::vector<std::pair<Term, Term>>;

/// An axiom of which one side is one operator without literals and the other one operator with some, on the same
/// variables in the same order: apply(x; act=relu) = relu(x) leads from relu to apply.
std::optional<Rewrite> generalising(const Substitution& axiom) {
  auto plain = [&](const Pattern& side, bool literals) {
    if (side.nodes.size() != 1 || side.outputs.size() != 1 || side.outputs[0].is_variable) return false;
    const PatternNode& node = side.nodes[0];
    if (node.inputs.size() != axiom.tensor_variables.size()) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!node.inputs[i].is_variable || node.inputs[i].index != i) return false;
    const auto is_literal = [](const auto& attribute) { return attribute.second.kind == Kind::literal; };
    return literals == std::any_of(node.attributes.begin(), node.attributes.end(), is_literal);
  };
  if (!axiom.is_axiom || !axiom.conditions.empty()) return std::nullopt;
  if (plain(axiom.source, false) && plain(axiom.target, true)) return Rewrite{&axiom, true, 0};
  if (plain(axiom.target, false) && plain(axiom.source, true)) return Rewrite{&axiom, false, 0};
  return std::nullopt;
}

/// Equations become statements.
class Extraction {
 public:
  Extraction(const Terms& terms, const Substitution& rule, const OperatorRegistry& registry)
      : terms_(terms), rule_(rule), registry_(registry) {}

  /// The equation with common subterms (`cut`) and foreign attributes replaced by variables; nothing if neither side
  /// binds all variables.
  std::optional<Substitution> statement(const Equation& equation, bool cut) {
    result_ = Substitution{};
    result_.is_axiom = true;
    tensors_.clear();
    attributes_.clear();
    foreign_.clear();
    common_.clear();
    std::vector<Term> left, right;
    for (const auto& [a, b] : equation) {
      terms_.collect(a, left);
      terms_.collect(b, right);
    }
    for (const Term& term : left)
      if (cut && !terms_[term].variable && std::find(right.begin(), right.end(), term) != right.end())
        common_.insert(term);
    // Tensor variables first: an attribute that speaks of others is foreign.
    for (const auto& [a, b] : equation) {
      find_variables(a);
      find_variables(b);
    }
    for (const auto& [a, b] : equation) {
      numbers_ = &source_numbers_;
      result_.source.outputs.push_back(value(a, result_.source));
      numbers_ = &target_numbers_;
      result_.target.outputs.push_back(value(b, result_.target));
    }
    source_numbers_.clear();
    target_numbers_.clear();
    for (const Condition& condition : rule_.conditions) {
      const auto before = result_.attribute_variables.size();
      Condition copy = condition;
      copy.left = attribute(condition.left, false);
      copy.right = attribute(condition.right, false);
      if (result_.attribute_variables.size() == before)
        result_.conditions.push_back(std::move(copy));
      else
        result_.attribute_variables.resize(before);  // it speaks of something else
      std::erase_if(foreign_, [&](const auto& entry) { return entry.second >= before; });
      std::erase_if(attributes_, [&](const auto& entry) { return entry.second >= before; });
    }
    if (result_.source == result_.target) return std::nullopt;
    return result_;
  }

 private:
  void find_variables(Term term) {
    if (terms_[term].variable || common_.contains(term)) {
      if (tensors_.contains(term)) return;
      tensors_.emplace(term, static_cast<std::uint32_t>(result_.tensor_variables.size()));
      result_.tensor_variables.push_back("x" + std::to_string(result_.tensor_variables.size()));
      return;
    }
    for (const Term& input : terms_[term].inputs) find_variables(input);
  }

  PatternValue value(Term term, Pattern& pattern) {
    if (const auto it = tensors_.find(term); it != tensors_.end()) return {true, it->second, 0};
    if (const auto it = numbers_->find(term.node); it != numbers_->end()) return {false, it->second, term.port};
    PatternNode node;
    node.op = terms_[term].op;
    for (const Term& input : terms_[term].inputs) node.inputs.push_back(value(input, pattern));
    for (const auto& [name, expression] : terms_[term].attributes)
      node.attributes.emplace_back(name, attribute(expression, true));
    // Equal nodes are one: terms that differ below a cut may have become equal.
    const auto same = std::find(pattern.nodes.begin(), pattern.nodes.end(), node);
    const auto number = static_cast<std::uint32_t>(same - pattern.nodes.begin());
    if (same == pattern.nodes.end()) pattern.nodes.push_back(std::move(node));
    numbers_->emplace(term.node, number);
    return {false, number, term.port};
  }

  [[nodiscard]] std::optional<std::uint32_t> tensor(std::uint32_t index) const {
    for (const auto& [term, number] : tensors_)
      if (terms_[term].variable && terms_[term].index == index) return number;
    return std::nullopt;
  }

  [[nodiscard]] bool is_foreign(const AttributeExpression& expression) const {
    if (expression.names_tensor() && !tensor(expression.index)) return true;
    return std::any_of(expression.operands.begin(), expression.operands.end(),
                       [&](const AttributeExpression& operand) { return is_foreign(operand); });
  }

  /// Renumbered; with `whole` an expression that speaks of a foreign tensor is one variable, otherwise each extent.
  AttributeExpression attribute(const AttributeExpression& expression, bool whole) {
    if (const auto known = foreign_.find(key(expression)); known != foreign_.end()) return variable(known->second);
    const bool extent = expression.names_tensor();
    if ((whole || extent) && is_foreign(expression)) {
      const auto number = new_variable();
      foreign_.emplace(key(expression), number);
      return variable(number);
    }
    AttributeExpression result = expression;
    if (extent) result.index = *tensor(expression.index);
    if (expression.kind == Kind::variable) {
      const auto it = attributes_.find(expression.index);
      result.index = it != attributes_.end() ? it->second : new_variable();
      attributes_.emplace(expression.index, result.index);
    }
    for (AttributeExpression& operand : result.operands) operand = attribute(operand, false);
    return result;
  }

  static AttributeExpression variable(std::uint32_t number) {
    AttributeExpression result;
    result.kind = Kind::variable;
    result.index = number;
    return result;
  }
  std::uint32_t new_variable() {
    result_.attribute_variables.push_back("n" + std::to_string(result_.attribute_variables.size()));
    return static_cast<std::uint32_t>(result_.attribute_variables.size() - 1);
  }
  [[nodiscard]] std::string key(const AttributeExpression& expression) const {
    Substitution alone;
    alone.tensor_variables = rule_.tensor_variables;
    alone.attribute_variables = rule_.attribute_variables;
    alone.conditions = {{Condition::Relation::equal, expression, expression}};
    return to_string(alone, registry_);
  }

  const Terms& terms_;
  const Substitution& rule_;
  const OperatorRegistry& registry_;
  Substitution result_;
  std::set<Term> common_;
  std::map<Term, std::uint32_t> tensors_;
  std::map<std::uint32_t, std::uint32_t> attributes_;
  std::map<std::string, std::uint32_t> foreign_;
  std::map<std::uint32_t, std::uint32_t> source_numbers_, target_numbers_;
  std::map<std::uint32_t, std::uint32_t>* numbers_ = nullptr;
};

class Enumeration {
 public:
  Enumeration(const OperatorRegistry& registry, const Substitution& rule, const std::vector<Substitution>& axioms,
              const IdentityOptions& options)
      : registry_(registry), rule_(rule), options_(options), rewriter_(terms_, registry) {
    const std::set<std::string> operators = related_operators(rule, axioms);
    for (const Substitution& axiom : axioms) {
      if (const auto rewrite = generalising(axiom)) {
        generalising_.push_back(*rewrite);
        continue;  // there and back again leads nowhere
      }
      if (!axiom.is_axiom || axiom.source.outputs.size() != axiom.target.outputs.size()) continue;
      for (const bool forward : {true, false})
        for (std::size_t output = 0; output < axiom.source.outputs.size(); ++output) {
          const Rewrite rewrite{&axiom, forward, output};
          const Pattern& from = rewrite.from();
          if (std::all_of(from.nodes.begin(), from.nodes.end(),
                          [&](const PatternNode& node) { return operators.contains(node.op); }))
            rewrites_.push_back(rewrite);
        }
    }
  }

  std::vector<Substitution> run() {
    Equation start;
    const std::vector<Term> left = terms_.add(rule_.source), right = terms_.add(rule_.target);
    for (std::size_t i = 0; i < left.size(); ++i) start.emplace_back(left[i], right[i]);
    limit_ = rule_.source.nodes.size() + rule_.target.nodes.size();
    std::vector<Equation> states{normalised(start)};
    for (std::size_t begin = 0, step = 0; step <= options_.max_steps; ++step) {
      const std::size_t end = states.size();
      for (std::size_t i = begin; i < end; ++i) {
        propose(states[i]);
        if (step == options_.max_steps) continue;
        for (Equation& next : successors(states[i])) {
          if (states.size() >= options_.max_states) break;
          if (std::find(states.begin(), states.end(), next) == states.end()) states.push_back(std::move(next));
        }
      }
      begin = end;
    }
    std::vector<std::pair<IdentitySize, Substitution>> sorted;
    for (auto& [text, identity] : found_) sorted.emplace_back(size_of(identity, registry_), std::move(identity));
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Substitution> result;
    result.reserve(sorted.size());
    for (auto& [size, identity] : sorted) result.push_back(std::move(identity));
    return result;
  }

 private:
  Equation normalised(Equation equation) {
    for (auto& pair : equation)
      for (Term* side : {&pair.first, &pair.second})
        for (bool changed = true; changed;) {
          changed = false;
          std::vector<Term> below;
          terms_.collect(*side, below);
          for (const Term& term : below)
            for (const Rewrite& rewrite : generalising_) {
              const std::vector<Term> results = changed ? std::vector<Term>{} : rewriter_.apply(rewrite, term);
              if (results.empty()) continue;
              *side = terms_.replace(*side, term, results[0]);
              changed = true;
            }
        }
    return equation;
  }

  /// The equation after one more application of an axiom, to all occurrences of one subterm of one side.
  std::vector<Equation> successors(const Equation& equation) {
    std::vector<Equation> result;
    for (const bool left : {true, false}) {
      std::vector<Term> below;
      for (const auto& [a, b] : equation) terms_.collect(left ? a : b, below);
      for (const Term& term : below)
        for (const Rewrite& rewrite : rewrites_)
          for (const Term& other : rewriter_.apply(rewrite, term)) {
            Equation next = equation;
            for (auto& [a, b] : next) (left ? a : b) = terms_.replace(left ? a : b, term, other);
            result.push_back(normalised(std::move(next)));
          }
    }
    return result;
  }

  /// What is left of two terms when equal operators at their tops are taken away.
  void residue(Term a, Term b, Equation& rest) {
    if (a == b) return;
    const TermNode left = terms_[a], right = terms_[b];
    const bool alike = !left.variable && !right.variable && left.op == right.op && a.port == b.port &&
                       left.attributes == right.attributes && left.inputs.size() == right.inputs.size();
    if (!alike) {
      if (std::find(rest.begin(), rest.end(), std::pair(a, b)) == rest.end()) rest.emplace_back(a, b);
      return;
    }
    std::vector<Term> inputs = right.inputs;
    if (inputs.size() == 2 && registry_.is_commutative(left.op) &&
        (left.inputs[0] == inputs[1] || left.inputs[1] == inputs[0]))
      std::swap(inputs[0], inputs[1]);
    for (std::size_t i = 0; i < inputs.size(); ++i) residue(left.inputs[i], inputs[i], rest);
  }

  void propose(const Equation& equation) {
    Equation rest;
    for (const auto& [a, b] : equation) residue(a, b, rest);
    if (rest.empty()) return;
    note(rest);
    if (rest.size() > 1)
      for (const auto& pair : rest) note({pair});
    // Outputs as they are, one at a time.
    for (const auto& pair : equation) note({pair});
    note(equation);
  }

  void note(const Equation& equation) {
    for (const bool cut : {true, false}) {
      auto statement = Extraction(terms_, rule_, registry_).statement(equation, cut);
      if (!statement) continue;
      if (statement->source.nodes.size() + statement->target.nodes.size() > limit_) continue;
      Substitution identity = canonical_identity(*statement, registry_, "identity");
      if (identity.name.empty()) continue;
      std::string text = to_string(identity, registry_);
      found_.emplace(std::move(text), std::move(identity));
    }
  }

  const OperatorRegistry& registry_;
  const Substitution& rule_;
  const IdentityOptions& options_;
  Terms terms_;
  Rewriter rewriter_;
  std::vector<Rewrite> rewrites_, generalising_;
  std::map<std::string, Substitution> found_;  // by text
  std::size_t limit_ = 0;
};

void collect_attributes(const AttributeExpression& expression, std::set<std::uint32_t>& found) {
  if (expression.kind == Kind::variable) found.insert(expression.index);
  for (const AttributeExpression& operand : expression.operands) collect_attributes(operand, found);
}

/// Whether a side has all variables of the statement.
bool binds_all(const Pattern& side, const Substitution& statement) {
  std::set<std::uint32_t> tensors, attributes;
  for (const PatternValue& output : side.outputs)
    if (output.is_variable) tensors.insert(output.index);
  for (const PatternNode& node : side.nodes) {
    for (const PatternValue& input : node.inputs)
      if (input.is_variable) tensors.insert(input.index);
    for (const auto& [name, expression] : node.attributes) collect_attributes(expression, attributes);
  }
  return !side.nodes.empty() && tensors.size() == statement.tensor_variables.size() &&
         attributes.size() == statement.attribute_variables.size();
}

}  // namespace

std::vector<Substitution> identities_within(const OperatorRegistry& registry, const Substitution& rule,
                                            const std::vector<Substitution>& axioms, const IdentityOptions& options) {
  return Enumeration(registry, rule, axioms, options).run();
}

std::set<std::string> operators_of(const Substitution& statement) {
  std::set<std::string> operators;
  for (const Pattern* pattern : {&statement.source, &statement.target})
    for (const PatternNode& node : pattern->nodes) operators.insert(node.op);
  return operators;
}

std::set<std::string> related_operators(const Substitution& rule, const std::vector<Substitution>& axioms) {
  std::set<std::string> operators = operators_of(rule);
  for (const Substitution& axiom : axioms)
    if (const auto rewrite = generalising(axiom); rewrite && operators.contains(rewrite->from().nodes[0].op))
      operators.insert(rewrite->to().nodes[0].op);
  return operators;
}

IdentitySize size_of(const Substitution& identity, const OperatorRegistry& registry) {
  Substitution plain = identity;
  plain.name = "identity";
  return {identity.source.nodes.size() + identity.target.nodes.size(),
          identity.tensor_variables.size() + identity.attribute_variables.size(), identity.conditions.size(),
          to_string(plain, registry)};
}

Substitution canonical_identity(const Substitution& identity, const OperatorRegistry& registry,
                                const std::string& name) {
  Substitution result = identity;
  result.is_axiom = true;
  result.proofs.clear();
  result.numeric_class.reset();
  result.expect.reset();
  if (result.source.nodes.size() < result.target.nodes.size()) std::swap(result.source, result.target);
  if (!binds_all(result.source, result)) std::swap(result.source, result.target);
  result.name = binds_all(result.source, result) ? name : "";
  if (result.name.empty()) return result;
  result = canonical(result, registry);
  return result;
}

}  // namespace taso
