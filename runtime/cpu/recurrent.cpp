// Recurrent layers: the input's products of all steps at once, then per step one product of the state and a loop over
// its elements. The products are oneDNN's, as kernels of their own (onednn.cpp), or of a few samples PanelProduct.
//
// Representation. The result's rows at a step and direction, [batch, hidden], are the state that the next step reads;
// the last cell state lies in its output all the time.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/parallel.h"

namespace taso::cpu {
namespace {

enum class Cell : std::uint8_t { plain, gated, gated_after_product, long_short };

/// Extents and kind of a layer.
struct RecurrentShape {
  Cell cell = Cell::plain;
  std::int64_t steps = 0, batch = 0, features = 0, directions = 0, gates = 0, hidden = 0, forward = 0;
  [[nodiscard]] std::int64_t width() const { return gates * hidden; }
};

std::size_t rounded_to_line(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
const float* as_floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* as_floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

/// A few rows by the transpose of a constant matrix, which is packed in panels of columns: its elements are read once,
/// in the order in which they lie.
class PanelProduct final : public Kernel {
 public:
  PanelProduct(std::int64_t rows, std::int64_t length, std::int64_t columns, int threads)
      : Kernel(std::string("own panels ") + loops().instruction_set),
        rows_(rows),
        length_(length),
        columns_(columns),
        threads_(threads) {}

  [[nodiscard]] std::string packed_format(std::size_t index) const override {
    return index == 1 ? "panels " + std::to_string(length_) + "x" + std::to_string(columns_) : "";
  }
  [[nodiscard]] std::size_t packed_bytes(std::size_t) const override {
    return static_cast<std::size_t>(panels() * length_ * panel_width) * sizeof(float);
  }
  void pack(std::size_t, const std::byte* plain, std::byte* packed) const override {
    const float* const from = as_floats(plain);
    float* to = as_floats(packed);
    for (std::int64_t first = 0; first < columns_; first += panel_width)
      for (std::int64_t k = 0; k < length_; ++k)
        for (std::int64_t j = first; j < first + panel_width; ++j) *to++ = j < columns_ ? from[j * length_ + k] : 0.0F;
  }

  Status execute(const KernelArguments& arguments) const override {
    const float *a = as_floats(arguments.inputs[0]), *b = as_floats(arguments.inputs[1]);
    float* const y = as_floats(arguments.outputs[0]);
    constexpr std::int64_t grain = 65536;  // elements of the matrix, the fewest that a thread is woken for
    parallel_chunks(threads_, panels(), std::max<std::int64_t>(1, grain / (length_ * panel_width)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const std::int64_t first = i * panel_width;
                        loops().panel_product(a, rows_, length_, b + first * length_, y + first, columns_,
                                              std::min(panel_width, columns_ - first));
                      }
                    });
    return {};
  }

 private:
  [[nodiscard]] std::int64_t panels() const { return (columns_ + panel_width - 1) / panel_width; }

  std::int64_t rows_, length_, columns_;
  int threads_;
};

class RecurrentLayer final : public Kernel {
 public:
  using Product = std::unique_ptr<Kernel>;
  /// `input`: rows of all steps by the matrices of all directions, with a bias. `state`: rows of a state by consecutive
  /// rows of the matrix of a direction.
  RecurrentLayer(const RecurrentShape& shape, int threads, const UnaryEntry* function, Product input,
                 std::vector<std::pair<std::int64_t, Product>> state)
      : Kernel("own recurrent layer, " + input->implementation() + ", " + state[0].second->implementation()),
        shape_(shape),
        threads_(threads),
        function_(function),
        input_(std::move(input)),
        state_(std::move(state)) {
    const auto reserve = [&](std::int64_t elements) {
      const std::size_t offset = workspace_bytes_;
      workspace_bytes_ += rounded_to_line(static_cast<std::size_t>(elements) * sizeof(float));
      return offset;
    };
    projected_ = reserve(shape_.steps * shape_.batch * shape_.directions * shape_.width());
    biases_ = reserve(shape_.directions * shape_.width());
    gates_ = reserve(shape_.batch * shape_.width());
    spare_ = reserve(shape_.batch * shape_.hidden);
    products_ = workspace_bytes_;
    std::size_t most = input_->workspace_bytes();
    for (const auto& [rows, product] : state_) most = std::max(most, product->workspace_bytes());
    workspace_bytes_ += rounded_to_line(most);
  }

  [[nodiscard]] std::string packed_format(std::size_t index) const override {
    if (index == 1) return input_->packed_format(1);
    if (index != 2 || !packs_state()) return "";
    std::string format = "directions " + std::to_string(shape_.directions);
    for (const auto& [rows, product] : state_) format += "; " + product->packed_format(1);
    return format;
  }
  [[nodiscard]] std::size_t packed_bytes(std::size_t index) const override {
    if (index == 1) return input_->packed_bytes(1);
    return index == 2 && packs_state() ? static_cast<std::size_t>(shape_.directions) * packed_direction() : 0;
  }
  void pack(std::size_t index, const std::byte* plain, std::byte* packed) const override {
    if (index == 1) return input_->pack(1, plain, packed);
    for (std::int64_t e = 0; e < shape_.directions; ++e) {
      for (const auto& [rows, product] : state_) {
        product->pack(1, plain, packed);
        plain += rows * shape_.hidden * static_cast<std::int64_t>(sizeof(float));
        packed += rounded_to_line(product->packed_bytes(1));
      }
    }
  }

  Status execute(const KernelArguments& arguments) const override {
    const auto& [cell, steps, batch, features, directions, gates, hidden, forward] = shape_;
    const std::int64_t width = shape_.width(), block = batch * hidden;
    float* const projected = as_floats(arguments.workspace + projected_);
    float* const biases = as_floats(arguments.workspace + biases_);
    const float* const given = as_floats(arguments.inputs[3]);
    // A GRU that resets what the state gives adds that bias before.
    const std::int64_t together = cell == Cell::gated_after_product ? width - hidden : width;
    for (std::int64_t e = 0; e < directions; ++e) {
      std::copy_n(given + 2 * e * width, width, biases + e * width);
      loops().accumulate(given + (2 * e + 1) * width, biases + e * width, together);
    }
    TASO_RETURN_IF_ERROR(multiply(*input_, arguments, arguments.inputs[0], arguments.inputs[1], biases, projected));
    float* const y = as_floats(arguments.outputs[0]);
    for (std::int64_t e = 0; e < directions; ++e) {
      const float* state = as_floats(arguments.inputs[4]) + e * block;
      float* const cells = cell == Cell::long_short ? as_floats(arguments.outputs[2]) + e * block : nullptr;
      if (cells != nullptr) std::copy_n(as_floats(arguments.inputs[5]) + e * block, block, cells);
      const float* const kept_bias = given + (2 * e + 2) * width - hidden;  // of what is new
      for (std::int64_t i = 0; i < steps; ++i) {
        const std::int64_t step = e < forward ? i : steps - 1 - i;
        float* const next = y + (step * directions + e) * block;
        const float* const rows = projected + step * batch * directions * width + e * width;
        TASO_RETURN_IF_ERROR(advance(arguments, e, rows, kept_bias, state, cells, next));
        state = next;
      }
      std::copy_n(state, block, as_floats(arguments.outputs[1]) + e * block);
    }
    return {};
  }

 private:
  static constexpr std::int64_t grain = 8192;  ///< Elements, the fewest that a thread is woken for.

  [[nodiscard]] bool packs_state() const { return !state_[0].second->packed_format(1).empty(); }
  [[nodiscard]] std::size_t packed_direction() const {
    std::size_t bytes = 0;
    for (const auto& [rows, product] : state_) bytes += rounded_to_line(product->packed_bytes(1));
    return bytes;
  }

  Status multiply(const Kernel& product, const KernelArguments& whole, const std::byte* a, const std::byte* b,
                  const float* bias, float* result) const {
    const std::array<const std::byte*, 3> inputs = {a, b, reinterpret_cast<const std::byte*>(bias)};
    std::byte* const output = reinterpret_cast<std::byte*>(result);
    return product.execute({std::span(inputs).first(bias != nullptr ? 3 : 2), std::span(&output, 1),
                            whole.workspace + products_, whole.stream});
  }

  /// The product of a state with a part of the matrix of direction `e`.
  Status multiply_state(const KernelArguments& whole, std::int64_t e, std::size_t part, const float* state,
                        float* result) const {
    const std::byte* matrix = whole.inputs[2];
    if (packs_state())
      matrix += static_cast<std::size_t>(e) * packed_direction();
    else
      matrix += static_cast<std::size_t>(e * shape_.width() * shape_.hidden) * sizeof(float);
    for (std::size_t i = 0; i < part; ++i)
      matrix += packs_state() ? rounded_to_line(state_[i].second->packed_bytes(1))
                              : static_cast<std::size_t>(state_[i].first * shape_.hidden) * sizeof(float);
    return multiply(*state_[part].second, whole, reinterpret_cast<const std::byte*>(state), matrix, nullptr, result);
  }

  template <class F>
  void for_rows(const F& f) const {
    parallel_chunks(threads_, shape_.batch,
                    std::max<std::int64_t>(1, grain / std::max<std::int64_t>(shape_.width(), 1)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t row = begin; row < end; ++row) f(row);
                    });
  }

  /// One step of direction `e`: `rows` are what the input gives, a row of a batch `directions * width` apart.
  Status advance(const KernelArguments& whole, std::int64_t e, const float* rows, const float* kept_bias,
                 const float* state, float* cells, float* next) const {
    const std::int64_t n = shape_.hidden, width = shape_.width(), apart = shape_.directions * width;
    float* const gates = as_floats(whole.workspace + gates_);
    float* const spare = as_floats(whole.workspace + spare_);
    const LoopTable& loop = loops();
    TASO_RETURN_IF_ERROR(multiply_state(whole, e, 0, state, gates));
    switch (shape_.cell) {
      case Cell::plain:
        for_rows([&](std::int64_t row) {
          float* const g = gates + row * n;
          loop.accumulate(rows + row * apart, g, n);
          function_->loop(g, next + row * n, n, 0.0F, 0.0F);
        });
        break;
      case Cell::long_short:
        for_rows([&](std::int64_t row) {
          float* const g = gates + row * width;
          float* const c = cells + row * n;
          float* const h = next + row * n;
          loop.accumulate(rows + row * apart, g, width);
          sigmoid_->loop(g, g, 3 * n, 0.0F, 0.0F);
          tanh_->loop(g + 3 * n, g + 3 * n, n, 0.0F, 0.0F);
          multiply_->both(g + 2 * n, c, c, n);
          loop.accumulate_products(g, g + 3 * n, c, n);
          tanh_->loop(c, h, n, 0.0F, 0.0F);
          multiply_->both(g + n, h, h, n);
        });
        break;
      case Cell::gated_after_product:
        for_rows([&](std::int64_t row) {
          float* const g = gates + row * width;
          loop.accumulate(rows + row * apart, g, 2 * n);
          sigmoid_->loop(g, g, 2 * n, 0.0F, 0.0F);
          loop.accumulate(kept_bias, g + 2 * n, n);
          multiply_->both(g + n, g + 2 * n, g + 2 * n, n);
          finish_gated(rows + row * apart + 2 * n, g, g + 2 * n, state + row * n, next + row * n);
        });
        break;
      case Cell::gated: {
        // The gates of a row lie 2 * hidden apart; what is new comes behind those of all rows.
        float* const fresh = gates + shape_.batch * 2 * n;
        for_rows([&](std::int64_t row) {
          float* const g = gates + row * 2 * n;
          loop.accumulate(rows + row * apart, g, 2 * n);
          sigmoid_->loop(g, g, 2 * n, 0.0F, 0.0F);
          multiply_->both(g + n, state + row * n, spare + row * n, n);
        });
        TASO_RETURN_IF_ERROR(multiply_state(whole, e, 1, spare, fresh));
        for_rows([&](std::int64_t row) {
          finish_gated(rows + row * apart + 2 * n, gates + row * 2 * n, fresh + row * n, state + row * n,
                       next + row * n);
        });
        break;
      }
    }
    return {};
  }

  /// next = f + update * (state - f) with f = tanh(given + fresh), which `fresh` becomes.
  void finish_gated(const float* given, const float* update, float* fresh, const float* state, float* next) const {
    const std::int64_t n = shape_.hidden;
    loops().accumulate(given, fresh, n);
    tanh_->loop(fresh, fresh, n, 0.0F, 0.0F);
    subtract_->both(state, fresh, next, n);
    multiply_->both(update, next, next, n);
    loops().accumulate(fresh, next, n);
  }

  RecurrentShape shape_;
  int threads_;
  const UnaryEntry* function_;
  const UnaryEntry* sigmoid_ = find_unary("sigmoid");
  const UnaryEntry* tanh_ = find_unary("tanh");
  const BinaryEntry* multiply_ = find_binary("mul");
  const BinaryEntry* subtract_ = find_binary("sub");
  Product input_;
  std::vector<std::pair<std::int64_t, Product>> state_;  ///< With the rows of their matrices.
  std::size_t projected_ = 0, biases_ = 0, gates_ = 0, spare_ = 0, products_ = 0;
};

/// The most rows of a state for which panels are faster than oneDNN.
constexpr std::int64_t most_rows_of_panels = 4;

/// a[rows, k] times the transpose of columns[columns, k].
KernelOffer product_by_rows(const KernelRequest& layer, std::int64_t rows, std::int64_t k, std::int64_t columns,
                            bool weight, bool biased, const OperatorRegistry& registry) {
  const auto tensor = [](Shape shape) { return TensorType{ElementType::f32, std::move(shape), true}; };
  KernelRequest request{biased ? "matmul_bias_act" : "matmul",
                        {},
                        {{tensor({rows, k})}, {tensor({k, columns}), Layout::column_major, weight}},
                        {{tensor({rows, columns})}},
                        layer.threads,
                        layer.cached_tenths};
  if (biased) {
    request.attributes.set("act", SymbolValue{"identity"});
    request.inputs.push_back({tensor({columns})});
  }
  KernelOffer offer = onednn_matmul(request, registry);
  return offer.kernel != nullptr ? std::move(offer) : onednn_slow_matmul(request, registry);
}

}  // namespace

KernelOffer recurrent_layer(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!is_all_floats(request)) return decline("only f32");
  for (const Operand& operand : request.inputs) {
    if (operand.layout != Layout::row_major) return decline("only row-major");
    if (operand.type.elements() == 0) return decline("an operand is empty");
  }
  for (const Operand& operand : request.outputs)
    if (operand.layout != Layout::row_major) return decline("only row-major");
  const Shape &x = request.inputs[0].type.shape, &r = request.inputs[2].type.shape;
  RecurrentShape shape;
  shape.steps = x[0], shape.batch = x[1], shape.features = x[2];
  shape.directions = r[0], shape.hidden = r[2], shape.gates = r[1] / r[2];
  shape.forward = request.attributes.integer("forward");
  const UnaryEntry* function = nullptr;
  if (request.op == "lstm") {
    shape.cell = Cell::long_short;
  } else if (request.op == "gru") {
    shape.cell = request.attributes.integer("linear_before_reset") != 0 ? Cell::gated_after_product : Cell::gated;
  } else {
    function = find_unary(request.attributes.symbol("act"));
    if (function == nullptr || function->name == "clip") return decline("no such activation");
  }
  KernelOffer input = product_by_rows(request, shape.steps * shape.batch, shape.features,
                                      shape.directions * shape.width(), request.inputs[1].weight, true, registry);
  if (input.kernel == nullptr) return input;
  std::vector<std::int64_t> parts = {shape.width()};
  if (shape.cell == Cell::gated) parts = {2 * shape.hidden, shape.hidden};
  std::vector<std::pair<std::int64_t, std::unique_ptr<Kernel>>> products;
  for (const std::int64_t rows : parts) {
    if (request.inputs[2].weight && shape.batch <= most_rows_of_panels) {
      products.emplace_back(rows, std::make_unique<PanelProduct>(shape.batch, shape.hidden, rows, request.threads));
      continue;
    }
    KernelOffer product =
        product_by_rows(request, shape.batch, shape.hidden, rows, request.inputs[2].weight, false, registry);
    if (product.kernel == nullptr) return product;
    products.emplace_back(rows, std::move(product.kernel));
  }
  const bool packs = !products[0].second->packed_format(1).empty();
  for (const auto& [rows, product] : products)
    if (product->packed_format(1).empty() == packs) return decline("its products pack some matrices only");
  return {
      std::make_unique<RecurrentLayer>(shape, request.threads, function, std::move(input.kernel), std::move(products)),
      ""};
}

}  // namespace taso::cpu
