#include "runtime/cuda/division.h"

#include <algorithm>
#include <utility>

namespace taso::cuda {
namespace {

/// Where the pads at both ends differ but the end needs no more than the begin has, equal pads give the same result:
/// what the last windows leave over may be anything less than a stride.
void even_out(ConvolutionGraph& graph) {
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t window = (graph.w[2 + i] - 1) * graph.dilations[i] + 1;
    const std::int64_t needed = (graph.y[2 + i] - 1) * graph.strides[i] + window - graph.x[2 + i] - graph.before[i];
    if (graph.before[i] >= needed && graph.before[i] < needed + graph.strides[i]) graph.after[i] = graph.before[i];
  }
}

/// The one with these parts in the engine.
Division divided(const AskedConvolution& asked, bool padded, bool bias, bool residual, bool relu) {
  Division division;
  division.graph = asked.plain;
  if (padded) {
    division.padding = asked.pads;
    division.graph.x[2] += asked.pads[0] + asked.pads[2];
    division.graph.x[3] += asked.pads[1] + asked.pads[3];
    division.graph.before = division.graph.after = {0, 0};
  } else {
    even_out(division.graph);
  }
  division.graph.residual = residual;
  division.graph.relu = relu;
  // The engines have residual and activation only together with a bias.
  division.graph.bias = bias || residual || relu;
  division.zero_bias = division.graph.bias && !asked.bias;
  division.bias_left = asked.bias && !division.graph.bias;
  division.residual_left = asked.residual && !residual;
  division.act_left = relu ? Function::identity : asked.act;
  return division;
}

bool is_plain(const Division& division) { return division.padding.empty() && !division.graph.bias; }

}  // namespace

std::string Division::name() const {
  return std::string(padding.empty() ? "" : "pad, ") + "conv" + (graph.bias ? "+bias" : "") +
         (graph.residual ? "+residual" : "") + (graph.relu ? "+relu" : "");
}

std::vector<Division> divisions_of(const AskedConvolution& asked) {
  const bool relu = asked.act == Function::relu, residual = asked.residual && asked.residual_fits;
  std::vector<Division> list;
  for (const bool padded : {false, true}) {
    if (padded && asked.pads == std::vector<std::int64_t>{0, 0, 0, 0}) continue;
    if (residual) list.push_back(divided(asked, padded, asked.bias, true, relu));
    if (relu && !asked.residual) list.push_back(divided(asked, padded, asked.bias, false, true));
    if (asked.bias) list.push_back(divided(asked, padded, true, false, false));
    list.push_back(divided(asked, padded, false, false, false));
  }
  return list;
}

std::vector<std::vector<std::size_t>> rounds_of(const std::vector<Division>& divisions) {
  std::vector<std::vector<std::size_t>> rounds;
  for (std::size_t i = 0; i < divisions.size(); ++i) rounds.push_back({i});
  if (divisions.empty() || divisions[0].graph.w[1] == divisions[0].graph.x[1]) return rounds;
  const auto plain = std::find_if(divisions.begin(), divisions.end(), is_plain);
  const auto number = static_cast<std::size_t>(plain - divisions.begin());
  if (plain == divisions.end() || number == 0) return rounds;
  rounds[0].push_back(number);
  rounds.erase(rounds.begin() + static_cast<std::ptrdiff_t>(number));
  return rounds;
}

}  // namespace taso::cuda
