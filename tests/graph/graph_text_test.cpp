#include "graph/graph_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random.h"
#include "tests/graph/fake_catalog.h"

namespace taso {
namespace {

constexpr const char* graph_text = R"(
input x "images:0" f32[2, 6]     # a comment
input u f32[?]
weight w f32[6, 3] = 0.25
weight v f32[3] = [-1, 2.5, 1e-3]
weight i i64[2] = [3, -4]
weight e f32[0, 2] = []
y = matmul(x, w)
a, b = split(relu(y); axis=-2, sizes=[1, 1])
s = split(x; axis=-1, sizes=[1, 2, 3])
o, p = opaque custom(a, u, i) f32[1, 3], other[?]
output add(a, o), clip(b; min=-inf, max=1)
output s.2, p, e, v
)";

TEST(GraphText, PrintsWhatParsesBack) {
  const FakeCatalog catalog;
  const Expected<Graph> graph = parse_graph(graph_text, "g", catalog);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_TRUE(graph->validate().ok());
  EXPECT_EQ(graph->outputs().size(), 6u);
  EXPECT_EQ(graph->node(graph->inputs()[0]).name, "images:0");
  const std::string text = to_text(*graph);
  const Expected<Graph> again = parse_graph(text, "again", catalog);
  ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << text;
  EXPECT_TRUE(again->equals(*graph)) << text;
  EXPECT_EQ(to_text(*again), text);
}

TEST(GraphText, WeightsWithoutContentsAreMadeFromTheirNames) {
  const FakeCatalog catalog;
  const auto a = parse_graph("weight a f32[8] output a", "g", catalog);
  const auto again = parse_graph("weight a f32[8] output a", "g", catalog);
  const auto b = parse_graph("weight b f32[8] output b", "g", catalog);
  ASSERT_TRUE(a.ok() && again.ok() && b.ok());
  EXPECT_TRUE(a->equals(*again));
  EXPECT_FALSE(a->equals(*b));
}

TEST(GraphText, WhatIsOnlyAShapeKeepsItsName) {
  const FakeCatalog catalog;
  const std::string text =
      "weight s f32[1000000, 100000] = ?\n"
      "weight w0 \"layer.0\" f32[2] = ?\n"
      "output s\n"
      "output w0\n";
  const auto graph = parse_graph(text, "g", catalog);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  EXPECT_EQ(to_text(*graph), text);
  const auto other =
      parse_graph("weight s f32[1000000, 100000] = ? weight w \"layer.1\" f32[2] = ? output s, w", "g", catalog);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->equals(*graph));
}

struct WrongGraph {
  const char* text;
  const char* message;
};

class GraphErrors : public testing::TestWithParam<WrongGraph> {};

TEST_P(GraphErrors, SaysWhatIsWrong) {
  const FakeCatalog catalog;
  const auto graph = parse_graph(GetParam().text, "g", catalog);
  ASSERT_FALSE(graph.ok()) << GetParam().text;
  EXPECT_EQ(graph.error().code, ErrorCode::bad_input);
  EXPECT_THAT(graph.error().to_string(), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, GraphErrors,
    testing::Values(
        WrongGraph{"output x", "g:1:8: 'x' is not defined"}, WrongGraph{"input x f33[1]", "unknown element type 'f33'"},
        WrongGraph{"input x f32[-1]", "unreasonable shape [-1]"},
        WrongGraph{"input x f32[99999999999, 99999999999]", "unreasonable shape"},
        WrongGraph{"input x f32[1,]", "expected an extent, found ']'"},
        WrongGraph{"input x f32", "expected '[' after f32, found the end of the file"},
        WrongGraph{"input x f32[1]\ninput x f32[1]", "g:2:7: 'x' is defined twice"},
        WrongGraph{"input output f32[1]", "'output' is a word of the language"},
        WrongGraph{"weight w f32[?]", "a weight cannot have type f32[?]"},
        WrongGraph{"weight w other[1]", "a weight cannot have type other[1]"},
        WrongGraph{"weight w f32[1000000, 100000]", "a weight cannot have type"},
        WrongGraph{"weight w f32[?] = ?", "a weight cannot have type f32[?]"},
        WrongGraph{"weight w \"v\" f32[2] = 1", "only a weight without contents (= ?) has a name in quotes"},
        WrongGraph{"weight w f32[2] = [1]", "f32[2] has 2 elements, here are 1"},
        WrongGraph{"weight w i64[1] = [1.5]", "expected an integer"},
        WrongGraph{"weight w f32[1] = [a]", "expected a number"},
        WrongGraph{"weight w i8[1] = [1]", "contents can be given for f16, bf16, f32, f64 and i64 only"},
        WrongGraph{"input x f32[2] output foo(x)", "unknown operator 'foo'"},
        WrongGraph{"input x f32[2] output relu(x, x)", "relu reads 1 tensor, here are 2"},
        WrongGraph{"input x f32[2] output relu(x; a=1)", "relu has no attribute 'a'; it has none"},
        WrongGraph{"input x f32[2] output clip(x; min=a)", "attribute min of clip must be a real number"},
        WrongGraph{"input x f32[2] output concat(x; axis=1.0)", "attribute axis of concat must be an integer"},
        WrongGraph{"input x f32[2] output concat(x)", "concat needs attribute axis"},
        WrongGraph{"input x f32[2] output split(x; axis=-1, sizes=[1, a]).0", "must be a list of integers"},
        WrongGraph{"input x f32[2]\nweight w f32[2] output matmul(x, w)", "g:2:24: matmul needs [m, k] and [k, n]"},
        WrongGraph{"input x f32[2] output split(x; axis=-1, sizes=[1, 1])", "has 2 outputs, choose one"},
        WrongGraph{"input x f32[2] output split(x; axis=-1, sizes=[1, 1]).2", "'split' has no output 2"},
        WrongGraph{"input x f32[2] output x.1", "'x' has no output 1"},
        WrongGraph{"input x f32[2] a, b = relu(x)", "2 names for 1 output"},
        WrongGraph{"input x f32[2] y = opaque f(x; a=1) f32[1]", "opaque nodes have no attributes"},
        WrongGraph{"input x f32[2] y relu(x)", "expected '=' after 'y', found 'relu'"},
        WrongGraph{"7", "expected 'input', 'weight', 'output' or NAME = ..., found '7'"}));

TEST(GraphText, SurvivesMutation) {
  const FakeCatalog catalog;
  Random random(2, "graph mutation");
  const std::string alphabet = " \n()[],;=.:-xwf32i64outputinputweight0129\"#?\x02";
  for (int round = 0; round < 3000; ++round) {
    std::string text = graph_text;
    for (std::uint64_t edit = 1 + random.below(4); edit > 0; --edit) {
      const std::size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0:
          text.erase(at, 1 + random.below(20));
          break;
        case 1:
          text.insert(at, 1, alphabet[random.below(alphabet.size())]);
          break;
        default:
          text[at] = alphabet[random.below(alphabet.size())];
      }
    }
    const auto graph = parse_graph(text, "g", catalog);
    if (!graph) {
      EXPECT_EQ(graph.error().code, ErrorCode::bad_input);
      EXPECT_GT(graph.error().where.line, 0) << graph.error().to_string();
      continue;
    }
    ASSERT_TRUE(graph->validate().ok());
  }
}

}  // namespace
}  // namespace taso
