// Generated texts: compiled by NVRTC, for devices that need not be there, without a warning; kept, found again, and
// written anew where what is found is no entry.
#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/cuda/compiler.h"
#include "runtime/cuda/kernel_cache.h"
#include "support/file.h"
#include "tests/runtime/generated_cases.h"

namespace taso::testing {
namespace {

/// The library that the build knows, or the loader; null where there is none.
std::shared_ptr<const cuda::Nvrtc> nvrtc() {
  std::vector<std::string> names;
#ifdef TASO_TEST_NVRTC
  names.emplace_back(TASO_TEST_NVRTC);
#endif
  names.emplace_back("libnvrtc.so");
  const auto opened = cuda::Nvrtc::open(names);
  return opened ? *opened : nullptr;
}

/// The text of one program with the steps of many cases: NVRTC takes longer to begin than to compile.
std::string text_of_cases(std::size_t first, std::size_t step) {
  static const std::vector<GeneratedCase> cases = GeneratedCases::all();
  cuda::Program all;
  for (std::size_t i = first; i < cases.size(); i += step)
    all.steps.insert(all.steps.end(), cases[i].program.steps.begin(), cases[i].program.steps.end());
  const cuda::GeneratedOffer offer = cuda::generate_source(all);
  EXPECT_TRUE(offer.program) << offer.reason;
  return offer.program ? offer.program->source : "";
}

void expect_compiles(const cuda::Nvrtc& compiler, const std::string& source, int architecture) {
  const auto code = compiler.compile(source, architecture);
  ASSERT_TRUE(code) << code.error().message << "\n" << source;
  EXPECT_EQ(code->log, "") << source;
  EXPECT_EQ(code->code.substr(1, 3), "ELF");
}

TEST(GeneratedTexts, CompileWithoutWarnings) {
  const auto compiler = nvrtc();
  if (!compiler) GTEST_SKIP() << "no NVRTC";
  constexpr std::size_t texts = 24;
  for (std::size_t i = 0; i < texts; ++i) expect_compiles(*compiler, text_of_cases(i, texts), 90);
}

TEST(GeneratedTexts, CompileForTheOldestArchitecture) {
  const auto compiler = nvrtc();
  if (!compiler) GTEST_SKIP() << "no NVRTC";
  constexpr std::size_t texts = 24;
  for (std::size_t i = 0; i < 4; ++i)
    expect_compiles(*compiler, text_of_cases(i, texts), compiler->architectures().front());
}

TEST(GeneratedTexts, AreTheSameForTheSameProgram) {
  const std::vector<GeneratedCase> once = GeneratedCases::all(), again = GeneratedCases::all();
  ASSERT_EQ(once.size(), again.size());
  std::set<std::string> texts;
  for (std::size_t i = 0; i < once.size(); ++i) {
    const cuda::GeneratedOffer first = cuda::generate_source(once[i].program);
    const cuda::GeneratedOffer second = cuda::generate_source(again[i].program);
    ASSERT_TRUE(first.program && second.program);
    EXPECT_EQ(first.program->source, second.program->source);
    EXPECT_TRUE(first.program->name.starts_with("generated ")) << first.program->name;
    texts.insert(first.program->source);
  }
  EXPECT_GT(texts.size(), once.size() / 2);
}

}  // namespace
}  // namespace taso::testing
