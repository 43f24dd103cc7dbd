// Operators that only move elements and follow each other are one copy on the processor (runtime/cpu/copying.cpp),
// which moves what their kernels one by one do, to the bit.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "runtime/cpu/kernels.h"
#include "runtime/fused_kernel.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

/// Draws parts one after the other, each on the result of the one before.
class MovesMaker {
 public:
  explicit MovesMaker(std::uint64_t seed) : random_(seed, "moves") {}

  KernelRequest make() {
    Shape shape;
    const std::size_t rank = 1 + below(4);
    for (std::size_t i = 0; i < rank; ++i) shape.push_back(extents[below(std::size(extents))]);
    const ElementType element = elements[below(std::size(elements))];
    Operand now{{element, shape}};
    if (rank == 4 && below(2) == 0) now.layout = Layout::channels_last;
    KernelRequest whole;
    whole.op = fused_op;
    whole.threads = 1 + static_cast<int>(below(3));
    whole.inputs = {now};
    auto fused = std::make_shared<Fused>();
    const std::size_t parts = 1 + below(5);
    FusedPart::Source from{true, 0, 0};
    while (fused->parts.size() < parts) {
      KernelRequest part;
      part.threads = whole.threads;
      part.inputs = {now};
      std::uint32_t port = 0;
      switch (below(6)) {
        case 0:
          if (now.type.shape.size() != 4) continue;
          part.op = reorder_op;
          now.layout = now.layout == Layout::channels_last ? Layout::row_major : Layout::channels_last;
          break;
        case 1:
          transpose(part, now);
          break;
        case 2:
          if (now.layout != Layout::row_major) continue;
          part.op = "reshape";
          now.type.shape = regrouped(now.type.shape);
          part.attributes.set("shape", now.type.shape);
          break;
        case 3:
          slice(part, now);
          break;
        case 4:
          port = split(part, now);
          break;
        default:
          broadcast(part, now);
          break;
      }
      if (part.op.empty()) continue;
      if (part.outputs.empty()) part.outputs = {now};
      fused->parts.push_back({part, {from}});
      from = {false, static_cast<std::uint32_t>(fused->parts.size() - 1), port};
    }
    fused->results = {from};
    whole.outputs = {now};
    whole.fused = fused;
    return whole;
  }

 private:
  static constexpr std::int64_t extents[] = {1, 2, 3, 4, 6, 8, 12};
  static constexpr ElementType elements[] = {ElementType::f32, ElementType::f16, ElementType::i64,
                                             ElementType::boolean};

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_.below(count)); }

  void transpose(KernelRequest& part, Operand& now) {
    if (now.layout != Layout::row_major || now.type.shape.size() < 2) return;
    part.op = "transpose";
    std::vector<std::int64_t> permutation(now.type.shape.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    for (std::size_t i = permutation.size(); i-- > 1;) std::swap(permutation[i], permutation[below(i + 1)]);
    Shape shape;
    for (const std::int64_t axis : permutation) shape.push_back(now.type.shape[static_cast<std::size_t>(axis)]);
    part.attributes.set("perm", permutation);
    now.type.shape = shape;
  }

  /// The prime factors of the extents, grouped anew.
  Shape regrouped(const Shape& shape) {
    Shape factors, result;
    for (std::int64_t extent : shape)
      for (std::int64_t prime = 2; extent > 1; ++prime)
        for (; extent % prime == 0; extent /= prime) factors.push_back(prime);
    for (const std::int64_t factor : factors) {
      if (result.empty() || (below(2) == 0 && result.size() < 6))
        result.push_back(factor);
      else
        result.back() *= factor;
    }
    if (result.empty() || below(3) == 0) result.push_back(1);
    return result;
  }

  void slice(KernelRequest& part, Operand& now) {
    part.op = "slice";
    std::vector<std::int64_t> starts, steps;
    for (std::int64_t& extent : now.type.shape) {
      auto start = static_cast<std::int64_t>(below(static_cast<std::size_t>(extent)));
      const auto last = start + static_cast<std::int64_t>(below(static_cast<std::size_t>(extent - start)));
      const auto step = 1 + static_cast<std::int64_t>(below(3) / 2);
      const bool backwards = below(4) == 0;
      extent = (last - start) / step + 1;
      if (backwards) start += (extent - 1) * step;
      starts.push_back(start);
      steps.push_back(backwards ? -step : step);
    }
    part.attributes.set("starts", starts);
    part.attributes.set("sizes", now.type.shape);
    part.attributes.set("steps", steps);
  }

  std::uint32_t split(KernelRequest& part, Operand& now) {
    const std::size_t axis = below(now.type.shape.size());
    const std::int64_t extent = now.type.shape[axis];
    if (extent < 2) return 0;
    part.op = "split";
    const auto first = 1 + static_cast<std::int64_t>(below(static_cast<std::size_t>(extent - 1)));
    part.attributes.set("axis", static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(now.type.shape.size()));
    part.attributes.set("sizes", std::vector<std::int64_t>{first, extent - first});
    for (const std::int64_t size : {first, extent - first}) {
      part.outputs.push_back(now);
      part.outputs.back().type.shape[axis] = size;
    }
    const auto port = static_cast<std::uint32_t>(below(2));
    now = part.outputs[port];
    return port;
  }

  void broadcast(KernelRequest& part, Operand& now) {
    part.op = "broadcast";
    for (std::int64_t& extent : now.type.shape)
      if (extent == 1) extent = 1 + static_cast<std::int64_t>(below(4));
    part.attributes.set("shape", now.type.shape);
  }

  Random random_;
};

std::vector<std::byte> moved_by(const Kernel& kernel, const KernelRequest& request) {
  AlignedBuffer input(static_cast<std::size_t>(request.inputs[0].type.bytes()));
  for (std::size_t i = 0; i < input.size(); ++i) input.data()[i] = static_cast<std::byte>(i * 7 + i / 251);
  AlignedBuffer output(static_cast<std::size_t>(request.outputs[0].type.bytes()));
  std::memset(output.data(), 0xff, output.size());
  AlignedBuffer workspace(kernel.workspace_bytes());
  const std::vector<const std::byte*> from = {input.data()};
  const std::vector<std::byte*> to = {output.data()};
  EXPECT_TRUE(kernel.execute({from, to, workspace.data()})) << request.key();
  return {output.data(), output.data() + output.size()};
}

TEST(FusedMoves, CopyWhatTheirPartsMove) {
  const KernelLibrary library(registry());
  int copies = 0, long_ones = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const KernelRequest request = MovesMaker(seed).make();
    const KernelOffer together = cpu::fused_moves(request, registry());
    if (!together.kernel) {
      EXPECT_EQ(together.reason, "the moves are no copy between strided tensors");
      continue;
    }
    ++copies;
    if (request.fused->parts.size() > 2) ++long_ones;
    const auto apart = value_of(fused_kernel(request, library));
    ASSERT_EQ(moved_by(*together.kernel, request), moved_by(*apart, request)) << request.key();
  }
  EXPECT_GT(copies, 2000);
  EXPECT_GT(long_ones, 1000);
}

TEST(FusedMoves, AreFoundAroundConvolutions) {
  // Channels that are shuffled, and the pixels of a transposed convolution: in images whose channels lie together both
  // are one copy.
  const Graph graph = value_of(parse_graph(
      "input x f32[1, 8, 6, 6]\nweight w f32[8, 8, 1, 1]\n"
      "a = conv2d(x, w)\nb = reshape(transpose(reshape(a; shape=[1, 2, 4, 6, 6]); perm=[0, 2, 1, 3, 4]); shape=[1, 8, "
      "6, 6])\n"
      "c = conv2d(b, w)\n"
      "d = reshape(transpose(reshape(c; shape=[1, 2, 2, 2, 6, 6]); perm=[0, 1, 4, 2, 5, 3]); shape=[1, 2, 12, 12])\n"
      "weight v f32[8, 2, 1, 1]\noutput conv2d(d, v)\n",
      "test", registry()));
  const KernelLibrary library(registry());
  const LoweredGraph lowered = fused_for(value_of(lower(graph, registry(), {.channels_last = true})), library);
  std::vector<std::string> names;
  for (const LoweredStep& step : lowered.steps) {
    const KernelRequest& request = step.kernel->request;
    names.push_back(request.op);
    if (!request.fused) continue;
    EXPECT_EQ(value_of(library.create(request))->implementation(), "own copy");
    EXPECT_EQ(request.fused->parts.size(), 5U) << request.key();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"reorder", "conv2d", "fused", "conv2d", "fused", "conv2d", "reorder"}));
}

TEST(FusedMoves, DeclineWhatIsNoCopy) {
  KernelRequest request;
  request.op = fused_op;
  EXPECT_EQ(cpu::fused_moves(request, registry()).reason, "nothing is fused");
  const Operand operand{{ElementType::f32, {2, 3}}};
  KernelRequest part;
  part.op = "relu";
  part.inputs = part.outputs = {operand};
  request.inputs = request.outputs = {operand};
  request.fused = std::make_shared<Fused>(Fused{{{part, {{true, 0, 0}}}}, {{false, 0, 0}}});
  EXPECT_EQ(cpu::fused_moves(request, registry()).reason, "relu does more than to move elements");
}

}  // namespace
}  // namespace taso::testing
