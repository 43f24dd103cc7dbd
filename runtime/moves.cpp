#include "runtime/moves.h"

#include <algorithm>
#include <utility>

namespace taso {

Moves::Moves(const KernelRequest& request) : request_(request) {
  for (const FusedPart& part : request.fused->parts) {
    std::vector<MovedInput> made(part.request.outputs.size());
    if (only_moves(part.request))
      if (const MovedInput from = source(part.sources[0]); from.access)
        for (std::size_t port = 0; port < made.size(); ++port)
          made[port] = {from.input, access_through(part.request, port, *from.access)};
    made_.push_back(std::move(made));
  }
}

MovedInput Moves::source(const FusedPart::Source& from) const {
  if (from.is_input) return {from.index, access_of(request_.inputs[from.index])};
  return made_[from.index][from.port];
}

std::optional<Access> Moves::result_of(std::size_t computed) const {
  const Fused& fused = *request_.fused;
  if (fused.results.size() != 1) return std::nullopt;
  std::optional<Access> place = access_of(request_.outputs[0]);
  for (FusedPart::Source at = fused.results[0]; at.index != computed; at = fused.parts[at.index].sources[0]) {
    const FusedPart& part = fused.parts[at.index];
    if (part.sources[0].is_input) return std::nullopt;
    const Operand& moved = part.request.inputs[0];
    if (part.request.op == "transpose") {
      Access before{moved.type.shape, std::vector<std::int64_t>(moved.type.shape.size()), place->offset};
      const auto& permutation = part.request.attributes.integers("perm");
      for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
        const std::int64_t from = permutation[axis];
        const auto rank = static_cast<std::int64_t>(permutation.size());
        before.strides[static_cast<std::size_t>(from < 0 ? from + rank : from)] = place->strides[axis];
      }
      place = std::move(before);
    } else if (part.request.op == "reshape") {
      KernelRequest back = part.request;
      std::swap(back.inputs[0].type, back.outputs[0].type);
      place = access_through(back, 0, *place);
      if (!place) return std::nullopt;
    } else if (part.request.op != reorder_op) {
      return std::nullopt;
    }
  }
  return place;
}

std::optional<Moves::Copy> Moves::copy() const {
  const std::vector<FusedPart>& parts = request_.fused->parts;
  const auto moves = [](const FusedPart& part) { return only_moves(part.request); };
  if (request_.fused->results.size() != 1 || !std::all_of(parts.begin(), parts.end(), moves)) return std::nullopt;
  for (FusedPart::Source at = request_.fused->results[0]; !at.is_input; at = parts[at.index].sources[0]) {
    const MovedInput from = source(at);
    if (!from.access) continue;
    if (std::optional<Access> to = result_of(at.index)) return Copy{from, *std::move(to)};
  }
  return std::nullopt;
}

}  // namespace taso
