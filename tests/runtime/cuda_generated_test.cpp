// Generated texts: compiled by NVRTC, for devices that need not be there, without a warning; kept, found again, and
// written anew where what is found is no entry.
#include <gmock/gmock.h>

#include <cctype>
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

TEST(GeneratedTexts, AreDeclinedWhereALaunchHasTooFewBlocks) {
  cuda::FillStep fill;
  fill.width = 1;
  fill.to = cuda::output(0);
  fill.count = std::int64_t{256} * 0x7fffffff;
  EXPECT_TRUE(cuda::generate_source({"", {fill}}).program);
  fill.count += 1;
  EXPECT_EQ(cuda::generate_source({"", {fill}}).reason, "more blocks than a launch can have");
}

TEST(Compilers, AreOpenedOrSayWhyNot) {
  const auto reason = [](const std::vector<std::string>& names) {
    const auto opened = cuda::Nvrtc::open(names);
    return opened ? "" : opened.error().message;
  };
  EXPECT_THAT(reason({"libno_such_nvrtc.so"}), ::testing::StartsWith("NVRTC cannot be loaded: libno_such_nvrtc.so"));
  EXPECT_EQ(reason({"libm.so.6", "libno_such_nvrtc.so"}), "libm.so.6 has no function nvrtcVersion");
  EXPECT_EQ(reason({}), "NVRTC has no name");
  EXPECT_EQ(cuda::nvrtc_names(13000), std::vector<std::string>{"libnvrtc.so.13"});
  const auto compiler = nvrtc();
  if (!compiler) GTEST_SKIP() << "no NVRTC";
  EXPECT_THAT(compiler->identity(), ::testing::StartsWith("NVRTC 1"));
  EXPECT_THAT(compiler->architectures(), ::testing::Contains(90));
  const auto code = compiler->compile("extern \"C\" __global__ void f() { g(); }", 90);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(code.error().message,
            "NVRTC cannot compile a generated kernel: generated.cu(1): error: identifier \"g\" is undefined");
  EXPECT_THAT(compiler->compile("", 11).error().message, ::testing::HasSubstr("NVRTC cannot compile"));
}

TEST(Compilers, CompileForTheDeviceOrOneBeforeIt) {
  const std::vector<int> known = {75, 80, 86, 90, 100};
  EXPECT_EQ(cuda::architecture_for(90, known), 90);
  EXPECT_EQ(cuda::architecture_for(89, known), 86);
  EXPECT_EQ(cuda::architecture_for(103, known), 100);
  EXPECT_EQ(cuda::architecture_for(70, known), 0);
  EXPECT_EQ(cuda::architecture_for(120, known), 0);
}

/// Counts what it is asked; code is the text in capitals. Texts that begin with "bad" do not compile.
class CountingCompiler final : public cuda::SourceCompiler {
 public:
  explicit CountingCompiler(std::string version = "1.0") : version_(std::move(version)) {}
  std::string identity() const override { return "counting " + version_; }
  std::vector<std::string> options(int architecture) const override {
    return {"-O" + std::to_string(architecture % 4)};
  }
  Expected<cuda::CompiledSource> compile(const std::string& source, int) const override {
    ++asked;
    if (source.starts_with("bad")) return Error{ErrorCode::device_unavailable, "no code for " + source, {}};
    cuda::CompiledSource made;
    for (const char c : source) made.code += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return made;
  }
  mutable int asked = 0;

 private:
  std::string version_;
};

class KeptKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "taso_kept_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// Builds a text anew; whether it was compiled.
  bool compiles(const std::string& source, int architecture = 90, const std::string& version = "1.0") {
    const auto compiler = std::make_shared<CountingCompiler>(version);
    cuda::KernelBuilder builder(compiler, architecture, folder_);
    const std::string code = value_of(builder.build(source));
    EXPECT_EQ(code, CountingCompiler().compile(source, 90)->code);
    EXPECT_EQ(builder.counts().unwritten, 0U) << builder.complaint();
    return compiler->asked == 1;
  }
  [[nodiscard]] std::string file_of(const std::string& source) const {
    cuda::KernelBuilder builder(std::make_shared<CountingCompiler>(), 90, folder_);
    return cuda::KernelCache(folder_).path_of(builder.key_of(source));
  }
  std::string folder_;
};

TEST_F(KeptKernels, AreFoundAgain) {
  EXPECT_TRUE(compiles("one"));
  EXPECT_FALSE(compiles("one"));
  EXPECT_TRUE(compiles("other"));
  EXPECT_TRUE(compiles("one", 91)) << "for another architecture";
  EXPECT_TRUE(compiles("one", 90, "1.1")) << "by another compiler";
  EXPECT_FALSE(compiles("one"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 4);
}

TEST_F(KeptKernels, AreWrittenAnewWhereTheyAreNoEntries) {
  const std::string file = file_of("one"), other = file_of("other");
  EXPECT_TRUE(compiles("one"));
  EXPECT_TRUE(compiles("other"));
  const std::string entry = value_of(read_file(file));
  std::string flipped = entry, longer = entry + "x";
  flipped.back() = 'X';
  for (const std::string& wrong : {std::string(), entry.substr(0, entry.size() - 1), entry.substr(1), flipped, longer,
                                   std::string(100, 'x'), value_of(read_file(other)), entry.substr(0, 20)}) {
    ASSERT_TRUE(write_file_atomically(file, wrong).ok());
    EXPECT_TRUE(compiles("one")) << wrong;
    EXPECT_EQ(value_of(read_file(file)), entry);
    EXPECT_FALSE(compiles("one"));
  }
}

TEST_F(KeptKernels, AreNotNeeded) {
  // A file where the folder would be, and one where the folder is to be made.
  for (const std::string& folder : {folder_, folder_ + "/within"}) {
    std::ofstream(folder_) << "a file";
    const auto compiler = std::make_shared<CountingCompiler>();
    cuda::KernelBuilder builder(compiler, 90, folder);
    EXPECT_EQ(value_of(builder.build("one")), "ONE");
    EXPECT_EQ(builder.counts().unwritten, 1U);
    EXPECT_EQ(builder.counts().compiled, 1U);
    EXPECT_THAT(builder.complaint(), ::testing::HasSubstr(folder_));
  }
  // A folder in the place of an entry.
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(file_of("one") + "/within");
  cuda::KernelBuilder builder(std::make_shared<CountingCompiler>(), 90, folder_);
  EXPECT_EQ(value_of(builder.build("one")), "ONE");
  EXPECT_EQ(builder.counts().unwritten, 1U);
  // No folder at all.
  cuda::KernelBuilder forgetful(std::make_shared<CountingCompiler>(), 90, "");
  EXPECT_EQ(value_of(forgetful.build("one")), "ONE");
  EXPECT_EQ(forgetful.counts().unwritten, 0U);
}

TEST_F(KeptKernels, AreNotTriedAgainWhereTheyDoNotCompile) {
  const auto compiler = std::make_shared<CountingCompiler>();
  cuda::KernelBuilder builder(compiler, 90, folder_);
  for (int again = 0; again < 3; ++again) EXPECT_EQ(builder.build("bad one").error().message, "no code for bad one");
  EXPECT_EQ(builder.build("bad two").error().message, "no code for bad two");
  EXPECT_EQ(compiler->asked, 2);
  EXPECT_EQ(builder.complaint(), "no code for bad one");
  EXPECT_EQ(builder.counts().failed, 2U);
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

}  // namespace
}  // namespace taso::testing
