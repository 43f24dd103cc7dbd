#include "partition/products_apart.h"

#include <gtest/gtest.h>

#include "graph/rewrite.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

/// That a graph is what another text says.
void expect_is(Graph graph, const std::string& text) {
  Graph expected = graph_of(text);
  normalize(graph, registry());
  normalize(expected, registry());
  EXPECT_TRUE(graph.equals(expected)) << to_string(graph) << "is not\n" << to_string(expected);
}

void expect_apart(const std::string& text, const std::string& expected) {
  StrategyTable strategies = every_strategy();
  expect_is(value_of(products_apart(graph_of(text), strategies)), expected);
}

void expect_split_apart(const std::string& text, const std::string& expected) {
  StrategyTable strategies = every_strategy();
  expect_is(split_products_apart(graph_of(text), strategies), expected);
}

TEST(ProductsApart, LeaveTheBiasAndTheFunctionBehind) {
  const std::string head = "input x f32[4, 6]\nweight w f32[6, 8]\nweight b f32[8]\n";
  expect_apart(head + "output matmul_bias_act(x, w, b; act=relu)\n",
               head + "output relu(add(matmul(x, w), broadcast(b; shape=[4, 8])))\n");
  // What hides no product stays as it is.
  const std::string plain = head + "output softmax(add(matmul(x, w), broadcast(b; shape=[4, 8])); axis=-1)\n";
  expect_apart(plain, plain);
}

/// A slice of some columns.
std::string columns(const std::string& of, int rows, int begin, int size) {
  return "slice(" + of + "; starts=[0, " + std::to_string(begin) + "], sizes=[" + std::to_string(rows) + ", " +
         std::to_string(size) + "], steps=[1, 1])";
}

TEST(SplitProductsApart, HaveSlicesOfTheWeights) {
  const std::string head = "input x f32[4, 6]\nweight w f32[6, 9]\nweight b f32[9]\n";
  expect_split_apart(head + "s = split(matmul(x, w); axis=-1, sizes=[3, 6])\noutput relu(s.0), s.1, neg(b)\n",
                     head + "output relu(matmul(x, " + columns("w", 6, 0, 3) + ")), matmul(x, " +
                         columns("w", 6, 3, 6) + "), neg(b)\n");
  // Through what lies between: each part has its part of the bias, and of the shape.
  const auto part = [](int begin) {
    return "reshape(add(matmul(x, " + columns("w", 6, begin, 3) + "), " +
           columns("broadcast(b; shape=[4, 9])", 4, begin, 3) + "); shape=[1, 4, 3])";
  };
  expect_split_apart(head +
                         "s = split(reshape(add(matmul(x, w), broadcast(b; shape=[4, 9])); shape=[1, 4, 9]); "
                         "axis=-1, sizes=[3, 3, 3])\noutput s.0, s.1, s.2\n",
                     head + "output " + part(0) + ", " + part(3) + ", " + part(6) + "\n");
}

TEST(SplitProductsApart, StayWhereNoWeightIsCut) {
  const std::string head = "input x f32[4, 6]\nweight w f32[6, 8]\n";
  for (const char* const rest : {
           // Something else reads the product, too.
           "p = matmul(x, w)\ns = split(p; axis=-1, sizes=[4, 4])\noutput relu(p), s.0, s.1\n",
           // Rows are not those of weights.
           "s = split(matmul(x, w); axis=-2, sizes=[2, 2])\noutput s.0, s.1\n",
           "s = split(relu(x); axis=-1, sizes=[3, 3])\noutput s.0, s.1, matmul(x, w)\n",
       })
    expect_split_apart(head + rest, head + rest);
}

}  // namespace
}  // namespace taso
