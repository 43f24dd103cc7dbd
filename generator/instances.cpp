#include "generator/instances.h"

#include <string>
#include <utility>

namespace taso {

InstanceCache::InstanceCache(const ProfileGroup& group, const OperatorRegistry& registry)
    : group_(group), registry_(registry) {
  for (const ProfileOperator& op : group.operators) {
    std::vector<Attributes> per_world;
    for (std::size_t world = 0; world < group.worlds; ++world) {
      Attributes attributes;
      const auto symbols = group.world(world);
      for (const auto& [name, expression] : op.attributes) {
        auto value = evaluate_symbolic(expression, symbols);
        TASO_CHECK(value.ok(), "attribute of a checked profile");
        attributes.set(name, std::move(value).value());
      }
      per_world.push_back(std::move(attributes));
    }
    attributes_.push_back(std::move(per_world));
  }
}

TypeId InstanceCache::intern(std::vector<Shape> shapes) {
  auto [it, inserted] = type_ids_.try_emplace(std::move(shapes), static_cast<TypeId>(types_.size()));
  if (inserted) types_.push_back(&it->first);
  return it->second;
}

const InstanceCache::Entry* InstanceCache::find(std::uint32_t op, std::span<const TypeId> arguments) {
  std::vector<std::uint32_t> key{op};
  key.insert(key.end(), arguments.begin(), arguments.end());
  auto [it, inserted] = entries_.try_emplace(std::move(key));
  Entry& entry = it->second;
  if (inserted) {
    std::vector<std::vector<Shape>> outputs;
    entry.typed = true;
    for (std::size_t world = 0; world < group_.worlds && entry.typed; ++world) {
      std::vector<TensorType> types;
      for (const TypeId type : arguments) types.push_back({ElementType::f32, shapes(type)[world], true});
      auto instance = OperatorInstance::create(registry_, group_.operators[op].op, attributes_[op][world], types);
      if (!instance) {
        entry.typed = false;
        break;
      }
      outputs.resize(instance->output_types().size());
      for (std::size_t port = 0; port < outputs.size(); ++port)
        outputs[port].push_back(instance->output_types()[port].shape);
      entry.worlds.push_back(std::move(instance).value());
    }
    if (entry.typed)
      for (std::vector<Shape>& output : outputs) {
        entry.typed = entry.typed && output.size() == group_.worlds;
        if (entry.typed) entry.outputs.push_back(intern(std::move(output)));
      }
    if (!entry.typed) entry.worlds.clear();
  }
  return entry.typed ? &entry : nullptr;
}

std::size_t InstanceCache::elements(TypeId type) const {
  std::size_t total = 0;
  for (const Shape& shape : shapes(type)) total += static_cast<std::size_t>(volume(shape));
  return total;
}

}  // namespace taso
