#include "runtime/layout_choices.h"

#include <algorithm>
#include <utility>

#include "runtime/strides.h"

namespace taso {
namespace {

using Kind = Configuration::Kind;

/// A view, and one that claims its input if its output may become a piece of a concatenation.
void add_view(Choices& choices, const Node& node, Layout from, Layout to, std::vector<std::int64_t> offsets,
              bool piece) {
  Configuration view;
  view.kind = Kind::view;
  view.inputs = {from};
  view.outputs.assign(node.outputs.size(), to);
  view.offsets = std::move(offsets);
  choices.push_back(std::make_shared<const Configuration>(view));
  if (!piece) return;
  view.claims = true;
  choices.push_back(std::make_shared<const Configuration>(std::move(view)));
}

/// Layouts of a follower besides row_major: those its operands may be there in.
std::vector<Layout> follower_layouts(const Node& node, const Behaviour& traits, std::span<const OperandLayouts> in) {
  std::vector<Layout> layouts = {Layout::row_major};
  const std::size_t rank = node.outputs[0].shape.size();
  LayoutSet available = 0;
  for (const OperandLayouts& input : in)
    if (!input.weight && input.type->shape.size() == rank) available |= input.available;
  for (const Layout layout : all_layouts) {
    if (layout == Layout::row_major || (available & set_of(layout)) == 0) continue;
    const bool blocks = block_of(layout) != 0;
    if (blocks ? !traits.blocks : layout != Layout::channels_last && !traits.any_order) continue;
    const auto possible = [&](const TensorType& type) {
      return has_layouts(type.element) && type.shape.size() == rank && fits(layout, type.shape);
    };
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), possible)) continue;
    // Of a concatenation and a split, every piece is whole blocks.
    if (blocks && traits.view != ViewKind::none &&
        !std::all_of(in.begin(), in.end(), [&](const OperandLayouts& input) { return possible(*input.type); }))
      continue;
    layouts.push_back(layout);
  }
  return layouts;
}

}  // namespace

std::shared_ptr<const Configuration> LayoutChoices::kernel_choice(const Node& node, Operands in,
                                                                  std::vector<Layout> inputs,
                                                                  std::vector<Layout> outputs) {
  std::vector<OperandView> operands;
  for (std::size_t i = 0; i < in.size(); ++i) operands.push_back({in[i].type, inputs[i], in[i].weight});
  auto made = std::make_shared<Configuration>();
  made->kernel = kernels_.of_node(node, operands, outputs);
  made->inputs = std::move(inputs);
  made->outputs = std::move(outputs);
  return made;
}

Choices LayoutChoices::of(const Node& node, const Behaviour& traits, Operands in,
                          const ReaderPreferences& preferences) {
  Choices choices;
  switch (traits.view) {
    case ViewKind::reshape:
      add_view(choices, node, Layout::row_major, Layout::row_major, {0}, preferences.piece);
      if (*in[0].type == node.outputs[0])
        for (const Layout layout : all_layouts)
          if (layout != Layout::row_major && (in[0].available & set_of(layout)) != 0)
            add_view(choices, node, layout, layout, {0}, preferences.piece);
      return choices;
    case ViewKind::broadcast:
      if (in[0].type->elements() != node.outputs[0].elements()) break;
      add_view(choices, node, Layout::row_major, Layout::row_major, {0}, preferences.piece);
      return choices;
    case ViewKind::transpose:
      return transposes(node, in, preferences);
    case ViewKind::none:
    case ViewKind::split:
    case ViewKind::slice:
    case ViewKind::concat:
      break;
  }
  switch (traits.preference) {
    case LayoutPreference::row:
      choices.push_back(kernel_choice(node, in, std::vector<Layout>(in.size(), Layout::row_major),
                                      std::vector<Layout>(node.outputs.size(), Layout::row_major)));
      break;
    case LayoutPreference::spatial:
    case LayoutPreference::channel:
      operators_on_images(choices, node, traits, in);
      break;
    case LayoutPreference::follower:
      for (const Layout layout : follower_layouts(node, traits, in))
        follow(choices, node, traits, in, preferences, layout);
      break;
    case LayoutPreference::product:
      products(choices, node, in, preferences);
      break;
  }
  return choices;
}

/// Images in one layout, all else rows.
void LayoutChoices::operators_on_images(Choices& choices, const Node& node, const Behaviour& traits, Operands in) {
  const auto images_in = [&](Layout layout, const auto& is_possible) {
    std::vector<Layout> inputs(in.size(), Layout::row_major);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (traits.is_image(i) && is_possible(*in[i].type)) inputs[i] = layout;
    choices.push_back(kernel_choice(node, in, std::move(inputs), std::vector<Layout>(node.outputs.size(), layout)));
  };
  const auto always = [](const TensorType&) { return true; };
  if (traits.preference == LayoutPreference::channel) {
    images_in(Layout::row_major, always);
    if (can_be_channels_last(*in[0].type) && (in[0].available & set_of(Layout::channels_last)) != 0)
      images_in(Layout::channels_last, always);
    return;
  }
  if (can_be_channels_last(node.outputs[0])) images_in(Layout::channels_last, always);
  images_in(Layout::row_major, always);
  // A first convolution reads three channels as rows.
  if (blocks_ && can_be_blocked(node, in))
    images_in(*blocks_, [&](const TensorType& type) { return fits(*blocks_, type.shape); });
}

/// Whether there are fast kernels with the result in blocks of channels: groups are whole blocks or single channels,
/// and poolings are not dilated.
bool LayoutChoices::can_be_blocked(const Node& node, Operands in) const {
  const Shape& x = in[0].type->shape;
  const Shape& y = node.outputs[0].shape;
  const std::int64_t block = block_of(*blocks_);
  if (!can_be_channels_last(node.outputs[0]) || !fits(*blocks_, y)) return false;
  if (in.size() == 1) {
    const AttributeValue* dilations = node.attributes.find("dilations");
    return fits(*blocks_, x) &&
           (dilations == nullptr || std::get<std::vector<std::int64_t>>(*dilations) == std::vector<std::int64_t>{1, 1});
  }
  const Shape& k = in[1].type->shape;
  const std::int64_t groups = k[1] == 0 ? 0 : x[1] / k[1];
  if (groups == 1) return true;
  if (!fits(*blocks_, x)) return false;
  return groups == x[1] ? y[1] == x[1] : groups > 0 && k[1] % block == 0 && (y[1] / groups) % block == 0;
}

void LayoutChoices::follow(Choices& choices, const Node& node, const Behaviour& traits, Operands in,
                           const ReaderPreferences& preferences, Layout layout) {
  const std::size_t rank = node.outputs[0].shape.size();
  std::vector<Layout> inputs;
  for (const OperandLayouts& input : in) {
    const bool follows =
        input.type->shape.size() == rank && has_layouts(input.type->element) &&
        (block_of(layout) == 0 || traits.view != ViewKind::none || input.type->shape == node.outputs[0].shape);
    inputs.push_back(follows ? layout : Layout::row_major);
  }
  std::optional<std::vector<std::int64_t>> offsets;
  if (traits.view == ViewKind::split) offsets = split_offsets(node, *in[0].type, layout);
  if (traits.view == ViewKind::slice) offsets = slice_offsets(node, *in[0].type, layout);
  if (offsets) {
    add_view(choices, node, layout, layout, std::move(*offsets), false);
    return;
  }
  const std::vector<Layout> outputs(node.outputs.size(), layout);
  if (traits.view == ViewKind::concat && preferences.in_place &&
      is_outermost(node.outputs[0].shape, layout, axis_of(node.attributes.integer("axis"), rank))) {
    auto made = std::make_shared<Configuration>();
    made->kind = Kind::in_place;
    made->inputs = inputs;
    made->outputs = outputs;
    choices.push_back(std::move(made));
  }
  choices.push_back(kernel_choice(node, in, std::move(inputs), outputs));
}

Choices LayoutChoices::transposes(const Node& node, Operands in, const ReaderPreferences& preferences) {
  Choices choices;
  const TensorType& output = node.outputs[0];
  for (const Layout from : orders) {
    if (from != Layout::row_major && (in[0].available & set_of(from)) == 0) continue;
    bool simple = false;  // a view in a layout that every reader knows
    for (const Layout to : orders) {
      if (!fits(to, output.shape) || canonical(output.shape, to) != to) continue;
      if (to != Layout::row_major && !has_layouts(output.element)) continue;
      if (!transpose_moves_nothing(node, *in[0].type, from, to)) continue;
      add_view(choices, node, from, to, {0}, preferences.piece);
      simple = simple || to == Layout::row_major || to == Layout::channels_last;
    }
    if (simple) continue;
    choices.push_back(kernel_choice(node, in, {from}, {Layout::row_major}));
    if (preferences.images && can_be_channels_last(output))
      choices.push_back(kernel_choice(node, in, {from}, {Layout::channels_last}));
  }
  return choices;
}

void LayoutChoices::products(Choices& choices, const Node& node, Operands in, const ReaderPreferences& preferences) {
  constexpr LayoutSet matrices =
      set_of(Layout::column_major) | set_of(Layout::rows_outer) | set_of(Layout::columns_outer);
  std::vector<std::vector<Layout>> options(3, {Layout::row_major});
  const bool floats = has_layouts(node.outputs[0].element);
  for (std::size_t i = 0; i < 2 && floats; ++i)
    for (const Layout layout : all_layouts)
      if (!in[i].weight && (in[i].available & matrices & set_of(layout)) != 0) options[i].push_back(layout);
  for (const Layout layout : all_layouts)
    if (floats && (preferences.transposed & matrices & set_of(layout)) != 0) options[2].push_back(layout);
  for (const Layout a : options[0])
    for (const Layout b : options[1])
      for (const Layout y : options[2]) {
        std::vector<Layout> inputs(in.size(), Layout::row_major);
        inputs[0] = a;
        inputs[1] = b;
        choices.push_back(kernel_choice(node, in, std::move(inputs), {y}));
      }
}

}  // namespace taso
