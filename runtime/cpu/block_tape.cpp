#include "runtime/cpu/block_tape.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/cpu/block_fold.h"

namespace taso::cpu {

using Kind = LoweredNode::Kind;
using Place = TapeValue::Place;

namespace {

std::optional<Arithmetic> arithmetic_of(const BinaryEntry& loop) {
  if (loop.name == "add") return Arithmetic::add;
  if (loop.name == "sub") return Arithmetic::subtract;
  if (loop.name == "mul") return Arithmetic::multiply;
  if (loop.name == "div") return Arithmetic::divide;
  return std::nullopt;
}

float result_of(Arithmetic operation, float a, float b) {
  switch (operation) {
    case Arithmetic::add:
      return a + b;
    case Arithmetic::subtract:
      return a - b;
    case Arithmetic::multiply:
      return a * b;
    case Arithmetic::divide:
      return a / b;
  }
  return 0;
}

}  // namespace

/// Writes the steps of a stage. A register is free again when the step that reads it has been written; a name's value
/// keeps its own until the end of what it is bound in.
class TapeBuilder {
 public:
  explicit TapeBuilder(const StagePlan& plan) : plan_(&plan), slots_(plan.stage().slots) {
    tape_.plan_ = &plan;
    if (plan.run()) {
      const auto& own = plan.stage().outer;
      inside_.assign(std::find(own.begin(), own.end(), *plan.run()) + 1, own.end());
    }
    tape_.outside_.assign(plan.stage().extents.size(), true);
    for (const std::uint32_t loop : inside_) tape_.outside_[loop] = false;
    for (const LoweredNode& node : plan.stage().nodes)
      for (const std::uint32_t loop : node.loops) tape_.outside_[loop] = false;
  }

  std::optional<BlockTape> build() {
    const std::optional<TapeValue> root = value(plan_->stage().root, plan_->run());
    if (!root) return std::nullopt;
    tape_.root_ = *root;
    if (root->place == Place::block && tape_.steps_[last_].result.place == Place::block &&
        tape_.steps_[last_].result.index == root->index && !tape_.steps_[last_].once)
      tape_.last_ = last_;
    return std::move(tape_);
  }

 private:
  using Along = std::optional<std::uint32_t>;  ///< The loop that blocks go along; nothing: single elements.

  [[nodiscard]] const LoweredNode& node(std::uint32_t id) const { return plan_->stage().nodes[id]; }
  [[nodiscard]] const StagePlan::Operation& operation(std::uint32_t id) const { return plan_->operations_[id]; }

  TapeValue scalar(float initial, bool varies = false) {
    tape_.scalars_.push_back(initial);
    return {Place::scalar, true, varies, static_cast<std::uint32_t>(tape_.scalars_.size() - 1), 0};
  }
  /// Outside of reductions, what varies and what is computed once have registers of their own: those of the latter
  /// hold what they did when only the former is computed.
  TapeValue block(bool varies) {
    std::vector<std::uint32_t>& free = once(varies) ? free_once_ : free_;
    std::uint32_t index = 0;
    if (free.empty()) {
      index = static_cast<std::uint32_t>(tape_.blocks_++);
      kept_.push_back(0);
      of_once_.push_back(once(varies));
    } else {
      index = free.back();
      free.pop_back();
    }
    return {Place::block, false, varies, index, 0};
  }
  TapeValue result(bool one, bool varies) { return one ? scalar(0, varies) : block(varies); }
  [[nodiscard]] bool once(bool varies) const { return !varies && reductions_ == 0 && !inside_.empty(); }
  /// Of an operand of a step that varies or does not.
  void release(const TapeValue& value, bool varies) {
    if (value.place != Place::block) return;
    const std::uint32_t index = value.index;
    if (of_once_[index] && !once(varies)) ++kept_[index];  // for the next time
    std::vector<std::uint32_t>& free = of_once_[index] ? free_once_ : free_;
    if (kept_[index] == 0 && std::find(free.begin(), free.end(), index) == free.end()) free.push_back(index);
  }
  static TapeStep step_of(TapeStep::Kind kind) {
    TapeStep step;
    step.kind = kind;
    return step;
  }
  TapeValue append(TapeStep step) {
    step.once = once(step.result.varies);
    last_ = tape_.steps_.size();
    tape_.steps_.push_back(step);
    return tape_.steps_.back().result;
  }

  std::optional<TapeValue> value(std::uint32_t id, Along along) {
    const LoweredNode& node = this->node(id);
    switch (node.kind) {
      case Kind::number:
        return scalar(static_cast<float>(node.number));
      case Kind::infinity:
        return scalar(std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(node.number)));
      case Kind::read:
        return read(id, along);
      case Kind::slot:
        return slots_[node.slot];
      case Kind::bind: {
        if (!bind(node, along)) return std::nullopt;
        const std::optional<TapeValue> result = value(node.operands[1], along);
        unbind(node, result);
        return result;
      }
      case Kind::negate:
        return unary(id, along);
      case Kind::add:
      case Kind::subtract:
      case Kind::multiply:
      case Kind::divide:
        return operation(id).inner ? pair(id, along) : binary(id, along);
      case Kind::call:
        return node.operands.size() == 1 ? unary(id, along) : binary(id, along);
      case Kind::maximum:
      case Kind::minimum:
        return extremum(id, along);
      case Kind::reduce:
        if (along) return totals(id, *along);
        return operation(id).along ? total(id) : std::nullopt;
      case Kind::valid:
      case Kind::conditional:
      case Kind::test:
      case Kind::all_of:
      case Kind::any_of:
      case Kind::none_of:
        return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<TapeValue> read(std::uint32_t id, Along along) {
    if (const std::optional<TapeValue> memory = in_memory(id, along)) return memory;
    const LoweredNode& node = this->node(id);
    const LoweredAccess& access = plan_->stage().accesses[node.access];
    if (!node.operands.empty() || !access.guards.empty() || !access.indirect.empty()) return std::nullopt;
    const auto turned = along == plan_->run() ? plan_->turned(node.access) : std::nullopt;
    TapeStep step = step_of(turned ? TapeStep::Kind::turn : TapeStep::Kind::strided);
    const bool varies = this->varies(access.offset);
    step.a = {Place::memory, false, varies, access.offset, access.buffer};
    step.stride = plan_->coefficient(access.offset, *along);
    if (turned) {
      step.result = {Place::turned, false, true, static_cast<std::uint32_t>(tape_.turned_.size()), *turned};
      tape_.turned_.push_back({access.buffer, step.stride, plan_->stage().extents[*turned], plan_->block()});
    } else {
      step.result = block(varies);
    }
    return append(step);
  }

  /// What is read as it lies.
  [[nodiscard]] std::optional<TapeValue> in_memory(std::uint32_t id, Along along) const {
    const LoweredNode& node = this->node(id);
    if (node.kind != Kind::read || !node.operands.empty()) return std::nullopt;
    const LoweredAccess& access = plan_->stage().accesses[node.access];
    const std::int64_t stride = along ? plan_->coefficient(access.offset, *along) : 0;
    if (!access.guards.empty() || !access.indirect.empty() || (stride != 0 && stride != 1)) return std::nullopt;
    return TapeValue{Place::memory, stride == 0, varies(access.offset), access.offset, access.buffer};
  }
  [[nodiscard]] bool varies(std::uint32_t form) const {
    return std::any_of(inside_.begin(), inside_.end(),
                       [&](std::uint32_t loop) { return plan_->coefficient(form, loop) != 0; });
  }

  bool bind(const LoweredNode& node, Along along) {
    const std::optional<TapeValue> bound = value(node.operands[0], along);
    if (!bound) return false;
    slots_[node.slot] = *bound;
    if (bound->place == Place::block) ++kept_[bound->index];
    return true;
  }
  void unbind(const LoweredNode& node, const std::optional<TapeValue>& result) {
    const TapeValue bound = *slots_[node.slot];
    if (bound.place != Place::block) return;
    --kept_[bound.index];
    if (!result || result->place != Place::block || result->index != bound.index) release(bound, bound.varies);
  }

  std::optional<TapeValue> unary(std::uint32_t id, Along along) {
    if (operation(id).unary == nullptr) return std::nullopt;
    const std::optional<TapeValue> x = value(node(id).operands[0], along);
    if (!x) return std::nullopt;
    TapeStep step = step_of(TapeStep::Kind::unary);
    step.unary = operation(id).unary->loop;
    step.a = *x;
    release(*x, x->varies);
    step.result = result(x->one, x->varies);
    return append(step);
  }

  /// The operands of a node of two; computed once if they are the same.
  std::optional<std::pair<TapeValue, TapeValue>> operands(const LoweredNode& node, Along along) {
    const std::optional<TapeValue> a = value(node.operands[0], along);
    if (!a) return std::nullopt;
    if (plan_->same_[node.operands[0]] == plan_->same_[node.operands[1]]) return std::pair(*a, *a);
    const std::optional<TapeValue> b = value(node.operands[1], along);
    if (!b) return std::nullopt;
    return std::pair(*a, *b);
  }

  TapeValue binary(const BinaryEntry& loop, TapeValue a, TapeValue b, bool by_reciprocal) {
    TapeStep step = step_of(TapeStep::Kind::binary);
    step.binary = &loop;
    step.a = a;
    step.b = b;
    step.by_reciprocal = by_reciprocal && b.one && !a.one;
    if (a.one && b.one) step.of_numbers = arithmetic_of(loop);
    const bool varies = a.varies || b.varies;
    release(a, varies);
    release(b, varies);
    step.result = result(a.one && b.one, varies);
    return append(step);
  }
  std::optional<TapeValue> binary(std::uint32_t id, Along along) {
    if (operation(id).binary == nullptr) return std::nullopt;
    const auto both = operands(node(id), along);
    if (!both) return std::nullopt;
    return binary(*operation(id).binary, both->first, both->second, operation(id).by_reciprocal);
  }

  std::optional<TapeValue> pair(std::uint32_t id, Along along) {
    const StagePlan::Operation& outer = operation(id);
    const std::uint32_t inner = node(id).operands[*outer.inner];
    const auto both = operands(node(inner), along);
    if (!both) return std::nullopt;
    const std::optional<TapeValue> c = value(node(id).operands[1 - *outer.inner], along);
    if (!c) return std::nullopt;
    const auto [a, b] = *both;
    const bool on_right = *outer.inner == 1;
    if (!on_right && chain(a, b, *c, *operation(inner).arithmetic, *outer.arithmetic)) return a;
    if (a.one && b.one) {
      const TapeValue x = binary(*operation(inner).binary, a, b, false);
      return binary(*outer.binary, on_right ? *c : x, on_right ? x : *c, false);
    }
    TapeStep step = step_of(TapeStep::Kind::pair);
    step.on_right = on_right;
    step.first = *operation(inner).arithmetic;
    step.second = *outer.arithmetic;
    step.first_by_reciprocal = operation(inner).by_reciprocal && b.one;
    step.by_reciprocal = outer.by_reciprocal && !on_right && c->one;
    step.a = a;
    step.b = b;
    step.c = *c;
    const bool varies = a.varies || b.varies || c->varies;
    for (const TapeValue& operand : {a, b, *c}) release(operand, varies);
    step.result = block(varies);
    return append(step);
  }

  /// Makes the last step, (x - b) * c of two numbers, which made a, the chain that goes on to scale and shift each
  /// element.
  bool chain(TapeValue a, TapeValue scale, TapeValue shift, Arithmetic third, Arithmetic fourth) {
    if (tape_.steps_.empty() || last_ + 1 != tape_.steps_.size() || a.place != Place::block) return false;
    TapeStep& step = tape_.steps_[last_];
    const auto is_sum = [](Arithmetic of) { return of == Arithmetic::add || of == Arithmetic::subtract; };
    const bool fits = step.kind == TapeStep::Kind::pair && !step.on_right && step.result.place == Place::block &&
                      step.result.index == a.index && kept_[a.index] == 0 && step.b.one && step.c.one &&
                      is_sum(step.first) && (step.second == Arithmetic::multiply || step.by_reciprocal);
    if (!fits || third != Arithmetic::multiply || !is_sum(fourth) || scale.one != shift.one) return false;
    const auto stays = [](const TapeValue& operand) {
      return operand.place == Place::memory || operand.place == Place::scalar;
    };
    if (!stays(scale) || !stays(shift)) return false;
    if (step.once && (scale.varies || shift.varies)) return false;
    step.kind = TapeStep::Kind::chain;
    step.d = scale;
    step.e = shift;
    step.fourth = fourth;
    return true;
  }

  std::optional<TapeValue> extremum(std::uint32_t id, Along along) {
    std::optional<TapeValue> best = value(node(id).operands[0], along);
    for (std::size_t i = 1; i < node(id).operands.size() && best; ++i) {
      const std::optional<TapeValue> next = value(node(id).operands[i], along);
      if (!next) return std::nullopt;
      best = binary(*operation(id).binary, *best, *next, false);
    }
    return best;
  }

  /// The body of a reduction, after its step, and what that step folds.
  bool body(TapeStep& step, std::uint32_t reduction, Along along) {
    const LoweredNode& fold = node(reduction);
    if (fold.leave_out) return false;
    std::uint32_t product = fold.operands[0];
    while (node(product).kind == Kind::bind) product = node(product).operands[1];
    const bool square = operation(product).square;
    if (fold.reduction == Fold::sum && (square || node(product).kind == Kind::multiply)) {
      std::uint32_t id = fold.operands[0];
      if (step.kind == TapeStep::Kind::total && spread(step, id, along)) return true;
      for (; id != product; id = node(id).operands[1])
        if (!bind(node(id), along)) return false;
      std::optional<std::pair<TapeValue, TapeValue>> both;
      if (!square)
        both = operands(node(product), along);
      else if (const std::optional<TapeValue> x = value(node(product).operands[0], along))
        both.emplace(*x, *x);
      if (!both) return false;
      step.product = true;
      std::tie(step.a, step.b) = *both;
      for (id = fold.operands[0]; id != product; id = node(id).operands[1]) unbind(node(id), std::nullopt);
    } else {
      const std::optional<TapeValue> x = value(fold.operands[0], along);
      if (!x) return false;
      step.a = *x;
    }
    release(step.a, step.a.varies);
    if (step.product) release(step.b, step.b.varies);
    return true;
  }

  /// What is squared, if it is that.
  [[nodiscard]] std::optional<std::uint32_t> squared(std::uint32_t id) const {
    if (operation(id).square) return node(id).operands[0];
    if (node(id).kind != Kind::bind) return std::nullopt;
    const LoweredNode& product = node(node(id).operands[1]);
    const auto is_bound = [&](std::uint32_t operand) {
      return node(operand).kind == Kind::slot && node(operand).slot == node(id).slot;
    };
    if (product.kind != Kind::multiply || !is_bound(product.operands[0]) || !is_bound(product.operands[1]))
      return std::nullopt;
    return node(id).operands[0];
  }

  /// Whether the body of a total is the square of a difference of elements in memory from one number: the step then
  /// adds up such squares.
  bool spread(TapeStep& step, std::uint32_t id, Along along) {
    const std::optional<std::uint32_t> difference = squared(id);
    if (!difference || node(*difference).kind != Kind::subtract || operation(*difference).inner) return false;
    const std::optional<TapeValue> a = in_memory(node(*difference).operands[0], along);
    const std::optional<TapeValue> b = in_memory(node(*difference).operands[1], along);
    step.spread = a && !a->one && b && b->one;
    if (!step.spread) return false;
    step.a = *a;
    step.b = *b;
    return true;
  }

  std::optional<TapeValue> total(std::uint32_t id) {
    TapeStep step = step_of(TapeStep::Kind::total);
    step.node = id;
    step.along = *operation(id).along;
    const std::size_t at = tape_.steps_.size();
    tape_.steps_.emplace_back();
    ++reductions_;
    if (!body(step, id, step.along)) return std::nullopt;
    --reductions_;
    step.result = scalar(0, step.a.varies || step.b.varies);
    return reduction(at, step);
  }

  std::optional<TapeValue> totals(std::uint32_t id, std::uint32_t along) {
    TapeStep step = step_of(TapeStep::Kind::totals);
    step.node = id;
    // Not of those that the body may write. What the body reads is not known yet.
    const bool varies = reads_varying(id);
    step.result = block(varies);
    ++reductions_;
    const TapeValue some = block(varies);
    step.some = some.index;
    const std::size_t at = tape_.steps_.size();
    tape_.steps_.emplace_back();
    if (!body(step, id, along)) return std::nullopt;
    release(some, varies);
    --reductions_;
    return reduction(at, step);
  }

  /// Whether something is read that varies, in the node or where a name that it has is bound.
  [[nodiscard]] bool reads_varying(std::uint32_t id) const {
    const LoweredNode& node = this->node(id);
    if (node.kind == Kind::read && varies(plan_->stage().accesses[node.access].offset)) return true;
    if (node.kind == Kind::slot && slots_[node.slot] && slots_[node.slot]->varies) return true;
    return std::any_of(node.operands.begin(), node.operands.end(),
                       [&](std::uint32_t operand) { return reads_varying(operand); });
  }

  TapeValue reduction(std::size_t at, TapeStep step) {
    step.once = once(step.result.varies);
    step.end = static_cast<std::uint32_t>(tape_.steps_.size());
    tape_.steps_[at] = step;
    last_ = at;
    return step.result;
  }

  const StagePlan* plan_;
  std::vector<std::uint32_t> inside_;  ///< The own loops inside of the run.
  BlockTape tape_;
  std::vector<std::optional<TapeValue>> slots_;
  std::vector<std::uint32_t> free_, free_once_;  ///< Registers of blocks.
  std::vector<int> kept_;      ///< Per register of a block: as many names' values, and what is needed again.
  std::vector<bool> of_once_;  ///< Per register of a block.
  int reductions_ = 0;         ///< Around what is built.
  std::size_t last_ = 0;       ///< The step that was completed last.
};

std::optional<BlockTape> BlockTape::of(const StagePlan& plan) { return TapeBuilder(plan).build(); }

std::vector<TurnedBlocks::Blocks*> TurnedBlocks::places(const std::vector<TurnedAccess>& accesses) {
  std::vector<Blocks*> places;
  for (const TurnedAccess& access : accesses) {
    const auto is_free = [&](const Blocks& blocks) {
      return blocks.access == access && std::find(places.begin(), places.end(), &blocks) == places.end();
    };
    auto place = std::find_if(blocks_.begin(), blocks_.end(), is_free);
    if (place == blocks_.end()) {
      blocks_.push_back(
          {access, std::vector<float>(static_cast<std::size_t>(access.steps * access.block)), nullptr, 0});
      place = std::prev(blocks_.end());
    }
    places.push_back(&*place);
  }
  return places;
}

TapeRunner::TapeRunner(const BlockTape& tape, const std::vector<BlockBuffer>& buffers, TurnedBlocks& turned)
    : tape_(&tape),
      buffers_(&buffers),
      multiply_(find_binary("mul")),
      steps_(tape.plan_->stage().extents.size()),
      blocks_(tape.blocks_),
      turned_(turned.places(tape.turned_)),
      scalars_(tape.scalars_),
      follows_(!tape.turned_.empty() ||
               std::any_of(tape.steps_.begin(), tape.steps_.end(), [](const TapeStep& step) { return step.once; })) {
  values_.reserve(tape.plan_->stage().forms.size());
  for (const Affine& form : tape.plan_->stage().forms) values_.push_back(form.base);
}

void TapeRunner::compute(std::int64_t count, float* elements) {
  fresh_ = fresh_ || count != last_count_;
  last_count_ = count;
  run(0, tape_->steps_.size(), count, elements);
  fresh_ = false;
  if (tape_->last_) return;
  store({at(tape_->root_), tape_->root_.one}, count, elements);
}

void TapeRunner::run(std::size_t begin, std::size_t end, std::int64_t count, float* last) {
  for (std::size_t i = begin; i < end; ++i) {
    const TapeStep& step = tape_->steps_[i];
    if (step.once && !fresh_) {
      if (step.end > i) i = step.end - 1;
      continue;
    }
    float* const y = last != nullptr && tape_->last_ == i            ? last
                     : step.result.place == TapeValue::Place::turned ? nullptr
                                                                     : result(step.result);
    const std::int64_t elements = step.result.one ? 1 : count;
    switch (step.kind) {
      case TapeStep::Kind::unary:
        step.unary(at(step.a), y, elements, 0, 0);
        break;
      case TapeStep::Kind::binary:
        binary(step, elements, y);
        break;
      case TapeStep::Kind::pair:
        pair(step, elements, y);
        break;
      case TapeStep::Kind::chain:
        chain(step, elements, y);
        break;
      case TapeStep::Kind::strided: {
        const float* const from = at(step.a);
        for (std::int64_t k = 0; k < count; ++k) y[k] = from[k * step.stride];
        break;
      }
      case TapeStep::Kind::turn:
        turn(step, count);
        break;
      case TapeStep::Kind::total:
        total(step, i + 1, y);
        i = step.end - 1;
        break;
      case TapeStep::Kind::totals:
        totals(step, i + 1, count, y);
        i = step.end - 1;
        break;
    }
  }
}

void TapeRunner::binary(const TapeStep& step, std::int64_t count, float* y) {
  const float *a = at(step.a), *b = at(step.b);
  if (step.of_numbers) {  // not worth a loop
    *y = result_of(*step.of_numbers, *a, *b);
    return;
  }
  if (step.by_reciprocal) {
    if (const std::optional<float> inverse = reciprocal(*b)) return multiply_->second_scalar(a, &*inverse, y, count);
  }
  const BinaryLoop loop = step.a.one == step.b.one ? step.binary->both
                          : step.b.one             ? step.binary->second_scalar
                                                   : step.binary->first_scalar;
  loop(a, b, y, count);
}

void TapeRunner::pair(const TapeStep& step, std::int64_t count, float* y) {
  const float *b = at(step.b), *c = at(step.c);
  Arithmetic first = step.first, second = step.second;
  std::optional<float> of_first, of_second;
  if (step.first_by_reciprocal && (of_first = reciprocal(*b))) {
    first = Arithmetic::multiply;
    b = &*of_first;
  }
  if (step.by_reciprocal && (of_second = reciprocal(*c))) {
    second = Arithmetic::multiply;
    c = &*of_second;
  }
  pairs().find(first, second, step.on_right).find(step.a.one, step.b.one, step.c.one)(at(step.a), b, c, y, count);
}

void TapeRunner::chain(const TapeStep& step, std::int64_t count, float* y) {
  const float* c = at(step.c);
  std::optional<float> inverse;
  if (step.second == Arithmetic::multiply || (inverse = reciprocal(*c)))
    return pairs().find_chain(step.first, step.fourth, step.d.one)(at(step.a), at(step.b), inverse ? &*inverse : c,
                                                                   at(step.d), at(step.e), y, count);
  pair(step, count, y);
  pairs()
      .find(Arithmetic::multiply, step.fourth, false)
      .find(false, step.d.one, step.e.one)(y, at(step.d), at(step.e), y, count);
}

const float* TapeRunner::turned_at(const TapeValue& value) const {
  return turned_[value.index]->elements.data() + steps_[value.buffer] * tape_->plan_->block();
}

void TapeRunner::turn(const TapeStep& step, std::int64_t count) {
  TurnedBlocks::Blocks& turned = *turned_[step.result.index];
  const float* const from = at(step.a) - steps_[step.result.buffer];
  if (turned.from == from && turned.count == count) return;
  turned.from = from;
  turned.count = count;
  loops().transpose(from, step.stride, turned.elements.data(), turned.access.block, turned.access.steps, count);
}

template <class Body>
void TapeRunner::for_each(std::span<const std::uint32_t> variables, std::optional<std::uint32_t> left_out,
                          const Body& body) {
  if (variables.empty()) return body();
  if (variables[0] == left_out) return for_each(variables.subspan(1), left_out, body);
  const std::int64_t extent = tape_->plan_->stage().extents[variables[0]];
  for (std::int64_t i = 0; i < extent; ++i) {
    for_each(variables.subspan(1), left_out, body);
    step(variables[0], 1);
  }
  step(variables[0], -extent);
}

void TapeRunner::total(const TapeStep& step, std::size_t body, float* y) {
  const LoweredNode& node = tape_->plan_->stage().nodes[step.node];
  const std::int64_t extent = tape_->plan_->stage().extents[step.along];
  double total = neutral(node.reduction);
  for_each(node.loops, step.along, [&] {
    std::int64_t done = 0;
    while (done < extent) {
      const std::int64_t count = std::min(block_elements, extent - done);
      run(body, step.end, count, nullptr);
      const Block a{at(step.a), step.a.one};
      total = combine(node.reduction, total,
                      step.spread    ? static_cast<double>(loops().squares(a.data, count, *at(step.b)))
                      : step.product ? sum_of_products(a, {at(step.b), step.b.one}, count)
                                     : fold_block(node.reduction, a, count));
      done += count;
      this->step(step.along, count);
    }
    this->step(step.along, -done);
  });
  *y = static_cast<float>(total);
}

void TapeRunner::totals(const TapeStep& step, std::size_t body, std::int64_t count, float* y) {
  const LoweredNode& node = tape_->plan_->stage().nodes[step.node];
  const auto add = [&](float* to) {
    run(body, step.end, count, nullptr);
    const Block a{at(step.a), step.a.one};
    if (step.product)
      add_products(to, a, {at(step.b), step.b.one}, count);
    else
      fold_into(node.reduction, to, a, count);
  };
  std::fill_n(y, count, static_cast<float>(neutral(node.reduction)));
  if (node.reduction != Fold::sum) return for_each(node.loops, std::nullopt, [&] { add(y); });
  float* const some = blocks_[step.some].data();
  std::fill_n(some, count, 0.0F);
  int sums = 0;
  for_each(node.loops, std::nullopt, [&] {
    add(some);
    if (++sums < sums_at_once) return;
    loops().accumulate(some, y, count);
    std::fill_n(some, count, 0.0F);
    sums = 0;
  });
  loops().accumulate(some, y, count);
}

}  // namespace taso::cpu
