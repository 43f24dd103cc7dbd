/// How Einsum is imported: operands are multiplied two at a time, from the left, each time as one product of matrices
/// (or of batches of them), between transposes and reshapes. A label that no later operand and not the result has is
/// summed as soon as it can be.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx_io/import_handlers.h"

namespace taso::import_handlers {
namespace {

/// A value with a label for each axis. Axes of an ellipsis have labels of their own, from the last one on.
struct Labelled {
  Value value;
  std::string labels;
};

constexpr char first_of_ellipsis = '\x01';  // Axis i from the end of an ellipsis is this plus i.

bool contains(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// The parts of an equation, without spaces.
struct Equation {
  std::vector<std::string> operands;
  std::optional<std::string> result;
};

std::optional<Equation> parse(std::string text) {
  std::erase(text, ' ');
  Equation equation;
  if (const std::size_t arrow = text.find("->"); arrow != std::string::npos) {
    equation.result = text.substr(arrow + 2);
    text.resize(arrow);
  }
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = text.find(',', begin);
    equation.operands.push_back(text.substr(begin, comma == std::string::npos ? comma : comma - begin));
  }
  return equation;
}

/// The labels of `term` for a tensor of `rank` axes, an ellipsis of as many as are left; nothing if they do not fit.
std::optional<std::string> labels_of(const std::string& term, std::size_t rank) {
  const std::size_t dots = term.find("...");
  const std::size_t named = term.size() - (dots == std::string::npos ? 0 : 3);
  if (named > rank || (dots == std::string::npos && named != rank)) return std::nullopt;
  std::string labels;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (std::size_t k = rank - named; k-- > 0;)
        labels += static_cast<char>(first_of_ellipsis + static_cast<char>(k));
      i += 2;
      continue;
    }
    const char c = term[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return std::nullopt;
    labels += c;
  }
  return labels;
}

/// Labels in order, without those that `without` has; only those that `of` has.
std::string selected(const std::string& labels, const std::string& of, const std::string& without) {
  std::string result;
  for (const char label : labels)
    if (contains(of, label) && !contains(without, label)) result += label;
  return result;
}

Shape extents_of(NodeContext& c, const Labelled& x, const std::string& labels) {
  Shape extents;
  for (const char label : labels) extents.push_back(c.shape_of(x.value)[x.labels.find(label)]);
  return extents;
}

/// `x` with its axes in the order of `labels`, which are a permutation of its own.
Value in_order(NodeContext& c, const Labelled& x, const std::string& labels) {
  if (c.stopped() || x.labels == labels) return x.value;
  Shape perm;
  for (const char label : labels) perm.push_back(static_cast<std::int64_t>(x.labels.find(label)));
  return c.op("transpose", {x.value}, {{"perm", perm}});
}

/// Sums over the axes that `kept` lacks.
Labelled summed(NodeContext& c, Labelled x, const std::string& kept) {
  if (c.stopped()) return x;
  const std::string left = selected(x.labels, kept, "");
  if (left == x.labels) return x;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.labels.size(); ++i)
    if (!contains(kept, x.labels[i]))
      axes.push_back(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(x.labels.size()));
  const Shape shape = extents_of(c, x, left);
  return {c.reshape(c.op("reduce_sum", {x.value}, {{"axes", axes}}), shape), left};
}

/// The product, summed over what both have and `kept` lacks.
Labelled multiplied(NodeContext& c, Labelled a, Labelled b, const std::string& kept) {
  a = summed(c, a, kept + b.labels);
  b = summed(c, b, kept + a.labels);
  if (c.stopped()) return a;
  const std::string batch = selected(selected(a.labels, b.labels, ""), kept, "");
  const std::string inner = selected(a.labels, b.labels, batch);
  const std::string rows = selected(a.labels, a.labels, batch + inner),
                    columns = selected(b.labels, b.labels, batch + inner);
  const Shape of_batch = extents_of(c, a, batch), of_rows = extents_of(c, a, rows), of_inner = extents_of(c, a, inner),
              of_columns = extents_of(c, b, columns);
  for (const char label : batch + inner) {
    if (extents_of(c, a, {label}) == extents_of(c, b, {label})) continue;
    c.decline("an axis is broadcast");
    return a;
  }
  Value left = in_order(c, a, batch + rows + inner), right = in_order(c, b, batch + inner + columns);
  Shape lead = {volume(of_batch)};
  if (batch.empty()) lead.clear();
  const auto with = [](Shape shape, std::int64_t m, std::int64_t n) {
    shape.push_back(m);
    shape.push_back(n);
    return shape;
  };
  left = c.reshape(left, with(lead, volume(of_rows), volume(of_inner)));
  right = c.reshape(right, with(lead, volume(of_inner), volume(of_columns)));
  Shape result = of_batch;
  result.insert(result.end(), of_rows.begin(), of_rows.end());
  result.insert(result.end(), of_columns.begin(), of_columns.end());
  return {c.reshape(c.op("matmul", {left, right}), result), batch + rows + columns};
}

/// What the result has where the equation does not say: the ellipsis, then the labels that occur once, in order.
std::string implied_result(const std::vector<Labelled>& operands) {
  std::map<char, int> counts;
  for (const Labelled& operand : operands)
    for (const char label : operand.labels) ++counts[label];
  std::string ellipsis, result;
  for (const auto& [label, count] : counts) {
    if (label < 'A')
      ellipsis.insert(ellipsis.begin(), label);
    else if (count == 1)
      result += label;
  }
  return ellipsis + result;
}

}  // namespace

void einsum(NodeContext& c) {
  if (!c.has_attribute("equation")) return c.fail("it has no equation");
  const std::string text = c.text("equation", "");
  const std::optional<Equation> equation = parse(text);
  if (!equation || equation->operands.size() != c.input_count())
    return c.fail("equation \"" + text + "\" is not one of " + std::to_string(c.input_count()) + " operands");
  std::vector<Labelled> operands;
  std::size_t ellipsis = 0;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    const auto labels = labels_of(equation->operands[i], c.shape(i).size());
    if (!labels) return c.fail("equation \"" + text + "\" does not fit " + shape_text(c.shape(i)));
    ellipsis = std::max<std::size_t>(ellipsis, static_cast<std::size_t>(std::count_if(labels->begin(), labels->end(),
                                                                                      [](char l) { return l < 'A'; })));
    for (const char label : *labels)
      if (std::count(labels->begin(), labels->end(), label) > 1) return c.decline("it takes a diagonal");
    operands.push_back({c.value(i), *labels});
  }
  std::string result = implied_result(operands);
  if (equation->result) {
    const bool dots = equation->result->find("...") != std::string::npos;
    const auto labels = labels_of(*equation->result, equation->result->size() + (dots ? ellipsis - 3 : 0));
    if (!labels) return c.fail("equation \"" + text + "\" has no result");
    result = *labels;
  }
  for (const char label : result)
    if (std::none_of(operands.begin(), operands.end(), [&](const Labelled& x) { return contains(x.labels, label); }))
      return c.fail("equation \"" + text + "\" has a result with an axis that no operand has");
  Labelled product = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) {
    std::string kept = result;
    for (std::size_t k = i + 1; k < operands.size(); ++k) kept += operands[k].labels;
    product = multiplied(c, product, operands[i], kept);
  }
  product = summed(c, product, result);
  c.output(0, in_order(c, product, result));
}

}  // namespace taso::import_handlers
