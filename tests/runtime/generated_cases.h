/// Programs whose generated texts are compiled by NVRTC, and for the host, where they are run. The list is the same in
/// every process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/products.h"
#include "runtime/cuda/source.h"
#include "runtime/independent_requests.h"
#include "tests/runtime/fused_requests.h"

namespace taso::testing {

struct GeneratedCase {
  KernelRequest request;  ///< Of an epilogue: its operands, no operator.
  cuda::Program program;
};

/// Draws of every operator with a program, in all types; long rows, large transposes, tensors without elements.
class GeneratedCases {
 public:
  static std::vector<GeneratedCase> all() {
    GeneratedCases made;
    made.add_operators();
    made.add_moves();
    made.add_words();
    made.add_fused();
    made.add_long_rows();
    made.add_tiles();
    made.add_products();
    made.add_convolutions();
    made.add_images();
    made.add_epilogues();
    made.add_beside();
    made.add_empty();
    made.add_large();
    return std::move(made.cases_);
  }

  /// How many cases can be run: those behind are too large.
  static std::size_t small(const std::vector<GeneratedCase>& cases) {
    std::size_t count = cases.size();
    while (count > 0 && cases[count - 1].request.outputs[0].type.elements() > (1 << 24)) --count;
    return count;
  }

 private:
  bool add(const std::optional<KernelRequest>& request) {
    if (!request) return false;
    const cuda::PlannedProgram planned = cuda::plan_program(*request);
    if (!planned.program) return false;
    cases_.push_back({*request, *planned.program});
    return true;
  }

  void add_operators() {
    Random random(41, "wholes");
    RequestMaker maker(40);
    const std::vector<ElementType> types = {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f32};
    for (const std::string& op : RequestMaker::operators()) {
      std::size_t made = 0;
      for (int attempt = 0; attempt < 200 && made < types.size(); ++attempt) {
        auto request = maker.make(op, types[made]);
        if (request && made == 3 && op != "regroup") draw_wholes(*request, random);
        if (add(request)) ++made;
      }
    }
  }

  void add_moves() {
    RequestMaker maker(42);
    const std::vector<ElementType> types = {ElementType::i8, ElementType::i16,     ElementType::i32, ElementType::i64,
                                            ElementType::u8, ElementType::boolean, ElementType::f64, ElementType::u64};
    std::size_t next = 0;
    for (const std::string op : {"concat", "split", "slice", "transpose", "broadcast", "reshape", "reorder", "gather"})
      for (int attempt = 0, made = 0; attempt < 50 && made < 3; ++attempt) {
        const ElementType element = types[next++ % types.size()];
        if (op == "gather" && element == ElementType::boolean) continue;  // the reference counts in integers
        made += add(maker.make(op, element)) ? 1 : 0;
      }
  }

  void add_words() {
    RequestMaker maker(43);
    for (const std::string& op : RequestMaker::word_operators())
      for (int attempt = 0, made = 0; attempt < 100 && made < (op == "cast" ? 40 : 4); ++attempt)
        made += add(maker.word(op)) ? 1 : 0;
  }

  void add_fused() {
    FusedMaker maker(44);
    Random random(45, "wholes");
    const std::vector<ElementType> types = {ElementType::f32, ElementType::f16, ElementType::bf16};
    for (int attempt = 0, made = 0; attempt < 400 && made < 60; ++attempt) {
      KernelRequest request = maker.chain(types[static_cast<std::size_t>(made % 3)], made % 2 == 0);
      if (made % 5 == 0) draw_wholes(request, random);
      made += add(request) ? 1 : 0;
    }
    for (int attempt = 0, made = 0; attempt < 200 && made < 16; ++attempt)
      made += add(maker.copies(types[static_cast<std::size_t>(made % 3)])) ? 1 : 0;
    // Long enough for packs, one operand of which stays where it is.
    for (const ElementType element : types)
      for (const Shape& shape : {Shape{5, 64}, Shape{321}, Shape{2, 3, 16}})
        for (const bool rows : {false, true}) add(chain_on(shape, element, rows));
  }

  /// tanh(x * s + bias) + x, or that of a softmax.
  static KernelRequest chain_on(const Shape& shape, ElementType element, bool rows) {
    const TensorType type{element, shape}, bias{element, {shape.back()}}, one{element, {}};
    KernelRequest request{std::string(fused_op), {}, {{type}, {bias}, {one}}, {{type}}, 1};
    const auto part = [&](const std::string& op, std::vector<Operand> inputs, std::vector<FusedPart::Source> sources) {
      FusedPart made{{op, {}, std::move(inputs), {{type}}, 1}, std::move(sources)};
      if (op == "softmax") made.request.attributes.set("axis", std::int64_t{-1});
      return made;
    };
    std::vector<FusedPart> parts = {part("mul", {{type}, {one}}, {{true, 0, 0}, {true, 2, 0}}),
                                    part("add", {{type}, {bias}}, {{false, 0, 0}, {true, 1, 0}}),
                                    part(rows ? "softmax" : "tanh", {{type}}, {{false, 1, 0}}),
                                    part("add", {{type}, {type}}, {{false, 2, 0}, {true, 0, 0}})};
    request.fused = std::make_shared<const Fused>(Fused{std::move(parts), {{false, 3, 0}}});
    return request;
  }

  /// Rows of one thread block, of more than its threads keep, and rows whose elements lie apart.
  void add_long_rows() {
    for (const ElementType element : {ElementType::f32, ElementType::f16})
      for (const auto& [shape, layout] : std::vector<std::pair<Shape, Layout>>{{{3, 1500}, Layout::row_major},
                                                                               {{2, 5000}, Layout::row_major},
                                                                               {{600, 33}, Layout::column_major},
                                                                               {{20, 40}, Layout::column_major}})
        for (const std::string op : {"softmax", "reduce_sum", "reduce_max", "layer_norm", "rms_norm"}) {
          const TensorType type{element, shape};
          KernelRequest request{op, {}, {{type, layout, false}}, {{type, layout, false}}, 1};
          const bool reduces = op.starts_with("reduce_");
          if (reduces) request.attributes.set("axes", std::vector<std::int64_t>{-1});
          if (reduces) request.outputs = {{{element, {shape[0], 1}}, Layout::row_major, false}};
          if (op == "softmax") request.attributes.set("axis", std::int64_t{-1});
          if (op.ends_with("norm")) request.attributes.set("epsilon", 1e-3);
          for (int more = op == "layer_norm" ? 2 : op == "rms_norm" ? 1 : 0; more > 0; --more)
            request.inputs.push_back({{element, {shape[1]}}, Layout::row_major, false});
          add(request);
        }
  }

  void add_tiles() {
    for (const auto& [element, shape, from, to] : std::vector<std::tuple<ElementType, Shape, Layout, Layout>>{
             {ElementType::f32, {2, 40, 9, 11}, Layout::row_major, Layout::channels_last},
             {ElementType::f16, {2, 40, 9, 11}, Layout::channels_last, Layout::row_major},
             {ElementType::f64, {70, 33}, Layout::row_major, Layout::column_major},
             {ElementType::u8, {3, 5, 32, 64}, Layout::column_major, Layout::row_major}}) {
      const TensorType type{element, shape};
      add(KernelRequest{std::string(reorder_op), {}, {{type, from, false}}, {{type, to, false}}, 1});
    }
  }

  void add_products() {
    RequestMaker maker(46);
    const std::vector<ElementType> types = {ElementType::f32, ElementType::f16, ElementType::bf16};
    for (int attempt = 0, made = 0; attempt < 3000 && made < 9; ++attempt) {
      const auto request = maker.product(made % 2 == 0 ? "matmul" : "matmul_bias_act", types[made % 3]);
      if (!request) continue;
      const cuda::PlannedProduct planned = cuda::plan_product(*request);
      if (!planned.plan) continue;
      const auto act =
          request->op == "matmul" ? cuda::Function::identity : *cuda::function_named(request->attributes.symbol("act"));
      const auto step = cuda::thin_product_step(*planned.plan, types[made % 3], request->inputs.size() > 2, act);
      if (!step) continue;
      cases_.push_back({*request, {"own product", {*step}}});
      ++made;
    }
  }

  void add_depthwise(const KernelRequest& request) {
    const AttributeValue* act = request.attributes.find("act");
    const auto function =
        act == nullptr ? cuda::Function::identity : *cuda::function_named(request.attributes.symbol("act"));
    if (const auto step = cuda::depthwise_step(request, function))
      cases_.push_back({request, {"own convolution", {*step}}});
  }

  void add_convolutions() {
    RequestMaker maker(47);
    const std::size_t before = cases_.size();
    for (int attempt = 0; attempt < 20000 && cases_.size() < before + 9; ++attempt) {
      const std::string op = attempt % 3 == 0 ? "conv2d" : attempt % 3 == 1 ? "conv2d_bias_act" : "conv2d_bias_add_act";
      if (const auto request = maker.convolution(op, attempt % 2 == 0 ? ElementType::bf16 : ElementType::f32))
        add_depthwise(*request);
    }
  }

  /// Channels in packs: poolings and convolutions of every channel.
  void add_images() {
    for (const ElementType element : {ElementType::f32, ElementType::f16})
      for (const std::string op : {"max_pool2d", "avg_pool2d_include", "avg_pool2d_exclude", "conv2d_bias_add_act"}) {
        const std::int64_t channels = element == ElementType::f32 ? 12 : 16;
        const TensorType image{element, {2, channels, 6, 5}}, window{element, {channels, 1, 3, 3}},
            bias{element, {channels}};
        KernelRequest request{op, {}, {{image, Layout::channels_last}}, {{image, Layout::channels_last}}, 1};
        request.attributes.set("strides", std::vector<std::int64_t>{1, 1});
        request.attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
        request.attributes.set("dilations", std::vector<std::int64_t>{1, 1});
        if (op != "conv2d_bias_add_act") {
          request.attributes.set("kernel", std::vector<std::int64_t>{3, 3});
          if (op.starts_with("avg")) request.attributes = without_dilations(request.attributes);
          add(request);
        } else {
          request.attributes.set("act", SymbolValue{"relu"});
          request.inputs.push_back({window, Layout::row_major});
          request.inputs.push_back({bias, Layout::row_major});
          request.inputs.push_back({image, Layout::channels_last});
          add_depthwise(request);
        }
      }
  }
  static Attributes without_dilations(const Attributes& all) {
    Attributes made;
    for (const char* name : {"kernel", "strides", "pads"}) made.set(name, all.integers(name));
    return made;
  }

  /// What a convolution or product ends with, in place.
  void add_epilogues() {
    for (const ElementType element : {ElementType::f32, ElementType::f16})
      for (const std::int64_t channels : {16, 5})
        for (const Within within : {Within{}, Within{1, 48}}) {
          const Operand y{{element, {2, channels, 4, 5}}, Layout::channels_last, false, within};
          const KernelRequest request{
              "",
              {},
              {{{element, {channels}}, Layout::row_major, false}, {y.type, Layout::channels_last, false}},
              {y},
              1};
          const auto step =
              cuda::epilogue_step(y, 1, cuda::input(0), cuda::input(1), Layout::channels_last, cuda::Function::relu);
          if (step) cases_.push_back({request, {"own epilogue", {*step}}});
        }
  }

  /// Several requests in one launch: of kinds with barriers of a block, of a warp and without, in packs and not.
  void add_beside() {
    Random random(48, "beside");
    RequestMaker maker(49);
    FusedMaker fused(50);
    const std::size_t before = cases_.size();
    const std::vector<std::string> kinds = {
        "max_pool2d", "avg_pool2d_exclude", "softmax", "layer_norm", "reduce_sum", "transpose", "add", "tanh", "pad",
        "lrn"};
    for (std::size_t attempt = 0; cases_.size() < before + 24; ++attempt) {
      const ElementType element = attempt % 3 == 0 ? ElementType::f16 : ElementType::f32;
      std::vector<KernelRequest> requests;
      while (requests.size() < 2 + random.below(4)) {
        const std::uint64_t kind = random.below(kinds.size() + 4);
        std::optional<KernelRequest> one;
        if (kind < kinds.size())
          one = maker.make(kinds[kind], element);
        else if (kind < kinds.size() + 2)
          one = maker.convolution("conv2d_bias_act", element);
        else
          one = fused.chain(element, kind % 2 == 0);
        if (one && cuda::can_stand_beside(*one)) requests.push_back(std::move(*one));
      }
      add_beside(requests, random.below(2) == 0);
    }
    // Rows of a block, and tiles, beside channels in packs.
    const auto matrix = [](Shape shape, Layout layout = Layout::row_major) {
      return Operand{{ElementType::f32, std::move(shape)}, layout, false};
    };
    KernelRequest softmax{"softmax", {}, {matrix({3, 1500})}, {matrix({3, 1500})}, 1};
    softmax.attributes.set("axis", std::int64_t{-1});
    const KernelRequest turned{
        std::string(reorder_op), {}, {matrix({40, 70})}, {matrix({40, 70}, Layout::column_major)}, 1};
    const KernelRequest packs{"relu", {}, {matrix({5, 64})}, {matrix({5, 64})}, 1};
    const KernelRequest nothing{"relu", {}, {matrix({0, 64})}, {matrix({0, 64})}, 1};
    KernelRequest within = packs;
    within.outputs[0].within = {1, 128};
    const KernelRequest twice{"add", {}, {matrix({5, 64}), matrix({5, 64})}, {matrix({5, 64})}, 1};
    const std::size_t drawn = cases_.size();
    add_beside({softmax, turned, nothing, packs});
    add_beside({packs, softmax});
    add_beside({within, twice, packs}, true);
    TASO_CHECK(cases_.size() == drawn + 3, "kernels side by side without a program");
  }
  /// `shared`: operands that are alike are one tensor.
  void add_beside(const std::vector<KernelRequest>& requests, bool shared = false) {
    std::vector<std::vector<std::uint32_t>> names;
    std::vector<Operand> operands;
    for (const KernelRequest& request : requests) {
      names.emplace_back();
      for (const Operand& input : request.inputs) {
        const auto same = shared ? std::find(operands.begin(), operands.end(), input) : operands.end();
        names.back().push_back(static_cast<std::uint32_t>(same - operands.begin()));
        if (same == operands.end()) operands.push_back(input);
      }
    }
    std::vector<NamedRequest> named;
    for (std::size_t i = 0; i < requests.size(); ++i) named.push_back({&requests[i], names[i]});
    KernelRequest joined = join_requests(named).request;
    cuda::PlannedProgram planned = cuda::plan_beside(joined);
    if (planned.program) cases_.push_back({std::move(joined), std::move(*planned.program)});
  }

  /// Extents 0, of what is computed and of what is computed with.
  void add_empty() {
    const auto plain = [](ElementType element, Shape shape) {
      return Operand{{element, std::move(shape)}, Layout::row_major, false};
    };
    for (const ElementType element : {ElementType::f32, ElementType::f16}) {
      add(KernelRequest{"relu", {}, {plain(element, {0, 3})}, {plain(element, {0, 3})}, 1});
      KernelRequest sum{"reduce_sum", {}, {plain(element, {3, 0})}, {plain(element, {3, 1})}, 1};
      sum.attributes.set("axes", std::vector<std::int64_t>{-1});
      add(sum);
      KernelRequest concat{"concat", {}, {plain(element, {2, 0}), plain(element, {2, 3})}, {plain(element, {2, 3})}, 1};
      concat.attributes.set("axis", std::int64_t{-1});
      add(concat);
      KernelRequest pad{"pad", {}, {plain(element, {2, 0})}, {plain(element, {2, 3})}, 1};
      pad.attributes = {
          {"before", std::vector<std::int64_t>{0, 1}}, {"after", std::vector<std::int64_t>{0, 2}}, {"value", 0.5}};
      add(pad);
    }
  }

  /// Tensors too large to be run here, whose indices take 64 bits.
  void add_large() {
    const auto large = [](Shape shape, Layout layout = Layout::row_major) {
      return Operand{{ElementType::f32, std::move(shape)}, layout, false};
    };
    const Shape shape = {1 << 17, 1 << 15};
    add(KernelRequest{"add", {}, {large(shape), large({1 << 15})}, {large(shape)}, 1});
    add(KernelRequest{std::string(reorder_op), {}, {large(shape)}, {large(shape, Layout::column_major)}, 1});
    KernelRequest softmax{"softmax", {}, {large(shape)}, {large(shape)}, 1};
    softmax.attributes.set("axis", std::int64_t{-1});
    add(softmax);
  }

  std::vector<GeneratedCase> cases_;
};

}  // namespace taso::testing
