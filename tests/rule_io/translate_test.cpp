// What the rules of the original's format say in ours.

#include "rule_io/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/rule_io/rule_file.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;

rule_io::TranslatedRule translated(const std::string& bytes) {
  const auto rules = rule_io::read_rule_collection(std::as_bytes(std::span(bytes)), "f.pb");
  EXPECT_TRUE(rules) << rules.error().to_string();
  return rule_io::translate(rules->front(), "r", "f.pb", registry());
}

/// The rule that a text says, in the canonical spelling.
std::string canonical_text(const std::string& text) {
  const auto rules = parse_rules("rule r: " + text, "expected", registry());
  EXPECT_TRUE(rules) << rules.error().to_string();
  return rules ? to_string(rules->front(), registry()) : "";
}

struct Case {
  const char* what;
  std::string file, text;
};

TEST(Translate, RulesSayWhatTheFormatMeans) {
  const std::vector<MappedOutput> one = {{1, 0, 1, 0}};
  for (const Case& c : {
           Case{"element-wise, any rank", rule_field({ewadd(-1, -2), relu(0)}, {ewmul(-2, -1), relu(0)}, one),
                "relu(add(v1, v2)) => relu(mul(v2, v1))"},
           Case{"axes count from the end at the stated rank",
                rule_field({relu(-1), relu(-2), concat(0, 3, {0, 1})}, {concat(0, 3, {-1, -2}), relu(0)},
                           {{2, 0, 1, 0}}),
                "concat(relu(v1), relu(v2); axis=-3) => relu(concat(v1, v2; axis=-3))"},
           Case{"activations stand around", rule_field({matmul(-1, -2, 3), relu(0)}, {matmul(-1, -2, 1), relu(0)}, one),
                "relu(tanh(matmul(v1, v2))) => relu(sigmoid(matmul(v1, v2)))"},
           Case{"a split undoes the last concatenation",
                rule_field({relu(-1), relu(-2)}, {concat(1, 2, {-1, -2}), relu(0), split(1, 1)},
                           {{0, 0, 2, 0}, {1, 0, 2, 1}}),
                "relu(v1), relu(v2) => s.0, s.1 where s = split(relu(concat(v1, v2; axis=-1)); axis=-1, "
                "sizes=[dim(v1, -1), dim(v2, -1)])"},
           Case{"through products: rows of the first, columns of the second",
                rule_field({matmul(-1, -2), matmul(-1, -3)}, {concat(1, 2, {-2, -3}), matmul(-1, 0), split(1, 1)},
                           {{0, 0, 2, 0}, {1, 0, 2, 1}}),
                "matmul(v1, v2), matmul(v1, v3) => s.0, s.1 where s = split(matmul(v1, concat(v2, v3; axis=-1)); "
                "axis=-1, sizes=[dim(v2, -1), dim(v3, -1)])"},
           Case{"the piece before the last concatenation is what was there",
                rule_field({concat(1, 2, {-1, -2}), relu(0), operator_message(9, {{-3, 0}})},
                           {concat(1, 2, {-1, -2, -3}), split(1, 0), relu(1), operator_message(9, {{1, 1}})},
                           {{1, 0, 2, 0}, {2, 0, 3, 0}}),
                "relu(concat(v1, v2; axis=-1)), sigmoid(v3) => relu(s.0), sigmoid(s.1) where s = split(concat(v1, v2, "
                "v3; axis=-1); axis=-1, sizes=[dim(v1, -1) + dim(v2, -1), dim(v3, -1)])"},
           Case{"three pieces",
                rule_field({relu(-1), relu(-2), relu(-3)}, {concat(0, 2, {-1, -2, -3}), relu(0), split(0, 1, 3)},
                           {{0, 0, 2, 0}, {1, 0, 2, 1}, {2, 0, 2, 2}}),
                "relu(v1), relu(v2), relu(v3) => s.0, s.1, s.2 where s = split(relu(concat(v1, v2, v3; axis=-2)); "
                "axis=-2, sizes=[dim(v1, -2), dim(v2, -2), dim(v3, -2)])"},
           Case{"two histories: the pieces must be equal",
                rule_field({ewadd(-1, -3), ewadd(-2, -4)},
                           {concat(1, 2, {-1, -2}), concat(1, 2, {-3, -4}), ewadd(0, 1), split(1, 2)},
                           {{0, 0, 3, 0}, {1, 0, 3, 1}}),
                "add(v1, v3), add(v2, v4) => s.0, s.1 where s = split(add(concat(v1, v2; axis=-1), concat(v3, v4; "
                "axis=-1)); axis=-1, sizes=[dim(v1, -1), dim(v2, -1)])"},
           Case{"a split of what the rule does not make takes any sizes",
                rule_field({matmul(-1, -2), split(1, 0), relu(1), operator_message(9, {{1, 1}})},
                           {split(1, -2), matmul(-1, 0), operator_message(18, {{-1, 0}, {0, 1}}, {{9, 0}}), relu(1),
                            operator_message(9, {{2, 0}})},
                           {{2, 0, 3, 0}, {3, 0, 4, 0}}),
                "relu(s.0), sigmoid(s.1) => relu(matmul(v1, t.0)), sigmoid(matmul(v1, t.1)) where s = "
                "split(matmul(v1, v2); axis=-1, sizes=[n1, n2]), t = split(v2; axis=-1, sizes=[n1, n2])"},
           Case{"two histories that nothing else makes equal: a condition",
                rule_field({concat(1, 2, {-1, -2}), concat(1, 2, {-3, -4}), ewadd(0, 1), split(1, 2), relu(3)},
                           {concat(1, 2, {-1, -2}), concat(1, 2, {-3, -4}), ewadd(0, 1), relu(2), split(1, 3)},
                           {{4, 0, 4, 0}}),
                "relu(s.0) => t.0 where s = split(add(concat(v1, v2; axis=-1), concat(v3, v4; axis=-1)); axis=-1, "
                "sizes=[dim(v1, -1), dim(v2, -1)]), t = split(relu(add(concat(v1, v2; axis=-1), concat(v3, v4; "
                "axis=-1))); axis=-1, sizes=[dim(v1, -1), dim(v2, -1)]) if dim(v1, -1) == dim(v3, -1), dim(v2, -1) == "
                "dim(v4, -1)"},
           Case{"transposes", rule_field({transpose(2, 2, -1), relu(0)}, {relu(-1), transpose(2, 2, 0)}, one),
                "relu(transpose(v1; perm=[1, 0])) => transpose(relu(v1); perm=[1, 0])"},
           Case{"SAME is one variable where the extents are one",
                rule_field({conv2d(-1, -2), conv2d(-1, -3), concat(1, 4, {0, 1})},
                           {concat(0, 4, {-2, -3}), conv2d(-1, 0)}, {{2, 0, 1, 0}}),
                "concat(conv2d(v1, v2; pads=p1), conv2d(v1, v3; pads=p1); axis=-3) => conv2d(v1, concat(v2, v3; "
                "axis=-4); pads=p1)"},
           Case{"and several where they are not",
                rule_field({conv2d(-1, -2, 0, 2), conv2d(0, -3)}, {conv2d(-1, -2), relu(0), conv2d(1, -3)},
                           {{1, 0, 2, 0}}),
                "conv2d(relu(conv2d(v1, v2; pads=p1)), v3; pads=p2) => conv2d(relu(conv2d(v1, v2; pads=p1)), v3; "
                "pads=p2)"},
           Case{"VALID is no padding",
                rule_field({conv2d(-1, -2, 1, 0, 2), relu(0)}, {conv2d(-1, -2, 1, 2, 2)}, {{1, 0, 0, 0}}),
                "relu(conv2d(v1, v2; strides=[2, 2])) => relu(conv2d(v1, v2; strides=[2, 2]))"},
           Case{"enlarge: the padding of stride 1, and the larger half of the zeros behind",
                rule_field({conv2d(-1, -2), relu(0)}, {enlarge(-2, 3), conv2d(-1, 0), relu(1)}, {{1, 0, 2, 0}}),
                "relu(conv2d(v1, v2; pads=[dim(v2, -2) // 2, dim(v2, -1) // 2, (dim(v2, -2) - 1) // 2, (dim(v2, -1) - "
                "1) // 2])) => relu(conv2d(v1, enlarge(v2; margin=[(3 - dim(v2, -2)) // 2, (3 - dim(v2, -1)) // 2, (3 "
                "- dim(v2, -2)) - (3 - dim(v2, -2)) // 2, (3 - dim(v2, -1)) - (3 - dim(v2, -1)) // 2]); "
                "pads=[1, 1, 1, 1]))"},
           Case{
               "a kernel that is pooled with SAME padding and stride 1 keeps its extents",
               rule_field({pool(true, -2, 3), conv2d(-1, 0), relu(1)},
                          {pool(true, -2, 3), enlarge(0, 5), conv2d(-1, 1), relu(2)}, {{2, 0, 3, 0}}),
               "relu(conv2d(v1, max_pool2d(v2; kernel=[3, 3], pads=[1, 1, 1, 1]); pads=[dim(v2, -2) // 2, dim(v2, -1) "
               "// "
               "2, (dim(v2, -2) - 1) // 2, (dim(v2, -1) - 1) // 2])) => relu(conv2d(v1, enlarge(max_pool2d(v2; "
               "kernel=[3, 3], pads=[1, 1, 1, 1]); margin=[(5 - dim(v2, -2)) // 2, (5 - dim(v2, -1)) // 2, 5 - dim(v2, "
               "-2) - (5 - dim(v2, -2)) // 2, 5 - dim(v2, -1) - (5 - dim(v2, -1)) // 2]); pads=[2, 2, 2, 2]))"},
           Case{"average pooling counts padding and is a convolution with a constant",
                rule_field({pool(false, -1, 3), relu(0)}, {constant(25, 3), conv2d(-1, 0), relu(1)}, {{1, 0, 2, 0}}),
                "relu(avg_pool2d_include(v1; kernel=[3, 3], pads=p1)) => relu(conv2d(v1, pool_kernel(; "
                "channels=dim(v1, -3), kernel=[3, 3]); pads=p1))"},
           Case{"maximum", rule_field({pool(true, -1, 2, 1, 2), relu(0)}, {relu(-1), pool(true, 0, 2, 1, 2)}, one),
                "relu(max_pool2d(v1; kernel=[2, 2], strides=[2, 2])) => max_pool2d(relu(v1); kernel=[2, 2], "
                "strides=[2, 2])"},
           Case{"identity of convolution: its own padding",
                rule_field({relu(-1)}, {constant(23, 3), conv2d(-1, 0), relu(1)}, {{0, 0, 2, 0}}),
                "relu(v1) => relu(conv2d(v1, conv_identity(; channels=dim(v1, -3), kernel=[3, 3]); "
                "pads=[1, 1, 1, 1]))"},
           Case{"identity of products", rule_field({relu(-1)}, {constant(22), matmul(-1, 0), relu(1)}, {{0, 0, 2, 0}}),
                "relu(v1) => relu(matmul(v1, matrix_identity(; size=dim(v1, -1))))"},
           Case{"ones have the shape of what they meet",
                rule_field({matmul(-1, -2)}, {constant(24), matmul(-1, -2), ewmul(1, 0)}, {{0, 0, 2, 0}}),
                "matmul(v1, v2) => mul(matmul(v1, v2), ones(; shape=[dim(v1, -2), dim(v2, -1)]))"},
           Case{"scalars", rule_field({scalar_mul(-1, -2), relu(0)}, {scalar_mul(-1, -2), relu(0)}, one),
                "relu(smul(v1, v2)) => relu(smul(v1, v2))"},
       }) {
    const rule_io::TranslatedRule rule = translated(c.file);
    EXPECT_EQ(rule.problem, "") << c.what;
    if (!rule.problem.empty()) continue;
    EXPECT_EQ(to_string(rule.rule, registry()), canonical_text(c.text)) << c.what;
    EXPECT_EQ(rule.rule.where.file, "f.pb");
  }
}

TEST(Translate, WhatHasNoCounterpartIsNamed) {
  const std::vector<MappedOutput> one = {{0, 0, 0, 0}};
  for (const Case& c : {
           Case{"operator", rule_field({relu(-1)}, {operator_message(4, {{-1, 0}})}, one),
                "target operator 0 (dropout): this operator has no counterpart in rules"},
           Case{"number", rule_field({operator_message(999, {{-1, 0}})}, {relu(-1)}, one),
                "source operator 0 (operator 999): this operator has no counterpart in rules"},
           Case{"inputs", rule_field({operator_message(16, {{-1, 0}})}, {relu(-1)}, one),
                "source operator 0 (ewadd): it has 1 inputs, expected 2"},
           Case{"missing", rule_field({operator_message(18, {{-1, 0}, {-2, 0}})}, {relu(-1)}, one),
                "source operator 0 (matmul): PM_ACTI is missing"},
           Case{"foreign", rule_field({operator_message(8, {{-1, 0}}, {{11, 0}})}, {relu(-1)}, one),
                "source operator 0 (relu): PM_AXIS is not one of its parameters"},
           Case{"unknown key", rule_field({operator_message(8, {{-1, 0}}, {{77, 0}})}, {relu(-1)}, one),
                "source operator 0 (relu): parameter 77 is not one of its parameters"},
           Case{"value", rule_field({matmul(-1, -2, 9)}, {relu(-1)}, one),
                "source operator 0 (matmul): PM_ACTI is 9, expected 0 (none), 1 (sigmoid), 2 (relu) or 3 (tanh)"},
           Case{"stride", rule_field({conv2d(-1, -2, 0, 0, 0)}, {relu(-1)}, one), "PM_STRIDE_H is 0, expected 1 to"},
           Case{"axis", rule_field({concat(2, 2, {-1, -2})}, {relu(-1)}, one), "PM_AXIS is 2, expected 0 to 1"},
           Case{"count",
                rule_field({operator_message(12, {{-1, 0}, {-2, 0}}, {{1, 3}, {11, 0}, {10, 2}})}, {relu(-1)}, one),
                "PM_NUM_INPUTS is 3, expected 2"},
           Case{"perm", rule_field({transpose(2, 3, -1)}, {relu(-1)}, one), "PM_PERM 3 is no permutation of 2 axes"},
           Case{"free input", rule_field({relu(-1)}, {ewadd(-1, -2)}, one),
                "target operator 0 (ewadd): it reads input -2, which the source does not have"},
           Case{"dangling", rule_field({relu(-1), relu(-2)}, {relu(-1)}, one),
                "source operator 1 (relu): nothing reads its result"},
           Case{"ranks", rule_field({conv2d(-1, -2)}, {concat(0, 2, {-1, -2})}, one),
                "target operator 0 (concat): its tensors have different ranks"},
           Case{"split of unknown rank",
                rule_field({relu(-1), relu(-2)}, {ewadd(-1, -2), split(1, 0)}, {{0, 0, 1, 0}, {1, 0, 1, 1}}),
                "target operator 1 (split): PM_AXIS counts from the front, but nothing in the rule tells the rank"},
           Case{"split of one piece",
                rule_field({matmul(-1, -2), relu(0), relu(0)}, {matmul(-1, -2), split(1, 0)},
                           {{1, 0, 1, 0}, {2, 0, 1, 1}}),
                "target operator 1 (split): no concatenation of the rule made its tensor along axis 1"},
           Case{"too many pieces",
                rule_field({relu(-1), relu(-2), relu(-2)}, {concat(1, 2, {-1, -2}), split(1, 0, 3)},
                           {{0, 0, 1, 0}, {1, 0, 1, 1}, {2, 0, 1, 2}}),
                "PM_NUM_OUTPUTS is 3, but its tensor was put together of 2 pieces"},
           Case{"SAME with a stride",
                rule_field({conv2d(-1, -2, 0, 0, 2)}, {enlarge(-2, 3), conv2d(-1, 0, 0, 0, 2)}, {{0, 0, 1, 0}}),
                "source operator 0 (conv2d): SAME padding with a stride depends on the image's extents"},
           Case{"SAME with a stride, of a kernel",
                rule_field({pool(true, -2, 3, 0, 2), conv2d(-1, 0), relu(1)},
                           {pool(true, -2, 3, 0, 2), enlarge(0, 5), conv2d(-1, 1), relu(2)}, {{2, 0, 3, 0}}),
                "source operator 0 (pool2d_max): SAME padding with a stride depends on the image's extents"},
           Case{"even identity", rule_field({relu(-1)}, {constant(23, 2), conv2d(-1, 0), relu(1)}, {{0, 0, 2, 0}}),
                "the identity of convolution needs a kernel with odd extents"},
           Case{"ones of unknown rank", rule_field({relu(-1)}, {constant(24), ewmul(-1, 0)}, {{0, 0, 1, 0}}),
                "target operator 0 (const_one): the rule does not tell its rank"},
           Case{"extents", rule_field({relu(-1)}, {constant(23, 3), constant(25, 5), ewadd(0, 1)}, {{0, 0, 2, 0}}),
                "target operator 2 (ewadd): extents "},
       }) {
    const rule_io::TranslatedRule rule = translated(c.file);
    EXPECT_THAT(rule.problem, HasSubstr(c.text)) << c.what;
    EXPECT_EQ(rule.problem.find('\n'), std::string::npos) << c.what;
    EXPECT_EQ(rule.rule.name, "r");
  }
}

// Two hundred operators, each reading the one before twice: what they stand for as trees has 2^200 nodes.
TEST(Translate, SharingIsNotUnfolded) {
  constexpr int count = 190;
  std::vector<std::string> sums = {ewadd(-1, -1)}, left, both;
  for (int i = 1; i < count; ++i) sums.push_back(ewadd(i - 1, i - 1));
  (void)translated(rule_field(sums, {relu(-1)}, {{count - 1, 0, 0, 0}}));
  // A split of what no concatenation made, seen through all of it.
  std::vector<std::string> product = {matmul(-1, -2)};
  for (int i = 1; i < count; ++i) product.push_back(ewadd(i - 1, i - 1));
  product.push_back(split(1, count - 1));
  product.push_back(relu(count));
  (void)translated(rule_field(product, {relu(-1)}, {{count + 1, 0, 0, 0}}));
  // Two histories of 2^90 pieces side by side.
  for (int i = 0; i < 90; ++i) both.push_back(i == 0 ? concat(1, 2, {-1, -1}) : concat(1, 2, {i - 1, i - 1}));
  for (int i = 90; i < 180; ++i) both.push_back(i == 90 ? concat(1, 2, {-2, -2}) : concat(1, 2, {i - 1, i - 1}));
  both.push_back(ewadd(89, 179));
  both.push_back(split(1, 180));
  both.push_back(relu(181));
  const rule_io::TranslatedRule rule = translated(rule_field(both, {relu(-1)}, {{182, 0, 0, 0}}));
  EXPECT_THAT(rule.problem, HasSubstr("no concatenation of the rule made its tensor"));
}

TEST(Translate, EveryChangedByteIsARuleAProblemOrAnError) {
  const std::string file =
      rule_field({conv2d(-1, -2, 0, 2), conv2d(-1, -3), concat(1, 4, {0, 1})},
                 {concat(0, 4, {-2, -3}), conv2d(-1, 0), split(1, 1), concat(1, 4, {2, 2})}, {{2, 0, 3, 0}}) +
      rule_field({enlarge(-1, 3), transpose(2, 2, -2), relu(1)}, {constant(23, 3), constant(22), matmul(-2, 1)},
                 {{2, 0, 2, 0}});
  std::size_t rules = 0, problems = 0, errors = 0;
  for (std::size_t i = 0; i < file.size(); ++i)
    for (const int change : {1, 2, 4, 8, 16, 0x7f, 0x80, 0xff}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ change);
      const auto read = rule_io::read_rule_collection(std::as_bytes(std::span(changed)), "f.pb");
      if (!read) {
        ++errors;
        continue;
      }
      for (const rule_io::FileRule& rule : *read)
        ++(rule_io::translate(rule, "r", "f.pb", registry()).problem.empty() ? rules : problems);
    }
  EXPECT_GT(rules, 0U);
  EXPECT_GT(problems, 100U);
  EXPECT_GT(errors, 100U);
}

}  // namespace
}  // namespace taso
