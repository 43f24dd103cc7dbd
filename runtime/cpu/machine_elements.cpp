// Element-wise operators on integers and truth values, and those that make them of reals or choose by them: a loop for
// each function of machine numbers and element type, or else the function itself, called for every element.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "operators/instance.h"
#include "operators/lowered_body.h"
#include "operators/machine_ring.h"
#include "operators/registry.h"
#include "operators/unparse.h"
#include "runtime/cpu/element_walk.h"
#include "runtime/cpu/kernels.h"

namespace taso::cpu {
namespace machine {
namespace {

constexpr std::size_t most_operands = 3;

/// Where the next elements of each operand begin, and how far apart they are, in elements.
struct Row {
  std::array<const std::byte*, most_operands> operands{};
  std::array<std::int64_t, most_operands> strides{};
  std::byte* result = nullptr;
  std::int64_t count = 0;
};
using Loop = void (*)(const Row& row);

template <class T>
const T* operand(const Row& row, std::size_t i) {
  return reinterpret_cast<const T*>(row.operands.at(i));
}
template <class T>
T* result(const Row& row) {
  return reinterpret_cast<T*>(row.result);
}

template <class F, class X, class Y>
void unary(const Row& row) {
  const X* const x = operand<X>(row, 0);
  Y* const y = result<Y>(row);
  const std::int64_t step = row.strides[0];
  if (step == 1)
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = static_cast<Y>(F::of(x[i]));
  else
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = static_cast<Y>(F::of(x[i * step]));
}

template <class F, class X, class Y>
void binary(const Row& row) {
  const X *const a = operand<X>(row, 0), *const b = operand<X>(row, 1);
  Y* const y = result<Y>(row);
  const std::int64_t left = row.strides[0], right = row.strides[1];
  if (left == 1 && right == 1)
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = static_cast<Y>(F::of(a[i], b[i]));
  else
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = static_cast<Y>(F::of(a[i * left], b[i * right]));
}

template <class T>
void choice(const Row& row) {
  const std::uint8_t* const condition = operand<std::uint8_t>(row, 0);
  const T *const a = operand<T>(row, 1), *const b = operand<T>(row, 2);
  T* const y = result<T>(row);
  const auto [step, left, right] = row.strides;
  if (step == 1 && left == 1 && right == 1)
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = condition[i] != 0 ? a[i] : b[i];
  else
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = condition[i * step] != 0 ? a[i * left] : b[i * right];
}

/// As the functions of the operators' layer (operators/machine_functions.cpp) have it, in f32.
template <class T>
void quantizing(const Row& row) {
  const float *const x = operand<float>(row, 0), *const scale = operand<float>(row, 1);
  const T* const zero = operand<T>(row, 2);
  T* const y = result<T>(row);
  const auto [step, scales, zeros] = row.strides;
  constexpr auto least = static_cast<float>(std::numeric_limits<T>::min());
  constexpr auto most = static_cast<float>(std::numeric_limits<T>::max());
  for (std::int64_t i = 0; i < row.count; ++i) {
    // Every value between the bounds is an f32; NaN becomes the lower one.
    const float moved = std::nearbyint(x[i * step] / scale[i * scales]) + static_cast<float>(zero[i * zeros]);
    const float above = moved >= least ? moved : least;
    y[i] = static_cast<T>(above <= most ? above : most);
  }
}
template <class T>
void dequantizing(const Row& row) {
  const T *const x = operand<T>(row, 0), *const zero = operand<T>(row, 2);
  const float* const scale = operand<float>(row, 1);
  auto* const y = result<float>(row);
  const auto [step, scales, zeros] = row.strides;
  for (std::int64_t i = 0; i < row.count; ++i)
    y[i] = static_cast<float>(static_cast<std::int64_t>(x[i * step]) - static_cast<std::int64_t>(zero[i * zeros])) *
           scale[i * scales];
}

// ------------------------------------------------------------------------------------------------------- functions

struct Less {
  template <class T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct Equal {
  template <class T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct And {
  static bool of(std::uint8_t a, std::uint8_t b) { return a != 0 && b != 0; }
};
struct Or {
  static bool of(std::uint8_t a, std::uint8_t b) { return a != 0 || b != 0; }
};
struct Xor {
  static bool of(std::uint8_t a, std::uint8_t b) { return (a != 0) != (b != 0); }
};
struct SameTruth {
  static bool of(std::uint8_t a, std::uint8_t b) { return (a != 0) == (b != 0); }
};
struct Not {
  static bool of(std::uint8_t a) { return a == 0; }
};
struct IsNan {
  template <class T>
  static bool of(T a) {
    return std::isnan(a);
  }
};
struct IsInf {
  template <class T>
  static bool of(T a) {
    return std::isinf(a);
  }
};

/// In which sums and products wrap around.
template <class T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

struct Add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Subtract {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct Negative {
  template <class T>
  static T of(T a) {
    return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
  }
};
struct Larger {
  template <class T>
  static T of(T a, T b) {
    return a < b ? b : a;
  }
};
struct Smaller {
  template <class T>
  static T of(T a, T b) {
    return b < a ? b : a;
  }
};
/// A conversion in which nothing is beyond the type.
template <class Y>
struct To {
  template <class X>
  static Y of(X a) {
    return static_cast<Y>(a);
  }
};
struct IsTrue {
  template <class X>
  static bool of(X a) {
    return a != 0;
  }
};

// ------------------------------------------------------------------------------------------------------------ types

/// Calls f with a number of the type as C++ has it; false where it is no integer.
template <class F>
bool with_integer(ElementType type, const F& f) {
  switch (type) {
    case ElementType::i8:
      return f(std::int8_t{}), true;
    case ElementType::i16:
      return f(std::int16_t{}), true;
    case ElementType::i32:
      return f(std::int32_t{}), true;
    case ElementType::i64:
      return f(std::int64_t{}), true;
    case ElementType::u8:
      return f(std::uint8_t{}), true;
    case ElementType::u16:
      return f(std::uint16_t{}), true;
    case ElementType::u32:
      return f(std::uint32_t{}), true;
    case ElementType::u64:
      return f(std::uint64_t{}), true;
    case ElementType::boolean:
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::other:
      return false;
  }
  return false;
}

template <class F>
bool with_real(ElementType type, const F& f) {
  if (type == ElementType::f32) return f(float{}), true;
  if (type == ElementType::f64) return f(double{}), true;
  return false;
}

template <class F>
Loop comparing_reals(ElementType type) {
  Loop loop = nullptr;
  with_real(type, [&]<class T>(T) { loop = binary<F, T, std::uint8_t>; });
  return loop;
}
template <class F>
Loop testing_reals(ElementType type) {
  Loop loop = nullptr;
  with_real(type, [&]<class T>(T) { loop = unary<F, T, std::uint8_t>; });
  return loop;
}
template <class F>
Loop comparing_integers(ElementType type) {
  Loop loop = nullptr;
  with_integer(type, [&]<class T>(T) { loop = binary<F, T, std::uint8_t>; });
  return loop;
}
template <class F>
Loop of_two_integers(ElementType type) {
  Loop loop = nullptr;
  with_integer(type, [&]<class T>(T) { loop = binary<F, T, T>; });
  return loop;
}
template <class F>
Loop of_an_integer(ElementType type) {
  Loop loop = nullptr;
  with_integer(type, [&]<class T>(T) { loop = unary<F, T, T>; });
  return loop;
}
template <class F>
Loop of_truth_values(ElementType) {
  return binary<F, std::uint8_t, std::uint8_t>;
}

Loop choosing(ElementType type) {
  switch (size_of(type)) {
    case 1:
      return choice<std::uint8_t>;
    case 2:
      return choice<std::uint16_t>;
    case 4:
      return choice<std::uint32_t>;
    case 8:
      return choice<std::uint64_t>;
    default:
      return nullptr;
  }
}

/// Conversions of X, which has no fractions beyond integers to lose.
template <class X>
Loop converting_from(ElementType to) {
  Loop loop = nullptr;
  const auto conversion = [&]<class Y>(Y) { loop = unary<To<Y>, X, Y>; };
  if (to == ElementType::boolean) return unary<IsTrue, X, std::uint8_t>;
  with_real(to, conversion);
  if constexpr (std::is_integral_v<X>) with_integer(to, conversion);
  return loop;
}
Loop converting(ElementType from, ElementType to) {
  Loop loop = nullptr;
  const auto conversion = [&]<class X>(X) { loop = converting_from<X>(to); };
  if (from == ElementType::boolean) {
    // Any byte but 0 is a true one.
    const auto truth = [&]<class Y>(Y) { loop = unary<IsTrue, std::uint8_t, Y>; };
    if (to == ElementType::boolean) return unary<IsTrue, std::uint8_t, std::uint8_t>;
    if (!with_real(to, truth)) with_integer(to, truth);
    return loop;
  }
  if (!with_real(from, conversion)) with_integer(from, conversion);
  return loop;
}

// ------------------------------------------------------------------------------------------------------------ table

struct FunctionLoops {
  std::string_view function;
  std::size_t operand;  ///< Whose type decides.
  Loop (*loop)(ElementType type);
};

constexpr std::array<FunctionLoops, 21> loops_of_functions = {{
    {"choose", 1, choosing},
    {"choose_integer", 1, choosing},
    {"equal", 0, comparing_reals<Equal>},
    {"integer_add", 0, of_two_integers<Add>},
    {"integer_equal", 0, comparing_integers<Equal>},
    {"integer_less", 0, comparing_integers<Less>},
    {"integer_less_equal", 0, comparing_integers<LessEqual>},
    {"integer_maximum", 0, of_two_integers<Larger>},
    {"integer_minimum", 0, of_two_integers<Smaller>},
    {"integer_mul", 0, of_two_integers<Multiply>},
    {"integer_neg", 0, of_an_integer<Negative>},
    {"integer_sub", 0, of_two_integers<Subtract>},
    {"is_inf", 0, testing_reals<IsInf>},
    {"is_nan", 0, testing_reals<IsNan>},
    {"less", 0, comparing_reals<Less>},
    {"less_equal", 0, comparing_reals<LessEqual>},
    {"logical_and", 0, of_truth_values<And>},
    {"logical_equal", 0, of_truth_values<SameTruth>},
    {"logical_not", 0, [](ElementType) -> Loop { return unary<Not, std::uint8_t, std::uint8_t>; }},
    {"logical_or", 0, of_truth_values<Or>},
    {"logical_xor", 0, of_truth_values<Xor>},
}};

Loop loop_of(const FunctionDefinition& function, std::span<const TensorType> operands, ElementType result) {
  if (function.name == "cast") return converting(operands[0].element, result);
  if (function.name == "quantize" || function.name == "dequantize") {
    Loop loop = nullptr;
    const bool quantizes = function.name == "quantize";
    if ((quantizes ? operands[0].element : result) != ElementType::f32) return nullptr;
    with_integer(operands[2].element, [&]<class T>(T) {
      if constexpr (sizeof(T) < 8)
        loop = quantizes && sizeof(T) < 4 ? quantizing<T> : quantizes ? nullptr : dequantizing<T>;
    });
    return loop;
  }
  for (const FunctionLoops& row : loops_of_functions)
    if (row.function == function.name) return row.loop(operands[row.operand].element);
  return nullptr;
}

// ------------------------------------------------------------------------------------------------------ definitions

/// f(x[I..], y[I..], ...) of a function of machine numbers.
struct MachineCall {
  const FunctionDefinition* function = nullptr;
  std::vector<std::size_t> operands;  ///< The inputs that it reads.
  MachineTypes types;
};

/// The call that an operator is, if it is one: nothing otherwise.
std::optional<MachineCall> machine_call(const OperatorDefinition& definition, const OperatorInstance& instance) {
  const LoweredBody& body = instance.body();
  const std::string axes = to_text(definition.output.axes);
  if (definition.over_reals || definition.variadic() || definition.several_outputs() || body.stages.size() != 1)
    return std::nullopt;
  for (const InputSpec& input : definition.inputs)
    if (!input.axes.empty() && to_text(input.axes) != axes) return std::nullopt;
  const LoweredStage& stage = body.stages[0];
  const LoweredNode& root = stage.nodes[stage.root];
  if (root.kind != LoweredNode::Kind::call || root.function->machine == nullptr || root.operands.size() > most_operands)
    return std::nullopt;
  MachineCall call{root.function, {}, machine_types(instance)};
  for (const std::uint32_t i : root.operands) {
    const LoweredNode& read = stage.nodes[i];
    if (read.kind != LoweredNode::Kind::read || !read.operands.empty()) return std::nullopt;
    const LoweredAccess& access = stage.accesses[read.access];
    if (access.buffer >= body.inputs || access.may_leave() || !access.indirect.empty() ||
        !(definition.inputs[access.buffer].axes.empty() || stage.forms[access.offset] == stage.forms[stage.write]))
      return std::nullopt;
    call.operands.push_back(access.buffer);
  }
  return call;
}

class MachineElements final : public Kernel {
 public:
  MachineElements(const KernelRequest& request, MachineCall call)
      : Kernel("own machine elements"),
        walk_(element_walk(request)),
        call_(std::move(call)),
        threads_(request.threads) {
    for (const std::size_t input : call_.operands) operands_.push_back(request.inputs[input].type);
    result_ = request.outputs[0].type.element;
    loop_ = loop_of(*call_.function, operands_, result_);
  }

  Status execute(const KernelArguments& arguments) const override {
    go_over(walk_, threads_, loop_ != nullptr ? 1 : 8, [&] { return std::make_unique<Worker>(*this, arguments); });
    return {};
  }

 private:
  class Worker {
   public:
    Worker(const MachineElements& kernel, const KernelArguments& arguments)
        : kernel_(&kernel), arguments_(&arguments), offsets_(arguments.inputs.size()) {}
    void go_to(std::span<const std::int64_t> offsets) { offsets_.assign(offsets.begin(), offsets.end()); }
    void compute(std::int64_t begin, std::int64_t end, std::int64_t row_begin) {
      Row row;
      for (std::size_t i = 0; i < kernel_->call_.operands.size(); ++i) {
        const std::size_t input = kernel_->call_.operands[i];
        const std::int64_t stride = kernel_->walk_.strides[input].back();
        row.strides.at(i) = stride;
        row.operands.at(i) =
            arguments_->inputs[input] +
            (offsets_[input] + begin * stride) * static_cast<std::int64_t>(size_of(kernel_->operands_[i].element));
      }
      row.result = arguments_->outputs[0] + (row_begin + begin) * static_cast<std::int64_t>(size_of(kernel_->result_));
      row.count = end - begin;
      if (kernel_->loop_ != nullptr)
        kernel_->loop_(row);
      else
        kernel_->call_each(row);
    }

   private:
    const MachineElements* kernel_;
    const KernelArguments* arguments_;
    std::vector<std::int64_t> offsets_;
  };

  void call_each(const Row& row) const {
    std::array<MachineNumber, most_operands> numbers{};
    const std::span<const MachineNumber> arguments = std::span(numbers).first(operands_.size());
    for (std::int64_t i = 0; i < row.count; ++i) {
      for (std::size_t k = 0; k < operands_.size(); ++k) {
        const auto at = static_cast<std::size_t>(i * row.strides.at(k));
        numbers.at(k) = load_number(row.operands.at(k), operands_[k].element, at);
      }
      store_number(row.result, result_, static_cast<std::size_t>(i), call_.function->machine(arguments, call_.types));
    }
  }

  ElementWalk walk_;
  MachineCall call_;
  int threads_;
  std::vector<TensorType> operands_;
  ElementType result_ = ElementType::f32;
  Loop loop_ = nullptr;
};

}  // namespace
}  // namespace machine

KernelOffer machine_elements(const KernelRequest& request, const OperatorRegistry& registry) {
  const OperatorDefinition* const definition = registry.find(request.op);
  if (definition == nullptr || definition->over_reals)
    return decline("only what computes with integers or truth values");
  if (std::string reason = no_element_walk(request); !reason.empty()) return decline(std::move(reason));
  std::vector<TensorType> types;
  for (const Operand& input : request.inputs) types.push_back(input.type);
  // A definition is asked for as a vector, so that what it reads where is seen.
  for (std::size_t i = 0; i < types.size(); ++i)
    types[i].shape = !definition->variadic() && definition->inputs[i].axes.empty() ? Shape{} : Shape{2};
  const auto instance = OperatorInstance::create(registry, request.op, request.attributes, types);
  if (!instance) return decline(instance.error().message);
  if (instance->output_types().size() != 1 || instance->output_types()[0].element != request.outputs[0].type.element)
    return decline("the output is not that of the definition");
  std::optional<machine::MachineCall> call = machine::machine_call(*definition, *instance);
  if (!call) return decline("the definition is not one call of a function for each element");
  return {std::make_unique<machine::MachineElements>(request, std::move(*call)), ""};
}

}  // namespace taso::cpu
