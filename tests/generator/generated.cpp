#include "tests/generator/generated.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/support/shipped.h"
#include "verifier/instances.h"

namespace taso {

using test::registry;

const std::vector<Substitution>& generated(const std::string& profile) {
  static std::map<std::string, std::vector<Substitution>> known;
  std::vector<Substitution>& rules = known[profile];
  if (!rules.empty()) return rules;
  const auto loaded = load_profile(TASO_SOURCE_DIR "/specs/profiles/" + profile + ".profile", registry());
  GeneratorOptions options;
  options.threads = 2;
  const auto result = generate(loaded.value(), registry(), options);
  for (const GeneralRule& rule : result.value().rules) rules.push_back(rule.rule);
  return rules;
}

std::vector<SourceAndTarget> instances_of(const Substitution& rule, bool ungrouped, std::size_t count) {
  InstanceOptions options;
  options.max_instances = 400;
  const InstanceSet found = find_instances(registry(), rule, options);
  // Of variables with the same role only shapes tell which stands where.
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, const TypedInstance*>> order;
  for (const TypedInstance& typed : found.instances) {
    std::set<std::int64_t> extents;
    std::set<Shape> shapes;
    for (const TensorType& type : typed.instance.variables) {
      extents.insert(type.shape.begin(), type.shape.end());
      shapes.insert(type.shape);
    }
    order.push_back({{shapes.size(), extents.size()}, &typed});
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<SourceAndTarget> result;
  for (const auto& [different, typed] : order) {
    if (result.size() == count) break;
    auto source = instantiate(rule, rule.source, typed->instance.variables, typed->instance.attributes, registry());
    auto target = instantiate(rule, rule.target, typed->instance.variables, typed->instance.attributes, registry());
    if (!source.ok() || !target.ok()) continue;
    const auto values = values_of(*source, registry(), 3);
    if (values.empty() || values != values_of(*target, registry(), 3)) continue;
    bool grouped = false;
    for (const NodeId id : source->topological_order()) {
      const Node& node = source->node(id);
      if (!node.is_op("conv2d")) continue;
      const Shape &x = source->type(node.inputs[0]).shape, &k = source->type(node.inputs[1]).shape;
      grouped = grouped || x[1] != k[1];
    }
    if (grouped && ungrouped) continue;
    result.push_back({std::move(*source), std::move(*target)});
  }
  return result;
}

std::optional<SourceAndTarget> instance_of(const Substitution& rule, bool ungrouped) {
  std::vector<SourceAndTarget> found = instances_of(rule, ungrouped, 1);
  return found.empty() ? std::nullopt : std::optional(std::move(found[0]));
}

}  // namespace taso
