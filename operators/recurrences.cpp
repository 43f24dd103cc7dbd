#include "operators/recurrences.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

/// A read of a tensor of a recurrence in the equation of one: `reader` and `read` count them.
struct StepRead {
  const Expression* read_at = nullptr;
  std::size_t reader = 0, read = 0;
  bool valid = false;  ///< In valid(...).
};

template <class Visit>
void for_each_read(const Expression& e, const Visit& visit, bool valid = false) {
  if (e.kind == Kind::read) visit(e, valid);
  for (const Expression& operand : e.operands) for_each_read(operand, visit, e.kind == Kind::valid);
  if (e.fallback != nullptr) for_each_read(*e.fallback, visit);
}

/// The entry of the axis list over which an index variable of the left side ranges.
std::optional<std::size_t> index_of(const Expression& name, const Equation& equation) {
  if (name.kind != Kind::name) return std::nullopt;
  for (std::size_t i = 0; i < equation.coordinates.size(); ++i)
    if (equation.coordinates[i].kind == Kind::name && !equation.coordinates[i].rest &&
        equation.coordinates[i].name == name.name)
      return i;
  return std::nullopt;
}

/// Of a coordinate of a read that is an index variable of the equation plus a number: the number.
std::optional<std::int64_t> step_of(const StepRead& read, std::size_t entry, const Equation& equation) {
  const Expression& coordinate = read.read_at->operands[entry];
  if (coordinate.rest) return std::nullopt;
  if (index_of(coordinate, equation)) return 0;
  if ((coordinate.kind == Kind::subtract || coordinate.kind == Kind::add) &&
      index_of(coordinate.operands[0], equation) && coordinate.operands[1].kind == Kind::integer)
    return coordinate.kind == Kind::add ? coordinate.operands[1].integer : -coordinate.operands[1].integer;
  return std::nullopt;
}

std::string variable_at(const Expression& coordinate) {
  return coordinate.kind == Kind::name ? coordinate.name : coordinate.operands.at(0).name;
}

class StepOrder {
 public:
  StepOrder(OperatorDefinition& op, const Recurrence& steps, std::size_t at) : op_(op), steps_(steps), at_(at) {}

  Status run() {
    std::vector<StepRead> reads;
    for (std::size_t member = 0; member < steps_.count; ++member)
      for_each_read(op_.equations[at_ + member].value, [&](const Expression& read, bool valid) {
        for (std::size_t other = 0; other < steps_.count; ++other)
          if (op_.intermediates[steps_.first + other].name == read.name) reads.push_back({&read, member, other, valid});
      });
    const auto first =
        std::find_if(reads.begin(), reads.end(), [](const StepRead& read) { return read.read >= read.reader; });
    TASO_CHECK(first != reads.end(), "a recurrence without a read");
    // The first of the axes that will do.
    std::optional<Error> failure;
    for (std::size_t entry = 0; entry < first->read_at->operands.size() && !first->read_at->flat; ++entry) {
      std::vector<std::optional<std::size_t>> axes(steps_.count);
      axes[first->read] = entry;
      if (!(step_of(*first, entry, op_.equations[at_ + first->reader]) == -1)) continue;
      const Status status = take_steps(reads, axes);
      if (status) return {};
      if (!failure) failure = status.error();
    }
    if (failure) return *failure;
    const IntermediateSpec& read = op_.intermediates[steps_.first + first->read];
    return bad_input("'" + read.name + "' is read where it is not computed yet; a recurrence reads the step before, '" +
                         read.name + "[..., t - 1, ...] or' an initial value, where t is an index variable of '" +
                         op_.intermediates[steps_.first + first->reader].name + "'",
                     first->read_at->where);
  }

 private:
  /// Extends the axes of some tensors of a recurrence to all, and checks what is read.
  Status take_steps(const std::vector<StepRead>& reads, std::vector<std::optional<std::size_t>> axes) {
    auto variable = [&](const StepRead& read, std::size_t entry) {
      const Expression& coordinate = read.read_at->operands[entry];
      return index_of(coordinate.kind == Kind::name ? coordinate : coordinate.operands.at(0),
                      op_.equations[at_ + read.reader]);
    };
    for (bool progress = true; progress;) {
      progress = false;
      for (const StepRead& read : reads) {
        if (read.read_at->flat) continue;
        const Equation& equation = op_.equations[at_ + read.reader];
        for (std::size_t entry = 0; entry < read.read_at->operands.size(); ++entry) {
          if ((axes[read.read] && axes[read.read] != entry) || !step_of(read, entry, equation)) continue;
          const std::optional<std::size_t> own = variable(read, entry);
          if (axes[read.reader] && axes[read.reader] != own) continue;
          if (!axes[read.read] && !axes[read.reader]) continue;
          progress = progress || !axes[read.read] || !axes[read.reader];
          axes[read.read] = entry;
          axes[read.reader] = own;
          break;
        }
      }
    }
    const IntermediateSpec& first = op_.intermediates[steps_.first];
    for (std::size_t member = 0; member < steps_.count; ++member) {
      IntermediateSpec& spec = op_.intermediates[steps_.first + member];
      if (!axes[member])
        return bad_input("'" + spec.name +
                             "' stands among tensors that are computed step by step, and is not; define "
                             "it before '" +
                             first.name + "'",
                         spec.where);
    }
    for (const StepRead& read : reads) TASO_RETURN_IF_ERROR(check_step(read, axes));
    for (std::size_t member = 0; member < steps_.count; ++member) {
      const IntermediateSpec& spec = op_.intermediates[steps_.first + member];
      const std::string own = to_text(spec.axes[*axes[member]]), others = to_text(first.axes[*axes[0]]);
      if (own != others)
        return bad_input("tensors that are computed step by step have one number of steps: '" + first.name + "' has " +
                             others + ", and '" + spec.name + "' has " + own,
                         spec.where);
    }
    for (std::size_t member = 0; member < steps_.count; ++member) {
      IntermediateSpec& spec = op_.intermediates[steps_.first + member];
      spec.recurrence = Recurrence{steps_.first, steps_.count, *axes[member]};
      for (const StepRead& read : reads)
        if (read.read == member && step_of(read, *axes[member], op_.equations[at_ + read.reader]) == -1)
          spec.recurrence->carried = true;
    }
    return {};
  }

  /// That a read is of the same step and of what is computed by then, or of the step before.
  [[nodiscard]] Status check_step(const StepRead& read, const std::vector<std::optional<std::size_t>>& axes) const {
    const Expression& e = *read.read_at;
    const std::string quoted = "'" + e.name + "'";
    if (read.valid || e.flat)
      return bad_input(quoted +
                           " is computed step by step, and is read here as 'tensor[...]' or 'tensor[...] or' an "
                           "initial value only",
                       e.where);
    const Equation& equation = op_.equations[at_ + read.reader];
    const std::optional<std::size_t> axis = axes[read.read], own = axes[read.reader];
    const std::string variable = own ? equation.coordinates[*own].name : "t";
    const std::optional<std::int64_t> step = axis ? step_of(read, *axis, equation) : std::nullopt;
    const bool along = step && own && variable_at(e.operands[*axis]) == variable;
    if (!along || (*step != 0 && *step != -1))
      return bad_input("a recurrence reads the same step and the one before, " + variable + " and " + variable +
                           " - 1, and " + quoted + " is read at " + (axis ? to_text(e.operands[*axis]) : "neither"),
                       axis ? e.operands[*axis].where : e.where);
    const bool along_another = [&] {
      for (std::size_t entry = 0; entry < e.operands.size(); ++entry)
        if (entry != *axis && step_of(read, entry, equation) == -1) return true;
      return false;
    }();
    if (*step == 0 && read.read == read.reader && along_another)
      return bad_input("a recurrence goes along one axis, here that of " + variable + ", and " + quoted +
                           " is read at the same step",
                       e.where);
    if (*step == 0 && read.read >= read.reader)
      return bad_input(quoted + " is read at step " + variable + ", where it is not computed yet; read it at " +
                           variable + " - 1" +
                           (read.read == read.reader
                                ? ""
                                : ", or define it before '" + op_.intermediates[steps_.first + read.reader].name + "'"),
                       e.where);
    if (*step == -1 && e.fallback == nullptr)
      return bad_input(quoted + " at " + to_text(e.operands[*axis]) + " needs an initial value for the first step: '" +
                           to_text(e) + " or ...'",
                       e.where);
    return {};
  }

  OperatorDefinition& op_;
  const Recurrence& steps_;
  std::size_t at_;
};

}  // namespace

Expected<Recurrence> find_recurrence(const OperatorDefinition& op, std::size_t first, std::size_t at) {
  Recurrence result{.first = first, .count = 0, .axis = 0};
  std::size_t begin = at;
  for (std::size_t member = first; member < first + std::max<std::size_t>(result.count, 1); ++member) {
    const IntermediateSpec& spec = op.intermediates.at(member);
    std::size_t end = begin;
    while (end < op.equations.size() && op.equations[end].target == spec.name) ++end;
    for (std::size_t i = begin; i < end; ++i)
      for_each_read(op.equations[i].value, [&](const Expression& read, bool /*valid*/) {
        for (std::size_t other = member; other < op.intermediates.size(); ++other)
          if (op.intermediates[other].name == read.name) result.count = std::max(result.count, other + 1 - first);
      });
    if (result.count == 0) break;
    if (end == begin)
      return bad_input("'" + spec.name + "' is computed step by step together with '" + op.intermediates[first].name +
                           "': their equations stand together",
                       spec.where);
    if (end != begin + 1)
      return bad_input("'" + spec.name + "' has several equations, and a tensor that is computed step by step has one",
                       op.equations[begin].where);
    begin = end;
  }
  return result;
}

Status order_steps(OperatorDefinition& op, const Recurrence& steps, std::size_t at) {
  return StepOrder(op, steps, at).run();
}

}  // namespace taso
