/// What holds of a rule's uses without being a condition of it.
#pragma once

#include <cstdint>
#include <string>

namespace taso {

/// Something that is checked at each use without being said, or that holds wherever the source is defined.
struct ImplicitCondition {
  enum class Kind : std::uint8_t {
    of_target,          ///< `what`: sizes that must be equal, a requirement of an operator of the target.
    well_typed_target,  ///< All that typing asks for: where ranks, axes or lengths of lists differ in what they ask.
    nonzero_divisors,   ///< No divisor is zero.
    defined_source      ///< No element of the source is infinite or undefined.
  };
  Kind kind = Kind::well_typed_target;
  std::string what = {};  ///< In the spelling of rules; of `of_target` alone.
  bool operator==(const ImplicitCondition&) const = default;
};
/// "dim(x, -1) == dim(y, -1)", "divisors are not zero".
[[nodiscard]] std::string to_string(const ImplicitCondition& condition);

}  // namespace taso
