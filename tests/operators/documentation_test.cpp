#include "operators/documentation.h"

#include <gtest/gtest.h>

#include "support/file.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

TEST(Documentation, IsThatOfTheSpecifications) {
  const Expected<std::string> shipped = read_file(TASO_SOURCE_DIR "/docs/operators.md");
  ASSERT_TRUE(shipped.ok()) << shipped.error().to_string();
  // Not EXPECT_EQ: the difference would be printed in full.
  EXPECT_TRUE(*shipped == document_operators(test::registry()))
      << "specifications have changed: run operator_docs specs/operators > docs/operators.md";
}

/// What the document prints is the language: printed definitions parse, and print as themselves.
TEST(Documentation, PrintedEquationsParse) {
  for (const std::string& name : test::registry().names()) {
    const std::string text = document_operators(test::registry());
    const std::size_t begin = text.find("```\n", text.find("## " + name + "\n")) + 4;
    std::string block = text.substr(begin, text.find("```", begin) - begin);
    // Intermediates and sizes are printed without 'let'.
    std::string definition = "operator copy_of_" + block.substr(0, block.find('\n') + 1);
    for (std::size_t at = block.find('\n') + 1; at < block.size(); at = block.find('\n', at) + 1) {
      const std::string line = block.substr(at, block.find('\n', at) - at);
      definition += (line.rfind("  out", 0) == 0 ? "" : "let ") + line + "\n";
    }
    const Expected<OperatorRegistry> copy = OperatorRegistry::parse(definition, name, &test::registry());
    ASSERT_TRUE(copy.ok()) << copy.error().to_string() << "\n" << definition;
    const std::string again = document_operators(*copy);
    const std::size_t second = again.find("```\n", again.find("## copy_of_" + name + "\n")) + 4;
    EXPECT_EQ(again.substr(second, again.find("```", second) - second), "copy_of_" + block);
  }
}

}  // namespace
}  // namespace taso
