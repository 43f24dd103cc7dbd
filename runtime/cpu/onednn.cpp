// The one place that includes oneDNN; builds against 2.6 and 3.x.
//
// A kernel is a short list of primitives over one set of slots: the request's inputs and outputs, and pieces of the
// workspace. Weights that are constant take the format the primitive likes best and are packed once by
// Kernel::pack; weights that are not are reordered in the workspace on every execution. Facts behind the choices
// (docs/runtime.md): implementations named "ref" are a hundred times slower than others and are declined.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/packed_product.h"
#include "runtime/cpu/parallel.h"
#include "runtime/strides.h"

namespace taso::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dims = memory::dims;
using desc = memory::desc;
constexpr auto f32 = memory::data_type::f32;

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

// ---- What differs between the major versions.
// ------------------------------------------------------------------------

void append_eltwise(dnnl::post_ops& operations, algorithm function, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  operations.append_eltwise(function, alpha, beta);
#else
  operations.append_eltwise(1.0f, function, alpha, beta);
#endif
}

dnnl::primitive_attr attributes_with(const dnnl::post_ops& operations) {
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(operations);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::convolution_forward::primitive_desc convolution_desc(const desc& x, const desc& w, const desc* bias,
                                                           const desc& y, const dims& strides, const dims& dilations,
                                                           const dims& before, const dims& after,
                                                           const dnnl::primitive_attr& attributes) {
  using dnnl::convolution_forward;
  constexpr auto kind = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), kind,    algorithm::convolution_direct,
          x,        w,       bias != nullptr ? *bias : desc(),
          y,        strides, dilations,
          before,   after,   attributes};
#else
  const convolution_forward::desc operation(kind, algorithm::convolution_direct, x, w, bias != nullptr ? *bias : desc(),
                                            y, strides, dilations, before, after);
  return {operation, attributes, engine()};
#endif
}

dnnl::matmul::primitive_desc matmul_desc(const desc& a, const desc& b, const desc* bias, const desc& y,
                                         const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  if (bias != nullptr) return {engine(), a, b, *bias, y, attributes};
  return {engine(), a, b, y, attributes};
#else
  if (bias != nullptr) return {dnnl::matmul::desc(a, b, *bias, y), attributes, engine()};
  return {dnnl::matmul::desc(a, b, y), attributes, engine()};
#endif
}

dnnl::pooling_forward::primitive_desc pooling_desc(algorithm kind, const desc& x, const desc& y, const dims& strides,
                                                   const dims& kernel, const dims& before, const dims& after) {
  using dnnl::pooling_forward;
  constexpr auto inference = dnnl::prop_kind::forward_inference;
  const dnnl::primitive_attr attributes = attributes_with({});
#if DNNL_VERSION_MAJOR >= 3
  return {engine(), inference, kind, x, y, strides, kernel, dims(kernel.size(), 0), before, after, attributes};
#else
  return {pooling_forward::desc(inference, kind, x, y, strides, kernel, before, after), attributes, engine()};
#endif
}

dims dims_of(const desc& memory_desc) {
#if DNNL_VERSION_MAJOR >= 3
  return memory_desc.get_dims();
#else
  return memory_desc.dims();
#endif
}

/// Order of axes and inner blocks; empty if the format has no such description.
std::string describe(const desc& memory_desc, std::size_t rank) {
  std::vector<std::int64_t> strides;
  std::string blocks;
#if DNNL_VERSION_MAJOR >= 3
  if (memory_desc.get_format_kind() != memory::format_kind::blocked) return "";
  strides = memory_desc.get_strides();
  const auto sizes = memory_desc.get_inner_blks();
  const auto indices = memory_desc.get_inner_idxs();
  for (int i = 0; i < memory_desc.get_inner_nblks(); ++i)
    blocks += " " + std::to_string(sizes[static_cast<std::size_t>(i)]) + "*axis" +
              std::to_string(indices[static_cast<std::size_t>(i)]);
#else
  if (memory_desc.data.format_kind != dnnl_blocked) return "";
  const auto& blocking = memory_desc.data.format_desc.blocking;
  strides.assign(blocking.strides, blocking.strides + rank);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    blocks += " " + std::to_string(blocking.inner_blks[i]) + "*axis" + std::to_string(blocking.inner_idxs[i]);
#endif
  std::string text = "strides";
  for (std::size_t axis = 0; axis < rank; ++axis) text += " " + std::to_string(strides[axis]);
  return text + (blocks.empty() ? "" : " blocks" + blocks);
}

// ---- Kernels.
// --------------------------------------------------------------------------------------------------------

/// Where an argument's memory comes from.
struct Slot {
  enum class Place : std::uint8_t { input, output, workspace };
  Place place = Place::input;
  std::size_t index = 0;  ///< Of the input or output; offset in the workspace.
};

struct Argument {
  int name = 0;  ///< DNNL_ARG_...
  desc layout;
  Slot slot;
};

/// Primitives run one after the other. The memory objects are members, so that an execution allocates nothing: one
/// execution at a time.
class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(int threads) : Kernel(""), threads_(threads), stream_(engine()) {}

  void set_implementation(const std::string& name) { implementation_ = "onednn " + name; }
  /// Reserves workspace; returns its offset.
  std::size_t reserve(std::size_t bytes) {
    const std::size_t offset = workspace_bytes_;
    workspace_bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  void add(dnnl::primitive primitive, const std::vector<Argument>& arguments, const desc& scratchpad) {
    Call call{std::move(primitive), {}, {}, {}};
    std::vector<Argument> all = arguments;
    if (scratchpad.get_size() > 0)
      all.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, {Slot::Place::workspace, reserve(scratchpad.get_size())}});
    for (const Argument& argument : all) {
      call.memories.emplace_back(argument.layout, engine(), nullptr);
      call.slots.push_back(argument.slot);
      call.arguments.push_back({argument.name, call.memories.back().get()});
    }
    calls_.push_back(std::move(call));
  }
  /// Declares that input `index`, of this shape, is wanted in `packed` instead of `plain`.
  void want_packed(std::size_t index, const Shape& shape, const desc& plain, const desc& packed, std::string format) {
    packed_.push_back({index, plain, packed, std::move(format), first_axis(shape, plain)});
  }
  /// Input `index` is copied to output 0 at the start, unless it is there, where a primitive adds to it.
  void start_with(std::size_t index, std::int64_t elements) {
    copied_ = index;
    elements_ = elements;
  }
  /// At the end, adds input `index`, if any, to output 0 and applies a function, if any, with these parameters to all
  /// its elements.
  void finish_with(std::optional<std::size_t> index, const UnaryEntry* function, std::int64_t elements, float alpha = 0,
                   float beta = 0) {
    added_ = index;
    finish_ = function;
    alpha_ = alpha;
    beta_ = beta;
    elements_ = elements;
    if (added_) saved_ = reserve(static_cast<std::size_t>(elements) * sizeof(float));
  }

  [[nodiscard]] std::string packed_format(std::size_t index) const override {
    const Packed* packed = find(index);
    return packed != nullptr ? packed->format : "";
  }
  [[nodiscard]] std::size_t packed_bytes(std::size_t index) const override {
    const Packed* packed = find(index);
    return packed != nullptr ? packed->packed.get_size() : 0;
  }
  void pack(std::size_t index, const std::byte* plain, std::byte* packed) const override {
    const Packed* entry = find(index);
    TASO_CHECK(entry != nullptr, "packing an input that is not packed");
    std::memset(packed, 0, entry->packed.get_size());
    memory from(entry->plain, engine(), const_cast<std::byte*>(plain));
    memory to(entry->packed, engine(), packed);
    dnnl::stream stream(engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  [[nodiscard]] std::int64_t rows_of_part(std::size_t index) const override {
    const Packed* entry = find(index);
    if (entry == nullptr || !entry->axis) return 0;
    const std::int64_t all = dims_of(entry->plain)[*entry->axis];
    const auto row = static_cast<std::int64_t>(entry->plain.get_size()) / std::max<std::int64_t>(all, 1);
    const std::int64_t rows = std::max<std::int64_t>(1, part_bytes / std::max<std::int64_t>(row, 1)) * whole_blocks;
    // Of descriptions that begin in the middle oneDNN knows no size.
    return rows < all && part_of(*entry, entry->packed, 0, rows).get_size() > 0 ? rows : 0;
  }
  void pack_part(std::size_t index, std::int64_t first, std::int64_t count, const std::byte* rows,
                 std::byte* packed) const override {
    const Packed* entry = find(index);
    TASO_CHECK(entry != nullptr, "packing an input that is not packed");
    if (first == 0) std::memset(packed, 0, entry->packed.get_size());
    memory from(part_of(*entry, entry->plain, 0, count), engine(), const_cast<std::byte*>(rows));
    memory to(part_of(*entry, entry->packed, first, count), engine(), packed);
    dnnl::stream stream(engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  Status execute(const KernelArguments& arguments) const override {
    const ThreadScope scope(threads_);
    auto* y = reinterpret_cast<float*>(arguments.outputs[0]);
    const auto floats = [&](std::size_t index) { return reinterpret_cast<const float*>(arguments.inputs[index]); };
    const auto copy = [&](const float* from, float* to) {
      parallel_chunks(threads_, elements_, chunk,
                      [&](std::int64_t begin, std::int64_t end) { std::copy(from + begin, from + end, to + begin); });
    };
    if (copied_ && floats(*copied_) != y) copy(floats(*copied_), y);
    const float* added = added_ ? floats(*added_) : nullptr;
    if (added == y && added != nullptr) {  // the primitives write over it
      auto* saved = reinterpret_cast<float*>(arguments.workspace + saved_);
      copy(added, saved);
      added = saved;
    }
    for (const Call& call : calls_) {
      for (std::size_t i = 0; i < call.slots.size(); ++i) {
        void* pointer = nullptr;
        switch (call.slots[i].place) {
          case Slot::Place::input:
            pointer = const_cast<std::byte*>(arguments.inputs[call.slots[i].index]);
            break;
          case Slot::Place::output:
            pointer = arguments.outputs[call.slots[i].index];
            break;
          case Slot::Place::workspace:
            pointer = arguments.workspace + call.slots[i].index;
            break;
        }
        if (call.memories[i].get_data_handle() != pointer) call.memories[i].set_data_handle(pointer);
      }
      const dnnl_status_t status = dnnl_primitive_execute(
          call.primitive.get(), stream_.get(), static_cast<int>(call.arguments.size()), call.arguments.data());
      if (status != dnnl_success)
        return internal_error(implementation_ + " failed with status " + std::to_string(status));
    }
    if (added != nullptr || finish_ != nullptr) {
      parallel_chunks(threads_, elements_, chunk, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t count = 0; begin < end; begin += count) {  // a piece at a time stays in the cache
          count = std::min(chunk / 4, end - begin);
          if (added != nullptr) loops().accumulate(added + begin, y + begin, count);
          if (finish_ != nullptr) finish_->loop(y + begin, y + begin, count, alpha_, beta_);
        }
      });
    }
    return {};
  }

 private:
  /// Blocks of an axis have so many elements or a divisor of it; parts have about so many bytes for each.
  static constexpr std::int64_t whole_blocks = 64, part_bytes = std::int64_t{1} << 16;
  static constexpr std::int64_t chunk = 16384;  ///< Elements, the fewest that a thread is woken for.

  struct Call {
    dnnl::primitive primitive;
    mutable std::vector<memory> memories;
    std::vector<Slot> slots;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  struct Packed {
    std::size_t index;
    desc plain, packed;
    std::string format;
    std::optional<std::size_t> axis;  ///< Of `plain`: the first of the input.
  };
  /// The axis of a description that is the first one of a shape, if the others are those of the shape or of extent 1
  /// before it.
  [[nodiscard]] static std::optional<std::size_t> first_axis(const Shape& shape, const desc& plain) {
    const dims all = dims_of(plain);
    if (shape.empty() || all.size() < shape.size()) return std::nullopt;
    const std::size_t axis = all.size() - shape.size();
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(axis);
    const bool alike = std::equal(begin, all.end(), shape.begin(), shape.end()) &&
                       std::all_of(all.begin(), begin, [](std::int64_t extent) { return extent == 1; });
    return alike ? std::optional(axis) : std::nullopt;
  }
  /// So many indices of that axis; an empty description where blocks do not end there.
  [[nodiscard]] static desc part_of(const Packed& entry, const desc& whole, std::int64_t first, std::int64_t count) {
    dims shape = dims_of(whole), offsets(shape.size(), 0);
    offsets[*entry.axis] = first;
    shape[*entry.axis] = std::min(count, shape[*entry.axis] - first);
    return whole.submemory_desc(shape, offsets, true);
  }
  [[nodiscard]] const Packed* find(std::size_t index) const {
    for (const Packed& packed : packed_)
      if (packed.index == index) return &packed;
    return nullptr;
  }

  int threads_;
  dnnl::stream stream_;
  std::vector<Call> calls_;
  std::vector<Packed> packed_;
  std::optional<std::size_t> copied_, added_;
  std::size_t saved_ = 0;  ///< Place in the workspace for what is added, where output 0 is its memory.
  const UnaryEntry* finish_ = nullptr;
  float alpha_ = 0, beta_ = 0;  ///< Of it.
  std::int64_t elements_ = 0;
};

Slot input(std::size_t index) { return {Slot::Place::input, index}; }
Slot output(std::size_t index) { return {Slot::Place::output, index}; }

/// A description by explicit strides, as our layouts define them.
desc strided(const Shape& shape, const std::vector<std::int64_t>& strides) { return {dims(shape), f32, dims(strides)}; }
desc strided(const Operand& operand) {
  using tag = memory::format_tag;
  switch (block_of(operand.layout)) {
    case 0:
      return strided(operand.type.shape, strides_of(operand));
    case 8:
      return {dims(operand.type.shape), f32, tag::nChw8c};
    default:
      return {dims(operand.type.shape), f32, tag::nChw16c};
  }
}
desc any_format(const Shape& shape) { return {dims(shape), f32, memory::format_tag::any}; }
desc row_major(const Shape& shape) { return strided(shape, strides_of(shape, Layout::row_major)); }

bool is_by_gemm(const std::string& implementation) { return implementation.find("gemm") != std::string::npos; }
bool is_reference(const std::string& implementation) { return implementation.rfind("ref", 0) == 0; }

/// An activation as a post-op, or as a loop over the output, or neither.
struct Activation {
  std::optional<algorithm> fused;
  float alpha = 0, beta = 0;
  const UnaryEntry* loop = nullptr;
  bool known = true;
};

/// Whether the loop over the output takes less time than the post-op, though the output is read once more: with both
/// instruction sets for x * sigmoid(x), by up to a fifth of a whole convolution; without AVX-512 for what the post-op
/// takes from a table of tanh, by half (AMD EPYC, oneDNN 2.6.3).
bool is_slow_post_op(const std::string& name) {
  if (name == "silu" || name == "quick_gelu") return true;
  return avx512_loops() == nullptr && (name == "tanh" || name == "gelu_tanh");
}

/// `as_loop`: never as a post-op.
Activation activation_of(const KernelRequest& request, bool as_loop = false) {
  Activation activation;
  if (request.attributes.find("act") == nullptr) return activation;
  const std::string& name = request.attributes.symbol("act");
  if (name == "identity") return activation;
  if (as_loop || is_slow_post_op(name)) {
    activation.loop = find_unary(name);
    activation.known = activation.loop != nullptr && name != "clip";
  } else if (name == "relu") {
    activation.fused = algorithm::eltwise_relu;
  } else if (name == "sigmoid") {
    activation.fused = algorithm::eltwise_logistic;
  } else if (name == "tanh") {
    activation.fused = algorithm::eltwise_tanh;
  } else if (name == "gelu") {
    activation.fused = algorithm::eltwise_gelu_erf;
  } else if (name == "gelu_tanh") {
    activation.fused = algorithm::eltwise_gelu_tanh;
  } else if (name == "hard_swish") {
    activation.fused = algorithm::eltwise_hardswish;
    activation.alpha = 1.0f / 6.0f;
    activation.beta = 0.5f;
  } else {
    return activation_of(request, true);
  }
  return activation;
}

/// A clip as the activation. `as_loop`: not as a post-op.
Activation clip_of(const KernelRequest& clip, bool as_loop = false) {
  Activation activation;
  if (as_loop)
    activation.loop = find_unary("clip");
  else
    activation.fused = algorithm::eltwise_clip;
  activation.alpha = static_cast<float>(clip.attributes.real("min"));
  activation.beta = static_cast<float>(clip.attributes.real("max"));
  return activation;
}

/// `sum`: what the output holds is added before the activation.
dnnl::primitive_attr attributes_for(const Activation& activation, bool sum = false) {
  dnnl::post_ops operations;
  if (sum) operations.append_sum();
  if (activation.fused) append_eltwise(operations, *activation.fused, activation.alpha, activation.beta);
  return attributes_with(operations);
}

bool has_empty_operand(const KernelRequest& request) {
  const auto empty = [](const Operand& operand) { return operand.type.elements() == 0; };
  return std::any_of(request.inputs.begin(), request.inputs.end(), empty) ||
         std::any_of(request.outputs.begin(), request.outputs.end(), empty);
}

/// Arranges that the primitive finds weight input `index` (described by `plain`) in `wanted`. Returns its slot.
Slot place_weight(PrimitiveKernel& kernel, const KernelRequest& request, std::size_t index, const desc& plain,
                  const desc& wanted, std::size_t rank) {
  if (plain == wanted) return input(index);
  if (request.inputs[index].weight) {
    const std::string format = describe(wanted, rank);
    std::string shape;
    for (const std::int64_t extent : request.inputs[index].type.shape) shape += std::to_string(extent) + "x";
    kernel.want_packed(index, request.inputs[index].type.shape, plain, wanted,
                       "onednn " + shape + " rank " + std::to_string(rank) + " " + format);
    return input(index);
  }
  const Slot slot{Slot::Place::workspace, kernel.reserve(wanted.get_size())};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc reorder(engine(), plain, engine(), wanted, attributes);
  kernel.add(dnnl::reorder(reorder), {{DNNL_ARG_FROM, plain, input(index)}, {DNNL_ARG_TO, wanted, slot}},
             reorder.scratchpad_desc());
  return slot;
}

/// How a convolution is made.
struct ConvolutionPlan {
  bool accept_reference = false;
  /// The residual is added by a loop over the output instead of by the primitive, to a copy of it.
  bool add_last = false;
  /// What follows instead of the activation.
  const KernelRequest* clip = nullptr;
};

KernelOffer convolution(const KernelRequest& request, const ConvolutionPlan& plan) {
  const Operand& x = request.inputs[0];
  const Operand& w = request.inputs[1];
  const Operand& y = request.outputs[0];
  const bool biased = request.inputs.size() >= 3;
  constexpr std::size_t residual = 3;
  const bool adds = request.inputs.size() > residual, sums = adds && !plan.add_last;
  const auto& strides = request.attributes.integers("strides");
  const auto& pads = request.attributes.integers("pads");
  const auto& dilations = request.attributes.integers("dilations");
  const auto activation_as = [&](bool as_loop) {
    return plan.clip != nullptr ? clip_of(*plan.clip, as_loop) : activation_of(request, as_loop);
  };
  Activation activation = activation_as(adds && plan.add_last);
  if (!activation.known) return decline("no such activation");
  if (adds && !same_bytes(y.type.shape, request.inputs[residual].layout, y.layout))
    return decline("the residual lies otherwise than the result");
  const std::int64_t groups = x.type.shape[1] / w.type.shape[1];

  Shape weight_shape = w.type.shape;
  if (groups > 1) {
    weight_shape.insert(weight_shape.begin(), groups);
    weight_shape[1] /= groups;
  }
  const desc plain = row_major(weight_shape);
  desc bias;
  if (biased) bias = row_major(request.inputs[2].type.shape);
  // Padding at the end may be more than the last window needs; oneDNN wants it to match the output exactly.
  dims after(2), dilated(2);
  bool misses = false;  // a window may have no cell inside the image
  for (std::size_t i = 0; i < 2; ++i) {
    dilated[i] = dilations[i] - 1;
    const std::int64_t window = (w.type.shape[2 + i] - 1) * dilations[i] + 1;
    after[i] = (y.type.shape[2 + i] - 1) * strides[i] + window - x.type.shape[2 + i] - pads[i];
    misses = misses || pads[i] >= window || after[i] >= window || x.type.shape[2 + i] < dilations[i];
  }
  // oneDNN 2.6's brgconv leaves out what is added there, or reads at address 0.
  if (sums && misses) return decline("windows without a cell inside");
  const ThreadScope scope(request.threads);
  const auto made = [&] {
    return convolution_desc(strided(x), any_format(weight_shape), biased ? &bias : nullptr, strided(y), dims(strides),
                            dilated, {pads[0], pads[1]}, after, attributes_for(activation, sums));
  };
  auto primitive = made();
  std::string name = primitive.impl_info_str();
  if (activation.fused && is_by_gemm(name)) {
    // Post-ops take one element at a time there: relu of a convolution in groups by itself half of its time.
    if (const Activation loop = activation_as(true); loop.known) {
      activation = loop;
      primitive = made();
      name = primitive.impl_info_str();
    }
  }
  if (is_reference(name) && !plan.accept_reference) return decline("oneDNN has only " + name);
  if (sums && is_by_gemm(name)) return decline("oneDNN's " + name + " is slow to add");
  auto kernel = std::make_unique<PrimitiveKernel>(request.threads);
  kernel->set_implementation(adds ? name + (sums ? ", adding" : ", then a sum") : name);
  const std::int64_t elements = y.type.elements();
  if (sums) kernel->start_with(residual, elements);
  const Slot weight = place_weight(*kernel, request, 1, plain, primitive.weights_desc(), weight_shape.size());
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, primitive.src_desc(), input(0)},
                                     {DNNL_ARG_WEIGHTS, primitive.weights_desc(), weight},
                                     {DNNL_ARG_DST, primitive.dst_desc(), output(0)}};
  if (biased) arguments.push_back({DNNL_ARG_BIAS, bias, input(2)});
  kernel->add(dnnl::convolution_forward(primitive), arguments, primitive.scratchpad_desc());
  kernel->finish_with(adds && !sums ? std::optional(residual) : std::nullopt, activation.loop, elements,
                      activation.alpha, activation.beta);
  return {std::move(kernel), ""};
}

/// What oneDNN is asked for: shapes of equal rank, and how they lie in memory.
struct Product {
  Shape b;
  desc a_desc, b_desc, y_desc;
};

/// a[A.., B.., m, k] times b[B.., k, n], all row-major. Without B, the rows of all of A are one matrix. With B, A and B
/// become one axis each.
Product dense_product(const KernelRequest& request) {
  const Shape& a = request.inputs[0].type.shape;
  const Shape& b = request.inputs[1].type.shape;
  const std::int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  const std::int64_t batch = volume(std::span(b).first(b.size() - 2));
  Shape sa, sb, sy;
  if (batch == 1) {
    const std::int64_t rows = volume(a) / k;
    sa = {rows, k}, sb = {k, n}, sy = {rows, n};
  } else {
    const std::int64_t outer = volume(a) / (batch * m * k);
    sa = {batch, m, k}, sb = {batch, k, n}, sy = {batch, m, n};
    if (outer > 1) {
      sa.insert(sa.begin(), outer);
      sb.insert(sb.begin(), 1);
      sy.insert(sy.begin(), outer);
    }
  }
  return {sb, row_major(sa), row_major(sb), row_major(sy)};
}

/// The same where an operand lies otherwise: every leading axis stays an axis (but for outer ones of extent 1), b's are
/// padded with ones.
Product strided_product(const KernelRequest& request) {
  const Shape& a = request.inputs[0].type.shape;
  const std::size_t rank = a.size(), of_b = request.inputs[1].type.shape.size();
  std::size_t dropped = 0;
  while (rank - dropped > 2 && a[dropped] == 1 &&
         (rank - dropped > of_b || request.inputs[1].type.shape[of_b - (rank - dropped)] == 1))
    ++dropped;
  const auto keep_from = static_cast<std::ptrdiff_t>(dropped);
  Product product;
  const auto describe_operand = [&](const Operand& operand, Shape* keep) {
    Shape shape = operand.type.shape;
    std::vector<std::int64_t> strides = strides_of(operand);
    const std::int64_t all = std::max<std::int64_t>(1, volume(shape));
    shape.insert(shape.begin(), rank - shape.size(), 1);
    strides.insert(strides.begin(), rank - strides.size(), all);
    for (std::size_t axis = 0; axis < rank; ++axis)  // the stride of an axis of one is never used: a plain one
      if (shape[axis] == 1 && axis + 2 < rank) strides[axis] = all;
    shape.erase(shape.begin(), shape.begin() + keep_from);
    strides.erase(strides.begin(), strides.begin() + keep_from);
    if (keep != nullptr) *keep = shape;
    return strided(shape, strides);
  };
  product.a_desc = describe_operand(request.inputs[0], nullptr);
  product.b_desc = describe_operand(request.inputs[1], &product.b);
  product.y_desc = describe_operand(request.outputs[0], nullptr);
  return product;
}

bool is_plain(const desc& memory_desc) {
#if DNNL_VERSION_MAJOR >= 3
  return memory_desc.get_format_kind() == memory::format_kind::blocked && memory_desc.get_inner_nblks() == 0;
#else
  return memory_desc.data.format_kind == dnnl_blocked && memory_desc.data.format_desc.blocking.inner_nblks == 0;
#endif
}

/// How a constant matrix [1.., k, n] is packed for a kernel that takes any strides; nothing if row-major is as good.
///
/// Elements of a column lie one row apart. Where that is a multiple of a large power of two, they fall into few sets of
/// the cache and throw each other out while the kernel copies its panels: 768 x 3072 times 128 rows takes 13.5 ms, with
/// rows 64 bytes further apart 6.4 ms (AMD EPYC, oneDNN 2.6.3, one thread; 1024 x 1024: 6.0 and 2.8).
std::optional<desc> padded_rows(const Shape& shape) {
  constexpr std::int64_t aligned = 256 / sizeof(float), padding = 64 / sizeof(float), shortest = 256;
  const std::int64_t k = shape[shape.size() - 2], n = shape.back();
  if (n < shortest || n % aligned != 0 || k < 2) return std::nullopt;
  const std::int64_t row = n + padding;
  std::vector<std::int64_t> strides(shape.size(), k * row);
  strides[shape.size() - 2] = row;
  strides.back() = 1;
  return strided(shape, strides);
}

KernelOffer product(const KernelRequest& request, bool accept_reference) {
  const Shape& a = request.inputs[0].type.shape;
  const Shape& b = request.inputs[1].type.shape;
  const bool biased = request.inputs.size() == 3;
  const Activation activation = activation_of(request);
  if (!activation.known) return decline("no such activation");
  if (a.size() < 2 || b.size() < 2) return decline("rank 2 or more is needed");
  if (b.size() > a.size()) return decline("more batches in the second operand");
  const bool dense = request.inputs[0].layout == Layout::row_major && request.inputs[1].layout == Layout::row_major &&
                     request.outputs[0].layout == Layout::row_major;
  const Product asked = dense ? dense_product(request) : strided_product(request);
  const bool packable = request.inputs[1].weight && volume(std::span(b).first(b.size() - 2)) == 1;
  desc bias;
  if (biased) {
    Shape shape(asked.b.size(), 1);
    shape.back() = b.back();
    bias = row_major(shape);
  }
  const ThreadScope scope(request.threads);
  const auto with_matrix = [&](const desc& b_desc) {
    return matmul_desc(asked.a_desc, b_desc, biased ? &bias : nullptr, asked.y_desc, attributes_for(activation));
  };
  auto primitive = with_matrix(packable ? any_format(asked.b) : asked.b_desc);
  if (packable && is_plain(primitive.weights_desc()))
    if (const std::optional<desc> padded = padded_rows(asked.b)) primitive = with_matrix(*padded);
  const std::string name = primitive.impl_info_str();
  if (is_reference(name) && !accept_reference) return decline("oneDNN has only " + name);
  auto kernel = std::make_unique<PrimitiveKernel>(request.threads);
  kernel->set_implementation(name);
  const Slot weight = place_weight(*kernel, request, 1, asked.b_desc, primitive.weights_desc(), asked.b.size());
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, primitive.src_desc(), input(0)},
                                     {DNNL_ARG_WEIGHTS, primitive.weights_desc(), weight},
                                     {DNNL_ARG_DST, primitive.dst_desc(), output(0)}};
  if (biased) arguments.push_back({DNNL_ARG_BIAS, bias, input(2)});
  kernel->add(dnnl::matmul(primitive), arguments, primitive.scratchpad_desc());
  kernel->finish_with(std::nullopt, activation.loop, request.outputs[0].type.elements());
  return {std::move(kernel), ""};
}

/// One thread computes each product, whatever the number of threads: those who ask have several at a time.
class OneDnnProduct final : public PackedProduct {
 public:
  OneDnnProduct(const ProductExtents& extents, std::string& reason)
      : plain_(strided({extents.k, extents.n}, {extents.row, extents.column})) {
    const ThreadScope scope(1);
    packed_ = any_format({extents.k, extents.n});
    if (extents.once) {
      const bool in_columns = extents.row == 1 && extents.column != 1;
      packed_ = strided({extents.k, extents.n},
                        in_columns ? std::vector<std::int64_t>{1, extents.k} : std::vector<std::int64_t>{extents.n, 1});
    }
    for (const std::int64_t m : extents.rows) {
      const auto primitive =
          matmul_desc(row_major({m, extents.k}), packed_, nullptr, row_major({m, extents.n}), attributes_with({}));
      if (is_reference(primitive.impl_info_str())) reason = "oneDNN has only " + std::string(primitive.impl_info_str());
      if (implementation_.empty()) {
        packed_ = primitive.weights_desc();
        implementation_ = std::string("onednn ") + primitive.impl_info_str();
      }
      scratch_bytes_ = std::max(scratch_bytes_, primitive.scratchpad_desc().get_size());
      multiplications_.push_back(
          {dnnl::matmul(primitive), primitive.src_desc(), primitive.dst_desc(), primitive.scratchpad_desc()});
    }
    takes_plain_ = packed_ == plain_;
    packed_bytes_ = packed_.get_size();
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc packing(engine(), plain_, engine(), packed_, attributes);
    packing_ = {dnnl::reorder(packing), plain_, packed_, packing.scratchpad_desc()};
    scratch_bytes_ = std::max(scratch_bytes_, packing_.scratch.get_size());
  }

  [[nodiscard]] std::unique_ptr<ProductRunner> runner() const override { return std::make_unique<Runner>(*this); }

 private:
  struct Step {
    dnnl::primitive primitive;
    desc from, to, scratch;
  };

  class Runner final : public ProductRunner {
   public:
    explicit Runner(const OneDnnProduct& product)
        : product_(&product), stream_(engine()), packed_(product.packed_, engine(), nullptr) {
      const auto memories_of = [](const Step& step) {
        return Memories{memory(step.from, engine(), nullptr), memory(step.to, engine(), nullptr),
                        memory(step.scratch, engine(), nullptr)};
      };
      packing_ = memories_of(product.packing_);
      for (const Step& step : product.multiplications_) multiplications_.push_back(memories_of(step));
    }
    void use(std::byte* scratch) override {
      packing_.scratch.set_data_handle(scratch);
      for (Memories& memories : multiplications_) memories.scratch.set_data_handle(scratch);
    }
    Status pack(const float* b, float* packed) override {
      return run(product_->packing_, packing_, b, nullptr, packed);
    }
    Status multiply(std::size_t which, const float* a, const float* packed, float* y) override {
      return run(product_->multiplications_[which], multiplications_[which], a, packed, y);
    }

   private:
    struct Memories {
      memory from, to, scratch;
    };
    Status run(const Step& step, Memories& memories, const float* from, const float* weights, float* to) {
      memories.from.set_data_handle(const_cast<float*>(from));
      memories.to.set_data_handle(to);
      std::array<dnnl_exec_arg_t, 4> arguments = {{{DNNL_ARG_FROM, memories.from.get()},
                                                   {DNNL_ARG_TO, memories.to.get()},
                                                   {DNNL_ARG_SCRATCHPAD, memories.scratch.get()},
                                                   {DNNL_ARG_WEIGHTS, packed_.get()}}};
      if (weights != nullptr) packed_.set_data_handle(const_cast<float*>(weights));
      const dnnl_status_t status =
          dnnl_primitive_execute(step.primitive.get(), stream_.get(), weights != nullptr ? 4 : 3, arguments.data());
      if (status == dnnl_success) return {};
      return internal_error(product_->implementation_ + " failed with status " + std::to_string(status));
    }

    const OneDnnProduct* product_;
    dnnl::stream stream_;
    memory packed_;
    Memories packing_;
    std::vector<Memories> multiplications_;
  };

  desc plain_, packed_;
  Step packing_;
  std::vector<Step> multiplications_;  ///< By number of rows.
};

KernelOffer pooled(const KernelRequest& request) {
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const auto& kernel_shape = request.attributes.integers("kernel");
  const auto& strides = request.attributes.integers("strides");
  const auto& pads = request.attributes.integers("pads");
  if (const AttributeValue* dilations = request.attributes.find("dilations");
      dilations != nullptr && std::get<std::vector<std::int64_t>>(*dilations) != std::vector<std::int64_t>{1, 1})
    return decline("dilated windows are not asked of oneDNN");
  algorithm kind = algorithm::pooling_max;
  if (request.op == "avg_pool2d_include")
    kind = algorithm::pooling_avg_include_padding;
  else if (request.op == "avg_pool2d_exclude")
    kind = algorithm::pooling_avg_exclude_padding;
  dims after(2);
  for (std::size_t i = 0; i < 2; ++i) {
    after[i] = (y.type.shape[2 + i] - 1) * strides[i] + kernel_shape[i] - x.type.shape[2 + i] - pads[i];
    if (pads[i] >= kernel_shape[i] || after[i] >= kernel_shape[i]) return decline("windows without a cell inside");
  }
  const ThreadScope scope(request.threads);
  const auto primitive =
      pooling_desc(kind, strided(x), strided(y), dims(strides), dims(kernel_shape), {pads[0], pads[1]}, after);
  const std::string name = primitive.impl_info_str();
  if (is_reference(name)) return decline("oneDNN has only " + name);
  auto kernel = std::make_unique<PrimitiveKernel>(request.threads);
  kernel->set_implementation(name);
  kernel->add(dnnl::pooling_forward(primitive),
              {{DNNL_ARG_SRC, primitive.src_desc(), input(0)}, {DNNL_ARG_DST, primitive.dst_desc(), output(0)}},
              primitive.scratchpad_desc());
  return {std::move(kernel), ""};
}

/// oneDNN reports what it cannot do by exceptions; here they become reasons.
template <class F>
KernelOffer offered(const KernelRequest& request, F&& make) {
  if (!is_all_floats(request)) return decline("only f32");
  if (has_empty_operand(request)) return decline("an operand is empty");
  try {
    return make(request);
  } catch (const dnnl::error& error) {
    return decline(std::string("oneDNN: ") + error.what());
  }
}

KernelOffer matmul_of(const KernelRequest& request, bool accept_reference) {
  for (const Operand& operand : request.inputs)
    if (operand.layout == Layout::channels_last || block_of(operand.layout) != 0)
      return decline("no matrices in layouts of images");
  return offered(request, [&](const KernelRequest& asked) { return product(asked, accept_reference); });
}

}  // namespace

bool is_clippable(const KernelRequest& part) {
  return part.op == "conv2d" || (part.op == "conv2d_bias_act" && part.attributes.symbol("act") == "identity");
}
KernelOffer onednn_convolution(const KernelRequest& request, const OperatorRegistry&) {
  return offered(request, [](const KernelRequest& asked) { return convolution(asked, {}); });
}
KernelOffer onednn_convolution_and_sum(const KernelRequest& request, const OperatorRegistry&) {
  if (request.inputs.size() < 4) return decline("there is no residual");
  return offered(request, [](const KernelRequest& asked) { return convolution(asked, {.add_last = true}); });
}
KernelOffer onednn_slow_convolution(const KernelRequest& request, const OperatorRegistry&) {
  return offered(request, [](const KernelRequest& asked) {
    return convolution(asked, {.accept_reference = true, .add_last = true});
  });
}
KernelOffer onednn_clipped_convolution(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!request.fused || request.fused->parts.size() != 2 || request.outputs.size() != 1)
    return decline("not two parts");
  const FusedPart &first = request.fused->parts[0], &last = request.fused->parts[1];
  if (!is_clippable(first.request) || last.request.op != "clip") return decline("not a convolution and a clip");
  if (last.sources[0].is_input) return decline("another tensor is clipped");
  if (first.request.outputs != request.outputs) return decline("the clip lies otherwise");
  for (std::size_t i = 0; i < first.sources.size(); ++i)
    if (!(first.sources[i] == FusedPart::Source{true, static_cast<std::uint32_t>(i), 0}))
      return decline("an operand is read twice");
  if (winograd_convolution(first.request, registry).kernel)
    return decline("by tiles and with a clip of its own it is faster");
  return offered(first.request,
                 [&](const KernelRequest& asked) { return convolution(asked, {.clip = &last.request}); });
}
KernelOffer onednn_matmul(const KernelRequest& request, const OperatorRegistry&) { return matmul_of(request, false); }
KernelOffer onednn_slow_matmul(const KernelRequest& request, const OperatorRegistry&) {
  return matmul_of(request, true);
}
KernelOffer onednn_pooling(const KernelRequest& request, const OperatorRegistry&) { return offered(request, pooled); }

OfferedProduct onednn_packed_product(const ProductExtents& extents) {
  try {
    std::string reason;
    auto product = std::make_unique<OneDnnProduct>(extents, reason);
    if (!reason.empty()) return {nullptr, std::move(reason)};
    return {std::move(product), ""};
  } catch (const dnnl::error& error) {
    return {nullptr, std::string("oneDNN: ") + error.what()};
  }
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

}  // namespace taso::cpu
