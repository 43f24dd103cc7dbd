#include "tests/generator/generated.h"

#include <map>
#include <set>

#include "verifier/instances.h"

namespace taso {

const OperatorRegistry& registry() {
  static const auto loaded = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  return loaded.value();
}

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

std::optional<SourceAndTarget> instance_of(const Substitution& rule, bool ungrouped) {
  InstanceOptions options;
  options.max_instances = 400;
  const InstanceSet found = find_instances(registry(), rule, options);
  std::optional<SourceAndTarget> best;
  std::size_t most = 0;
  for (const TypedInstance& typed : found.instances) {
    std::set<std::int64_t> extents;
    for (const TensorType& type : typed.instance.variables) extents.insert(type.shape.begin(), type.shape.end());
    if (best && extents.size() <= most) continue;
    auto source = instantiate(rule, rule.source, typed.instance.variables, typed.instance.attributes, registry());
    auto target = instantiate(rule, rule.target, typed.instance.variables, typed.instance.attributes, registry());
    if (!source.ok() || !target.ok()) continue;
    const auto values = values_of(*source, registry(), 3);
    if (values.empty() || values != values_of(*target, registry(), 3)) continue;
    bool grouped = false;
    for (const Graph* graph : {&*source, &*target})
      for (const NodeId id : graph->topological_order()) {
        const Node& node = graph->node(id);
        if (!node.is_op("conv2d")) continue;
        const Shape &x = graph->type(node.inputs[0]).shape, &k = graph->type(node.inputs[1]).shape;
        grouped = grouped || (graph == &*source && x[1] != k[1]);
      }
    if (grouped && ungrouped) continue;
    most = extents.size();
    best = SourceAndTarget{std::move(*source), std::move(*target)};
  }
  return best;
}

}  // namespace taso
