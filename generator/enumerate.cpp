#include "generator/enumerate.h"

#include <functional>

namespace taso {

TermEnumerator::TermEnumerator(const ClassStore& store, const ProfileGroup& group, const OperatorRegistry& registry,
                               InstanceCache& instances, int level, int weight_level, std::int64_t max_elements)
    : store_(store), group_(group), level_(level), weight_level_(weight_level), below_(level == 0 ? 0 : level - 1) {
  index_classes();
  make_blocks(registry, instances, max_elements);
}

void TermEnumerator::index_classes() {
  members_.resize(store_.by_type.size());
  position_.resize(store_.classes.size());
  term_ops_.assign(store_.terms.size(), 0);
  std::size_t total = 0;
  for (ClassId id = 0; id < store_.classes.size(); ++id) {
    const ValueClass& value = store_.classes[id];
    if (members_.size() <= value.type) members_.resize(value.type + 1u);
    position_[id] = static_cast<std::uint32_t>(members_[value.type].size());
    members_[value.type].push_back(id);
    if (!value.is_input && value.ops > 0) term_ops_[value.index] = value.ops;
    total += value.ops;
  }
  if (level_ < 2) return;
  containing_.reserve(total);
  for (ClassId id = 0; id < store_.classes.size(); ++id)
    for (const TermId term : store_.terms_of(id))
      if (!store_.is_weight_term(term))
        containing_.push_back({key_of(term, store_.classes[id].ops, store_.classes[id].type), id});
  std::sort(containing_.begin(), containing_.end());
}

bool TermEnumerator::merge(const TermSet& set, ClassId id, TermSet& merged) const {
  const std::span<const TermId> other = store_.terms_of(id);
  std::size_t i = 0, j = 0, count = 0, weights = 0;
  while (i < set.count || j < other.size()) {
    if (count == max_terms) return false;
    TermId next = 0;
    if (j == other.size() || (i < set.count && set.terms[i] <= other[j])) {
      next = set.terms[i];
      if (j < other.size() && other[j] == next) ++j;
      ++i;
    } else {
      next = other[j++];
    }
    if (store_.is_weight_term(next)) ++weights;
    merged.terms[count++] = next;
    if (static_cast<int>(count - weights) > below_) return false;
  }
  merged.count = static_cast<std::uint8_t>(count);
  merged.weights = static_cast<std::uint8_t>(weights);
  return static_cast<int>(weights) <= group_.max_weight_ops;
}

void TermEnumerator::sharing(const TermSet& set, TypeId type, bool of_one_class, std::vector<ClassId>& found) const {
  const int ops = set.ops();
  auto look_up = [&](TermId term, int level) {
    const Containing low{key_of(term, level, type), 0};
    for (auto it = std::lower_bound(containing_.begin(), containing_.end(), low);
         it != containing_.end() && it->key == low.key; ++it)
      found.push_back(it->id);
  };
  // Only classes that are too large for a union without a common operator: the others stand in the lists by size.
  for (int level = std::max(1, below_ - ops + 1); level <= below_; ++level) {
    const int common = ops + level - below_;
    for (std::size_t i = set.weights; i < set.count; ++i) {
      // All operators of the other class are in the set, its last one as well.
      if (ops == below_ && term_ops_[set.terms[i]] != level) continue;
      // All operators of the set, which are those of one class, are in the other class, the last one as well.
      if (ops != below_ && of_one_class && common == ops && i + 1 != set.count) continue;
      look_up(set.terms[i], level);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

void TermEnumerator::make_blocks(const OperatorRegistry& registry, InstanceCache& instances,
                                 std::int64_t max_elements) {
  for (std::uint32_t op = 0; op < group_.operators.size(); ++op) {
    const ProfileOperator& application = group_.operators[op];
    if (application.on_weights != (level_ == 0)) continue;
    const std::size_t arity = application.arguments.size();
    if (arity > Term::max_arguments) continue;
    const bool commutative =
        registry.is_commutative(application.op) && arity == 2 && application.arguments[0] == application.arguments[1];
    std::vector<TypeId> types(arity);
    auto occurs = [&](TypeId type, ArgumentRole role) {
      for (const auto& by_kind : store_.by_type[type])
        if ((role != ArgumentRole::weight && !by_kind[0].empty()) ||
            (role != ArgumentRole::activation && !by_kind[1].empty()))
          return true;
      return false;
    };
    std::function<void(std::size_t)> choose_type = [&](std::size_t position) {
      if (position < arity) {
        for (TypeId type = 0; type < store_.by_type.size(); ++type) {
          if (!occurs(type, application.arguments[position])) continue;
          types[position] = type;
          choose_type(position + 1);
        }
        return;
      }
      Block block;
      block.instance = instances.find(op, types);
      if (block.instance == nullptr) return;
      for (const TypeId output : block.instance->outputs)
        for (const Shape& shape : instances.shapes(output))
          if (volume(shape) > max_elements) return;
      block.op = op;
      block.types = types;
      block.commutative = commutative;
      if (arity > 0) {
        const auto& by_ops = store_.by_type[types[0]];
        const ArgumentRole role = application.arguments[0];
        for (std::size_t kind = 0; kind < 2; ++kind) {
          if (role == (kind == 0 ? ArgumentRole::weight : ArgumentRole::activation)) continue;
          for (std::size_t ops = 0; ops < by_ops.size() && static_cast<int>(ops) <= below_; ++ops) {
            // One argument: nothing can make up for too few operators.
            if (arity == 1 && static_cast<int>(ops) < below_) continue;
            block.rows.insert(block.rows.end(), by_ops[ops][kind].begin(), by_ops[ops][kind].end());
          }
        }
        if (block.rows.empty()) return;
      }
      block.first_unit = units_;
      block.units = static_cast<std::uint32_t>((block.row_count() + rows_per_unit - 1) / rows_per_unit);
      units_ += block.units;
      blocks_.push_back(std::move(block));
    };
    choose_type(0);
  }
}

}  // namespace taso
