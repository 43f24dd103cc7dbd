/// Kernels: the programs that compute operator applications, the same objects for measuring and for running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/layout.h"
#include "graph/tensor_type.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

class Backend;           // runtime/backend.h
struct Operators;        // runtime/backend.h
class OperatorRegistry;  // operators/registry.h

/// Where a tensor lies whose elements are among those of another, the whole: it is a range of one axis of that.
struct Within {
  std::uint32_t axis = 0;
  std::int64_t extent = 0;  ///< Of the whole along `axis`; 0: the tensor lies by itself.
  explicit operator bool() const { return extent != 0; }
  bool operator==(const Within&) const = default;
};

/// One tensor that a kernel reads or writes.
struct Operand {
  TensorType type;
  Layout layout = Layout::row_major;
  /// Constant at run time: known when the executor is built, and possibly pre-laid-out by Kernel::pack. Inputs only.
  bool weight = false;
  /// Outputs of a device's kernels only: the strides are those of the whole, and the pointer is to the first element of
  /// the range. In the memory between its elements nothing is written.
  Within within = {};
  bool operator==(const Operand&) const = default;
};

/// The name of the layout conversion, the one kernel that no specification defines: output = input in another layout.
inline constexpr std::string_view reorder_op = "reorder";

/// The name under which requests ask for several operators at once.
inline constexpr std::string_view fused_op = "fused";

struct Fused;

/// What is asked of a kernel: one operator application on tensors of given types and layouts. An input of an
/// element-wise operator may have a shape that broadcasts (numpy alignment) to the output's: the kernel is then the
/// fused pair f(x, broadcast(b)).
struct KernelRequest {
  std::string op;
  Attributes attributes;  ///< Complete.
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  int threads = 1;
  /// Tenths of the model, and so of the kernel's weights and code, that are still in the last-level cache when the
  /// model is run again (see cached_tenths). Matters for what is measured only.
  int cached_tenths = 0;
  /// Of fused_op: the operators; null otherwise.
  std::shared_ptr<const Fused> fused = nullptr;
  bool operator==(const KernelRequest& other) const;

  /// Canonical text: the key of cost databases. Equal requests have equal keys, in every process; nothing of the
  /// device is in it. Example:
  ///   max_pool2d; dilations=[1, 1], kernel=[3, 3], ...; f32[1, 64, 56, 56]:nhwc -> f32[1, 64, 28, 28]:nhwc; threads=1
  /// followed by "; cached=40%" if so much is. A weight's layout is followed by ":weight",
  /// that of an output within a wider tensor by ":within 256 of axis 1".
  [[nodiscard]] std::string key() const;
};

/// One operator of a fused kernel. What it reads and writes is in memory only if it is an operand of the whole.
struct FusedPart {
  /// Where an operand comes from: input `index` of the whole, or output `port` of the earlier part `index`.
  struct Source {
    bool is_input = true;
    std::uint32_t index = 0, port = 0;
    bool operator==(const Source&) const = default;
  };
  KernelRequest request;  ///< As if it were computed alone; not fused itself.
  std::vector<Source> sources;
  bool operator==(const FusedPart&) const = default;
};

/// Operators that one kernel computes, in an order of evaluation. The whole is defined as the parts one after the
/// other; between them values may be kept more precisely than their types say.
struct Fused {
  std::vector<FusedPart> parts;
  std::vector<FusedPart::Source> results;  ///< Per output of the whole: of a part.
  bool operator==(const Fused&) const = default;
};

/// Per input: its integers are indices of an axis of this extent; 0 where no definition says so.
[[nodiscard]] std::vector<std::int64_t> index_bounds(const KernelRequest& request, const OperatorRegistry& registry);

/// Pointers for one execution: inputs[i] is laid out as the request says, or packed where packed_format(i) is not
/// empty; `workspace` has workspace_bytes() bytes, aligned to 64. On the host outputs[0] may be the residual's
/// memory (Behaviour::residual), which nothing reads afterwards; no other output overlaps an input.
struct KernelArguments {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace = nullptr;
  std::size_t stream = 0;  ///< Of a device: where the kernel queues (Backend::streams).
};

/// An executable kernel. Immutable after creation; execute() may run concurrently on different arguments unless its
/// implementation says otherwise.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// What computes it, for reports: "onednn brgconv:avx512_core", "own elementwise", "reference".
  [[nodiscard]] const std::string& implementation() const { return implementation_; }
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// What it computes and in which order, in lines, where it was made for its request; empty where it was compiled.
  [[nodiscard]] virtual std::string code() const { return {}; }
  /// How many launches on a device one execution is: kernels of its own and calls of libraries. A kernel of the host
  /// counts as one.
  [[nodiscard]] virtual std::size_t launches() const { return 1; }

  /// A name for the memory format in which weight input `index` is wanted; empty: as in the request. Equal names on
  /// equal tensors mean equal bytes, so that packed weights can be shared between kernels.
  [[nodiscard]] virtual std::string packed_format(std::size_t index) const;
  /// Size of the packed weight (only if packed_format is not empty).
  [[nodiscard]] virtual std::size_t packed_bytes(std::size_t index) const;
  /// Converts a weight from the request's layout to the packed format.
  virtual void pack(std::size_t index, const std::byte* plain, std::byte* packed) const;

  /// How many indices of its first axis make a part of a weight that can be packed alone; the last part may have fewer.
  /// 0: it is packed as a whole.
  [[nodiscard]] virtual std::int64_t rows_of_part(std::size_t index) const;
  /// Converts `count` indices of the first axis of a row-major weight, from `first` on, which begin at `rows`. Called
  /// with one part after the other, in order, this does what pack() does.
  virtual void pack_part(std::size_t index, std::int64_t first, std::int64_t count, const std::byte* rows,
                         std::byte* packed) const;

  /// Computes the outputs. Fails only where values of the input are wrong (an index out of range).
  [[nodiscard]] virtual Status execute(const KernelArguments& arguments) const = 0;
  /// Of a device's kernel: a run that it was part of, queued or replayed, has come to its end without an error.
  virtual void note_run() const {}

 protected:
  explicit Kernel(std::string implementation, std::size_t workspace_bytes = 0)
      : implementation_(std::move(implementation)), workspace_bytes_(workspace_bytes) {}
  std::string implementation_;
  std::size_t workspace_bytes_ = 0;
};

/// The outcome of asking one candidate: a kernel, or the reason why it does not apply.
struct KernelOffer {
  std::unique_ptr<Kernel> kernel;
  std::string reason;  ///< Set if `kernel` is null.
};

/// Kernels of operators that no library knows, for one executor.
class KernelSource {
 public:
  virtual ~KernelSource() = default;
  /// Whether the operator is one of them: it is never fused with others.
  [[nodiscard]] virtual bool knows(std::string_view op) const = 0;
  /// Null where the operator is none of them. Kernels may need the source for as long as they are.
  [[nodiscard]] virtual std::unique_ptr<Kernel> create(const KernelRequest& request) = 0;
  /// A kernel that queues on the executor's device, and gets device memory; null where the source has none.
  [[nodiscard]] virtual std::unique_ptr<Kernel> create_on_device(const KernelRequest& request) {
    (void)request;
    return nullptr;
  }
};

/// A source of kernels for some operators.
struct KernelCandidate {
  std::string name;
  KernelOffer (*create)(const KernelRequest& request, const OperatorRegistry& registry);
};

/// Which kernels may be used.
enum class KernelSet : std::uint8_t {
  cpu,        ///< The fast kernels of this machine, the reference where none applies.
  reference,  ///< Only the evaluation of the operators' definitions, in double.
};

/// All kernels of one target: those of the host, and those of a backend where there is one. Thread-safe; the registry
/// must outlive it.
class KernelLibrary {
 public:
  explicit KernelLibrary(const OperatorRegistry& registry, KernelSet set = KernelSet::cpu);
  /// A device's kernels; what the backend declines runs on the host, by the fast kernels of this machine.
  KernelLibrary(const OperatorRegistry& registry, std::shared_ptr<Backend> backend);

  /// A kernel of the host: the first candidate that accepts; of values in 16 bits, if none does, that of the same
  /// request in f32 (runtime/widened_kernel.h). An operator that a specification defines always has one (the
  /// reference); an error otherwise, with every candidate's reason.
  [[nodiscard]] Expected<std::unique_ptr<Kernel>> create(const KernelRequest& request) const;
  /// Whether what is fused is better computed by one kernel than part by part: Backend::fuses where there is one.
  [[nodiscard]] bool fuses(const KernelRequest& request) const;
  /// Whether it can be one of several kernels in a launch: Backend::stands_beside where there is one, else never.
  [[nodiscard]] bool stands_beside(const KernelRequest& request) const;
  /// Whether there is a kernel for a request with outputs within wider tensors: Backend::writes_within where there is
  /// one, else never.
  [[nodiscard]] bool writes_within(const KernelRequest& request) const;
  /// Whether this can be a part of what is fused: a quick answer, which may be wrongly yes.
  [[nodiscard]] bool may_fuse(const KernelRequest& part) const;
  /// Whether it may cost nothing as a part of what is fused. Not a convolution or a product with a weight, which is
  /// taken to be as much work in whatever launch; but products that a device may compute as attention.
  [[nodiscard]] bool may_cost_nothing(const KernelRequest& part) const;
  /// A kernel of the backend, or the reason why it has none; without a backend always the latter.
  [[nodiscard]] KernelOffer create_on_device(const KernelRequest& request) const;
  /// One kernel of the processor for a fused request.
  [[nodiscard]] KernelOffer fused_offer(const KernelRequest& request) const;
  /// Every candidate's answer, in order, the backend's first (tests, explanation).
  [[nodiscard]] std::vector<std::pair<std::string, KernelOffer>> offers(const KernelRequest& request) const;
  /// What a measured cost depends on besides the request: processor, instruction set and library versions, e.g.
  /// "AMD EPYC; 32 MB cache; avx512; oneDNN 2.6.3; taso 0.1.0, kernels 2"; Backend::identity where there is one.
  [[nodiscard]] std::string device() const;
  /// The blocks of channels in which convolutions are fast on this machine, if there are kernels for any. A backend
  /// knows orders of axes only.
  [[nodiscard]] std::optional<Layout> blocks() const;
  /// Null: everything runs on the host.
  [[nodiscard]] const std::shared_ptr<Backend>& backend() const { return backend_; }
  [[nodiscard]] const OperatorRegistry& registry() const { return *registry_; }
  /// What a backend may ask; as long as the registry lives.
  [[nodiscard]] Operators operators() const;
  /// Which kernels of the host are used.
  [[nodiscard]] KernelSet set() const { return set_; }

 private:
  [[nodiscard]] std::vector<KernelCandidate> candidates(const KernelRequest& request) const;
  const OperatorRegistry* registry_;
  KernelSet set_;
  std::shared_ptr<Backend> backend_;
};

}  // namespace taso
