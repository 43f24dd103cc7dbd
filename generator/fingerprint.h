/// Fingerprints of values, and of terms without their values.
///
/// A value is a tuple of tensors over GF(2^61-1), one per world, at two random points. Its fingerprint is a pair: at
/// each point a random affine functional c + sum of r_i * v_i of all elements, where c and r depend on the type and the
/// point. Two unequal values of polynomials of degree d share both numbers with probability at most
/// ((d + 1) / p)^2: by Schwartz and Zippel the functional of their difference, a polynomial of degree d + 1 in inputs
/// and r, vanishes at a random point with probability at most (d + 1) / p.
///
/// A functional rather than a hash, because it can be pulled back through an operator (generator/tape.h): the
/// fingerprint of `add(a, b)` is a number of a plus a number of b, that of `matmul(a, b)` with a fixed is an inner
/// product with b. So the fingerprints of a block of terms (one operator, given types) cost little more than a few
/// multiplications each.
///
/// A *channel* holds the values of all classes over the field, functions being random oracles or, in a group that asks
/// for it, those of the ordered ring (operators/ring.h).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "generator/class_store.h"
#include "generator/instances.h"
#include "generator/tape.h"

namespace taso {

constexpr std::size_t evaluation_points = 2;

/// The functionals of one type.
struct Functional {
  std::array<Mod61, evaluation_points> constant;
  std::array<std::vector<Mod61>, evaluation_points> weights;
};

/// Values of all classes.
class Channel {
 public:
  /// `ring` gives functions and extrema their meaning.
  Channel(InstanceCache& instances, std::uint64_t seed, const FieldRing& ring)
      : instances_(instances), seed_(seed), ring_(ring) {}
  [[nodiscard]] const FieldRing& ring() const { return ring_; }
  /// Not thread-safe for a type that was not asked for before.
  const Functional& functional(TypeId type);
  /// The fingerprint of elements laid out point by point, world by world.
  Hash128 fingerprint(TypeId type, const Mod61* elements);

  std::vector<const Mod61*> values;   ///< Per class, point by point, world by world; null where there are none.
  std::vector<Hash128> fingerprints;  ///< Per class.

 private:
  InstanceCache& instances_;
  std::uint64_t seed_;
  FieldRing ring_;
  std::map<TypeId, Functional> functionals_;
};

/// Evaluates the terms of one operator with given argument types.
class BlockEvaluator {
 public:
  /// Scratch memory of one thread.
  struct Scratch {
    std::vector<Mod61> values, adjoints;
    std::vector<const Mod61*> inputs;
  };
  static constexpr std::size_t max_ports = 8;
  using Ports = std::array<Hash128, max_ports>;

  /// `members[type]`: the classes that have values, in order; `position[id]`: the place of a class there.
  BlockEvaluator(Channel& channel, const ClassStore& store, const InstanceCache::Entry& entry,
                 std::span<const TypeId> types, std::span<const std::vector<ClassId>> members,
                 std::span<const std::uint32_t> position);
  /// Makes the tables for fast fingerprints: all classes of the types, and for bilinear operators those with at most
  /// `max_ops` operators.
  void prepare(int max_ops, unsigned threads);
  /// The fingerprint of every output. False if the term has no value (a division by zero).
  [[nodiscard]] bool fingerprints(std::span<const ClassId> arguments, Ports& ports, Scratch& scratch) const;
  /// The elements of every output, point by point, world by world: `outputs[port]` has room for them.
  [[nodiscard]] bool values(std::span<const ClassId> arguments, std::span<Mod61* const> outputs,
                            Scratch& scratch) const;
  [[nodiscard]] std::size_t port_count() const { return entry_.outputs.size(); }

 private:
  /// The derivatives with the argument `fixed`: constant, then weights on the other argument, at each point.
  struct Derivatives {
    std::vector<std::int32_t> index;  ///< Per position of the fixed argument's type; negative: none.
    std::vector<Mod61> rows;
    std::size_t stride = 0;
    bool complete = false;  ///< All classes have a row.
  };
  [[nodiscard]] bool run(std::span<const ClassId> arguments, std::size_t point, Scratch& scratch) const;
  [[nodiscard]] bool slow(std::span<const ClassId> arguments, std::span<Mod61* const> outputs) const;
  void prepare_single(unsigned threads);
  void prepare_separable();
  void share(std::size_t argument, ClassId id) const;
  void prepare_bilinear(int max_ops, unsigned threads);

  Channel& channel_;
  const ClassStore& store_;
  const InstanceCache::Entry& entry_;
  std::vector<TypeId> types_;
  std::span<const std::vector<ClassId>> members_;
  std::span<const std::uint32_t> position_;
  FieldRing ring_;
  std::optional<Tape> tape_;
  std::vector<const Functional*> functionals_;  ///< Per port.
  /// Per argument: port by port, the share of each class of the argument's type in the fingerprint.
  /// Filled in by fingerprints() where they are needed, by whichever thread comes first; `unknown`: not yet.
  mutable std::vector<std::vector<std::uint64_t>> shares_;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};
  std::vector<std::vector<Mod61>> adjoints_;  ///< Per output and point: the derivative by every argument register.
  std::vector<std::array<Mod61, evaluation_points>> base_;  ///< Per port, with all arguments zero.
  std::vector<bool> failed_;                                ///< One argument: classes without a result.
  std::array<Derivatives, 2> derivatives_;
};

}  // namespace taso
