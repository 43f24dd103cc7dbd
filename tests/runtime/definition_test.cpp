// Kernels made of definitions (runtime/cpu/definition.cpp) compute what the reference does: for the shipped operators,
// for operators of a user, and for what the language has that no shipped operator needs.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "runtime/cpu/kernels.h"
#include "runtime/lowering.h"
#include "runtime/reference_kernel.h"
#include "tests/runtime/cuda_requests.h"

namespace taso::testing {
namespace {

/// What a kernel makes of inputs; empty, and a message, if it fails.
std::vector<AlignedBuffer> computed(const Kernel& kernel, const KernelRequest& request,
                                    const std::vector<const std::byte*>& inputs, std::string& failure) {
  std::vector<AlignedBuffer> outputs;
  std::vector<std::byte*> to;
  for (const Operand& output : request.outputs) {
    outputs.emplace_back(static_cast<std::size_t>(output.type.bytes()));
    std::memset(outputs.back().data(), 0xff, outputs.back().size());
    to.push_back(outputs.back().data());
  }
  AlignedBuffer workspace(kernel.workspace_bytes());
  const Status done = kernel.execute({inputs, to, workspace.data()});
  if (!done) failure = done.error().message;
  return outputs;
}

TEST(DefinitionKernel, ComputesShippedOperators) {
  for (const std::string& op : RequestMaker::operators()) {
    RequestMaker maker(5);
    int made = 0;
    for (int round = 0; round < 60; ++round) {
      auto request = maker.make(op);
      if (!request) continue;
      request->threads = 1 + round % 3;
      const KernelOffer offer = cpu::definition(*request, registry());
      if (!offer.kernel) {
        EXPECT_TRUE(offer.reason == "no definition" || offer.reason == "only row-major" ||
                    offer.reason.starts_with("only f32") || offer.reason.find("broadcast") != std::string::npos)
            << request->key() << ": " << offer.reason;
        continue;
      }
      ++made;
      const Example example(*request, static_cast<std::uint64_t>(round));
      std::vector<const std::byte*> inputs;
      for (const Placed& input : example.inputs) inputs.push_back(input.data());
      std::string failure;
      const auto outputs = computed(*offer.kernel, *request, inputs, failure);
      ASSERT_EQ(failure, "") << request->key();
      for (std::size_t i = 0; i < outputs.size(); ++i)
        ASSERT_LE(example.error(i, outputs[i].data()), 1e-5) << request->key();
    }
    EXPECT_GT(made, op == "reorder" ? -1 : 3) << op;
  }
}

/// Runs a graph of one operator in both ways.
void expect_like_the_reference(const std::string& text, const OperatorRegistry& operators, int threads) {
  const Graph graph = value_of(parse_graph(text, "test", operators));
  const auto steps = value_of(lower(graph, operators, {.channels_last = false})).steps;
  ASSERT_EQ(steps.size(), 1U) << text;
  KernelRequest request = steps[0].kernel->request;
  request.threads = threads;
  KernelOffer offer = cpu::definition(request, operators), reference = reference_kernel(request, operators);
  ASSERT_NE(offer.kernel, nullptr) << text << offer.reason;
  ASSERT_NE(reference.kernel, nullptr) << text << reference.reason;
  EXPECT_TRUE(offer.kernel->implementation().starts_with("own definition ")) << offer.kernel->implementation();
  Random random(7, text);
  std::vector<AlignedBuffer> buffers;
  std::vector<const std::byte*> inputs;
  for (const Operand& operand : request.inputs) {
    buffers.emplace_back(static_cast<std::size_t>(operand.type.bytes()));
    for (std::int64_t i = 0; i < operand.type.elements(); ++i) {
      std::byte* const at = buffers.back().data() + static_cast<std::size_t>(i) * size_of(operand.type.element);
      const auto real = static_cast<float>(2 * random.uniform() - 1);
      const auto index = static_cast<std::int64_t>(random.below(8)) - 4;
      if (operand.type.element == ElementType::f32)
        std::memcpy(at, &real, sizeof real);
      else
        std::memcpy(at, &index, size_of(operand.type.element));
    }
    inputs.push_back(buffers.back().data());
  }
  std::string failure, failure_of_reference;
  const auto actual = computed(*offer.kernel, request, inputs, failure);
  const auto expected = computed(*reference.kernel, request, inputs, failure_of_reference);
  ASSERT_EQ(failure, failure_of_reference) << text;
  if (!failure.empty()) return;
  for (std::size_t output = 0; output < actual.size(); ++output) {
    const auto *a = reinterpret_cast<const float*>(actual[output].data()),
               *e = reinterpret_cast<const float*>(expected[output].data());
    for (std::int64_t i = 0; i < request.outputs[output].type.elements(); ++i) {
      if (a[i] == e[i]) continue;
      ASSERT_NEAR(a[i], e[i], 2e-5F * std::max(1.0F, std::fabs(e[i]))) << text << ", element " << i;
    }
  }
}

constexpr const char* own_operators = R"(
operator swish(x[D..], s[]) -> [D..]
  out[I..] = x[I..] * sigmoid(s[] * x[I..])
operator rows(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let total[I.. < A] = sum(t < n) exp(x[I.., t] - top[I..])
  out[I.., i] = x[I.., i] - top[I..] - log(total[I..])
operator standard(x[n, m]) -> [n, m]
  let mean[i < n] = (sum(t < m) x[i, t]) / m
  let variance[i < n] = (sum(t < m) square(x[i, t] - mean[i])) / m
  out[i, j] = (x[i, j] - mean[i]) / sqrt(variance[i] + 0.001) * x[0, j] + x[0, j]
operator across(x[n, m, k]) -> [n, k, m]
  let mean[i < n, j < m] = (sum(t < k) x[i, j, t]) / k
  out[i, t, j] = (x[i, j, t] - mean[i, j]) * x[i, j, 0]
operator columns(x[n, m]) -> [m]
  out[j] = sum(i < n) x[i, j] * x[i, j]
operator least(x[n, m]) -> [n]
  out[i] = min(j < m) x[i, j]
operator product(x[n, m]) -> [n]
  out[i] = prod(j < m) (1 + x[i, j] / 8)
operator norm(x[n, m]) -> []
  out[] = sqrt(sum(i < n, j < m) square(x[i, j]))
operator stencil(x[n, m]) -> [n, m]
  out[i, j] = (x[i - 1, j] or 0) + (x[i + 1, j] or 1) + 2 * x[i, j] + (x[i, j - 2] or x[i, j]) + (x[i, j + 1] or 3)
operator inside(x[n, m]) -> [n, m]
  out[i, j] = valid(x[i - 1, j + 2])
operator window(x[n]) -> [n]
  out[i] = max(t < 3) (x[i + t - 1] or -inf)
operator reversed(x[n, m]) -> [n, m]
  out[i, j] = (x[i, m - 1 - j] or 0) + (x[i, 3 - j] or 5)
operator triangle(x[n, m]) -> [n, m]
  out[i, j] = if i < j then x[i, j] else 2
operator middle(x[n, m]) -> [n, m]
  out[i, j] = if j >= 2 && (j < 5 || j == 6) && !(i == 1) then (x[i, j - 2] or 9) else -x[i, j]
operator many(x[n], y[n], z[n]) -> [n]
  out[i] = max(x[i], y[i], min(z[i], 0)) + hard_swish(x[i])
operator taken(x[n, m], integer at[k]) -> [k, m]
  out[i, j] = x[at[i], j] * 2
operator both_taken(x[n, m], integer at[m]) -> [m]
  out[j] = x[at[j], j] + 1
operator two_widths(x[A.., n], y[A.., m]) -> [A.., n]
  let mean[I.. < A] = (sum(t < n) x[I.., t]) / n
  let top[I.. < A] = max(t < m) y[I.., t]
  let moved[I.. < A, j < m] = y[I.., j] * mean[I..]
  out[I.., i] = (x[I.., i] - mean[I..]) / top[I..] + moved[I.., 1] * x[I.., n - 1 - i]
operator product_of(a[m, k], b[n, k]) -> [m, n]
  out[i, j] = sum(t < k) a[i, t] * b[j, t]
operator convolution(x[c, n], w[d, c, k]) -> [d, n]
  out[o, i] = sum(p < c, t < k) w[o, p, t] * (x[p, i + t - 1] or 0)
operator halves(x[n]; k: int) -> [n]
  out[i] = x[i] / k + sum(t < n) (x[t] - x[i])
)";

TEST(DefinitionKernel, ComputesOperatorsOfAUser) {
  const OperatorRegistry own = value_of(OperatorRegistry::parse(own_operators, "own.op", &registry()));
  const std::vector<std::string> graphs = {
      "input x f32[3, 700]\ninput s f32[]\noutput swish(x, s)\n",
      "input x f32[]\ninput s f32[]\noutput swish(x, s)\n",
      "input x f32[5, 1300]\noutput rows(x)\n",
      "input x f32[40, 3]\noutput rows(x)\n",
      "input x f32[2, 3, 1]\noutput rows(x)\n",
      "input x f32[3000, 16]\noutput rows(x)\n",
      "input x f32[3, 700, 17]\noutput rows(x)\n",
      "input x f32[1030, 100]\noutput rows(x)\n",
      "input x f32[5000, 2]\noutput standard(x)\n",
      "input x f32[1100, 33]\noutput standard(x)\n",
      "input x f32[2, 600, 16]\noutput across(x)\n",
      "input x f32[200, 30]\noutput columns(x)\n",
      "input x f32[3, 2000]\noutput columns(x)\n",
      "input x f32[3, 1100]\noutput least(x)\n",
      "input x f32[1100, 3]\noutput least(x)\n",
      "input x f32[9, 12]\noutput product(x)\n",
      "input x f32[17, 900]\noutput norm(x)\n",
      "input x f32[1, 1]\noutput norm(x)\n",
      "input x f32[4, 1100]\noutput stencil(x)\n",
      "input x f32[900, 3]\noutput stencil(x)\n",
      "input x f32[1, 1]\noutput stencil(x)\n",
      "input x f32[4, 600]\noutput inside(x)\n",
      "input x f32[1000]\noutput window(x)\n",
      "input x f32[1]\noutput window(x)\n",
      "input x f32[5, 600]\noutput reversed(x)\n",
      "input x f32[30, 40]\noutput triangle(x)\n",
      "input x f32[4, 20]\noutput middle(x)\n",
      "input x f32[600]\ninput y f32[600]\ninput z f32[600]\noutput many(x, y, z)\n",
      "input x f32[137, 24]\ninput y f32[137, 1000]\noutput two_widths(x, y)\n",
      "input x f32[300, 1000]\ninput y f32[300, 16]\noutput two_widths(x, y)\n",
      "input x f32[3, 70, 16]\ninput y f32[3, 70, 2100]\noutput two_widths(x, y)\n",
      "input x f32[40, 2100]\ninput y f32[40, 15]\noutput two_widths(x, y)\n",
      "input x f32[2, 16]\ninput y f32[2, 1024]\noutput two_widths(x, y)\n",
      "input x f32[0, 16]\ninput y f32[0, 20]\noutput two_widths(x, y)\n",
      "input x f32[8, 30]\ninput at i64[5]\noutput taken(x, at)\n",
      "input x f32[8, 30]\ninput at i32[5]\noutput taken(x, at)\n",
      "input x f32[2, 30]\ninput at i64[50]\noutput taken(x, at)\n",
      "input x f32[8, 30]\ninput at i64[30]\noutput both_taken(x, at)\n",
      "input a f32[7, 600]\ninput b f32[9, 600]\noutput product_of(a, b)\n",
      "input a f32[700, 3]\ninput b f32[600, 3]\noutput product_of(a, b)\n",
      "input x f32[3, 600]\ninput w f32[4, 3, 3]\noutput convolution(x, w)\n",
      "input x f32[70]\noutput halves(x; k=3)\n",
      "input x f32[3, 0]\noutput least(x)\n",
      "input x f32[3, 0]\noutput product(x)\n",
      "input x f32[0, 3]\noutput columns(x)\n",
      "input x f32[0, 5]\noutput norm(x)\n",
      "input a f32[2, 0]\ninput b f32[3, 0]\noutput product_of(a, b)\n",
      "input x f32[1024]\noutput window(x)\n",
      "input x f32[1025]\noutput window(x)\n",
      "input x f32[1023]\noutput window(x)\n",
      "input x f32[3, 1025]\ninput s f32[]\noutput swish(x, s)\n",
      "input x f32[4, 1024]\noutput rows(x)\n",
  };
  for (const std::string& graph : graphs)
    for (const int threads : {1, 3}) expect_like_the_reference(graph, own, threads);
}

/// A condition on places i and j: comparisons of forms that grow and fall, by steps of 1 and more, and what joins them.
std::string drawn_condition(Random& random, int depth) {
  if (depth > 0 && random.below(3) != 0) {
    const std::string left = drawn_condition(random, depth - 1);
    switch (random.below(3)) {
      case 0:
        return "!(" + left + ")";
      case 1:
        return "(" + left + " && " + drawn_condition(random, depth - 1) + ")";
      default:
        return "(" + left + " || " + drawn_condition(random, depth - 1) + ")";
    }
  }
  const auto number = [&](std::size_t below) { return std::to_string(random.below(below)); };
  std::string form = number(3) + " * i + " + number(5) + " * j";
  if (random.below(2) == 0) form = number(3) + " * i - " + number(5) + " * j";
  const char* const comparisons[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
  const std::string sign = random.below(2) == 0 ? "" : "0 - ";
  return form + comparisons[random.below(std::size(comparisons))] + sign + number(2500);
}

// The borders of the parts in which a condition holds are computed, not looked for.
TEST(DefinitionKernel, DecidesConditionsWhereTheyChange) {
  for (int round = 0; round < 120; ++round) {
    Random random(11, std::to_string(round));
    const std::string condition = drawn_condition(random, 3), inner = drawn_condition(random, 1);
    const std::string text = "operator drawn(x[n, m]) -> [n, m]\n  out[i, j] = if " + condition +
                             " then x[i, j] else (if " + inner + " then 2 * x[i, j] else 1 - x[i, j])\n";
    SCOPED_TRACE(text);
    const OperatorRegistry own = value_of(OperatorRegistry::parse(text, "own.op", &registry()));
    for (const char* shape : {"[3, 2100]", "[1100, 2]", "[40, 30]"})
      expect_like_the_reference(std::string("input x f32") + shape + "\noutput drawn(x)\n", own, 1 + round % 2);
  }
}

TEST(DefinitionKernel, ComputesRecurrences) {
  std::string text;
  for (const char* name : {"rnn.op", "scans.op"}) {
    std::ifstream file(std::string(TASO_TEST_RECURRENCES) + "/" + name);
    std::stringstream all;
    all << file.rdbuf();
    text += all.str();
  }
  // Rows in each step: of their means, and without these.
  text += R"(
operator centred_steps(x[n, b, c]) -> [n, b, c]
  "Each step adds to what was left of the last one when its mean was taken away."
  let s[t < n, i < b, j < c] = x[t, i, j] + (h[t - 1, i, j] or 0)
  let mean[t < n, i < b] = (sum(k < c) s[t, i, k]) / c
  let h[t < n, i < b, j < c] = (s[t, i, j] - mean[t, i]) * 2
  out[t, i, j] = h[t, i, j]
)";
  const OperatorRegistry own = value_of(OperatorRegistry::parse(text, "recurrences", &registry()));
  const std::vector<std::string> graphs = {
      "input x f32[9, 40]\noutput cumsum(x)\n",
      "input x f32[1, 40]\noutput cumsum(x)\n",
      "input x f32[70]\noutput cumsum_backwards(x)\n",
      "input x f32[5, 3]\ninput s f32[3]\noutput cumsum_from(x, s)\n",
      "input x f32[4, 2, 3]\ninput w f32[3, 5]\ninput r f32[5, 5]\ninput h f32[2, 5]\noutput simple_rnn(x, w, r, h)\n",
      "input x f32[4, 2, 3]\ninput w f32[3, 20]\ninput r f32[5, 20]\ninput h f32[2, 5]\ninput c f32[2, 5]\n"
      "output simple_lstm(x, w, r, h, c)\n",
      "input x f32[4, 5, 3]\ninput w f32[3, 80]\ninput r f32[20, 80]\ninput h f32[5, 20]\ninput c f32[5, 20]\n"
      "output simple_lstm(x, w, r, h, c)\n",
      "input x f32[3, 300, 16]\ninput w f32[16, 64]\ninput r f32[16, 64]\ninput h f32[300, 16]\ninput c f32[300, 16]\n"
      "output simple_lstm(x, w, r, h, c)\n",
      "input x f32[3, 300, 16]\noutput centred_steps(x)\n",
      "input x f32[4, 5, 40]\noutput centred_steps(x)\n",
      "input x f32[4, 2, 3]\ninput w f32[3, 15]\ninput r f32[5, 15]\ninput h f32[2, 5]\noutput simple_gru(x, w, r, "
      "h)\n",
  };
  for (const std::string& graph : graphs)
    for (const int threads : {1, 2}) expect_like_the_reference(graph, own, threads);
}

TEST(DefinitionKernel, CarriesWhatIsNoNumber) {
  const OperatorRegistry own = value_of(OperatorRegistry::parse(own_operators, "own.op", &registry()));
  const Graph graph = value_of(parse_graph("input x f32[2, 3]\noutput least(x)\n", "test", own));
  const KernelRequest request = value_of(lower(graph, own, {})).steps[0].kernel->request;
  const KernelOffer offer = cpu::definition(request, own);
  ASSERT_NE(offer.kernel, nullptr) << offer.reason;
  const std::vector<float> x = {1, std::numeric_limits<float>::quiet_NaN(), 3, 4, -2, 6};
  std::string failure;
  const auto outputs = computed(*offer.kernel, request, {reinterpret_cast<const std::byte*>(x.data())}, failure);
  const auto* least = reinterpret_cast<const float*>(outputs[0].data());
  EXPECT_TRUE(std::isnan(least[0]));
  EXPECT_EQ(least[1], -2);
}

}  // namespace
}  // namespace taso::testing
