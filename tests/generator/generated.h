// Rules generated from shipped profiles, made once for a test program, and instances of rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/generator.h"
#include "tests/generator/replay.h"
#include "tests/support/shipped.h"

namespace taso {

/// The rules of a shipped profile, with up to three operators.
const std::vector<Substitution>& generated(const std::string& profile);

struct SourceAndTarget {
  Graph source, target;
};

/// Instances at which both sides are equal, those with the most different shapes of variables, then the most different
/// extents, first. `ungrouped`: only such as have one group in every convolution of the source.
std::vector<SourceAndTarget> instances_of(const Substitution& rule, bool ungrouped, std::size_t count);
/// The first one; nothing if there is none.
std::optional<SourceAndTarget> instance_of(const Substitution& rule, bool ungrouped);

}  // namespace taso
