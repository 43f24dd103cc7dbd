/// Operators of a profile group, made concrete on demand for given argument types, in every world.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "generator/class_store.h"
#include "generator/profile.h"
#include "operators/instance.h"

namespace taso {

class InstanceCache {
 public:
  struct Entry {
    bool typed = false;
    std::vector<OperatorInstance> worlds;
    std::vector<TypeId> outputs;
  };
  InstanceCache(const ProfileGroup& group, const OperatorRegistry& registry);
  /// Null if the application is ill-typed in some world. Not thread-safe; the entry stays valid.
  const Entry* find(std::uint32_t op, std::span<const TypeId> arguments);
  /// The number of a tuple of shapes, one per world.
  TypeId intern(std::vector<Shape> shapes);
  [[nodiscard]] const std::vector<Shape>& shapes(TypeId type) const { return *types_[type]; }
  /// Elements in all worlds together.
  [[nodiscard]] std::size_t elements(TypeId type) const;
  [[nodiscard]] std::size_t type_count() const { return types_.size(); }

 private:
  const ProfileGroup& group_;
  const OperatorRegistry& registry_;
  std::vector<std::vector<Attributes>> attributes_;  ///< Per operator, per world.
  std::map<std::vector<Shape>, TypeId> type_ids_;
  std::vector<const std::vector<Shape>*> types_;
  std::map<std::vector<std::uint32_t>, Entry> entries_;
};

}  // namespace taso
