/// What tests of layouts share: the processor as a target, prices that are made up, all ways to lay out a small graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimizer/runtime_target.h"
#include "runtime/layout_space.h"
#include "support/hash.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {

/// The kernels of the processor, for one thread.
inline const RuntimeTarget& processor() {
  static const RuntimeTarget made(library(), RuntimeTargetOptions{});
  return made;
}

/// A kernel's price by its key.
using Prices = std::function<double(const std::string& key)>;

/// Whole numbers: sums do not depend on their order.
inline Prices random_prices(std::uint64_t seed) {
  return [seed](const std::string& key) { return static_cast<double>(1 + hash_text(key, seed).low % 40); };
}

/// The number of assignments of configurations to nodes.
inline double ways(const LayoutSpace& space) {
  double count = 1;
  for (const LayoutSpace::Variable& variable : space.variables)
    if (!variable.choices.empty()) count *= static_cast<double>(variable.choices.size());
  return count;
}

/// Calls `visit` with each of them.
inline void for_each_way(const LayoutSpace& space,
                         const std::function<void(std::shared_ptr<const LayoutAssignment>)>& visit) {
  std::vector<std::uint32_t> values(space.variables.size(), 0);
  for (std::size_t at = 0; at < values.size() || values.empty();) {
    visit(std::make_shared<const LayoutAssignment>(space.assignment(values)));
    if (values.empty()) return;
    for (at = 0; at < values.size(); ++at) {
      const auto& choices = space.variables[at].choices;
      if (choices.size() > 1 && ++values[at] < choices.size()) break;
      values[at] = 0;
    }
  }
}

}  // namespace taso::testing
