/// `for (const T& item : reversed(items))`: the items from last to first. (std::views::reverse of libstdc++ 12 does not
/// compile with clang 14, which builds the fuzzers.)
#pragma once

namespace taso {

/// A container seen backwards. Refers to the container: not for temporaries.
template <class Container>
class Reversed {
 public:
  explicit Reversed(Container& container) : container_(container) {}
  [[nodiscard]] auto begin() const { return container_.rbegin(); }
  [[nodiscard]] auto end() const { return container_.rend(); }

 private:
  Container& container_;
};

template <class Container>
[[nodiscard]] Reversed<Container> reversed(Container& container) {
  return Reversed<Container>(container);
}

}  // namespace taso
