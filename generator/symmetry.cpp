#include "generator/symmetry.h"

#include <algorithm>
#include <set>

namespace taso {

Symmetry::Symmetry(std::span<const std::uint32_t> kind) {
  // Sets of like inputs, small ones first, as long as the group stays small.
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_kind;
  for (std::uint32_t i = 0; i < kind.size(); ++i) by_kind[kind[i]].push_back(i);
  std::vector<std::vector<std::uint32_t>> sets;
  for (auto& [name, set] : by_kind)
    if (set.size() > 1) sets.push_back(set);
  std::stable_sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<std::uint32_t> identity(kind.size());
  for (std::uint32_t i = 0; i < kind.size(); ++i) identity[i] = i;
  permutations_.push_back(identity);
  masks_.assign(kind.size(), 0);
  std::uint64_t next = 1;
  constexpr std::uint64_t end_of_masks = 1u << 16;
  std::vector<std::vector<std::uint32_t>> exchanges;
  for (const std::vector<std::uint32_t>& set : sets) {
    std::size_t factorial = 1;
    for (std::size_t i = 2; i <= set.size() && factorial <= max_size; ++i) factorial *= i;
    if (permutations_.size() * factorial > max_size || (next << set.size()) > end_of_masks) break;
    std::vector<std::vector<std::uint32_t>> larger;
    std::vector<std::uint32_t> order = set;
    do {
      for (std::vector<std::uint32_t> permutation : permutations_) {
        for (std::size_t i = 0; i < set.size(); ++i) permutation[set[i]] = order[i];
        larger.push_back(std::move(permutation));
      }
    } while (std::next_permutation(order.begin(), order.end()));
    permutations_ = std::move(larger);
    for (const std::uint32_t index : set) {
      masks_[index] = next;
      next <<= 1;
    }
    for (std::size_t i = 0; i + 1 < set.size(); ++i) {
      std::vector<std::uint32_t> exchange = identity;
      std::swap(exchange[set[i]], exchange[set[i + 1]]);
      exchanges.push_back(std::move(exchange));
    }
  }
  std::map<std::vector<std::uint32_t>, std::size_t> number;
  for (std::size_t i = 0; i < size(); ++i) number[permutations_[i]] = i;
  products_.resize(size() * size());
  inverses_.resize(size());
  for (std::size_t left = 0; left < size(); ++left)
    for (std::size_t right = 0; right < size(); ++right) {
      std::vector<std::uint32_t> both = identity;
      for (std::uint32_t& index : both) index = permutations_[left][permutations_[right][index]];
      const std::size_t product = number.at(both);
      products_[left * size() + right] = product;
      if (product == 0) inverses_[right] = left;
    }
  for (const std::vector<std::uint32_t>& exchange : exchanges) generators_.push_back(number.at(exchange));

  renamings_.resize(next);
  for (std::uint64_t mask = 0; mask < next; ++mask) {
    std::set<std::vector<std::uint32_t>> seen;
    for (std::size_t element = 0; element < size(); ++element) {
      std::vector<std::uint32_t> image;
      for (std::uint32_t i = 0; i < kind.size(); ++i)
        if ((masks_[i] & mask) != 0) image.push_back(permutations_[element][i]);
      if (seen.insert(std::move(image)).second) renamings_[mask].push_back(static_cast<std::uint8_t>(element));
    }
  }
}

const std::vector<std::uint8_t>& Symmetry::renamings(std::uint64_t mask) const { return renamings_[mask]; }

void Symmetry::compose(const std::vector<std::vector<ClassId>>& of_generator, std::size_t classes) {
  images_.assign(classes * size(), none);
  // The element a class image is taken through: element = generator * earlier element, breadth first.
  std::vector<std::pair<std::size_t, std::size_t>> from(size(), {0, 0});
  std::vector<std::size_t> order{0};
  std::vector<bool> reached(size(), false);
  reached[0] = true;
  for (std::size_t at = 0; at < order.size(); ++at)
    for (std::size_t g = 0; g < generators_.size(); ++g) {
      const std::size_t element = product(generators_[g], order[at]);
      if (reached[element]) continue;
      reached[element] = true;
      from[element] = {g, order[at]};
      order.push_back(element);
    }
  for (ClassId id = 0; id < classes; ++id) {
    ClassId* const images = images_.data() + std::size_t{id} * size();
    images[0] = id;
    for (std::size_t i = 1; i < order.size(); ++i) {
      const auto [generator, earlier] = from[order[i]];
      const ClassId through = images[earlier];
      images[order[i]] = through == none ? none : of_generator[generator][through];
    }
  }
}

}  // namespace taso
