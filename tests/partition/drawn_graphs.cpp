#include "tests/partition/drawn_graphs.h"

#include <optional>

#include "partition/strategy.h"
#include "support/random.h"
#include "tests/optimizer/random_graph.h"
#include "tests/support/shipped.h"

namespace taso::test {
namespace {

constexpr int operators_before = 3, operators_behind = 4;

testing::GraphDrawOptions draw_options(Random& random) {
  static constexpr std::int64_t small[] = {2, 3}, any[] = {4, 5, 6, 7, 8, 9, 11, 13};
  const auto one_of = [&](const auto& list) { return list[random.below(std::size(list))]; };
  testing::GraphDrawOptions options;
  options.extents = {one_of(small), one_of(any), one_of(any)};
  if (random.below(4) == 0) options.extents.push_back(1);
  if (random.below(20) == 0) options.extents.push_back(0);
  options.most_elements = 2000;
  options.most_work = 150'000;
  options.indices = 2;
  options.opaque_percent = 0;
  return options;
}

}  // namespace

const std::vector<std::string>& cut_operators() {
  static const std::vector<std::string> found = [] {
    std::vector<std::string> operators;
    for (const std::string& op : registry().names())
      if (!registry().find(op)->inputs.empty() && !derive_strategies(registry(), op).strategies.empty())
        operators.push_back(op);
    return operators;
  }();
  return found;
}

/// An operator that reads what has partial results, if it is cut so.
bool grow_behind_partial(testing::GraphGenerator& generator, const std::string& op, Random& random) {
  static constexpr const char* with_partial[] = {"matmul", "conv2d", "reduce_sum", "reduce_max", "max_pool2d"};
  generator.grow_by_one(with_partial[random.below(std::size(with_partial))]);
  return generator.grow_by_one(op);
}

namespace {

DrawnGraph with_inputs(testing::RandomGraph made, const std::string& op) {
  DrawnGraph drawn{std::move(made.graph), {}, op};
  for (const NodeId id : drawn.graph.inputs())
    drawn.inputs.push_back(std::move(made.inputs.at(drawn.graph.node(id).name)));
  return drawn;
}

}  // namespace

DrawnGraph draw_small_graph(std::uint64_t seed) {
  testing::GraphDrawOptions options;
  options.opaque_percent = 0;
  return with_inputs(testing::GraphGenerator(registry(), seed, options).finish(8), "");
}

DrawnGraph draw_graph(std::uint64_t number) {
  const std::string& op = cut_operators()[number % cut_operators().size()];
  Random random(number, "extents of graph");
  for (std::uint64_t trial = 0;; ++trial) {
    testing::GraphGenerator generator(registry(), number + (trial << 32), draw_options(random));
    generator.grow_by(operators_before);
    if (!(number / cut_operators().size() % 2 == 0 ? generator.grow_by_one(op)
                                                   : grow_behind_partial(generator, op, random)))
      continue;
    testing::RandomGraph made = generator.finish(operators_behind);
    bool computes = false;
    for (const NodeId id : made.graph.topological_order())
      computes = computes || (made.graph.node(id).is_op(op) && !made.graph.node(id).weight_only);
    if (!computes) continue;
    return with_inputs(std::move(made), op);
  }
}

std::vector<RingTensor<Mod61>> random_elements(const DrawnGraph& drawn, const FieldRing& ring, std::uint64_t seed) {
  Random random(seed, "elements");
  std::vector<RingTensor<Mod61>> inputs;
  for (const RingTensor<double>& sample : drawn.inputs) {
    RingTensor<Mod61>& input = inputs.emplace_back(RingTensor<Mod61>{sample.shape, {}, sample.integers});
    for (std::size_t i = 0; i < sample.elements.size(); ++i) input.elements.push_back(ring.element(random.next()));
  }
  return inputs;
}

}  // namespace taso::test
