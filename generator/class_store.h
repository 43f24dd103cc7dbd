/// Terms and value classes of the bank, stored compactly.
///
/// A class is 24 bytes; the operators of its representative lie in one arena, its field elements in another. Operators
/// on weights get their numbers first, so that one number (`weight_term_end`) tells them from those that run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "support/hash.h"
#include "support/mod61.h"

namespace taso {

using ClassId = std::uint32_t;
using TermId = std::uint32_t;
using TypeId = std::uint32_t;

/// An operator of the group applied to representatives.
struct Term {
  static constexpr std::size_t max_arguments = 5;
  std::uint32_t op = 0;  ///< Index into ProfileGroup::operators.
  std::uint8_t count = 0;
  std::array<ClassId, max_arguments> arguments{};
  [[nodiscard]] std::span<const ClassId> inputs() const { return {arguments.data(), count}; }
  auto operator<=>(const Term&) const = default;
};

/// A class of equal values with its representative.
struct ValueClass {
  bool is_input = false;
  bool is_weight = false;  ///< Made of weights only.
  std::uint8_t ops = 0, weight_ops = 0;
  std::uint8_t port = 0;        ///< Output of the representative.
  std::uint8_t term_count = 0;  ///< Distinct operators of the representative, itself included.
  std::uint32_t index = 0;      ///< The input's number, or the representative's TermId.
  TypeId type = 0;
  std::uint64_t first_term = 0;  ///< In the arena; ascending there.
};

/// Fixed-size blocks of field elements: nothing moves, nothing is copied when the arena grows.
class ElementArena {
 public:
  [[nodiscard]] Mod61* take(std::size_t count);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t block = 1u << 20;
  std::vector<std::unique_ptr<Mod61[]>> blocks_;
  std::size_t left_ = 0, bytes_ = 0;
  Mod61* next_ = nullptr;
};

/// Open addressing over 128-bit fingerprints, linear probing; no deletion.
class FingerprintTable {
 public:
  static constexpr std::uint32_t none = 0xffffffffu;
  /// The class of a fingerprint, or `none`.
  [[nodiscard]] ClassId find(const Hash128& fingerprint) const;
  /// Adds it unless it is there; returns the class that it has now, and whether it was added.
  std::pair<ClassId, bool> insert(const Hash128& fingerprint, ClassId id);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return ids_.size() * (sizeof(Hash128) + sizeof(ClassId)); }

 private:
  [[nodiscard]] std::size_t slot(const Hash128& fingerprint) const;
  void grow();
  std::vector<Hash128> keys_;
  std::vector<ClassId> ids_;  ///< `none`: a free slot.
  std::size_t size_ = 0;
};

struct ClassStore {
  std::vector<ValueClass> classes;
  std::vector<Term> terms;
  std::vector<TermId> term_arena;
  std::vector<std::uint64_t> inputs;  ///< Per class: the symmetric inputs that occur, one bit each.
  TermId weight_term_end = 0;
  FingerprintTable by_fingerprint;
  ElementArena elements;
  /// by_type[type][ops]: ids of activations (first) and weights (second), ascending.
  std::vector<std::vector<std::array<std::vector<ClassId>, 2>>> by_type;

  [[nodiscard]] std::span<const TermId> terms_of(ClassId id) const {
    return {term_arena.data() + classes[id].first_term, classes[id].term_count};
  }
  [[nodiscard]] bool is_weight_term(TermId term) const { return term < weight_term_end; }
  /// Memory of all of it, about.
  [[nodiscard]] std::uint64_t bytes() const {
    return classes.capacity() * (sizeof(ValueClass) + sizeof(std::uint64_t) + sizeof(ClassId)) +
           terms.capacity() * sizeof(Term) + term_arena.capacity() * sizeof(TermId) + by_fingerprint.bytes() +
           elements.bytes();
  }
};

}  // namespace taso
