#include "rule_io/rule_check.h"

#include <algorithm>
#include <set>

namespace taso::rule_io {
namespace {

// What the value of a parameter must be, or an empty text if it is that.
std::string value_problem(const FileOperator& op, Parameter key, std::int32_t value) {
  auto between = [&](std::int32_t least, std::int32_t most) {
    return value >= least && value <= most ? "" : std::to_string(least) + " to " + std::to_string(most);
  };
  switch (key) {
    case Parameter::op_type:
      return value == op.type ? "" : std::to_string(op.type);
    case Parameter::num_inputs:
      return value == static_cast<std::int64_t>(op.inputs.size()) ? "" : std::to_string(op.inputs.size());
    case Parameter::num_outputs:
      return between(2, 32);
    case Parameter::kernel_h:
    case Parameter::kernel_w:
    case Parameter::stride_h:
    case Parameter::stride_w:
      return between(1, 1 << 20);
    case Parameter::pad:
      return value == 0 || value == 1 ? "" : "0 (SAME) or 1 (VALID)";
    case Parameter::acti:
      return value >= 0 && value <= 3 ? "" : "0 (none), 1 (sigmoid), 2 (relu) or 3 (tanh)";
    case Parameter::numdim:
      return between(1, 8);
    case Parameter::axis: {
      const std::optional<std::int32_t> rank = parameter(op, Parameter::numdim);
      return between(0, rank && *rank >= 1 && *rank <= 8 ? *rank - 1 : 7);
    }
    case Parameter::outshuffle:
      return value == 0 || value == 1 ? "" : "0 or 1";
    case Parameter::group:
    case Parameter::perm:
      return "";
  }
  return "a known parameter";
}

// Kinds, numbers of inputs, parameters and their values, uses.
Status check_side(const FileRule& rule, bool is_source, std::set<std::int32_t>& rule_inputs) {
  const std::vector<FileOperator>& side = is_source ? rule.source : rule.target;
  const auto problem = [&](std::size_t i, const std::string& message) {
    return operator_problem(side[i], is_source, i, message);
  };
  std::vector<std::set<std::int32_t>> used(side.size());
  auto use = [&](const FileTensor& tensor) {
    if (tensor.op >= 0) used[static_cast<std::size_t>(tensor.op)].insert(tensor.output);
  };
  for (std::size_t i = 0; i < side.size(); ++i) {
    const FileOperator& op = side[i];
    const OperatorKind* kind = find_operator(op.type);
    if (kind == nullptr) return problem(i, "this operator has no counterpart in rules");
    if (op.inputs.size() < kind->least_inputs || op.inputs.size() > kind->most_inputs)
      return problem(
          i, "it has " + std::to_string(op.inputs.size()) + " inputs, expected " + std::to_string(kind->least_inputs) +
                 (kind->most_inputs == kind->least_inputs ? "" : " to " + std::to_string(kind->most_inputs)));
    for (const Parameter key : kind->required)
      if (!parameter(op, key)) return problem(i, parameter_name(static_cast<std::int32_t>(key)) + " is missing");
    for (const auto& [key, value] : op.parameters) {
      const auto known = static_cast<Parameter>(key);
      if (std::find(kind->required.begin(), kind->required.end(), known) == kind->required.end() &&
          std::find(kind->allowed.begin(), kind->allowed.end(), known) == kind->allowed.end())
        return problem(i, parameter_name(key) + " is not one of its parameters");
      if (const std::string wrong = value_problem(op, known, value); !wrong.empty())
        return problem(i, parameter_name(key) + " is " + std::to_string(value) + ", expected " + wrong);
    }
    if (type(op) == OperatorType::transpose && !permutation(op))
      return problem(i, "PM_PERM " + std::to_string(given(op, Parameter::perm)) + " is no permutation of " +
                            std::to_string(given(op, Parameter::numdim)) + " axes");
    if (type(op) == OperatorType::enlarge && op.inputs.size() == 1 &&
        (!parameter(op, Parameter::kernel_h) || !parameter(op, Parameter::kernel_w)))
      return problem(i, "neither PM_KERNEL_H and PM_KERNEL_W nor a second kernel say how large it becomes");
    for (const FileTensor& input : op.inputs) {
      use(input);
      if (input.op < 0) {
        if (is_source)
          rule_inputs.insert(input.op);
        else if (!rule_inputs.contains(input.op))
          return problem(i, "it reads input " + std::to_string(input.op) + ", which the source does not have");
        if (input.output != 0) return problem(i, "it reads output " + std::to_string(input.output) + " of an input");
      } else if (static_cast<std::size_t>(input.output) >= output_count(side[static_cast<std::size_t>(input.op)])) {
        return problem(i, "it reads output " + std::to_string(input.output) + " of operator " +
                              std::to_string(input.op) + ", which has fewer");
      }
    }
  }
  for (const FileOutput& output : rule.outputs) {
    const FileTensor& mapped = is_source ? output.source : output.target;
    const auto op = static_cast<std::size_t>(mapped.op);
    if (static_cast<std::size_t>(mapped.output) >= output_count(side[op]))
      return problem(op, "its output " + std::to_string(mapped.output) + " is mapped, but it has fewer");
    use(mapped);
  }
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i].empty()) return problem(i, "nothing reads its result");
  return {};
}

}  // namespace

Status check_rule(const FileRule& rule) {
  std::set<std::int32_t> inputs;
  TASO_RETURN_IF_ERROR(check_side(rule, true, inputs));
  return check_side(rule, false, inputs);
}

Error operator_problem(const FileOperator& op, bool is_source, std::size_t number, const std::string& message) {
  return bad_input(std::string(is_source ? "source" : "target") + " operator " + std::to_string(number) + " (" +
                   operator_name(op.type) + "): " + message);
}

std::optional<std::int32_t> parameter(const FileOperator& op, Parameter key) {
  const auto place = op.parameters.find(static_cast<std::int32_t>(key));
  return place == op.parameters.end() ? std::nullopt : std::optional(place->second);
}

std::int32_t given(const FileOperator& op, Parameter key) { return op.parameters.at(static_cast<std::int32_t>(key)); }

std::size_t output_count(const FileOperator& op) {
  return type(op) == OperatorType::split ? static_cast<std::size_t>(given(op, Parameter::num_outputs)) : 1;
}

// PM_PERM is a number in base PM_NUMDIM whose digits are the permutation, outermost first.
std::optional<std::vector<std::size_t>> permutation(const FileOperator& op) {
  const std::int32_t rank = given(op, Parameter::numdim);
  std::int32_t digits = given(op, Parameter::perm);
  if (rank < 1 || digits < 0) return std::nullopt;
  std::vector<std::size_t> result(static_cast<std::size_t>(rank));
  for (std::size_t i = result.size(); i-- > 0; digits /= rank) result[i] = static_cast<std::size_t>(digits % rank);
  std::vector<std::size_t> sorted = result;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != i) return std::nullopt;
  return digits == 0 ? std::optional(result) : std::nullopt;
}

}  // namespace taso::rule_io
