// Reading the messages of a rule file, and what is said of files that are none.

#include "rule_io/rule_collection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/rule_io/rule_file.h"

namespace taso {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;

Expected<std::vector<rule_io::FileRule>> read(const std::string& bytes) {
  return rule_io::read_rule_collection(std::as_bytes(std::span(bytes)), "f.pb");
}

const std::string sound = rule_field({relu(-1), relu(0)}, {relu(-1)}, {{1, 0, 0, 0}});

TEST(RuleCollection, KeepsNumbers) {
  const auto rules = read(sound + rule_field({concat(1, 2, {-1, -7}), split(1, 0)}, {ewadd(-1, -7)}, {{1, 1, 0, 0}}));
  ASSERT_TRUE(rules) << rules.error().to_string();
  ASSERT_EQ(rules->size(), 2U);
  const rule_io::FileRule& rule = (*rules)[1];
  ASSERT_EQ(rule.source.size(), 2U);
  EXPECT_EQ(rule.source[0].type, 12);
  EXPECT_EQ(rule.source[0].inputs[1].op, -7);
  EXPECT_EQ(rule.source[0].parameters.at(10), 2);
  EXPECT_EQ(rule.source[1].inputs[0].op, 0);
  ASSERT_EQ(rule.outputs.size(), 1U);
  EXPECT_EQ(rule.outputs[0].source.op, 1);
  EXPECT_EQ(rule.outputs[0].source.output, 1);
  EXPECT_EQ(rule.outputs[0].target.op, 0);
}

TEST(RuleCollection, WrongFilesAreOneLine) {
  struct Case {
    const char* what;
    std::string bytes, message;
  };
  const std::string no_type =
      message_field(1, message_field(1, message_field(2, varint_field(1, -1) + varint_field(2, 0))));
  const std::string half_tensor =
      message_field(1, message_field(1, varint_field(1, 8) + message_field(2, varint_field(1, -1))));
  std::string many;
  for (int i = 0; i < 300; ++i) many += message_field(1, relu(-1));
  for (const Case& c :
       {Case{"empty", "", "it holds no rule"}, Case{"text", "hello", "not a rule file of TASO: "},
        Case{"zeros", std::string(100, '\0'), "a field has no valid number at byte 0"},
        Case{"onnx", varint_field(1, 8), "field 1 of the file has wire type 0 instead of 2"},
        Case{"other field", message_field(7, "x"), "field 7 of the file, where 1 is the last"},
        Case{"cut", sound.substr(0, sound.size() - 1), "the file is truncated or not a rule file of TASO"},
        Case{"huge length", std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10),
             "needs 9223372036854775807 bytes"},
        Case{"no type", no_type, "rule 0: field 1 (type) of an operator is missing"},
        Case{"half a tensor", half_tensor, "rule 0: field 2 of a tensor is missing"},
        Case{"no output", rule_field({relu(-1)}, {relu(-1)}, {}), "rule 0: it maps no output"},
        Case{"output", sound + rule_field({relu(-1)}, {relu(-1)}, {{3, 0, 0, 0}}),
             "rule 1: a mapped output is output 0 of source operator 3; the source has 1 operators"},
        Case{"itself", rule_field({relu(0)}, {relu(-1)}, {{0, 0, 0, 0}}),
             "rule 0: source operator 0 reads operator 0, which does not stand before it"},
        Case{"large number", rule_field({operator_message(std::int64_t{1} << 40, {})}, {}, {}),
             "field 1 of an operator is 1099511627776, which is no 32-bit number"},
        Case{"twice", rule_field({operator_message(12, {}, {{11, 0}, {11, 1}})}, {}, {}), "has parameter 11 twice"},
        Case{"many", message_field(1, many), "more than 200 operators on one side"}}) {
    const auto rules = read(c.bytes);
    ASSERT_FALSE(rules) << c.what;
    EXPECT_THAT(rules.error().to_string(), HasSubstr(c.message)) << c.what;
    EXPECT_THAT(rules.error().to_string(), HasSubstr("f.pb")) << c.what;
    EXPECT_EQ(rules.error().to_string().find('\n'), std::string::npos) << c.what;
    EXPECT_EQ(rules.error().exit_code(), 3) << c.what;
  }
}

TEST(RuleCollection, EveryPrefixAndEveryChangedByteIsReadOrRefused) {
  const std::string file = sound + rule_field({concat(1, 2, {-1, -7}), split(1, 0)}, {ewadd(-1, -7)}, {{1, 1, 0, 0}});
  std::size_t refused = 0;
  for (std::size_t size = 0; size < file.size(); ++size) refused += read(file.substr(0, size)) ? 0 : 1;
  EXPECT_EQ(refused, file.size() - 1);  // all but the prefix that is the first rule
  for (std::size_t i = 0; i < file.size(); ++i)
    for (const int change : {1, 0x7f, 0x80, 0xff}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ change);
      (void)read(changed);
    }
}

}  // namespace
}  // namespace taso
