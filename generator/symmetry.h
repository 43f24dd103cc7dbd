/// Renamings of inputs of one type, and what they do to value classes.
///
/// Inputs that are of one kind (activation or weight) and of one shape in every world can be exchanged: a permutation
/// of them maps terms to terms and values to values. Terms are needed up to renaming only. The group is the product of
/// the symmetric groups of the sets of like inputs; where it would have more than `max_size` elements, some sets stay
/// fixed.
///
/// A renaming acts on classes: the image of a class is the class of the renamed representative. It is looked up by
/// its fingerprint, so that it is exact; `none` where the renamed value is not in the bank.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "generator/class_store.h"

namespace taso {

class Symmetry {
 public:
  static constexpr std::size_t max_size = 64;
  static constexpr ClassId none = FingerprintTable::none;

  /// `kind[i]`: inputs with equal kinds may be exchanged.
  explicit Symmetry(std::span<const std::uint32_t> kind = {});
  [[nodiscard]] std::size_t size() const { return permutations_.size(); }
  /// The image of an input.
  [[nodiscard]] std::uint32_t input(std::size_t element, std::uint32_t index) const {
    return permutations_[element][index];
  }
  [[nodiscard]] std::size_t product(std::size_t left, std::size_t right) const {
    return products_[left * size() + right];  // first `right`, then `left`
  }
  [[nodiscard]] std::size_t inverse(std::size_t element) const { return inverses_[element]; }
  /// Elements that generate the group: exchanges of two neighbours.
  [[nodiscard]] const std::vector<std::size_t>& generators() const { return generators_; }
  /// The bit of an input in a mask of inputs that can be exchanged; 0 for all others.
  [[nodiscard]] std::uint64_t mask(std::uint32_t index) const { return masks_[index]; }
  /// One element for each way in which the inputs of a mask can be renamed; the identity first.
  [[nodiscard]] const std::vector<std::uint8_t>& renamings(std::uint64_t mask) const;

  /// Images of the classes; filled by the bank. `images(id)[element]`.
  [[nodiscard]] const ClassId* images(ClassId id) const { return images_.data() + std::size_t{id} * size(); }
  void set_images(std::vector<ClassId> images) { images_ = std::move(images); }
  /// All images from those under the generators: `of_generator[g][id]`.
  void compose(const std::vector<std::vector<ClassId>>& of_generator, std::size_t classes);

 private:
  std::vector<std::vector<std::uint32_t>> permutations_;  ///< The identity first.
  std::vector<std::size_t> products_, inverses_, generators_;
  std::vector<std::uint64_t> masks_;
  std::vector<ClassId> images_;
  std::vector<std::vector<std::uint8_t>> renamings_;  ///< By mask.
};

}  // namespace taso
