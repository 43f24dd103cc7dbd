// Reductions, softmax, normalisations and poolings as own loops.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/row_loop.h"
#include "runtime/strides.h"

namespace taso::cpu {
namespace {

const float* floats(const std::byte* bytes) { return reinterpret_cast<const float*>(bytes); }
float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

enum class Reduction : std::uint8_t { sum, mean, maximum };

/// Sums, means and maxima over any axes. Axes of the input are taken in memory order and merged while neighbours are
/// both reduced or both kept. If the innermost merged axis is reduced, each output element is a sum of runs; if it is
/// kept, rows are accumulated into output rows.
class Reducing final : public Kernel {
 public:
  Reducing(const KernelRequest& request, Reduction kind, const std::vector<bool>& reduced)
      : Kernel(std::string("own reduce ") + loops().instruction_set), kind_(kind), threads_(request.threads) {
    const Operand& input = request.inputs[0];
    const std::vector<std::int64_t> from = strides_of(input), to = strides_of(request.outputs[0]);
    std::vector<std::size_t> axes(from.size());
    std::iota(axes.begin(), axes.end(), std::size_t{0});
    std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) { return from[a] > from[b]; });
    bool last_reduced = false;
    for (const std::size_t axis : axes) {
      const std::int64_t extent = input.type.shape[axis];
      if (reduced[axis]) count_ *= extent;
      if (extent == 1) continue;
      std::vector<Axis>& list = reduced[axis] ? reduced_ : kept_;
      const Axis next{extent, from[axis], reduced[axis] ? 0 : to[axis]};
      const bool merges = !list.empty() && last_reduced == reduced[axis] && list.back().from == next.from * extent &&
                          (reduced[axis] || list.back().to == next.to * extent);
      if (merges)
        list.back() = {list.back().extent * extent, next.from, next.to};
      else
        list.push_back(next);
      last_reduced = reduced[axis];
    }
    if (!kept_.empty() && kept_.back().from == 1 && kept_.back().to == 1 && !last_reduced) {
      row_ = kept_.back().extent;
      kept_.pop_back();
    } else if (!reduced_.empty() && reduced_.back().from == 1) {
      run_ = reduced_.back().extent;
      reduced_.pop_back();
    }
  }

  Status execute(const KernelArguments& arguments) const override {
    const float* x = floats(arguments.inputs[0]);
    float* y = floats(arguments.outputs[0]);
    std::int64_t outputs = 1;
    for (const Axis& axis : kept_) outputs *= axis.extent;
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(count_ * row_, 1));
    if (outputs == 1 && row_ > 64 && threads_ > 1) {
      parallel_chunks(threads_, row_, std::max<std::int64_t>(64, 16384 / std::max<std::int64_t>(count_, 1)),
                      [&](std::int64_t begin, std::int64_t end) { one(x + begin, y + begin, end - begin); });
      return {};
    }
    parallel_chunks(threads_, outputs, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t from = 0, to = 0, rest = i;
        for (std::size_t axis = kept_.size(); axis-- > 0;) {
          const std::int64_t index = rest % kept_[axis].extent;
          rest /= kept_[axis].extent;
          from += index * kept_[axis].from;
          to += index * kept_[axis].to;
        }
        one(x + from, y + to, row_);
      }
    });
    return {};
  }

 private:
  struct Axis {
    std::int64_t extent, from, to;
  };

  /// The reduction into `width` neighbouring outputs (1 if runs are reduced).
  void one(const float* x, float* y, std::int64_t width) const {
    const LoopTable& loop = loops();
    const bool maximum = kind_ == Reduction::maximum;
    std::fill(y, y + width, maximum ? -std::numeric_limits<float>::infinity() : 0.0f);
    std::int64_t steps = 1;
    for (const Axis& axis : reduced_) steps *= axis.extent;
    double total = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      std::int64_t from = 0, rest = i;
      for (std::size_t axis = reduced_.size(); axis-- > 0;) {
        from += rest % reduced_[axis].extent * reduced_[axis].from;
        rest /= reduced_[axis].extent;
      }
      if (run_ > 0) {
        if (maximum)
          *y = std::max(*y, loop.maximum(x + from, run_));
        else
          total += loop.sum(x + from, run_);
      } else if (width == 1) {
        if (maximum)
          *y = std::max(*y, x[from]);
        else
          total += x[from];
      } else if (maximum) {
        loop.accumulate_maximum(x + from, y, width);
      } else {
        loop.accumulate(x + from, y, width);
      }
    }
    if (!maximum && (run_ > 0 || width == 1)) *y = static_cast<float>(total);
    if (kind_ == Reduction::mean) loop.scale(y, width, 1.0f / static_cast<float>(count_));
  }

  Reduction kind_;
  std::vector<Axis> kept_, reduced_;  ///< Outermost first.
  std::int64_t row_ = 1;              ///< Extent of the innermost kept axis where rows are accumulated.
  std::int64_t run_ = 0;              ///< Extent of the innermost reduced axis where runs are summed.
  std::int64_t count_ = 1;            ///< Elements per output.
  int threads_;
};

/// Operators that compute row by row.
class Rows final : public Kernel {
 public:
  Rows(const KernelRequest& request, const RowLoop& loop)
      : Kernel("own " + request.op + " " + loops().instruction_set),
        loop_(loop),
        rows_(request.outputs[0].type.elements() / loop.length()),
        threads_(request.threads) {}

  Status execute(const KernelArguments& arguments) const override {
    float* const y = floats(arguments.outputs[0]);
    const std::int64_t grain = std::max<std::int64_t>(1, 8192 / loop_.length());
    parallel_chunks(threads_, rows_, grain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<const float*> operands;
      for (const std::byte* const input : arguments.inputs) operands.push_back(floats(input));
      operands[0] += begin * loop_.length();
      loop_.compute(operands, y + begin * loop_.length(), end - begin);
    });
    return {};
  }

 private:
  RowLoop loop_;
  std::int64_t rows_;
  int threads_;
};

/// Softmax over an axis whose elements do not lie together: columns side by side.
class ColumnSoftmax final : public Kernel {
 public:
  ColumnSoftmax(std::int64_t outer, std::int64_t extent, std::int64_t inner, int threads)
      : Kernel(std::string("own softmax ") + loops().instruction_set,
               static_cast<std::size_t>(2 * outer * inner) * sizeof(float)),
        outer_(outer),
        extent_(extent),
        inner_(inner),
        threads_(threads) {}

  Status execute(const KernelArguments& arguments) const override {
    const float* x = floats(arguments.inputs[0]);
    float* y = floats(arguments.outputs[0]);
    const LoopTable& loop = loops();
    const std::int64_t block = extent_ * inner_;
    const std::int64_t grain = std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(block, 1));
    parallel_chunks(threads_, outer_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) {
        const float* from = x + o * block;
        float* to = y + o * block;
        float* top = floats(arguments.workspace) + 2 * o * inner_;
        float* total = top + inner_;
        std::fill(top, top + inner_, -std::numeric_limits<float>::infinity());
        std::fill(total, total + inner_, 0.0f);
        for (std::int64_t i = 0; i < extent_; ++i) loop.accumulate_maximum(from + i * inner_, top, inner_);
        for (std::int64_t i = 0; i < extent_; ++i)
          loop.exp_minus(from + i * inner_, top, to + i * inner_, total, inner_);
        const BinaryEntry* divide = find_binary("div");
        for (std::int64_t i = 0; i < extent_; ++i) divide->both(to + i * inner_, total, to + i * inner_, inner_);
      }
    });
    return {};
  }

 private:
  std::int64_t outer_, extent_, inner_;
  int threads_;
};

/// The extents before, at and after the channel axis in memory order; channels are axis 1.
struct ChannelView {
  std::int64_t images = 1, channels = 1, pixels = 1;
  bool channels_inner = false;
};

ChannelView channel_view(const Operand& operand) {
  ChannelView view;
  const Shape& shape = operand.type.shape;
  view.images = shape[0];
  view.channels = shape[1];
  for (std::size_t axis = 2; axis < shape.size(); ++axis) view.pixels *= shape[axis];
  view.channels_inner = operand.layout == Layout::channels_last;
  return view;
}

/// x * a + b per channel with a = scale / sqrt(variance + epsilon), b = bias - mean * a.
class BatchNorm final : public Kernel {
 public:
  BatchNorm(const ChannelView& view, double epsilon, int threads)
      : Kernel(std::string("own batch_norm ") + loops().instruction_set,
               static_cast<std::size_t>(2 * view.channels) * sizeof(float)),
        view_(view),
        epsilon_(epsilon),
        threads_(threads) {}

  Status execute(const KernelArguments& arguments) const override {
    const float* x = floats(arguments.inputs[0]);
    float* y = floats(arguments.outputs[0]);
    float* a = floats(arguments.workspace);
    float* b = a + view_.channels;
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      const double factor = floats(arguments.inputs[1])[c] / std::sqrt(floats(arguments.inputs[4])[c] + epsilon_);
      a[c] = static_cast<float>(factor);
      b[c] = static_cast<float>(floats(arguments.inputs[2])[c] - floats(arguments.inputs[3])[c] * factor);
    }
    const std::int64_t rows = view_.images * (view_.channels_inner ? view_.pixels : view_.channels);
    const std::int64_t row = view_.channels_inner ? view_.channels : view_.pixels;
    parallel_chunks(threads_, rows, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(row, 1)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t r = begin; r < end; ++r) {
                        if (view_.channels_inner)
                          loops().affine_rows(x + r * row, a, b, y + r * row, row);
                        else
                          loops().affine(x + r * row, y + r * row, row, a[r % view_.channels], b[r % view_.channels]);
                      }
                    });
    return {};
  }

 private:
  ChannelView view_;
  double epsilon_;
  int threads_;
};

/// Each group of an image brought to mean 0 and variance 1, every channel scaled and shifted, then a function of each
/// element. Sums over pixels are taken in blocks whose sums are added in double precision, so that they depend on
/// nothing but the shape.
class GroupNorm final : public Kernel {
 public:
  GroupNorm(const ChannelView& view, std::int64_t groups, double epsilon, UnaryLoop act, int threads)
      : Kernel(std::string("own group_norm ") + loops().instruction_set,
               view.channels_inner
                   ? static_cast<std::size_t>(view.images * (blocks_of(view) + 2) * view.channels) * sizeof(float)
                   : 0),
        view_(view),
        groups_(groups),
        epsilon_(epsilon),
        act_(act),
        threads_(threads) {}

  Status execute(const KernelArguments& arguments) const override {
    if (view_.channels_inner)
      channels_inner(arguments);
    else
      channels_outer(arguments);
    return {};
  }

 private:
  static constexpr std::int64_t block = 64;  ///< Pixels.
  static std::int64_t blocks_of(const ChannelView& view) { return (view.pixels + block - 1) / block; }

  // A group is one stretch.
  void channels_outer(const KernelArguments& arguments) const {
    const LoopTable& loop = loops();
    const std::int64_t members = view_.channels / groups_, row = members * view_.pixels;
    const float* const scale = floats(arguments.inputs[1]);
    const float* const bias = floats(arguments.inputs[2]);
    parallel_chunks(threads_, view_.images * groups_, std::max<std::int64_t>(1, 8192 / row),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t r = begin; r < end; ++r) {
                        const float* const x = floats(arguments.inputs[0]) + r * row;
                        float* const y = floats(arguments.outputs[0]) + r * row;
                        const double mean =
                            summed(row, [&](std::int64_t at, std::int64_t n) { return loop.sum(x + at, n); }) /
                            static_cast<double>(row);
                        loop.affine(x, y, row, 1.0f, static_cast<float>(-mean));
                        const double variance =
                            summed(row, [&](std::int64_t at, std::int64_t n) { return loop.dot(y + at, y + at, n); }) /
                            static_cast<double>(row);
                        const double factor = 1.0 / std::sqrt(variance + epsilon_);
                        for (std::int64_t i = 0; i < members; ++i) {
                          const std::int64_t c = r % groups_ * members + i;
                          loop.affine(y + i * view_.pixels, y + i * view_.pixels, view_.pixels,
                                      static_cast<float>(factor * scale[c]), bias[c]);
                        }
                        if (act_ != nullptr) act_(y, y, row, 0, 0);
                      }
                    });
  }

  template <class Part>
  static double summed(std::int64_t count, const Part& part) {
    constexpr std::int64_t stretch = 4096;
    double total = 0;
    for (std::int64_t at = 0; at < count; at += stretch) total += part(at, std::min(stretch, count - at));
    return total;
  }

  // Pixels are rows of channels: sums of each channel over blocks of pixels, of groups from them.
  void channels_inner(const KernelArguments& arguments) const {
    const LoopTable& loop = loops();
    const std::int64_t channels = view_.channels, blocks = blocks_of(view_), image = view_.pixels * channels;
    float* const sums = floats(arguments.workspace);  // of a block and a channel
    float* const factors = sums + view_.images * blocks * channels;
    float* const shifts = factors + view_.images * channels;
    const auto in_blocks = [&](const auto& of_pixel) {
      parallel_chunks(threads_, view_.images * blocks, std::max<std::int64_t>(1, 8192 / (block * channels)),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t b = begin; b < end; ++b) {
                          const std::int64_t n = b / blocks, first = b % blocks * block;
                          for (std::int64_t p = first; p < std::min(first + block, view_.pixels); ++p)
                            of_pixel(n, n * image + p * channels, sums + b * channels);
                        }
                      });
    };
    const float* const x = floats(arguments.inputs[0]);
    float* const y = floats(arguments.outputs[0]);
    std::fill(sums, factors, 0.0f);
    in_blocks([&](std::int64_t, std::int64_t at, float* sum) { loop.accumulate(x + at, sum, channels); });
    of_groups(sums, [&](std::int64_t place, std::int64_t, double mean) {
      factors[place] = 1.0f;
      shifts[place] = static_cast<float>(-mean);
    });
    std::fill(sums, factors, 0.0f);
    in_blocks([&](std::int64_t n, std::int64_t at, float* sum) {
      loop.affine_rows(x + at, factors + n * channels, shifts + n * channels, y + at, channels);
      loop.accumulate_products(y + at, y + at, sum, channels);
    });
    of_groups(sums, [&](std::int64_t place, std::int64_t c, double variance) {
      factors[place] = static_cast<float>(floats(arguments.inputs[1])[c] / std::sqrt(variance + epsilon_));
      shifts[place] = floats(arguments.inputs[2])[c];
    });
    in_blocks([&](std::int64_t n, std::int64_t at, float*) {
      loop.affine_rows(y + at, factors + n * channels, shifts + n * channels, y + at, channels);
      if (act_ != nullptr) act_(y + at, y + at, channels, 0, 0);
    });
  }

  // set(place of a channel of an image, channel, mean of what is summed over the channel's group).
  template <class Set>
  void of_groups(const float* sums, const Set& set) const {
    const std::int64_t channels = view_.channels, members = channels / groups_, blocks = blocks_of(view_);
    for (std::int64_t n = 0; n < view_.images; ++n)
      for (std::int64_t q = 0; q < groups_; ++q) {
        double total = 0;
        for (std::int64_t b = 0; b < blocks; ++b)
          for (std::int64_t i = 0; i < members; ++i) total += sums[(n * blocks + b) * channels + q * members + i];
        const double mean = total / static_cast<double>(members * view_.pixels);
        for (std::int64_t i = 0; i < members; ++i) set(n * channels + q * members + i, q * members + i, mean);
      }
  }

  ChannelView view_;
  std::int64_t groups_;
  double epsilon_;
  UnaryLoop act_;
  int threads_;
};

/// Local response normalisation across channels: y = x / (bias + alpha / size * sum of squares of neighbours) ** beta,
/// the neighbours of channel c being c - (size - 1) / 2 ... c + size / 2 (ONNX).
class Lrn final : public Kernel {
 public:
  Lrn(const ChannelView& view, std::int64_t size, float alpha, float beta, float bias, int threads)
      : Kernel(std::string("own lrn ") + loops().instruction_set,
               static_cast<std::size_t>(std::max(threads, 1)) * thread_bytes(view)),
        view_(view),
        size_(size),
        alpha_(alpha),
        beta_(beta),
        bias_(bias),
        threads_(std::max(threads, 1)) {}

  Status execute(const KernelArguments& arguments) const override {
    const float* x = floats(arguments.inputs[0]);
    float* y = floats(arguments.outputs[0]);
    const std::int64_t units = view_.images * (view_.channels_inner ? view_.pixels : view_.channels);
    parallel_chunks(threads_, threads_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t thread = begin; thread < end; ++thread) {
        float* sums = floats(arguments.workspace + static_cast<std::size_t>(thread) * thread_bytes(view_));
        for (std::int64_t u = units * thread / threads_; u < units * (thread + 1) / threads_; ++u) {
          if (view_.channels_inner)
            pixel(x + u * view_.channels, sums, y + u * view_.channels);
          else
            channel(x, u / view_.channels, u % view_.channels, sums, y);
        }
      }
    });
    return {};
  }

 private:
  static std::size_t thread_bytes(const ChannelView& view) {
    const std::int64_t elements = 2 * (view.channels_inner ? view.channels : view.pixels);
    return (static_cast<std::size_t>(elements) * sizeof(float) + 63) / 64 * 64;
  }
  [[nodiscard]] std::int64_t first(std::int64_t c) const { return std::max<std::int64_t>(0, c - (size_ - 1) / 2); }
  [[nodiscard]] std::int64_t last(std::int64_t c) const { return std::min(view_.channels - 1, c + size_ / 2); }

  void pixel(const float* x, float* sums, float* y) const {
    float* squares = sums + view_.channels;
    find_binary("mul")->both(x, x, squares, view_.channels);
    for (std::int64_t c = 0; c < view_.channels; ++c) {
      float total = 0;
      for (std::int64_t k = first(c); k <= last(c); ++k) total += squares[k];
      sums[c] = total;
    }
    loops().lrn(x, sums, y, view_.channels, alpha_ / static_cast<float>(size_), beta_, bias_);
  }

  void channel(const float* x, std::int64_t image, std::int64_t c, float* sums, float* y) const {
    const float* base = x + image * view_.channels * view_.pixels;
    float* squares = sums + view_.pixels;
    std::fill(sums, sums + view_.pixels, 0.0f);
    for (std::int64_t k = first(c); k <= last(c); ++k) {
      find_binary("mul")->both(base + k * view_.pixels, base + k * view_.pixels, squares, view_.pixels);
      loops().accumulate(squares, sums, view_.pixels);
    }
    const std::int64_t offset = (image * view_.channels + c) * view_.pixels;
    loops().lrn(x + offset, sums, y + offset, view_.pixels, alpha_ / static_cast<float>(size_), beta_, bias_);
  }

  ChannelView view_;
  std::int64_t size_;
  float alpha_, beta_, bias_;
  std::int64_t threads_;
};

enum class Pool : std::uint8_t { maximum, average_include, average_exclude };

/// Poolings of rank-4 tensors. In channels_last a window's cells are rows of channels that are accumulated.
class Pooling final : public Kernel {
 public:
  Pooling(const KernelRequest& request, Pool kind)
      : Kernel(std::string("own pool ") + loops().instruction_set),
        kind_(kind),
        in_(request.inputs[0].type.shape),
        out_(request.outputs[0].type.shape),
        kernel_(request.attributes.integers("kernel")),
        strides_(request.attributes.integers("strides")),
        pads_(request.attributes.integers("pads")),
        from_(strides_of(request.inputs[0])),
        to_(strides_of(request.outputs[0])),
        threads_(request.threads) {
    if (request.attributes.find("dilations") != nullptr) dilations_ = request.attributes.integers("dilations");
    channels_inner_ = request.inputs[0].layout == Layout::channels_last;
  }

  Status execute(const KernelArguments& arguments) const override {
    const float* x = floats(arguments.inputs[0]);
    float* y = floats(arguments.outputs[0]);
    const std::int64_t planes = channels_inner_ ? in_[0] : in_[0] * in_[1];
    const std::int64_t cost = out_[3] * kernel_[0] * kernel_[1] * (channels_inner_ ? in_[1] : 1);
    parallel_chunks(threads_, planes * out_[2], std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(cost, 1)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t unit = begin; unit < end; ++unit) {
                        const std::int64_t plane = unit / out_[2];
                        const std::int64_t n = channels_inner_ ? plane : plane / in_[1];
                        const std::int64_t c = channels_inner_ ? 0 : plane % in_[1];
                        line(x + n * from_[0] + c * from_[1], y + n * to_[0] + c * to_[1], unit % out_[2]);
                      }
                    });
    return {};
  }

 private:
  /// The window cells of output position `position` along spatial axis `axis` that lie inside: [first, last).
  struct Range {
    std::int64_t start, first, last;
  };
  [[nodiscard]] Range range(std::size_t axis, std::int64_t position) const {
    const std::int64_t start = position * strides_[axis] - pads_[axis];
    const std::int64_t d = dilations_[axis];
    const std::int64_t first = start < 0 ? (-start + d - 1) / d : 0;
    const std::int64_t room = in_[2 + axis] - start;
    const std::int64_t last = room <= 0 ? 0 : std::min(kernel_[axis], (room + d - 1) / d);
    return {start, first, std::max(first, last)};
  }

  void line(const float* x, float* y, std::int64_t row) const {
    const LoopTable& loop = loops();
    const std::int64_t width = channels_inner_ ? in_[1] : 1;
    const bool maximum = kind_ == Pool::maximum;
    const float start = maximum ? -std::numeric_limits<float>::infinity() : 0.0f;
    const Range vertical = range(0, row);
    for (std::int64_t column = 0; column < out_[3]; ++column) {
      const Range horizontal = range(1, column);
      float* to = y + row * to_[2] + column * to_[3];
      float value = start;
      if (width > 1) std::fill(to, to + width, start);
      for (std::int64_t u = vertical.first; u < vertical.last; ++u) {
        for (std::int64_t v = horizontal.first; v < horizontal.last; ++v) {
          const float* cell =
              x + (vertical.start + u * dilations_[0]) * from_[2] + (horizontal.start + v * dilations_[1]) * from_[3];
          if (width > 1) {
            if (maximum)
              loop.accumulate_maximum(cell, to, width);
            else
              loop.accumulate(cell, to, width);
          } else {
            value = maximum ? std::max(value, *cell) : value + *cell;
          }
        }
      }
      if (width == 1) *to = value;
      if (maximum) continue;
      const std::int64_t cells = kind_ == Pool::average_include
                                     ? kernel_[0] * kernel_[1]
                                     : (vertical.last - vertical.first) * (horizontal.last - horizontal.first);
      loop.scale(to, width, 1.0f / static_cast<float>(cells));
    }
  }

  Pool kind_;
  Shape in_, out_;
  std::vector<std::int64_t> kernel_, strides_, pads_, from_, to_, dilations_{1, 1};
  bool channels_inner_ = false;
  int threads_;
};

bool same_layouts(const KernelRequest& request) { return request.inputs[0].layout == request.outputs[0].layout; }

}  // namespace

KernelOffer reduction(const KernelRequest& request, const OperatorRegistry&) {
  if (!is_all_floats(request)) return decline("only f32");
  const std::size_t rank = request.inputs[0].type.shape.size();
  std::vector<bool> reduced(rank, false);
  Reduction kind = Reduction::sum;
  if (request.op == "global_avg_pool") {
    kind = Reduction::mean;
    for (std::size_t axis = 2; axis < rank; ++axis) reduced[axis] = true;
  } else {
    if (request.op == "reduce_mean")
      kind = Reduction::mean;
    else if (request.op == "reduce_max")
      kind = Reduction::maximum;
    else if (request.op != "reduce_sum")
      return decline("not a reduction");
    for (const std::int64_t axis : request.attributes.integers("axes")) reduced[axis_position(axis, rank)] = true;
  }
  if (request.inputs[0].type.elements() == 0) return decline("an empty input");
  return {std::make_unique<Reducing>(request, kind, reduced), ""};
}

KernelOffer row_by_row(const KernelRequest& request, const OperatorRegistry& registry) {
  const std::optional<RowLoop> loop = RowLoop::of(request, registry);
  if (!loop) return decline("no rows of f32 whose elements lie together");
  return {std::make_unique<Rows>(request, *loop), ""};
}

KernelOffer column_softmax(const KernelRequest& request, const OperatorRegistry&) {
  if (!is_all_floats(request)) return decline("only f32");
  if (!same_layouts(request)) return decline("layouts differ");
  const Shape& shape = request.inputs[0].type.shape;
  if (shape.empty()) return decline("a scalar has no axis");
  const std::size_t axis = axis_position(request.attributes.integer("axis"), shape.size());
  const std::vector<std::int64_t> strides = strides_of(request.inputs[0]);
  const std::int64_t inner = strides[axis];
  const std::int64_t outer = volume(shape) / std::max<std::int64_t>(1, shape[axis] * inner);
  return {std::make_unique<ColumnSoftmax>(outer, shape[axis], inner, request.threads), ""};
}

KernelOffer batch_norm(const KernelRequest& request, const OperatorRegistry&) {
  if (!is_all_floats(request)) return decline("only f32");
  if (!same_layouts(request)) return decline("layouts differ");
  if (request.inputs[0].type.shape.size() < 2) return decline("rank 2 or more is needed");
  return {
      std::make_unique<BatchNorm>(channel_view(request.inputs[0]), request.attributes.real("epsilon"), request.threads),
      ""};
}

KernelOffer group_norm(const KernelRequest& request, const OperatorRegistry&) {
  if (!is_all_floats(request)) return decline("only f32");
  if (!same_layouts(request)) return decline("layouts differ");
  const Operand& x = request.inputs[0];
  if (x.layout != Layout::row_major && x.layout != Layout::channels_last) return decline("no such layout");
  if (x.type.elements() == 0) return decline("an empty input");
  const std::string& act = request.attributes.symbol("act");
  const UnaryEntry* const entry = find_unary(act);
  if (entry == nullptr || act == "clip") return decline("no loop for " + act);
  return {std::make_unique<GroupNorm>(channel_view(x), request.attributes.integer("groups"),
                                      request.attributes.real("epsilon"), act == "identity" ? nullptr : entry->loop,
                                      request.threads),
          ""};
}

KernelOffer lrn(const KernelRequest& request, const OperatorRegistry&) {
  if (!is_all_floats(request)) return decline("only f32");
  if (!same_layouts(request)) return decline("layouts differ");
  if (request.inputs[0].type.shape.size() < 2) return decline("rank 2 or more is needed");
  const Attributes& attributes = request.attributes;
  // The power is taken by exp and log.
  if (!(attributes.real("bias") > 0) || !(attributes.real("alpha") >= 0))
    return decline("what is raised to a power may not be positive");
  return {
      std::make_unique<Lrn>(channel_view(request.inputs[0]), attributes.integer("size"),
                            static_cast<float>(attributes.real("alpha")), static_cast<float>(attributes.real("beta")),
                            static_cast<float>(attributes.real("bias")), request.threads),
      ""};
}

KernelOffer pooling(const KernelRequest& request, const OperatorRegistry&) {
  if (block_of(request.inputs[0].layout) != 0 || block_of(request.outputs[0].layout) != 0)
    return decline("no blocks of channels");
  if (!is_all_floats(request)) return decline("only f32");
  if (!same_layouts(request) &&
      !same_bytes(request.outputs[0].type.shape, request.inputs[0].layout, request.outputs[0].layout))
    return decline("layouts differ");
  if (request.inputs[0].type.shape.size() != 4) return decline("rank 4 is needed");
  Pool kind = Pool::maximum;
  if (request.op == "avg_pool2d_include")
    kind = Pool::average_include;
  else if (request.op == "avg_pool2d_exclude")
    kind = Pool::average_exclude;
  else if (request.op != "max_pool2d")
    return decline("not a pooling");
  return {std::make_unique<Pooling>(request, kind), ""};
}

}  // namespace taso::cpu
