#include "verifier/shape_facts.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "verifier/attribute_kinds.h"
#include "verifier/axiom_use.h"
#include "verifier/instances.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

void collect_variables(const AttributeExpression& expression, std::set<std::uint32_t>& variables) {
  if (expression.kind == Kind::variable) variables.insert(expression.index);
  for (const AttributeExpression& operand : expression.operands) collect_variables(operand, variables);
}

// Whether an attribute variable stands on one side only: the other side's shape cannot depend on it, this side's may.
bool has_one_sided_attribute(const Substitution& axiom) {
  std::set<std::uint32_t> variables[2];
  for (const bool target : {false, true})
    for (const PatternNode& node : (target ? axiom.target : axiom.source).nodes)
      for (const auto& [name, expression] : node.attributes) collect_variables(expression, variables[target ? 1 : 0]);
  return variables[0] != variables[1];
}

// Instances at which a use of an axiom is examined: where it makes ill-typed terms one of the first few shows it.
constexpr std::size_t examined_uses = 150;

ShapeFacts result_shapes(const OperatorRegistry& registry, const Substitution& axiom, LoweredCache& cache) {
  ShapeFacts facts;
  std::vector<std::vector<std::size_t>>& result = facts.result_shapes;
  result.resize(axiom.source.outputs.size());
  std::vector<std::size_t> lists;
  const AttributeKinds kinds(registry, axiom);
  for (std::size_t v = 0; v < axiom.attribute_variables.size(); ++v)
    if (kinds[v].kind == Kindness::list && !kinds[v].length) lists.push_back(v);
  if (lists.empty() && !has_one_sided_attribute(axiom)) return facts;
  const InstanceSet set = find_instances(registry, axiom, {.max_instances = 12, .rare = false}, cache);
  facts.may_differ = set.shapes_differ.has_value();
  if (set.instances.empty()) return facts;
  for (std::size_t output = 0; output < result.size(); ++output)
    for (const std::size_t v : lists)
      if (std::all_of(set.instances.begin(), set.instances.end(), [&](const TypedInstance& typed) {
            const auto& value = typed.instance.attributes[v];
            return value && *value == AttributeValue(typed.source.output_types()[output].shape);
          }))
        result[output].push_back(v);
  return facts;
}

ShapeFacts shape_facts(const OperatorRegistry& registry, const Substitution& axiom, LoweredCache& cache) {
  ShapeFacts facts = result_shapes(registry, axiom, cache);
  for (const bool left_to_right : {true, false})
    for (std::size_t output = 0; output < axiom.source.outputs.size(); ++output)
      facts.may_be_ill_typed[left_to_right ? 0 : 1].push_back(
          ill_typed_use(registry, axiom, facts, left_to_right, output, examined_uses, cache).has_value());
  return facts;
}

}  // namespace

ShapeFactsTable::Entry& ShapeFactsTable::entry(const Substitution& axiom) {
  const std::string text = to_string(axiom, registry_);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Entry>& slot = entries_[text];
  if (slot == nullptr) slot = std::make_unique<Entry>();
  return *slot;
}

void ShapeFactsTable::complete(Entry& entry, const Substitution& axiom) {
  entry.begun = true;
  std::call_once(entry.once, [&] { entry.facts = shape_facts(registry_, axiom, cache_); });
}

const ShapeFacts& ShapeFactsTable::of(const Substitution& axiom) {
  Entry& one = entry(axiom);
  complete(one, axiom);
  return one.facts;
}

std::vector<const ShapeFacts*> ShapeFactsTable::of(const std::vector<const Substitution*>& axioms) {
  std::vector<Entry*> all;
  for (const Substitution* axiom : axioms) all.push_back(&entry(*axiom));
  // First what nobody has begun, then what is missing: another thread is at it.
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i]->begun.exchange(true)) complete(*all[i], *axioms[i]);
  std::vector<const ShapeFacts*> result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    complete(*all[i], *axioms[i]);
    result.push_back(&all[i]->facts);
  }
  return result;
}

}  // namespace taso
