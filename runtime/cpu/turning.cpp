/// Rotary embeddings: rows whose elements are turned in pairs.
#include <cstring>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/parallel.h"

namespace taso::cpu {
namespace {

/// What rotary_embedding works on, all of it row-major: rows of a tensor, `inner` for each position in turn, the
/// positions `outer` times for each of `tables` tables.
struct TurnedRows {
  std::int64_t length = 0, pairs = 0, columns = 1;
  std::int64_t rows = 0, inner = 1, positions = 1, outer = 1, tables = 1;
};

class RotaryEmbedding final : public Kernel {
 public:
  RotaryEmbedding(const TurnedRows& rows, int threads)
      : Kernel(std::string("own rotary_embedding ") + loops().instruction_set), rows_(rows), threads_(threads) {}

  Status execute(const KernelArguments& arguments) const override {
    const auto floats = [](auto pointer) { return reinterpret_cast<const float*>(pointer); };
    const float* const x = floats(arguments.inputs[0]);
    const float* const cosines = floats(arguments.inputs[1]);
    const float* const sines = floats(arguments.inputs[2]);
    auto* const y = reinterpret_cast<float*>(arguments.outputs[0]);
    const LoopTable& loop = loops();
    const TurnedRows& of = rows_;
    const std::int64_t turned = 2 * of.pairs, width = of.columns * of.pairs, second = (of.columns - 1) * of.pairs;
    const auto rest = static_cast<std::size_t>(of.length - turned) * sizeof(float);
    parallel_chunks(threads_, of.rows, std::max<std::int64_t>(1, 8192 / of.length),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t r = begin; r < end; ++r) {
                        const std::int64_t position = r / of.inner % of.positions;
                        const std::int64_t table = r / (of.inner * of.positions * of.outer) % of.tables;
                        const std::int64_t angles = (table * of.positions + position) * width;
                        const float* const from = x + r * of.length;
                        float* const to = y + r * of.length;
                        loop.turn_pairs(from, cosines + angles, sines + angles, to, of.pairs, second);
                        if (rest != 0) std::memcpy(to + turned, from + turned, rest);
                      }
                    });
    return {};
  }

 private:
  TurnedRows rows_;
  int threads_;
};

}  // namespace

KernelOffer rotary_embedding(const KernelRequest& request, const OperatorRegistry&) {
  if (!is_all_floats(request)) return decline("not f32");
  for (const std::vector<Operand>* const operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands)
      if (operand.layout != Layout::row_major) return decline("no such layout");
  const Shape& x = request.inputs[0].type.shape;
  const Shape& table = request.inputs[1].type.shape;
  const std::int64_t axis = request.attributes.integer("axis");
  TurnedRows rows;
  rows.columns = request.attributes.integer("columns");
  rows.length = x.back();
  rows.pairs = table.back() / rows.columns;
  rows.rows = request.inputs[0].type.elements() / rows.length;
  // Axes of the tables before the positions, which x has before those of the heads.
  const std::size_t position = axis_position(axis, x.size());
  for (std::size_t i = 0; i + 2 < table.size(); ++i) rows.tables *= table[i];
  rows.positions = x[position];
  if (axis == -2) rows.outer = x[position - 1];
  if (axis == -3) rows.inner = x[position + 1];
  return {std::make_unique<RotaryEmbedding>(rows, request.threads), ""};
}

}  // namespace taso::cpu
