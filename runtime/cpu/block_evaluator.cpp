#include "runtime/cpu/block_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "runtime/cpu/block_fold.h"

namespace taso::cpu {
namespace {

using Kind = LoweredNode::Kind;

// Of estimates: what an element costs beside an addition of elements that lie together.
constexpr double load_work = 0.3;     // of one that lies beside its neighbour
constexpr double gather_work = 3;     // of one that does not
constexpr double turned_work = 1.2;   // of one that is transposed with others
constexpr double call_work = 6;       // of a function
constexpr double dispatch_work = 40;  // of a loop, whatever its length
constexpr double row_work = 1;        // of a loop over one of several rows

/// An element of a block in which one stands for all.
float element(const float* data, bool uniform, std::int64_t at) { return data[uniform ? 0 : at]; }

/// Of a loop of so many steps; a loop of none has no length, but what it costs is a number.
double length_of_block(std::int64_t extent) {
  return static_cast<double>(std::clamp<std::int64_t>(extent, 1, block_elements));
}

/// Whether a small error of the argument can be a large one of the result.
bool is_jump(std::string_view function) {
  return function == "floor" || function == "ceil" || function == "round" || function == "sign" ||
         function == "remainder_by";
}

/// Whether a function of an exact argument is rounded, as a root is.
bool is_rounded(std::string_view function) {
  return function == "sqrt" || function == "exp" || function == "log" || function == "pow";
}

}  // namespace

// ---- How a stage is computed.

bool has_jump(const LoweredStage& stage) {
  return std::any_of(stage.nodes.begin(), stage.nodes.end(),
                     [](const LoweredNode& node) { return node.kind == Kind::call && is_jump(node.function->name); });
}

StagePlan::StagePlan(const LoweredStage& stage, const Operator& of, bool by_rows) : stage_(&stage), by_rows_(by_rows) {
  coefficients_.assign(stage.extents.size() * stage.forms.size(), 0);
  for (std::size_t variable = 0; variable < stage.extents.size(); ++variable)
    for (const auto& [form, coefficient] : stage.steps[variable])
      coefficients_[variable * stage.forms.size() + form] = coefficient;
  find_operations(of);
  if (stage.empty) return;
  find_same();
  find_pairs();
  for (std::size_t id = 0; id < stage.nodes.size(); ++id)
    if (stage.nodes[id].kind == Kind::reduce) operations_[id].along = best_loop(stage.nodes[id]);
  around_.resize(stage.accesses.size());
  std::vector<std::uint32_t> loops;
  find_loops_around(stage.root, loops);
  registers_ = depth(stage.root) + 1;
  place_slots();
  choose_run();
  choose_block();
}

void StagePlan::place_slots() {
  slot_registers_.resize(stage_->slots, 0);
  for (const LoweredNode& node : stage_->nodes) {
    if (node.kind != Kind::bind) continue;
    slot_registers_[node.slot] = registers_;
    registers_ += depth(node.operands[0]) + 1;
  }
}

void StagePlan::find_operations(const Operator& of) {
  for (const LoweredNode& node : stage_->nodes) {
    Operation operation;
    switch (node.kind) {
      case Kind::negate:
        operation.unary = find_unary("neg");
        break;
      case Kind::add:
        operation.binary = find_binary("add");
        operation.arithmetic = Arithmetic::add;
        break;
      case Kind::subtract:
        operation.binary = find_binary("sub");
        operation.arithmetic = Arithmetic::subtract;
        break;
      case Kind::multiply:
        operation.binary = find_binary("mul");
        operation.arithmetic = Arithmetic::multiply;
        break;
      case Kind::divide:
        operation.binary = find_binary("div");
        operation.arithmetic = Arithmetic::divide;
        operation.by_reciprocal =
            !of.jumps && !has_jump(*stage_) &&
            (reads(node.operands[1], &of.computed) || (rounds(node.operands[1]) && reads(node.operands[1], nullptr)));
        break;
      case Kind::maximum:
      case Kind::minimum:
        operation.binary = extremum_loop(node.kind == Kind::maximum);
        break;
      case Kind::call:
        operation.square = node.function->name == "square";
        if (node.operands.size() == 1)
          operation.unary = find_unary(node.function->name);
        else
          operation.binary = find_binary(node.function->name);
        break;
      case Kind::number:
      case Kind::read:
      case Kind::valid:
      case Kind::slot:
      case Kind::bind:
      case Kind::infinity:
      case Kind::conditional:
      case Kind::test:
      case Kind::all_of:
      case Kind::any_of:
      case Kind::none_of:
      case Kind::reduce:
        break;
    }
    operations_.push_back(operation);
  }
}

bool StagePlan::reads(std::uint32_t id, const std::vector<std::uint32_t>* of) const {
  const LoweredNode& node = stage_->nodes[id];
  if (node.kind == Kind::read &&
      (of == nullptr || std::find(of->begin(), of->end(), stage_->accesses[node.access].buffer) != of->end()))
    return true;
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](std::uint32_t operand) { return reads(operand, of); });
}

bool StagePlan::rounds(std::uint32_t id) const {
  const LoweredNode& node = stage_->nodes[id];
  const bool is_arithmetic =
      node.kind == Kind::add || node.kind == Kind::subtract || node.kind == Kind::multiply || node.kind == Kind::divide;
  if (is_arithmetic || (node.kind == Kind::call && is_rounded(node.function->name))) return true;
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](std::uint32_t operand) { return rounds(operand); });
}

void StagePlan::find_pairs() {
  for (std::uint32_t id = 0; id < stage_->nodes.size(); ++id) {
    if (!operations_[id].arithmetic) continue;
    const std::uint32_t left = stage_->nodes[id].operands[0], right = stage_->nodes[id].operands[1];
    if (same_[left] == same_[right]) continue;
    if (operations_[left].arithmetic)
      operations_[id].inner = 0;
    else if (operations_[right].arithmetic)
      operations_[id].inner = 1;
  }
}

void StagePlan::find_same() {
  for (std::uint32_t id = 0; id < stage_->nodes.size(); ++id) {
    std::uint32_t first = 0;
    while (first < id && !are_same(first, id)) ++first;
    same_.push_back(first == id ? id : same_[first]);
  }
}

bool StagePlan::are_same(std::uint32_t a, std::uint32_t b) const {
  const LoweredNode &x = stage_->nodes[a], &y = stage_->nodes[b];
  if (a == b) return true;
  if (x.kind != y.kind || x.operands.size() != y.operands.size()) return false;
  switch (x.kind) {
    case Kind::number:
      if (x.number != y.number) return false;
      break;
    case Kind::read: {
      const LoweredAccess &left = stage_->accesses[x.access], &right = stage_->accesses[y.access];
      const bool plain = left.guards.empty() && left.indirect.empty() && right.guards.empty() && right.indirect.empty();
      if (x.access != y.access &&
          !(plain && left.buffer == right.buffer && stage_->forms[left.offset] == stage_->forms[right.offset]))
        return false;
      break;
    }
    case Kind::slot:
      if (x.slot != y.slot) return false;
      break;
    case Kind::call:
      if (x.function != y.function) return false;
      break;
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::divide:
    case Kind::negate:
    case Kind::maximum:
    case Kind::minimum:
      break;
    case Kind::valid:
    case Kind::bind:
    case Kind::infinity:
    case Kind::conditional:
    case Kind::test:
    case Kind::all_of:
    case Kind::any_of:
    case Kind::none_of:
    case Kind::reduce:
      return false;
  }
  for (std::size_t i = 0; i < x.operands.size(); ++i)
    if (!are_same(x.operands[i], y.operands[i])) return false;
  return true;
}

void StagePlan::find_loops_around(std::uint32_t id, std::vector<std::uint32_t>& loops) {
  const LoweredNode& node = stage_->nodes[id];
  switch (node.kind) {
    case Kind::read: {
      const LoweredAccess& access = stage_->accesses[node.access];
      plain_ = plain_ && access.guards.empty() && access.indirect.empty();
      if (around_[node.access].size() < loops.size()) around_[node.access] = loops;
      break;
    }
    case Kind::valid:
    case Kind::conditional:
    case Kind::test:
    case Kind::all_of:
    case Kind::any_of:
    case Kind::none_of:
      plain_ = false;
      break;
    case Kind::reduce:
      plain_ = plain_ && !node.leave_out;
      break;
    default:
      break;
  }
  const std::size_t outside = loops.size();
  if (node.kind == Kind::reduce) loops.insert(loops.end(), node.loops.begin(), node.loops.end());
  for (const std::uint32_t operand : node.operands) find_loops_around(operand, loops);
  loops.resize(outside);
}

std::optional<std::uint32_t> StagePlan::turned_along(std::uint32_t form, std::span<const std::uint32_t> around,
                                                     std::uint32_t run) const {
  const std::int64_t stride = coefficient(form, run);
  if (!plain_ || stride == 0 || stride == 1) return std::nullopt;
  const auto own = std::find(stage_->outer.begin(), stage_->outer.end(), run);
  std::vector<std::uint32_t> inside(own + 1, stage_->outer.end());
  inside.insert(inside.end(), around.begin(), around.end());
  for (std::size_t i = inside.size(); i-- > 0;) {
    const std::int64_t step = coefficient(form, inside[i]), extent = stage_->extents[inside[i]];
    if (step == 0 || extent == 1) continue;
    return step == 1 && extent <= turned_steps ? std::optional(inside[i]) : std::nullopt;
  }
  return std::nullopt;
}

bool StagePlan::has_reduction(std::uint32_t id) const {
  const LoweredNode& node = stage_->nodes[id];
  return node.kind == Kind::reduce || std::any_of(node.operands.begin(), node.operands.end(),
                                                  [&](std::uint32_t operand) { return has_reduction(operand); });
}

std::optional<std::int64_t> StagePlan::longest_reduction() const {
  std::optional<std::int64_t> longest;
  for (const LoweredNode& node : stage_->nodes) {
    if (node.kind != Kind::reduce) continue;
    if (node.loops.size() != 1 || has_reduction(node.operands[0])) return std::nullopt;
    longest = std::max(longest.value_or(1), stage_->extents[node.loops[0]]);
  }
  return longest;
}

StagePlan::Rows StagePlan::rows_of(std::optional<std::uint32_t> run) const {
  const auto& own = stage_->outer;
  const std::size_t inside = run ? 1 : 0;
  if (!by_rows_ || !plain_ || own.size() <= inside) return {};
  std::optional<std::int64_t> width;
  if (!run)
    width = longest_reduction();
  else if (run == own.back() && coefficient(stage_->write, *run) == 1 && !has_reduction(stage_->root))
    width = stage_->extents[*run];
  if (!width || *width < fewest_of_row) return {};
  const std::uint32_t loop = own[own.size() - 1 - inside];
  const std::int64_t at_once = std::min(stage_->extents[loop], elements_of_rows / *width);
  return at_once > 1 ? Rows{loop, at_once} : Rows{};
}

bool StagePlan::turns() const {
  for (std::uint32_t i = 0; i < stage_->accesses.size(); ++i)
    if (turned(i)) return true;
  return written_turned().has_value();
}

void StagePlan::choose_run() {
  rows_ = rows_of(std::nullopt);
  work_ = estimate(stage_->root, std::nullopt, rows_.at_once) + dispatch_work / static_cast<double>(rows_.at_once);
  for (const std::uint32_t variable : stage_->outer) {
    const double written = coefficient(stage_->write, variable) == 1   ? load_work
                           : turned_along(stage_->write, {}, variable) ? turned_work
                                                                       : gather_work;
    const double length = length_of_block(stage_->extents[variable]);
    const Rows rows = rows_of(variable);
    const double work = estimate(stage_->root, variable, rows.at_once) + written +
                        dispatch_work / (length * static_cast<double>(rows.at_once));
    // Of equal ones the innermost.
    if (work > work_ || (work == work_ && !run_)) continue;
    work_ = work;
    run_ = variable;
    rows_ = rows;
  }
}

void StagePlan::choose_block() {
  if (!run_) return;
  std::int64_t most = block_elements;
  const auto read_or_written = [&](std::uint32_t form, std::optional<std::uint32_t> turned_along) {
    const std::int64_t stride = coefficient(form, *run_);
    if (stride == 0 || stride == 1) return;
    const std::int64_t together = turned_along ? turned_elements / stage_->extents[*turned_along] : 0;
    most = std::clamp(together, block_elements_apart, most);
  };
  for (std::uint32_t i = 0; i < stage_->accesses.size(); ++i) read_or_written(stage_->accesses[i].offset, turned(i));
  read_or_written(stage_->write, written_turned());
  block_ = most;
}

double StagePlan::estimate_access(std::uint32_t id, std::optional<std::uint32_t> along) const {
  const LoweredAccess& access = stage_->accesses[id];
  const double work = static_cast<double>(access.indirect.size()) * gather_work;
  const std::int64_t stride = along ? coefficient(access.offset, *along) : 0;
  if (stride == 0 || stride == 1) return work + (stride == 0 ? 0 : load_work);
  const bool is_own = std::find(stage_->outer.begin(), stage_->outer.end(), *along) != stage_->outer.end();
  return work + (is_own && turned_along(access.offset, around_[id], *along) ? turned_work : gather_work);
}

double StagePlan::estimate(std::uint32_t id, std::optional<std::uint32_t> along, std::int64_t rows) const {
  const LoweredNode& node = stage_->nodes[id];
  const double of_row = rows > 1 ? row_work : 0;
  // What is one number of each row is computed by one loop for all.
  const double dispatch = dispatch_work / static_cast<double>(rows);
  const double loop = along ? (dispatch + of_row) / length_of_block(stage_->extents[*along]) : dispatch;
  const auto operands = [&] {
    double work = 0;
    for (const std::uint32_t operand : node.operands) work += estimate(operand, along, rows);
    return work;
  };
  switch (node.kind) {
    case Kind::read:
      return operands() + estimate_access(node.access, along) + loop / 2;
    case Kind::number:
    case Kind::slot:
    case Kind::infinity:
    case Kind::test:
    case Kind::all_of:
    case Kind::any_of:
    case Kind::none_of:
      return loop / 4;
    case Kind::valid:
    case Kind::bind:
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::divide:
    case Kind::negate:
    case Kind::maximum:
    case Kind::minimum:
      return operands() + 1 + loop;
    case Kind::call:
      return operands() + call_work + loop;
    case Kind::conditional:
      return operands() + 1 + loop;
    case Kind::reduce: {
      double iterations = 1;
      for (const std::uint32_t variable : node.loops) iterations *= static_cast<double>(stage_->extents[variable]);
      const auto inner = along ? along : operations_[id].along;
      const double body = estimate(node.operands[0], inner, rows) + 1;
      return iterations * (inner ? body + (along ? loop : 0) : body + dispatch_work) + loop + (along ? 0 : of_row);
    }
  }
  return 0;
}

std::optional<std::uint32_t> StagePlan::best_loop(const LoweredNode& reduction) const {
  std::optional<std::uint32_t> best;
  double least = 0;
  for (const std::uint32_t variable : reduction.loops) {
    const double work = estimate(reduction.operands[0], variable);
    if (best && work > least) continue;
    best = variable;
    least = work;
  }
  return best;
}

std::size_t StagePlan::depth(std::uint32_t id) const {
  const LoweredNode& node = stage_->nodes[id];
  std::size_t deepest = 0;
  if (const std::optional<std::uint32_t> inner = operations_[id].inner) {
    const LoweredNode& first = stage_->nodes[node.operands[*inner]];
    return std::max({depth(first.operands[0]), 1 + depth(first.operands[1]), 2 + depth(node.operands[1 - *inner])});
  }
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    // The first operand of an operation takes the place of the result; what may be copied into it does not.
    const bool in_place = i == 0 && node.kind != Kind::read && node.kind != Kind::conditional;
    const std::size_t before = node.kind == Kind::reduce ? 2 : in_place || node.kind == Kind::bind ? 0 : 1;
    deepest = std::max(deepest, before + depth(node.operands[i]));
  }
  return std::max<std::size_t>(deepest, 1);
}

// ---- Elements.

BlockEvaluator::BlockEvaluator(const StagePlan& plan, const std::vector<BlockBuffer>& buffers)
    : plan_(&plan), buffers_(&buffers), registers_(plan.registers()), slots_(plan.stage().slots) {
  values_.reserve(plan.stage().forms.size());
  for (const Affine& form : plan.stage().forms) values_.push_back(form.base);
}

void BlockEvaluator::step(std::uint32_t variable, std::int64_t count) {
  for (const auto& [form, coefficient] : plan_->stage().steps[variable]) values_[form] += coefficient * count;
}

void BlockEvaluator::compute(std::int64_t count, float* elements) {
  along_ = plan_->run();
  // Where elements are computed alone, blocks of reductions need more room than there is for the result.
  target_ = along_ ? elements : registers_[0].data();
  begin_ = 0;
  count_ = count;
  const Block result = value(plan_->stage().root, 0);
  store(result, count, elements);
}

Block BlockEvaluator::number(std::size_t depth, float value) {
  reg(depth)[0] = value;
  return {reg(depth), true};
}

Block BlockEvaluator::value(std::uint32_t id, std::size_t depth) {
  const LoweredNode& node = plan_->stage().nodes[id];
  const StagePlan::Operation& operation = plan_->operations_[id];
  switch (node.kind) {
    case Kind::number:
      return number(depth, static_cast<float>(node.number));
    case Kind::infinity:
      return number(depth, std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(node.number)));
    case Kind::read:
      return read(node, depth);
    case Kind::valid:
      return valid(plan_->stage().accesses[node.access], depth);
    case Kind::slot: {
      const Slot& slot = slots_[node.slot];
      return {slot.block.data + (slot.block.uniform ? 0 : begin_ - slot.begin), slot.block.uniform};
    }
    case Kind::bind:
      bind(node);
      return value(node.operands[1], depth);
    case Kind::negate:
      return unary(node, operation, depth);
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::divide:
      return binary(node, operation, depth);
    case Kind::maximum:
    case Kind::minimum: {
      Block best = value(node.operands[0], depth);
      for (std::size_t i = 1; i < node.operands.size(); ++i)
        best = apply(*operation.binary, best, value(node.operands[i], depth + 1), reg(depth), count_);
      return best;
    }
    case Kind::call:
      return node.operands.size() == 1 ? unary(node, operation, depth) : binary(node, operation, depth);
    case Kind::conditional:
      return conditional(node, depth);
    case Kind::reduce:
      return !along_ && operation.along ? reduce_block(node, *operation.along, depth) : reduce_elements(node, depth);
    case Kind::test:
    case Kind::all_of:
    case Kind::any_of:
    case Kind::none_of:
      break;
  }
  TASO_CHECK(false, "a condition where a value is needed");
  return {};
}

Block BlockEvaluator::unary(const LoweredNode& node, const StagePlan::Operation& operation, std::size_t depth) {
  const Block x = value(node.operands[0], depth);
  float* const y = reg(depth);
  if (operation.unary != nullptr) return apply(*operation.unary, x, y, count_);
  for (std::int64_t i = 0; i < (x.uniform ? 1 : count_); ++i)
    y[i] = static_cast<float>(node.function->real(static_cast<double>(x.data[i])));
  return {y, x.uniform};
}

std::pair<Block, Block> BlockEvaluator::operands(const LoweredNode& node, std::size_t depth) {
  const Block first = value(node.operands[0], depth);
  if (plan_->same_[node.operands[0]] == plan_->same_[node.operands[1]]) return {first, first};
  return {first, value(node.operands[1], depth + 1)};
}

Block BlockEvaluator::pair(const LoweredNode& node, const StagePlan::Operation& operation, std::size_t depth) {
  const std::uint32_t inner = *operation.inner, first_id = node.operands[inner];
  const StagePlan::Operation& first_operation = plan_->operations_[first_id];
  auto [a, b] = operands(plan_->stage().nodes[first_id], depth);
  Block c = value(node.operands[1 - inner], depth + 2);
  float* const y = reg(depth);
  Arithmetic first = *first_operation.arithmetic, second = *operation.arithmetic;
  if (a.uniform && b.uniform) {
    const Block x = apply(*first_operation.binary, a, b, y, 1);
    return inner == 0 ? apply(*operation.binary, x, c, y, count_) : apply(*operation.binary, c, x, y, count_);
  }
  std::optional<float> of_first, of_second;
  if (first_operation.by_reciprocal && b.uniform && (of_first = reciprocal(*b.data))) {
    first = Arithmetic::multiply;
    b.data = &*of_first;
  }
  if (operation.by_reciprocal && inner == 0 && c.uniform && (of_second = reciprocal(*c.data))) {
    second = Arithmetic::multiply;
    c.data = &*of_second;
  }
  const PairLoop loop = pairs().find(first, second, inner == 1).find(a.uniform, b.uniform, c.uniform);
  loop(a.data, b.data, c.data, y, count_);
  return {y, false};
}

Block BlockEvaluator::binary(const LoweredNode& node, const StagePlan::Operation& operation, std::size_t depth) {
  if (operation.inner) return pair(node, operation, depth);
  const auto [a, b] = operands(node, depth);
  if (operation.by_reciprocal && !a.uniform && b.uniform)
    if (const std::optional<float> inverse = reciprocal(*b.data))
      return apply(*find_binary("mul"), a, {&*inverse, true}, reg(depth), count_);
  if (operation.binary != nullptr) return apply(*operation.binary, a, b, reg(depth), count_);
  float* const y = reg(depth);
  const bool uniform = a.uniform && b.uniform;
  for (std::int64_t i = 0; i < (uniform ? 1 : count_); ++i)
    y[i] = static_cast<float>(node.function->real2(static_cast<double>(element(a.data, a.uniform, i)),
                                                   static_cast<double>(element(b.data, b.uniform, i))));
  return {y, uniform};
}

// ---- Reads.

std::optional<std::int64_t> BlockEvaluator::index_at(const LoweredAccess::Indirect& indirect, std::int64_t position) {
  const BlockBuffer& buffer = (*buffers_)[indirect.buffer];
  const std::int64_t at = (values_[indirect.form] + position * along(indirect.form)) * buffer.stride;
  const std::int64_t index = buffer.wide ? static_cast<const std::int64_t*>(buffer.data)[at]
                                         : static_cast<const std::int32_t*>(buffer.data)[at];
  if (index < -indirect.extent || index >= indirect.extent) {
    if (status_)
      status_ = bad_input("index " + std::to_string(index) + " is outside [" + std::to_string(-indirect.extent) + ", " +
                          std::to_string(indirect.extent) + ")");
    return std::nullopt;
  }
  return (index < 0 ? index + indirect.extent : index) - indirect.offset;
}

BlockEvaluator::Interval BlockEvaluator::guarded(const LoweredAccess& access) const {
  Interval inside{0, count_};
  for (const LoweredAccess::Guard& guard : access.guards) {
    // 0 <= at + coefficient * i < extent
    const std::int64_t at = values_[guard.form], coefficient = along(guard.form);
    if (coefficient == 0) {
      if (at < 0 || at >= guard.extent) return {};
    } else if (coefficient > 0) {
      if (guard.extent <= at) return {};
      if (at < 0) inside.begin = std::max(inside.begin, (-at + coefficient - 1) / coefficient);
      inside.end = std::min(inside.end, (guard.extent - at + coefficient - 1) / coefficient);
    } else {
      if (at < 0) return {};
      if (at >= guard.extent) inside.begin = std::max(inside.begin, (at - guard.extent) / -coefficient + 1);
      inside.end = std::min(inside.end, at / -coefficient + 1);
    }
  }
  return inside.begin < inside.end ? inside : Interval{};
}

bool BlockEvaluator::indices_leave(const LoweredAccess& access, std::int64_t position) {
  return std::any_of(access.indirect.begin(), access.indirect.end(), [&](const LoweredAccess::Indirect& indirect) {
    if (!indirect.may_leave()) return false;
    // One that is an error is found where the element is loaded.
    const std::optional<std::int64_t> at = index_at(indirect, position);
    return at && (*at < 0 || *at >= indirect.size);
  });
}

BlockEvaluator::Intervals BlockEvaluator::inside(const LoweredAccess& access) {
  const Interval whole = guarded(access);
  if (whole.begin == whole.end) return {};
  const bool leaves = std::any_of(access.indirect.begin(), access.indirect.end(),
                                  [](const LoweredAccess::Indirect& indirect) { return indirect.may_leave(); });
  if (!leaves) return {whole};
  Intervals parts;
  for (std::int64_t i = whole.begin; i < whole.end; ++i) {
    if (indices_leave(access, i)) continue;
    if (!parts.empty() && parts.back().end == i)
      parts.back().end = i + 1;
    else
      parts.push_back({i, i + 1});
  }
  return parts;
}

template <class Body>
void BlockEvaluator::within(Interval part, const Body& body) {
  const std::int64_t count = count_;
  if (along_) step(*along_, part.begin);
  begin_ += part.begin;
  count_ = part.end - part.begin;
  body();
  count_ = count;
  begin_ -= part.begin;
  if (along_) step(*along_, -part.begin);
}

void BlockEvaluator::copy_of(std::uint32_t id, Interval part, float* elements, std::size_t depth) {
  if (part.begin >= part.end) return;
  within(part, [&] { store(value(id, depth), count_, elements + part.begin); });
}

Block BlockEvaluator::read(const LoweredNode& node, std::size_t depth) {
  const LoweredAccess& access = plan_->stage().accesses[node.access];
  if (node.operands.empty()) return load(access, {0, count_}, depth);
  const Intervals parts = inside(access);
  if (parts.empty()) return value(node.operands[0], depth);
  if (parts[0].begin == 0 && parts[0].end == count_) return load(access, parts[0], depth);
  float* const y = reg(depth);
  std::int64_t done = 0;
  for (const Interval part : parts) {
    copy_of(node.operands[0], {done, part.begin}, y, depth + 1);
    store(load(access, part, depth + 1), part.end - part.begin, y + part.begin);
    done = part.end;
  }
  copy_of(node.operands[0], {done, count_}, y, depth + 1);
  return {y, false};
}

Block BlockEvaluator::load(const LoweredAccess& access, Interval part, std::size_t depth) {
  const BlockBuffer& buffer = (*buffers_)[access.buffer];
  const std::int64_t along_run = along(access.offset), stride = along_run * buffer.stride;
  const float* const from =
      static_cast<const float*>(buffer.data) + (values_[access.offset] + part.begin * along_run) * buffer.stride;
  const std::int64_t count = part.end - part.begin;
  float* const y = reg(depth);
  if (access.indirect.empty()) {
    if (stride == 0) return {from, true};
    if (stride == 1) return {from, false};
    for (std::int64_t i = 0; i < count; ++i) y[i] = from[i * stride];
    return {y, false};
  }
  const bool uniform =
      stride == 0 && std::all_of(access.indirect.begin(), access.indirect.end(),
                                 [&](const LoweredAccess::Indirect& index) { return along(index.form) == 0; });
  for (std::int64_t i = 0; i < (uniform ? 1 : count); ++i) {
    std::optional<std::int64_t> offset = i * stride;
    for (const LoweredAccess::Indirect& indirect : access.indirect) {
      const std::optional<std::int64_t> at = index_at(indirect, part.begin + i);
      if (offset && at)
        *offset += *at * indirect.stride * buffer.stride;
      else
        offset.reset();
    }
    y[i] = offset ? from[*offset] : 0;
  }
  return {y, uniform};
}

Block BlockEvaluator::valid(const LoweredAccess& access, std::size_t depth) {
  const Intervals parts = inside(access);
  if (parts.empty()) return number(depth, 0);
  if (parts[0].begin == 0 && parts[0].end == count_) return number(depth, 1);
  float* const y = reg(depth);
  std::fill_n(y, count_, 0.0F);
  for (const Interval part : parts) std::fill(y + part.begin, y + part.end, 1.0F);
  return {y, false};
}

// ---- Conditions and names.

bool BlockEvaluator::test(std::uint32_t id, std::int64_t position) const {
  const LoweredNode& node = plan_->stage().nodes[id];
  if (node.kind == Kind::test) {
    const std::int64_t form = values_[node.access] + position * along(node.access);
    switch (node.comparison) {
      case LoweredNode::Comparison::equal:
        return form == 0;
      case LoweredNode::Comparison::not_equal:
        return form != 0;
      case LoweredNode::Comparison::less:
        return form < 0;
      case LoweredNode::Comparison::less_equal:
        return form <= 0;
    }
  }
  const auto holds = [&](std::uint32_t operand) { return test(operand, position); };
  if (node.kind == Kind::all_of) return std::all_of(node.operands.begin(), node.operands.end(), holds);
  const bool any = std::any_of(node.operands.begin(), node.operands.end(), holds);
  return node.kind == Kind::any_of ? any : !any;
}

std::int64_t BlockEvaluator::same_until(std::uint32_t id, std::int64_t position) const {
  const LoweredNode& node = plan_->stage().nodes[id];
  if (node.kind != Kind::test) {
    std::int64_t end = count_;
    for (const std::uint32_t operand : node.operands) end = std::min(end, same_until(operand, position));
    return end;
  }
  const std::int64_t slope = along(node.access), form = values_[node.access] + position * slope;
  if (slope == 0) return count_;
  // As a form that grows: of `rising`, whether it is below 0 changes where it is 0 or more.
  const std::int64_t step = slope < 0 ? -slope : slope, rising = slope < 0 ? -form : form;
  std::int64_t steps = count_;
  switch (node.comparison) {
    case LoweredNode::Comparison::equal:
    case LoweredNode::Comparison::not_equal:
      if (form == 0)
        steps = 1;
      else if (rising < 0 && rising % step == 0)
        steps = -rising / step;
      break;
    case LoweredNode::Comparison::less:
    case LoweredNode::Comparison::less_equal: {
      // The first value of the rising form that is on the other side: 0 where 0 is with what is positive, else 1.
      const bool zero_is_above = (node.comparison == LoweredNode::Comparison::less) == (slope > 0);
      const std::int64_t least = zero_is_above ? 0 : 1;
      if (rising < least) steps = (least - rising + step - 1) / step;
      break;
    }
  }
  return std::min(count_, position + steps);
}

Block BlockEvaluator::conditional(const LoweredNode& node, std::size_t depth) {
  const std::uint32_t condition = node.operands[0];
  const auto branch = [&](std::int64_t position) { return node.operands[test(condition, position) ? 1 : 2]; };
  std::uint32_t taken = branch(0);
  Interval part{0, 0};
  // Where the branch taken may end, by the borders of what is tested.
  const auto extend = [&] {
    do part.end = same_until(condition, part.end);
    while (part.end < count_ && branch(part.end) == taken);
  };
  extend();
  if (part.end == count_) return value(taken, depth);
  float* const y = reg(depth);
  for (;;) {
    copy_of(taken, part, y, depth + 1);
    if (part.end == count_) return {y, false};
    part.begin = part.end;
    taken = branch(part.begin);
    extend();
  }
}

void BlockEvaluator::bind(const LoweredNode& node) {
  Slot& slot = slots_[node.slot];
  slot.block = value(node.operands[0], plan_->slot_registers_[node.slot]);
  slot.begin = begin_;
}

// ---- Reductions.

template <class Body>
void BlockEvaluator::for_each(std::span<const std::uint32_t> variables, std::optional<std::uint32_t> left_out,
                              const Body& body) {
  if (variables.empty()) return body();
  if (variables[0] == left_out) return for_each(variables.subspan(1), left_out, body);
  const std::int64_t extent = plan_->stage().extents[variables[0]];
  for (std::int64_t i = 0; i < extent; ++i) {
    for_each(variables.subspan(1), left_out, body);
    step(variables[0], 1);
  }
  step(variables[0], -extent);
}

Block BlockEvaluator::reduce_elements(const LoweredNode& node, std::size_t depth) {
  float* const totals = reg(depth);
  float* const some = reg(depth + 1);
  const auto start = static_cast<float>(neutral(node.reduction));
  std::fill_n(totals, count_, start);
  if (node.reduction != Fold::sum) {
    for_each(node.loops, std::nullopt, [&] { accumulate(node, totals, depth + 2); });
    return {totals, !along_};
  }
  std::fill_n(some, count_, 0.0F);
  int sums = 0;
  for_each(node.loops, std::nullopt, [&] {
    accumulate(node, some, depth + 2);
    if (++sums < sums_at_once) return;
    loops().accumulate(some, totals, count_);
    std::fill_n(some, count_, 0.0F);
    sums = 0;
  });
  loops().accumulate(some, totals, count_);
  return {totals, !along_};
}

void BlockEvaluator::accumulate(const LoweredNode& node, float* totals, std::size_t depth) {
  const LoweredNode& body = plan_->stage().nodes[node.operands[0]];
  if (node.leave_out) {
    const LoweredAccess& access = plan_->stage().accesses[body.access];
    for (const Interval part : inside(access))
      fold_into(node.reduction, totals + part.begin, load(access, part, depth), part.end - part.begin);
    return;
  }
  if (!node.factors.empty() && node.factors.size() <= 2) return accumulate_factors(node, totals, depth);
  if (node.reduction == Fold::sum)
    if (const auto both = factors(node.operands[0], depth))
      return add_products(totals, both->first, both->second, count_);
  fold_into(node.reduction, totals, value(node.operands[0], depth), count_);
}

std::optional<std::pair<Block, Block>> BlockEvaluator::factors(std::uint32_t id, std::size_t depth) {
  const LoweredNode* node = &plan_->stage().nodes[id];
  std::uint32_t product = id;
  for (; node->kind == Kind::bind; node = &plan_->stage().nodes[product]) product = node->operands[1];
  const bool square = plan_->operations_[product].square;
  if (node->kind != Kind::multiply && !square) return std::nullopt;
  for (; id != product; id = plan_->stage().nodes[id].operands[1]) bind(plan_->stage().nodes[id]);
  if (!square) return operands(*node, depth);
  const Block x = value(node->operands[0], depth);
  return std::pair(x, x);
}

void BlockEvaluator::accumulate_factors(const LoweredNode& node, float* totals, std::size_t depth) {
  const LoweredAccess& first = plan_->stage().accesses[node.factors.front()];
  const LoweredAccess& last = plan_->stage().accesses[node.factors.back()];
  const Interval one = guarded(first), other = guarded(last);
  const Interval both{std::max(one.begin, other.begin), std::min(one.end, other.end)};
  if (both.begin >= both.end) return;
  const Block a = load(first, both, depth);
  const std::int64_t count = both.end - both.begin;
  if (node.factors.size() == 1) return fold_into(node.reduction, totals + both.begin, a, count);
  add_products(totals + both.begin, a, load(last, both, depth + 1), count);
}

Block BlockEvaluator::reduce_block(const LoweredNode& node, std::uint32_t variable, std::size_t depth) {
  double total = neutral(node.reduction);
  const std::int64_t extent = plan_->stage().extents[variable];
  for_each(node.loops, variable, [&] {
    along_ = variable;
    std::int64_t done = 0;
    for (; done < extent; done += count_) {
      count_ = std::min(block_elements, extent - done);
      total = combine(node.reduction, total, of_block(node, depth));
      step(variable, count_);
    }
    step(variable, -done);
    along_.reset();
    count_ = 1;
  });
  return number(depth, static_cast<float>(total));
}

double BlockEvaluator::of_block(const LoweredNode& node, std::size_t depth) {
  const LoweredNode& body = plan_->stage().nodes[node.operands[0]];
  if (node.leave_out) {
    const LoweredAccess& access = plan_->stage().accesses[body.access];
    double total = neutral(node.reduction);
    for (const Interval part : inside(access))
      total =
          combine(node.reduction, total, fold_block(node.reduction, load(access, part, depth), part.end - part.begin));
    return total;
  }
  const auto both = node.reduction == Fold::sum ? factors(node.operands[0], depth) : std::nullopt;
  if (!both) return fold_block(node.reduction, value(node.operands[0], depth), count_);
  return sum_of_products(both->first, both->second, count_);
}

}  // namespace taso::cpu
