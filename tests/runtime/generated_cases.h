/// Programs whose generated texts are compiled by NVRTC, and for the host, where they are run. The list is the same in
/// every process.
#pragma once

#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph_text.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/source.h"
#include "runtime/fusion.h"
#include "runtime/independent_requests.h"
#include "runtime/joined_body.h"
#include "tests/runtime/fused_requests.h"

namespace taso::testing {

struct GeneratedCase {
  KernelRequest request;  ///< Of an epilogue: its operands, no operator.
  cuda::Program program;
  bool by_definition = false;  ///< Of operators of a user (operators_of_cases).
};

/// Operators that have no kernels but those of their definitions.
inline const OperatorRegistry& operators_of_cases() {
  static const OperatorRegistry operators = value_of(OperatorRegistry::parse(R"(
operator soft(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let power[I.. < A, t < n] = exp(x[I.., t] - top[I..])
  let total[I.. < A] = sum(t < n) power[I.., t]
  out[I.., i] = power[I.., i] / total[I..]
operator standard(x[A.., n], scale[n]) -> [A.., n]
  let mean[I.. < A] = (sum(t < n) x[I.., t]) / n
  let variance[I.. < A] = (sum(t < n) square(x[I.., t] - mean[I..])) / n
  out[I.., i] = (x[I.., i] - mean[I..]) / sqrt(variance[I..] + 0.001) * scale[i]
operator swish(x[D..], s[]) -> [D..]
  out[I..] = x[I..] * sigmoid(s[] * x[I..])
operator columns(x[n, m]) -> [m]
  out[j] = sqrt(sum(i < n) square(x[i, j]))
operator least(x[n, m]) -> [n]
  out[i] = min(j < m) x[i, j]
operator product(x[n, m]) -> [n]
  out[i] = prod(j < m) (1 + x[i, j] / 8)
operator norm(x[n, m]) -> []
  out[] = sqrt(sum(i < n, j < m) square(x[i, j]))
operator stencil(x[n, m]) -> [n, m]
  out[i, j] = (x[i - 1, j] or 0) + (x[i + 1, j] or 1) + 2 * x[i, j] + (x[i, j - 2] or x[i, j]) + (x[i, j + 1] or 3)
operator inside(x[n, m]) -> [n, m]
  out[i, j] = valid(x[i - 1, j + 2])
operator window(x[n]) -> [n]
  out[i] = max(t < 3) (x[i + t - 1] or -inf)
operator middle(x[n, m]) -> [n, m]
  out[i, j] = if j >= 2 && (j < 5 || j == 6) && !(i == 1) then (x[i, j - 2] or 9) else -x[i, j]
operator many(x[n], y[n], z[n]) -> [n]
  out[i] = max(x[i], y[i], min(z[i], 0)) + hard_swish(x[i])
operator convolution(x[c, n], w[d, c, k]) -> [d, n]
  out[o, i] = sum(p < c, t < k) w[o, p, t] * (x[p, i + t - 1] or 0)
operator halves(x[n]; k: int) -> [n]
  out[i] = x[i] / k + sum(t < n) (x[t] - x[i])
operator shifted(x[n, m]) -> [n, m]
  let next[i < n, j < m] = 2 * x[i, j]
  out[i, j] = next[i, j] + (next[i, j - 1] or 0)
)",
                                                                             "user.op", &registry()));
  return operators;
}
inline const KernelLibrary& reference_of_cases() {
  static const KernelLibrary reference(operators_of_cases(), KernelSet::reference);
  return reference;
}

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
    made.add_definitions();
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

  /// Operators of a user, alone and with others.
  void add_definitions() {
    constexpr const char* graphs[] = {
        "input x f32[5, 70]\noutput soft(x)\n",
        "input x f32[3, 1500]\noutput soft(x)\n",
        "input x f32[2, 9000]\noutput soft(x)\n",
        "input x f32[2, 3, 40]\ninput s f32[40]\noutput standard(x, s)\n",
        "input x f32[30, 4]\ninput s f32[4]\noutput standard(x, s)\n",
        "input x f32[7, 9]\ninput s f32[]\noutput swish(x, s)\n",
        "input x f32[]\ninput s f32[]\noutput swish(x, s)\n",
        "input x f32[60, 9]\noutput columns(x)\n",
        "input x f32[20, 9000]\noutput columns(x)\n",
        "input x f32[6, 300]\noutput least(x)\n",
        "input x f32[6, 50]\noutput product(x)\n",
        "input x f32[30, 20]\noutput norm(x)\n",
        "input x f32[9, 12]\noutput stencil(x)\n",
        "input x f32[9, 12]\noutput inside(x)\n",
        "input x f32[300]\noutput window(x)\n",
        "input x f32[4, 9]\noutput middle(x)\n",
        "input x f32[33]\ninput y f32[33]\ninput z f32[33]\noutput many(x, y, z)\n",
        "input x f32[3, 20]\ninput w f32[5, 3, 3]\noutput convolution(x, w)\n",
        "input x f32[50]\noutput halves(x; k=2)\n",
        "input x f32[5, 70]\noutput shifted(x)\n",
        "input x f32[1, 100]\noutput relu(soft(x))\n",
        "input x f32[1, 1]\noutput soft(x)\n",
        "input x f32[1, 40]\ninput s f32[40]\noutput tanh(standard(x, s))\n",
        "input x f32[5, 70]\ninput s f32[70]\noutput mul(soft(x), broadcast(s; shape=[5, 70]))\n",
        "input x f32[2, 3, 5, 40]\ninput m f32[2, 1, 1, 40]\noutput soft(add(x, broadcast(m; shape=[2, 3, 5, 40])))\n",
        "input x f32[40, 60]\na, b = split(x; axis=-1, sizes=[30, 30])\ninput s f32[]\noutput mul(swish(a, s), b)\n",
        "input x f32[9, 60]\noutput div(x, broadcast(sqrt(reduce_sum(mul(x, x); axes=[-1])); shape=[9, 60]))\n",
        "input x f32[4, 3, 40]\ny = soft(transpose(x; perm=[1, 0, 2]))\noutput y\noutput relu(y)\n",
        "input x f32[30, 40]\noutput soft(relu(shifted(x)))\n",
        "input x f32[30, 40]\noutput soft(shifted(relu(x)))\n",
    };
    const std::size_t before = cases_.size();
    for (const ElementType element : {ElementType::f32, ElementType::f16})
      for (std::string text : graphs) {
        for (std::size_t at = 0; element == ElementType::f16 && (at = text.find("f32", at)) != std::string::npos;)
          text.replace(at, 3, "f16");
        const Graph graph = value_of(parse_graph(text, "graph", operators_of_cases()));
        const LoweredGraph lowered = fuse_steps(value_of(lower(graph, operators_of_cases(), {.channels_last = false})),
                                                {.fuses = [](const KernelRequest&) { return true; }});
        TASO_CHECK(lowered.steps.size() == 1, "several kernels");
        const KernelRequest& request = lowered.steps[0].kernel->request;
        cuda::PlannedProgram planned = cuda::plan_definition(
            request, std::make_shared<const LoweredBody>(value_of(joined_body(request, operators_of_cases()))));
        TASO_CHECK(planned.program.has_value(), planned.reason);
        cases_.push_back({request, std::move(*planned.program), true});
      }
    TASO_CHECK(cases_.size() == before + 2 * std::size(graphs), "definitions without a program");
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
