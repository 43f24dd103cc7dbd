// Convolutions by windows of 3 x 3 in steps of one, as Winograd's minimal filtering F(2x2, 3x3): 16 multiplications
// where the definition has 36 (Lavin and Gray, CVPR 2016). It computes the same over the reals, in another order of
// sums: errors are those of the definition's order, at most a few times as large.
//
// Representation. Images have their channels last. Tiles of 2 x 2 results are numbered through the rows of all images;
// a thread takes blocks of them. The 4 x 4 pixels that a tile is computed from become 16 rows, one in each of 16
// matrices [tiles, channels]; each is multiplied by the matrix [channels, results] of its element of the transformed
// windows, which are packed once; from the 16 products come the results. A block's matrices fill about half of the
// second-level cache.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/aligned_buffer.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/packed_product.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/tile_transforms.h"
#include "runtime/measure.h"

namespace taso::cpu {
namespace {

/// Extents of a convolution.
struct TiledConvolution {
  std::int64_t images = 0, rows = 0, columns = 0, channels = 0;  ///< Of what is read.
  std::int64_t rows_out = 0, columns_out = 0, results = 0;
  std::int64_t above = 0, before = 0;  ///< Rows and columns of zeros.

  [[nodiscard]] std::int64_t tiles_down() const { return (rows_out + tile_results - 1) / tile_results; }
  [[nodiscard]] std::int64_t tiles_across() const { return (columns_out + tile_results - 1) / tile_results; }
  [[nodiscard]] std::int64_t tiles() const { return images * tiles_down() * tiles_across(); }
};

/// Whether it takes less time than the convolution by its definition. Both are bound by what is multiplied; what else a
/// tile costs for each channel and result, and a convolution, is counted in multiplications, and that each thread reads
/// all windows in tiles (AMD EPYC, AVX-512, one thread and two: `bench/kernels.md`).
bool pays(const TiledConvolution& extents, int threads) {
  constexpr std::int64_t of_channel = 240, of_result = 110, of_windows = 6, of_calls = 400000;
  const std::int64_t tiles = extents.tiles(), pairs = extents.channels * extents.results;
  const std::int64_t direct = 9 * pairs * extents.images * extents.rows_out * extents.columns_out;
  const std::int64_t by_tiles = tile_elements * pairs * (tiles + of_windows * threads) + of_calls +
                                tiles * (of_channel * extents.channels + of_result * extents.results);
  return by_tiles < direct;
}

/// Tiles of a block, in blocks of about equal size, as many for each thread.
std::int64_t tiles_of_block(const TiledConvolution& extents, int threads) {
  constexpr std::int64_t usual_cache = std::int64_t{1} << 19, fewest = 48, most = 256;
  const auto known = static_cast<std::int64_t>(second_level_cache_bytes());
  const std::int64_t of_tile =
      tile_elements * (extents.channels + extents.results) * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t fit = std::clamp((known > 0 ? known : usual_cache) / 2 / of_tile, fewest, most);
  const std::int64_t per_thread = (extents.tiles() + fit * threads - 1) / (fit * threads);
  return (extents.tiles() + per_thread * threads - 1) / (per_thread * threads);
}

/// As many elements, or more, as lines of the cache hold.
std::int64_t elements_of_lines(std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(float);
  return (count + line - 1) / line * line;
}

class Winograd final : public Kernel {
 public:
  /// `product` has two numbers of rows: of a block, and of the last one.
  Winograd(const TiledConvolution& extents, std::int64_t block, std::unique_ptr<PackedProduct> product,
           const KernelRequest& request, const UnaryEntry* activation, bool relu)
      : Kernel("own winograd, " + product->implementation()),
        extents_(extents),
        block_(block),
        blocks_((extents.tiles() + block - 1) / block),
        product_(std::move(product)),
        biased_(request.inputs.size() > 2),
        adds_(request.inputs.size() > 3),
        activation_(activation),
        relu_(relu),
        threads_(std::max(request.threads, 1)) {
    // Matrices begin a line further each: tiles as long as a way of the cache would push each other out.
    const auto apart = [&](std::int64_t columns) { return elements_of_lines(block_ * columns) + elements_of_lines(1); };
    const auto reserve = [&](std::int64_t floats) {
      const std::size_t offset = of_thread_;
      of_thread_ += static_cast<std::size_t>(elements_of_lines(floats)) * sizeof(float);
      return offset;
    };
    of_spread_ = apart(extents_.channels);
    of_products_ = apart(extents_.results);
    places_.spread = reserve(tile_elements * of_spread_);
    places_.products = reserve(tile_elements * of_products_);
    places_.zeros = reserve(std::max(extents_.channels, extents_.results));
    places_.nowhere = reserve(extents_.results);
    places_.scratch = reserve(static_cast<std::int64_t>(product_->scratch_bytes() / sizeof(float)) + 1);
    workspace_bytes_ = of_thread_ * static_cast<std::size_t>(threads_);
    of_element_ = elements_of_lines(packed_floats());
    for (int i = 0; i < threads_; ++i) runners_.push_back(product_->runner());
  }

  std::string packed_format(std::size_t index) const override {
    if (index != 1) return "";
    return fmt::format("winograd {} {}x{} rows {} {}", product_->implementation(), extents_.channels, extents_.results,
                       block_, rest());
  }
  std::size_t packed_bytes(std::size_t index) const override {
    return index != 1 ? 0 : static_cast<std::size_t>(tile_elements * of_element_) * sizeof(float);
  }
  void pack(std::size_t index, const std::byte* plain, std::byte* packed) const override {
    TASO_CHECK(index == 1, "packing an input that is not packed");
    const auto* windows = reinterpret_cast<const float*>(plain);
    auto* to = reinterpret_cast<float*>(packed);
    std::fill_n(to, tile_elements * of_element_, 0.0f);
    const std::int64_t pairs = extents_.channels * extents_.results;
    const bool is_plain = product_->takes_plain();
    AlignedBuffer scratch(product_->scratch_bytes() + 64);
    AlignedBuffer plain_matrix(is_plain ? 0 : static_cast<std::size_t>(pairs) * sizeof(float));
    const std::unique_ptr<ProductRunner> runner = product_->runner();
    runner->use(scratch.data());
    for (std::int64_t element = 0; element < tile_elements; ++element) {
      float* const matrix = is_plain ? to + element * of_element_ : reinterpret_cast<float*>(plain_matrix.data());
      for (std::int64_t result = 0; result < extents_.results; ++result)
        for (std::int64_t channel = 0; channel < extents_.channels; ++channel)
          matrix[channel * extents_.results + result] =
              transformed(windows + (result * extents_.channels + channel) * 9, element);
      if (is_plain) continue;
      const Status done = runner->pack(matrix, to + element * of_element_);
      TASO_CHECK(done.ok(), "packing windows");
    }
  }

  std::string code() const override {
    return fmt::format("for {} tiles of {} x {} results, blocks of {}:\n  {} products of {} x {} windows\n",
                       extents_.tiles(), tile_results, tile_results, block_, tile_elements, extents_.channels,
                       extents_.results);
  }

  Status execute(const KernelArguments& arguments) const override {
    std::vector<Status> done(static_cast<std::size_t>(threads_));
    parallel_chunks(threads_, threads_, 1, [&](std::int64_t begin, std::int64_t end) {
      const ThreadScope scope(1);
      for (std::int64_t thread = begin; thread < end; ++thread) {
        const std::int64_t first = blocks_ * thread / threads_, last = blocks_ * (thread + 1) / threads_;
        if (first == last) continue;
        const auto number = static_cast<std::size_t>(thread);
        Worker worker(*this, *runners_[number], arguments, arguments.workspace + number * of_thread_);
        for (std::int64_t at = first; at < last && done[number].ok(); ++at) done[number] = worker.compute(at);
      }
    });
    for (const Status& status : done) TASO_RETURN_IF_ERROR(status);
    return {};
  }

 private:
  /// In a thread's workspace.
  struct Places {
    std::size_t spread = 0, products = 0, zeros = 0, nowhere = 0, scratch = 0;
  };

  /// An element of G g G' for a window g.
  static float transformed(const float* window, std::int64_t element) {
    static constexpr double g[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
    const double *down = g[element / tile_extent], *across = g[element % tile_extent];
    double sum = 0;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) sum += down[i] * across[j] * static_cast<double>(window[i * 3 + j]);
    return static_cast<float>(sum);
  }

  [[nodiscard]] std::int64_t rest() const { return extents_.tiles() - (blocks_ - 1) * block_; }
  [[nodiscard]] std::int64_t packed_floats() const {
    return product_->takes_plain() ? extents_.channels * extents_.results
                                   : static_cast<std::int64_t>(product_->packed_bytes() / sizeof(float));
  }

  class Worker {
   public:
    Worker(const Winograd& kernel, ProductRunner& runner, const KernelArguments& arguments, std::byte* workspace)
        : kernel_(kernel), extents_(kernel.extents_), runner_(runner) {
      const auto floats = [&](std::size_t place) { return reinterpret_cast<float*>(workspace + place); };
      const auto input = [&](std::size_t index) { return reinterpret_cast<const float*>(arguments.inputs[index]); };
      spread_ = floats(kernel.places_.spread);
      products_ = floats(kernel.places_.products);
      zeros_ = floats(kernel.places_.zeros);
      nowhere_ = floats(kernel.places_.nowhere);
      std::fill_n(zeros_, std::max(extents_.channels, extents_.results), 0.0f);
      runner.use(workspace + kernel.places_.scratch);
      x_ = input(0);
      windows_ = input(1);
      bias_ = kernel.biased_ ? input(2) : nullptr;
      added_ = kernel.adds_ ? input(3) : nullptr;
      y_ = reinterpret_cast<float*>(arguments.outputs[0]);
    }

    Status compute(std::int64_t number) {
      const bool is_last = number == kernel_.blocks_ - 1;
      const std::int64_t count = is_last ? kernel_.rest() : kernel_.block_, first = number * kernel_.block_;
      for (std::int64_t i = 0; i < count; ++i) spread(first + i, spread_ + i * extents_.channels);
      for (std::int64_t element = 0; element < tile_elements; ++element)
        TASO_RETURN_IF_ERROR(runner_.multiply(is_last ? 1 : 0, spread_ + element * kernel_.of_spread_,
                                              windows_ + element * kernel_.of_element_,
                                              products_ + element * kernel_.of_products_));
      for (std::int64_t i = 0; i < count; ++i) gather(first + i, products_ + i * extents_.results);
      return {};
    }

   private:
    struct Tile {
      std::int64_t image, row, column;  ///< Of the first result.
    };
    [[nodiscard]] Tile tile(std::int64_t number) const {
      const std::int64_t across = extents_.tiles_across(), down = extents_.tiles_down();
      return {number / (across * down), number / across % down * tile_results, number % across * tile_results};
    }

    void spread(std::int64_t number, float* to) const {
      const Tile at = tile(number);
      std::array<const float*, tile_elements> pixels;
      for (std::int64_t i = 0; i < tile_elements; ++i) {
        const std::int64_t row = at.row + i / tile_extent - extents_.above;
        const std::int64_t column = at.column + i % tile_extent - extents_.before;
        const bool inside = row >= 0 && row < extents_.rows && column >= 0 && column < extents_.columns;
        pixels[static_cast<std::size_t>(i)] =
            inside ? x_ + ((at.image * extents_.rows + row) * extents_.columns + column) * extents_.channels : zeros_;
      }
      transforms_.input(pixels.data(), to, kernel_.of_spread_, extents_.channels);
    }

    void gather(std::int64_t number, const float* from) const {
      constexpr std::size_t results = tile_results * tile_results;
      const Tile at = tile(number);
      std::array<const float*, results> added;
      std::array<float*, results> pixels;
      for (std::size_t i = 0; i < results; ++i) {
        const std::int64_t row = at.row + static_cast<std::int64_t>(i) / tile_results;
        const std::int64_t column = at.column + static_cast<std::int64_t>(i) % tile_results;
        const bool inside = row < extents_.rows_out && column < extents_.columns_out;
        const std::int64_t place =
            ((at.image * extents_.rows_out + row) * extents_.columns_out + column) * extents_.results;
        pixels[i] = inside ? y_ + place : nowhere_;
        added[i] = inside && added_ != nullptr ? added_ + place : zeros_;
      }
      transforms_.output(from, kernel_.of_products_, bias_, added_ != nullptr ? added.data() : nullptr, pixels.data(),
                         kernel_.relu_, extents_.results);
      if (kernel_.activation_ != nullptr)
        for (float* const pixel : pixels) kernel_.activation_->loop(pixel, pixel, extents_.results, 0.0f, 0.0f);
    }

    const Winograd& kernel_;
    const TiledConvolution& extents_;
    const TileTransforms& transforms_ = tile_transforms();
    ProductRunner& runner_;
    float *spread_ = nullptr, *products_ = nullptr, *zeros_ = nullptr, *nowhere_ = nullptr;
    const float *x_ = nullptr, *windows_ = nullptr, *bias_ = nullptr, *added_ = nullptr;
    float* y_ = nullptr;
  };

  TiledConvolution extents_;
  std::int64_t block_, blocks_;  ///< Tiles of a block; blocks.
  std::unique_ptr<PackedProduct> product_;
  bool biased_, adds_;
  const UnaryEntry* activation_;  ///< But for relu; null for none.
  bool relu_;
  int threads_;
  std::vector<std::unique_ptr<ProductRunner>> runners_;  ///< Per thread: one execution at a time.
  /// Elements from one matrix to the next, of what is read, of the products and of the windows.
  std::int64_t of_spread_ = 0, of_products_ = 0, of_element_ = 0;
  std::size_t of_thread_ = 0;
  Places places_;
};

}  // namespace

KernelOffer winograd_convolution(const KernelRequest& request, const OperatorRegistry& registry) {
  return winograd_by_blocks(request, registry, 0);
}

KernelOffer winograd_by_blocks(const KernelRequest& request, const OperatorRegistry&, std::int64_t tiles) {
  if (!is_all_floats(request)) return decline("only f32");
  const Operand &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
  const std::vector<std::int64_t> ones = {1, 1};
  if (request.attributes.integers("strides") != ones || request.attributes.integers("dilations") != ones ||
      w.type.shape[2] != 3 || w.type.shape[3] != 3)
    return decline("only windows of 3 x 3 in steps of one");
  if (x.type.shape[1] != w.type.shape[1]) return decline("no groups");
  if (!w.weight || w.layout != Layout::row_major) return decline("windows that are not constant");
  if (x.layout != Layout::channels_last || y.layout != Layout::channels_last ||
      (request.inputs.size() > 3 && request.inputs[3].layout != Layout::channels_last))
    return decline("only images with their channels last");
  const auto& pads = request.attributes.integers("pads");
  const TiledConvolution extents = {x.type.shape[0], x.type.shape[2], x.type.shape[3], x.type.shape[1], y.type.shape[2],
                                    y.type.shape[3], y.type.shape[1], pads[0],         pads[1]};
  if (y.type.elements() == 0 || x.type.elements() == 0) return decline("an operand is empty");
  const UnaryEntry* activation = nullptr;
  bool relu = false;
  if (request.attributes.find("act") != nullptr) {
    const std::string& name = request.attributes.symbol("act");
    relu = name == "relu";
    if (!relu && name != "identity") {
      activation = find_unary(name);
      if (activation == nullptr) return decline("no such activation");
    }
  }
  const int threads = std::max(request.threads, 1);
  if (tiles == 0 && !pays(extents, threads)) return decline("tiles cost more than they spare");
  const std::int64_t block = tiles == 0 ? tiles_of_block(extents, threads) : std::min(tiles, extents.tiles());
  const std::int64_t rest = extents.tiles() - (extents.tiles() - 1) / block * block;
  OfferedProduct product =
      onednn_packed_product({{block, rest}, extents.channels, extents.results, extents.results, 1, false});
  if (!product.product) return decline(std::move(product.reason));
  return {std::make_unique<Winograd>(extents, block, std::move(product.product), request, activation, relu), ""};
}

}  // namespace taso::cpu
