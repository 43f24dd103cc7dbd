// The CUDA backend as programs load it. Without a device: plans for one that is only described. With one: every kernel
// against the operators' definitions.
#include <fstream>
#include <iterator>

#include "runtime/backend.h"
#include "runtime/fusion.h"
#include "tests/runtime/fused_requests.h"

namespace taso::testing {
namespace {

std::string described_device() {
  std::ifstream file(test::source_folder() + "/tests/data/cuda/h200_by_hand.json");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The backend for the description; one per mode, as it holds a library's state. Never destroyed: a library may be gone
/// when the program's variables are.
std::shared_ptr<Backend> planner(MathMode math = MathMode::strict) {
  static auto& backends = *new std::map<MathMode, std::shared_ptr<Backend>>;
  std::shared_ptr<Backend>& backend = backends[math];
  if (!backend) backend = value_of(load_backend("cuda", {math, 0, described_device()}));
  return backend;
}

/// The backend for the device, or null.
std::shared_ptr<Backend> device(MathMode math = MathMode::strict) {
  static auto& backends = *new std::map<MathMode, std::shared_ptr<Backend>>;
  if (const auto known = backends.find(math); known != backends.end()) return known->second;
  auto loaded = load_backend("cuda", {math, 0, ""});
  return backends[math] = loaded ? *loaded : nullptr;
}

#ifdef TASO_CUDA_MODULE
#define NEEDS_MODULE() (void)0
#else
#define NEEDS_MODULE() GTEST_SKIP() << "built without the CUDA backend"
#endif
#define NEEDS_DEVICE() \
  NEEDS_MODULE();      \
  if (device() == nullptr) GTEST_SKIP() << "no CUDA device"

bool is_one_line(const std::string& text) {
  return !text.empty() &&
         std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 32; });
}

TEST(Cuda, ModuleLoadsOrSaysWhyNot) {
  const auto loaded = load_backend("cuda", {});
  if (loaded) {
    EXPECT_TRUE((*loaded)->can_run());
    EXPECT_EQ((*loaded)->name(), "cuda");
    return;
  }
  EXPECT_EQ(loaded.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(loaded.error().exit_code(), 6);
  EXPECT_TRUE(is_one_line(loaded.error().message)) << loaded.error().message;
  EXPECT_EQ(loaded.error().message.rfind("device 'cuda' is not available: ", 0), 0U) << loaded.error().message;
#ifdef TASO_CUDA_MODULE
  EXPECT_NE(loaded.error().message.find("no CUDA device"), std::string::npos) << loaded.error().message;
#else
  EXPECT_NE(loaded.error().message.find("there is no taso_cuda.so in "), std::string::npos);
#endif
}

TEST(Cuda, WrongDescriptionsAreOneLine) {
  NEEDS_MODULE();
  const std::string right = described_device();
  std::string text = right;
  text.replace(text.find("132"), 3, "\"many\"");
  for (const std::string& json : {std::string("{"), std::string("[]"), std::string("no json\nat all"),
                                  right.substr(0, 300), text, std::string("{\"deviceName\": \"NVIDIA H200\"}")}) {
    const auto loaded = load_backend("cuda", {MathMode::strict, 0, json});
    ASSERT_FALSE(loaded.ok()) << json;
    EXPECT_EQ(loaded.error().code, ErrorCode::device_unavailable);
    EXPECT_TRUE(is_one_line(loaded.error().message)) << loaded.error().message;
    EXPECT_NE(loaded.error().message.find("cuDNN refuses"), std::string::npos) << loaded.error().message;
  }
}

TEST(CudaPlanner, NamesItselfAndRunsNothing) {
  NEEDS_MODULE();
  const auto backend = planner();
  EXPECT_EQ(backend->name(), "cuda");
  EXPECT_FALSE(backend->can_run());
  EXPECT_EQ(backend->identity().rfind("NVIDIA H200 (from a description); CUDA ", 0), 0U) << backend->identity();
  EXPECT_NE(backend->identity().find("; fp32; taso "), std::string::npos) << backend->identity();
  EXPECT_NE(backend->identity(), planner(MathMode::tf32)->identity());
  EXPECT_EQ(value_of(backend->device_properties()), described_device());
  const auto memory = backend->allocate(16);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(memory.error().message, "nothing runs on the description of a device");
  RequestMaker maker(1);
  const KernelRequest request = *maker.make("relu");
  const auto measured = backend->measure(request, registry(), index_bounds(request, registry()), {});
  ASSERT_FALSE(measured.ok());
  EXPECT_EQ(measured.error().code, ErrorCode::device_unavailable);
  const KernelOffer offer = backend->create(request, registry());
  ASSERT_NE(offer.kernel, nullptr) << offer.reason;
  const Status executed = offer.kernel->execute({});
  ASSERT_FALSE(executed.ok());
  EXPECT_EQ(executed.error().code, ErrorCode::device_unavailable);
  EXPECT_NE(executed.error().message.find("cannot be run (own elementwise)"), std::string::npos)
      << executed.error().message;
}

struct ConvolutionCase {
  const char* name;
  Shape x, w;
  std::vector<std::int64_t> strides, pads;
};

/// Convolutions as published networks have them.
const std::vector<ConvolutionCase>& convolutions() {
  static const std::vector<ConvolutionCase> cases = {
      {"dense 3x3", {1, 64, 56, 56}, {64, 64, 3, 3}, {1, 1}, {1, 1, 1, 1}},
      {"dense 1x1", {1, 256, 56, 56}, {64, 256, 1, 1}, {1, 1}, {0, 0, 0, 0}},
      {"strided 1x1", {1, 256, 56, 56}, {512, 256, 1, 1}, {2, 2}, {0, 0, 0, 0}},
      {"32 groups", {1, 128, 56, 56}, {128, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}},
      {"depthwise 5x5", {1, 168, 28, 28}, {168, 1, 5, 5}, {2, 2}, {2, 2, 2, 2}},
      {"first 7x7", {1, 3, 224, 224}, {64, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}},
      {"one row", {1, 192, 17, 17}, {192, 192, 1, 7}, {1, 1}, {0, 3, 0, 3}},
      {"batch of 16", {16, 512, 7, 7}, {512, 512, 3, 3}, {1, 1}, {1, 1, 1, 1}},
      {"uneven pads", {1, 32, 112, 112}, {64, 32, 3, 3}, {2, 2}, {0, 0, 1, 1}},
      {"odd channels", {1, 3, 15, 15}, {5, 3, 3, 3}, {1, 1}, {0, 1, 2, 0}},
  };
  return cases;
}

/// The request for a case: with a bias, a residual and an activation where `act` is not empty.
KernelRequest convolution_request(const ConvolutionCase& one, ElementType element, Layout layout, bool bias,
                                  bool residual, const std::string& act) {
  const std::string op = residual ? "conv2d_bias_add_act" : bias || act != "identity" ? "conv2d_bias_act" : "conv2d";
  KernelRequest request;
  request.op = op;
  request.attributes = {{"strides", one.strides}, {"pads", one.pads}, {"dilations", std::vector<std::int64_t>{1, 1}}};
  if (op != "conv2d") request.attributes.set("act", SymbolValue{act});
  Shape y = {one.x[0], one.w[0]};
  for (std::size_t i = 0; i < 2; ++i)
    y.push_back((one.x[2 + i] + one.pads[i] + one.pads[2 + i] - one.w[2 + i]) / one.strides[i] + 1);
  request.inputs = {{{element, one.x}, layout, false}, {{element, one.w}, Layout::row_major, true}};
  if (op != "conv2d") request.inputs.push_back({{element, {one.w[0]}}, Layout::row_major, true});
  if (residual) request.inputs.push_back({{element, y}, layout, false});
  request.outputs = {{{element, y}, layout, false}};
  return request;
}

TEST(CudaPlanner, ConvolutionsOfNetworksHavePlans) {
  NEEDS_MODULE();
  for (const MathMode math : {MathMode::strict, MathMode::tf32})
    for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      if (math == MathMode::tf32 && element != ElementType::f32) continue;
      for (const Layout layout : {Layout::row_major, Layout::channels_last})
        for (const ConvolutionCase& one : convolutions())
          for (const auto& [bias, residual, act] :
               std::vector<std::tuple<bool, bool, std::string>>{{false, false, "identity"},
                                                                {true, false, "identity"},
                                                                {true, false, "relu"},
                                                                {true, true, "relu"},
                                                                {true, true, "identity"}}) {
            const KernelRequest request = convolution_request(one, element, layout, bias, residual, act);
            const KernelOffer offer = planner(math)->create(request, registry());
            ASSERT_NE(offer.kernel, nullptr) << one.name << ": " << request.key() << ": " << offer.reason;
            const std::string& how = offer.kernel->implementation();
            EXPECT_EQ(how.rfind("cudnn engine ", 0), 0U) << how;
            EXPECT_NE(how.find(" (first of "), std::string::npos) << how;
            EXPECT_LE(offer.kernel->workspace_bytes(), std::size_t{256} << 20) << request.key();
            const bool packs = layout == Layout::channels_last && one.w[1] > 1 && one.w[2] * one.w[3] > 1;
            EXPECT_EQ(offer.kernel->packed_format(1), packs ? "krsc" : "") << request.key();
          }
    }
}

/// The same with the result among the channels of a wider tensor.
KernelRequest within_channels(KernelRequest request) {
  Operand& y = request.outputs[0];
  y.within = {1, 2 * y.type.shape[1] + 32};
  return request;
}

/// As concatenations are written in place. Whether the plans run is for a device to say.
TEST(CudaPlanner, ConvolutionsWithinWiderTensorsHavePlans) {
  NEEDS_MODULE();
  for (const MathMode math : {MathMode::strict, MathMode::tf32})
    for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      if (math == MathMode::tf32 && element != ElementType::f32) continue;
      for (const ConvolutionCase& one : convolutions())
        for (const auto& [bias, act] :
             std::vector<std::pair<bool, std::string>>{{false, "identity"}, {true, "identity"}, {true, "relu"}}) {
          const KernelRequest request =
              within_channels(convolution_request(one, element, Layout::channels_last, bias, false, act));
          EXPECT_TRUE(planner(math)->writes_within(request)) << one.name << ": " << request.key();
          const KernelOffer offer = planner(math)->create(request, registry());
          ASSERT_NE(offer.kernel, nullptr) << one.name << ": " << request.key() << ": " << offer.reason;
          EXPECT_EQ(offer.kernel->implementation().rfind("cudnn engine ", 0), 0U) << offer.kernel->implementation();
          EXPECT_EQ(offer.kernel->launches(), 1U) << offer.kernel->implementation();
        }
    }
}

TEST(CudaPlanner, WritesWithinWiderTensorsUntilThatFails) {
  NEEDS_MODULE();
  const auto backend = value_of(load_backend("cuda", {MathMode::strict, 0, described_device()}));
  const KernelRequest plain =
      convolution_request(convolutions()[0], ElementType::f32, Layout::channels_last, true, false, "relu");
  const KernelRequest request = within_channels(plain);
  EXPECT_TRUE(backend->reject(request));
  EXPECT_TRUE(backend->writes_within(request)) << "by another engine";
  EXPECT_TRUE(backend->reject(request));
  EXPECT_FALSE(backend->writes_within(request)) << "a copy is left";
  EXPECT_EQ(backend->create(plain, registry()).reason, "");
}

/// Choices as a program keeps them, and what was asked of them.
class GivenChoices final : public EngineChoices {
 public:
  explicit GivenChoices(std::string engine) : engine_(std::move(engine)) {}
  std::optional<std::string> find(const std::string& key) override {
    asked.push_back(key);
    return key.find("; all engines") == std::string::npos ? std::optional(engine_) : std::nullopt;
  }
  Status record(const std::string&, const EngineChoice&) override {
    ++recorded;
    return {};
  }
  Status withdraw(const std::string& key) override {
    withdrawn.push_back(key);
    return {};
  }
  std::vector<std::string> asked, withdrawn;
  int recorded = 0;

 private:
  std::string engine_;
};

TEST(CudaPlanner, TakesTheEngineThatWasChosen) {
  NEEDS_MODULE();
  const auto implementation = [](const std::string& choice, KernelRequest request, bool all = false) {
    BackendOptions options{MathMode::strict, 0, described_device()};
    options.all_engines = all;
    const auto backend = value_of(load_backend("cuda", options));
    const auto choices = std::make_shared<GivenChoices>(choice);
    backend->use_choices(choices);
    request.threads = 4;  // of no meaning for an engine
    request.cached_tenths = 10;
    const KernelOffer offer = backend->create(request, registry());
    EXPECT_EQ(choices->asked.size(), all ? 1U : 2U);
    KernelRequest of_key = request;
    of_key.threads = 1;
    of_key.cached_tenths = 0;
    EXPECT_EQ(choices->asked.back(), of_key.key() + (all ? "; all engines" : ""));
    EXPECT_EQ(choices->recorded, 0) << "without a device nothing is chosen by timing";
    return offer.kernel ? offer.kernel->implementation() : offer.reason;
  };
  const KernelRequest grouped =
      convolution_request(convolutions()[3], ElementType::f32, Layout::channels_last, true, false, "relu");
  const std::string first = implementation("", grouped);
  EXPECT_NE(first.find(" (first of "), std::string::npos) << first;
  // Engine 0 has no knobs that must be set, and computes all of these.
  EXPECT_EQ(implementation("conv; engine 0; knobs; best of 8, 1 failed", grouped),
            "cudnn engine 0 and own epilogue (best of 8, 1 failed)");
  EXPECT_EQ(implementation("pad, conv; engine 0; knobs; best of 8", grouped),
            "cudnn engine 0 after own pad and own epilogue (best of 8)");
  // Our own kernel for channels by themselves, with all that is to be computed; others have none.
  const auto depthwise = std::find_if(convolutions().begin(), convolutions().end(),
                                      [](const ConvolutionCase& one) { return one.w[1] == 1 && one.w[0] == one.x[1]; });
  ASSERT_NE(depthwise, convolutions().end());
  const char* const own = "own depthwise; engine -1; knobs; best of 9";
  EXPECT_EQ(implementation(
                own, convolution_request(*depthwise, ElementType::f16, Layout::channels_last, true, true, "sigmoid")),
            "own depthwise (best of 9)");
  EXPECT_EQ(implementation(own, grouped), first);
  // What no version of us or of cuDNN means any more is as if it were not there.
  for (const char* unknown : {"conv+gelu; engine 0; knobs; best of 8", "conv; engine 1000000; knobs; best of 8",
                              "conv; engine 0; knobs 1000=1; best of 8", "conv; engine 0; knobs", "engine 0"})
    EXPECT_EQ(implementation(unknown, grouped), first) << unknown;
  EXPECT_NE(implementation("conv; engine 0; knobs; best of 8", grouped, true).find(" (first of "), std::string::npos)
      << "few are not all";
}

/// The one step of attention that a device of such choices has; nothing if it is not fused.
std::optional<KernelRequest> attention_on(Backend& backend) {
  const Graph graph = graph_of(R"(
input q f16[1, 2, 16, 64]
input k f16[1, 2, 16, 64]
input v f16[1, 2, 16, 64]
output matmul(softmax(matmul(q, transpose(k; perm=[0, 1, 3, 2])); axis=-1), v)
)");
  const LoweredGraph steps = fuse_steps(value_of(lower(graph, registry())),
                                        {.fuses = [&](const KernelRequest& one) { return backend.fuses(one); }});
  if (steps.steps.size() != 1) return std::nullopt;
  return steps.steps[0].kernel->request;
}

TEST(CudaPlanner, TakesTheEngineOfAttentionThatWasChosen) {
  NEEDS_MODULE();
  const auto backend = value_of(load_backend("cuda", {MathMode::strict, 0, described_device()}));
  const auto choices = std::make_shared<GivenChoices>("attention; engine 5; knobs 2=1; best of 3, 1 failed");
  backend->use_choices(choices);
  const std::optional<KernelRequest> attention = attention_on(*backend);
  ASSERT_TRUE(attention.has_value());
  EXPECT_EQ(backend->create(*attention, registry()).kernel->implementation(),
            "cudnn attention, engine 5 (best of 3, 1 failed)");
  EXPECT_EQ(choices->asked.back(), attention->key());
  EXPECT_EQ(choices->recorded, 0);
  // Another engine is tried once, then it is computed by its operators.
  EXPECT_TRUE(backend->reject(*attention));
  EXPECT_EQ(choices->withdrawn, std::vector<std::string>{attention->key()});
  EXPECT_TRUE(backend->fuses(*attention));
  EXPECT_TRUE(backend->reject(*attention));
  EXPECT_FALSE(backend->fuses(*attention));
  EXPECT_FALSE(backend->reject(*attention));
  EXPECT_FALSE(attention_on(*backend).has_value());
}

TEST(CudaPlanner, HasAnotherWayForKernelsThatFailed) {
  NEEDS_MODULE();
  const auto backend = value_of(load_backend("cuda", {MathMode::strict, 0, described_device()}));
  const auto reason = [&](const KernelRequest& request) { return backend->create(request, registry()).reason; };
  const KernelRequest convolution =
      convolution_request(convolutions()[0], ElementType::f32, Layout::channels_last, true, false, "relu");
  EXPECT_TRUE(backend->reject(convolution));
  EXPECT_EQ(reason(convolution), "") << "by another engine";
  EXPECT_TRUE(backend->reject(convolution));
  EXPECT_EQ(reason(convolution), "its kernels failed when they ran");
  KernelRequest own;
  own.op = "tanh";
  own.inputs = own.outputs = {{TensorType(ElementType::f32, {4, 8}), Layout::row_major, false}};
  EXPECT_EQ(reason(own), "");
  EXPECT_TRUE(backend->reject(own));
  EXPECT_EQ(reason(own), "its kernels failed when they ran") << "the host is what is left";
}

TEST(CudaPlanner, FewEnginesAreNamedIfNotAllAreAskedFor) {
  NEEDS_MODULE();
  const auto candidates = [](bool all) {
    BackendOptions options{MathMode::tf32, 0, described_device()};
    options.all_engines = all;
    const KernelRequest request =
        convolution_request(convolutions()[0], ElementType::f32, Layout::channels_last, true, false, "relu");
    const std::string how =
        value_of(load_backend("cuda", options))->create(request, registry()).kernel->implementation();
    return std::stoi(how.substr(how.find("first of ") + 9));
  };
  EXPECT_LE(candidates(false), 9);
  EXPECT_GT(candidates(true), 9);
}

TEST(CudaPlanner, KnowsTheCache) {
  NEEDS_MODULE();
  EXPECT_GT(planner()->cache_bytes(), std::size_t{40} << 20);
  EXPECT_LT(planner()->cache_bytes(), std::size_t{80} << 20);
}

TEST(CudaPlanner, SmallOddConvolutionsHavePlans) {
  NEEDS_MODULE();
  for (const MathMode math : {MathMode::strict, MathMode::tf32})
    for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16})
      for (const char* op : {"conv2d", "conv2d_bias_act", "conv2d_bias_add_act"}) {
        RequestMaker maker(31);
        int made = 0;
        for (int attempt = 0; attempt < 60 && made < 15; ++attempt)
          if (const auto request = maker.convolution(op, element)) {
            ++made;
            const KernelOffer offer = planner(math)->create(*request, registry());
            EXPECT_NE(offer.kernel, nullptr) << request->key() << ": " << offer.reason;
          }
        EXPECT_EQ(made, 15) << "too few requests fit";
      }
}

KernelRequest product_request(const Shape& a, Layout la, const Shape& b, Layout lb, Layout ly, ElementType element,
                              const std::string& act) {
  KernelRequest request;
  request.op = act.empty() ? "matmul" : "matmul_bias_act";
  if (!act.empty()) request.attributes.set("act", SymbolValue{act});
  Shape y = a;
  y.back() = b.back();
  request.inputs = {{{element, a}, la, false}, {{element, b}, lb, false}};
  if (!act.empty()) request.inputs.push_back({{element, {b.back()}}, Layout::row_major, true});
  request.outputs = {{{element, y}, ly, false}};
  return request;
}

TEST(CudaPlanner, ProductsAreDescribed) {
  NEEDS_MODULE();
  const auto how = [](const KernelRequest& request) {
    const KernelOffer offer = planner()->create(request, registry());
    return offer.kernel ? offer.kernel->implementation() : offer.reason;
  };
  const Layout row = Layout::row_major, col = Layout::column_major;
  EXPECT_EQ(how(product_request({128, 768}, row, {768, 64}, row, row, ElementType::f32, "")), "cublasLt");
  EXPECT_EQ(how(product_request({128, 768}, col, {768, 64}, col, col, ElementType::f16, "")), "cublasLt");
  EXPECT_EQ(how(product_request({128, 768}, row, {768, 64}, row, row, ElementType::f32, "relu")), "cublasLt");
  EXPECT_EQ(how(product_request({128, 768}, row, {768, 64}, row, row, ElementType::f32, "gelu")),
            "cublasLt and own epilogue");
  EXPECT_EQ(how(product_request({128, 768}, row, {768, 64}, row, col, ElementType::f32, "relu")),
            "cublasLt and own epilogue")
      << "the library's bias goes along rows";
  EXPECT_EQ(how(product_request({12, 128, 64}, Layout::rows_outer, {12, 64, 128}, Layout::columns_outer, row,
                                ElementType::f32, "")),
            "cublasLt");
  RequestMaker maker(9);
  for (int attempt = 0; attempt < 300; ++attempt)
    if (const auto request = maker.product(attempt % 2 == 0 ? "matmul" : "matmul_bias_act", ElementType::f32)) {
      EXPECT_EQ(how(*request).rfind("cublasLt", 0), 0U) << request->key() << ": " << how(*request);
    }
}

TEST(CudaPlanner, WhatItFusesIsOneLaunch) {
  NEEDS_MODULE();
  FusedMaker maker(13);
  int chains = 0, products = 0;
  for (int attempt = 0; attempt < 300; ++attempt) {
    const ElementType element = attempt % 2 == 0 ? ElementType::f32 : ElementType::bf16;
    const bool product = attempt % 3 == 0;
    const KernelRequest request = product ? maker.product(element) : maker.chain(element, attempt % 3 == 1);
    if (!planner()->fuses(request)) continue;
    const KernelOffer offer = planner()->create(request, registry());
    ASSERT_NE(offer.kernel, nullptr) << request.key() << ": " << offer.reason;
    EXPECT_EQ(offer.kernel->launches(), 1U) << request.key();
    EXPECT_EQ(offer.kernel->implementation().rfind(product ? "cublasLt" : "own fused: ", 0), 0U);
    ++(product ? products : chains);
  }
  EXPECT_GT(chains, 80);
  EXPECT_GT(products, 30);
}

TEST(CudaPlanner, AdditionAndLayerNormAreOneKernel) {
  NEEDS_MODULE();
  const Graph graph = graph_of(
      "input x f32[128, 768]\ninput y f32[128, 768]\ninput g f32[768]\ninput h f32[768]\n"
      "output layer_norm(add(x, y), g, h; epsilon=1e-05)\n");
  for (const ElementType storage : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const LoweredGraph fused = fuse_steps(value_of(lower(graph, registry(), {.float_storage = storage})),
                                          {.fuses = [](const KernelRequest& one) { return planner()->fuses(one); }});
    ASSERT_EQ(fused.steps.size(), 1U);
    const KernelOffer offer = planner()->create(fused.steps[0].kernel->request, registry());
    ASSERT_NE(offer.kernel, nullptr) << offer.reason;
    EXPECT_EQ(offer.kernel->launches(), 1U);
    EXPECT_EQ(offer.kernel->implementation(), "own fused: add layer_norm");
  }
}

TEST(CudaPlanner, SaysWhyItDeclines) {
  NEEDS_MODULE();
  const auto reason = [](const KernelRequest& request) { return planner()->create(request, registry()).reason; };
  const ConvolutionCase& dense = convolutions()[0];
  const Layout row = Layout::row_major, last = Layout::channels_last;
  KernelRequest request = convolution_request(dense, ElementType::f64, row, false, false, "identity");
  EXPECT_EQ(reason(request), "only f32, f16 or bf16");
  request = convolution_request(dense, ElementType::f32, row, false, false, "identity");
  request.inputs[1].type.element = ElementType::f16;
  EXPECT_EQ(reason(request), "only operands of one type");
  request = convolution_request(dense, ElementType::f32, row, false, false, "identity");
  request.outputs[0].layout = last;
  EXPECT_EQ(reason(request), "input and output in different layouts");
  request.outputs[0].layout = Layout::column_major;
  EXPECT_EQ(reason(request), "only images in row and nhwc");
  request = convolution_request(dense, ElementType::f32, Layout::blocks_of_8, false, false, "identity");
  EXPECT_EQ(reason(request), "no blocks of channels");
  request = convolution_request(dense, ElementType::f32, row, true, false, "no_such_function");
  EXPECT_EQ(reason(request), "no such activation");
  request = convolution_request(dense, ElementType::f32, row, true, false, "relu");
  request.inputs[2].type.shape = {1};
  EXPECT_EQ(reason(request), "a bias that is not one number for every channel");
  request = convolution_request(dense, ElementType::f32, row, true, true, "relu");
  request.inputs[3].type.shape[0] = 2;
  EXPECT_EQ(reason(request), "a residual of another shape than the output");
  request = convolution_request(dense, ElementType::f32, row, false, false, "identity");
  request.inputs[0].type.shape[1] = 0;
  EXPECT_EQ(reason(request), "an operand is empty");
  request.inputs[0].type.known = false;
  EXPECT_EQ(reason(request), "an operand's shape is not known");
  request.inputs.resize(1);
  request.inputs[0].type = request.outputs[0].type;
  EXPECT_EQ(reason(request), "two to four inputs are needed");
  request.outputs.clear();
  EXPECT_EQ(reason(request), "no outputs");
  request = product_request({4, 5}, row, {5, 6}, row, row, ElementType::f32, "gelu");
  request.inputs[2].type.shape = {1};
  EXPECT_EQ(reason(request), "a bias that is not one number for every column");
  request.op = "matmul";
  request.inputs.resize(1);
  EXPECT_EQ(reason(request), "two or three inputs are needed");
}

TEST(CudaPlanner, OutputsWithoutElementsNeedNothing) {
  NEEDS_MODULE();
  RequestMaker maker(1);
  KernelRequest request = *maker.make("relu");
  request.inputs[0].type.shape = request.outputs[0].type.shape = {0, 3};
  request.inputs[0].layout = request.outputs[0].layout = Layout::row_major;
  const KernelOffer offer = planner()->create(request, registry());
  ASSERT_NE(offer.kernel, nullptr) << offer.reason;
  EXPECT_EQ(offer.kernel->implementation(), "nothing");
  EXPECT_TRUE(offer.kernel->execute({}).ok());
}

// ---- with a device

/// A tensor on the device, in the middle of poisoned memory and not always aligned to more than an element.
class OnDevice {
 public:
  OnDevice(std::shared_ptr<Backend> backend, std::size_t bytes, std::size_t offset)
      : backend_(std::move(backend)),
        size_(bytes),
        offset_(margin + offset),
        buffer_(value_of(DeviceBuffer::create(backend_, offset_ + bytes + margin))) {
    const std::vector<std::byte> poison(buffer_.size(), std::byte{0xff});
    value(backend_->upload(poison, buffer_.data()));
  }
  [[nodiscard]] std::byte* data() const { return buffer_.data() + offset_; }
  void set(std::span<const std::byte> bytes) { value(backend_->upload(bytes, data())); }
  /// The tensor; fails the test if something was written beside it.
  [[nodiscard]] std::vector<std::byte> get() const {
    std::vector<std::byte> all(buffer_.size());
    value(backend_->download(buffer_.data(), all));
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i < offset_ || i >= offset_ + size_) {
        EXPECT_EQ(all[i], std::byte{0xff}) << "written beside the tensor";
      }
    return {all.begin() + static_cast<std::ptrdiff_t>(offset_),
            all.begin() + static_cast<std::ptrdiff_t>(offset_ + size_)};
  }

 private:
  static constexpr std::size_t margin = 256;
  static void value(const Status& status) {
    if (!status) throw std::runtime_error(status.error().to_string());
  }
  std::shared_ptr<Backend> backend_;
  std::size_t size_, offset_;
  DeviceBuffer buffer_;
};

/// A kernel with its operands on the device.
class DeviceCall {
 public:
  DeviceCall(const std::shared_ptr<Backend>& backend, const KernelRequest& request,
             const std::vector<std::span<const std::byte>>& inputs, std::uint64_t seed) {
    KernelOffer offer = backend->create(request, registry());
    reason = offer.reason;
    kernel = std::move(offer.kernel);
    if (!kernel) return;
    Random random(seed, "places");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t width = size_of(request.inputs[i].type.element);
      std::vector<std::byte> packed;
      std::span<const std::byte> bytes = inputs[i];
      if (!kernel->packed_format(i).empty()) {
        packed.resize(kernel->packed_bytes(i));
        kernel->pack(i, bytes.data(), packed.data());
        bytes = packed;
      }
      inputs_.emplace_back(backend, bytes.size(), random.below(3) == 0 ? width : 0);
      inputs_.back().set(bytes);
      from_.push_back(inputs_.back().data());
    }
    for (const Operand& output : request.outputs) {
      const bool is_aligned = output.within || random.below(3) != 0;
      outputs.emplace_back(backend, static_cast<std::size_t>(spanned_bytes(output)),
                           is_aligned ? 0 : size_of(output.type.element));
      to_.push_back(outputs.back().data());
    }
    workspace_.emplace_back(backend, kernel->workspace_bytes(), 64);  // what is promised, and no more
  }
  [[nodiscard]] Status execute() const { return kernel->execute({from_, to_, workspace_[0].data()}); }

  std::unique_ptr<Kernel> kernel;
  std::string reason;
  std::vector<OnDevice> outputs;

 private:
  std::vector<OnDevice> inputs_, workspace_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
};

/// Whether the memory between the elements of an output is as it was.
bool is_clean_between(const Operand& output, const std::vector<std::byte>& place) {
  const ByteRuns runs = runs_of(output);
  for (std::size_t i = 0; i < place.size(); ++i)
    if (i % runs.distance >= runs.bytes && place[i] != std::byte{0xff}) return false;
  return true;
}

void check_on_device(const std::shared_ptr<Backend>& backend, const Example& example, double tolerance,
                     std::uint64_t seed) {
  std::vector<std::span<const std::byte>> inputs;
  for (const Placed& one : example.inputs) inputs.emplace_back(one.data(), one.size());
  const DeviceCall call(backend, example.request, inputs, seed);
  ASSERT_NE(call.kernel, nullptr) << example.request.key() << ": " << call.reason;
  for (int run = 0; run < 2; ++run) {  // eagerly, then recorded
    if (run == 0) {
      const Status done = call.execute();
      ASSERT_TRUE(done.ok()) << example.request.key() << ": " << done.error().to_string();
    } else {
      const auto recording = value_of(backend->record([&] { return call.execute(); }));
      ASSERT_TRUE(recording->replay().ok()) << example.request.key();
    }
    const Status waited = backend->synchronize();
    ASSERT_TRUE(waited.ok()) << example.request.key() << ": " << waited.error().to_string();
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const Operand& output = example.request.outputs[i];
      const std::vector<std::byte> place = call.outputs[i].get();
      AlignedBuffer elements(static_cast<std::size_t>(output.type.bytes()));
      gather_runs(output, place.data(), elements.data());
      EXPECT_LE(example.error(i, elements.data()), tolerance)
          << example.request.key() << " by " << call.kernel->implementation();
      EXPECT_TRUE(is_clean_between(output, place)) << example.request.key() << " by " << call.kernel->implementation();
    }
  }
}

class CudaDevice : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaDevice, ComputesWhatIsDefined) {
  NEEDS_DEVICE();
  RequestMaker maker(21);
  for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16})
    for (int attempt = 0, made = 0; attempt < 100 && made < 15; ++attempt)
      if (const auto request = maker.make(GetParam(), element)) {
        ++made;
        check_on_device(device(), Example(*request, static_cast<std::uint64_t>(attempt)), tolerance_of(element),
                        static_cast<std::uint64_t>(attempt));
      }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaDevice, ::testing::ValuesIn(RequestMaker::operators()),
                         [](const auto& one) { return one.param; });

TEST(CudaOnDevice, MovesAnyType) {
  NEEDS_DEVICE();
  RequestMaker maker(5);
  for (const std::string op : {"concat", "split", "slice", "transpose", "broadcast", "reshape", "reorder", "gather"})
    for (const ElementType element : {ElementType::i8, ElementType::i16, ElementType::i32, ElementType::i64})
      for (int attempt = 0; attempt < 4; ++attempt)
        if (const auto request = maker.make(op, element)) check_on_device(device(), Example(*request, 3), 0, 4);
}

/// A few of what the tests after it do, for a machine that is lent for minutes.
TEST(CudaOnDevice, SomeThatLibrariesCompute) {
  NEEDS_DEVICE();
  for (const ElementType element : {ElementType::f32, ElementType::f16}) {
    RequestMaker maker(61);
    for (int attempt = 0, made = 0; attempt < 100 && made < 12; ++attempt) {
      const auto request = attempt % 2 == 0
                               ? maker.convolution(attempt % 4 == 0 ? "conv2d_bias_act" : "conv2d", element)
                               : maker.product("matmul_bias_act", element);
      if (!request) continue;
      ++made;
      check_on_device(device(MathMode::tf32), Example(*request, static_cast<std::uint64_t>(attempt)),
                      tolerance_of(element, true), 6);
    }
  }
}

TEST(CudaOnDevice, Convolutions) {
  NEEDS_DEVICE();
  for (const MathMode math : {MathMode::strict, MathMode::tf32})
    for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16})
      for (const char* op : {"conv2d", "conv2d_bias_act", "conv2d_bias_add_act"}) {
        RequestMaker maker(31);
        for (int attempt = 0, made = 0; attempt < 60 && made < 15; ++attempt)
          if (const auto request = maker.convolution(op, element)) {
            ++made;
            check_on_device(device(math), Example(*request, static_cast<std::uint64_t>(attempt)),
                            tolerance_of(element, math == MathMode::tf32), 5);
          }
      }
}

/// Channels of a wider tensor, as concatenations are written in place.
TEST(CudaOnDevice, ConvolutionsWithinWiderTensors) {
  NEEDS_DEVICE();
  for (const MathMode math : {MathMode::strict, MathMode::tf32})
    for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16})
      for (const ConvolutionCase& one : convolutions()) {
        const KernelRequest request =
            within_channels(convolution_request(one, element, Layout::channels_last, true, false, "relu"));
        if (!device(math)->writes_within(request)) continue;
        check_on_device(device(math), Example(request, 6), tolerance_of(element, math == MathMode::tf32), 6);
      }
}

TEST(CudaOnDevice, OwnKernelsWithinWiderTensors) {
  NEEDS_DEVICE();
  RequestMaker maker(14);
  Random random(15, "wholes");
  for (const std::string& op : RequestMaker::operators())
    for (const ElementType element : {ElementType::f32, ElementType::f16}) {
      auto request = maker.make(op, element);
      if (!request) continue;
      draw_wholes(*request, random);
      if (device()->writes_within(*request)) check_on_device(device(), Example(*request, 9), tolerance_of(element), 9);
    }
}

TEST(CudaOnDevice, Products) {
  NEEDS_DEVICE();
  for (const MathMode math : {MathMode::strict, MathMode::tf32})
    for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16})
      for (const char* op : {"matmul", "matmul_bias_act"}) {
        RequestMaker maker(41);
        for (int attempt = 0, made = 0; attempt < 100 && made < 25; ++attempt)
          if (const auto request = maker.product(op, element)) {
            ++made;
            check_on_device(device(math), Example(*request, static_cast<std::uint64_t>(attempt)),
                            tolerance_of(element, math == MathMode::tf32), 7);
          }
      }
}

TEST(CudaOnDevice, FusedOperators) {
  NEEDS_DEVICE();
  for (const ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    FusedMaker maker(51);
    for (int attempt = 0; attempt < 90; ++attempt) {
      const KernelRequest request = attempt % 3 == 0 ? maker.product(element) : maker.chain(element, attempt % 3 == 1);
      if (!device()->fuses(request)) continue;
      check_on_device(device(), Example(request, static_cast<std::uint64_t>(attempt)), tolerance_of(element), 8);
    }
  }
}

// Sizes of networks, against the processor's kernels.
TEST(CudaOnDevice, LargeTensors) {
  NEEDS_DEVICE();
  const Layout row = Layout::row_major, last = Layout::channels_last;
  const auto plain = [](Shape shape, Layout layout) {
    return Operand{{ElementType::f32, std::move(shape)}, layout, false};
  };
  std::vector<KernelRequest> requests = {
      {"relu", {}, {plain({3000001}, row)}, {plain({3000001}, row)}, 1},
      {"add", {}, {plain({4, 256, 56, 56}, last), plain({256, 1, 1}, row)}, {plain({4, 256, 56, 56}, last)}, 1},
      {"mul", {}, {plain({12, 128, 128}, row), plain({}, row)}, {plain({12, 128, 128}, row)}, 1},
      {"softmax", {{"axis", std::int64_t{-1}}}, {plain({1536, 128}, row)}, {plain({1536, 128}, row)}, 1},
      {"softmax", {{"axis", std::int64_t{-1}}}, {plain({4, 70000}, row)}, {plain({4, 70000}, row)}, 1},
      {"softmax", {{"axis", std::int64_t{-2}}}, {plain({3, 500, 333}, row)}, {plain({3, 500, 333}, row)}, 1},
      {"layer_norm",
       {{"epsilon", 1e-5}},
       {plain({128, 768}, row), plain({768}, row), plain({768}, row)},
       {plain({128, 768}, row)},
       1},
      {"global_avg_pool", {}, {plain({16, 2048, 7, 7}, last)}, {plain({16, 2048, 1, 1}, last)}, 1},
      {"global_avg_pool", {}, {plain({16, 2048, 7, 7}, row)}, {plain({16, 2048, 1, 1}, row)}, 1},
      {"reduce_sum", {{"axes", std::vector<std::int64_t>{-2}}}, {plain({5000, 77}, row)}, {plain({1, 77}, row)}, 1},
      {"reduce_max", {{"axes", std::vector<std::int64_t>{-2, -1}}}, {plain({3000, 700}, row)}, {plain({1, 1}, row)}, 1},
      {"reorder", {}, {plain({8, 256, 56, 56}, row)}, {plain({8, 256, 56, 56}, last)}, 1},
      {"reorder", {}, {plain({8, 256, 56, 56}, last)}, {plain({8, 256, 56, 56}, row)}, 1},
      {"transpose",
       {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}},
       {plain({4, 512, 12, 64}, row)},
       {plain({4, 12, 512, 64}, row)},
       1},
      {"transpose",
       {{"perm", std::vector<std::int64_t>{1, 0}}},
       {plain({1500, 2049}, row)},
       {plain({2049, 1500}, row)},
       1},
      {"max_pool2d",
       {{"kernel", std::vector<std::int64_t>{3, 3}},
        {"strides", std::vector<std::int64_t>{2, 2}},
        {"pads", std::vector<std::int64_t>{1, 1, 1, 1}},
        {"dilations", std::vector<std::int64_t>{1, 1}}},
       {plain({2, 64, 112, 112}, last)},
       {plain({2, 64, 56, 56}, last)},
       1},
      product_request({128, 768}, row, {768, 3072}, row, row, ElementType::f32, "gelu"),
      product_request({2, 12, 128, 64}, Layout::rows_outer, {2, 12, 64, 128}, Layout::columns_outer, row,
                      ElementType::f32, ""),
  };
  for (const ConvolutionCase& one : convolutions())
    for (const Layout layout : {row, last}) {
      requests.push_back(convolution_request(one, ElementType::f32, layout, true, false, "relu"));
      requests.push_back(convolution_request(one, ElementType::f32, layout, false, false, "identity"));
    }
  for (const KernelRequest& request : requests) {
    const auto kernel = value_of(library().create(request));
    Random random(1, request.key());
    std::vector<AlignedBuffer> inputs, packed;
    std::vector<std::span<const std::byte>> spans;
    std::vector<const std::byte*> from;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      inputs.emplace_back(static_cast<std::size_t>(request.inputs[i].type.bytes()));
      for (std::size_t k = 0; k < inputs.back().size() / 4; ++k)
        set_element(inputs.back().data(), k, ElementType::f32, static_cast<float>(2 * random.uniform() - 1));
      spans.emplace_back(inputs.back().data(), inputs.back().size());
      if (kernel->packed_format(i).empty()) {
        from.push_back(inputs.back().data());
        continue;
      }
      packed.emplace_back(kernel->packed_bytes(i));
      kernel->pack(i, inputs.back().data(), packed.back().data());
      from.push_back(packed.back().data());
    }
    const auto size = static_cast<std::size_t>(request.outputs[0].type.bytes());
    AlignedBuffer expected(size), workspace(kernel->workspace_bytes());
    const std::vector<std::byte*> to = {expected.data()};
    ASSERT_TRUE(kernel->execute({from, to, workspace.data()}).ok());
    const DeviceCall call(device(), request, spans, 1);
    ASSERT_NE(call.kernel, nullptr) << request.key() << ": " << call.reason;
    ASSERT_TRUE(call.execute().ok()) << request.key();
    ASSERT_TRUE(device()->synchronize().ok()) << request.key();
    const std::vector<std::byte> actual = call.outputs[0].get();
    double distance = 0, norm = 0;
    for (std::size_t i = 0; i < size / 4; ++i) {
      const double a = element_at(actual.data(), i, ElementType::f32),
                   e = element_at(expected.data(), i, ElementType::f32);
      distance += (a - e) * (a - e);
      norm += e * e;
    }
    EXPECT_LE(std::sqrt(distance), 1e-5 * std::sqrt(norm)) << request.key() << " by " << call.kernel->implementation();
    // The same once more is the same to the bit.
    ASSERT_TRUE(call.execute().ok());
    EXPECT_EQ(call.outputs[0].get(), actual) << request.key();
  }
}

TEST(CudaOnDevice, IndicesOutsideAreReported) {
  NEEDS_DEVICE();
  KernelRequest request;
  request.op = "gather";
  request.attributes.set("axis", std::int64_t{-2});
  request.inputs = {{{ElementType::f32, {5, 4}}, Layout::row_major, false},
                    {{ElementType::i64, {3}}, Layout::row_major, false}};
  request.outputs = {{{ElementType::f32, {3, 4}}, Layout::row_major, false}};
  const std::vector<float> table(20, 1.0F);
  const std::vector<std::int64_t> wrong = {0, 5, -6}, right = {0, 4, -5};
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  const DeviceCall bad(device(), request, {bytes(table), bytes(wrong)}, 1);
  ASSERT_TRUE(bad.execute().ok()) << "errors of kernels are reported when waited for";
  const Status waited = device()->synchronize();
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code, ErrorCode::bad_input);
  EXPECT_EQ(waited.error().message, "gather: the index at position 1 is outside an axis of 5");
  const DeviceCall good(device(), request, {bytes(table), bytes(right)}, 1);
  ASSERT_TRUE(good.execute().ok());
  EXPECT_TRUE(device()->synchronize().ok()) << "an error is reported once";
}

TEST(CudaOnDevice, Measures) {
  NEEDS_DEVICE();
  const KernelRequest request =
      convolution_request(convolutions()[0], ElementType::f32, Layout::channels_last, true, false, "relu");
  const Measurement measured =
      value_of(device()->measure(request, registry(), {}, {.samples = 5, .rounds = 2, .max_spread = 0.15, .seed = 0}));
  EXPECT_GT(measured.median_us, 0);
  EXPECT_LE(measured.minimum_us, measured.median_us);
  EXPECT_GE(measured.samples, 5);
  EXPECT_LE(measured.samples, 10);
  EXPECT_EQ(measured.implementation, device()->create(request, registry()).kernel->implementation());
  MeasureOptions interrupted;
  interrupted.cancelled = [] { return true; };
  const auto cancelled = device()->measure(request, registry(), {}, interrupted);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, ErrorCode::interrupted);
  RequestMaker maker(2);
  for (const char* op : {"gather", "softmax", "concat", "pow"}) {
    std::optional<KernelRequest> one;
    while (!(one = maker.make(op))) continue;
    EXPECT_GT(value_of(device()->measure(*one, registry(), index_bounds(*one, registry()), {})).median_us, 0) << op;
  }
  KernelRequest unknown = request;
  unknown.op = "no_such_operator";
  EXPECT_FALSE(device()->measure(unknown, registry(), {}, {}).ok());
}

TEST(CudaOnDevice, CopiesRecordsAndTimes) {
  NEEDS_DEVICE();
  const std::shared_ptr<Backend> backend = device();
  const DeviceBuffer a = value_of(DeviceBuffer::create(backend, 4096)),
                     b = value_of(DeviceBuffer::create(backend, 4096));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 256, 0U);
  std::vector<std::byte> bytes(4096), back(4096);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  ASSERT_TRUE(backend->upload(bytes, a.data()).ok());
  const auto recording = value_of(backend->record([&] { return backend->copy(a.data(), b.data(), 4096); }));
  ASSERT_TRUE(backend->upload(back, b.data()).ok());
  ASSERT_TRUE(backend->download(b.data(), back).ok());
  EXPECT_NE(back, bytes) << "recording does not run";
  EXPECT_GT(value_of(backend->time([&] { return recording->replay(); })), 0);
  ASSERT_TRUE(backend->download(b.data(), back).ok());
  EXPECT_EQ(back, bytes);
  const auto failed = backend->record([]() -> Status { return bad_input("no"); });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "no");
  EXPECT_TRUE(backend->synchronize().ok()) << "a failed recording leaves the stream usable";
  EXPECT_TRUE(DeviceBuffer::create(backend, 0).ok());
  const auto too_large = DeviceBuffer::create(backend, std::size_t{1} << 50);
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().code, ErrorCode::device_unavailable);
  EXPECT_TRUE(backend->synchronize().ok());
}

TEST(CudaOnDevice, DescribesItself) {
  NEEDS_DEVICE();
  EXPECT_TRUE(is_one_line(device()->identity()));
  EXPECT_NE(device()->identity().find("; driver "), std::string::npos);
  const std::string json = value_of(device()->device_properties());
  const auto described = value_of(load_backend("cuda", {MathMode::strict, 0, json}));
  EXPECT_FALSE(described->can_run());
  const KernelRequest request =
      convolution_request(convolutions()[0], ElementType::f32, Layout::channels_last, true, false, "relu");
  EXPECT_NE(described->create(request, registry()).kernel, nullptr);
  const auto absent = load_backend("cuda", {MathMode::strict, 1000, ""});
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("there is no CUDA device 1000"), std::string::npos) << absent.error().message;
}

}  // namespace
}  // namespace taso::testing
