// Generated kernels, compiled for the host and run block by block, against the operators' definitions.
#include "support/hash.h"
#include "tests/runtime/emulated_device.h"
#include "tests/runtime/generated_cases.h"
#include "tests/runtime/host_runner.h"

extern const taso::testing::EmulatedKernel emulated_kernels_0[], emulated_kernels_1[];
extern const std::size_t emulated_kernels_0_count, emulated_kernels_1_count;

namespace taso::testing {
namespace {

const EmulatedKernel* emulated_kernel(std::size_t number, const std::string& name) {
  const auto in = [&](const EmulatedKernel* first, std::size_t count) -> const EmulatedKernel* {
    for (const EmulatedKernel* one = first; one < first + count; ++one)
      if (one->number == number && one->name == name) return one;
    return nullptr;
  };
  const EmulatedKernel* found = in(emulated_kernels_0, emulated_kernels_0_count);
  return found != nullptr ? found : in(emulated_kernels_1, emulated_kernels_1_count);
}

void run_emulated(std::size_t number, const std::string& hash, const cuda::GeneratedKernel& kernel,
                  const cuda::Buffers& buffers) {
  const EmulatedKernel* compiled = emulated_kernel(number, kernel.name);
  ASSERT_TRUE(compiled != nullptr && compiled->hash == hash)
      << kernel.name << ": the text is another one than when it was compiled";
  std::vector<void*> arguments;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    const std::byte* address = cuda::address_of(kernel.operands[i], buffers);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % kernel.alignments[i], 0U) << kernel.name;
    arguments.push_back(const_cast<std::byte*>(address));
  }
  unsigned long long error_number = buffers.number;
  if (kernel.notes_errors) {
    arguments.push_back(buffers.error);
    arguments.push_back(&error_number);
  }
  EmulatedDevice::instance().run(kernel.blocks, kernel.has_barriers, [&] { compiled->call(arguments.data()); });
}

/// Runs a generated program; how many kernels of it read and write packs.
std::size_t run_emulated(std::size_t number, const cuda::GeneratedProgram& program, const cuda::Buffers& buffers) {
  const std::string hash = hash_text(program.source).to_string();
  std::size_t packed = 0;
  for (const cuda::GeneratedStep& step : program.steps) {
    const cuda::GeneratedKernel* kernel = cuda::kernel_for(step, buffers);
    if (kernel == nullptr) continue;
    packed += kernel->name.ends_with("_packs") ? 1 : 0;
    run_emulated(number, hash, *kernel, buffers);
  }
  return packed;
}

class EmulatedKernels : public ::testing::TestWithParam<std::size_t> {};

constexpr std::size_t emulated_parts = 8;

// Each case with operands that begin at multiples of 16 bytes and with some that do not; so both kinds of kernels run.
TEST_P(EmulatedKernels, ComputeWhatIsDefined) {
  const std::vector<GeneratedCase> cases = GeneratedCases::all();
  const std::size_t small = GeneratedCases::small(cases);
  std::size_t packed = 0;
  for (std::size_t number = GetParam(); number < small; number += emulated_parts) {
    const GeneratedCase& one = cases[number];
    if (one.request.op.empty()) continue;
    const cuda::GeneratedOffer offer = cuda::generate_source(one.program);
    ASSERT_TRUE(offer.program) << offer.reason;
    bool has_choice = false;
    for (const cuda::GeneratedStep& step : offer.program->steps) has_choice = has_choice || step.kernels.size() > 1;
    for (const std::size_t shift : has_choice ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1}) {
      const Example example(one.request, number, shift,
                            one.by_definition ? reference_of_cases() : library(KernelSet::reference));
      std::vector<Placed> outputs;
      std::vector<const std::byte*> from;
      std::vector<std::byte*> to;
      for (const Operand& output : one.request.outputs) outputs.emplace_back(output, shift);
      for (const Placed& input : example.inputs) from.push_back(input.data());
      for (Placed& output : outputs) to.push_back(output.data());
      unsigned long long none = ~0ULL;
      AlignedBuffer workspace(one.program.workspace_bytes);
      const cuda::Buffers buffers{from, to, workspace.data(), &none, 3};
      packed += run_emulated(number, *offer.program, buffers);
      EXPECT_EQ(none, ~0ULL);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_TRUE(outputs[i].is_clean_around()) << one.request.key() << "\n" << offer.program->source;
        EXPECT_LE(example.error(i, outputs[i].elements().data()), tolerance_of(one.request.outputs[i].type.element))
            << one.request.key() << "\n"
            << offer.program->source;
      }
    }
  }
  EXPECT_GT(packed, 5U);
}

// In place: as the precompiled kernels' functions do, to the bit.
TEST(EmulatedEpilogues, ComputeWhatOthersDo) {
  const std::vector<GeneratedCase> cases = GeneratedCases::all();
  std::size_t packed = 0, made = 0;
  for (std::size_t number = 0; number < cases.size(); ++number) {
    const GeneratedCase& one = cases[number];
    if (!one.request.op.empty()) continue;
    const cuda::GeneratedOffer offer = cuda::generate_source(one.program);
    ASSERT_TRUE(offer.program) << offer.reason;
    Random random(number, "values");
    const auto drawn = [&](const Operand& operand) {
      Placed placed(operand, 0);
      for (std::size_t i = 0; i < placed.size() / size_of(operand.type.element); ++i)
        set_element(placed.data(), i, operand.type.element, static_cast<float>(2 * random.uniform() - 1));
      return placed;
    };
    const Placed bias = drawn(one.request.inputs[0]), residual = drawn(one.request.inputs[1]);
    Placed expected = drawn(one.request.outputs[0]), actual(one.request.outputs[0], 0);
    std::memcpy(actual.data(), expected.data(), expected.size());
    const std::vector<const std::byte*> from = {bias.data(), residual.data()};
    const std::vector<std::byte*> to = {actual.data()}, to_expected = {expected.data()};
    packed += run_emulated(number, *offer.program, {from, to, nullptr, nullptr, 0});
    HostRunner runner;
    for (const cuda::Step& step : one.program.steps)
      cuda::run_step(step, {from, to_expected, nullptr, nullptr, 0}, runner);
    EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size()), 0) << offer.program->source;
    ++made;
  }
  EXPECT_EQ(made, 8U);
  EXPECT_EQ(packed, 4U);
}

TEST(EmulatedGathers, NoteIndicesOutside) {
  const std::vector<GeneratedCase> cases = GeneratedCases::all();
  std::size_t noted = 0;
  for (std::size_t number = 0; number < GeneratedCases::small(cases); ++number) {
    const GeneratedCase& one = cases[number];
    if (one.request.op != "gather" || one.request.inputs[1].type.element != ElementType::i64) continue;
    const cuda::GeneratedOffer offer = cuda::generate_source(one.program);
    ASSERT_TRUE(offer.program) << offer.reason;
    Example example(one.request, number, 0);
    const std::int64_t outside = 1000;
    std::memcpy(example.inputs[1].data(), &outside, sizeof outside);
    Placed output(one.request.outputs[0], 0);
    const std::vector<const std::byte*> from = {example.inputs[0].data(), example.inputs[1].data()};
    const std::vector<std::byte*> to = {output.data()};
    unsigned long long error = ~0ULL;
    run_emulated(number, *offer.program, {from, to, nullptr, &error, 3});
    EXPECT_EQ(error, 3ULL << 40) << offer.program->source;
    // Element 0 in its stead, as the precompiled kernels' functions take it.
    Placed expected(one.request.outputs[0], 0);
    const std::vector<std::byte*> to_expected = {expected.data()};
    HostRunner runner;
    for (const cuda::Step& step : one.program.steps)
      cuda::run_step(step, {from, to_expected, nullptr, &error, 3}, runner);
    EXPECT_EQ(std::memcmp(output.data(), expected.data(), output.size()), 0) << offer.program->source;
    EXPECT_TRUE(output.is_clean_around());
    ++noted;
  }
  EXPECT_GT(noted, 1U);
}

// The emulation finds kernels that a device would hang in, or not.
TEST(EmulatedDevices, FindThreadsThatLeaveOthersWaiting) {
  EmulatedDevice& device = EmulatedDevice::instance();
  EXPECT_NO_THROW(device.run(2, true, [] { __syncthreads(); }));
  EXPECT_THROW(device.run(1, true,
                          [] {
                            if (threadIdx.x < 40) __syncthreads();
                          }),
               std::runtime_error);
  EXPECT_THROW(device.run(1, true,
                          [] {
                            if (threadIdx.x % 32 < 7) (void)__shfl_xor_sync(~0U, 1.0F, 1);
                          }),
               std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Cuda, EmulatedKernels, ::testing::Range(std::size_t{0}, emulated_parts),
                         [](const auto& one) { return std::to_string(one.param); });

}  // namespace
}  // namespace taso::testing
