/// What the verifier's tests share: the specifications of the source tree.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operators/registry.h"
#include "tests/support/shipped.h"
#include "verifier/verify.h"

namespace taso::testing {

inline const std::string source_dir = TASO_SOURCE_DIR;

using test::registry;

inline const std::vector<Substitution>& axioms() {
  static const std::vector<Substitution> loaded = [] {
    auto result = load_axioms(source_dir + "/specs/axioms", registry());
    if (!result) ADD_FAILURE() << result.error().to_string();
    return std::move(result).value();
  }();
  return loaded;
}

inline std::vector<Substitution> parse(const std::string& text) {
  auto result = parse_rules(text, "test.rules", registry());
  EXPECT_TRUE(result) << (result ? "" : result.error().to_string());
  return result ? *result : std::vector<Substitution>{};
}

inline std::vector<Substitution> load(const std::string& file) {
  auto result = load_rules(source_dir + "/tests/data/verify/" + file, registry());
  EXPECT_TRUE(result) << (result ? "" : result.error().to_string());
  return result ? *result : std::vector<Substitution>{};
}

}  // namespace taso::testing
