/// What the backend's own kernels do for a request, as data: steps that a runner carries out, on the device
/// (launch.cu) or, in tests, in loops on the host. Knows nothing of CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/cuda/elements.h"
#include "runtime/cuda/functions.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/walk.h"
#include "runtime/cuda/words.h"
#include "runtime/kernel.h"

namespace taso {
struct LoweredBody;  // operators/lowered_body.h
}

namespace taso::cuda {

/// Where an operand of a step begins.
struct Slot {
  enum class Place : std::uint8_t { none, input, output, workspace };
  Place place = Place::none;
  std::size_t index = 0;    ///< Of inputs or outputs.
  std::int64_t offset = 0;  ///< In bytes.
};
[[nodiscard]] inline Slot input(std::size_t index, std::int64_t offset = 0) {
  return {Slot::Place::input, index, offset};
}
[[nodiscard]] inline Slot output(std::size_t index, std::int64_t offset = 0) {
  return {Slot::Place::output, index, offset};
}
[[nodiscard]] inline Slot workspace(std::int64_t offset) { return {Slot::Place::workspace, 0, offset}; }

// One struct per kind of kernel of elements.h; members mean what they mean there. `element` is f32, f16 or bf16,
// `width` the size of elements that only move: 1, 2, 4 or 8.

struct UnaryStep {
  ElementType element = ElementType::f32;
  Slot x, y;
  Walk<3> walk;
  Function function = Function::identity;
  float p = 0, q = 0;
};
struct BinaryStep {
  ElementType element = ElementType::f32;
  Slot a, b, y;
  Walk<3> walk;
  Binary function = Binary::add;
};
struct EpilogueStep {
  ElementType element = ElementType::f32;
  Slot bias, residual, y;
  Walk<3> walk;
  Function function = Function::identity;
};
struct CopyStep {
  std::size_t width = 4;
  Slot from, to;
  Walk<2> walk;  ///< to, from.
};
struct FillStep {
  std::size_t width = 4;
  Slot to;
  std::int64_t count = 0;
  std::uint64_t value = 0;  ///< The bytes of one element.
};
struct PaddingStep {
  std::size_t width = 4;
  Slot from, to;
  std::uint64_t value = 0;
  Padding<std::uint64_t> shape{};  ///< All but pointers and value.
  std::int64_t count = 0;          ///< Elements of `to`.
};
struct GatheringStep {
  std::size_t width = 4;
  bool wide_index = true;  ///< i64, else i32.
  Slot x, index, y;
  Walk<3> walk;
  std::int64_t extent = 0, stride = 0;
};
struct WordsStep {
  Slot a, b, c, y;
  Words shape{};  ///< All but pointers.
};
struct PoolingStep {
  ElementType element = ElementType::f32;
  Slot x, y;
  Pooling<float> shape{};  ///< All but pointers.
};
struct DepthwiseStep {
  ElementType element = ElementType::f32;
  Slot x, w, bias, residual, y;
  Depthwise<float> shape{};  ///< All but pointers.
};
struct BatchNormStep {
  ElementType element = ElementType::f32;
  Walk<3> walk;
  float epsilon = 0;
};
struct LrnStep {
  ElementType element = ElementType::f32;
  Lrn<float> shape{};  ///< All but pointers.
};

struct TurnedPairsStep {
  ElementType element = ElementType::f32;
  TurnedPairs<float> shape{};  ///< All but pointers.
};

/// How threads share rows (launch.cu): one warp or one block for each, or a block for 32 neighbouring rows, for rows
/// whose elements lie apart while those of neighbouring rows lie together.
enum class TeamShape : std::uint8_t { warp, block, columns };

struct ReductionStep {
  ElementType element = ElementType::f32;
  Walk<2> kept;
  Walk<1> reduced;
  ReductionKind kind = ReductionKind::sum;
  TeamShape team = TeamShape::warp;
};
struct ThinProductStep {
  ElementType element = ElementType::f32;
  Slot wide, thin, bias, y;
  std::int64_t wide_count = 0;
  ThinProduct<float> shape{};  ///< All but pointers.
  TeamShape team = TeamShape::warp;
};
struct SoftmaxStep {
  ElementType element = ElementType::f32;
  Walk<2> rows;
  std::int64_t count = 0, x_stride = 1, y_stride = 1;
  TeamShape team = TeamShape::warp;
};
struct RowNormStep {
  ElementType element = ElementType::f32;
  Walk<2> rows;
  std::int64_t count = 0, x_stride = 1, y_stride = 1;
  float epsilon = 0;
  bool centers = true;  ///< layer_norm, with a bias; else rms_norm.
  TeamShape team = TeamShape::warp;
};

struct GroupNormStep {
  ElementType element = ElementType::f32;
  GroupNorm<float> shape{};  ///< All but pointers.
  TeamShape team = TeamShape::warp;
};

/// Boxes that are copied in one launch: pieces of a concatenation, or outputs of a split.
struct CopiesStep {
  std::size_t width = 4;
  struct Piece {
    Slot from, to;
    Walk<2> walk;  ///< to, from.
  };
  std::vector<Piece> pieces;  ///< At most max_pieces.
};

/// Operands of several operators in one kernel; at most max_sources and max_targets.
struct ChainOperands {
  std::vector<Slot> sources, targets;
};
struct ChainStep {
  ElementType element = ElementType::f32;
  ChainOperands operands;
  Box box;
  ElementCode code;
};
struct RowChainStep {
  ElementType element = ElementType::f32;
  ChainOperands operands;
  RowChain<float> shape{};  ///< All but pointers.
  TeamShape team = TeamShape::warp;
};

/// Stages of a definition that go together row by row (runtime/stage_rows.h), in one launch: each row by a team of
/// threads, or by one thread. Only as a generated kernel.
struct DefinitionStep {
  ElementType element = ElementType::f32;  ///< Of inputs and outputs; what is between them is f32.
  std::shared_ptr<const LoweredBody> body;
  std::size_t first = 0, end = 0;  ///< The stages.
  std::size_t prefix = 0;          ///< As many of their own loops are rows; 0: there is one row.
  std::int64_t rows = 1;
  std::optional<TeamShape> team;   ///< Nothing: one thread for a row.
  std::vector<Slot> buffers;       ///< Per buffer of the body. Of place none: kept for one row, or not used.
  std::vector<std::int64_t> kept;  ///< Per buffer: elements of a row that is kept; 1: in a register of each thread.
};

struct Program;
/// Programs of one step each that read nothing of each other. Where kernels are generated they are one launch, in which
/// each has blocks of threads of its own.
struct BesideStep {
  struct Part {
    std::shared_ptr<const Program> program;
    std::vector<std::uint32_t> inputs, outputs;  ///< Per operand of the program: its number among the whole's.
  };
  std::vector<Part> parts;
};

using Step = std::variant<UnaryStep, BinaryStep, EpilogueStep, CopyStep, FillStep, PaddingStep, GatheringStep,
                          WordsStep, PoolingStep, DepthwiseStep, BatchNormStep, LrnStep, TurnedPairsStep, ReductionStep,
                          ThinProductStep, SoftmaxStep, RowNormStep, GroupNormStep, CopiesStep, ChainStep, RowChainStep,
                          DefinitionStep, BesideStep>;

/// Steps in order.
struct Program {
  std::string name;  ///< "own elementwise", ...
  std::vector<Step> steps;
  std::size_t workspace_bytes = 0;
};

/// A program, or the reason why there is none.
struct PlannedProgram {
  std::optional<Program> program;
  std::string reason;
};

/// The program for a request of any operator that is neither a convolution nor a product, or of several operators
/// (plan_fused, plan_beside).
[[nodiscard]] PlannedProgram plan_program(const KernelRequest& request);

/// The one step for a fused request: of operators that only move elements, one of them perhaps a concatenation, or of
/// element-wise operators, with at most one softmax, layer_norm or rms_norm along the rows, and of operators that move
/// what is read (runtime/access.h). Declines where that is not all there is, where there is no room for it, and where
/// neighbouring elements of the result are far apart in an operand, which a copy by tiles reads faster.
[[nodiscard]] PlannedProgram plan_fused(const KernelRequest& request);

/// The steps for a request of any operators by their definitions, which `body` has (runtime/joined_body.h): one for all
/// stages that go together row by row. Only as generated kernels. Declines functions that have no text, and indices
/// that are read.
[[nodiscard]] PlannedProgram plan_definition(const KernelRequest& request, std::shared_ptr<const LoweredBody> body);

/// The one step for a request that falls into several (independent_requests), each of which has a program of one step:
/// plan_program's, or that of a convolution of every channel by itself. Declines where one of them notes errors, and
/// where all together would take too much shared memory.
[[nodiscard]] PlannedProgram plan_beside(const KernelRequest& request);
/// Whether a request has a program of one step that can be a part of such a launch.
[[nodiscard]] bool can_stand_beside(const KernelRequest& request);

/// The function that the request's attribute `act` names; identity where there is no such attribute; nothing if it is
/// unknown.
[[nodiscard]] std::optional<Function> activation_of(const KernelRequest& request);

/// True if all operands are of one of f32, f16 and bf16, have known shapes and elements, and there is one output.
[[nodiscard]] bool is_plain(const KernelRequest& request, std::string& reason);

// Parts of the kernels that a library computes in the main.

/// The elements of `operand` from where they lie in its layout to another one.
[[nodiscard]] std::optional<CopyStep> reorder_step(const TensorType& type, Layout from, Layout to, Slot source,
                                                   Slot target);
/// Images with zeros around them: top, left, bottom, right.
[[nodiscard]] PaddingStep padding_step(const Operand& image, const std::vector<std::int64_t>& pads, Slot source,
                                       Slot target);
/// A convolution in as many groups as there are channels, each of one, with what its request adds and applies; `act`:
/// its activation. Nothing if it is none, or the layouts take too many axes.
[[nodiscard]] std::optional<DepthwiseStep> depthwise_step(const KernelRequest& request, Function act);
/// A product, of which one side has at most most_thin rows or columns, that is one for the library; `act`: its
/// activation. Nothing if it is none. The plan is the request's, whose bias is its input plan.bias if it has one.
[[nodiscard]] std::optional<ThinProductStep> thin_product_step(const ProductPlan& plan, ElementType element,
                                                               bool biased, Function act);
/// y = act(y + bias + residual) in place. `bias_axis` is the axis of y along which the bias goes; slots of place none
/// are left out. Nothing if the layouts take too many axes.
[[nodiscard]] std::optional<EpilogueStep> epilogue_step(const Operand& y, std::size_t bias_axis, Slot bias,
                                                        Slot residual, Layout residual_layout, Function act);

/// How many launches a step is where kernels are precompiled.
[[nodiscard]] std::size_t launches_of(const Step& step);

/// Memory that the slots of a program mean.
struct Buffers {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace = nullptr;
  /// What Gathering notes errors in, and the kernel's number there.
  unsigned long long* error = nullptr;
  unsigned long long number = 0;
};

/// The memory of one part of a BesideStep. It has no workspace.
class PartBuffers {
 public:
  /// `whole`: that of the step; must outlive this.
  PartBuffers(const BesideStep::Part& part, const Buffers& whole);
  PartBuffers(const PartBuffers&) = delete;
  PartBuffers& operator=(const PartBuffers&) = delete;
  [[nodiscard]] const Buffers& buffers() const { return buffers_; }

 private:
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  Buffers buffers_;
};

}  // namespace taso::cuda
