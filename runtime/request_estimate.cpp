#include "runtime/request_estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/access.h"

namespace taso {
namespace {

/// Of a function that is a primitive, and of one that an attribute names.
constexpr double operations_of_function = 16, operations_of_division = 4;

double operations_of(const Expression& expression, const OperatorRegistry& registry) {
  using Kind = Expression::Kind;
  double sum = 0;
  for (const Expression& operand : expression.operands) sum += operations_of(operand, registry);
  switch (expression.kind) {
    case Kind::call: {
      if (expression.name == "max" || expression.name == "min") return sum + 1;
      const FunctionDefinition* const function = registry.find_function(expression.name);
      if (function == nullptr || !function->definition) return sum + operations_of_function;
      return sum + operations_of(*function->definition, registry);
    }
    case Kind::divide:
      return sum + operations_of_division;
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::negate:
    case Kind::conditional:
      return sum + 1;
    default:
      return sum;
  }
}

double bytes_of(const std::vector<Operand>& operands) {
  double bytes = 0;
  for (const Operand& operand : operands)
    if (operand.type.known) bytes += static_cast<double>(operand.type.bytes());
  return bytes;
}

/// What each input of a fused request is read of: of parts that only move elements, as much as they move.
double bytes_read(const KernelRequest& request) {
  std::vector<double> read(request.inputs.size(), 0);
  for (const FusedPart& part : request.fused->parts) {
    const bool is_moved = only_moves(part.request);
    for (std::size_t i = 0; i < part.sources.size(); ++i)
      if (part.sources[i].is_input)
        read[part.sources[i].index] += bytes_of(is_moved ? part.request.outputs : std::vector{part.request.inputs[i]});
  }
  double sum = 0;
  for (std::size_t i = 0; i < read.size(); ++i) sum += std::min(read[i], bytes_of({request.inputs[i]}));
  return sum;
}

}  // namespace

double RequestEstimate::operations(const KernelRequest& request) {
  const auto [place, fresh] = known_.emplace(request.op, 0);
  if (!fresh) return place->second;
  const OperatorDefinition* const definition = registry_->find(request.op);
  if (definition == nullptr || !definition->elementwise || only_moves(request)) return 0;
  for (const Equation& equation : definition->equations) place->second += operations_of(equation.value, *registry_);
  return place->second;
}

bool RequestEstimate::is_cheap(const KernelRequest& request) {
  constexpr double few_operations = 4;
  const double needed = operations(request);
  if (needed == 0 || needed > few_operations || !request.outputs[0].type.known) return false;
  const auto is_large = [&](const Operand& input) {
    return !input.weight && input.type.known && input.type.elements() == request.outputs[0].type.elements();
  };
  return std::count_if(request.inputs.begin(), request.inputs.end(), is_large) <= 1;
}

double RequestEstimate::cost(const KernelRequest& request) {
  const auto elements = [](const KernelRequest& part) {
    return part.outputs.empty() || !part.outputs[0].type.known ? 0
                                                               : static_cast<double>(part.outputs[0].type.elements());
  };
  double bytes = bytes_of(request.outputs), operations_in_all = 0;
  if (request.fused) {
    bytes += bytes_read(request);
    for (const FusedPart& part : request.fused->parts)
      operations_in_all += operations(part.request) * elements(part.request);
  } else {
    bytes +=
        only_moves(request) ? std::min(bytes_of(request.inputs), bytes_of(request.outputs)) : bytes_of(request.inputs);
    operations_in_all = operations(request) * elements(request);
  }
  return std::round(rates_.launch + bytes * rates_.byte + operations_in_all * rates_.operation);
}

}  // namespace taso
