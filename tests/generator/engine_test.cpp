// The parts of the enumeration: tapes against the evaluator, fast fingerprints against those of values, renamings,
// records in memory and in files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "generator/bank.h"
#include "generator/records.h"
#include "generator/symmetry.h"
#include "generator/tape.h"
#include "support/random.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

OperatorInstance instance(const std::string& op, const std::vector<Shape>& shapes, const Attributes& attributes = {}) {
  std::vector<TensorType> types;
  types.reserve(shapes.size());
  for (const Shape& shape : shapes) types.push_back({ElementType::f32, shape, true});
  auto made = OperatorInstance::create(registry(), op, attributes, types);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  return std::move(made).value();
}

RingTensor<Mod61> random_tensor(const Shape& shape, Random& random) {
  RingTensor<Mod61> tensor{shape, {}, {}};
  for (std::int64_t i = 0; i < volume(shape); ++i) tensor.elements.push_back(Mod61::from_bits(random.next()));
  return tensor;
}

struct Application {
  const char* op;
  std::vector<Shape> shapes;
  std::vector<std::pair<const char*, AttributeValue>> attributes;
  bool separable, bilinear;
};

std::vector<Application> applications() {
  using Integers = std::vector<std::int64_t>;
  return {
      {"add", {{2, 3}, {2, 3}}, {}, true, true},
      {"mul", {{2, 3}, {2, 3}}, {}, false, true},
      {"matmul", {{2, 3}, {3, 4}}, {}, false, true},
      {"transpose", {{2, 3}}, {{"perm", Integers{1, 0}}}, true, false},
      {"concat", {{2, 3}, {2, 1}}, {{"axis", std::int64_t{-1}}}, true, true},
      {"split", {{2, 3}}, {{"axis", std::int64_t{-1}}, {"sizes", Integers{1, 2}}}, true, false},
      {"relu", {{2, 3}}, {}, false, false},
      {"div", {{2, 2}, {2, 2}}, {}, false, false},
      {"conv2d", {{1, 2, 3, 4}, {3, 2, 3, 3}}, {{"pads", Integers{1, 1, 1, 1}}}, false, true},
      {"avg_pool2d_include", {{1, 2, 3, 4}}, {{"kernel", Integers{2, 3}}, {"pads", Integers{1, 1, 0, 1}}}, true, false},
      {"max_pool2d", {{1, 2, 3, 4}}, {{"kernel", Integers{2, 2}}}, false, false},
      {"softmax", {{2, 3}}, {{"axis", std::int64_t{-1}}}, false, false},
  };
}

TEST(Tape, ComputesWhatTheEvaluatorComputesAndKnowsWhatIsLinear) {
  Random random(3);
  for (const Application& application : applications()) {
    SCOPED_TRACE(application.op);
    Attributes attributes;
    for (const auto& [name, value] : application.attributes) attributes.set(name, value);
    const OperatorInstance made = instance(application.op, application.shapes, attributes);
    const FieldRing field(5);
    const auto tape = record_tape({&made, 1}, field);
    ASSERT_TRUE(tape.has_value());
    EXPECT_EQ(tape->separable, application.separable);
    EXPECT_EQ(tape->bilinear, application.bilinear);
    std::vector<RingTensor<Mod61>> inputs;
    for (const Shape& shape : application.shapes) inputs.push_back(random_tensor(shape, random));
    std::vector<const RingTensor<Mod61>*> tensors;
    std::vector<const Mod61*> elements;
    for (const RingTensor<Mod61>& input : inputs) {
      tensors.push_back(&input);
      elements.push_back(input.elements.data());
    }
    FieldRing ring(5);
    const auto expected = evaluate(made, ring, std::span<const RingTensor<Mod61>* const>(tensors));
    ASSERT_TRUE(expected.ok());
    std::vector<Mod61> values;
    ASSERT_TRUE(tape->run(elements, field, values));
    for (std::size_t port = 0; port < expected->size(); ++port) {
      ASSERT_EQ(tape->outputs[port].size(), (*expected)[port].elements.size());
      for (std::size_t i = 0; i < tape->outputs[port].size(); ++i)
        EXPECT_EQ(values[tape->outputs[port][i]], (*expected)[port].elements[i]) << port << ", " << i;
    }
  }
}

TEST(Tape, DividingByZeroHasNoResult) {
  const OperatorInstance made = instance("div", {{1}, {1}});
  const FieldRing field(5);
  const auto tape = record_tape({&made, 1}, field);
  ASSERT_TRUE(tape.has_value());
  const Mod61 one(1), zero;
  const std::vector<const Mod61*> inputs{&one, &zero};
  std::vector<Mod61> values;
  EXPECT_FALSE(tape->run(inputs, field, values));
}

TEST(Tape, DerivativeOfABilinearOperatorIsItsValueOnBasisVectors) {
  const OperatorInstance made = instance("matmul", {{2, 3}, {3, 2}});
  const FieldRing field(5);
  const auto tape = record_tape({&made, 1}, field);
  ASSERT_TRUE(tape.has_value());
  Random random(8);
  const RingTensor<Mod61> a = random_tensor({2, 3}, random), functional = random_tensor({4}, random);
  std::vector<Mod61> b(6), values, adjoints;
  ASSERT_TRUE(tape->run(std::vector<const Mod61*>{a.elements.data(), b.data()}, field, values));
  tape->derive(0, functional.elements, values, adjoints);
  const std::vector<Mod61> derivative(adjoints.begin() + tape->arguments[1], adjoints.begin() + tape->arguments[2]);
  for (std::size_t i = 0; i < b.size(); ++i) {
    b.assign(6, Mod61());
    b[i] = Mod61(1);
    ASSERT_TRUE(tape->run(std::vector<const Mod61*>{a.elements.data(), b.data()}, field, values));
    Mod61 sum;
    for (std::size_t k = 0; k < 4; ++k) sum += functional.elements[k] * values[tape->outputs[0][k]];
    EXPECT_EQ(derivative[i], sum) << i;
  }
}

// relu, abs, max and min are the real ones, a monotone function is some monotone one; others stay oracles.
TEST(OrderedRing, FollowsTheOrderOfIntegers) {
  const FieldRing ring(5, true);
  const FunctionDefinition &relu = *registry().find_function("relu"), &abs = *registry().find_function("abs"),
                           &tanh = *registry().find_function("tanh"), &exp = *registry().find_function("exp");
  Random random(11);
  bool negative = false, positive = false;
  for (int i = 0; i < 200; ++i) {
    const Mod61 x = ring.element(random.next()), y = ring.element(random.next());
    const bool below = x.value() > Mod61::prime / 2;
    negative = negative || below;
    positive = positive || !below;
    EXPECT_EQ(ring.call(relu, x), below ? Mod61() : x);
    EXPECT_EQ(ring.call(abs, x), below ? -x : x);
    const std::vector<Mod61> both{x, y};
    const Mod61 largest = ring.extremum(true, both), least = ring.extremum(false, both);
    EXPECT_EQ(largest + least, x + y);
    EXPECT_LE((largest - least).value(), std::uint64_t{1} << FieldRing::ordered_bits);
    for (const FunctionDefinition* const monotone : {&relu, &tanh, &exp}) {
      const std::vector<Mod61> images{ring.call(*monotone, x), ring.call(*monotone, y)};
      EXPECT_EQ(ring.call(*monotone, largest), ring.extremum(true, images));
      EXPECT_EQ(ring.call(*monotone, least), ring.extremum(false, images));
    }
    EXPECT_NE(ring.call(tanh, x), FieldRing(5).call(tanh, x));
  }
  EXPECT_TRUE(negative && positive);
  EXPECT_EQ(ring.call(tanh, Mod61()), Mod61());
  const std::vector<Mod61> with_infinity{ring.infinity(true), Mod61(-5)};
  EXPECT_EQ(ring.extremum(true, with_infinity), Mod61(-5));
}

TEST(Dot, IsExactForLongVectorsOfLargeElements) {
  std::vector<Mod61> a(1000, Mod61(-1)), b(1000, Mod61(-1));
  EXPECT_EQ(dot(a.data(), b.data(), a.size()), Mod61(1000));
  EXPECT_EQ(dot(a.data(), b.data(), 33), Mod61(33));
  EXPECT_EQ(dot(a.data(), b.data(), 0), Mod61());
}

TEST(Symmetry, IsTheProductOfTheSymmetricGroupsOfLikeInputs) {
  const std::vector<std::uint32_t> kinds{0, 1, 0, 2, 1, 0};
  const Symmetry symmetry(kinds);
  EXPECT_EQ(symmetry.size(), 12u);  // 3! * 2!
  for (std::size_t left = 0; left < symmetry.size(); ++left) {
    EXPECT_EQ(symmetry.product(left, symmetry.inverse(left)), 0u);
    EXPECT_EQ(symmetry.input(left, 3), 3u);
    for (std::size_t right = 0; right < symmetry.size(); ++right)
      for (std::uint32_t i = 0; i < kinds.size(); ++i) {
        EXPECT_EQ(symmetry.input(symmetry.product(left, right), i), symmetry.input(left, symmetry.input(right, i)));
        EXPECT_EQ(kinds[symmetry.input(left, i)], kinds[i]);
      }
  }
  EXPECT_EQ(symmetry.renamings(0).size(), 1u);
  EXPECT_EQ(symmetry.renamings(symmetry.mask(0)).size(), 3u);
  EXPECT_EQ(symmetry.renamings(symmetry.mask(0) | symmetry.mask(2)).size(), 6u);
  EXPECT_EQ(symmetry.renamings(symmetry.mask(0) | symmetry.mask(1)).size(), 6u);
  EXPECT_EQ(symmetry.mask(3), 0u);
}

TEST(Symmetry, StaysSmall) {
  const Symmetry symmetry(std::vector<std::uint32_t>(30, 0));
  EXPECT_EQ(symmetry.size(), 1u);
}

std::vector<Record> some_records(std::size_t count) {
  Random random(1);
  std::vector<Record> records(count);
  for (Record& record : records) record = {random.below(1000), random.below(3), random.next()};
  return records;
}

TEST(RecordStore, FilesAndMemoryHoldTheSame) {
  const std::vector<Record> records = some_records(50'000);
  const std::string folder = testing::TempDir();
  RecordStore in_memory(0, folder), in_files(100'000, folder);
  for (RecordStore* store : {&in_memory, &in_files}) {
    ASSERT_TRUE(store->add({records.begin(), records.begin() + 20'000}).ok());
    ASSERT_TRUE(store->add({records.begin() + 20'000, records.end()}).ok());
  }
  EXPECT_FALSE(in_memory.spilled());
  EXPECT_TRUE(in_files.spilled());
  std::vector<Record> all;
  for (std::size_t partition = 0; partition < RecordStore::partitions; ++partition) {
    const auto expected = in_memory.take(partition), found = in_files.take(partition);
    ASSERT_TRUE(expected.ok() && found.ok());
    EXPECT_EQ(*expected, *found);
    EXPECT_TRUE(std::is_sorted(found->begin(), found->end()));
    all.insert(all.end(), found->begin(), found->end());
  }
  std::vector<Record> sorted = records;
  std::sort(sorted.begin(), sorted.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, sorted);
}

TEST(RecordStore, SaysThatAFolderCannotBeWritten) {
  RecordStore store(1, "/nowhere/at/all");
  const Status status = store.add(some_records(10));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("/nowhere/at/all"), std::string::npos);
}

TEST(Segment, ComesBackAndEveryDamagedByteIsNoticed) {
  Segment segment;
  segment.enumeration = {1, 2};
  segment.begin = 64;
  segment.end = 128;
  segment.counts = {10, 5, 11};
  segment.records = some_records(3);
  const std::string bytes = to_bytes(segment) + to_bytes(segment);
  std::size_t at = 0;
  for (int copy = 0; copy < 2; ++copy) {
    const auto back = segment_from_bytes(bytes, at, "file");
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->enumeration, segment.enumeration);
    EXPECT_EQ(back->begin, segment.begin);
    EXPECT_EQ(back->end, segment.end);
    EXPECT_EQ(back->counts.outputs, segment.counts.outputs);
    EXPECT_EQ(back->records, segment.records);
  }
  EXPECT_EQ(at, bytes.size());
  const std::string one = to_bytes(segment);
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::string damaged = one;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    at = 0;
    EXPECT_FALSE(segment_from_bytes(damaged, at, "file").ok()) << i;
    at = 0;
    EXPECT_FALSE(segment_from_bytes(std::string_view(one).substr(0, i), at, "file").ok()) << i;
  }
}

// The last level is enumerated up to renaming, all others are not: the same values have to come out.
TEST(Bank, CountsOfALevelDoNotDependOnWhetherItIsTheLast) {
  auto profile = parse_profile(R"(
profile p
group g
  max_ops 3
  max_weight_ops 1
  extent m: 2, 3
  extent k: 3, 2
  activation x [m, k]
  activation y [m, k]
  activation z [m, k]
  weight v [k, k]
  weight w [k, k]
  apply matmul(activation, weight)
  apply mul(activation, activation)
  apply concat(activation, activation) axis=-1
  apply split(activation) axis=-1 sizes=[k, k]
  on_weights transpose(weight) perm=[1, 0]
  on_weights matmul(weight, weight)
)",
                               "file", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  for (int level = 1; level <= 2; ++level) {
    BankOptions options;
    options.max_ops = level;
    Bank last(profile->groups[0], registry(), options);
    options.max_ops = level + 1;
    Bank inner(profile->groups[0], registry(), options);
    ASSERT_TRUE(last.run().ok());
    ASSERT_TRUE(inner.run().ok());
    const LevelCounts& a = last.levels()[static_cast<std::size_t>(level)];
    const LevelCounts& b = inner.levels()[static_cast<std::size_t>(level)];
    EXPECT_EQ(a.terms, b.terms);
    EXPECT_EQ(a.classes, b.classes);
    EXPECT_EQ(a.hits, b.hits);
    EXPECT_LT(a.evaluated, b.evaluated);
  }
}

}  // namespace
}  // namespace taso
