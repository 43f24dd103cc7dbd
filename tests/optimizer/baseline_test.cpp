#include "optimizer/baseline.h"

#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

/// The baseline of one text is the graph of another.
void expect_baseline(const std::string& text, const std::string& expected) {
  const RuleIndex rules(test_rules(), registry());
  const Baseline baseline = value_of(make_baseline(graph_of(text), rules, registry()));
  Graph wanted = graph_of(expected);
  normalize(wanted, registry());
  EXPECT_TRUE(baseline.graph.equals(wanted)) << to_string(baseline.graph) << "instead of\n" << to_string(wanted);
}

TEST(Baseline, FusesProductBiasAndActivation) {
  expect_baseline(R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
output relu(add(broadcast(b; shape=[2, 4]), matmul(x, w)))
)",
                  R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
output matmul_bias_act(x, w, b; act=relu)
)");
}

TEST(Baseline, LeavesSiblingsApart) {
  const std::string siblings = R"(
input x f32[1, 3]
weight w f32[3, 4]
weight v f32[3, 4]
output matmul(x, w), matmul(x, v)
)";
  expect_baseline(siblings, siblings);
}

TEST(Baseline, DoesNotComputeAnythingTwice) {
  const std::string shared = R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
m = matmul(x, w)
output m
output add(m, broadcast(b; shape=[2, 4]))
)";
  expect_baseline(shared, shared);
}

TEST(Baseline, DropsWhatComputesNothing) {
  const RuleIndex rules(value_of(load_rules(TASO_SOURCE_DIR "/specs/simplify_rules/default.rules", registry())),
                        registry());
  const Graph graph = graph_of(R"(
input x f32[2, 3]
weight zeros f32[3] = [0.0, 0.0, 0.0]
weight ones f32[2, 3] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
weight most f32[3] = [0.0, 0.0, 1.0]
a = add(broadcast(zeros; shape=[2, 3]), mul(x, ones))
output add(sub(div(a, ones), broadcast(zeros; shape=[2, 3])), broadcast(most; shape=[2, 3]))
)");
  const Baseline baseline = value_of(make_baseline(graph, rules, registry()));
  EXPECT_EQ(baseline.applications.size(), 4U);
  Graph wanted = graph_of(R"(
input x f32[2, 3]
weight most f32[3] = [0.0, 0.0, 1.0]
output add(x, broadcast(most; shape=[2, 3]))
)");
  normalize(wanted, registry());
  EXPECT_TRUE(baseline.graph.equals(wanted)) << to_string(baseline.graph);
}

/// What the shipped simplifying rules make of a graph.
void expect_simplified(const std::string& text, const std::string& expected) {
  std::vector<Substitution> loaded;
  for (const std::string file : {"default", "fusing", "recognition", "sharing"})
    for (Substitution& rule :
         value_of(load_rules(TASO_SOURCE_DIR "/specs/simplify_rules/" + file + ".rules", registry())))
      loaded.push_back(std::move(rule));
  const RuleIndex rules(std::move(loaded), registry());
  const Baseline baseline = value_of(make_baseline(graph_of(text), rules, registry()));
  Graph wanted = graph_of(expected);
  normalize(wanted, registry());
  EXPECT_TRUE(baseline.graph.equals(wanted)) << to_string(baseline.graph) << "instead of\n" << to_string(wanted);
}

TEST(Baseline, RecognizesFunctionsOfOneElement) {
  const std::string input = "input x f32[2, 3]\n";
  const auto number = [](const std::string& name, const std::string& value) {
    return "weight " + name + " f32[] = [" + value + "]\n" + name + "s = broadcast(" + name + "; shape=[2, 3])\n";
  };
  const std::string numbers = number("half", "0.5") + number("one", "1.0") + number("root", "1.4142135") +
                              number("three", "3.0") + number("six", "6.0") + number("share", "0.044715") +
                              number("slope", "0.7978846") + number("steep", "1.702");
  const std::string error = "e = add(erf(div(x, roots)), ones)\n";
  const std::string cube = "c = pow(x, threes)\n";
  const std::string bend = "t = add(tanh(mul(add(x, mul(c, shares)), slopes)), ones)\n";
  const std::vector<std::pair<std::string, std::string>> spelled = {
      {"output mul(x, sigmoid(x))", "silu"},
      {"output mul(x, sigmoid(mul(x, steeps)))", "quick_gelu"},
      {"output mul(x, hard_sigmoid(x))", "hard_swish"},
      {"output div(mul(x, clip(add(x, threes); min=0.0, max=6.0)), sixs)", "hard_swish"},
      {"output mul(x, div(clip(add(x, threes); min=0.0, max=6.0), sixs))", "hard_swish"},
      {"output div(clip(add(x, threes); min=0.0, max=6.0), sixs)", "hard_sigmoid"},
      {error + "output mul(mul(x, e), halfs)", "gelu"},
      {error + "output mul(x, mul(e, halfs))", "gelu"},
      {error + "output mul(mul(x, halfs), e)", "gelu"},
      {cube + bend + "output mul(mul(x, halfs), t)", "gelu_tanh"},
      {"c = mul(mul(x, x), x)\n" + bend + "output mul(mul(x, halfs), t)", "gelu_tanh"},
  };
  for (const auto& [text, function] : spelled)
    expect_simplified(input + numbers + text + "\n", input + "output " + function + "(x)\n");
}

TEST(Baseline, RecognizesNormalizationsOfRows) {
  const std::string input = "input x f32[2, 3]\nweight w f32[3]\nweight b f32[3]\n";
  const std::string constants = "weight epsilon f32[] = [0.25]\nweight two f32[] = [2.0]\nweight one f32[] = [1.0]\n";
  const std::string root = "r = sqrt(add(reduce_mean(s; axes=[-1]), broadcast(epsilon; shape=[2, 1])))\n";
  const std::string scaled = "broadcast(w; shape=[2, 3])";
  for (const std::string square : {"mul(x, x)", "pow(x, broadcast(two; shape=[2, 3]))"})
    for (const std::string unit : {"div(x, broadcast(r; shape=[2, 3]))",
                                   "mul(x, broadcast(div(broadcast(one; shape=[2, 1]), r); shape=[2, 3]))"})
      expect_simplified(
          input + constants + "s = " + square + "\n" + root + "output mul(" + scaled + ", " + unit + ")\n",
          input + "output rms_norm(x, w; epsilon=0.25)\n");
  for (const std::string square : {"mul(d, d)", "pow(d, broadcast(two; shape=[2, 3]))"})
    expect_simplified(
        input + constants + "d = sub(x, broadcast(reduce_mean(x; axes=[-1]); shape=[2, 3]))\ns = " + square + "\n" +
            root + "output add(mul(div(d, broadcast(r; shape=[2, 3])), " + scaled + "), broadcast(b; shape=[2, 3]))\n",
        input + "output layer_norm(x, w, b; epsilon=0.25)\n");
}

// As torch exports it: groups are channels, whose scale and shift stand behind.
TEST(Baseline, RecognizesNormalizationsOfGroups) {
  const std::string input = "input x f32[2, 6, 4, 5]\nweight w f32[6, 1, 1]\nweight b f32[6, 1, 1]\n";
  const std::string numbers =
      "weight one f32[3] = [1.0, 1.0, 1.0]\nweight none f32[3] = [0.0, 0.0, 0.0]\n"
      "weight v f32[6]\nweight c f32[6]\n";
  const std::string unit =
      "u = reshape(group_norm(reshape(x; shape=[2, 3, 40]), one, none; groups=3, epsilon=0.25); shape=[2, 6, 4, 5])\n";
  const std::string ones = "fill(; shape=[6], value=1.0)", zeros = "fill(; shape=[6], value=0.0)";
  const auto normed = [&](const std::string& scale, const std::string& shift) {
    return input + "output group_norm(x, " + scale + ", " + shift + "; groups=3, epsilon=0.25)\n";
  };
  const std::string scaled = "mul(u, broadcast(w; shape=[2, 6, 4, 5]))", shift = "broadcast(b; shape=[2, 6, 4, 5])";
  const std::string w = "reshape(w; shape=[6])", b = "reshape(b; shape=[6])";
  expect_simplified(input + numbers + unit + "output u\n", normed(ones, zeros));
  expect_simplified(input + numbers + unit + "output " + scaled + "\n", normed(w, zeros));
  expect_simplified(input + numbers + unit + "output add(u, " + shift + ")\n", normed(ones, b));
  expect_simplified(input + numbers + unit + "output add(" + scaled + ", " + shift + ")\n", normed(w, b));
  // Groups of pixels are none of channels.
  const std::string other = input + numbers +
                            "output reshape(group_norm(reshape(x; shape=[4, 3, 20]), one, none; groups=3, "
                            "epsilon=0.25); shape=[2, 6, 4, 5])\n";
  expect_simplified(other, other);
}

TEST(Baseline, RecognizesRotaryEmbeddings) {
  const std::string input =
      "input x f32[2, 4, 5, 6]\ninput c f32[1, 1, 5, 6]\ninput s f32[1, 1, 5, 6]\n"
      "weight cw f32[5, 6]\nweight sw f32[5, 6]\ninput y f32[2, 4, 5, 9]\ninput z f32[2, 5, 4, 6]\n"
      "input co f32[2, 1, 5, 6]\ninput so f32[2, 1, 5, 6]\n";
  const std::string halves = "slice(x; starts=[0, 0, 0, 0], sizes=[2, 4, 5, 3], steps=[1, 1, 1, 1])";
  const std::string turned =
      "concat(neg(slice(x; starts=[0, 0, 0, 3], sizes=[2, 4, 5, 3], steps=[1, 1, 1, 1])), " + halves + "; axis=-1)";
  const auto spelled = [](const std::string& x, const std::string& half, const std::string& c, const std::string& s) {
    const std::string shape = "; shape=[2, 4, 5, 6])";
    return "add(mul(" + x + ", broadcast(" + c + shape + "), mul(" + half + ", broadcast(" + s + shape + "))";
  };
  // Tables for all heads, that follow from constants or are computed, and tables for each batch.
  expect_simplified(input + "output " + spelled("x", turned, "cw", "sw") + "\n",
                    input + "output rotary_embedding(x, cw, sw; columns=2)\n");
  expect_simplified(
      input + "output " + spelled("x", turned, "c", "s") + "\n",
      input + "output rotary_embedding(x, reshape(c; shape=[5, 6]), reshape(s; shape=[5, 6]); columns=2)\n");
  expect_simplified(input + "output " + spelled("x", turned, "co", "so") + "\n",
                    input +
                        "output rotary_embedding(x, reshape(co; shape=[2, 5, 6]), reshape(so; shape=[2, 5, 6]); "
                        "columns=2)\n");
  // Halves by split.
  expect_simplified(input + "p = split(x; axis=-1, sizes=[3, 3])\noutput " +
                        spelled("x", "concat(neg(p.1), p.0; axis=-1)", "cw", "sw") + "\n",
                    input + "output rotary_embedding(x, cw, sw; columns=2)\n");
  // The first elements of each head alone.
  expect_simplified(input +
                        "p = split(y; axis=-1, sizes=[6, 3])\nq = split(p.0; axis=-1, sizes=[3, 3])\noutput concat(" +
                        spelled("p.0", "concat(neg(q.1), q.0; axis=-1)", "cw", "sw") + ", p.1; axis=-1)\n",
                    input + "output rotary_embedding(y, cw, sw; columns=2)\n");
  // The half that is not negated is the wrong one.
  const std::string other = input + "p = split(x; axis=-1, sizes=[3, 3])\noutput " +
                            spelled("x", "concat(neg(p.0), p.1; axis=-1)", "cw", "sw") + "\n";
  expect_simplified(other, other);
}

TEST(Baseline, RecognizesSoftmax) {
  expect_simplified(R"(
input x f32[2, 3]
d = exp(sub(x, broadcast(reduce_max(x; axes=[-1]); shape=[2, 3])))
output div(d, broadcast(reduce_sum(d; axes=[-1]); shape=[2, 3]))
)",
                    "input x f32[2, 3]\noutput softmax(x; axis=-1)\n");
}

TEST(Baseline, FusesFunctionsBehindAReshape) {
  const std::string input = "input x f32[4, 3]\nweight w f32[3, 5]\nweight b f32[5]\n";
  for (const std::string function : {"relu", "gelu", "gelu_tanh", "silu", "quick_gelu"})
    expect_simplified(input + "output " + function + "(reshape(matmul_bias_act(x, w, b); shape=[2, 2, 5]))\n",
                      input + "output reshape(matmul_bias_act(x, w, b; act=" + function + "); shape=[2, 2, 5])\n");
}

TEST(Baseline, FoldsANumberIntoTheWeightsOfAProduct) {
  expect_simplified(R"(
input x f32[4, 3]
weight w f32[3, 5]
weight s f32[] = [0.5]
output mul(matmul(x, w), broadcast(s; shape=[4, 5]))
)",
                    R"(
input x f32[4, 3]
weight w f32[3, 5]
output matmul(x, mul(w, fill(; shape=[3, 5], value=0.5)))
)");
}

TEST(Baseline, FoldsTheScaleOfAttentionIntoTheWeightsOfQueries) {
  const std::string input = R"(
input x f32[2, 3, 4]
input k f32[2, 2, 2, 3]
weight w f32[4, 4]
weight b f32[4]
weight c f32[] = [0.5]
s = broadcast(c; shape=[2, 2, 3, 3])
t = broadcast(c; shape=[2, 2, 3, 2])
)";
  const auto heads = [](const std::string& rows) {
    return "transpose(reshape(" + rows + "; shape=[2, 3, 2, 2]); perm=[0, 2, 1, 3])";
  };
  for (const std::string op : {"mul", "div"}) {
    const std::string weights = op + "(w, fill(; shape=[4, 4], value=0.5))";
    const std::string bias = op + "(b, fill(; shape=[4], value=0.5))";
    const std::vector<std::pair<std::string, std::string>> rows = {
        {"matmul(x, w)", "matmul(x, " + weights + ")"},
        {"matmul_bias_act(x, w, b)", "matmul_bias_act(x, " + weights + ", " + bias + ")"},
        {"add(matmul(x, w), broadcast(b; shape=[2, 3, 4]))",
         "add(matmul(x, " + weights + "), broadcast(" + bias + "; shape=[2, 3, 4]))"}};
    for (const auto& [before, after] : rows) {
      expect_simplified(input + "output " + op + "(matmul(" + heads(before) + ", k), s)\n",
                        input + "output matmul(" + heads(after) + ", k)\n");
      if (op == "mul")
        expect_simplified(input + "output matmul(mul(" + heads(before) + ", t), k)\n",
                          input + "output matmul(" + heads(after) + ", k)\n");
    }
  }
}

TEST(Baseline, LeavesTheScaleOfAttentionWhereQueriesAreReadTwiceOrAreNoProductOfWeights) {
  const std::string input = R"(
input x f32[2, 3, 4]
input k f32[2, 2, 2, 3]
input v f32[4, 4]
weight w f32[4, 4]
weight c f32[] = [0.5]
s = broadcast(c; shape=[2, 2, 3, 3])
)";
  const std::string twice = input +
                            "q = matmul(x, w)\noutput q\n"
                            "output mul(matmul(transpose(reshape(q; shape=[2, 3, 2, 2]); perm=[0, 2, 1, 3]), k), s)\n";
  expect_simplified(twice, twice);
  const std::string computed =
      input + "output mul(matmul(transpose(reshape(matmul(x, v); shape=[2, 3, 2, 2]); perm=[0, 2, 1, 3]), k), s)\n";
  expect_simplified(computed, computed);
}

TEST(Baseline, FoldsTheScaleOfChannelsIntoTheWeightsOfAProduct) {
  const std::string input = R"(
input x f32[2, 4, 5, 3]
weight w f32[3, 6]
weight b f32[6]
weight s f32[6, 1, 1]
)";
  const std::string scaled = "mul(w, broadcast(reshape(s; shape=[6]); shape=[3, 6]))";
  expect_simplified(
      input + "output mul(transpose(matmul(x, w); perm=[0, 3, 1, 2]), broadcast(s; shape=[2, 6, 4, 5]))\n",
      input + "output transpose(matmul(x, " + scaled + "); perm=[0, 3, 1, 2])\n");
  expect_simplified(
      input + "output mul(transpose(matmul_bias_act(x, w, b); perm=[0, 3, 1, 2]), broadcast(s; shape=[2, 6, 4, 5]))\n",
      input + "output transpose(matmul_bias_act(x, " + scaled +
          ", mul(b, reshape(s; shape=[6]))); perm=[0, 3, 1, 2])\n");
}

TEST(Baseline, LeavesFunctionsOfTwoTensorsApart) {
  const std::string text = R"(
input x f32[2, 3]
input y f32[2, 3]
output mul(y, sigmoid(x))
)";
  expect_simplified(text, text);
}

TEST(Baseline, LeavesTwoContractionsApart) {
  const RuleIndex rules(value_of(parse_rules(R"(
rule merge_weights:
  matmul(matmul(x, u), v) => matmul(x, matmul(u, v))
  proof axioms
)",
                                             "test", registry())),
                        registry());
  const Graph graph = graph_of(R"(
input x f32[2, 9]
weight u f32[9, 9]
weight v f32[9, 2]
output matmul(matmul(x, u), v)
)");
  const Baseline baseline = value_of(make_baseline(graph, rules, registry()));
  EXPECT_TRUE(baseline.applications.empty());
}

/// Rules by which a residual becomes part of a convolution.
RuleIndex residual_rules() {
  return RuleIndex(value_of(parse_rules(R"(
rule fuse_residual:
  add(conv2d_bias_act(x, k, b; pads=p), y) => conv2d_bias_add_act(x, k, b, y; pads=p)
  proof axioms
rule fuse_relu:
  relu(conv2d_bias_add_act(x, k, b, y; pads=p)) => conv2d_bias_add_act(x, k, b, y; pads=p, act=relu)
  proof axioms
rule add_identity:
  add(conv2d_bias_act(x, k, b; pads=[1, 1, 1, 1]), x)
    => conv2d_bias_act(x, add(k, conv_identity(; channels=dim(x, -3), kernel=[3, 3])), b; pads=[1, 1, 1, 1])
  proof axioms
)",
                                        "test", registry())),
                   registry());
}

void expect_residual_baseline(const std::string& text, const std::string& expected) {
  const Baseline baseline = value_of(make_baseline(graph_of(text), residual_rules(), registry()));
  Graph wanted = graph_of(expected);
  normalize(wanted, registry());
  EXPECT_TRUE(baseline.graph.equals(wanted)) << to_string(baseline.graph) << "instead of\n" << to_string(wanted);
}

TEST(Baseline, FusesAResidualAndTheActivationBehindIt) {
  expect_residual_baseline(R"(
input x f32[1, 4, 5, 5]
input y f32[1, 6, 3, 3]
weight k f32[6, 4, 3, 3]
weight b f32[6]
output relu(add(y, conv2d_bias_act(x, k, b)))
)",
                           R"(
input x f32[1, 4, 5, 5]
input y f32[1, 6, 3, 3]
weight k f32[6, 4, 3, 3]
weight b f32[6]
output conv2d_bias_add_act(x, k, b, y; act=relu)
)");
}

// A sum of x and a convolution of x by another kernel is not computed as written: that is left to the search.
TEST(Baseline, FusesAResidualThatIsTheImageAndKeepsItsKernel) {
  expect_residual_baseline(R"(
input x f32[1, 4, 5, 5]
weight k f32[4, 4, 3, 3]
weight b f32[4]
output add(conv2d_bias_act(x, k, b; pads=[1, 1, 1, 1]), x)
)",
                           R"(
input x f32[1, 4, 5, 5]
weight k f32[4, 4, 3, 3]
weight b f32[4]
output conv2d_bias_add_act(x, k, b, x; pads=[1, 1, 1, 1])
)");
}

TEST(Baseline, OfTwoConvolutionsOneIsTheResidualOfTheOther) {
  const std::string inputs = R"(
input x f32[1, 4, 5, 5]
weight k f32[6, 4, 3, 3]
weight l f32[6, 4, 1, 1]
weight b f32[6]
weight c f32[6]
)";
  const Baseline baseline = value_of(make_baseline(
      graph_of(inputs + "output add(conv2d_bias_act(x, k, b; pads=[1, 1, 1, 1]), conv2d_bias_act(x, l, c))\n"),
      residual_rules(), registry()));
  ASSERT_EQ(baseline.applications.size(), 1U);
  EXPECT_EQ(baseline.applications[0].rule, "fuse_residual");
}

// Kernels of sums read a broadcast as it is; the fused kernel would need it expanded.
TEST(Baseline, LeavesABroadcastToTheSum) {
  for (const char* small : {"input v f32[6, 1, 1]\n", "weight v f32[]\n"}) {
    const std::string text = std::string(small) + R"(
input x f32[1, 4, 5, 5]
weight k f32[6, 4, 3, 3]
weight b f32[6]
output add(conv2d_bias_act(x, k, b), broadcast(v; shape=[1, 6, 3, 3]))
)";
    expect_residual_baseline(text, text);
  }
}

// What a second reader needs is computed anyway: nothing is saved.
TEST(Baseline, LeavesAResidualWhereTheConvolutionIsReadTwice) {
  const std::string text = R"(
input x f32[1, 4, 5, 5]
input y f32[1, 6, 3, 3]
weight k f32[6, 4, 3, 3]
weight b f32[6]
c = conv2d_bias_act(x, k, b)
output c, add(c, y)
)";
  expect_residual_baseline(text, text);
}

TEST(Baseline, RecordsWhatItApplied) {
  const RuleIndex rules(test_rules(), registry());
  const Graph graph = graph_of(R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
output relu(add(matmul(x, w), broadcast(b; shape=[2, 4])))
)");
  const Baseline baseline = value_of(make_baseline(graph, rules, registry()));
  ASSERT_EQ(baseline.applications.size(), 2U);
  EXPECT_EQ(baseline.applications[0].rule, "fuse_matmul_bias");
  EXPECT_EQ(baseline.applications[1].rule, "fuse_matmul_relu");
}

}  // namespace
}  // namespace taso::testing
