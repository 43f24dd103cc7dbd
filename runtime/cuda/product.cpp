// Matrix products by cuBLASLt. Its GELU is the approximation by tanh, not ours: that, and what else it does not fuse,
// follows as a pass of our own.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>

#include "runtime/access.h"
#include "runtime/cuda/device_kernel.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/products.h"

namespace taso::cuda {
namespace {

/// Algorithms that are asked for, the best first by the library's heuristics; and of all engines.
constexpr int few_algorithms = 8, most_algorithms = 32;
static_assert(sizeof(cublasLtMatmulAlgo_t::data) == sizeof(ChosenAlgorithm::words));
constexpr std::size_t product_workspace = std::size_t{32} << 20;

cudaDataType_t cuda_type_of(ElementType element) {
  if (element == ElementType::f16) return CUDA_R_16F;
  if (element == ElementType::bf16) return CUDA_R_16BF;
  return CUDA_R_32F;
}

/// Owners of cuBLASLt's objects.
struct DestroyDescriptor {
  void operator()(cublasLtMatmulDesc_t one) const { cublasLtMatmulDescDestroy(one); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayout_t one) const { cublasLtMatrixLayoutDestroy(one); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t one) const { cublasLtMatmulPreferenceDestroy(one); }
};
template <class T, class D>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, D>;
using OwnedDescriptor = Owned<cublasLtMatmulDesc_t, DestroyDescriptor>;
using OwnedLayout = Owned<cublasLtMatrixLayout_t, DestroyLayout>;
using OwnedPreference = Owned<cublasLtMatmulPreference_t, DestroyPreference>;

constexpr const char* refused = "cuBLASLt refuses a description";

template <class T>
Status set(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t name, const T& value) {
  return check(cublasLtMatmulDescSetAttribute(descriptor, name, &value, sizeof(value)), refused);
}
template <class T>
Status set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const T& value) {
  return check(cublasLtMatrixLayoutSetAttribute(layout, name, &value, sizeof(value)), refused);
}
template <class T>
Status set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name, const T& value) {
  return check(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)), refused);
}

const std::string own_choice = "own thin product; ";  ///< As an algorithm's text, before the description.

class Product final : public DeviceKernel {
 public:
  Product(std::shared_ptr<Context> context, const KernelRequest& request)
      : DeviceKernel(std::move(context), request, "cublasLt"), request_(request) {
    align_operands();
  }

  std::size_t launches() const override {
    if (takes_own_) return 1;
    return plan_.offsets.size() + (epilogue_ ? 1 : 0);
  }

  /// Describes the product and takes an algorithm. A reason if there is none.
  Expected<std::string> prepare() {
    std::string reason;
    if (!is_plain(request_, reason)) return reason;
    const KernelRequest* product = product_in(request_);
    if (product == nullptr) return std::string("one product is needed");
    const std::size_t inputs = product->inputs.size();
    if (inputs != 2 && inputs != 3) return std::string("two or three inputs are needed");
    PlannedProduct planned = plan_product(request_);
    if (!planned.plan) return planned.reason;
    plan_ = std::move(*planned.plan);
    if (plan_.batch > std::numeric_limits<std::int32_t>::max()) return std::string("too many matrices");
    Operand y = product->outputs[0];
    y.within = request_.outputs[0].within;  // a pass of ours is only where nothing moves behind the product
    const bool biased = inputs == 3;
    columns_ = y.type.shape.back();
    if (biased && request_.inputs[plan_.bias].type.shape != Shape{columns_})
      return std::string("a bias that is not one number for every column");
    const std::optional<Function> act = activation_of(*product);
    if (!act) return std::string("no such activation");
    fuses_bias_ = biased && plan_.bias_along_rows();
    const bool bias_left = biased && !fuses_bias_;
    fuses_relu_ = *act == Function::relu && !bias_left;
    const Function act_left = fuses_relu_ ? Function::identity : *act;
    if (bias_left || act_left != Function::identity) {
      if (request_.fused && !yields(*product)) return std::string("a pass over a result that has been moved");
      epilogue_ =
          epilogue_step(y, y.type.shape.size() - 1, bias_left ? input(plan_.bias) : Slot{}, Slot{}, y.layout, act_left);
      if (!epilogue_) return "more than " + std::to_string(max_axes) + " axes";
    }
    own_ = thin_product_step(plan_, request_.outputs[0].type.element, biased, *act);
    TASO_RETURN_IF_ERROR(describe());
    if (!context_->can_run) {
      // The library names its algorithms for the device that is there only.
      workspace_size_ = product_workspace;
      implementation_ = std::string("cublasLt") + (epilogue_ ? " and own epilogue" : "");
      workspace_offset_ = reserve(workspace_size_);
      return std::string();
    }
    return choose();
  }

 private:
  /// Whether the product's result is the whole's.
  [[nodiscard]] bool yields(const KernelRequest& product) const {
    const Fused& fused = *request_.fused;
    return &fused.parts[fused.results[0].index].request == &product;
  }

  Status describe() {
    const ElementType element = request_.outputs[0].type.element;
    const cublasComputeType_t compute = element == ElementType::f32 && context_->math == MathMode::tf32
                                            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    cublasLtMatmulDesc_t descriptor = nullptr;
    TASO_RETURN_IF_ERROR(check(cublasLtMatmulDescCreate(&descriptor, compute, CUDA_R_32F), refused));
    descriptor_.reset(descriptor);
    const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    TASO_RETURN_IF_ERROR(set(descriptor, CUBLASLT_MATMUL_DESC_TRANSA, operation(plan_.first.transposed)));
    TASO_RETURN_IF_ERROR(set(descriptor, CUBLASLT_MATMUL_DESC_TRANSB, operation(plan_.second.transposed)));
    const cublasLtEpilogue_t epilogue = fuses_bias_ && fuses_relu_ ? CUBLASLT_EPILOGUE_RELU_BIAS
                                        : fuses_bias_              ? CUBLASLT_EPILOGUE_BIAS
                                        : fuses_relu_              ? CUBLASLT_EPILOGUE_RELU
                                                                   : CUBLASLT_EPILOGUE_DEFAULT;
    TASO_RETURN_IF_ERROR(set(descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
    if (fuses_bias_) {
      TASO_RETURN_IF_ERROR(
          set(descriptor, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(cuda_type_of(element))));
      // Before there is one: of the pointer, the heuristics take the alignment.
      TASO_RETURN_IF_ERROR(set_bias(descriptor, reinterpret_cast<const std::byte*>(operand_alignment)));
    }
    TASO_ASSIGN(first_, layout_of(plan_.first));
    TASO_ASSIGN(second_, layout_of(plan_.second));
    TASO_ASSIGN(result_, layout_of(plan_.result));
    return {};
  }

  static Status set_bias(cublasLtMatmulDesc_t descriptor, const std::byte* bias) {
    const void* pointer = bias;
    return set(descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer);
  }

  Expected<OwnedLayout> layout_of(const ColumnMajor& matrix) const {
    cublasLtMatrixLayout_t raw = nullptr;
    TASO_RETURN_IF_ERROR(check(cublasLtMatrixLayoutCreate(&raw, cuda_type_of(request_.outputs[0].type.element),
                                                          static_cast<std::uint64_t>(matrix.rows),
                                                          static_cast<std::uint64_t>(matrix.columns), matrix.leading),
                               refused));
    OwnedLayout layout(raw);
    if (plan_.batch > 1) {
      TASO_RETURN_IF_ERROR(set(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(plan_.batch)));
      TASO_RETURN_IF_ERROR(set(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride));
    }
    return layout;
  }

  Expected<std::string> choose() {
    TASO_RETURN_IF_ERROR(context_->enter());
    cublasLtMatmulPreference_t raw = nullptr;
    TASO_RETURN_IF_ERROR(check(cublasLtMatmulPreferenceCreate(&raw), refused));
    const OwnedPreference preference(raw);
    TASO_RETURN_IF_ERROR(
        set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(product_workspace)));
    // Partial sums are added in float, in a fixed order.
    TASO_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                             static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
    const std::size_t element_bytes = size_of(request_.outputs[0].type.element);
    const auto alignment = [&](bool of_result, bool of_a) {
      // Products of a batch that is divided begin anywhere in an operand.
      std::int64_t offset = 0;
      for (const ProductPlan::Offsets& begin : plan_.offsets) offset |= of_result ? begin.y : of_a ? begin.a : begin.b;
      std::uint32_t bytes = operand_alignment;
      while (bytes > element_bytes && offset * static_cast<std::int64_t>(element_bytes) % bytes != 0) bytes /= 2;
      return bytes;
    };
    TASO_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(false, !plan_.swapped)));
    TASO_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(false, plan_.swapped)));
    TASO_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(true, false)));
    TASO_RETURN_IF_ERROR(set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(true, false)));
    const std::string key = tuning_key(request_);
    const std::scoped_lock lock(context_->mutex);
    if (const std::optional<std::string> known = context_->chosen(key); known && take_chosen(*known))
      return std::string();
    std::array<cublasLtMatmulHeuristicResult_t, most_algorithms> found{};
    int count = 0;
    const Status asked =
        check(cublasLtMatmulAlgoGetHeuristic(
                  context_->cublas, descriptor_.get(), first_.get(), second_.get(), result_.get(), result_.get(), raw,
                  context_->all_engines ? most_algorithms : few_algorithms, found.data(), &count),
              "cuBLASLt has no algorithm");
    if (!asked) return asked.error().message;
    std::vector<cublasLtMatmulHeuristicResult_t> usable;
    std::size_t most_workspace = 0;
    for (int i = 0; i < count; ++i) {
      const cublasLtMatmulHeuristicResult_t& one = found[static_cast<std::size_t>(i)];
      if (one.state != CUBLAS_STATUS_SUCCESS || one.workspaceSize > product_workspace) continue;
      usable.push_back(one);
      most_workspace = std::max(most_workspace, one.workspaceSize);
    }
    if (usable.empty() && !own_) return std::string("cuBLASLt has no algorithm");
    const auto start = std::chrono::steady_clock::now();
    TASO_ASSIGN(const FastestCandidate fastest, tuned(usable, most_workspace));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (fastest.index == usable.size()) {
      TASO_RETURN_IF_ERROR(context_->choose(key, {own_choice + fastest.description(), fastest.seconds, took.count()}));
      take_own(fastest.description());
      return std::string();
    }
    ChosenAlgorithm chosen;
    const cublasLtMatmulHeuristicResult_t& best = usable[fastest.index];
    std::memcpy(chosen.words.data(), &best.algo.data, sizeof(chosen.words));
    chosen.description = fastest.description();
    TASO_RETURN_IF_ERROR(context_->choose(key, {to_string(chosen), fastest.seconds, took.count()}));
    take(best, chosen.description);
    return std::string();
  }

  /// Takes the algorithm that was chosen before. False if the library does not know it.
  bool take_chosen(const std::string& text) {
    if (own_ && text.starts_with(own_choice)) {
      take_own(text.substr(own_choice.size()));
      return true;
    }
    const std::optional<ChosenAlgorithm> chosen = parse_algorithm(text);
    if (!chosen) return false;
    cublasLtMatmulHeuristicResult_t checked{};
    std::memcpy(&checked.algo.data, chosen->words.data(), sizeof(chosen->words));
    const cublasLtMatmulAlgo_t algorithm = checked.algo;
    if (cublasLtMatmulAlgoCheck(context_->cublas, descriptor_.get(), first_.get(), second_.get(), result_.get(),
                                result_.get(), &algorithm, &checked) != CUBLAS_STATUS_SUCCESS ||
        checked.workspaceSize > product_workspace)
      return false;
    checked.algo = algorithm;
    take(checked, chosen->description);
    return true;
  }

  void take_own(const std::string& description) {
    takes_own_ = true;
    implementation_ = own_choice.substr(0, own_choice.find(';')) + " (" + description + ")";
  }

  void take(const cublasLtMatmulHeuristicResult_t& chosen, const std::string& description) {
    algorithm_ = chosen.algo;
    workspace_size_ = chosen.workspaceSize;
    workspace_offset_ = reserve(workspace_size_);
    implementation_ = std::string("cublasLt") + (epilogue_ ? " and own epilogue" : "") + " (" + description + ")";
  }

  /// The fastest, on random operands; our own product is the last. What follows as a pass of our own is the same for
  /// the library's.
  Expected<FastestCandidate> tuned(const std::vector<cublasLtMatmulHeuristicResult_t>& usable,
                                   std::size_t most_workspace) const {
    const ElementType element = request_.outputs[0].type.element;
    const cudaStream_t stream = context_->tuning_stream;
    TASO_ASSIGN(const DeviceMemory a, random_operand(element, request_.inputs[plan_.a].type.elements(), 1, stream));
    TASO_ASSIGN(const DeviceMemory b, random_operand(element, request_.inputs[plan_.b].type.elements(), 2, stream));
    TASO_ASSIGN(const DeviceMemory bias, random_operand(element, columns_, 3, stream));
    TASO_ASSIGN(const DeviceMemory y,
                DeviceMemory::create(static_cast<std::size_t>(spanned_bytes(request_.outputs[0]))));
    TASO_ASSIGN(const DeviceMemory space, DeviceMemory::create(most_workspace));
    std::vector<const std::byte*> inputs(request_.inputs.size(), bias.data());
    inputs[plan_.a] = a.data();
    inputs[plan_.b] = b.data();
    const std::vector<std::byte*> outputs = {y.data()};
    Buffers buffers;
    buffers.inputs = inputs;
    buffers.outputs = outputs;
    return context_->tune(usable.size() + (own_ ? 1 : 0), [&](std::size_t i, cudaStream_t on) -> Status {
      if (i == usable.size()) return launch(*own_, buffers, on);
      return run(usable[i].algo, usable[i].workspaceSize, a.data(), b.data(), bias.data(), y.data(), space.data(), on);
    });
  }

  Status run(const cublasLtMatmulAlgo_t& algorithm, std::size_t workspace_bytes, const std::byte* a, const std::byte* b,
             const std::byte* bias, std::byte* y, std::byte* space, cudaStream_t stream) const {
    const auto element_bytes = static_cast<std::int64_t>(size_of(request_.outputs[0].type.element));
    const float one = 1, zero = 0;
    // The bias is part of the description, which is read when a product is queued: one call at a time.
    const std::scoped_lock lock(descriptor_mutex_);
    if (fuses_bias_) TASO_RETURN_IF_ERROR(set_bias(descriptor_.get(), bias));
    for (const ProductPlan::Offsets& begin : plan_.offsets) {
      const std::byte* from_a = a + begin.a * element_bytes;
      const std::byte* from_b = b + begin.b * element_bytes;
      std::byte* to = y + begin.y * element_bytes;
      TASO_RETURN_IF_ERROR(check(
          cublasLtMatmul(context_->cublas, descriptor_.get(), &one, plan_.swapped ? from_b : from_a, first_.get(),
                         plan_.swapped ? from_a : from_b, second_.get(), &zero, to, result_.get(), to, result_.get(),
                         &algorithm, workspace_bytes > 0 ? space : nullptr, workspace_bytes, stream),
          "cuBLASLt cannot multiply"));
    }
    return {};
  }

  Status queue(const Buffers& buffers, cudaStream_t stream) const override {
    if (takes_own_) return launch(*own_, buffers, stream);
    std::byte* space = workspace_size_ > 0 ? buffers.workspace + workspace_offset_ : nullptr;
    TASO_RETURN_IF_ERROR(run(algorithm_, workspace_size_, buffers.inputs[plan_.a], buffers.inputs[plan_.b],
                             fuses_bias_ ? buffers.inputs[plan_.bias] : nullptr, buffers.outputs[0], space, stream));
    if (epilogue_) TASO_RETURN_IF_ERROR(launch(*epilogue_, buffers, stream));
    return {};
  }

  KernelRequest request_;
  ProductPlan plan_;
  std::int64_t columns_ = 0;  ///< Of the result.
  bool fuses_bias_ = false, fuses_relu_ = false;
  OwnedDescriptor descriptor_;
  mutable std::mutex descriptor_mutex_;
  OwnedLayout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_size_ = 0;
  std::int64_t workspace_offset_ = 0;
  std::optional<EpilogueStep> epilogue_;
  std::optional<ThinProductStep> own_;  ///< Where there is one.
  bool takes_own_ = false;
};

}  // namespace

KernelOffer product(const std::shared_ptr<Context>& context, const KernelRequest& request) {
  if (const KernelRequest* one = product_in(request); one == nullptr || one->inputs.size() < 2)
    return decline("two or three inputs are needed");
  auto kernel = std::make_unique<Product>(context, request);
  Expected<std::string> reason = kernel->prepare();
  if (!reason) return decline(reason.error().message);
  if (!reason->empty()) return decline(*reason);
  return {std::move(kernel), ""};
}

}  // namespace taso::cuda
