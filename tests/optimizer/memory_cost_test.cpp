// What `--cost memory` prices is the arena that executors have, on the host and on a device.
#include <cmath>

#include "examples/models/models.h"
#include "onnx_io/model.h"
#include "optimizer/layout_choice.h"
#include "optimizer/runtime_target.h"
#include "tests/runtime/backend.h"
#include "tests/runtime/random_graph.h"

namespace taso::testing {
namespace {

/// Layouts that are the cheapest at some made-up prices, in the best of which there are conversions.
std::shared_ptr<const LayoutAssignment> some_layouts(const Graph& graph, const RuntimeTarget& target) {
  KernelPlan plan = value_of(target.open_plan(graph));
  PriceList list;
  list.look_up = [](const KernelInfo& kernel) {
    return Price{static_cast<double>(1 + hash_text(kernel.key).low % 40), true};
  };
  EliminationCache cache;
  LayoutStatistics statistics;
  (void)value_of(choose_layouts(plan, list, std::numeric_limits<double>::infinity(), cache, statistics));
  return plan.layouts;
}

/// The kernels of one target, and how it keeps floats.
struct Way {
  const KernelLibrary* kernels;
  const KernelLibrary* described;  ///< The same device that cannot run; null for the host.
  ElementType storage = ElementType::f32;
};

class MemoryCost : public ::testing::Test {
 protected:
  /// What an executor of the graph, cut at opaque nodes, has.
  double executed(const Graph& graph, const Way& way, bool channels_last,
                  std::shared_ptr<const LayoutAssignment> layouts) {
    ExecutorOptions options;
    options.channels_last = channels_last;
    options.weights = weights_;
    options.layouts = std::move(layouts);
    options.float_storage = way.storage;
    executors_.push_back(value_of(Executor::create(cut_at_opaque(graph).graph, *way.kernels, options)));
    return static_cast<double>(executors_.back().arena_bytes());
  }

  void expect_priced(const Graph& graph) {
    for (const Way& way :
         {Way{&library(), nullptr}, Way{&device_, &described_}, Way{&device_, &described_, ElementType::f16}}) {
      const auto target = [&](const KernelLibrary& kernels, bool counting, bool row_major) {
        return RuntimeTarget(
            kernels, {.counting = counting, .row_major = row_major, .float_storage = way.storage, .cancelled = {}});
      };
      const RuntimeTarget rule = target(*way.kernels, false, false);
      const double by_rule = executed(graph, way, true, nullptr), rows = executed(graph, way, false, nullptr);
      EXPECT_EQ(value_of(rule.peak_bytes(graph, nullptr)), by_rule);
      EXPECT_EQ(value_of(target(*way.kernels, false, true).peak_bytes(graph, nullptr)), rows);
      EXPECT_EQ(value_of(target(*way.kernels, true, false).peak_bytes(graph, nullptr)), rows);
      if (const auto layouts = some_layouts(graph, rule)) {
        EXPECT_EQ(value_of(rule.peak_bytes(graph, layouts.get())), executed(graph, way, true, layouts));
      }
      if (way.described != nullptr) {
        EXPECT_EQ(value_of(target(*way.described, false, false).peak_bytes(graph, nullptr)), by_rule);
      }
    }
    executors_.clear();
  }

  std::vector<Executor> executors_;  ///< Of the graph at hand: weights are laid out once.
  std::shared_ptr<WeightStore> weights_ = std::make_shared<WeightStore>();
  KernelLibrary device_ = device_library();
  KernelLibrary described_{registry(), value_of(load_test_backend({MathMode::strict, 0, R"({"name": "some GPU"})"}))};
};

TEST_F(MemoryCost, OfExampleModelsIsThatOfExecutors) {
  for (const examples::ExampleModel& example : examples::example_models()) {
    SCOPED_TRACE(std::string(example.name));
    expect_priced(value_of(Model::parse(example.build(example.small).serialize(), "model", registry())).graph());
  }
}

TEST_F(MemoryCost, OfRandomGraphsIsThatOfExecutors) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Graph graph = RandomGraph(seed).build(4 + static_cast<int>(seed % 30));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(graph));
    expect_priced(graph);
  }
}

TEST_F(MemoryCost, OfGraphsThatAreMatterOfMemory) {
  for (const char* text : {
           "input x f32[2, 3]\nweight w f32[3]\noutput x, w, reshape(x; shape=[3, 2])",
           "input x f32[2, 3]\ninput y f32[500]\noutput tanh(relu(x)), y",
           // a concatenation in place, which counts as a launch
           "input x f32[1, 40]\noutput concat(relu(x), tanh(x); axis=-2), concat(sigmoid(x), neg(x); axis=-1)",
           // a residual that is overwritten on the host
           "input x f32[1, 4, 9, 9]\nweight k f32[4, 4, 1, 1]\nweight b f32[4]\n"
           "output conv2d_bias_add_act(x, k, b, relu(x))",
           // opaque nodes read tensors after the steps beside them
           "input x f32[99]\na = relu(x)\nb = tanh(a)\nc = opaque mystery(a, b, x) f32[80]\noutput tanh(sigmoid(c))",
       }) {
    SCOPED_TRACE(text);
    expect_priced(graph_of(text));
  }
}

}  // namespace
}  // namespace taso::testing
