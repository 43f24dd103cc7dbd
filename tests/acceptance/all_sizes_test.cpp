// Models in ONNX's text, optimized for all sizes of their symbols: all_sizes.cases.
//
//   onnx:              the model's graph (tests/onnx_io/onnx_text.h), of opset 17
//   options WORDS      the program is run with these, too
//   says TEXT          what the program says has this in it
//   leaves TYPE COUNT  so many nodes of an operator are left
//   equal INPUT:SHAPE  the result is that of the original there, and its certificate holds (of each input one)
//   fails INPUT:SHAPE  neither runs there
#include <gmock/gmock.h>

#include "tests/acceptance/symbolic.h"
#include "tests/onnx_io/onnx_text.h"
#include "tests/support/cases.h"

namespace taso::acceptance {
namespace {

using test::CaseCount;
using test::CaseValue;

const std::vector<test::TextCase>& all_sizes_cases() {
  static const std::vector<test::TextCase> cases =
      test::load_cases("tests/acceptance/all_sizes.cases", {{"options", CaseValue::words, CaseCount::optional},
                                                            {"onnx", CaseValue::section, CaseCount::once},
                                                            {"says", CaseValue::words, CaseCount::repeated},
                                                            {"leaves", CaseValue::words, CaseCount::repeated},
                                                            {"equal", CaseValue::words, CaseCount::repeated},
                                                            {"fails", CaseValue::words, CaseCount::repeated}});
  return cases;
}

class AllSizes : public Symbolic, public testing::WithParamInterface<test::TextCase> {};

TEST_P(AllSizes, AreAsBefore) {
  const test::TextCase& one = GetParam();
  const Expected<onnx::GraphProto> graph = test::parse_onnx_graph(one.placed("onnx"), one.file);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  *model.mutable_graph() = *graph;
  std::vector<std::vector<std::string>> shapes;
  for (const std::string& shape : one.all("equal")) shapes.push_back(test::words_of(shape));
  const onnx::ModelProto result = optimize_for_all(model, shapes, test::words_of(one.text("options", "")));
  for (const std::string& text : one.all("says")) EXPECT_THAT(warnings_ + report_, testing::HasSubstr(text));
  for (const std::string& text : one.all("leaves")) {
    const std::vector<std::string> words = test::words_of(text);
    EXPECT_EQ(std::to_string(counts(result)[words.at(0)]), words.at(1)) << words[0];
  }
  for (const std::string& shape : one.all("fails"))
    for (const std::string& path : {before(), after()})
      EXPECT_EQ(run_process({program("taso-run"), path, "--repeat", "1", "--input-shape", shape}).exit_code, 3)
          << path << " at " << shape;
}

INSTANTIATE_TEST_SUITE_P(Files, AllSizes, ::testing::ValuesIn(all_sizes_cases()), test::case_name);

}  // namespace
}  // namespace taso::acceptance
