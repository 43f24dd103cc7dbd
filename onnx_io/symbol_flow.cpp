#include "onnx_io/symbol_flow.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace taso {
namespace {

constexpr std::int64_t element_flag = 1, shape_flag = 2;

/// Operators whose outputs have rounded extents, or whose pads follow from extents: what they do at a few sizes of
/// images says little of others.
bool rounds_extents(const std::string& op_type) {
  static const std::set<std::string> some = {"AveragePool", "Col2Im",      "Conv",   "ConvInteger", "ConvTranspose",
                                             "DeformConv",  "GridSample",  "LpPool", "MaxPool",     "MaxRoiPool",
                                             "MaxUnpool",   "QLinearConv", "Resize", "RoiAlign",    "Upsample"};
  return some.contains(op_type);
}

std::shared_ptr<const ConstantData> repeated(const Shape& shape, std::int64_t value) {
  std::vector<std::byte> element(sizeof value);
  std::memcpy(element.data(), &value, sizeof value);
  return shape.empty() ? ConstantData::of_integers({}, std::span(&value, 1))
                       : ConstantData::splat({ElementType::i64, shape, true}, std::move(element));
}

/// Whether a Range counts up from 0: it has as many elements as its limit says.
bool in_steps_of_one(const std::vector<NodeContext::Input>& inputs) {
  const auto is = [&](std::size_t i, std::int64_t number) {
    return i < inputs.size() && inputs[i].constant != nullptr &&
           inputs[i].constant->to_integers() == std::vector{number};
  };
  return is(0, 0) && is(2, 1);
}

bool has(const ConstantData& flags, std::int64_t least) {
  const std::vector<std::int64_t> each = flags.to_integers();
  return std::any_of(each.begin(), each.end(), [&](std::int64_t flag) { return flag >= least; });
}

}  // namespace

void SymbolFlow::begin(const std::vector<Symbol>& symbols, const ImportOptions& options, bool rounding) {
  if (options.symbol_sizes.empty()) return;
  const bool beyond_batch = std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& symbol) {
    return symbol.axis > 0 && options.symbol_sizes.contains(symbol.name);
  });
  const auto& nodes = document_->graph().node();
  rounding = rounding || std::any_of(nodes.begin(), nodes.end(),
                                     [](const onnx::NodeProto& node) { return rounds_extents(node.op_type()); });
  sizes_ = beyond_batch && rounding ? NodeContext::Sizes::rounded : NodeContext::Sizes::some;
}

std::string SymbolFlow::fold(const NodeContext& context, const ConstantData& folded) {
  if (sizes_ == NodeContext::Sizes::all) return "";
  const std::string& op = context.proto().op_type();
  const auto& inputs = context.inputs();
  const auto flows_from = [&](std::size_t i) { return i < inputs.size() && inputs[i].from_symbols; };
  Flags flags;
  if (op == "Shape" || op == "Size") {
    if (context.is_constant(0) && !flows_from(0)) return "";
    if (sizes_ == NodeContext::Sizes::rounded) return "extents that may be rounded are not known at all sizes";
    flags = repeated(folded.type().shape, element_flag);
  } else {
    bool any = false, beyond_first = false, shaped = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!flows_from(i)) continue;
      any = true;
      beyond_first = beyond_first || i > 0;
      shaped = shaped || has(*flags_[static_cast<std::size_t>(inputs[i].tensor)], shape_flag);
    }
    if (!any) return "";
    const std::string wrong = op + " of symbolic extents is not known at all sizes";
    static const std::set<std::string> moving = {"Concat",  "Gather",  "Slice",    "Unsqueeze",
                                                 "Squeeze", "Reshape", "Identity", "Transpose"};
    static const std::set<std::string> linear = {"Add", "Sub", "Mul", "Neg"};
    const bool integers = folded.type().element == ElementType::i64;
    if (moving.contains(op) || (op == "Cast" && integers)) {
      // Of a list whose length is symbolic, positions are not known.
      if ((beyond_first && op != "Concat") || (shaped && op != "Unsqueeze" && op != "Reshape" && op != "Identity"))
        return wrong;
      flags = moved(context);
      if (!flags) return wrong;
      if (!has(*flags, element_flag)) return "";
    } else if (linear.contains(op) && integers) {
      flags = repeated(folded.type().shape, shaped ? shape_flag : element_flag);
    } else if (op == "ConstantOfShape" || (op == "Expand" && !flows_from(0)) ||
               (op == "Range" && !flows_from(0) && !flows_from(2) && integers && in_steps_of_one(inputs))) {
      flags = repeated(folded.type().shape, shape_flag);
    } else {
      return wrong;
    }
  }
  const int tensor = document_->find(context.proto().output(0));
  if (tensor >= 0) flags_[static_cast<std::size_t>(tensor)] = std::move(flags);
  return "";
}

/// The flags of the output of an operator that moves elements: what it makes of the flags of its data.
SymbolFlow::Flags SymbolFlow::moved(const NodeContext& context) const {
  const std::string& op = context.proto().op_type();
  std::vector<NodeContext::Input> inputs = context.inputs();
  for (std::size_t i = 0; i < inputs.size() && (i == 0 || op == "Concat"); ++i) {
    if (!inputs[i].constant) return nullptr;
    const Flags& known = flags_[static_cast<std::size_t>(inputs[i].tensor)];
    const Shape shape = inputs[i].constant->type().shape;
    const std::vector<std::int64_t> none(static_cast<std::size_t>(inputs[i].constant->type().elements()), 0);
    inputs[i].constant = known ? known : ConstantData::of_integers(shape, none);
    inputs[i].type = inputs[i].constant->type();
  }
  if (op == "Identity") return inputs[0].constant;
  NodeContext flags = context.with_inputs(std::move(inputs));
  return fold_integers(flags);
}

std::string SymbolFlow::misuse(const NodeContext& context) {
  static const std::set<std::string> fit = {"Reshape", "Expand", "Slice", "Gather"};
  for (std::size_t i = 0; i < context.input_count(); ++i)
    if (context.inputs()[i].from_symbols && context.type(i).element != ElementType::f32 &&
        (i == 0 || !fit.contains(context.proto().op_type())))
      return "input " + std::to_string(i) + " follows from symbolic extents";
  return "";
}

}  // namespace taso
