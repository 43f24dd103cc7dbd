/// All applications of operators to classes with a given total size, in a fixed order and in independent parts.
///
/// A *block* is one operator with given argument types; its *rows* are the classes that can stand at the first
/// argument. A *unit* is a run of rows: the part that is given to a thread, a process or a checkpoint. Within a row the
/// other arguments are chosen from the left; the size of a term is 1 plus the number of distinct operators of its
/// arguments, so that arguments that share operators are looked up by what they share.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "generator/class_store.h"
#include "generator/instances.h"

namespace taso {

struct Block {
  std::uint32_t op = 0;
  std::vector<TypeId> types;
  const InstanceCache::Entry* instance = nullptr;
  bool commutative = false;
  std::vector<ClassId> rows;  ///< Empty for an operator without arguments, which has one term.
  std::uint32_t first_unit = 0, units = 0;
  [[nodiscard]] std::size_t row_count() const { return types.empty() ? 1 : rows.size(); }
};

class TermEnumerator {
 public:
  static constexpr std::size_t rows_per_unit = 64;

  /// Terms with exactly `level` operators that run; at level 0 those with exactly `weight_level` operators on weights.
  /// `max_elements` bounds the results of operators.
  TermEnumerator(const ClassStore& store, const ProfileGroup& group, const OperatorRegistry& registry,
                 InstanceCache& instances, int level, int weight_level, std::int64_t max_elements);
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] std::uint32_t unit_count() const { return units_; }
  /// members()[type]: all classes of a type; position()[id]: the place of a class there.
  [[nodiscard]] const std::vector<std::vector<ClassId>>& members() const { return members_; }
  [[nodiscard]] const std::vector<std::uint32_t>& position() const { return position_; }

  /// Calls emit(arguments, weight_ops) for the terms of rows [begin, end) of a block, in order.
  template <class Emit>
  void for_each(const Block& block, std::size_t begin, std::size_t end, const Emit& emit) const {
    Row<Emit> row{*this, block, emit, {}, {}};
    for (std::size_t i = begin; i < end; ++i) row.start(i);
  }

 private:
  static constexpr std::size_t max_terms = 32;
  /// A sorted set of operators; those on weights come first.
  struct TermSet {
    std::array<TermId, max_terms> terms;
    std::uint8_t count = 0, weights = 0;
    [[nodiscard]] int ops() const { return count - weights; }
  };
  /// An entry of the index from operators to the classes that contain them.
  struct Containing {
    std::uint64_t key = 0;
    ClassId id = 0;
    auto operator<=>(const Containing&) const = default;
  };
  static std::uint64_t key_of(TermId term, int ops, TypeId type) {
    return std::uint64_t{term} << 32 | static_cast<std::uint64_t>(ops) << 28 | type;
  }

  template <class Emit>
  struct Row {
    const TermEnumerator& all;
    const Block& block;
    const Emit& emit;
    std::array<ClassId, Term::max_arguments> chosen;
    std::vector<ClassId> shared[Term::max_arguments];

    void start(std::size_t row) {
      TermSet empty;
      if (block.types.empty()) return finish(empty, true);
      take(0, block.rows[row], empty, true);
    }
    void finish(const TermSet& set, bool all_weights) {
      if (all.level_ > 0 && all_weights) return;
      const int weight_ops = set.weights + (all.level_ == 0 ? 1 : 0);
      if (set.ops() != all.below_ || weight_ops > all.group_.max_weight_ops) return;
      if (all.level_ == 0 && weight_ops != all.weight_level_) return;
      emit(std::span<const ClassId>(chosen.data(), block.types.size()), weight_ops);
    }
    void take(std::size_t position, ClassId id, const TermSet& set, bool all_weights) {
      const ProfileOperator& application = all.group_.operators[block.op];
      if (block.commutative && position == 1 && id < chosen[0]) return;
      // f(x, x) is left out: what holds of it is almost always an instance of what holds of f(x, y).
      // (On weights it makes constants: ones - ones.)
      for (std::size_t other = 0; other < position; ++other)
        if (chosen[other] == id && !application.on_weights) return;
      const ValueClass& value = all.store_.classes[id];
      if (application.arguments[position] == ArgumentRole::input && !value.is_input) return;
      if (application.on_weights && !value.is_weight) return;
      TermSet merged;
      if (!all.merge(set, id, merged)) return;
      chosen[position] = id;
      if (position + 1 == block.types.size()) return finish(merged, all_weights && value.is_weight);
      extend(position + 1, merged, all_weights && value.is_weight);
    }
    void extend(std::size_t position, const TermSet& set, bool all_weights) {
      const ClassStore& store = all.store_;
      const TypeId type = block.types[position];
      const bool last = position + 1 == block.types.size();
      const ArgumentRole role = all.group_.operators[block.op].arguments[position];
      const int ops = set.ops(), max_weight_ops = all.group_.max_weight_ops;
      const auto& by_ops = store.by_type[type];
      for (std::size_t kind = 0; kind < 2; ++kind) {
        if (role == (kind == 0 ? ArgumentRole::weight : ArgumentRole::activation)) continue;
        // On the last argument nothing can make up for too few operators.
        for (int more = last ? all.below_ - ops : 0; more <= all.below_ - ops && more < static_cast<int>(by_ops.size());
             ++more)
          for (const ClassId id : by_ops[static_cast<std::size_t>(more)][kind]) {
            if (set.weights != 0 && store.classes[id].weight_ops != 0) {
              take(position, id, set, all_weights);
            } else if (set.weights + store.classes[id].weight_ops <= max_weight_ops) {
              take(position, id, set, all_weights);
            }
          }
      }
      if (ops == 0 || role == ArgumentRole::weight) return;
      std::vector<ClassId>& found = shared[position];
      found.clear();
      all.sharing(set, type, position == 1, found);
      for (const ClassId id : found) take(position, id, set, all_weights);
    }
  };

  [[nodiscard]] bool merge(const TermSet& set, ClassId id, TermSet& merged) const;
  /// Classes of a type that have operators in common with a set, so many that the union is not too large; sorted.
  void sharing(const TermSet& set, TypeId type, bool of_one_class, std::vector<ClassId>& found) const;
  void index_classes();
  void make_blocks(const OperatorRegistry& registry, InstanceCache& instances, std::int64_t max_elements);

  const ClassStore& store_;
  const ProfileGroup& group_;
  int level_, weight_level_, below_;
  std::vector<Block> blocks_;
  std::uint32_t units_ = 0;
  std::vector<std::vector<ClassId>> members_;
  std::vector<std::uint32_t> position_;
  std::vector<Containing> containing_;
  std::vector<std::uint8_t> term_ops_;  ///< Operators of the class that a term represents, itself included; 0: none.
};

}  // namespace taso
