/// Random graphs of shipped operators, for tests that compare ways to run a graph.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {

/// Makes random graphs of shipped operators; equal seeds make equal graphs.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed, "graph") {
    for (int i = 0; i < 2; ++i) add({graph_.add_input("x" + std::to_string(i), {ElementType::f32, image(), true}), 0});
    add({graph_.add_input("m", {ElementType::f32, {small(), small()}, true}), 0});
  }

  Graph build(int operators) {
    for (int made = 0, tried = 0; made < operators && tried < 40 * operators; ++tried) made += grow() ? 1 : 0;
    std::vector<Value> outputs;
    for (const Value value : values_)
      if (random_.below(4) == 0 || outputs.empty()) outputs.push_back(value);
    outputs.push_back(values_.back());
    graph_.set_outputs(outputs);
    graph_.remove_dead();
    return graph_;
  }

 private:
  std::int64_t small() { return 1 + static_cast<std::int64_t>(random_.below(5)); }
  /// A third of the time whole blocks, of 8 or 16.
  std::int64_t channels() {
    return random_.below(3) == 0 ? 16 * (1 + static_cast<std::int64_t>(random_.below(2))) / 2 : small();
  }
  Shape image() { return {random_.below(3) == 0 ? 2 : 1, channels(), 3 + small(), 3 + small()}; }
  void add(Value value) { values_.push_back(value); }
  Value pick() { return values_[random_.below(values_.size())]; }
  const Shape& shape(Value value) { return graph_.type(value).shape; }
  std::int64_t axis_of(Value value) {
    return -1 - static_cast<std::int64_t>(random_.below(std::max<std::size_t>(1, shape(value).size())));
  }
  Value weight(Shape shape) {
    std::vector<float> values(static_cast<std::size_t>(volume(shape)));
    for (float& value : values) value = static_cast<float>(random_.uniform() - 0.5);
    return {graph_.add_constant(ConstantData::of_floats(std::move(shape), values)), 0};
  }

  bool apply(const char* op, const Attributes& attributes, std::vector<Value> inputs) {
    const auto node = add_op(graph_, registry(), op, attributes, std::move(inputs));
    if (!node) return false;
    const auto& outputs = graph_.node(*node).outputs;
    for (const TensorType& type : outputs)
      if (type.elements() > 4000) return false;
    for (std::uint32_t port = 0; port < outputs.size(); ++port) add({*node, port});
    return true;
  }

  bool grow() {
    const Value x = pick(), y = pick();
    const Shape& s = shape(x);
    const std::size_t rank = s.size();
    using Integers = std::vector<std::int64_t>;
    switch (random_.below(16)) {
      case 0: {
        constexpr std::array<const char*, 6> names = {"relu", "tanh", "sigmoid", "neg", "gelu", "hard_swish"};
        return apply(names[random_.below(names.size())], {}, {x});
      }
      case 1:
      case 2: {
        constexpr std::array<const char*, 3> names = {"add", "mul", "sub"};
        const char* op = names[random_.below(names.size())];
        if (shape(y) == s) return apply(op, {}, {x, y});
        Shape part(s.begin() + static_cast<std::ptrdiff_t>(random_.below(rank + 1)), s.end());
        for (std::int64_t& extent : part)
          if (random_.below(2) == 0) extent = 1;
        const auto broadcast = add_op(graph_, registry(), "broadcast", {{"shape", Integers(s)}}, {weight(part)});
        return broadcast.ok() && apply(op, {},
                                       random_.below(2) == 0 ? std::vector<Value>{x, {*broadcast, 0}}
                                                             : std::vector<Value>{{*broadcast, 0}, x});
      }
      case 3: {
        if (rank != 4) return false;
        const std::int64_t r = 1 + static_cast<std::int64_t>(random_.below(3));
        const std::int64_t p = static_cast<std::int64_t>(random_.below(2));
        return apply("conv2d", {{"pads", Integers{p, 0, 1, p}}}, {x, weight({channels(), s[1], r, 2})});
      }
      case 4: {
        if (rank != 4) return false;
        const std::int64_t out = channels();
        if (random_.below(2) == 0) {  // its residual is what any operator makes of that shape, or nothing else reads it
          const Shape& other = shape(y);
          const bool fits = other.size() == 4 && other[0] == s[0] && other[2] == s[2] && other[3] == s[3];
          const auto fresh = add_op(graph_, registry(), "tanh", {}, {x});
          const Value residual = fits ? y : Value{*fresh, 0};
          const std::int64_t made = shape(residual)[1];
          return apply("conv2d_bias_add_act", {{"act", SymbolValue{"relu"}}, {"pads", Integers{1, 0, 1, 0}}},
                       {x, weight({made, s[1], 3, 1}), weight({made}), residual});
        }
        return apply("conv2d_bias_act",
                     {{"act", SymbolValue{"relu"}}, {"strides", Integers{1, 2}}, {"pads", Integers{1, 1, 1, 1}}},
                     {x, weight({out, s[1], 3, 3}), weight({out})});
      }
      case 5:
        return rank == 4 &&
               apply(random_.below(2) == 0 ? "max_pool2d" : "avg_pool2d_exclude",
                     {{"kernel", Integers{2, 2}}, {"strides", Integers{1, 2}}, {"pads", Integers{0, 1, 1, 0}}}, {x});
      case 6:
        return rank >= 1 && apply("concat", {{"axis", axis_of(x)}}, {x, y});
      case 7: {
        const std::int64_t axis = axis_of(x);
        return rank >= 1 && apply("concat", {{"axis", axis}}, {x, pick(), x});
      }
      case 8: {
        if (rank == 0) return false;
        const std::int64_t axis = axis_of(x), extent = s[rank - static_cast<std::size_t>(-axis)];
        const auto first = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(extent + 1)));
        return apply("split", {{"axis", axis}, {"sizes", Integers{first, extent - first}}}, {x});
      }
      case 9: {
        Integers target(s);
        if (rank >= 2 && random_.below(2) == 0) {
          target[rank - 2] *= target[rank - 1];
          target.pop_back();
        } else {
          target.insert(target.begin() + static_cast<std::ptrdiff_t>(random_.below(rank + 1)), 1);
        }
        return target.size() <= 5 && apply("reshape", {{"shape", target}}, {x});
      }
      case 10: {
        Integers permutation(rank);
        for (std::size_t i = 0; i < rank; ++i) permutation[i] = static_cast<std::int64_t>(i);
        for (std::size_t i = rank; i > 1; --i) std::swap(permutation[i - 1], permutation[random_.below(i)]);
        return apply("transpose", {{"perm", permutation}}, {x});
      }
      case 11: {
        Integers starts, sizes, steps(rank, 1);
        for (const std::int64_t extent : s) {
          if (extent == 0) return false;
          const auto start = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(extent)));
          const bool whole = random_.below(2) == 0;
          starts.push_back(whole ? 0 : start);
          sizes.push_back(whole ? extent : extent - start);
        }
        return apply("slice", {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}, {x});
      }
      case 12:
        if (rank < 2 || s.back() == 0) return false;
        if (random_.below(3) == 0) {  // with itself, transposed: batches of products
          Integers permutation(rank);
          for (std::size_t i = 0; i < rank; ++i) permutation[i] = static_cast<std::int64_t>(i);
          std::swap(permutation[rank - 1], permutation[rank - 2]);
          const auto flipped = add_op(graph_, registry(), "transpose", {{"perm", permutation}}, {x});
          return flipped.ok() && apply("matmul", {}, {x, {*flipped, 0}});
        }
        return apply("matmul", {}, {x, weight({s.back(), small()})});
      case 13: {
        Integers target(s);
        target.insert(target.begin(), small());
        return target.size() <= 5 && apply("broadcast", {{"shape", target}}, {x});
      }
      case 14:
        if (rank == 0 || volume(s) == 0) return false;
        return apply(random_.below(2) == 0 ? "reduce_mean" : "reduce_max", {{"axes", Integers{axis_of(x)}}}, {x});
      default:
        return rank >= 1 && volume(s) > 0 && apply("softmax", {{"axis", axis_of(x)}}, {x});
    }
  }

  Random random_;
  Graph graph_;
  std::vector<Value> values_;
};

}  // namespace taso::testing
