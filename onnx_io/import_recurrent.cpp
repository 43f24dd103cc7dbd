/// How LSTM, GRU and RNN are imported: unrolled, where the number of steps is a small number, else as operators of
/// ours.
///
/// The operators (specs/operators/recurrent.op) have parameters as ONNX has them, and all of them: a bias or an initial
/// state that is not given is zero. They are written back as one node, without what is zero.
///
/// Of what is unrolled: what reads the sequence alone is one product for all steps and directions, [steps, batch,
/// directions * gates * hidden], and gates with one activation function are computed together: forms in which nothing
/// is left to merge. A state is [1, batch, hidden] throughout, so that no reshape stands at the node's borders, where
/// it would merge with one outside. A state that is not given is zero, and what it would be multiplied by is left out.

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx_io/import_handlers.h"

namespace taso::import_handlers {
namespace {

/// Longer sequences stay one operator: runtimes have fast kernels for them, and a file of so many nodes serves nobody.
constexpr std::int64_t most_steps = 4;

/// A scalar function by ONNX's name, with its parameters.
struct Activation {
  std::string name;  ///< In small letters.
  double alpha = 0, beta = 0;
};

/// What is known of a name: how many of `activation_alpha` and `activation_beta` it takes, and their defaults.
struct KnownActivation {
  const char* name;
  bool takes_alpha, takes_beta;
  double alpha, beta;
};
constexpr std::array<KnownActivation, 9> known_activations = {{{"affine", true, true, 1, 0},
                                                               {"elu", true, false, 1, 0},
                                                               {"hardsigmoid", true, true, 0.2F, 0.5},
                                                               {"leakyrelu", true, false, 0.01F, 0},
                                                               {"relu", false, false, 0, 0},
                                                               {"scaledtanh", true, true, 1, 1},
                                                               {"sigmoid", false, false, 0, 0},
                                                               {"softsign", false, false, 0, 0},
                                                               {"tanh", false, false, 0, 0}}};

/// What the three operators have in common, as the node says it.
struct Recurrence {
  std::int64_t steps = 0, batch = 0, directions = 0, gates = 0, hidden = 0;
  bool backward = false;                ///< Of the first direction.
  bool batch_first = false;             ///< layout=1
  bool unrolled = false;                ///< Else one operator.
  std::vector<Activation> activations;  ///< All of the first direction, then of the second one.
  /// Per direction and step: what the sequence and the biases that stand beside it give, [1, batch, gates * hidden].
  std::vector<std::vector<Value>> projected;
};

Value filled(NodeContext& c, double number, Value like) {
  return c.broadcast(c.splat({}, static_cast<float>(number)), c.shape_of(like));
}

Value scaled_by(NodeContext& c, Value x, double factor) {
  return c.stopped() || factor == 1 ? x : c.op("mul", {x, filled(c, factor, x)});
}

Value plus(NodeContext& c, Value x, double term) {
  return c.stopped() || term == 0 ? x : c.op("add", {x, filled(c, term, x)});
}

/// x where it is below 0, else 0.
Value below_zero(NodeContext& c, Value x) {
  return c.op("clip", {x}, {{"min", -std::numeric_limits<double>::infinity()}, {"max", 0.0}});
}

Value activated(NodeContext& c, const Activation& f, Value x) {
  if (c.stopped()) return {};
  if (f.name == "sigmoid" || f.name == "tanh" || f.name == "relu") return c.op(f.name, {x});
  if (f.name == "affine") return plus(c, scaled_by(c, x, f.alpha), f.beta);
  if (f.name == "scaledtanh") return scaled_by(c, c.op("tanh", {scaled_by(c, x, f.beta)}), f.alpha);
  if (f.name == "hardsigmoid")
    return c.op("clip", {plus(c, scaled_by(c, x, f.alpha), f.beta)}, {{"min", 0.0}, {"max", 1.0}});
  if (f.name == "softsign") return c.op("div", {x, plus(c, c.op("abs", {x}), 1)});
  Value below = below_zero(c, x);
  below = f.name == "elu" ? exponential_less_one(c, below, f.alpha, 1) : scaled_by(c, below, f.alpha);
  return c.op("add", {c.op("relu", {x}), below});
}

/// The functions that the node names, or the defaults, `count` for each direction; declines where one is not known.
std::vector<Activation> activations_of(NodeContext& c, const std::vector<std::string>& defaults,
                                       std::int64_t directions) {
  std::vector<std::string> names = c.text_list("activations");
  if (names.empty())
    for (std::int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != defaults.size() * at(directions))
    c.fail("it names " + std::to_string(names.size()) + " activation functions, " +
           std::to_string(defaults.size() * at(directions)) + " were expected");
  // As runtimes read them: functions that have a parameter take the next one of the list.
  const std::vector<double> alphas = c.real_list("activation_alpha"), betas = c.real_list("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> functions;
  for (std::string name : names) {
    std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
    const auto* const known =
        std::ranges::find_if(known_activations, [&](const auto& one) { return one.name == name; });
    if (known == known_activations.end()) {
      c.decline("its activation function " + name + " is not modelled");
      return {};
    }
    if (name == "scaledtanh" && (next_alpha == alphas.size() || next_beta == betas.size())) {
      c.decline("ONNX has no defaults for the parameters of ScaledTanh, and the node does not give both");
      return {};
    }
    Activation function{name, known->alpha, known->beta};
    if (known->takes_alpha && next_alpha < alphas.size()) function.alpha = alphas[next_alpha++];
    if (known->takes_beta && next_beta < betas.size()) function.beta = betas[next_beta++];
    functions.push_back(std::move(function));
  }
  return functions;
}

/// Whether an optional input is a known tensor of the node's type and of this shape; declines or fails where not.
bool has_parameter(NodeContext& c, std::size_t i, const Shape& expected) {
  if (c.stopped() || !c.has_input(i)) return false;
  if (!c.type(i).known) return c.decline_untyped(), false;
  if (c.type(i).element != c.real_type() || c.shape(i) != expected) {
    c.fail("input " + std::to_string(i) + " is " + to_string(c.type(i)) + ", " +
           to_string(TensorType{c.real_type(), expected, true}) + " was expected");
    return false;
  }
  return true;
}

/// Parts of these sizes along an axis that is counted from the end.
std::vector<Value> parts_of(NodeContext& c, Value value, std::int64_t axis, const Shape& sizes) {
  if (c.stopped()) return std::vector<Value>(sizes.size());
  if (sizes.size() == 1) return {value};
  const Value first = c.op("split", {value}, {{"axis", axis}, {"sizes", sizes}});
  std::vector<Value> parts;
  for (std::uint32_t port = 0; port < sizes.size(); ++port) parts.push_back({first.node, port});
  return parts;
}

/// The matrix of one direction, [gates * hidden, columns], transposed.
Value transposed(NodeContext& c, Value matrix) { return c.op("transpose", {matrix}, {{"perm", Shape{1, 0}}}); }

/// Reads what the three have in common; nothing if the node is declined or wrong.
std::optional<Recurrence> read_recurrence(NodeContext& c, std::int64_t gates,
                                          const std::vector<std::string>& default_activations) {
  Recurrence r;
  r.gates = gates;
  const std::string direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    c.fail("direction=" + direction + " is none of forward, reverse and bidirectional");
    return std::nullopt;
  }
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.backward = direction == "reverse";
  r.batch_first = c.integer("layout", 0) != 0;
  r.activations = activations_of(c, default_activations, r.directions);
  if (c.has_attribute("clip")) c.decline("it clips what activation functions read");
  if (c.stopped()) return std::nullopt;
  if (c.rank(0) != 3 || c.rank(2) != 3) {
    c.fail("its sequence " + shape_text(c.shape(0)) + " and its weights " + shape_text(c.shape(2)) +
           " must have three axes each");
    return std::nullopt;
  }
  r.steps = c.shape(0)[r.batch_first ? 1 : 0];
  r.batch = c.shape(0)[r.batch_first ? 0 : 1];
  r.hidden = c.shape(2)[2];
  const std::int64_t width = gates * r.hidden;
  if (const std::int64_t hidden = c.integer("hidden_size", r.hidden); hidden != r.hidden)
    c.fail("hidden_size=" + std::to_string(hidden) + ", its weights are of " + std::to_string(r.hidden));
  has_parameter(c, 1, {r.directions, width, c.shape(0)[2]});
  has_parameter(c, 2, {r.directions, width, r.hidden});
  has_parameter(c, 3, {r.directions, 2 * width});
  if (c.has_input(4)) {
    if (c.symbolic())
      c.decline("whether its sequences are of one length is not known at all sizes", Obstacle::symbolic);
    const std::vector<std::int64_t> lengths = c.integers(4);
    if (!std::ranges::all_of(lengths, [&](std::int64_t length) { return length == r.steps; }))
      c.decline("its sequences are of several lengths");
  }
  // At symbolic extents it is one thing at all sizes.
  r.unrolled = !c.symbolic() && r.steps <= most_steps;
  if (c.stopped()) return std::nullopt;
  return r;
}

/// A parameter of an operator of ours: an input, or zeros of that shape.
Value given_or_zero(NodeContext& c, std::size_t input, const Shape& shape) {
  if (!has_parameter(c, input, shape)) return c.broadcast(c.splat({}, 0), shape);
  return c.value(input);
}

/// An initial state, [directions, batch, hidden]. Where it is made of zeros it is as if it was not given.
Value initial_state(NodeContext& c, const Recurrence& r, std::size_t input) {
  const Shape shape = {r.directions, r.batch, r.hidden};
  const Shape own = r.batch_first ? Shape{r.batch, r.directions, r.hidden} : shape;
  if (!has_parameter(c, input, own)) return c.broadcast(c.splat({}, 0), shape);
  const Value value = c.value(input);  // The node reads it all the same.
  if (c.is_zero(input)) return c.broadcast(c.splat({}, 0), shape);
  return r.batch_first ? c.op("transpose", {value}, {{"perm", Shape{1, 0, 2}}}) : value;
}

/// The node as one operator of ours, with `states` initial states.
void as_operator(NodeContext& c, const Recurrence& r, const char* op, std::size_t states, Attributes attributes) {
  const Value x = r.batch_first ? c.op("transpose", {c.value(0)}, {{"perm", Shape{1, 0, 2}}}) : c.value(0);
  std::vector<Value> operands = {x, c.value(1), c.value(2),
                                 given_or_zero(c, 3, {r.directions, 2 * r.gates * r.hidden})};
  for (std::size_t i = 0; i < states; ++i) operands.push_back(initial_state(c, r, 5 + i));
  attributes.set("forward", r.backward ? 0 : 1);
  const Value layer = c.op(op, operands, attributes);
  for (std::uint32_t port = 0; port <= states && !c.stopped(); ++port) {
    if (!c.uses_output(port)) continue;
    Value y{layer.node, port};
    if (port > 0) y = c.reshape(y, {r.directions, r.batch, r.hidden});
    if (r.batch_first) y = c.op("transpose", {y}, {{"perm", port == 0 ? Shape{2, 0, 1, 3} : Shape{1, 0, 2}}});
    c.output(port, y);
  }
}

std::string too_long() { return " is modelled for at most " + std::to_string(most_steps) + " steps"; }

/// Declines where a direction has other functions than these.
void require_functions(NodeContext& c, const Recurrence& r, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < r.activations.size(); ++i)
    if (const std::string& name = r.activations[i].name; name != names[i % names.size()])
      c.decline("with the activation function " + name + " in place of " + names[i % names.size()] + " it" +
                too_long());
}

/// The biases of all directions, [directions * gates * hidden]: of the sequence and of the state, both null if there
/// are none.
std::pair<std::optional<Value>, std::optional<Value>> biases(NodeContext& c, const Recurrence& r) {
  if (!c.has_input(3)) return {};
  const std::int64_t width = r.gates * r.hidden;
  const std::vector<Value> halves = parts_of(c, c.value(3), -1, {width, width});
  return {c.reshape(halves[0], {r.directions * width}), c.reshape(halves[1], {r.directions * width})};
}

/// Of more than two axes ONNX writes these as two nodes, too.
Value product_and_bias(NodeContext& c, Value x, Value weights, std::optional<Value> bias) {
  const Value product = c.op("matmul", {x, weights});
  return bias && !c.stopped() ? c.op("add", {product, c.broadcast(*bias, c.shape_of(product))}) : product;
}

/// Multiplies the sequence with its weights, all steps and directions at once.
void project(NodeContext& c, Recurrence& r, std::optional<Value> bias) {
  const std::int64_t width = r.directions * r.gates * r.hidden;
  Value x = c.value(0);
  if (r.batch_first) x = c.op("transpose", {x}, {{"perm", Shape{1, 0, 2}}});
  const Value weights = transposed(c, c.reshape(c.value(1), {width, c.shape(0)[2]}));
  const Value product = product_and_bias(c, x, weights, bias);
  // By steps between two splits of gates, which would be one.
  for (const Value part : parts_of(c, product, -1, Shape(at(r.directions), r.gates * r.hidden)))
    r.projected.push_back(parts_of(c, part, -3, Shape(at(r.steps), 1)));
}

/// The matrices or vectors of a parameter, one for each direction: what stands at its first axis.
std::vector<Value> per_direction(NodeContext& c, const Recurrence& r, Value parameter, const Shape& shape) {
  std::vector<Value> parts;
  const auto rank = static_cast<std::int64_t>(shape.size());
  for (const Value part : parts_of(c, parameter, -rank - 1, Shape(at(r.directions), 1)))
    parts.push_back(c.reshape(part, shape));
  return parts;
}

/// Matrices that multiply a state, one for each direction, [gates * hidden, hidden]; none where no step has one.
std::vector<Value> state_weights(NodeContext& c, const Recurrence& r) {
  if (c.stopped()) return {};
  if (r.steps == 1 && !c.has_input(5)) {
    if (!c.is_constant(2)) c.value(2);  // The node reads it all the same.
    return {};
  }
  return per_direction(c, r, c.value(2), {r.gates * r.hidden, r.hidden});
}

/// Initial states of all directions from an input, or none.
std::vector<std::optional<Value>> initial_states(NodeContext& c, const Recurrence& r, std::size_t input) {
  std::vector<std::optional<Value>> states(at(r.directions));
  const Shape shape = r.batch_first ? Shape{r.batch, r.directions, r.hidden} : Shape{r.directions, r.batch, r.hidden};
  if (!has_parameter(c, input, shape)) return states;
  Value value = c.value(input);
  if (r.batch_first) value = c.op("transpose", {value}, {{"perm", Shape{1, 0, 2}}});
  std::ranges::copy(parts_of(c, value, -3, Shape(at(r.directions), 1)), states.begin());
  return states;
}

/// States of all directions, [directions, batch, hidden].
Value together(NodeContext& c, const std::vector<Value>& states) {
  return states.size() == 1 ? states[0] : c.op("concat", states, {{"axis", -3}});
}

void output_state(NodeContext& c, const Recurrence& r, std::size_t output, const std::vector<Value>& states) {
  if (!c.uses_output(output) || c.stopped()) return;
  Value y = together(c, states);
  if (r.batch_first) y = c.op("transpose", {y}, {{"perm", Shape{1, 0, 2}}});
  c.output(output, y);
}

/// States of all directions at all steps, in the steps' order, as the sequence that the node makes.
void output_sequence(NodeContext& c, const Recurrence& r, const std::vector<std::vector<Value>>& states) {
  if (!c.uses_output(0) || c.stopped()) return;
  std::vector<Value> steps;
  for (const std::vector<Value>& step : states)
    steps.push_back(c.reshape(together(c, step), {1, r.directions, r.batch, r.hidden}));
  Value y = steps.size() == 1 ? steps[0] : c.op("concat", steps, {{"axis", -4}});
  if (r.batch_first) y = c.op("transpose", {y}, {{"perm", Shape{2, 0, 1, 3}}});
  c.output(0, y);
}

/// Runs a recurrence in each direction: `next` makes a step of a direction, from what the sequence gives there, and
/// returns the state that is the node's output. Sets the first two outputs.
template <class Next>
void unroll(NodeContext& c, const Recurrence& r, const Next& next) {
  std::vector<std::vector<Value>> states(at(r.steps), std::vector<Value>(at(r.directions)));
  std::vector<Value> last;
  for (std::int64_t d = 0; d < r.directions && !c.stopped(); ++d) {
    const bool backward = r.backward || d == 1;
    for (std::int64_t i = 0; i < r.steps; ++i) {
      const std::int64_t step = backward ? r.steps - 1 - i : i;
      states[at(step)][at(d)] = next(at(d), r.projected[at(d)][at(step)]);
    }
    last.push_back(states[at(backward ? 0 : r.steps - 1)][at(d)]);
  }
  output_sequence(c, r, states);
  output_state(c, r, 1, last);
}

Value sum_of(NodeContext& c, Value x, std::optional<Value> y) { return y ? c.op("add", {x, *y}) : x; }

}  // namespace

/// h' = f(x W^T + h R^T + biases)
void recurrent(NodeContext& c) {
  std::optional<Recurrence> r = read_recurrence(c, 1, {"Tanh"});
  if (!r) return;
  if (!r->unrolled) {
    const std::string& function = r->activations[0].name;
    if (function != "tanh" && function != "relu" && function != "sigmoid")
      c.decline("with the activation function " + function + " it" + too_long());
    if (function != r->activations.back().name) c.decline("with several activation functions it" + too_long());
    return as_operator(c, *r, "rnn", 1, {{"act", SymbolValue{function}}});
  }
  std::vector<std::optional<Value>> state = initial_states(c, *r, 5);
  const auto [bias, state_bias] = biases(c, *r);
  project(c, *r, bias ? std::optional(c.op("add", {*bias, *state_bias})) : bias);
  std::vector<Value> weights;
  for (const Value part : state_weights(c, *r)) weights.push_back(transposed(c, part));
  unroll(c, *r, [&](std::size_t d, Value x) {
    if (state[d]) x = c.op("add", {c.op("matmul", {*state[d], weights[d]}), x});
    state[d] = activated(c, r->activations[d], x);
    return *state[d];
  });
}

/// i, o, f = f(x W^T + h R^T + biases + P c), c' = f * c + i * g(..), h' = o * h(c'); to o, P gives c'.
void long_short_term_memory(NodeContext& c) {
  std::optional<Recurrence> r = read_recurrence(c, 4, {"Sigmoid", "Tanh", "Tanh"});
  if (!r) return;
  if (c.integer("input_forget", 0) != 0) return c.decline("its gates are coupled");
  if (!r->unrolled) {
    require_functions(c, *r, {"sigmoid", "tanh", "tanh"});
    if (c.has_input(7)) {
      if (!c.is_zero(7)) c.decline("with peepholes it" + too_long());
      if (!c.stopped() && !c.is_constant(7)) c.value(7);  // The node reads it all the same.
    }
    return as_operator(c, *r, "lstm", 2, {});
  }
  const std::int64_t hidden = r->hidden;
  std::vector<std::optional<Value>> state = initial_states(c, *r, 5), cell = initial_states(c, *r, 6);
  std::vector<std::vector<Value>> peepholes;  // Per direction: of i, o and f, repeated for the batch.
  if (has_parameter(c, 7, {r->directions, 3 * hidden})) {
    for (const Value part : per_direction(c, *r, c.value(7), {3 * hidden})) {
      peepholes.push_back(parts_of(c, part, -1, {hidden, hidden, hidden}));
      for (Value& vector : peepholes.back())
        if (!c.stopped()) vector = c.broadcast(vector, {1, r->batch, hidden});
    }
  }
  const auto [bias, state_bias] = biases(c, *r);
  project(c, *r, bias ? std::optional(c.op("add", {*bias, *state_bias})) : bias);
  std::vector<Value> weights;
  for (const Value part : state_weights(c, *r)) weights.push_back(transposed(c, part));
  std::vector<Value> last_cell(at(r->directions));
  unroll(c, *r, [&](std::size_t d, Value x) {
    const Activation* const f = &r->activations[3 * d];
    if (state[d]) x = c.op("add", {c.op("matmul", {*state[d], weights[d]}), x});
    std::optional<Value> before = cell[d];
    Value in, out, forget, fresh;
    if (peepholes.empty()) {
      const std::vector<Value> kinds = parts_of(c, x, -1, {3 * hidden, hidden});
      const std::vector<Value> gates = parts_of(c, activated(c, f[0], kinds[0]), -1, {hidden, hidden, hidden});
      in = gates[0], out = gates[1], forget = gates[2], fresh = kinds[1];
    } else {
      const std::vector<Value> gates = parts_of(c, x, -1, {hidden, hidden, hidden, hidden});
      const auto with = [&](Value gate, std::size_t i) {
        return before ? c.op("add", {gate, c.op("mul", {peepholes[d][i], *before})}) : gate;
      };
      in = activated(c, f[0], with(gates[0], 0)), forget = activated(c, f[0], with(gates[2], 2));
      out = gates[1], fresh = gates[3];
    }
    Value now = c.op("mul", {in, activated(c, f[1], fresh)});
    if (before) now = c.op("add", {c.op("mul", {forget, *before}), now});
    if (!peepholes.empty()) out = activated(c, f[0], c.op("add", {out, c.op("mul", {peepholes[d][1], now})}));
    cell[d] = last_cell[d] = now;
    state[d] = c.op("mul", {out, activated(c, f[2], now)});
    return *state[d];
  });
  output_state(c, *r, 2, last_cell);
}

/// z, r = f(..), n = g(x W^T + r * (h R^T)), or (r * h) R^T, h' = n + z * (h - n).
void gated_recurrent_unit(NodeContext& c) {
  std::optional<Recurrence> r = read_recurrence(c, 3, {"Sigmoid", "Tanh"});
  if (!r) return;
  const bool reset_after_product = c.integer("linear_before_reset", 0) != 0;
  if (!r->unrolled) {
    require_functions(c, *r, {"sigmoid", "tanh"});
    return as_operator(c, *r, "gru", 1, {{"linear_before_reset", reset_after_product ? 1 : 0}});
  }
  const std::int64_t hidden = r->hidden;
  std::vector<std::optional<Value>> state = initial_states(c, *r, 5);
  const auto [bias, state_bias] = biases(c, *r);
  const bool apart = bias && reset_after_product;  // What the state's biases give is reset, too.
  project(c, *r, bias && !apart ? std::optional(c.op("add", {*bias, *state_bias})) : bias);
  std::vector<Value> biases_of_state;
  if (apart) biases_of_state = parts_of(c, *state_bias, -1, Shape(at(r->directions), 3 * hidden));
  std::vector<std::vector<Value>> weights;  // Per direction: of all gates, or of z and r, and of n.
  for (const Value part : state_weights(c, *r)) {
    weights.emplace_back();
    for (const Value rows : parts_of(c, part, -2, reset_after_product ? Shape{3 * hidden} : Shape{2 * hidden, hidden}))
      weights.back().push_back(transposed(c, rows));
  }
  unroll(c, *r, [&](std::size_t d, Value x) {
    const Activation* const f = &r->activations[2 * d];
    const std::vector<Value> given = parts_of(c, x, -1, {2 * hidden, hidden});
    std::optional<Value> gates_of_state, fresh_of_state;
    if (reset_after_product && (state[d] || apart)) {
      const std::optional<Value> added = apart ? std::optional(biases_of_state[d]) : std::nullopt;
      const Value all = state[d] ? product_and_bias(c, *state[d], weights[d][0], added)
                                 : c.broadcast(*added, {1, r->batch, 3 * hidden});
      const std::vector<Value> kinds = parts_of(c, all, -1, {2 * hidden, hidden});
      gates_of_state = kinds[0], fresh_of_state = kinds[1];
    } else if (state[d]) {
      gates_of_state = c.op("matmul", {*state[d], weights[d][0]});
    }
    const std::vector<Value> gates =
        parts_of(c, activated(c, f[0], sum_of(c, given[0], gates_of_state)), -1, {hidden, hidden});
    if (reset_after_product && fresh_of_state)
      fresh_of_state = c.op("mul", {gates[1], *fresh_of_state});
    else if (state[d])
      fresh_of_state = c.op("matmul", {c.op("mul", {gates[1], *state[d]}), weights[d][1]});
    const Value fresh = activated(c, f[1], sum_of(c, given[1], fresh_of_state));
    if (c.stopped()) return Value{};
    const Value change = state[d] ? c.op("sub", {*state[d], fresh}) : c.op("neg", {fresh});
    state[d] = c.op("add", {fresh, c.op("mul", {gates[0], change})});
    return *state[d];
  });
}

}  // namespace taso::import_handlers
