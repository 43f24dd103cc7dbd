#include "partition/pase_graph_builder.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "support/status.h"

namespace taso {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t product(const Shape& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

/// Each axis of a tensor is one of the domain's.
std::vector<PaseAxes> each(const PaseAxes& axes) {
  std::vector<PaseAxes> made;
  for (const std::size_t axis : axes) made.push_back({axis});
  return made;
}

/// 0, 1, ..., count - 1.
PaseAxes first_axes(std::size_t count) {
  PaseAxes axes(count);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return axes;
}

std::vector<PaseAxes> identity(std::size_t rank) { return each(first_axes(rank)); }

std::int64_t windows(std::int64_t extent, std::int64_t size, std::int64_t padding, std::int64_t stride) {
  return (extent - size + 2 * padding) / stride + 1;
}

}  // namespace

PaseLayer& PaseGraphBuilder::add(std::string type, Shape domain, const std::vector<const PaseValue*>& inputs,
                                 PaseWork work) {
  PaseLayer layer;
  layer.type = std::move(type);
  layer.domain = std::move(domain);
  layer.work = std::move(work);
  const auto consumer = static_cast<std::uint32_t>(graph_.layers.size());
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    layer.inputs.push_back({inputs[i]->shape, identity(inputs[i]->shape.size())});
    if (inputs[i]->layer != PaseValue::from_outside)
      graph_.edges.push_back({inputs[i]->layer, inputs[i]->output, consumer, i});
  }
  return graph_.layers.emplace_back(std::move(layer));
}

PaseValue PaseGraphBuilder::output(Shape shape, std::vector<PaseAxes> axes) {
  PaseLayer& layer = graph_.layers.back();
  TASO_CHECK(shape.size() == axes.size(), "an output that does not fit its axes");
  layer.outputs.push_back({shape, std::move(axes)});
  return {std::move(shape), static_cast<std::uint32_t>(graph_.layers.size() - 1),
          static_cast<std::uint32_t>(layer.outputs.size() - 1)};
}

PaseValue PaseGraphBuilder::convolution(const PaseValue& image, std::int64_t filters, std::array<std::int64_t, 2> size,
                                        const PaseWindow& window, int pointwise) {
  TASO_CHECK(image.shape.size() == 4, "a convolution of something else than an image");
  const std::int64_t rows = windows(image.shape[2], size[0], window.padding[0], window.stride);
  const std::int64_t columns = windows(image.shape[3], size[1], window.padding[1], window.stride);
  PaseLayer& layer = add("Conv", {image.shape[0], image.shape[1], rows, columns, size[0], size[1], filters}, {&image},
                         PaseProduct{{}, {0, 2, 3}, {6}, {1, 4, 5}, 1, 1, pointwise});
  layer.pinned = {2, 3};
  return output({image.shape[0], filters, rows, columns}, each({0, 6, 2, 3}));
}

PaseValue PaseGraphBuilder::pooling(const PaseValue& image, std::array<std::int64_t, 2> size,
                                    const PaseWindow& window) {
  TASO_CHECK(image.shape.size() == 4, "a pool of something else than an image");
  const Shape shape = {image.shape[0], image.shape[1],
                       windows(image.shape[2], size[0], window.padding[0], window.stride),
                       windows(image.shape[3], size[1], window.padding[1], window.stride)};
  add("Pooling", shape, {&image}, PasePooling{image.shape, size[0], size[1]});
  return output(shape, identity(4));
}

PaseValue PaseGraphBuilder::fully_connected(const PaseValue& input, std::int64_t units, int pointwise) {
  const std::size_t rank = input.shape.size();
  Shape domain = input.shape, shape = input.shape;
  domain.insert(domain.end() - 1, units);
  shape.back() = units;
  PaseLayer& layer =
      add("FC", domain, {&input}, PaseProduct{{}, first_axes(rank - 1), {rank - 1}, {rank}, 1, 1, pointwise});
  layer.inputs[0].axes.back() = {rank};
  return output(shape, identity(rank));
}

PaseValue PaseGraphBuilder::einsum(std::string_view equation, const PaseValue& first, const PaseValue& second,
                                   int pointwise) {
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string_view left = equation.substr(0, comma), right = equation.substr(comma + 1, arrow - comma - 1);
  const std::string_view result = equation.substr(arrow + 2);
  TASO_CHECK(left.size() == first.shape.size() && right.size() == second.shape.size(), "letters that do not fit");
  std::string letters(result);
  for (const char letter : left)
    if (letters.find(letter) == std::string::npos) letters += letter;
  Shape domain;
  PaseProduct product;
  product.pointwise = pointwise;
  for (std::size_t axis = 0; axis < letters.size(); ++axis) {
    const std::size_t l = left.find(letters[axis]), r = right.find(letters[axis]);
    const bool in_left = l != std::string_view::npos, in_right = r != std::string_view::npos;
    TASO_CHECK(!in_left || !in_right || first.shape[l] == second.shape[r], "operands of different extents");
    domain.push_back(in_left ? first.shape[l] : second.shape[r]);
    PaseAxes& role = !in_right ? product.m : !in_left ? product.n : axis < result.size() ? product.batch : product.k;
    role.push_back(axis);
  }
  const auto axes_of = [&](std::string_view tensor) {
    PaseAxes axes;
    for (const char letter : tensor) axes.push_back(letters.find(letter));
    return each(axes);
  };
  const std::size_t batch_axis = letters.find('b');
  PaseLayer& layer = add("Einsum", domain, {&first, &second}, product);
  layer.batch_axis = batch_axis;
  layer.inputs[0].axes = axes_of(left);
  layer.inputs[1].axes = axes_of(right);
  return output(Shape(domain.begin(), domain.begin() + static_cast<std::ptrdiff_t>(result.size())), axes_of(result));
}

PaseValue PaseGraphBuilder::embedding(const PaseValue& words, std::int64_t vocabulary, std::int64_t units) {
  TASO_CHECK(words.shape.size() == 2, "words that are no [batch, position]");
  const PaseValue one_hot = outside({words.shape[0], words.shape[1], vocabulary});
  return einsum("blv,ve->ble", one_hot, outside({vocabulary, units}));
}

PaseValue PaseGraphBuilder::lstm(const PaseValue& input, std::int64_t layers) {
  TASO_CHECK(input.shape.size() == 3, "cells over something else than [batch, steps, units]");
  const std::int64_t units = input.shape[2];
  // The four gates are one product with four times the units; input and state make twice the inputs.
  PaseLayer& layer = add("LSTM", {layers, input.shape[1], input.shape[0], units, units}, {&input},
                         PaseRecurrence{{{0}, {1, 2}, {3}, {4}, 4, 2, 3}});
  layer.pinned = {1};
  layer.batch_axis = 2;
  layer.inputs[0].axes = each({2, 1, 4});
  return output(input.shape, each({2, 1, 3}));
}

PaseValue PaseGraphBuilder::elementwise(const PaseValue& first, const PaseValue& second, int pointwise) {
  TASO_CHECK(first.shape == second.shape, "operands of different shapes");
  add("Elementwise", first.shape, {&first, &second}, PaseElementwise{pointwise});
  return output(first.shape, identity(first.shape.size()));
}

PaseValue PaseGraphBuilder::norm(const PaseValue& input, std::size_t axis) {
  add("Norm", input.shape, {&input}, PaseNorm{axis});
  return output(input.shape, identity(input.shape.size()));
}

PaseValue PaseGraphBuilder::mean(const PaseValue& input, const PaseAxes& axes) {
  add("ReduceMean", input.shape, {&input}, PaseMean{axes});
  Shape shape;
  PaseAxes kept;
  for (std::size_t axis = 0; axis < input.shape.size(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      shape.push_back(input.shape[axis]);
      kept.push_back(axis);
    }
  return output(shape, each(kept));
}

PaseValue PaseGraphBuilder::softmax(const PaseValue& input, std::size_t axis) {
  add("Softmax", input.shape, {&input}, PaseSoftmax{axis});
  return output(input.shape, identity(input.shape.size()));
}

PaseValue PaseGraphBuilder::cross_entropy(const PaseValue& input) {
  add("SoftmaxCrossEntropy", input.shape, {&input}, PaseCrossEntropy{});
  return output(input.shape, identity(input.shape.size()));
}

PaseValue PaseGraphBuilder::concat(const std::vector<PaseValue>& inputs, std::size_t axis) {
  Shape shape = inputs.at(0).shape;
  shape[axis] = 0;
  std::vector<const PaseValue*> given;
  for (const PaseValue& input : inputs) {
    shape[axis] += input.shape[axis];
    given.push_back(&input);
  }
  Shape domain = shape;
  domain[axis] = 1;
  add("Concat", domain, given, PaseMove{});
  return output(shape, identity(shape.size()));
}

PaseValue PaseGraphBuilder::stack(const std::vector<PaseValue>& inputs) {
  std::vector<const PaseValue*> given;
  for (const PaseValue& input : inputs) given.push_back(&input);
  Shape domain = inputs.at(0).shape;
  domain.insert(domain.begin(), 1);
  PaseLayer& layer = add("Stack", domain, given, PaseMove{});
  PaseAxes axes = first_axes(domain.size());
  axes.erase(axes.begin());
  for (PaseTensor& input : layer.inputs) input.axes = each(axes);
  layer.batch_axis = 1;
  Shape shape = domain;
  shape[0] = static_cast<std::int64_t>(inputs.size());
  return output(shape, identity(shape.size()));
}

std::vector<PaseValue> PaseGraphBuilder::unstack(const PaseValue& input) {
  Shape domain = input.shape;
  domain[0] = 1;
  PaseLayer& layer = add("Unstack", domain, {&input}, PaseMove{});
  layer.batch_axis = 1;
  PaseAxes axes = first_axes(domain.size());
  axes.erase(axes.begin());
  std::vector<PaseValue> values;
  for (std::int64_t i = 0; i < input.shape[0]; ++i)
    values.push_back(output(Shape(domain.begin() + 1, domain.end()), each(axes)));
  return values;
}

PaseValue PaseGraphBuilder::reshape(const PaseValue& input, const Shape& shape) {
  TASO_CHECK(product(input.shape) == product(shape), "a reshape to another number of elements");
  add("Ravel", input.shape, {&input}, PaseMove{}).contiguous = true;
  const PaseValue flat = output({product(shape)}, {first_axes(input.shape.size())});
  PaseLayer& unravel = add("Unravel", shape, {&flat}, PaseMove{});
  unravel.contiguous = true;
  unravel.inputs[0].axes = {first_axes(shape.size())};
  return output(shape, identity(shape.size()));
}

}  // namespace taso
