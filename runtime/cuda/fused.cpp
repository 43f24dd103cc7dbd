// Programs for requests of several operators: each value is either an access to an input, as long as elements only
// move, or a register. Code is written with a register for every value first; few are then used over and over.
#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "runtime/access.h"
#include "runtime/cuda/program.h"
#include "runtime/strides.h"

namespace taso::cuda {
namespace {

/// Tensors up to so many elements are read in any order: a launch takes longer than what is lost.
constexpr std::int64_t few_elements = std::int64_t{1} << 16;

/// What a part makes.
struct FusedValue {
  std::optional<Access> access;  ///< Of input `input`, if elements have only been moved.
  std::size_t input = 0;
  int computed = -1;  ///< Else the number of the value in the code.
};

/// An instruction on values, numbered in order of their making; or the function of rows.
struct ValueInstruction {
  Instruction instruction;
  bool is_row_function = false;
  int to = -1, a = -1, b = -1;
};

bool is_float_operand(const Operand& operand, ElementType element) {
  return operand.type.known && operand.type.element == element && operand.type.elements() > 0 &&
         block_of(operand.layout) == 0 && fits(operand.layout, operand.type.shape);
}

bool is_row_norm(const KernelRequest& request) { return request.op == "layer_norm" || request.op == "rms_norm"; }

RowFunction row_function_of(const KernelRequest& request) {
  if (request.op == "softmax") return RowFunction::softmax;
  return request.op == "layer_norm" ? RowFunction::normalize : RowFunction::divide_by_root;
}

class ChainPlanner {
 public:
  explicit ChainPlanner(const KernelRequest& request) : request_(request), fused_(*request.fused) {}

  PlannedProgram plan() {
    const bool planned =
        check_types() && find_rows() && evaluate_parts() && store_results() && assign_registers() && place_operands();
    if (!planned) return {std::nullopt, std::move(reason_)};
    return {Program{name(), {step()}}, ""};
  }

 private:
  bool decline(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool check_types() {
    element_ = request_.outputs[0].type.element;
    if (element_ != ElementType::f32 && element_ != ElementType::f16 && element_ != ElementType::bf16)
      return decline("only f32, f16 or bf16");
    for (const std::vector<Operand>* operands : {&request_.inputs, &request_.outputs})
      for (const Operand& operand : *operands)
        if (!is_float_operand(operand, element_)) return decline("an operand that is no plain tensor of one type");
    return true;
  }

  /// The function of rows, if there is one, and the index space: the shape of what is computed.
  bool find_rows() {
    std::vector<const Shape*> shapes;
    for (std::size_t i = 0; i < fused_.parts.size(); ++i) {
      const KernelRequest& part = fused_.parts[i].request;
      if (only_moves(part)) continue;
      const bool rows = part.op == "softmax" || is_row_norm(part);
      if (rows && row_part_) return decline("two functions of rows");
      if (rows) row_part_ = i;
      if (part.outputs.size() != 1) return decline("no kernel for " + part.op + " with others");
      shapes.push_back(&part.outputs[0].type.shape);
    }
    if (shapes.empty()) return decline("nothing is computed");
    shape_ = *shapes[0];
    for (const Shape* shape : shapes)
      if (*shape != shape_) return decline("results of different shapes");
    if (!row_part_) return true;
    const KernelRequest& rows = fused_.parts[*row_part_].request;
    const std::int64_t axis = rows.op == "softmax" ? rows.attributes.integer("axis") : -1;
    row_axis_ = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape_.size()) : axis);
    return true;
  }

  /// First what the rows' function reads, then that function, then the others.
  bool evaluate_parts() {
    values_.resize(fused_.parts.size());
    std::set<std::size_t> before;
    if (row_part_) {
      before.insert(*row_part_);
      for (std::size_t i = *row_part_ + 1; i-- > 0;)
        if (before.contains(i))
          for (const FusedPart::Source& source : fused_.parts[i].sources)
            if (!source.is_input) before.insert(source.index);
    }
    for (const bool first : {true, false})
      for (std::size_t i = 0; i < fused_.parts.size(); ++i)
        if (before.contains(i) == first && !evaluate_part(i)) return false;
    return true;
  }

  bool evaluate_part(std::size_t number) {
    const FusedPart& part = fused_.parts[number];
    std::vector<FusedValue> read;
    for (const FusedPart::Source& source : part.sources) {
      if (source.is_input)
        read.push_back({access_of(request_.inputs[source.index]), source.index, -1});
      else
        read.push_back(values_[source.index][source.port]);
    }
    if (only_moves(part.request)) return move(number, read[0]);
    if (number == row_part_) return compute_rows(number, read);
    return compute(number, read);
  }

  bool move(std::size_t number, const FusedValue& from) {
    const KernelRequest& request = fused_.parts[number].request;
    if (!from.access) return decline("elements move after they have been computed");
    for (std::size_t port = 0; port < request.outputs.size(); ++port) {
      auto access = access_through(request, port, *from.access);
      values_[number].push_back({std::move(access), from.input, -1});
    }
    return true;
  }

  bool compute(std::size_t number, const std::vector<FusedValue>& read) {
    const KernelRequest& part = fused_.parts[number].request;
    ValueInstruction next;
    if (read.size() == 2) {
      const auto function = binary_named(part.op == "smul" ? "mul" : part.op);
      if (!function) return decline("no function of two numbers is named " + part.op);
      next.instruction.kind = Instruction::Kind::binary;
      next.instruction.function = static_cast<std::uint8_t>(*function);
      next.b = value_of(read[1]);
      if (next.b < 0) return false;
    } else {
      const bool applies = part.op == "apply";
      const auto function = function_named(applies ? part.attributes.symbol("act") : part.op);
      if (read.size() != 1 || !function || (applies && (*function == Function::clip || *function == Function::neg)))
        return decline("no function of one number is named " + part.op);
      next.instruction.kind = Instruction::Kind::unary;
      next.instruction.function = static_cast<std::uint8_t>(*function);
      if (*function == Function::clip) {
        next.instruction.p = static_cast<float>(part.attributes.real("min"));
        next.instruction.q = static_cast<float>(part.attributes.real("max"));
      }
    }
    next.a = value_of(read[0]);
    if (next.a < 0) return false;
    values_[number].push_back({std::nullopt, 0, add(next)});
    return true;
  }

  bool compute_rows(std::size_t number, const std::vector<FusedValue>& read) {
    const KernelRequest& part = fused_.parts[number].request;
    ValueInstruction rows;
    rows.is_row_function = true;
    rows.a = value_of(read[0]);
    if (rows.a < 0) return false;
    int value = add(rows);
    for (std::size_t i = 1; i < read.size(); ++i) {  // scale and bias
      ValueInstruction next;
      next.instruction.kind = Instruction::Kind::binary;
      next.instruction.function = static_cast<std::uint8_t>(i == 1 ? Binary::mul : Binary::add);
      next.a = value;
      next.b = value_of(read[i]);
      if (next.b < 0) return false;
      value = add(next);
    }
    if (is_row_norm(part)) epsilon_ = static_cast<float>(part.attributes.real("epsilon"));
    values_[number].push_back({std::nullopt, 0, value});
    return true;
  }

  int add(ValueInstruction next) {
    next.to = made_++;
    code_.push_back(next);
    return next.to;
  }

  /// The number of a value, which is loaded if it has not been; negative if that cannot be.
  int value_of(const FusedValue& value) {
    if (value.computed >= 0) return value.computed;
    if (!value.access || !is_broadcastable(value.access->shape, shape_)) {
      reason_ = "an operand that no strides describe";
      return -1;
    }
    const Loaded loaded{value.input, value.access->offset,
                        broadcast_strides(value.access->shape, value.access->strides, shape_)};
    const auto known = std::find(sources_.begin(), sources_.end(), loaded);
    const auto source = static_cast<std::size_t>(known - sources_.begin());
    if (known != sources_.end()) return loads_[source];
    if (sources_.size() == max_sources) {
      reason_ = "more than " + std::to_string(max_sources) + " operands";
      return -1;
    }
    sources_.push_back(loaded);
    ValueInstruction load;
    load.instruction.a = static_cast<std::uint8_t>(source);
    loads_.push_back(add(load));
    return loads_.back();
  }

  bool store_results() {
    if (fused_.results.size() > max_targets) return decline("more than " + std::to_string(max_targets) + " results");
    for (std::size_t i = 0; i < fused_.results.size(); ++i) {
      const FusedPart::Source& result = fused_.results[i];
      const FusedValue& value = values_[result.index][result.port];
      if (value.computed < 0) return decline("a result that is only moved");
      ValueInstruction store;
      store.instruction.kind = Instruction::Kind::store;
      store.instruction.to = static_cast<std::uint8_t>(i);
      store.a = value.computed;
      code_.push_back(store);
      targets_.push_back(access_of(request_.outputs[i]).strides);
    }
    return true;
  }

  /// Registers are free again after the last instruction that reads them.
  bool assign_registers() {
    std::vector<std::size_t> last(static_cast<std::size_t>(made_), 0);
    for (std::size_t i = 0; i < code_.size(); ++i)
      for (const int read : {code_[i].a, code_[i].b})
        if (read >= 0) last[static_cast<std::size_t>(read)] = i;
    std::vector<int> held(max_registers, -1), place(static_cast<std::size_t>(made_), -1);
    for (std::size_t i = 0; i < code_.size(); ++i) {
      const ValueInstruction& one = code_[i];
      Instruction instruction = one.instruction;
      if (one.a >= 0) instruction.a = static_cast<std::uint8_t>(place[static_cast<std::size_t>(one.a)]);
      if (one.b >= 0) instruction.b = static_cast<std::uint8_t>(place[static_cast<std::size_t>(one.b)]);
      for (int& value : held)
        if (value >= 0 && last[static_cast<std::size_t>(value)] <= i) value = -1;
      if (one.to >= 0) {
        const auto free = std::find(held.begin(), held.end(), -1);
        if (free == held.end()) return decline("more than " + std::to_string(max_registers) + " values at a time");
        *free = one.to;
        instruction.to = static_cast<std::uint8_t>(free - held.begin());
        place[static_cast<std::size_t>(one.to)] = instruction.to;
      }
      if (one.is_row_function) {
        row_.before = element_code_.count;
        row_.value = instruction.a;
        row_.result = instruction.to;
        continue;
      }
      if (element_code_.count == max_instructions)
        return decline("more than " + std::to_string(max_instructions) + " instructions");
      element_code_.instructions[element_code_.count++] = instruction;
    }
    return true;
  }

  /// Axes of the index space, without that of the rows, in the order of the first result; those that lie as one in all
  /// operands are merged.
  bool place_operands() {
    std::vector<std::size_t> order(shape_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return targets_[0][a] > targets_[0][b]; });
    std::vector<std::pair<int, const std::vector<std::int64_t>*>> operands;
    for (std::size_t i = 0; i < sources_.size(); ++i) operands.emplace_back(static_cast<int>(i), &sources_[i].strides);
    for (std::size_t i = 0; i < targets_.size(); ++i)
      operands.emplace_back(max_sources + static_cast<int>(i), &targets_[i]);
    std::optional<std::size_t> fastest;
    for (const std::size_t axis : order) {
      if (shape_[axis] == 1) continue;
      fastest = axis;
      if (axis == row_axis_) {
        for (const auto& [operand, strides] : operands) element_code_.along[operand] = (*strides)[axis];
      } else if (!add_axis(axis, operands)) {
        return decline("more than " + std::to_string(max_axes) + " axes");
      }
    }
    box_.finish();
    if (fastest && volume(shape_) > few_elements)
      for (const auto& [operand, strides] : operands)
        if (const std::int64_t stride = (*strides)[*fastest]; stride < 0 || stride > 2)
          return decline("an operand whose elements are far apart where those of the result are neighbours");
    return true;
  }

  bool add_axis(std::size_t axis, const std::vector<std::pair<int, const std::vector<std::int64_t>*>>& operands) {
    const std::int64_t extent = shape_[axis];
    const int last = box_.rank - 1;
    const bool merges = last >= 0 && std::all_of(operands.begin(), operands.end(), [&](const auto& operand) {
                          return element_code_.strides[operand.first][last] == (*operand.second)[axis] * extent;
                        });
    if (!merges && box_.rank == max_axes) return false;
    if (!merges) box_.extents[box_.rank++] = 1;
    box_.extents[box_.rank - 1] *= extent;
    for (const auto& [operand, strides] : operands) element_code_.strides[operand][box_.rank - 1] = (*strides)[axis];
    return true;
  }

  Step step() {
    ChainOperands operands;
    const auto width = static_cast<std::int64_t>(size_of(element_));
    for (const Loaded& source : sources_) operands.sources.push_back(input(source.input, source.offset * width));
    for (std::size_t i = 0; i < targets_.size(); ++i) operands.targets.push_back(output(i));
    if (!row_part_) return ChainStep{element_, std::move(operands), box_, element_code_};
    RowChainStep step;
    step.element = element_;
    step.operands = std::move(operands);
    step.shape.rows = box_;
    step.shape.code = element_code_;
    step.shape.count = shape_[row_axis_];
    step.shape.before = row_.before;
    step.shape.value = row_.value;
    step.shape.result = row_.result;
    step.shape.function = row_function_of(fused_.parts[*row_part_].request);
    step.shape.epsilon = epsilon_;
    // As for the functions of rows alone: threads side by side write neighbouring elements.
    const bool adjoin = box_.rank > 0 && element_code_.strides[max_sources][box_.rank - 1] == 1;
    step.team = adjoin && element_code_.along[max_sources] != 1 ? TeamShape::columns
                : step.shape.count > 1024                       ? TeamShape::block
                                                                : TeamShape::warp;
    return step;
  }

  [[nodiscard]] std::string name() const {
    constexpr std::size_t most_named = 4;
    std::string text = "own fused:";
    for (std::size_t i = 0; i < std::min(fused_.parts.size(), most_named); ++i)
      text += " " + fused_.parts[i].request.op;
    if (fused_.parts.size() > most_named) text += " and " + std::to_string(fused_.parts.size() - most_named) + " more";
    return text;
  }

  /// An operand as it is read.
  struct Loaded {
    std::size_t input = 0;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;  ///< Along the axes of the index space.
    bool operator==(const Loaded&) const = default;
  };

  const KernelRequest& request_;
  const Fused& fused_;
  std::string reason_;
  ElementType element_ = ElementType::f32;
  Shape shape_;
  std::optional<std::size_t> row_part_;
  std::size_t row_axis_ = ~std::size_t{0};
  float epsilon_ = 0;
  std::vector<std::vector<FusedValue>> values_;  ///< Per part and port.
  std::vector<ValueInstruction> code_;
  int made_ = 0;
  std::vector<Loaded> sources_;
  std::vector<int> loads_;  ///< Per source: the value that it was loaded as.
  std::vector<std::vector<std::int64_t>> targets_;
  ElementCode element_code_;
  struct {
    std::int32_t before = 0, value = 0, result = 0;
  } row_;
  Box box_;
};

/// Operators that only move elements, the last of them perhaps a concatenation: boxes that are copied.
class CopyPlanner {
 public:
  explicit CopyPlanner(const KernelRequest& request) : request_(request), fused_(*request.fused) {}

  PlannedProgram plan() {
    const ElementType element = request_.outputs[0].type.element;
    for (const std::vector<Operand>* operands : {&request_.inputs, &request_.outputs})
      for (const Operand& operand : *operands)
        if (!operand.type.known || operand.type.element != element || operand.type.elements() == 0 ||
            block_of(operand.layout) != 0 || !fits(operand.layout, operand.type.shape))
          return decline("an operand that is no plain tensor of one type");
    if (size_of(element) == 0) return decline("elements have no size");
    copies_.width = size_of(element);
    for (const FusedPart& part : fused_.parts)
      if (only_moves(part.request))
        move(part);
      else
        moved_.emplace_back(part.request.outputs.size());
    for (std::size_t i = 0; i < fused_.results.size(); ++i)
      if (!copy_result(i)) return decline("elements that no strides describe");
    if (copies_.pieces.size() > max_pieces) return decline("more than " + std::to_string(max_pieces) + " pieces");
    if (copies_.pieces.size() > 1) {
      for (const CopiesStep::Piece& piece : copies_.pieces)
        if (piece.walk.elements > few_elements && piece.walk.strides[1][piece.walk.rank - 1] != 1)
          return decline("elements that are copied by tiles");
      return {Program{"own copy", {copies_}}, ""};
    }
    const CopiesStep::Piece& one = copies_.pieces[0];
    return {Program{"own copy", {CopyStep{copies_.width, one.from, one.to, one.walk}}}, ""};
  }

 private:
  static PlannedProgram decline(std::string reason) { return {std::nullopt, std::move(reason)}; }

  [[nodiscard]] FusedValue value_of(const FusedPart::Source& source) const {
    if (source.is_input) return {access_of(request_.inputs[source.index]), source.index, -1};
    return moved_[source.index][source.port];
  }

  void move(const FusedPart& part) {
    const FusedValue from = value_of(part.sources[0]);
    std::vector<FusedValue>& made = moved_.emplace_back();
    for (std::size_t port = 0; port < part.request.outputs.size(); ++port)
      made.push_back({from.access ? access_through(part.request, port, *from.access) : std::nullopt, from.input, -1});
  }

  bool copy_result(std::size_t number) {
    const FusedPart::Source& result = fused_.results[number];
    const FusedPart& part = fused_.parts[result.index];
    const std::vector<std::int64_t> to = access_of(request_.outputs[number]).strides;
    if (part.request.op != "concat") return copy(value_of(result), to, number, 0);
    const std::int64_t attribute = part.request.attributes.integer("axis");
    const auto axis =
        static_cast<std::size_t>(attribute < 0 ? attribute + static_cast<std::int64_t>(to.size()) : attribute);
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < part.sources.size(); ++k) {
      if (!copy(value_of(part.sources[k]), to, number, begin * to[axis])) return false;
      begin += part.request.inputs[k].type.shape[axis];
    }
    return true;
  }

  bool copy(const FusedValue& from, const std::vector<std::int64_t>& to, std::size_t number, std::int64_t offset) {
    if (!from.access) return false;
    const auto walk = walk_of<2>(from.access->shape, {to, from.access->strides});
    if (!walk) return false;
    const auto width = static_cast<std::int64_t>(copies_.width);
    copies_.pieces.push_back({input(from.input, from.access->offset * width), output(number, offset * width), *walk});
    return true;
  }

  const KernelRequest& request_;
  const Fused& fused_;
  std::vector<std::vector<FusedValue>> moved_;  ///< Per part and port.
  CopiesStep copies_;
};

/// Whether all parts move elements, or concatenate what others have moved.
bool only_copies(const Fused& fused) {
  return std::all_of(fused.parts.begin(), fused.parts.end(),
                     [](const FusedPart& part) { return only_moves(part.request) || part.request.op == "concat"; });
}

}  // namespace

PlannedProgram plan_fused(const KernelRequest& request) {
  if (!request.fused || request.outputs.empty()) return {std::nullopt, "several operators with results are needed"};
  return only_copies(*request.fused) ? CopyPlanner(request).plan() : ChainPlanner(request).plan();
}

}  // namespace taso::cuda
