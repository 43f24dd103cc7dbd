// The bank's counts of values by size against a search that knows nothing of representatives, fingerprints, renamings
// or sharing: it writes down every program of up to n operators and looks at the tensors. Only the evaluator of
// specifications is common to both.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "generator/bank.h"
#include "generator/profile.h"
#include "support/random.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

/// A value: one tensor per world.
using WorldsValue = std::vector<RingTensor<Mod61>>;
/// A value as something that can be compared: shapes and elements.
using Key = std::vector<std::int64_t>;

Key key_of(const WorldsValue& value) {
  Key key;
  for (const RingTensor<Mod61>& tensor : value) {
    key.insert(key.end(), tensor.shape.begin(), tensor.shape.end());
    key.push_back(-1);
    for (const Mod61 element : tensor.elements) key.push_back(static_cast<std::int64_t>(element.value()));
  }
  return key;
}

class BruteForce {
 public:
  BruteForce(const ProfileGroup& group, int max_ops) : group_(group), max_ops_(max_ops) {
    std::vector<WorldsValue> values;
    Random random(99);
    for (const ProfileInput& input : group.inputs) {
      WorldsValue value;
      for (std::size_t world = 0; world < group.worlds; ++world) {
        RingTensor<Mod61> tensor;
        tensor.shape = std::get<std::vector<std::int64_t>>(*evaluate_symbolic(input.shape, group.world(world)));
        for (std::int64_t i = 0; i < volume(tensor.shape); ++i)
          tensor.elements.push_back(Mod61::from_bits(random.next()));
        value.push_back(std::move(tensor));
      }
      sizes_[key_of(value)] = 0;
      values.push_back(std::move(value));
    }
    extend(values, 0);
  }
  /// Values that take exactly this many operators.
  [[nodiscard]] std::size_t count(int ops) const {
    std::size_t result = 0;
    for (const auto& [key, size] : sizes_) result += size == ops ? 1 : 0;
    return result;
  }

 private:
  /// All programs that begin with the operators that made `values`.
  void extend(std::vector<WorldsValue>& values, int ops) {
    if (ops == max_ops_) return;
    for (const ProfileOperator& op : group_.operators) {
      std::vector<std::size_t> arguments(op.arguments.size());
      choose(op, arguments, 0, values, ops);
    }
  }
  void choose(const ProfileOperator& op, std::vector<std::size_t>& arguments, std::size_t position,
              std::vector<WorldsValue>& values, int ops) {
    if (position < arguments.size()) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        // As in the bank, no operator reads one value twice.
        bool twice = false;
        for (std::size_t before = 0; before < position; ++before)
          twice = twice || key_of(values[arguments[before]]) == key_of(values[i]);
        if (twice) continue;
        arguments[position] = i;
        choose(op, arguments, position + 1, values, ops);
      }
      return;
    }
    const std::vector<WorldsValue> outputs = apply(op, arguments, values);
    if (outputs.empty()) return;
    for (const WorldsValue& output : outputs) {
      const auto [it, inserted] = sizes_.try_emplace(key_of(output), ops + 1);
      it->second = std::min(it->second, ops + 1);
    }
    const std::size_t before = values.size();
    values.insert(values.end(), outputs.begin(), outputs.end());
    extend(values, ops + 1);
    values.resize(before);
  }
  [[nodiscard]] std::vector<WorldsValue> apply(const ProfileOperator& op, const std::vector<std::size_t>& arguments,
                                               const std::vector<WorldsValue>& values) const {
    std::vector<WorldsValue> result;
    for (std::size_t world = 0; world < group_.worlds; ++world) {
      Attributes attributes;
      for (const auto& [name, expression] : op.attributes)
        attributes.set(name, *evaluate_symbolic(expression, group_.world(world)));
      std::vector<TensorType> types;
      std::vector<const RingTensor<Mod61>*> tensors;
      for (const std::size_t argument : arguments) {
        types.push_back({ElementType::f32, values[argument][world].shape, true});
        tensors.push_back(&values[argument][world]);
      }
      const auto instance = OperatorInstance::create(registry(), op.op, attributes, types);
      if (!instance) return {};
      FieldRing ring(7);
      auto outputs = evaluate(*instance, ring, std::span<const RingTensor<Mod61>* const>(tensors));
      if (!outputs || !ring.status()) return {};
      result.resize(outputs->size());
      for (std::size_t port = 0; port < outputs->size(); ++port) result[port].push_back(std::move((*outputs)[port]));
    }
    return result;
  }

  const ProfileGroup& group_;
  int max_ops_;
  std::map<Key, int> sizes_;
};

// The bank counts what a value's representative shares with other operands, not what another term of the same value
// would share: ((x + y) + z) * (x + z) has three operators with (x + z) + y inside and enters one size later. The cases
// below stop before that.
struct Case {
  const char* name;
  int ops;
  const char* text;
};

const Case cases[] = {
    {"sums_and_products", 2, R"(
  extent a: 2, 3
  activation x [a]
  activation y [a]
  activation z [a]
  apply add(activation, activation)
  apply mul(activation, activation)
)"},
    {"matrices", 3, R"(
  extent m: 2, 3
  extent k: 3, 2
  activation x [m, k]
  activation y [m, k]
  activation w [k, k]
  apply matmul(activation, activation)
  apply transpose(activation) perm=[1, 0]
  apply add(activation, activation)
)"},
    {"concat_and_split", 3, R"(
  extent m: 2, 3
  activation x [m]
  activation y [m]
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-1 sizes=[m, m]
  apply relu(activation)
)"},
    {"functions", 3, R"(
  extent m: 1, 2
  activation x [m]
  activation y [m]
  apply sub(activation, activation)
  apply neg(activation)
  apply tanh(activation)
)"},
    {"pooling", 3, R"(
  extent n: 1, 1
  extent h: 3, 2
  activation x [n, n, h, h]
  activation y [n, n, h, h]
  apply max_pool2d(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply avg_pool2d_include(activation) kernel=[3, 3] pads=[1, 1, 1, 1]
  apply add(activation, activation)
)"},
};

class Counts : public testing::TestWithParam<Case> {};

TEST_P(Counts, AgreeWithAllPrograms) {
  const std::string text = std::string("profile p\ngroup g\n  max_ops ") + std::to_string(GetParam().ops) +
                           "\n  max_weight_ops 0" + GetParam().text;
  const auto profile = parse_profile(text, "file", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const ProfileGroup& group = profile->groups[0];
  const BruteForce all(group, GetParam().ops);
  // Every number of operators as the last level, which is counted in another way than those below.
  for (int last = 1; last <= GetParam().ops; ++last) {
    BankOptions options;
    options.max_ops = last;
    options.threads = 2;
    Bank bank(group, registry(), options);
    ASSERT_TRUE(bank.run().ok());
    for (int ops = 0; ops <= last; ++ops)
      EXPECT_EQ(bank.levels()[static_cast<std::size_t>(ops)].classes, all.count(ops)) << ops << " of " << last;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Counts, testing::ValuesIn(cases), [](const auto& tiny) { return tiny.param.name; });

}  // namespace
}  // namespace taso
