// Random groups of operators that the processor computes as one kernel, against their kernels one by one, and against
// the definitions evaluated over doubles: groups of elements and rows by loops (runtime/cpu/fused_elements.cpp), to the
// bit, and of any operators by their definitions together (runtime/cpu/definition.cpp).
//
//   fused_groups [--groups N] [--seed S] [--fault]
//
// Group number i is drawn from seed S + i: element-wise operators, softmax, layer_norm and rms_norm over tensors of one
// shape, of one to four axes and up to some thousand elements, with operands that are broadcast along any of them; in
// every second graph also sums, means and maxima along axes, pieces and transposed axes of inputs, and operators of a
// user that compute rows, look at neighbours or give two results; one to four threads, one result or several. What is
// wrong is printed with its seed and graph. --fault changes a bit of the results, so that a test sees that this is
// noticed. Nothing depends on time or address. Exit code: 0, 1 if something is wrong, fewer than half of the groups
// were one kernel, or fewer than half of one of definitions, 2 for wrong usage.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "runtime/cpu/kernels.h"
#include "runtime/fused_kernel.h"
#include "runtime/fusion.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

/// Operators that have no kernels but those of their definitions.
constexpr const char* operators_of_a_user = R"(
operator soft(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let power[I.. < A, t < n] = exp(x[I.., t] - top[I..])
  let total[I.. < A] = sum(t < n) power[I.., t]
  out[I.., i] = power[I.., i] / total[I..]
operator centred(x[A.., n]) -> [A.., n]
  let mean[I.. < A] = (sum(t < n) x[I.., t]) / n
  out[I.., i] = x[I.., i] - mean[I..]
operator across(x[n, A..]) -> [n, A..]
  let mean[I.. < A] = (sum(t < n) x[t, I..]) / n
  out[i, I..] = x[i, I..] * mean[I..]
operator smooth(x[A.., n]) -> [A.., n]
  out[I.., i] = ((x[I.., i - 1] or 0) + x[I.., i] + (x[I.., i + 1] or x[I.., i])) / 3
operator swish(x[D..], s[]) -> [D..]
  out[I..] = x[I..] * sigmoid(s[] * x[I..])
)";

const OperatorRegistry& operators() {
  static const OperatorRegistry all = value_of(OperatorRegistry::parse(operators_of_a_user, "user.op", &registry()));
  return all;
}
const KernelLibrary& kernels() {
  static const KernelLibrary all(operators());
  return all;
}

/// Draws graphs in the text form.
class GroupMaker {
 public:
  explicit GroupMaker(std::uint64_t seed) : random_(seed, "fused groups"), any_(seed % 2 == 0) {}

  std::string graph() {
    draw_shape();
    std::vector<std::string> values;
    std::string lines, last;
    for (std::int64_t count = 1 + below(3); count > 0; --count) values.push_back(any_ ? moved(lines) : input(shape_));
    std::vector<std::string> made;
    for (std::int64_t i = 0, count = 2 + below(8); i < count; ++i) {
      // The first part reads an input, each other one most often the part before it, so that they are a group.
      const std::string& x = made.empty() || below(4) == 0 ? pick(values) : made.back();
      last = "t" + std::to_string(i);
      lines += last + " = " + part(x, values) + "\n";
      values.push_back(last);
      made.push_back(last);
    }
    for (const std::string& value : made)
      if (value == last || below(5) == 0) lines += "output " + value + "\n";
    return inputs_ + lines;
  }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }

 private:
  /// Rows of one element to some that are longer than a block; few of them where they are long.
  void draw_shape() {
    constexpr std::int64_t lengths[] = {1, 2, 3, 7, 8, 16, 33, 64, 257, 1000, 1024, 1025, 2100};
    std::int64_t room = 6000;
    shape_.assign(1, lengths[below(13)]);
    room /= shape_[0];
    for (std::int64_t rank = below(4); rank > 0; --rank) {
      const std::int64_t extent = 1 + below(std::max<std::int64_t>(1, std::min<std::int64_t>(room, 9)));
      shape_.insert(shape_.begin(), extent);
      room /= extent;
    }
  }
  std::string input(const Shape& shape) {
    const std::string name = "x" + std::to_string(number_++);
    inputs_ += fmt::format("input {} f32[{}]\n", name, fmt::join(shape, ", "));
    return name;
  }
  /// An input of the shape, or one that is broadcast to it.
  std::string broadcast() {
    Shape from = shape_;
    for (std::int64_t& extent : from)
      if (below(2) == 0) extent = 1;
    from.erase(from.begin(), from.begin() + below(static_cast<std::int64_t>(from.size()) + 1));
    return fmt::format("broadcast({}; shape=[{}])", input(from), fmt::join(shape_, ", "));
  }
  /// An input, or one of which axes are cut or exchanged.
  std::string moved(std::string& lines) {
    const auto rank = static_cast<std::int64_t>(shape_.size());
    const std::string name = "m" + std::to_string(number_);
    switch (below(4)) {
      case 0: {
        Shape larger = shape_;
        larger.back() *= 2;
        lines += fmt::format("{0}, {0}b = split({1}; axis=-1, sizes=[{2}, {2}])\n", name, input(larger), shape_.back());
        return below(2) == 0 ? name : name + "b";
      }
      case 1: {
        Shape larger = shape_, starts(shape_.size(), 0);
        const auto axis = static_cast<std::size_t>(below(rank));
        starts[axis] = 1 + below(3);
        larger[axis] += starts[axis];
        lines += fmt::format("{} = slice({}; starts=[{}], sizes=[{}], steps=[{}])\n", name, input(larger),
                             fmt::join(starts, ", "), fmt::join(shape_, ", "),
                             fmt::join(std::vector<int>(shape_.size(), 1), ", "));
        return name;
      }
      case 2: {
        if (rank < 3) break;
        Shape before = shape_;
        std::swap(before[0], before[1]);
        lines += fmt::format("{} = transpose({}; perm=[1, 0{}])\n", name, input(before), rank == 3 ? ", 2" : ", 2, 3");
        return name;
      }
      default:
        break;
    }
    return input(shape_);
  }
  /// A number of each row, or column, or all rows of an axis, for all elements.
  std::string reduced(const std::string& x) {
    constexpr const char* reductions[] = {"reduce_sum", "reduce_mean", "reduce_max"};
    const std::int64_t axis = below(4) == 0 ? 1 + below(static_cast<std::int64_t>(shape_.size())) : 1;
    return fmt::format("sub({0}, broadcast(sigmoid({1}({0}; axes=[{2}])); shape=[{3}]))", x, reductions[below(3)],
                       -axis, fmt::join(shape_, ", "));
  }
  std::string of_a_user(const std::string& x) {
    constexpr const char* rows[] = {"soft", "centred", "smooth", "across"};
    const std::int64_t which = below(5);
    return which == 4 ? fmt::format("swish({}, {})", x, input({})) : fmt::format("{}({})", rows[which], x);
  }
  std::string part(const std::string& x, const std::vector<std::string>& values) {
    if (any_ && below(2) == 0) return below(3) == 0 ? reduced(x) : of_a_user(x);
    constexpr const char* unary[] = {"relu", "tanh", "sigmoid", "neg", "gelu", "hard_swish", "silu", "abs"};
    constexpr const char* binary[] = {"add", "sub", "mul", "maximum"};
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        return fmt::format("{}({})", unary[below(8)], x);
      case 3:
        return fmt::format("softmax({}; axis=-1)", x);
      case 4:
        return fmt::format("layer_norm({}, {}, {}; epsilon=0.001)", x, input({shape_.back()}), input({shape_.back()}));
      case 5:
        return fmt::format("rms_norm({}, {}; epsilon=0.001)", x, input({shape_.back()}));
      default: {
        const std::string other = below(2) == 0 ? pick(values) : broadcast();
        return below(2) == 0 ? fmt::format("{}({}, {})", binary[below(4)], x, other)
                             : fmt::format("{}({}, {})", binary[below(4)], other, x);
      }
    }
  }
  const std::string& pick(const std::vector<std::string>& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }

  Random random_;
  bool any_;  ///< Not only elements and rows.
  Shape shape_;
  std::string inputs_;
  int number_ = 0;
};

/// The results of a kernel on numbers drawn from the request.
std::vector<AlignedBuffer> results_of(const Kernel& kernel, const KernelRequest& request) {
  Random random(5, request.key());
  std::vector<AlignedBuffer> inputs, outputs;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (const Operand& operand : request.inputs) {
    inputs.emplace_back(static_cast<std::size_t>(operand.type.bytes()));
    auto* const elements = reinterpret_cast<float*>(inputs.back().data());
    for (std::int64_t i = 0; i < operand.type.elements(); ++i)
      elements[i] = static_cast<float>(4 * random.uniform() - 2);
  }
  for (const AlignedBuffer& input : inputs) from.push_back(input.data());
  for (const Operand& output : request.outputs) outputs.emplace_back(static_cast<std::size_t>(output.type.bytes()));
  for (AlignedBuffer& output : outputs) to.push_back(output.data());
  AlignedBuffer workspace(kernel.workspace_bytes());
  const Status done = kernel.execute({from, to, workspace.data()});
  if (!done) fmt::print("{}: {}\n", request.key(), done.error().message);
  return outputs;
}

class Comparison {
 public:
  explicit Comparison(bool fault) : fault_(fault) {}

  void compare(std::uint64_t seed) {
    GroupMaker maker(seed);
    const std::string text = maker.graph();
    const int threads = 1 + static_cast<int>(maker.below(4));
    const Graph graph = value_of(parse_graph(text, "group", operators()));
    ExecutorOptions options;
    options.threads = threads;
    Executor executor = value_of(Executor::create(graph, kernels(), options));
    std::string wrong = difference_of_definitions(graph, threads);
    bool fused = false;
    for (const LoweredStep& step : executor.lowered().steps) {
      const KernelRequest& request = step.kernel->request;
      if (!request.fused) continue;
      fused = true;
      parts_ += request.fused->parts.size();
      ++kernels_;
      const auto together = value_of(kernels().create(request));
      const bool by_loops = together->implementation().starts_with("own fused elementwise");
      if (by_loops && !has_equal_bits(*together, request)) wrong = "other bits than its parts: " + request.key();
    }
    groups_ += fused ? 1 : 0;
    const std::vector<HostTensor> inputs = executor.random_inputs(seed);
    if (wrong.empty())
      wrong = difference(value_of(executor.run(inputs)), reference_outputs(graph, inputs, operators()));
    if (wrong.empty()) return;
    ++wrong_;
    fmt::print("seed {}, {} threads: {}\n{}\n", seed, threads, wrong, text);
  }

  /// Prints a summary; the exit code.
  [[nodiscard]] int end(std::uint64_t drawn) const {
    fmt::print(
        "{} graphs, {} with fused kernels, {} such kernels of {:.1f} operators on average, {} of definitions together; "
        "{} wrong\n",
        drawn, groups_, kernels_, kernels_ == 0 ? 0.0 : static_cast<double>(parts_) / static_cast<double>(kernels_),
        by_definitions_, wrong_);
    return wrong_ == 0 && 2 * groups_ >= drawn && 2 * by_definitions_ >= drawn ? 0 : 1;
  }

 private:
  [[nodiscard]] bool has_equal_bits(const Kernel& kernel, const KernelRequest& request) const {
    std::vector<AlignedBuffer> together = results_of(kernel, request);
    const std::vector<AlignedBuffer> apart = results_of(*value_of(fused_kernel(request, kernels())), request);
    if (fault_) together[0].data()[0] ^= std::byte{1};
    for (std::size_t i = 0; i < apart.size(); ++i)
      if (std::memcmp(together[i].data(), apart[i].data(), apart[i].size()) != 0) return false;
    return true;
  }
  /// Of all that definitions compute together in a graph, whether it pays or not.
  [[nodiscard]] std::string difference_of_definitions(const Graph& graph, int threads) {
    const auto offer = [](const KernelRequest& request) { return cpu::any_joined_definitions(request, operators()); };
    const LoweredGraph lowered =
        fuse_steps(value_of(lower(graph, operators(), {.channels_last = false, .threads = threads})),
                   {.fuses = [&](const KernelRequest& request) { return offer(request).kernel != nullptr; }});
    for (const LoweredStep& step : lowered.steps) {
      const KernelRequest& request = step.kernel->request;
      if (!request.fused) continue;
      ++by_definitions_;
      const std::vector<AlignedBuffer> together = results_of(*offer(request).kernel, request);
      const std::vector<AlignedBuffer> apart = results_of(*value_of(fused_kernel(request, kernels())), request);
      for (std::size_t output = 0; output < apart.size(); ++output) {
        const auto* const actual = reinterpret_cast<const float*>(together[output].data());
        const auto* const expected = reinterpret_cast<const float*>(apart[output].data());
        const std::span<const float> all(expected, apart[output].size() / sizeof(float));
        float largest = 1;
        for (const float value : all) largest = std::max(largest, std::fabs(value));
        for (std::size_t i = 0; i < all.size(); ++i)
          if (!(std::fabs(actual[i] - all[i]) <= 2e-3F * largest))
            return fmt::format("definitions together, output {}, element {}: {} instead of {}: {}", output, i,
                               actual[i], all[i], request.key());
      }
    }
    return "";
  }
  /// Relative to the largest element; normalisations of rows that hardly differ make small errors large.
  [[nodiscard]] static std::string difference(const std::vector<HostTensor>& actual,
                                              const std::vector<std::vector<double>>& expected) {
    for (std::size_t output = 0; output < actual.size(); ++output) {
      const std::vector<double> values = actual[output].to_doubles();
      double largest = 1;
      for (const double value : expected[output]) largest = std::max(largest, std::fabs(value));
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!(std::fabs(values[i] - expected[output][i]) <= 2e-3 * largest))
          return fmt::format("output {}, element {}: {} instead of {}", output, i, values[i], expected[output][i]);
    }
    return "";
  }

  bool fault_;
  std::uint64_t groups_ = 0, kernels_ = 0, by_definitions_ = 0, parts_ = 0, wrong_ = 0;
};

int usage() {
  fmt::print(stderr, "usage: fused_groups [--groups N] [--seed S] [--fault]\n");
  return 2;
}

int run(const std::vector<std::string>& arguments) {
  std::uint64_t groups = 300, seed = 1;
  bool fault = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--fault") {
      fault = true;
      continue;
    }
    std::uint64_t* const target = arguments[i] == "--groups" ? &groups : arguments[i] == "--seed" ? &seed : nullptr;
    if (target == nullptr || i + 1 == arguments.size()) return usage();
    char* end = nullptr;
    *target = std::strtoull(arguments[++i].c_str(), &end, 10);
    if (*end != '\0' || arguments[i].empty()) return usage();
  }
  Comparison comparison(fault);
  for (std::uint64_t i = 0; i < groups; ++i) comparison.compare(seed + i);
  return comparison.end(groups);
}

}  // namespace
}  // namespace taso::testing

int main(int argc, char** argv) { return taso::testing::run({argv + 1, argv + argc}); }
