// The functions that the CUDA backend's own kernels consist of, run in loops on the host on random requests, against
// the operators' definitions. What remains for a device to show is the launching.
#include <bit>
#include <set>
#include <span>

#include "runtime/cuda/products.h"
#include "runtime/independent_requests.h"
#include "tests/runtime/fused_requests.h"
#include "tests/runtime/host_runner.h"

namespace taso::testing {
namespace {

/// Runs a program on an example and compares. Returns how many steps went by tiles.
int check_program(const Example& example, const cuda::Program& program, unsigned long long* error = nullptr) {
  std::vector<Placed> outputs;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  Random random(7, "places");
  for (const Operand& output : example.request.outputs) outputs.emplace_back(output, random.below(2));
  for (const Placed& one : example.inputs) from.push_back(one.data());
  for (Placed& one : outputs) to.push_back(one.data());
  unsigned long long none = ~0ULL;
  const cuda::Buffers buffers{from, to, nullptr, error != nullptr ? error : &none, 3};
  HostRunner runner;
  for (const cuda::Step& step : program.steps) cuda::run_step(step, buffers, runner);
  EXPECT_EQ(none, ~0ULL);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].is_clean_around()) << example.request.key();
    EXPECT_LE(example.error(i, outputs[i].elements().data()), tolerance_of(example.request.outputs[i].type.element))
        << example.request.key();
  }
  return runner.tiled;
}

class OwnKernels : public ::testing::TestWithParam<std::string> {};

TEST_P(OwnKernels, ComputeWhatIsDefined) {
  const std::string& op = GetParam();
  RequestMaker maker(11);
  int made = 0;
  for (int attempt = 0; attempt < 400 && made < 60; ++attempt) {
    const ElementType element = std::vector<ElementType>{ElementType::f32, ElementType::f32, ElementType::f16,
                                                         ElementType::bf16}[static_cast<std::size_t>(maker.below(4))];
    const auto request = maker.make(op, element);
    if (!request) continue;
    const cuda::PlannedProgram planned = cuda::plan_program(*request);
    ASSERT_TRUE(planned.program) << request->key() << ": " << planned.reason;
    check_program(Example(*request, static_cast<std::uint64_t>(attempt)), *planned.program);
    ++made;
  }
  EXPECT_EQ(made, 60) << "too few requests fit";
}

TEST_P(OwnKernels, WriteWithinWiderTensors) {
  RequestMaker maker(12);
  Random random(13, "wholes");
  int made = 0;
  for (int attempt = 0; attempt < 400 && made < 30; ++attempt) {
    auto request = maker.make(GetParam(), attempt % 2 == 0 ? ElementType::f32 : ElementType::f16);
    if (!request) continue;
    draw_wholes(*request, random);
    const cuda::PlannedProgram planned = cuda::plan_program(*request);
    if (GetParam() == "regroup") {
      EXPECT_EQ(planned.reason, "zeros within a wider tensor");
      return;
    }
    ASSERT_TRUE(planned.program) << request->key() << ": " << planned.reason;
    check_program(Example(*request, static_cast<std::uint64_t>(attempt)), *planned.program);
    ++made;
  }
  EXPECT_EQ(made, 30) << "too few requests fit";
}

INSTANTIATE_TEST_SUITE_P(Cuda, OwnKernels, ::testing::ValuesIn(RequestMaker::operators()),
                         [](const auto& one) { return one.param; });

// The planner knows names, not definitions: an element-wise operator, or one that copies elements, that its tables lack
// fails here.
TEST(Programs, ShippedOperatorsHaveThem) {
  const std::vector<std::string> planned = RequestMaker::operators();
  for (const std::string& name : registry().names())
    if (registry().find(name)->elementwise || registry().signature(name)->copies) {
      EXPECT_NE(std::find(planned.begin(), planned.end(), name), planned.end()) << name;
    }
}

TEST(Programs, MoveAnyType) {
  RequestMaker maker(5);
  for (const std::string op : {"concat", "split", "slice", "transpose", "broadcast", "reshape", "reorder", "gather"})
    for (const ElementType element :
         {ElementType::i8, ElementType::i16, ElementType::i32, ElementType::i64, ElementType::u8, ElementType::boolean})
      for (int attempt = 0; attempt < 6; ++attempt) {
        const auto request = maker.make(op, element);
        if (!request) continue;
        const cuda::PlannedProgram planned = cuda::plan_program(*request);
        ASSERT_TRUE(planned.program) << request->key() << ": " << planned.reason;
        if (element == ElementType::boolean && op == "gather") continue;  // the reference counts in integers
        check_program(Example(*request, 3), *planned.program);
      }
}

TEST(Programs, WordsAreWhatIsDefined) {
  RequestMaker maker(6);
  for (const std::string& op : RequestMaker::word_operators()) {
    int made = 0;
    for (int attempt = 0; attempt < 200 && made < (op == "cast" ? 150 : 40); ++attempt) {
      const auto request = maker.word(op);
      if (!request) continue;
      const cuda::PlannedProgram planned = cuda::plan_program(*request);
      ASSERT_TRUE(planned.program) << request->key() << ": " << planned.reason;
      EXPECT_EQ(planned.program->name, op == "cast" && request->inputs[0].type == request->outputs[0].type &&
                                               is_float(request->inputs[0].type.element)
                                           ? "own elementwise"
                                           : "own words");
      check_program(Example(*request, static_cast<std::uint64_t>(attempt)), *planned.program);
      ++made;
    }
    EXPECT_GE(made, 40) << op;
  }
}

// In narrow types: a program by itself, as the reference computes in the stored ones.
TEST(Programs, ConversionsOfHalvesAreOfTheirValues) {
  const std::vector<float> values = {0.5F, -1.25F, 1000, -70000, 3.0e-6F, 0};
  const Shape shape = {static_cast<std::int64_t>(values.size())};
  for (const ElementType from : {ElementType::f16, ElementType::bf16, ElementType::f32})
    for (const ElementType to : {ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::i32}) {
      KernelRequest request{"cast", {{"to", SymbolValue{to_string(to)}}}, {}, {}, 1};
      request.inputs.push_back({{from, shape}, Layout::row_major});
      request.outputs.push_back({{to, shape}, Layout::row_major});
      const cuda::PlannedProgram planned = cuda::plan_program(request);
      ASSERT_TRUE(planned.program) << request.key() << ": " << planned.reason;
      std::vector<std::byte> x(values.size() * 8), y(values.size() * 8);
      for (std::size_t i = 0; i < values.size(); ++i) set_element(x.data(), i, from, values[i]);
      const std::byte* source = x.data();
      std::byte* target = y.data();
      HostRunner runner;
      for (const cuda::Step& step : planned.program->steps)
        cuda::run_step(step, {{&source, 1}, {&target, 1}, nullptr, nullptr, 0}, runner);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = element_at(x.data(), i, from);
        std::vector<std::byte> expected(8);
        if (to == ElementType::i32) {
          if (!std::isfinite(value)) continue;
          std::int32_t word = 0;
          std::memcpy(&word, y.data() + 4 * i, sizeof word);
          EXPECT_EQ(word, static_cast<std::int32_t>(value)) << request.key();
          continue;
        }
        set_element(expected.data(), 0, to, static_cast<float>(value));
        EXPECT_EQ(element_at(y.data(), i, to), element_at(expected.data(), 0, to)) << request.key() << " of " << value;
      }
    }
}

TEST(FusedPrograms, ComputeTheirParts) {
  int rows = 0, made = 0;
  FusedMaker maker(21);
  Random random(23, "wholes");
  for (int attempt = 0; attempt < 900 && made < 400; ++attempt) {
    const ElementType element = std::vector<ElementType>{ElementType::f32, ElementType::f32, ElementType::f16,
                                                         ElementType::bf16}[static_cast<std::size_t>(maker.below(4))];
    KernelRequest request = maker.chain(element, attempt % 2 == 0);
    if (attempt % 5 == 0) draw_wholes(request, random);
    const cuda::PlannedProgram planned = cuda::plan_program(request);
    if (!planned.program) continue;
    ASSERT_EQ(planned.program->steps.size(), 1U);
    rows += std::holds_alternative<cuda::RowChainStep>(planned.program->steps[0]) ? 1 : 0;
    check_program(Example(request, static_cast<std::uint64_t>(attempt)), *planned.program);
    ++made;
  }
  EXPECT_EQ(made, 400) << "too many are declined";
  EXPECT_GT(rows, 50);
}

TEST(FusedPrograms, CopyOnceWhatIsMovedOften) {
  FusedMaker maker(22);
  Random random(24, "wholes");
  int made = 0;
  for (int attempt = 0; attempt < 400 && made < 200; ++attempt) {
    const ElementType element = attempt % 3 == 0 ? ElementType::f32 : ElementType::f16;
    KernelRequest request = maker.copies(element);
    if (attempt % 5 == 0) draw_wholes(request, random);
    const cuda::PlannedProgram planned = cuda::plan_program(request);
    if (!planned.program) continue;
    ASSERT_EQ(planned.program->steps.size(), 1U);
    check_program(Example(request, static_cast<std::uint64_t>(attempt)), *planned.program);
    ++made;
  }
  EXPECT_EQ(made, 200) << "too many are declined";
}

TEST(FusedPrograms, SayWhyTheyDecline) {
  const TensorType type{ElementType::f32, {3, 4}};
  const auto part = [&](const std::string& op, std::size_t inputs) {
    return FusedPart{{op, {}, std::vector<Operand>(inputs, {type, Layout::row_major, false}), {{type}}, 1}, {}};
  };
  const auto reason = [&](std::vector<FusedPart> parts, Layout layout = Layout::row_major) {
    KernelRequest request{std::string(fused_op), {}, {{type, layout, false}}, {{type}}, 1};
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i].sources.assign(parts[i].request.inputs.size(),
                              {i == 0, static_cast<std::uint32_t>(i == 0 ? 0 : i - 1), 0});
    const FusedPart::Source last{false, static_cast<std::uint32_t>(parts.size() - 1), 0};
    request.fused = std::make_shared<const Fused>(Fused{std::move(parts), {last}});
    return cuda::plan_program(request).reason;
  };
  EXPECT_EQ(reason({part("relu", 1), part("tanh", 1)}), "");
  EXPECT_EQ(reason({part("relu", 1), part("softmin", 1)}), "no function of one number is named softmin");
  EXPECT_EQ(reason({part("relu", 1), part("plus", 2)}), "no function of two numbers is named plus");
  FusedPart softmax = part("softmax", 1);
  softmax.request.attributes.set("axis", std::int64_t{-1});
  EXPECT_EQ(reason({softmax, part("relu", 1)}), "");
  EXPECT_EQ(reason({softmax, softmax}), "two functions of rows");
  EXPECT_EQ(reason({part("reorder", 1)}), "");
  EXPECT_EQ(reason({part("reorder", 1)}, Layout::channels_last), "an operand that is no plain tensor of one type");
  EXPECT_EQ(reason({part("relu", 1), part("reorder", 1)}), "elements move after they have been computed");
  EXPECT_EQ(reason({part("relu", 1), part("tanh", 1)}, Layout::channels_last),
            "an operand that is no plain tensor of one type");
  EXPECT_EQ(reason(std::vector<FusedPart>(80, part("relu", 1))), "more than 64 instructions");
  FusedPart other = part("relu", 1);
  other.request.outputs[0].type.shape = {4, 3};
  EXPECT_EQ(reason({other, part("relu", 1)}), "results of different shapes");
}

// A large operand in another order is left to a copy by tiles; a small one is not worth a launch.
TEST(FusedPrograms, LeaveLargeTransposesAlone) {
  for (const auto& [side, fuses] : {std::pair<std::int64_t, bool>{64, true}, {512, false}}) {
    const TensorType type{ElementType::f32, {side, side}};
    KernelRequest request{std::string(fused_op), {}, {{type, Layout::column_major, false}}, {{type}}, 1};
    const FusedPart relu{{"relu", {}, {{type, Layout::column_major, false}}, {{type}}, 1}, {{true, 0, 0}}};
    const FusedPart tanh{{"tanh", {}, {{type}}, {{type}}, 1}, {{false, 0, 0}}};
    request.fused = std::make_shared<const Fused>(Fused{{relu, tanh}, {{false, 1, 0}}});
    EXPECT_EQ(cuda::plan_program(request).program.has_value(), fuses);
  }
}

TEST(FusedPrograms, ConcatenateAndSplitInOneLaunch) {
  RequestMaker maker(6);
  int made = 0;
  for (int attempt = 0; attempt < 200; ++attempt)
    for (const std::string op : {"concat", "split"}) {
      auto request = maker.make(op);
      if (!request || (op == "concat" && request->inputs.size() < 2)) continue;
      for (std::vector<Operand>* operands : {&request->inputs, &request->outputs})
        for (Operand& operand : *operands) operand.layout = Layout::row_major;
      const cuda::PlannedProgram planned = cuda::plan_program(*request);
      ASSERT_TRUE(planned.program);
      EXPECT_LE(planned.program->steps.size(), 1U) << request->key();
      check_program(Example(*request, static_cast<std::uint64_t>(attempt)), *planned.program);
      ++made;
    }
  EXPECT_GT(made, 100);
}

KernelRequest unary(const std::string& op, Shape shape, Layout from, Layout to) {
  const TensorType type{ElementType::f32, std::move(shape)};
  return {op, {}, {{type, from, false}}, {{type, to, false}}, 1};
}

TEST(Programs, ConversionsOfLayoutsGoByTiles) {
  for (const auto& [shape, from, to] :
       std::vector<std::tuple<Shape, Layout, Layout>>{{{2, 40, 9, 11}, Layout::row_major, Layout::channels_last},
                                                      {{2, 40, 9, 11}, Layout::channels_last, Layout::row_major},
                                                      {{70, 33}, Layout::row_major, Layout::column_major},
                                                      {{3, 5, 32, 64}, Layout::column_major, Layout::row_major}}) {
    const KernelRequest request = unary("reorder", shape, from, to);
    EXPECT_EQ(check_program(Example(request, 1), *cuda::plan_program(request).program), 1) << request.key();
  }
  const KernelRequest rows = unary("reorder", {4, 6, 8, 16}, Layout::row_major, Layout::rows_outer);
  EXPECT_EQ(check_program(Example(rows, 1), *cuda::plan_program(rows).program), 0) << "rows stay whole";
}

TEST(Programs, LongRowsTakeBlocks) {
  for (const char* op : {"softmax", "reduce_sum"}) {
    KernelRequest request = unary(op, {3, 5000}, Layout::row_major, Layout::row_major);
    if (request.op == "softmax") {
      request.attributes.set("axis", std::int64_t{-1});
    } else {
      request.attributes.set("axes", std::vector<std::int64_t>{-1});
      request.outputs[0].type.shape = {3, 1};
    }
    check_program(Example(request, 1), *cuda::plan_program(request).program);
  }
}

TEST(Programs, IndicesOutsideAreNoted) {
  KernelRequest request;
  request.op = "gather";
  for (const auto& [name, value] : {std::pair("axis", -2), std::pair("before", 0), std::pair("after", 0)})
    request.attributes.set(name, std::int64_t{value});
  request.inputs = {{{ElementType::f32, {5, 4}}, Layout::row_major, false},
                    {{ElementType::i64, {3}}, Layout::row_major, false}};
  request.outputs = {{{ElementType::f32, {3, 4}}, Layout::row_major, false}};
  const cuda::PlannedProgram planned = cuda::plan_program(request);
  ASSERT_TRUE(planned.program);
  for (const auto& [index, note] : std::vector<std::pair<std::vector<std::int64_t>, unsigned long long>>{
           {{0, -5, 4}, ~0ULL}, {{0, 5, 9}, 3ULL << 40 | 1}, {{0, 1, -6}, 3ULL << 40 | 2}}) {
    std::vector<float> table(20, 1.0F), out(12);
    const std::vector<const std::byte*> from = {reinterpret_cast<const std::byte*>(table.data()),
                                                reinterpret_cast<const std::byte*>(index.data())};
    const std::vector<std::byte*> to = {reinterpret_cast<std::byte*>(out.data())};
    unsigned long long error = ~0ULL;
    HostRunner runner;
    cuda::run_step(planned.program->steps[0], {from, to, nullptr, &error, 3}, runner);
    EXPECT_EQ(error, note);
  }
}

/// y = relu(y + bias + residual) on images of so many channels in nhwc, within a wider tensor or not.
void check_epilogue(std::int64_t channels, Layout residual_layout, Within within) {
  const Operand y{{ElementType::f32, {2, channels, 4, 5}}, Layout::channels_last, false, within};
  const auto step = cuda::epilogue_step(y, 1, cuda::input(0), cuda::input(1), residual_layout, cuda::Function::relu);
  ASSERT_TRUE(step);
  const auto count = static_cast<std::size_t>(y.type.elements());
  AlignedBuffer place(static_cast<std::size_t>(spanned_bytes(y))), others(count * 4), biases(channels * 4);
  auto* values = reinterpret_cast<float*>(place.data());
  auto* residual = reinterpret_cast<float*>(others.data());
  auto* bias = reinterpret_cast<float*>(biases.data());
  for (std::size_t i = 0; i < place.size() / 4; ++i) values[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < count; ++i) residual[i] = static_cast<float>(i);
  for (std::int64_t c = 0; c < channels; ++c) bias[c] = static_cast<float>(10 - 60 * (c % 2));
  const std::vector<float> before(values, values + place.size() / 4);
  const std::vector<const std::byte*> from = {biases.data(), others.data()};
  const std::vector<std::byte*> to = {place.data()};
  HostRunner runner;
  cuda::run_step(*step, {from, to, nullptr, nullptr, 0}, runner);
  const bool packs = channels % 4 == 0 && residual_layout == Layout::channels_last;
  EXPECT_EQ(runner.calls, y.type.elements() / (packs ? 4 : 1));
  const auto of_y = access_of(y).strides, of_residual = strides_of(y.type.shape, residual_layout);
  std::vector<float> expected = before;
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t h = 0; h < 4; ++h)
        for (std::int64_t w = 0; w < 5; ++w) {
          const auto at = [&](const std::vector<std::int64_t>& s) {
            return static_cast<std::size_t>(n * s[0] + c * s[1] + h * s[2] + w * s[3]);
          };
          expected[at(of_y)] = std::max(before[at(of_y)] + bias[c] + residual[at(of_residual)], 0.0F);
        }
  EXPECT_EQ(std::vector<float>(values, values + place.size() / 4), expected);
}

TEST(Programs, EpiloguesAddAndActivate) {
  for (const std::int64_t channels : {3, 8})
    for (const Layout residual_layout : {Layout::row_major, Layout::channels_last})
      for (const Within within : {Within{}, Within{1, channels + 4}}) check_epilogue(channels, residual_layout, within);
}

/// Neighbouring channels of images in nhwc are computed by packs of 16 bytes where they lie so.
TEST(Programs, ComputeChannelsByPacks) {
  constexpr std::int64_t channels = 16;
  const auto pair = [](std::int64_t both) { return std::vector<std::int64_t>{both, both}; };
  for (const ElementType element : {ElementType::f32, ElementType::f16})
    for (const std::string op : {"max_pool2d", "avg_pool2d_include", "avg_pool2d_exclude", "conv2d", "conv2d_bias_act",
                                 "conv2d_bias_add_act"}) {
      const TensorType image{element, {1, channels, 3, 4}}, window{element, {channels, 1, 3, 3}},
          row{element, {channels}};
      const bool pools = op.find("pool") != std::string::npos;
      KernelRequest request;
      request.op = op;
      request.attributes = {{"strides", pair(1)}, {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};
      if (op == "max_pool2d" || !pools) request.attributes.set("dilations", pair(1));
      if (pools) request.attributes.set("kernel", pair(3));
      if (op.find("act") != std::string::npos) request.attributes.set("act", SymbolValue{"relu"});
      request.inputs = {{image, Layout::channels_last, false}};
      if (!pools) request.inputs.push_back({window, Layout::row_major, true});
      if (op.find("bias") != std::string::npos) request.inputs.push_back({row, Layout::row_major, true});
      if (op.find("add") != std::string::npos) request.inputs.push_back({image, Layout::channels_last, false});
      request.outputs = {{image, Layout::channels_last, false, {1, 3 * channels}}};
      cuda::Program program;
      if (pools) {
        program = *cuda::plan_program(request).program;
      } else {
        const bool activates = op != "conv2d";
        program.steps = {*cuda::depthwise_step(request, activates ? cuda::Function::relu : cuda::Function::identity)};
      }
      std::set<std::int64_t> calls;
      for (std::uint64_t seed = 0; seed < 16; ++seed) {
        const Example example(request, seed);
        std::vector<Placed> outputs;
        outputs.emplace_back(request.outputs[0], 0);
        std::vector<const std::byte*> from;
        for (const Placed& one : example.inputs) from.push_back(one.data());
        const std::vector<std::byte*> to = {outputs[0].data()};
        HostRunner runner;
        cuda::run_step(program.steps[0], {from, to, nullptr, nullptr, 0}, runner);
        calls.insert(runner.calls);
        EXPECT_TRUE(outputs[0].is_clean_around()) << request.key();
        EXPECT_LE(example.error(0, outputs[0].elements().data()), tolerance_of(element)) << request.key();
      }
      // Some examples begin at a multiple of 16 bytes, and some do not.
      EXPECT_EQ(calls, (std::set<std::int64_t>{image.elements() * static_cast<std::int64_t>(size_of(element)) / 16,
                                               image.elements()}))
          << request.key();
    }
}

TEST(Programs, SayWhyTheyDecline) {
  const auto reason = [](const KernelRequest& request) { return cuda::plan_program(request).reason; };
  KernelRequest request = unary("relu", {3, 5}, Layout::row_major, Layout::row_major);
  request.op = "no_such_operator";
  EXPECT_EQ(reason(request), "no kernel for no_such_operator");
  request = unary("relu", {3, 5}, Layout::row_major, Layout::row_major);
  request.inputs[0].type.element = ElementType::f64;
  EXPECT_EQ(reason(request), "only f32, f16 or bf16");
  request.inputs[0].type.element = ElementType::f32;
  request.inputs[0].type.known = false;
  EXPECT_EQ(reason(request), "an operand's shape is not known");
  request = unary("relu", {1, 8, 2, 2}, Layout::blocks_of_8, Layout::row_major);
  EXPECT_EQ(reason(request), "no blocks of channels");
  request = unary("relu", {4}, Layout::column_major, Layout::row_major);
  EXPECT_EQ(reason(request), "a layout that the shape cannot have");
  request = unary("relu", {4}, Layout::row_major, Layout::row_major);
  request.inputs.clear();
  EXPECT_EQ(reason(request), "inputs and outputs are needed");
  request = unary("add", {4}, Layout::row_major, Layout::row_major);
  request.inputs.push_back({{ElementType::f32, {3}}, Layout::row_major, false});
  EXPECT_EQ(reason(request), "an input does not broadcast to the output");
  request.inputs.assign(3, request.outputs[0]);
  EXPECT_EQ(reason(request), "one output and one or two inputs are needed");
  request = unary("apply", {4}, Layout::row_major, Layout::row_major);
  request.attributes.set("act", SymbolValue{"clip"});
  EXPECT_EQ(reason(request), "no function of one number is named clip");
  request = unary("pow", {4}, Layout::row_major, Layout::row_major);
  EXPECT_EQ(reason(request), "no function of one number is named pow");
  request.op = "relu";
  request.inputs.push_back(request.inputs[0]);
  EXPECT_EQ(reason(request), "no function of two numbers is named relu");
  request = unary("reorder", {4}, Layout::row_major, Layout::row_major);
  request.inputs[0].type.element = ElementType::i32;
  EXPECT_EQ(reason(request), "element types differ");
  request.inputs[0].type.element = request.outputs[0].type.element = ElementType::other;
  EXPECT_EQ(reason(request), "elements have no size");
  request = unary("reshape", {4, 4}, Layout::column_major, Layout::row_major);
  EXPECT_EQ(reason(request), "reshape needs row-major tensors");
  request = unary("gather", {4}, Layout::row_major, Layout::row_major);
  EXPECT_EQ(reason(request), "two inputs are needed");
  request.inputs.push_back(request.inputs[0]);
  EXPECT_EQ(reason(request), "only i32 and i64 indices");
  request = unary("transpose", {2, 2, 2, 2, 2, 2, 2, 2, 2}, Layout::row_major, Layout::row_major);
  request.attributes.set("perm", std::vector<std::int64_t>{8, 7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(reason(request), "more than 8 axes");
}

TEST(Scalars, HalvesRoundToNearestEven) {
  // Every half is itself; between neighbours the nearer one is taken, in the middle the even one.
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const cuda::Half half{static_cast<std::uint16_t>(bits)};
    const float value = cuda::widen(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(cuda::widen(cuda::narrow<cuda::Half>(value))));
      continue;
    }
    ASSERT_EQ(cuda::narrow<cuda::Half>(value).bits, half.bits) << bits;
    if ((bits & 0x7fff) >= 0x7bff) continue;
    const float next = cuda::widen(cuda::Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (value + next) / 2;
    ASSERT_EQ(cuda::narrow<cuda::Half>(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(cuda::narrow<cuda::Half>(std::nextafter(middle, value)).bits, bits) << bits;
    ASSERT_EQ(cuda::narrow<cuda::Half>(std::nextafter(middle, next)).bits, bits + 1) << bits;
  }
  EXPECT_EQ(cuda::widen(cuda::Half{0x3c00}), 1.0F);
  EXPECT_EQ(cuda::widen(cuda::Half{0xc000}), -2.0F);
  EXPECT_EQ(cuda::widen(cuda::Half{1}), 0x1.0p-24F);
  EXPECT_EQ(cuda::narrow<cuda::Half>(65519.9F).bits, 0x7bff);
  EXPECT_EQ(cuda::narrow<cuda::Half>(65520.0F).bits, 0x7c00);
}

TEST(Scalars, BFloatsRoundToNearestEven) {
  EXPECT_EQ(cuda::widen(cuda::BFloat16{0x3f80}), 1.0F);
  EXPECT_EQ(cuda::narrow<cuda::BFloat16>(1.0F + 0x1.0p-8F).bits, 0x3f80);
  EXPECT_EQ(cuda::narrow<cuda::BFloat16>(1.0F + 0x1.8p-8F).bits, 0x3f81);
  EXPECT_EQ(cuda::narrow<cuda::BFloat16>(1.0F + 0x1.8p-7F).bits, 0x3f82);
  EXPECT_TRUE(std::isnan(cuda::widen(cuda::narrow<cuda::BFloat16>(std::nanf("")))));
}

TEST(Scalars, DividersDivide) {
  Random random(1, "dividers");
  for (int i = 0; i < 20000; ++i) {
    const auto divisor = static_cast<std::int64_t>(1 + random.below(i % 2 == 0 ? 1000 : 0x7fffffff));
    const cuda::Divider divider = cuda::Divider::by(divisor);
    for (const std::uint64_t n : {random.below(0x7fffffff), std::uint64_t{0}, std::uint64_t{0x7fffffff},
                                  static_cast<std::uint64_t>(divisor - 1), static_cast<std::uint64_t>(divisor)})
      if (n <= 0x7fffffff) {
        ASSERT_EQ(divider.quotient(static_cast<std::uint32_t>(n)), n / static_cast<std::uint64_t>(divisor))
            << n << " / " << divisor;
      }
  }
}

TEST(Walks, GoWhereStridesLead) {
  Random random(2, "walks");
  for (int round = 0; round < 200; ++round) {
    const auto rank = 1 + random.below(5);
    std::vector<std::int64_t> extents;
    std::array<std::vector<std::int64_t>, 2> strides;
    std::int64_t dense = 1;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      extents.insert(extents.begin(), 1 + static_cast<std::int64_t>(random.below(5)));
      strides[0].insert(strides[0].begin(), dense);
      strides[1].insert(strides[1].begin(), static_cast<std::int64_t>(random.below(9)) - 4);
      dense *= extents.front();
    }
    auto walk = cuda::walk_of<2>(extents, strides);
    ASSERT_TRUE(walk);
    ASSERT_EQ(walk->elements, dense);
    for (const bool narrow : {true, false}) {
      walk->narrow = narrow;
      for (std::int64_t i = 0; i < dense; ++i) {
        std::int64_t at[2], expected = 0, rest = i;
        for (std::size_t axis = rank; axis-- > 0;) {
          expected += rest % extents[axis] * strides[1][axis];
          rest /= extents[axis];
        }
        walk->at(i, at);
        ASSERT_EQ(at[0], i);
        ASSERT_EQ(at[1], expected);
      }
    }
  }
}

/// Computes a product as a column-major library does, by its rules in loops, and compares.
void check_product(const KernelRequest& request, const cuda::ProductPlan& plan, std::uint64_t seed) {
  const Example example(request, seed);
  Placed y(request.outputs[0], 0);
  ASSERT_GE(plan.first.leading, plan.first.rows);
  ASSERT_GE(plan.second.leading, plan.second.rows);
  ASSERT_GE(plan.result.leading, plan.result.rows);
  const auto read = [](const cuda::ColumnMajor& m, const std::byte* bytes, std::int64_t begin, std::int64_t batch,
                       std::int64_t row, std::int64_t column) {
    if (m.transposed) std::swap(row, column);
    EXPECT_LT(row, m.rows);
    EXPECT_LT(column, m.columns);
    return element_at(bytes, static_cast<std::size_t>(begin + batch * m.batch_stride + column * m.leading + row),
                      ElementType::f32);
  };
  const std::byte *a = example.inputs[plan.a].data(), *b = example.inputs[plan.b].data();
  const std::int64_t inner = plan.first.transposed ? plan.first.rows : plan.first.columns;
  for (const auto& begin : plan.offsets)
    for (std::int64_t batch = 0; batch < plan.batch; ++batch)
      for (std::int64_t row = 0; row < plan.result.rows; ++row)
        for (std::int64_t column = 0; column < plan.result.columns; ++column) {
          double sum = 0;
          for (std::int64_t k = 0; k < inner; ++k)
            sum += read(plan.first, plan.swapped ? b : a, plan.swapped ? begin.b : begin.a, batch, row, k) *
                   read(plan.second, plan.swapped ? a : b, plan.swapped ? begin.a : begin.b, batch, k, column);
          set_element(
              y.data(),
              static_cast<std::size_t>(begin.y + batch * plan.result.batch_stride + column * plan.result.leading + row),
              ElementType::f32, static_cast<float>(sum));
        }
  EXPECT_TRUE(y.is_clean_around()) << request.key();
  ASSERT_LE(example.error(0, y.data()), 1e-5) << request.key();
}

TEST(Products, AreWhatALibraryIsAsked) {
  RequestMaker maker(3);
  int made = 0;
  for (int attempt = 0; attempt < 3000 && made < 400; ++attempt) {
    const auto request = maker.product("matmul", ElementType::f32);
    if (!request) continue;
    const cuda::PlannedProduct planned = cuda::plan_product(*request);
    if (!planned.plan) continue;
    ++made;
    check_product(*request, *planned.plan, static_cast<std::uint64_t>(attempt));
  }
  EXPECT_EQ(made, 400) << "too many are declined";
}

TEST(Products, ReadAndWriteWhereOthersMoveWhatTheyDo) {
  FusedMaker maker(4);
  int made = 0;
  for (int attempt = 0; attempt < 3000 && made < 300; ++attempt) {
    const KernelRequest request = maker.product(ElementType::f32);
    const cuda::PlannedProduct planned = cuda::plan_product(request);
    if (!planned.plan) continue;
    ++made;
    check_product(request, *planned.plan, static_cast<std::uint64_t>(attempt));
  }
  EXPECT_EQ(made, 300) << "too many are declined";
}

TEST(Products, WithinWiderTensorsWhereThatIsNoMoreLaunches) {
  const auto within = [](Shape a, Shape y, Within place, Layout layout = Layout::row_major) {
    const auto rows = [](Shape shape) {
      return Operand{{ElementType::f32, std::move(shape)}, Layout::row_major, false};
    };
    KernelRequest request{"matmul", {}, {rows(std::move(a)), rows({5, 6})}, {rows(std::move(y))}, 1};
    request.outputs[0].layout = layout;
    request.outputs[0].within = place;
    return cuda::is_as_good_within(request);
  };
  EXPECT_TRUE(within({4, 5}, {4, 6}, {1, 12}));
  EXPECT_TRUE(within({3, 4, 5}, {3, 4, 6}, {2, 12}));
  EXPECT_TRUE(within({3, 4, 5}, {3, 4, 6}, {1, 8})) << "a batch in place of more rows";
  EXPECT_TRUE(within({2, 3, 4, 5}, {2, 3, 4, 6}, {1, 5}));
  EXPECT_FALSE(within({2, 3, 4, 5}, {2, 3, 4, 6}, {1, 5}, Layout::channels_last)) << "no matrices";
}

TEST(Products, OfAThinMatrixAreOurOwn) {
  RequestMaker maker(6);
  Random random(7, "wholes");
  int made = 0, biased = 0;
  for (int attempt = 0; attempt < 3000 && made < 300; ++attempt) {
    const ElementType element = attempt % 3 == 0 ? ElementType::f16 : ElementType::f32;
    auto request = maker.product(attempt % 2 == 0 ? "matmul" : "matmul_bias_act", element);
    if (!request) continue;
    if (attempt % 5 == 0) draw_wholes(*request, random);
    const cuda::PlannedProduct planned = cuda::plan_product(*request);
    if (!planned.plan) continue;
    const bool has_bias = request->inputs.size() > 2;
    const auto act =
        request->op == "matmul" ? cuda::Function::identity : *cuda::function_named(request->attributes.symbol("act"));
    const auto step = cuda::thin_product_step(*planned.plan, element, has_bias, act);
    if (!step) continue;
    ++made;
    biased += has_bias ? 1 : 0;
    check_program(Example(*request, static_cast<std::uint64_t>(attempt)), {"", {*step}});
  }
  EXPECT_EQ(made, 300) << "too few are thin";
  EXPECT_GT(biased, 60);
}

TEST(Convolutions, OfEveryChannelAreOurOwn) {
  RequestMaker maker(8);
  Random random(9, "wholes");
  int made = 0;
  for (int attempt = 0; attempt < 20000 && made < 120; ++attempt) {
    const ElementType element = attempt % 3 == 0 ? ElementType::bf16 : ElementType::f32;
    const char* op = attempt % 3 == 0 ? "conv2d" : attempt % 3 == 1 ? "conv2d_bias_act" : "conv2d_bias_add_act";
    auto request = maker.convolution(op, element);
    if (!request) continue;
    if (attempt % 5 == 0) draw_wholes(*request, random);
    const AttributeValue* act = request->attributes.find("act");
    const auto function =
        act == nullptr ? cuda::Function::identity : *cuda::function_named(request->attributes.symbol("act"));
    const auto step = cuda::depthwise_step(*request, function);
    if (!step) continue;
    ++made;
    check_program(Example(*request, static_cast<std::uint64_t>(attempt)), {"", {*step}});
  }
  EXPECT_EQ(made, 120) << "too few have channels of their own";
}

TEST(Products, SayWhyTheyDecline) {
  const auto matrix = [](Shape shape, Layout layout) {
    return Operand{{ElementType::f32, std::move(shape)}, layout, false};
  };
  KernelRequest request{"matmul", {}, {}, {}, 1};
  request.inputs = {matrix({2, 3, 4, 5}, Layout::channels_last), matrix({5, 6}, Layout::row_major)};
  request.outputs = {matrix({2, 3, 4, 6}, Layout::row_major)};
  EXPECT_EQ(cuda::plan_product(request).reason, "no matrices in layouts of images");
  request.inputs = {matrix({5}, Layout::row_major), matrix({5, 6}, Layout::row_major)};
  EXPECT_EQ(cuda::plan_product(request).reason, "rank 2 or more is needed, of a as of b");
  request.inputs = {matrix({2, 3, 4, 7}, Layout::row_major), matrix({5, 6}, Layout::row_major)};
  EXPECT_EQ(cuda::plan_product(request).reason, "the operands' extents do not fit");
  // Heads that both operands have, behind images that only one has, the rows between them.
  request.inputs = {matrix({300, 2, 300, 4, 5}, Layout::rows_outer), matrix({2, 300, 5, 6}, Layout::row_major)};
  request.outputs = {matrix({300, 2, 300, 4, 6}, Layout::row_major)};
  EXPECT_EQ(cuda::plan_product(request).reason, "batches in more than one direction");
}

// Every part of a launch has its shared memory in all blocks of it.
TEST(ProgramsSideBySide, TakeNoMoreSharedMemoryThanABlockHas) {
  const auto turned = [](ElementType element) {
    const TensorType type{element, {40, 70}};
    return KernelRequest{std::string(reorder_op), {}, {{type, Layout::row_major}}, {{type, Layout::column_major}}, 1};
  };
  const auto planned = [](const KernelRequest& request, std::uint32_t count) {
    std::vector<std::uint32_t> names(count);
    std::vector<NamedRequest> requests;
    for (std::uint32_t i = 0; i < count; ++i) names[i] = i;
    for (std::uint32_t i = 0; i < count; ++i) requests.push_back({&request, std::span(&names[i], 1)});
    return cuda::plan_beside(join_requests(requests).request);
  };
  for (const auto& [element, most] :
       {std::pair(ElementType::f32, 7U), {ElementType::i64, 3U}, {ElementType::u8, 16U}}) {
    EXPECT_TRUE(planned(turned(element), most).program);
    const std::string more = most < 16 ? planned(turned(element), most + 1).reason : "";
    EXPECT_EQ(more, most < 16 ? "more shared memory than a block should have" : "");
  }
  EXPECT_EQ(planned(turned(ElementType::f32), 1).reason, "operators that read each other's results");
}

}  // namespace
}  // namespace taso::testing
