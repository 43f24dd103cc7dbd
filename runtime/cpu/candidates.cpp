#include <algorithm>

#include "operators/registry.h"
#include "runtime/cpu/kernels.h"
#include "runtime/strides.h"

namespace taso::cpu {
namespace {

using Create = KernelOffer (*)(const KernelRequest&, const OperatorRegistry&);

/// Operators and the kernels that compute them, best first.
struct Row {
  std::vector<std::string_view> operators;
  std::vector<std::pair<const char*, Create>> kernels;
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {{"conv2d", "conv2d_bias_act", "conv2d_bias_add_act"},
       {{"own winograd", winograd_convolution},
        {"onednn convolution", onednn_convolution},
        {"onednn convolution and sum", onednn_convolution_and_sum},
        {"onednn slow convolution", onednn_slow_convolution}}},
      {{"matmul", "matmul_bias_act"}, {{"onednn matmul", onednn_matmul}, {"onednn slow matmul", onednn_slow_matmul}}},
      {{"max_pool2d", "avg_pool2d_include", "avg_pool2d_exclude"},
       {{"onednn pooling", onednn_pooling}, {"own pool", pooling}}},
      {{"transpose", reorder_op, "concat", "split", "slice", "broadcast", "reshape", "pad", "enlarge"},
       {{"own copy", copying}}},
      {{"gather"}, {{"own gather", gathering}}},
      {{"reduce_sum", "reduce_mean", "reduce_max", "global_avg_pool"}, {{"own reduce", reduction}}},
      {{"softmax"}, {{"own softmax", row_by_row}, {"own softmax of columns", column_softmax}}},
      {{"layer_norm"}, {{"own layer_norm", row_by_row}}},
      {{"rms_norm"}, {{"own rms_norm", row_by_row}}},
      {{"batch_norm"}, {{"own batch_norm", batch_norm}}},
      {{"group_norm"}, {{"own group_norm", group_norm}}},
      {{"lrn"}, {{"own lrn", lrn}}},
      {{"rotary_embedding"}, {{"own rotary_embedding", rotary_embedding}}},
      {{"gru", "lstm", "rnn"}, {{"own recurrent layer", recurrent_layer}}},
  };
  return rows;
}

class Nothing final : public Kernel {
 public:
  Nothing() : Kernel("nothing") {}
  Status execute(const KernelArguments&) const override { return {}; }
};

}  // namespace

std::vector<KernelCandidate> candidates_for(std::string_view op, const OperatorRegistry& registry) {
  std::vector<KernelCandidate> candidates = {{"nothing", empty_outputs}};
  const OperatorDefinition* const defined = registry.find(op);
  if (defined != nullptr && defined->elementwise) candidates.push_back({"own elementwise", elementwise});
  if (defined != nullptr && !defined->over_reals) candidates.push_back({"own machine elements", machine_elements});
  for (const Row& row : table())
    if (std::find(row.operators.begin(), row.operators.end(), op) != row.operators.end())
      for (const auto& [name, create] : row.kernels) candidates.push_back({name, create});
  if (registry.defines(op)) candidates.push_back({"own definition", definition});
  return candidates;
}

KernelOffer empty_outputs(const KernelRequest& request, const OperatorRegistry&) {
  if (request.outputs.empty()) return decline("no outputs");
  for (const Operand& output : request.outputs)
    if (output.type.elements() != 0) return decline("an output has elements");
  return {std::make_unique<Nothing>(), ""};
}

bool has_own_kernel(std::string_view op) {
  return std::any_of(table().begin(), table().end(), [&](const Row& row) {
    return std::find(row.operators.begin(), row.operators.end(), op) != row.operators.end();
  });
}

KernelOffer decline(std::string reason) { return {nullptr, std::move(reason)}; }

bool is_all_floats(const KernelRequest& request) {
  const auto is_float = [](const Operand& operand) { return operand.type.element == ElementType::f32; };
  return std::all_of(request.inputs.begin(), request.inputs.end(), is_float) &&
         std::all_of(request.outputs.begin(), request.outputs.end(), is_float);
}

std::vector<std::int64_t> strides_of(const Operand& operand) {
  return taso::strides_of(operand.type.shape, operand.layout);
}

}  // namespace taso::cpu
