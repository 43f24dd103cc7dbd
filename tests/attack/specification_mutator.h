/// Mutants of specifications for the attack on the loader and on what the verifier believes.
///
/// A mutant is a definition of a pool of true ones, changed in a few places, with all that it needs. Some changes make
/// a declaration false everywhere, some only at one place: a bump of a narrow interval, beyond some magnitude, at tiny
/// numbers, where one variable is larger than another. Mutant number i depends on the seed and i alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/random.h"

namespace taso::testing {

/// A specification file as definitions: each from its `function`, `operator` or `size` on, in lines.
struct SpecificationPool {
  struct Definition {
    std::string name;
    std::vector<std::string> lines;
    [[nodiscard]] std::string text() const;
  };
  std::vector<Definition> definitions;

  /// Adds what a text defines.
  void add(const std::string& text);
  [[nodiscard]] const Definition* find(const std::string& name) const;
  /// The definition with all that it and others of the text name, in the order of the pool.
  [[nodiscard]] std::vector<Definition> with_what_it_needs(const Definition& changed) const;
};

struct SpecificationMutant {
  std::string name;                                  ///< Of what was changed.
  std::vector<SpecificationPool::Definition> parts;  ///< The file.
  std::vector<double> places;                        ///< At which, or about which, something was hidden.
  [[nodiscard]] std::string text() const;
};

class SpecificationMutator {
 public:
  SpecificationMutator(SpecificationPool functions, SpecificationPool operators)
      : functions_(std::move(functions)), operators_(std::move(operators)) {}

  /// Of a function, its facts, domain and laws.
  [[nodiscard]] SpecificationMutant function(std::uint64_t seed, std::uint64_t number) const;
  /// Of an operator, its laws, requirements, attributes and sizes.
  [[nodiscard]] SpecificationMutant operator_(std::uint64_t seed, std::uint64_t number) const;
  /// Bytes of either.
  [[nodiscard]] std::string bytes(std::uint64_t seed, std::uint64_t number) const;

 private:
  SpecificationPool functions_, operators_;
};

}  // namespace taso::testing
