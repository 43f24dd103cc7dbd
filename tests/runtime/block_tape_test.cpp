// Tapes (runtime/cpu/block_tape.h), also over several rows at once (runtime/cpu/row_tape.h), compute what the general
// evaluator of blocks does, to the bit, and pairs of operations (runtime/cpu/pairs.h) what the two do by themselves.
#include "runtime/cpu/block_tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/instance.h"
#include "runtime/cpu/row_tape.h"
#include "tests/runtime/cuda_requests.h"

namespace taso::testing {
namespace {

using cpu::BlockBuffer;
using cpu::StagePlan;

constexpr const char* operators_of_tapes = R"(
operator log_softmax(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let total[I.. < A] = sum(t < n) exp(x[I.., t] - top[I..])
  out[I.., i] = x[I.., i] - top[I..] - log(total[I..])
operator columns(x[n, m]) -> [m]
  out[j] = sum(i < n) x[i, j] * x[i, j]
operator norm(x[n, m]) -> []
  out[] = sqrt(sum(i < n, j < m) square(x[i, j] - 1))
operator many(x[n, m]) -> [n, m]
  out[i, j] = (x[i, j] + 1) * (2 - x[i, j]) / (3 + x[i, j] * x[i, j]) - max(x[i, j], min(-x[i, j], 0.5))
operator transposed(x[n, m]) -> [m, n]
  out[j, i] = x[i, j] * 2 - 1
operator shares(x[n, m]) -> [n, m]
  let total[i < n] = sum(t < m) x[i, t]
  let product[i < n] = prod(t < m) (1 + x[i, t] / 8)
  out[i, j] = (x[i, j] - product[i]) / total[i] + x[i, j] / (total[i] * 2) * product[i]
operator floors(x[n, m]) -> [n, m]
  let total[i < n] = sum(t < m) x[i, t]
  out[i, j] = floor(x[i, j] / total[i])
operator standard(x[n, m]) -> [n, m]
  let mean[i < n] = (sum(t < m) x[i, t]) / m
  let variance[i < n] = (sum(t < m) square(x[i, t] - mean[i])) / m
  out[i, j] = (x[i, j] - mean[i]) / sqrt(variance[i] + 0.001) * x[0, j] + x[0, j]
operator moved(x[n, m]) -> [n, m]
  let mean[i < n] = (sum(t < m) x[i, t]) / m
  let spread[i < n] = sum(t < m) (x[i, t] - mean[i]) * (x[i, t] - mean[i])
  out[i, j] = (x[i, j] + mean[i]) * spread[i] * mean[i] - spread[i]
operator nested(x[n, m]) -> [n, m]
  out[i, j] = (x[i, j] - max(t < m) x[i, t]) / sqrt(sum(t < m) square(x[i, t])) + (sum(t < m) x[i, t] * x[i, j])
operator same_for_all(x[n, m]) -> [n, m]
  out[i, j] = exp(x[i, 0] - x[i, 1]) / (1 + square(x[i, 0]))
operator two_factors(x[n, m]) -> [n, m]
  out[i, j] = exp(x[i, j] * exp(x[i, 0])) + exp(x[i, j] * exp(x[i, 1]))
operator neighbours(x[n, m]) -> [n, m]
  let total[i < n] = sum(t < m) x[i, t]
  out[i, j] = x[i, j] * total[i] + x[i, m - 1 - j] - x[i, 0] / (x[i, j] + total[i])
operator apart(x[n, m]) -> [n]
  out[i] = sum(t < m) square(x[i, t] - x[0, t])
operator scaled(x[A.., n, m], w[m]) -> [A.., n, m]
  let total[I.. < A, i < n] = sum(t < m) x[I.., i, t] * w[t]
  out[I.., i, j] = (x[I.., i, j] + total[I.., i]) * exp(2 * w[j]) / total[I.., i] - total[I.., i] / (w[j] + 3)
operator every_other(x[n, m]) -> [n, m // 2]
  let total[i < n] = max(t < m // 2) x[i, 2 * t]
  out[i, j] = x[i, 2 * j] / total[i] - x[n - 1 - i, j] + x[0, j]
operator products(x[n, m]) -> [n]
  out[i] = (prod(t < m) (1 + x[i, t] / 8)) + (sum(t < m) x[i, t] * x[i, 0]) + (sum(t < m) x[0, t]) + x[i, m - 1]
operator powers(x[n, m]) -> [n, m]
  let total[i < n] = (sum(t < m) x[i, t]) / m
  let cube[i < n] = pow(total[i], 3) + pow(x[i, 0], 3) + pow(3, total[i])
  out[i, j] = pow(x[i, j], 3) + pow(total[i], 3) - pow(x[i, j], cube[i]) + pow(x[0, j], 3) + pow(total[i], cube[i])
operator ends(x[n, m]) -> [n]
  out[i] = (min(t < m) x[i, t]) * (max(t < m) x[i, t]) - sum(t < m) (x[i, t] - x[i, 0]) * (x[i, t] - x[i, 0])
)";

/// Calls body() at every element of the own loops of a stage, but for those left out, to which `evaluator` is stepped.
template <class Evaluator, class Body>
void at_each(Evaluator& evaluator, const LoweredStage& stage, std::optional<std::uint32_t> left_out,
             std::optional<std::uint32_t> left_out_too, const Body& body) {
  std::vector<std::uint32_t> loops;
  for (const std::uint32_t variable : stage.outer)
    if (variable != left_out && variable != left_out_too) loops.push_back(variable);
  const auto go = [&](const auto& self, std::size_t loop) -> void {
    if (loop == loops.size()) return body();
    for (std::int64_t i = 0; i < stage.extents[loops[loop]]; ++i) {
      self(self, loop + 1);
      evaluator.step(loops[loop], 1);
    }
    evaluator.step(loops[loop], -stage.extents[loops[loop]]);
  };
  go(go, 0);
}

/// All elements of a stage, computed by `evaluator` in blocks, in `to`.
template <class Evaluator>
void compute_stage(Evaluator& evaluator, const StagePlan& plan, std::vector<float>& to) {
  const LoweredStage& stage = plan.stage();
  const std::int64_t length = plan.run() ? stage.extents[*plan.run()] : 1;
  const std::int64_t stride = plan.run() ? plan.coefficient(stage.write, *plan.run()) : 1;
  std::vector<float> block(static_cast<std::size_t>(cpu::block_elements));
  // Blocks outside of the other loops: what is the same in these is computed once for each.
  for (std::int64_t done = 0, count = 1; done < length; done += count) {
    count = std::min(plan.block(), length - done);
    at_each(evaluator, stage, plan.run(), std::nullopt, [&] {
      evaluator.compute(count, block.data());
      for (std::int64_t i = 0; i < count; ++i)
        to[static_cast<std::size_t>(evaluator.place() + i * stride)] = block[static_cast<std::size_t>(i)];
    });
    if (plan.run()) evaluator.step(*plan.run(), count);
  }
}

/// All elements of a stage, by so many rows at once, in `to`.
void compute_rows(cpu::RowRunner& runner, const StagePlan& plan, std::int64_t at_once, std::vector<float>& to) {
  const std::int64_t length = plan.stage().extents[*plan.rows()];
  at_each(runner, plan.stage(), plan.run(), plan.rows(), [&] {
    for (std::int64_t done = 0; done < length; done += at_once) {
      runner.compute(std::min(at_once, length - done), to.data() + runner.place());
      runner.step(*plan.rows(), std::min(at_once, length - done));
    }
    runner.step(*plan.rows(), -length);
  });
}

/// Whether all elements are the same to the bit; of what is no number, neither sign nor payload counts.
bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
  });
}

/// How stages were computed, so many of them.
struct WaysTaken {
  int tapes = 0, turned = 0, rows = 0;  ///< Those that read something transposed, those of several rows at once.
};

/// Runs the stages of a body in all ways.
void expect_equal_ways(const LoweredBody& body, const std::vector<std::vector<float>>& inputs, WaysTaken& taken,
                       bool by_rows = true) {
  std::vector<std::vector<float>> memory = inputs;
  for (const Shape& shape : body.intermediates) memory.emplace_back(static_cast<std::size_t>(volume(shape)));
  for (const Shape& shape : body.outputs) memory.emplace_back(static_cast<std::size_t>(volume(shape)));
  std::vector<BlockBuffer> buffers;
  for (std::vector<float>& one : memory) buffers.push_back({one.data(), 1, true});
  StagePlan::Operator of;
  for (const LoweredStage& stage : body.stages) of.jumps = of.jumps || cpu::has_jump(stage);
  for (const LoweredStage& stage : body.stages) {
    if (stage.empty) continue;
    const StagePlan plan(stage, of, by_rows);
    of.computed.push_back(stage.buffer);
    std::vector<float>& written = memory[stage.buffer];
    std::vector<float> by_tape = written;
    if (const auto tape = cpu::BlockTape::of(plan)) {
      cpu::TurnedBlocks turned;
      cpu::TapeRunner runner(*tape, buffers, turned);
      compute_stage(runner, plan, by_tape);
      ++taken.tapes;
      for (std::uint32_t i = 0; i < stage.accesses.size(); ++i)
        if (plan.turned(i)) ++taken.turned;
      const auto rows = cpu::RowTape::of(plan, *tape);
      for (const std::int64_t at_once : {plan.rows_at_once(), std::min<std::int64_t>(3, plan.rows_at_once())}) {
        if (!rows) break;
        ++taken.rows;
        std::vector<float> of_rows = written;
        cpu::RowRunner rows_runner(*rows, buffers);
        compute_rows(rows_runner, plan, at_once, of_rows);
        ASSERT_TRUE(are_equal(by_tape, of_rows))
            << body.op << ", stage of buffer " << stage.buffer << ", rows at once: " << at_once;
      }
      cpu::BlockEvaluator evaluator(plan, buffers);
      compute_stage(evaluator, plan, written);
      ASSERT_TRUE(are_equal(by_tape, written)) << body.op;
    } else {
      cpu::BlockEvaluator evaluator(plan, buffers);
      compute_stage(evaluator, plan, written);
    }
  }
}

std::vector<float> random_floats(Random& random, std::int64_t count, int kind) {
  std::vector<float> list(static_cast<std::size_t>(count));
  for (float& x : list) x = static_cast<float>(kind == 0 ? 2 * random.uniform() - 1 : 0.1 + random.uniform());
  if (kind == 2 && !list.empty()) list[static_cast<std::size_t>(random.below(list.size()))] = NAN;
  constexpr float special[] = {0.0F, -0.0F, HUGE_VALF, -HUGE_VALF, 1e-40F, -1e-40F, 1e38F, 0x1p-126F, 0x1p127F};
  if (kind == 3)
    for (float& x : list)
      if (random.below(3) == 0) x = special[random.below(std::size(special))];
  return list;
}

TEST(BlockTape, ComputesShippedOperatorsLikeTheEvaluator) {
  std::map<std::string, WaysTaken> taken;
  for (const std::string& op : RequestMaker::operators()) {
    const OperatorDefinition* const defined = registry().find(op);
    if (defined == nullptr || !defined->over_reals) continue;
    RequestMaker maker(3);
    for (int round = 0; round < 20; ++round) {
      const auto request = maker.make(op);
      if (!request) continue;
      std::vector<TensorType> types;
      std::vector<std::vector<float>> inputs;
      Random random(static_cast<std::uint64_t>(round), op);
      for (const Operand& operand : request->inputs) {
        types.push_back(operand.type);
        inputs.push_back(random_floats(random, operand.type.elements(), round % 4));
      }
      if (!std::all_of(types.begin(), types.end(), [](const TensorType& t) { return t.element == ElementType::f32; }))
        continue;
      const auto instance = OperatorInstance::create(registry(), op, request->attributes, types);
      if (!instance) continue;
      const bool recurs = std::any_of(instance->body().stages.begin(), instance->body().stages.end(),
                                      [](const LoweredStage& stage) { return stage.steps_of.has_value(); });
      if (!recurs) expect_equal_ways(instance->body(), inputs, taken[op]);
    }
  }
  for (const char* op : {"add", "gelu", "softmax", "layer_norm", "rms_norm", "reduce_sum", "reduce_max", "concat"})
    EXPECT_GT(taken[op].tapes, 0) << op;
}

TEST(BlockTape, ComputesOperatorsOfAUserLikeTheEvaluator) {
  const auto operators = value_of(OperatorRegistry::parse(operators_of_tapes, "own.op", &registry()));
  for (const char* op : {"log_softmax", "columns", "norm", "many", "transposed", "shares", "floors", "standard",
                         "moved", "apart", "ends"}) {
    WaysTaken taken;
    for (const Shape& shape : {Shape{3, 5}, Shape{70, 3}, Shape{2, 2500}, Shape{1, 1}, Shape{2, 1024}, Shape{2, 1025},
                               Shape{3, 0}, Shape{0, 3}, Shape{2, 15}, Shape{2, 16}, Shape{2, 17}, Shape{2, 70}})
      for (int kind = 0; kind < 4; ++kind) {
        Random random(static_cast<std::uint64_t>(kind), op);
        const TensorType type{ElementType::f32, shape};
        const auto instance = value_of(OperatorInstance::create(operators, op, Attributes(), std::vector{type}));
        expect_equal_ways(instance.body(), {random_floats(random, type.elements(), kind)}, taken);
      }
    EXPECT_GT(taken.tapes, 8) << op;
  }
}

TEST(BlockTape, ReadsShortRowsTransposed) {
  const auto operators = value_of(OperatorRegistry::parse(operators_of_tapes, "own.op", &registry()));
  for (const char* op :
       {"log_softmax", "shares", "standard", "moved", "nested", "same_for_all", "two_factors", "neighbours"}) {
    WaysTaken taken;
    for (const Shape& shape : {Shape{700, 3}, Shape{1100, 2}, Shape{600, 16}, Shape{520, 17}, Shape{129, 16},
                               Shape{128, 15}, Shape{300, 100}, Shape{140, 128}, Shape{140, 129}}) {
      const TensorType type{ElementType::f32, shape};
      Random random(static_cast<std::uint64_t>(shape[1]), op);
      const auto instance = value_of(OperatorInstance::create(operators, op, Attributes(), std::vector{type}));
      expect_equal_ways(instance.body(), {random_floats(random, type.elements(), 1)}, taken, false);
    }
    EXPECT_GT(taken.tapes, 8) << op;
    EXPECT_GT(taken.turned, std::string_view(op) == "same_for_all" ? -1 : 4) << op;
    EXPECT_EQ(taken.rows, 0) << op;
  }
}

TEST(RowTape, ComputesSeveralRowsLikeTheEvaluator) {
  const auto operators = value_of(OperatorRegistry::parse(operators_of_tapes, "own.op", &registry()));
  for (const char* op : {"log_softmax", "shares", "floors", "standard", "moved", "neighbours", "same_for_all",
                         "two_factors", "powers", "every_other", "products", "ends", "apart"}) {
    WaysTaken taken;
    for (const Shape& shape : {Shape{300, 16}, Shape{65, 17}, Shape{37, 64}, Shape{40, 100}, Shape{9, 129},
                               Shape{8, 511}, Shape{5, 700}, Shape{3, 1024}, Shape{2, 1025}, Shape{1, 64}})
      for (int kind = 0; kind < 4; ++kind) {
        const TensorType type{ElementType::f32, shape};
        Random random(static_cast<std::uint64_t>(kind), op);
        const auto instance = value_of(OperatorInstance::create(operators, op, Attributes(), std::vector{type}));
        expect_equal_ways(instance.body(), {random_floats(random, type.elements(), kind)}, taken);
      }
    EXPECT_GT(taken.rows, 30) << op;
  }
}

TEST(RowTape, ComputesRowsOfSeveralAxesLikeTheEvaluator) {
  const auto operators = value_of(OperatorRegistry::parse(operators_of_tapes, "own.op", &registry()));
  WaysTaken taken;
  for (const Shape& shape : {Shape{2, 3, 50, 24}, Shape{1, 2, 7, 200}, Shape{4, 1, 16}, Shape{70, 33}, Shape{3, 0, 16}})
    for (int kind = 0; kind < 4; ++kind) {
      const TensorType type{ElementType::f32, shape}, weight{ElementType::f32, {shape.back()}};
      Random random(static_cast<std::uint64_t>(kind), "scaled");
      const auto instance =
          value_of(OperatorInstance::create(operators, "scaled", Attributes(), std::vector{type, weight}));
      const std::vector<float> x = random_floats(random, type.elements(), kind);
      expect_equal_ways(instance.body(), {x, random_floats(random, weight.elements(), kind)}, taken);
    }
  EXPECT_GT(taken.rows, 30);
}

TEST(Pairs, AreTheTwoOperationsByThemselves) {
  constexpr std::int64_t count = 37;
  Random random(1, "pairs");
  const auto numbers = [&] {
    std::vector<float> list;
    for (std::int64_t i = 0; i < count; ++i)
      list.push_back(i == 5 ? 0.0F : i == 6 ? -HUGE_VALF : static_cast<float>((2 * random.uniform() - 1) * 100));
    return list;
  };
  const std::vector<float> a = numbers(), b = numbers(), c = numbers();
  const auto of = [](int operation, float x, float y) {
    const volatile float result = operation == 0 ? x + y : operation == 1 ? x - y : operation == 2 ? x * y : x / y;
    return result;
  };
  for (const cpu::PairTable* table : {cpu::generic_pairs(), cpu::avx2_pairs(), cpu::avx512_pairs()}) {
    if (table == nullptr) continue;
    for (int first = 0; first < cpu::arithmetic_count; ++first)
      for (int second = 0; second < cpu::arithmetic_count; ++second)
        for (int which = 0; which < 16; ++which) {
          const bool one_a = (which & 1) != 0, one_b = (which & 2) != 0, one_c = (which & 4) != 0;
          const bool on_right = (which & 8) != 0;
          if (one_a && one_b) continue;
          const cpu::PairLoop loop =
              table->find(static_cast<cpu::Arithmetic>(first), static_cast<cpu::Arithmetic>(second), on_right)
                  .find(one_a, one_b, one_c);
          std::vector<float> y(count), in_place = one_a ? b : a;
          loop(a.data(), b.data(), c.data(), y.data(), count);
          loop(one_a ? a.data() : in_place.data(), one_a ? in_place.data() : b.data(), c.data(), in_place.data(),
               count);
          for (std::size_t i = 0; i < y.size(); ++i) {
            const float x = of(first, a[one_a ? 0 : i], b[one_b ? 0 : i]), z = c[one_c ? 0 : i];
            const float expected = on_right ? of(second, z, x) : of(second, x, z);
            ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)))
                << first << " " << second << " " << which << ", element " << i;
            ASSERT_TRUE(in_place[i] == y[i] || std::isnan(y[i]));
          }
        }
  }
}

TEST(Pairs, ChainsAreFourOperations) {
  Random random(2, "chains");
  const std::vector<float> a = random_floats(random, 37, 3), d = random_floats(random, 37, 0);
  const std::vector<float> e = random_floats(random, 37, 3);
  const float b = 0.3F, c = -7.1F;
  for (const cpu::PairTable* table : {cpu::generic_pairs(), cpu::avx2_pairs(), cpu::avx512_pairs()}) {
    if (table == nullptr) continue;
    for (int which = 0; which < 8; ++which) {
      using cpu::Arithmetic;
      const bool subtracts = (which & 1) != 0, ends_with_difference = (which & 2) != 0, is_one = (which & 4) != 0;
      const cpu::ChainLoop loop =
          table->find_chain(subtracts ? Arithmetic::subtract : Arithmetic::add,
                            ends_with_difference ? Arithmetic::subtract : Arithmetic::add, is_one);
      for (std::size_t count = 1; count <= a.size(); ++count) {
        std::vector<float> y(count + 1, 5.0F);
        loop(a.data(), &b, &c, d.data(), e.data(), y.data(), static_cast<std::int64_t>(count));
        for (std::size_t i = 0; i < count; ++i) {
          const volatile float first = subtracts ? a[i] - b : a[i] + b;
          const volatile float second = first * c;
          const volatile float third = second * d[is_one ? 0 : i];
          const volatile float last = ends_with_difference ? third - e[is_one ? 0 : i] : third + e[is_one ? 0 : i];
          const float expected = last;
          ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected))) << which << ", element " << i;
        }
        ASSERT_EQ(y[count], 5.0F);
      }
    }
  }
}

}  // namespace
}  // namespace taso::testing
