#include "generator/forms.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

/// An attribute variable that stands for a symbol of the profile, not for a literal.
constexpr std::uint32_t no_group = static_cast<std::uint32_t>(-1);

AttributeExpression variable_of(std::size_t index) {
  AttributeExpression result;
  result.kind = Kind::variable;
  result.index = static_cast<std::uint32_t>(index);
  return result;
}

/// Values of an expression over the group's symbols, one per assignment of these.
std::shared_ptr<const std::vector<AttributeValue>> evaluate_at(const AttributeExpression& expression,
                                                               const std::vector<Symbols>& assignments) {
  auto result = std::make_shared<std::vector<AttributeValue>>();
  for (const Symbols& symbols : assignments) {
    auto value = evaluate_symbolic(expression, symbols);
    if (!value) return nullptr;
    result->push_back(std::move(value).value());
  }
  return result;
}

/// Whether an operator reads an axis that it takes for a pair of axes: how many groups there are follows from extents.
bool may_have_groups(const Substitution& rule, const OperatorRegistry& registry) {
  for (const Pattern* side : {&rule.source, &rule.target})
    for (const PatternNode& node : side->nodes)
      for (const InputSpec& input : registry.find(node.op)->inputs)
        for (const AxisSpec& axis : input.axes)
          if (axis.factors.size() > 1) return true;
  return false;
}

}  // namespace

/// A literal attribute value that may become a variable, wherever it stands.
struct FormFinder::Group {
  std::string attribute;
  AttributeValue value;
  bool operator==(const Group&) const = default;
};

/// A form of the rule.
struct FormFinder::Form {
  GeneralRule rule;                        ///< Without conditions.
  std::vector<AttributeExpression> bases;  ///< Per attribute variable, over the group's symbols.
  std::vector<std::uint32_t> group_of;     ///< Per attribute variable, the literal that it stands for, or no_group.
  bool everywhere = true;                  ///< All variables are typed at all assignments.
  std::vector<Symbols> assignments;        ///< Where they are, if not everywhere.
  std::vector<std::shared_ptr<const Values>> values;  ///< Per attribute variable, at these assignments.
  std::vector<std::vector<Shape>> shapes;             ///< Per tensor variable and assignment.
};

FormFinder::FormFinder(Bank& bank, InstanceComparer& comparer, FormOptions options)
    : bank_(bank), comparer_(comparer), options_(options), pool_(bank, comparer, options.seed) {
  const ProfileGroup& group = bank_.group();
  for (std::size_t i = 0; i < group.worlds; ++i) assignments_.push_back(group.world(i));
  constexpr int probes = 12;
  Random random(options_.seed, "samples");
  for (int i = 0; i < probes; ++i) {
    Symbols symbols;
    if (draw_symbols(group, random, Extents::any, symbols)) assignments_.push_back(std::move(symbols));
  }
  for (const ProfileOperator& op : group.operators)
    for (const auto& [name, expression] : op.attributes) remember_values(expression);
  for (const ProfileSymbol& symbol : group.symbols)
    if (symbol.definition) remember_values(*symbol.definition);
}

void FormFinder::remember_values(const AttributeExpression& expression) {
  values_[&expression] = evaluate_at(expression, assignments_);
  for (const AttributeExpression& operand : expression.operands) remember_values(operand);
}

std::shared_ptr<const FormFinder::Values> FormFinder::values_of(const AttributeExpression& expression,
                                                                const Form& form) const {
  if (!form.everywhere) return evaluate_at(expression, form.assignments);
  const auto known = values_.find(&expression);
  return known != values_.end() ? known->second : evaluate_at(expression, assignments_);
}

const std::vector<std::optional<TensorType>>& FormFinder::types_of(ClassId id) {
  const auto [it, inserted] = types_.try_emplace(id);
  if (inserted)
    for (const Symbols& symbols : assignments_) it->second.push_back(type_of(bank_, comparer_, id, symbols));
  return it->second;
}

/// Literal attributes of the source, and where the target repeats them.
std::vector<FormFinder::Group> FormFinder::literal_groups(const Draft& draft) const {
  constexpr std::size_t max_groups = 5;
  std::vector<Group> groups;
  for (const DraftNode& node : draft.source.nodes)
    for (const auto& [name, expression] : bank_.group().operators[node.op].attributes) {
      if (mentions_symbol(expression)) continue;
      const auto value = evaluate_symbolic(expression, assignments_.front());
      if (!value) continue;
      Group group{name, *value};
      if (groups.size() < max_groups && std::find(groups.begin(), groups.end(), group) == groups.end())
        groups.push_back(std::move(group));
    }
  return groups;
}

/// An attribute of the target in terms of what the source binds. `near` are the tensor variables below the node, in
/// order: extents are looked for there first.
std::optional<AttributeExpression> FormFinder::express(const AttributeExpression& expression, const Form& form,
                                                       const std::vector<std::uint32_t>& near,
                                                       std::size_t bound_variables) const {
  const ProfileGroup& group = bank_.group();
  const auto values = values_of(expression, form);
  if (!values) return std::nullopt;
  if (!mentions_symbol(expression)) return literal_of(values->front());
  for (std::size_t i = 0; i < form.values.size(); ++i)
    if (form.group_of[i] == no_group && form.values[i] != nullptr && *form.values[i] == *values) return variable_of(i);

  std::vector<std::uint32_t> order = near;
  for (std::uint32_t i = 0; i < bound_variables; ++i)
    if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);

  // The axis of a tensor that has this extent always; the first `count` tensors of the order are looked at.
  auto find_extent = [&](const std::vector<AttributeValue>& wanted,
                         std::size_t count) -> std::optional<AttributeExpression> {
    for (std::size_t position = 0; position < count; ++position) {
      const std::vector<Shape>& shapes = form.shapes[order[position]];
      const auto rank = static_cast<std::int64_t>(shapes[0].size());
      for (std::int64_t axis = -1; axis >= -rank; --axis) {
        bool equal = true;
        for (std::size_t i = 0; i < wanted.size(); ++i)
          equal = equal && shapes[i].size() == shapes[0].size() &&
                  shapes[i][static_cast<std::size_t>(rank + axis)] == std::get<std::int64_t>(wanted[i]);
        if (!equal) continue;
        AttributeExpression extent = dimension_of(order[position], axis);
        // The axis may be one that the source leaves open.
        for (std::size_t i = 0; i < form.bases.size(); ++i)
          if (form.group_of[i] != no_group && form.values[i]->front() == AttributeValue(axis)) {
            extent.axis = 0;
            extent.operands = {variable_of(i)};
            break;
          }
        return extent;
      }
    }
    return std::nullopt;
  };
  auto whole_shape = [&](std::size_t count) -> std::optional<AttributeExpression> {
    for (std::size_t position = 0; position < count; ++position) {
      const std::vector<Shape>& shapes = form.shapes[order[position]];
      bool equal = !shapes[0].empty();
      for (std::size_t i = 0; i < values->size(); ++i)
        equal = equal && shapes[i] == std::get<std::vector<std::int64_t>>((*values)[i]);
      if (!equal) continue;
      AttributeExpression list;
      list.kind = Kind::list;
      for (auto axis = -static_cast<std::int64_t>(shapes[0].size()); axis < 0; ++axis)
        list.operands.push_back(dimension_of(order[position], axis));
      return list;
    }
    return std::nullopt;
  };
  if (std::holds_alternative<std::int64_t>(values->front())) {
    if (auto extent = find_extent(*values, order.size())) return extent;
  } else if (std::holds_alternative<std::vector<std::int64_t>>(values->front())) {
    if (auto shape = whole_shape(near.size())) return shape;
    // Element by element from the tensors below, if these have them all.
    bool below = expression.kind == Kind::list;
    AttributeExpression list = expression;
    for (std::size_t i = 0; below && i < list.operands.size(); ++i) {
      const AttributeExpression& operand = expression.operands[i];
      const auto wanted = values_of(operand, form);
      if (!wanted) return std::nullopt;
      if (!mentions_symbol(operand)) continue;
      auto extent = find_extent(*wanted, near.size());
      below = extent.has_value();
      if (below) list.operands[i] = std::move(*extent);
    }
    if (below) return list;
    if (auto shape = whole_shape(order.size())) return shape;
  }
  if (expression.kind == Kind::variable) {
    const ProfileSymbol& symbol = group.symbols[expression.index];
    if (symbol.definition) return express(*symbol.definition, form, near, bound_variables);
    return std::nullopt;
  }
  AttributeExpression result = expression;
  for (std::size_t i = 0; i < result.operands.size(); ++i) {
    auto part = express(expression.operands[i], form, near, bound_variables);
    if (!part) return std::nullopt;
    result.operands[i] = std::move(*part);
  }
  return result;
}

std::optional<FormFinder::Form> FormFinder::make_form(const Draft& draft, const std::vector<Group>& groups,
                                                      std::uint32_t general) {
  const ProfileGroup& group = bank_.group();
  Form form;
  Substitution& rule = form.rule.rule;
  rule.name = "candidate";
  form.rule.opened = general;
  // Assignments at which all variables are typed.
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < assignments_.size(); ++row)
    if (std::all_of(draft.variables.begin(), draft.variables.end(),
                    [&](ClassId id) { return types_of(id)[row].has_value(); }))
      rows.push_back(row);
  if (rows.empty()) return std::nullopt;
  form.everywhere = rows.size() == assignments_.size();
  if (!form.everywhere)
    for (const std::size_t row : rows) form.assignments.push_back(assignments_[row]);
  for (const ClassId id : draft.variables) {
    const std::vector<std::optional<TensorType>>& types = types_of(id);
    std::vector<Shape>& shapes = form.shapes.emplace_back();
    for (const std::size_t row : rows) shapes.push_back(types[row]->shape);
  }
  std::set<std::string> names;
  int fresh = 0;
  for (const ClassId id : draft.variables) {
    const ValueClass& value = bank_.classes()[id];
    std::string name =
        value.is_input ? group.inputs[value.index].name : (value.is_weight ? "v" : "u") + std::to_string(++fresh);
    while (!names.insert(name).second || bank_.registry().is_function(name)) name += "_";
    rule.tensor_variables.push_back(name);
    form.rule.is_weight.push_back(value.is_weight);
    form.rule.example_types.push_back({ElementType::f32, bank_.instances().shapes(value.type)[0], true});
  }

  auto add_variable = [&](const std::string& wanted, const AttributeExpression& base,
                          std::shared_ptr<const Values> values, std::uint32_t of_group) {
    std::string name = wanted;
    for (int suffix = 2; names.contains(name) || bank_.registry().is_function(name); ++suffix)
      name = wanted + std::to_string(suffix);
    names.insert(name);
    rule.attribute_variables.push_back(name);
    form.bases.push_back(base);
    form.values.push_back(std::move(values));
    form.group_of.push_back(of_group);
    return variable_of(form.bases.size() - 1);
  };

  // An attribute of the source: a variable, or a list of variables where some elements are given as literals. `name` is
  // used for what is not a symbol.
  std::function<std::optional<AttributeExpression>(const AttributeExpression&, const std::string&)> bind =
      [&](const AttributeExpression& expression, const std::string& name) -> std::optional<AttributeExpression> {
    auto values = values_of(expression, form);
    if (!values) return std::nullopt;
    if (!mentions_symbol(expression)) return literal_of(values->front());
    const auto given = [](const AttributeExpression& element) { return !mentions_symbol(element); };
    if (expression.kind == Kind::list && std::any_of(expression.operands.begin(), expression.operands.end(), given)) {
      AttributeExpression list = expression;
      for (std::size_t i = 0; i < list.operands.size(); ++i) {
        auto bound = bind(expression.operands[i], name);
        if (!bound) return std::nullopt;
        list.operands[i] = std::move(*bound);
      }
      return list;
    }
    for (std::size_t known = 0; known < form.values.size(); ++known)
      if (form.group_of[known] == no_group && *form.values[known] == *values) return variable_of(known);
    const std::string& wanted = expression.kind == Kind::variable ? group.symbols[expression.index].name : name;
    return add_variable(wanted, expression, std::move(values), no_group);
  };

  std::map<std::uint32_t, std::size_t> variable_of_group;
  auto group_index = [&](const std::string& name, const AttributeValue& value) -> std::optional<std::uint32_t> {
    for (std::uint32_t i = 0; i < groups.size(); ++i)
      if ((general >> i & 1u) != 0 && groups[i].attribute == name && groups[i].value == value) return i;
    return std::nullopt;
  };

  std::size_t bound_variables = 0;  // tensor variables that occur in the source
  auto note = [&](const DraftValue& value) {
    if (value.is_variable) bound_variables = std::max<std::size_t>(bound_variables, value.index + 1u);
  };
  for (const DraftNode& node : draft.source.nodes)
    for (const DraftValue& input : node.inputs) note(input);

  auto pattern_value = [](const DraftValue& value) { return PatternValue{value.is_variable, value.index, value.port}; };
  for (const bool is_source : {true, false}) {
    const DraftSide& side = is_source ? draft.source : draft.target;
    Pattern& pattern = is_source ? rule.source : rule.target;
    std::vector<std::vector<std::uint32_t>> below;  // tensor variables below each node
    for (const DraftNode& node : side.nodes) {
      PatternNode result;
      result.op = group.operators[node.op].op;
      std::vector<std::uint32_t> near;
      auto see = [&](std::uint32_t tensor) {
        if (std::find(near.begin(), near.end(), tensor) == near.end()) near.push_back(tensor);
      };
      for (const DraftValue& input : node.inputs) {
        result.inputs.push_back(pattern_value(input));
        if (input.is_variable)
          see(input.index);
        else
          for (const std::uint32_t tensor : below[input.index]) see(tensor);
      }
      for (const auto& [name, expression] : group.operators[node.op].attributes) {
        auto values = values_of(expression, form);
        if (!values) return std::nullopt;
        AttributeExpression attribute;
        if (!mentions_symbol(expression)) {
          attribute = literal_of(values->front());
          if (const auto index = group_index(name, values->front())) {
            const auto it = variable_of_group.find(*index);
            if (it != variable_of_group.end()) {
              attribute = variable_of(it->second);
            } else if (is_source) {
              attribute = add_variable(name, expression, std::move(values), *index);
              variable_of_group[*index] = attribute.index;
            }
          }
        } else if (is_source) {
          auto bound = bind(expression, name);
          if (!bound) return std::nullopt;
          attribute = std::move(*bound);
        } else {
          auto expressed = express(expression, form, near, bound_variables);
          if (!expressed) return std::nullopt;
          attribute = std::move(*expressed);
        }
        result.attributes.emplace_back(name, std::move(attribute));
      }
      below.push_back(std::move(near));
      pattern.nodes.push_back(std::move(result));
    }
    for (const DraftValue& output : side.outputs) pattern.outputs.push_back(pattern_value(output));
  }
  for (const auto& values : form.values) form.rule.example_attributes.emplace_back(values->front());
  form.rule.source_ops = draft.source.ops;
  form.rule.target_ops = draft.target.ops;
  form.rule.source_weight_ops = draft.source.weight_ops;
  form.rule.target_weight_ops = draft.target.weight_ops;
  return form;
}

std::optional<GeneralRule> FormFinder::literal_form(const Draft& draft) {
  auto form = make_form(draft, {}, 0);
  if (!form) return std::nullopt;
  return std::move(form->rule);
}

/// A set of literals that become variables.
struct FormFinder::Forms::Entry {
  enum class State : std::uint8_t { untested, survived, done };
  State state = State::untested;
  std::uint32_t general = 0;
  std::optional<Form> form;
  std::optional<std::vector<Condition>> atoms;
  std::vector<TestedSample> tested;
  std::vector<Condition> conditions;  ///< Once it survived.
};

/// An instance at which some form was tested, in terms that mean the same for all forms.
struct FormFinder::Forms::Known {
  std::vector<TensorType> types;
  std::vector<std::optional<AttributeValue>> symbols;   ///< Of the variables that stand for symbols, in order.
  std::vector<std::optional<AttributeValue>> literals;  ///< Per group, if it differs from the profile's.
  std::uint32_t changed = 0;  ///< The groups that differ: an instance of every form in which these are variables.
  bool declared = false, equal = false;
};

FormFinder::Forms::Forms(FormFinder& finder, const Draft& draft)
    : finder_(finder), draft_(draft), groups_(finder.literal_groups(draft)) {
  std::vector<std::uint32_t> subsets;
  for (std::uint32_t subset = 0; subset < (1u << groups_.size()); ++subset) subsets.push_back(subset);
  std::stable_sort(subsets.begin(), subsets.end(),
                   [](std::uint32_t a, std::uint32_t b) { return __builtin_popcount(a) > __builtin_popcount(b); });
  entries_.resize(subsets.size());
  for (std::size_t i = 0; i < subsets.size(); ++i) entries_[i].general = subsets[i];
}

FormFinder::Forms::~Forms() = default;

FormFinder::Forms::Entry& FormFinder::Forms::entry_of(const GeneralRule& form) {
  return *std::find_if(entries_.begin(), entries_.end(),
                       [&](const Entry& entry) { return entry.general == form.opened; });
}

std::optional<GeneralRule> FormFinder::Forms::next() {
  while (true) {
    // How many conditions a form needs: known if it was tested, else at least one if it is known to fail somewhere.
    Entry* best = nullptr;
    std::size_t fewest = 0;
    for (Entry& entry : entries_) {
      if (entry.state == Entry::State::done) continue;
      const bool fails = std::any_of(known_.begin(), known_.end(), [&](const Known& one) {
        return !one.equal && (one.changed & ~entry.general) == 0;
      });
      const std::size_t conditions = entry.state == Entry::State::survived ? entry.conditions.size() : fails ? 1 : 0;
      if (best == nullptr || conditions < fewest) {
        best = &entry;
        fewest = conditions;
      }
    }
    if (best == nullptr) return std::nullopt;
    if (best->state == Entry::State::survived) {
      best->state = Entry::State::done;
      GeneralRule rule = best->form->rule;
      rule.rule.conditions = best->conditions;
      return rule;
    }
    // A form that a more general one without conditions covers adds nothing.
    const bool covered = best->general != 0 && std::any_of(entries_.begin(), entries_.end(), [&](const Entry& other) {
                           return other.form && other.state != Entry::State::untested && other.conditions.empty() &&
                                  !other.tested.empty() && (best->general & ~other.general) == 0;
                         });
    best->state = Entry::State::done;
    if (!covered && test(*best)) best->state = Entry::State::survived;
    if (best->state == Entry::State::done) best->tested.clear();
  }
}

const std::vector<Condition>& FormFinder::Forms::atoms(Entry& entry) {
  if (entry.atoms) return *entry.atoms;
  const Form& form = *entry.form;
  entry.atoms = shape_atoms(form.shapes);
  // An attribute in terms of extents, where the profile says so.
  Form bare = form;
  for (std::size_t i = 0; i < form.bases.size(); ++i)
    if (form.group_of[i] == no_group) bare.values[i] = nullptr;
  for (std::size_t i = 0; i < form.bases.size(); ++i) {
    if (form.group_of[i] != no_group) continue;
    if (auto definition = finder_.express(form.bases[i], bare, {}, form.shapes.size()))
      entry.atoms->push_back({Condition::Relation::equal, variable_of(i), std::move(*definition)});
  }
  return *entry.atoms;
}

Sample FormFinder::Forms::sample_of(const Known& known, const Form& form) const {
  Sample sample{known.types, {}, known.declared};
  std::size_t symbol = 0;
  for (const std::uint32_t group : form.group_of) {
    if (group == no_group)
      sample.attributes.push_back(known.symbols[symbol++]);
    else if (known.literals[group])
      sample.attributes.push_back(known.literals[group]);
    else
      sample.attributes.emplace_back(groups_[group].value);
  }
  return sample;
}

void FormFinder::Forms::remember(const TestedSample& tested, const Form& form) {
  Known known;
  known.literals.resize(groups_.size());
  for (std::size_t i = 0; i < form.group_of.size(); ++i) {
    const std::uint32_t group = form.group_of[i];
    const std::optional<AttributeValue>& value = tested.sample.attributes[i];
    if (group == no_group) {
      known.symbols.push_back(value);
    } else if (*value != groups_[group].value) {
      known.literals[group] = value;
      known.changed |= 1u << group;
    }
  }
  known.types = tested.sample.types;
  known.declared = tested.sample.declared;
  known.equal = tested.equal;
  known_.push_back(std::move(known));
}

/// Tests a form and chooses conditions; false if it is wrong even where the profile declares it, or untestable.
bool FormFinder::Forms::test(Entry& entry) {
  const FormOptions& options = finder_.options_;
  entry.form = finder_.make_form(draft_, groups_, entry.general);
  if (!entry.form) return false;
  const Form& form = *entry.form;
  const Substitution& rule = form.rule.rule;
  int declared_equal = 0, different = 0;
  // False if a failure cannot be excluded: it is declared, or all atoms hold there.
  auto take = [&](TestedSample one) {
    if (one.equal && one.sample.declared) ++declared_equal;
    if (!one.equal && (one.sample.declared || all_satisfied(atoms(entry), one.sample))) return false;
    if (!one.equal && ++different > 40 && declared_equal == 0) return false;
    entry.tested.push_back(std::move(one));
    return true;
  };
  for (const Known& known : known_)
    if ((known.changed & ~entry.general) == 0 && !take({sample_of(known, form), known.equal})) return false;
  const bool again = sampled_;
  if (different > 0 && !exclude_failures(atoms(entry), entry.tested, entry.conditions)) return false;
  entry.conditions.clear();

  DraftSampler sampler(finder_.bank_, finder_.pool_, draft_, form.bases, options.seed);
  int typed = 0, typed_grouped = 0;
  const bool grouped = may_have_groups(rule, finder_.bank_.registry());
  for (int attempt = 0; attempt < options.attempts; ++attempt) {
    // Groups are rare among the well-typed: where there may be some, attempts go on looking for them. What another form
    // was tested at to the end serves here as well; only changed literals are to be seen to.
    const int times = different > 0 ? 2 : 1;
    const bool enough = typed >= (again ? options.enough_again : options.enough * times);
    if (enough && (again || !grouped || typed_grouped >= options.enough_grouped * times)) break;
    TestedSample one;
    if (!sampler.draw(one.sample, again    ? DraftSampler::Wanted::changed
                                  : enough ? DraftSampler::Wanted::grouped
                                           : DraftSampler::Wanted::any))
      continue;
    const Comparison comparison = finder_.comparer_.compare(rule, one.sample.types, one.sample.attributes);
    if (comparison == Comparison::ill_typed) continue;
    ++(enough ? typed_grouped : typed);
    one.equal = comparison == Comparison::equal;
    remember(one, form);
    if (!take(std::move(one))) return false;
  }
  sampled_ = true;
  if (declared_equal < 3) return false;
  return different == 0 || exclude_failures(atoms(entry), entry.tested, entry.conditions);
}

std::optional<GeneralRule> FormFinder::Forms::refine(const GeneralRule& form,
                                                     const std::vector<Counterexample>& failures) {
  Entry& entry = entry_of(form);
  std::vector<TestedSample> tested = entry.tested;
  for (const Counterexample& failure : failures)
    tested.push_back({{failure.variables, failure.attributes, false}, false});
  remember(tested.back(), *entry.form);
  GeneralRule refined = entry.form->rule;
  if (!exclude_failures(atoms(entry), tested, refined.rule.conditions)) return std::nullopt;
  return refined;
}

std::vector<Condition> FormFinder::Forms::implied(const GeneralRule& form) {
  Entry& entry = entry_of(form);
  return implied_conditions(atoms(entry), entry.tested, form.rule.conditions);
}

}  // namespace taso
