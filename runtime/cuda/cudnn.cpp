#include "runtime/cuda/cudnn.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace taso::cuda {
namespace {

/// cuDNN's account of the calling thread's last error, on one line.
std::string last_words() {
  std::array<char, 1024> buffer{};
  cudnnGetLastErrorString(buffer.data(), buffer.size());
  std::string text(buffer.data());
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& extents, bool channels_last) {
  const std::int64_t c = extents[1], h = extents[2], w = extents[3];
  if (channels_last) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

/// Descriptors of one graph of operations; it holds all of them, as later ones refer to earlier ones.
class OperationGraph {
 public:
  [[nodiscard]] const Descriptor& whole() const { return kept_[whole_]; }

 protected:
  Expected<std::size_t> keep(Descriptor descriptor) {
    TASO_RETURN_IF_ERROR(descriptor.finalize());
    kept_.push_back(std::move(descriptor));
    return kept_.size() - 1;
  }
  [[nodiscard]] const Descriptor& kept(std::size_t index) const { return kept_[index]; }
  Status add_operation(Descriptor descriptor) {
    TASO_ASSIGN(const std::size_t index, keep(std::move(descriptor)));
    operations_.push_back(index);
    return {};
  }
  /// An operand of the graph, by its number.
  Expected<std::size_t> tensor(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides,
                               cudnnDataType_t type, std::int64_t number) {
    return keep(described(extents, strides, type, number));
  }
  /// What only the graph knows.
  Expected<std::size_t> intermediate(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides,
                                     cudnnDataType_t type) {
    const bool is_virtual = true;
    Descriptor made = described(extents, strides, type, next_virtual_++);
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
    return keep(std::move(made));
  }
  /// y = mode(value), or mode(value, *other).
  Status pointwise(cudnnPointwiseMode_t mode, std::size_t value, const std::size_t* other, std::size_t y) {
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
    TASO_ASSIGN(const std::size_t how, keep(std::move(function)));
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kept_[how])
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kept_[value]);
    if (other != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kept_[*other]);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kept_[y]);
    return add_operation(std::move(operation));
  }
  /// Makes the graph of the operations that were added.
  Status finish(const PlanningTarget& target) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const std::size_t index : operations_) raw.push_back(kept_[index].get());
    Descriptor all(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    all.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            std::span<const cudnnBackendDescriptor_t>(raw));
    if (target.handle != nullptr) all.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
    TASO_ASSIGN(whole_, keep(std::move(all)));
    return {};
  }

 private:
  static Descriptor described(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides,
                              cudnnDataType_t type, std::int64_t number) {
    Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
        .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    return tensor;
  }

  std::vector<Descriptor> kept_;
  std::vector<std::size_t> operations_;
  std::int64_t next_virtual_ = 100;
  std::size_t whole_ = 0;
};

/// A convolution with what is computed of its result: residual, bias and activation.
class ConvolutionBuilder final : public OperationGraph {
 public:
  explicit ConvolutionBuilder(const ConvolutionGraph& graph) : graph_(graph) {}

  Status build(const PlanningTarget& target) {
    TASO_ASSIGN(const std::size_t x, operand(graph_.x, ConvolutionOperand::x));
    TASO_ASSIGN(const std::size_t w, operand(graph_.w, ConvolutionOperand::w));
    remaining_ = (graph_.residual ? 1 : 0) + (graph_.bias ? 1 : 0) + (graph_.relu ? 1 : 0);
    TASO_ASSIGN(const std::size_t product, result());
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const float one = 1, zero = 0;
    Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, mode)
        .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2)
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, graph_.before)
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, graph_.after)
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, graph_.dilations)
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, graph_.strides);
    TASO_ASSIGN(const std::size_t how, keep(std::move(convolution)));
    Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, kept(x))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, kept(w))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, kept(product))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, kept(how))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, one)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, zero);
    TASO_RETURN_IF_ERROR(add_operation(std::move(operation)));
    // The order in which cuDNN's precompiled engines have these: residual, bias, activation.
    std::size_t value = product;
    if (graph_.residual) {
      TASO_ASSIGN(const std::size_t residual, operand(graph_.y, ConvolutionOperand::residual));
      TASO_ASSIGN(value, applied(CUDNN_POINTWISE_ADD, value, &residual));
    }
    if (graph_.bias) {
      TASO_ASSIGN(const std::size_t bias, operand({1, graph_.y[1], 1, 1}, ConvolutionOperand::bias));
      TASO_ASSIGN(value, applied(CUDNN_POINTWISE_ADD, value, &bias));
    }
    if (graph_.relu) {
      TASO_ASSIGN(value, applied(CUDNN_POINTWISE_RELU_FWD, value, nullptr));
    }
    return finish(target);
  }

 private:
  Expected<std::size_t> operand(const std::vector<std::int64_t>& extents, ConvolutionOperand number) {
    return tensor(extents, strides_of(extents, graph_.channels_last), graph_.type, static_cast<std::int64_t>(number));
  }
  /// What the next operation writes: y if it is the last, else a tensor in float that only the graph knows.
  Expected<std::size_t> result() {
    if (remaining_-- == 0) {
      const auto strides = graph_.y_strides.empty() ? strides_of(graph_.y, graph_.channels_last) : graph_.y_strides;
      return tensor(graph_.y, strides, graph_.type, static_cast<std::int64_t>(ConvolutionOperand::y));
    }
    return intermediate(graph_.y, strides_of(graph_.y, graph_.channels_last), CUDNN_DATA_FLOAT);
  }
  Expected<std::size_t> applied(cudnnPointwiseMode_t mode, std::size_t value, const std::size_t* other) {
    TASO_ASSIGN(const std::size_t y, result());
    TASO_RETURN_IF_ERROR(pointwise(mode, value, other, y));
    return y;
  }

  const ConvolutionGraph& graph_;
  int remaining_ = 0;  ///< Operations behind the one whose result is asked for next.
};

/// The operations of attention, as the engines for it know them: the softmax is spelled out.
class AttentionBuilder final : public OperationGraph {
 public:
  AttentionBuilder(const AttentionPlan& attention, cudnnDataType_t type) : attention_(attention), type_(type) {}

  Status build(const PlanningTarget& target) {
    using Extents = std::vector<std::int64_t>;
    const auto &q = attention_.q.extents, &k = attention_.k.extents;
    scores_ = Extents{q[0], q[1], q[2], k[3]};
    const Extents of_rows{q[0], q[1], q[2], 1};
    TASO_ASSIGN(const std::size_t first, operand(attention_.q, AttentionTensor::q));
    TASO_ASSIGN(const std::size_t second, operand(attention_.k, AttentionTensor::k));
    TASO_ASSIGN(const std::size_t values, operand(attention_.v, AttentionTensor::v));
    TASO_ASSIGN(const std::size_t y, operand(attention_.y, AttentionTensor::y));
    TASO_ASSIGN(std::size_t value, row_major(scores_, CUDNN_DATA_FLOAT));
    TASO_RETURN_IF_ERROR(product(first, second, value));
    if (attention_.scale) {
      TASO_ASSIGN(const std::size_t scale, operand({0, {1, 1, 1, 1}, {1, 1, 1, 1}, 0}, AttentionTensor::scale));
      TASO_ASSIGN(value, applied(attention_.divides ? CUDNN_POINTWISE_DIV : CUDNN_POINTWISE_MUL, value, &scale));
    }
    if (attention_.mask) {
      TASO_ASSIGN(const std::size_t mask, operand(*attention_.mask, AttentionTensor::mask));
      TASO_ASSIGN(value, applied(CUDNN_POINTWISE_ADD, value, &mask));
    }
    TASO_ASSIGN(const std::size_t largest, reduction(CUDNN_REDUCE_TENSOR_MAX, value, of_rows));
    TASO_ASSIGN(value, applied(CUDNN_POINTWISE_SUB, value, &largest));
    TASO_ASSIGN(value, applied(CUDNN_POINTWISE_EXP, value, nullptr));
    TASO_ASSIGN(const std::size_t sum, reduction(CUDNN_REDUCE_TENSOR_ADD, value, of_rows));
    TASO_ASSIGN(value, applied(CUDNN_POINTWISE_DIV, value, &sum, type_));
    TASO_RETURN_IF_ERROR(product(value, values, y));
    return finish(target);
  }

 private:
  Expected<std::size_t> operand(const AttentionOperand& place, AttentionTensor number) {
    return tensor({place.extents.begin(), place.extents.end()}, {place.strides.begin(), place.strides.end()}, type_,
                  static_cast<std::int64_t>(number));
  }
  Expected<std::size_t> row_major(const std::vector<std::int64_t>& extents, cudnnDataType_t type) {
    std::vector<std::int64_t> strides(extents.size(), 1);
    for (std::size_t axis = extents.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * extents[axis + 1];
    return intermediate(extents, strides, type);
  }
  Status product(std::size_t a, std::size_t b, std::size_t y) {
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    Descriptor function(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    function.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
    TASO_ASSIGN(const std::size_t how, keep(std::move(function)));
    Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, kept(a))
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, kept(b))
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, kept(y))
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kept(how));
    return add_operation(std::move(operation));
  }
  Expected<std::size_t> applied(cudnnPointwiseMode_t mode, std::size_t value, const std::size_t* other,
                                cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    TASO_ASSIGN(const std::size_t y, row_major(scores_, type));
    TASO_RETURN_IF_ERROR(pointwise(mode, value, other, y));
    return y;
  }
  Expected<std::size_t> reduction(cudnnReduceTensorOp_t mode, std::size_t value,
                                  const std::vector<std::int64_t>& extents) {
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    Descriptor function(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    function.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode)
        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute);
    TASO_ASSIGN(const std::size_t how, keep(std::move(function)));
    TASO_ASSIGN(const std::size_t y, row_major(extents, CUDNN_DATA_FLOAT));
    Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kept(value))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kept(y))
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kept(how));
    TASO_RETURN_IF_ERROR(add_operation(std::move(operation)));
    return y;
  }

  const AttentionPlan& attention_;
  cudnnDataType_t type_;
  std::vector<std::int64_t> scores_;  ///< Extents of q k'.
};

/// Properties of an engine that decide whether it may be used.
struct Notes {
  bool tensor_core = false, down_converts = false, sums_in_less = false, unordered = false, large_tiles = false;
};

Notes notes_of(cudnnBackendDescriptor_t engine) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> list{};
  std::int64_t count = 0;
  Notes notes;
  if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               static_cast<std::int64_t>(list.size()), &count, list.data()) != CUDNN_STATUS_SUCCESS) {
    // What is not known of an engine is assumed to be against it.
    return {true, true, true, true, true};
  }
  const auto known = std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(list.size()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(known); ++i) {
    notes.tensor_core |= list[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    notes.down_converts |= list[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    notes.sums_in_less |= list[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    notes.unordered |= list[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    notes.large_tiles |= list[i] == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
  }
  return notes;
}

/// Whether planning the engine means to compile it.
bool is_compiled(cudnnBackendDescriptor_t engine) {
  std::array<cudnnBackendBehaviorNote_t, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT> list{};
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                               static_cast<std::int64_t>(list.size()), &count, list.data()) != CUDNN_STATUS_SUCCESS)
    return false;
  const auto end = list.begin() + std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(list.size()));
  return std::find(list.begin(), end, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != end;
}

bool is_allowed(const Notes& notes, cudnnDataType_t type, MathMode math) {
  if (notes.sums_in_less || notes.unordered) return false;
  if (type != CUDNN_DATA_FLOAT) return true;
  // Conversion is to 16 bits, whose range is less. Tensor cores compute with TF32.
  if (notes.large_tiles || notes.down_converts) return false;
  return math == MathMode::tf32 || !notes.tensor_core;
}

Error unusable(std::string message) { return {ErrorCode::device_unavailable, std::move(message), {}}; }

/// What a configuration says of itself.
struct Configured {
  EngineConfiguration configuration;
  Notes notes;
  bool is_compiled = false;
};

/// The descriptors that an attribute holds, at most `count`; `type` is theirs.
Expected<std::vector<Descriptor>> descriptors_in(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                                                 cudnnBackendDescriptorType_t type, std::int64_t count,
                                                 const char* what) {
  std::vector<Descriptor> list;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    list.emplace_back(type);
    raw.push_back(list.back().get());
  }
  std::int64_t got = 0;
  if (count > 0)
    TASO_RETURN_IF_ERROR(
        check(cudnnBackendGetAttribute(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got, raw.data()), what));
  list.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(got, 0, std::max<std::int64_t>(count, 0))));
  return list;
}

/// What the heuristics of that mode name, in their order.
Expected<std::vector<Descriptor>> named_configurations(const PlanningTarget& target, const Descriptor& graph,
                                                       cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.properties != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  TASO_RETURN_IF_ERROR(heuristics.finalize());
  const char* what = "cuDNN does not name its engines";
  std::int64_t count = 0;
  TASO_RETURN_IF_ERROR(check(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                             what));
  return descriptors_in(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count,
                        what);
}

Expected<Configured> configured_of(cudnnBackendDescriptor_t configuration) {
  const char* what = "cuDNN does not describe an engine";
  Configured result;
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  TASO_RETURN_IF_ERROR(check(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
                             what));
  TASO_RETURN_IF_ERROR(check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count,
                                                      &result.configuration.index),
                             what));
  // Of these cuDNN does not say beforehand how many there are.
  TASO_ASSIGN(const std::vector<Descriptor> knobs,
              descriptors_in(configuration, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                             CUDNN_KNOB_TYPE_COUNTS, what));
  for (const Descriptor& knob : knobs) {
    cudnnBackendKnobType_t kind{};
    std::int64_t value = 0;
    TASO_RETURN_IF_ERROR(check(
        cudnnBackendGetAttribute(knob.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &count, &kind),
        what));
    TASO_RETURN_IF_ERROR(check(
        cudnnBackendGetAttribute(knob.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &count, &value),
        what));
    result.configuration.knobs.emplace_back(kind, value);
  }
  std::sort(result.configuration.knobs.begin(), result.configuration.knobs.end());
  result.notes = notes_of(raw);
  result.is_compiled = is_compiled(raw);
  return result;
}

/// Makes plans of configurations.
class EnginePlanner {
 public:
  EnginePlanner(const PlanningTarget& target, cudnnDataType_t type, MathMode math, std::size_t workspace_bytes)
      : target_(target), type_(type), math_(math), workspace_bytes_(workspace_bytes) {}

  [[nodiscard]] bool allows(const Configured& configured) const { return is_allowed(configured.notes, type_, math_); }

  [[nodiscard]] Expected<Engine> plan(const Descriptor& configuration, const Configured& configured) const {
    Engine engine;
    engine.configuration = configured.configuration;
    engine.tensor_core = configured.notes.tensor_core;
    engine.plan = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target_.properties != nullptr)
      engine.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target_.properties);
    else
      engine.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target_.handle);
    engine.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    TASO_RETURN_IF_ERROR(engine.plan.finalize());
    std::int64_t count = 0;
    TASO_RETURN_IF_ERROR(check(cudnnBackendGetAttribute(engine.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                        CUDNN_TYPE_INT64, 1, &count, &engine.workspace),
                               "cuDNN does not say how much workspace an engine needs"));
    if (engine.workspace < 0 || static_cast<std::size_t>(engine.workspace) > workspace_bytes_)
      return unusable("the workspace would be " + std::to_string(engine.workspace) + " bytes");
    return engine;
  }

 private:
  const PlanningTarget& target_;
  cudnnDataType_t type_;
  MathMode math_;
  std::size_t workspace_bytes_;
};

/// Whether a plan has failed for want of a device only.
bool is_of_driver(const Error& error) {
  return error.message.find("EXECUTION_FAILED_CUDA_DRIVER") != std::string::npos;
}

/// Adds the engines that the heuristics name for a graph.
void add_engines(const PlanningTarget& target, const Descriptor& graph, const EnginePlanner& planner,
                 const EngineLimits& limits, Engines& engines) {
  std::vector<EngineConfiguration> met;
  for (const auto& [mode, most] :
       {std::pair(CUDNN_HEUR_MODE_A, limits.heuristic), std::pair(CUDNN_HEUR_MODE_FALLBACK, limits.all)}) {
    Expected<std::vector<Descriptor>> named = named_configurations(target, graph, mode);
    if (!named) {
      engines.last_error = named.error().message;
      continue;
    }
    for (const Descriptor& one : *named) {
      if (engines.usable.size() >= most) break;
      Expected<Configured> configured = configured_of(one.get());
      if (!configured) {
        ++engines.unsupported;
        engines.last_error = configured.error().message;
        continue;
      }
      if (std::find(met.begin(), met.end(), configured->configuration) != met.end()) continue;
      met.push_back(configured->configuration);
      if (!planner.allows(*configured)) {
        ++engines.other_arithmetic;
      } else if (configured->is_compiled && !limits.compiled) {
        ++engines.compiled;
      } else if (Expected<Engine> engine = planner.plan(one, *configured); engine) {
        engines.usable.push_back(std::move(*engine));
      } else {
        // The heuristics name configurations that then turn out to have no plan.
        ++(is_of_driver(engine.error()) ? engines.unloadable : engines.unsupported);
        engines.last_error = engine.error().message;
      }
    }
  }
}

/// A plan of an engine that is set so, of which no heuristics are asked.
Expected<Engine> configured(const PlanningTarget& target, const Descriptor& graph, const EnginePlanner& planner,
                            const EngineConfiguration& configuration) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, configuration.index);
  if (target.properties != nullptr) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.properties);
  TASO_RETURN_IF_ERROR(engine.finalize());
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const auto& [kind, value] : configuration.knobs) {
    const auto type = static_cast<cudnnBackendKnobType_t>(kind);
    Descriptor& knob = knobs.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    knob.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, type)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    TASO_RETURN_IF_ERROR(knob.finalize());
    raw.push_back(knob.get());
  }
  Descriptor one(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  one.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!raw.empty())
    one.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            std::span<const cudnnBackendDescriptor_t>(raw));
  TASO_RETURN_IF_ERROR(one.finalize());
  Configured properties;
  properties.configuration = configuration;
  properties.notes = notes_of(engine.get());
  if (!planner.allows(properties))
    return unusable("engine " + std::to_string(configuration.index) + " has other arithmetic");
  return planner.plan(one, properties);
}

}  // namespace

Status check(cudnnStatus_t result, const char* what) {
  if (result == CUDNN_STATUS_SUCCESS) return {};
  std::string message = std::string(what) + ": " + cudnnGetErrorString(result);
  if (const std::string words = last_words(); !words.empty()) message += ": " + words;
  return Error{ErrorCode::device_unavailable, std::move(message), {}};
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type)
    : failure_(check(cudnnBackendCreateDescriptor(type, &descriptor_), "cuDNN cannot make a descriptor")) {}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

Descriptor& Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                                const void* values) {
  if (failure_)
    failure_ = check(cudnnBackendSetAttribute(descriptor_, name, type, count, values), "cuDNN refuses an attribute");
  return *this;
}

Status Descriptor::finalize() {
  TASO_RETURN_IF_ERROR(failure_);
  return check(cudnnBackendFinalize(descriptor_), "cuDNN refuses a descriptor");
}

std::string to_string(const EngineConfiguration& configuration) {
  std::string text = "engine " + std::to_string(configuration.index) + "; knobs";
  for (const auto& [kind, value] : configuration.knobs)
    text += ' ' + std::to_string(kind) + '=' + std::to_string(value);
  return text;
}

std::optional<EngineConfiguration> parse_configuration(std::string_view text) {
  const auto skip = [&](std::string_view words) {
    const bool begins = text.starts_with(words);
    if (begins) text.remove_prefix(words.size());
    return begins;
  };
  const auto number = [&](std::int64_t& value) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  EngineConfiguration configuration;
  if (!skip("engine ") || !number(configuration.index) || !skip("; knobs")) return std::nullopt;
  while (!text.empty()) {
    auto& [kind, value] = configuration.knobs.emplace_back();
    if (!skip(" ") || !number(kind) || !skip("=") || !number(value)) return std::nullopt;
  }
  return configuration;
}

std::string ChosenEngine::text() const { return work + "; " + to_string(configuration) + "; " + description; }

std::optional<ChosenEngine> ChosenEngine::parse(std::string_view text) {
  const std::size_t end = text.rfind("; best of "), begin = text.find("; engine ");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
  const auto configuration = parse_configuration(text.substr(begin + 2, end - begin - 2));
  if (!configuration) return std::nullopt;
  return ChosenEngine{std::string(text.substr(0, begin)), *configuration, std::string(text.substr(end + 2))};
}

Engines convolution_engines(const PlanningTarget& target, const ConvolutionGraph& graph, MathMode math,
                            const EngineLimits& limits) {
  Engines engines;
  ConvolutionBuilder builder(graph);
  if (const Status built = builder.build(target); !built) {
    engines.last_error = built.error().message;
    return engines;
  }
  add_engines(target, builder.whole(), EnginePlanner(target, graph.type, math, limits.workspace_bytes), limits,
              engines);
  return engines;
}

Engines attention_engines(const PlanningTarget& target, const AttentionPlan& attention, cudnnDataType_t type,
                          const EngineLimits& limits) {
  Engines engines;
  AttentionBuilder builder(attention, type);
  if (const Status built = builder.build(target); !built) {
    engines.last_error = built.error().message;
    return engines;
  }
  add_engines(target, builder.whole(), EnginePlanner(target, type, MathMode::strict, limits.workspace_bytes), limits,
              engines);
  return engines;
}

Expected<Engine> configured_engine(const PlanningTarget& target, const ConvolutionGraph& graph, MathMode math,
                                   std::size_t workspace_bytes, const EngineConfiguration& configuration) {
  ConvolutionBuilder builder(graph);
  TASO_RETURN_IF_ERROR(builder.build(target));
  return configured(target, builder.whole(), EnginePlanner(target, graph.type, math, workspace_bytes), configuration);
}

Expected<Engine> configured_attention(const PlanningTarget& target, const AttentionPlan& attention,
                                      cudnnDataType_t type, std::size_t workspace_bytes,
                                      const EngineConfiguration& configuration) {
  AttentionBuilder builder(attention, type);
  TASO_RETURN_IF_ERROR(builder.build(target));
  return configured(target, builder.whole(), EnginePlanner(target, type, MathMode::strict, workspace_bytes),
                    configuration);
}

Status execute(cudnnHandle_t handle, const Engine& engine,
               std::span<const std::pair<std::int64_t, const void*>> operands, void* workspace) {
  std::vector<std::int64_t> numbers;
  std::vector<void*> pointers;
  for (const auto& [number, pointer] : operands) {
    numbers.push_back(number);
    pointers.push_back(const_cast<void*>(pointer));  // cuDNN has one list for what is read and what is written
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(pointers))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  TASO_RETURN_IF_ERROR(pack.finalize());
  return check(cudnnBackendExecute(handle, engine.plan.get(), pack.get()), "cuDNN cannot execute an engine");
}

Expected<Descriptor> device_from_json(const std::string& json) {
  Descriptor descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::span<const char>(json));
  TASO_RETURN_IF_ERROR(descriptor.finalize());
  return descriptor;
}

Expected<std::string> json_of_device(int device) {
  Descriptor descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  const std::int32_t number = device;
  descriptor.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, number);
  TASO_RETURN_IF_ERROR(descriptor.finalize());
  const char* what = "cuDNN does not describe the device";
  std::int64_t size = 0;
  TASO_RETURN_IF_ERROR(check(cudnnBackendGetAttribute(descriptor.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                                      CUDNN_TYPE_CHAR, 0, &size, nullptr),
                             what));
  if (size <= 0) return Error{ErrorCode::device_unavailable, what, {}};
  std::string json(static_cast<std::size_t>(size), '\0');
  TASO_RETURN_IF_ERROR(check(cudnnBackendGetAttribute(descriptor.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                                      CUDNN_TYPE_CHAR, size, &size, json.data()),
                             what));
  while (!json.empty() && json.back() == '\0') json.pop_back();
  return json;
}

}  // namespace taso::cuda
