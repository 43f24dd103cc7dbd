#include "runtime/kernel.h"

#include <gmock/gmock.h>

#include "operators/registry.h"
#include "runtime/configuration.h"
#include "runtime/cpu/kernels.h"
#include "runtime/lowering.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

KernelRequest request_of(const std::string& text, bool channels_last = true) {
  return value_of(lower(graph_of(text), registry(), {.channels_last = channels_last})).steps.back().kernel->request;
}

TEST(KernelRequest, KeysAreCanonical) {
  const std::string text = R"(
    input x f32[1, 4, 8, 8]
    weight w f32[8, 4, 3, 3]
    y = conv2d(x, w; pads=[1, 1, 1, 1])
    output y)";
  EXPECT_EQ(request_of(text, false).key(),
            "conv2d; dilations=[1, 1], pads=[1, 1, 1, 1], strides=[1, 1]; f32[1, 4, 8, 8]:row, "
            "f32[8, 4, 3, 3]:row:weight -> f32[1, 8, 8, 8]:row; threads=1");
  EXPECT_EQ(request_of("input x f32[2]\ninput b f32[]\noutput mul(x, broadcast(b; shape=[2]))").key(),
            "mul; ; f32[2]:row, f32[]:row -> f32[2]:row; threads=1");
}

TEST(KernelRequest, KeysTellRequestsApart) {
  std::vector<std::string> keys;
  for (const bool channels_last : {true, false})
    for (const char* text :
         {"input x f32[1, 4, 8, 8]\nweight w f32[8, 4, 3, 3]\noutput global_avg_pool(conv2d(x, w))",
          "input x f32[1, 4, 8, 8]\ninput w f32[8, 4, 3, 3]\noutput global_avg_pool(conv2d(x, w; strides=[2, 1]))"})
      keys.push_back(request_of(text, channels_last).key());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST(KernelLibrary, EveryOperatorHasAKernelAndTheReferenceIsLast) {
  const KernelRequest request = request_of("input x f32[3, 5]\noutput softmax(x)");
  const auto offers = library().offers(request);
  ASSERT_GE(offers.size(), 2u);
  EXPECT_EQ(offers.back().first, "reference");
  EXPECT_NE(offers.back().second.kernel, nullptr);
  EXPECT_EQ(value_of(library(KernelSet::reference).create(request))->implementation(), "reference");
}

/// The implementation of a kernel for an element-wise operator.
std::string implementation_of(const OperatorRegistry& registry, const std::string& op, Attributes attributes = {}) {
  const TensorType type{ElementType::f32, {2, 3}, true};
  KernelRequest request;
  request.op = op;
  request.attributes = value_of(registry.complete(op, attributes));
  for (const InputSpec& input : registry.find(op)->inputs)
    request.inputs.push_back({input.axes.empty() ? TensorType{ElementType::f32, {}, true} : type, {}, false});
  request.outputs.push_back({type, {}, false});
  return value_of(KernelLibrary(registry).create(request))->implementation();
}

// A row that the tables lack fails here.
TEST(KernelLibrary, ShippedElementwiseOperatorsHaveKernels) {
  int count = 0;
  for (const std::string& name : registry().names()) {
    const OperatorDefinition& definition = *registry().find(name);
    if (!definition.elementwise) continue;
    ++count;
    const Behaviour& behaviour = behaviour_of(name, registry());
    EXPECT_EQ(behaviour.preference, LayoutPreference::follower) << name;
    const bool scalars = std::any_of(definition.inputs.begin(), definition.inputs.end(),
                                     [](const InputSpec& input) { return input.axes.empty(); });
    EXPECT_TRUE(behaviour.any_order) << name;
    EXPECT_EQ(behaviour.blocks, !scalars) << name;
    EXPECT_EQ(behaviour.folds_broadcast, definition.inputs.size() == 2 && !scalars) << name;
    Attributes attributes;
    if (name == "clip") {
      attributes.set("min", AttributeValue(0.0));
      attributes.set("max", AttributeValue(6.0));
    }
    EXPECT_THAT(implementation_of(registry(), name, attributes), ::testing::StartsWith("own elementwise")) << name;
  }
  EXPECT_GE(count, 20);
}

// So does one that the copying kernels have no case of.
TEST(KernelLibrary, ShippedOperatorsThatCopyElementsHaveKernels) {
  int count = 0;
  for (const std::string& name : registry().names()) {
    if (!registry().signature(name)->copies) continue;
    ++count;
    std::vector<std::string> kernels;
    for (const KernelCandidate& candidate : cpu::candidates_for(name, registry())) kernels.push_back(candidate.name);
    EXPECT_THAT(kernels, ::testing::Contains("own copy")) << name;
  }
  EXPECT_GE(count, 5);
}

// Whose kernel an operator has follows from what it computes, not from what it is called.
TEST(KernelLibrary, ElementwiseOperatorsOfOnesOwn) {
  const OperatorRegistry own = value_of(OperatorRegistry::parse(R"(
function clip(x) = x + 1
function double(x) = x + x
operator plus(a[D..], b[D..]) -> [D..]
  out[I..] = a[I..] + b[I..]
operator minus(a[D..], b[D..]) -> [D..]
  out[I..] = b[I..] - a[I..]
operator activation(x[D..]; f: function = relu) -> [D..]
  out[I..] = f(x[I..])
operator square(x[D..]) -> [D..]
  out[I..] = 3 * x[I..]
operator one_more(x[D..]) -> [D..]
  out[I..] = clip(x[I..])
operator scaled(s[], x[D..]) -> [D..]
  out[I..] = s[] / x[I..]
operator sum_of_scalars(s[], t[]) -> []
  out[] = s[] + t[]
operator spread(s[]; shape: int[]) -> [shape..]
  out[I..] = s[]
operator twice(x[D..]) -> [D..]
  out[I..] = double(x[I..])
operator shifted(x[n]) -> [n]
  out[i] = x[i - 1] or 0
operator flipped(x[n, n]) -> [n, n]
  out[i, j] = x[j, i]
)",
                                                                "own.op", &registry()));
  EXPECT_THAT(implementation_of(own, "plus"), ::testing::StartsWith("own elementwise"));
  EXPECT_THAT(implementation_of(own, "scaled"), ::testing::StartsWith("own elementwise"));
  EXPECT_TRUE(own.find("sum_of_scalars")->elementwise);
  EXPECT_THAT(implementation_of(own, "activation"), ::testing::StartsWith("own elementwise"));
  for (const char* name : {"minus", "square", "one_more", "twice"}) {
    EXPECT_TRUE(own.find(name)->elementwise) << name;
    EXPECT_EQ(behaviour_of(name, own).preference, LayoutPreference::follower) << name;
    EXPECT_THAT(implementation_of(own, name), ::testing::StartsWith("own definition")) << name;
  }
  for (const char* name : {"shifted", "flipped", "spread"}) EXPECT_FALSE(own.find(name)->elementwise) << name;
}

// Of an axis of one every stride is right.
TEST(KernelLibrary, ProductsOfExtentsOfOneInAllLayouts) {
  const std::vector<Layout> layouts = {Layout::row_major, Layout::column_major};
  for (const std::int64_t m : {1, 3})
    for (const std::int64_t k : {1, 2})
      for (const std::int64_t n : {1, 4})
        for (const int way : {0, 1, 2, 3, 4, 5, 6, 7}) {
          KernelRequest request;
          request.op = "matmul";
          const std::vector<Shape> shapes = {{1, m, k}, {1, k, n}, {1, m, n}};
          for (std::size_t i = 0; i < 3; ++i)
            (i < 2 ? request.inputs : request.outputs)
                .push_back({{ElementType::f32, shapes[i]}, layouts[static_cast<std::size_t>(way) >> i & 1], false});
          std::vector<AlignedBuffer> results;
          for (const KernelSet set : {KernelSet::cpu, KernelSet::reference}) {
            const auto kernel = value_of(library(set).create(request));
            std::vector<AlignedBuffer> buffers;
            std::vector<const std::byte*> inputs;
            for (const Operand& operand : request.inputs) {
              buffers.emplace_back(static_cast<std::size_t>(operand.type.bytes()));
              auto* values = reinterpret_cast<float*>(buffers.back().data());
              for (std::int64_t i = 0; i < operand.type.elements(); ++i) values[i] = static_cast<float>(3 * i % 7 - 2);
              inputs.push_back(buffers.back().data());
            }
            results.emplace_back(static_cast<std::size_t>(request.outputs[0].type.bytes()));
            std::byte* output = results.back().data();
            AlignedBuffer workspace(kernel->workspace_bytes());
            const Status done = kernel->execute({inputs, std::span(&output, 1), workspace.data()});
            ASSERT_TRUE(done) << request.key() << ": " << done.error().message;
          }
          for (std::int64_t i = 0; i < m * n; ++i)
            ASSERT_EQ(reinterpret_cast<const float*>(results[0].data())[i],
                      reinterpret_cast<const float*>(results[1].data())[i])
                << request.key();
        }
}

// A primitive of "gemm" would be slow to add the residual: another candidate adds it afterwards.
TEST(KernelLibrary, AResidualIsAddedAsTheImplementationIsFast) {
  for (const bool channels_last : {true, false}) {
    KernelRequest request = request_of(R"(
      input x f32[1, 16, 8, 8]
      input y f32[1, 16, 8, 8]
      weight w f32[16, 16, 1, 1]
      weight b f32[16]
      output conv2d_bias_add_act(x, w, b, y))",
                                       false);
    if (channels_last)
      for (Operand* image : {&request.inputs[0], &request.inputs[3], &request.outputs[0]})
        image->layout = Layout::channels_last;
    for (const auto& [name, offer] : library().offers(request)) {
      if (name != "onednn convolution") continue;
      const bool adds = offer.kernel != nullptr && offer.kernel->implementation().ends_with(", adding");
      const bool is_gemm = offer.reason.find("gemm") != std::string::npos && offer.reason.ends_with(" is slow to add");
      EXPECT_TRUE(adds || is_gemm || offer.reason == "built without oneDNN") << offer.reason;
      const std::string chosen = value_of(library().create(request))->implementation();
      EXPECT_EQ(chosen.ends_with(", then a sum"), is_gemm) << chosen;
    }
  }
}

TEST(KernelLibrary, AResidualThatLiesOtherwiseIsAddedByTheDefinition) {
  KernelRequest request = request_of(R"(
      input x f32[1, 16, 8, 8]
      input y f32[1, 16, 8, 8]
      weight w f32[16, 16, 1, 1]
      weight b f32[16]
      output conv2d_bias_add_act(x, w, b, y))",
                                     false);
  request.inputs[3].layout = Layout::channels_last;
  for (const auto& [name, offer] : library().offers(request))
    if (name.starts_with("onednn")) {
      EXPECT_TRUE(offer.reason == "the residual lies otherwise than the result" ||
                  offer.reason == "built without oneDNN")
          << offer.reason;
    }
  EXPECT_EQ(value_of(library().create(request))->implementation(), "reference");
}

TEST(KernelLibrary, CandidatesSayWhyTheyDecline) {
  KernelRequest request = request_of("input x f32[3, 5]\noutput relu(x)");
  for (Operand& operand : request.inputs) operand.type.element = ElementType::other;
  for (Operand& operand : request.outputs) operand.type.element = ElementType::other;
  const auto kernel = library().create(request);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, ErrorCode::bad_input);
  EXPECT_EQ(
      kernel.error().message,
      "no kernel computes relu; ; other[3, 5]:row -> other[3, 5]:row; threads=1 (nothing: an output has elements; "
      "own elementwise: only f32; own definition: only f32; reference: no arithmetic on other)");
}

TEST(KernelLibrary, ValuesIn16BitsAreComputedInF32) {
  for (const ElementType element : {ElementType::f16, ElementType::bf16}) {
    KernelRequest request = request_of("input x f32[3, 5]\noutput relu(x)");
    request.inputs[0].type.element = request.outputs[0].type.element = element;
    const auto kernel = value_of(library().create(request));
    EXPECT_THAT(kernel->implementation(), ::testing::EndsWith(" in f32"));
    HostTensor x(request.inputs[0].type), y(request.outputs[0].type);
    fill_random(x, 1, "x");
    AlignedBuffer workspace(kernel->workspace_bytes());
    const std::byte* const inputs[] = {x.bytes().data()};
    std::byte* const outputs[] = {y.bytes().data()};
    ASSERT_TRUE(kernel->execute({inputs, outputs, workspace.data()}));
    std::vector<double> expected = x.to_doubles();
    for (double& value : expected) value = std::max(value, 0.0);
    EXPECT_EQ(y.to_doubles(), expected);
  }
}

TEST(KernelLibrary, UnknownOperators) {
  KernelRequest request = request_of("input x f32[3, 5]\noutput relu(x)");
  request.op = "no_such_operator";
  EXPECT_FALSE(library().create(request).ok());
}

TEST(KernelLibrary, DeviceNamesWhatCostsDependOn) {
  EXPECT_FALSE(library().device().empty());
  EXPECT_EQ(library().device(), library().device());
  EXPECT_NE(library().device(), library(KernelSet::reference).device());
}

TEST(Kernel, PackedWeightsAreShared) {
  if (library().device().find("oneDNN") == std::string::npos) GTEST_SKIP() << "built without oneDNN";
  const char* text = "input x f32[1, 32, 8, 8]\nweight w f32[48, 32, 3, 3]\noutput relu(conv2d(x, w))";
  const KernelRequest request =
      value_of(lower(graph_of(text), registry(), {.channels_last = true})).steps.at(1).kernel->request;
  const auto first = value_of(library().create(request)), second = value_of(library().create(request));
  EXPECT_EQ(first->packed_format(1), second->packed_format(1));
  EXPECT_EQ(first->packed_format(0), "");
  if (first->packed_format(1).empty()) return;
  std::vector<float> plain(48 * 32 * 9);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i);
  AlignedBuffer a(first->packed_bytes(1)), b(second->packed_bytes(1));
  ASSERT_EQ(a.size(), b.size());
  first->pack(1, reinterpret_cast<const std::byte*>(plain.data()), a.data());
  second->pack(1, reinterpret_cast<const std::byte*>(plain.data()), b.data());
  EXPECT_TRUE(std::equal(a.data(), a.data() + a.size(), b.data()));
}

// A weight that is packed part by part is the one that is packed as a whole.
TEST(Kernel, WeightsArePackedInParts) {
  if (library().device().find("oneDNN") == std::string::npos) GTEST_SKIP() << "built without oneDNN";
  int in_parts = 0;
  for (const char* text : {"input x f32[3, 1000]\nweight w f32[1000, 3001]\noutput matmul(x, w)",
                           "input x f32[1, 3, 1000]\nweight w f32[1000, 3001]\noutput matmul(x, w)",
                           "input x f32[2, 3, 300]\nweight w f32[2, 300, 301]\noutput matmul(x, w)",
                           "input x f32[1, 300, 8, 8]\nweight w f32[500, 300, 3, 3]\noutput conv2d(x, w)",
                           "input x f32[1, 600, 8, 8]\nweight w f32[500, 300, 3, 3]\noutput conv2d(x, w)"}) {
    const Graph graph = graph_of(text);
    const LoweredGraph lowered = value_of(lower(graph, registry(), {.channels_last = true}));
    for (const LoweredStep& step : lowered.steps) {
      const KernelRequest& request = step.kernel->request;
      const auto kernel = value_of(library().create(request));
      if (request.inputs.size() < 2 || kernel->packed_format(1).empty()) continue;
      const TensorType& type = request.inputs[1].type;
      std::vector<float> plain(static_cast<std::size_t>(type.elements()));
      for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i);
      const auto* bytes = reinterpret_cast<const std::byte*>(plain.data());
      AlignedBuffer whole(kernel->packed_bytes(1)), parts(kernel->packed_bytes(1));
      kernel->pack(1, bytes, whole.data());
      const std::int64_t rows = kernel->rows_of_part(1), all = type.shape[0];
      if (rows == 0) continue;
      ++in_parts;
      EXPECT_LT(rows, all);
      for (std::int64_t first = 0; first < all; first += rows)
        kernel->pack_part(1, first, std::min(rows, all - first), bytes + type.bytes() / all * first, parts.data());
      EXPECT_TRUE(std::equal(whole.data(), whole.data() + whole.size(), parts.data())) << text;
    }
  }
  // Without AVX-512 no product has a format in blocks of columns, and others are packed as a whole.
  const bool has_blocks = library().device().find("avx512") != std::string::npos;
  EXPECT_GE(in_parts, has_blocks ? 1 : 0);
}

// Rows of constant matrices whose distance would be a large power of two are packed further apart (docs/runtime.md).
TEST(Kernel, RowsOfConstantMatricesAreSpread) {
  if (library().device().find("oneDNN") == std::string::npos) GTEST_SKIP() << "built without oneDNN";
  const KernelRequest request =
      value_of(lower(graph_of("input x f32[3, 64]\nweight w f32[64, 512]\noutput matmul(x, w)"), registry(), {}))
          .steps.at(0)
          .kernel->request;
  const auto kernel = value_of(library().create(request));
  if (kernel->packed_format(1).empty() || kernel->packed_format(1).find("blocks") != std::string::npos)
    GTEST_SKIP() << "packed otherwise: " << kernel->packed_format(1);
  std::vector<float> plain(64 * 512);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i);
  AlignedBuffer packed(kernel->packed_bytes(1));
  kernel->pack(1, reinterpret_cast<const std::byte*>(plain.data()), packed.data());
  const auto* values = reinterpret_cast<const float*>(packed.data());
  const std::size_t row = packed.size() / sizeof(float) / 64;
  EXPECT_GT(row, 512U);
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 512; ++j) ASSERT_EQ(values[i * row + j], plain[i * 512 + j]) << i << ", " << j;
}

}  // namespace
}  // namespace taso::testing
