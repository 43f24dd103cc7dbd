// LSTM, GRU and RNN, unrolled: directions, layouts, initial states, peepholes, functions. What ONNX's own tests
// (node_data_test.cpp) have none for. Values are worked out here from the formulas of ONNX's documentation, one number
// at a time.
#include <gmock/gmock.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "operators/evaluate.h"
#include "tests/onnx_io/fixture.h"

namespace taso {
namespace {

constexpr std::size_t recurrent_steps = 3, recurrent_batch = 2, recurrent_features = 3, recurrent_hidden = 2;

/// Parameters of a node, all constant but for the sequence.
struct RecurrentCase {
  std::string op_type;
  std::size_t gates = 1;
  std::string direction = "forward";
  bool batch_first = false, biases = true, states = true, peepholes = false, linear_before_reset = false;
  std::vector<std::string> activations = {};  ///< Of one direction; empty: the defaults.
  std::vector<OnnxAttribute> attributes = {};
  std::vector<std::function<double(double)>> functions = {};  ///< What they are.

  [[nodiscard]] std::size_t directions() const { return direction == "bidirectional" ? 2 : 1; }
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double hyperbolic(double x) { return std::tanh(x); }

/// Numbers that differ, between -0.6 and 0.6.
std::vector<float> parameters_of(std::size_t count, std::size_t seed) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 37 + seed * 101) % 61) / 50.0F - 0.6F);
  return values;
}

struct RecurrentOutputs {
  std::vector<double> sequence, state, cell;
};

/// The formulas of ONNX's documentation.
class RecurrentReference {
 public:
  explicit RecurrentReference(const RecurrentCase& one)
      : case_(one),
        x_(parameters_of(recurrent_steps * recurrent_batch * recurrent_features, 1)),
        w_(parameters_of(one.directions() * one.gates * recurrent_hidden * recurrent_features, 2)),
        r_(parameters_of(one.directions() * one.gates * recurrent_hidden * recurrent_hidden, 3)),
        b_(parameters_of(one.directions() * 2 * one.gates * recurrent_hidden, 4)),
        h_(parameters_of(one.directions() * recurrent_batch * recurrent_hidden, 5)),
        c_(parameters_of(one.directions() * recurrent_batch * recurrent_hidden, 6)),
        p_(parameters_of(one.directions() * 3 * recurrent_hidden, 7)) {}

  [[nodiscard]] const std::vector<float>& x() const { return x_; }
  ModelBuilder model() const;
  RecurrentOutputs run() {
    const std::size_t directions = case_.directions();
    out_.sequence.assign(recurrent_steps * directions * recurrent_batch * recurrent_hidden, 0);
    out_.state.assign(directions * recurrent_batch * recurrent_hidden, 0);
    out_.cell = out_.state;
    for (std::size_t d = 0; d < directions; ++d)
      for (std::size_t n = 0; n < recurrent_batch; ++n) run(d, n);
    return out_;
  }

 private:
  using Vector = std::vector<double>;
  std::size_t state_place(std::size_t d, std::size_t n, std::size_t j) const {
    return case_.batch_first ? (n * case_.directions() + d) * recurrent_hidden + j
                             : (d * recurrent_batch + n) * recurrent_hidden + j;
  }
  double x(std::size_t step, std::size_t n, std::size_t k) const {
    const std::size_t row = case_.batch_first ? n * recurrent_steps + step : step * recurrent_batch + n;
    return x_[row * recurrent_features + k];
  }
  /// Row `row` of the weights times the sequence, with its bias; then of those of the state.
  double of_sequence(std::size_t d, std::size_t row, std::size_t step, std::size_t n) const {
    const std::size_t width = case_.gates * recurrent_hidden;
    double sum = case_.biases ? b_[d * 2 * width + row] : 0.0;
    for (std::size_t k = 0; k < recurrent_features; ++k)
      sum += w_[(d * width + row) * recurrent_features + k] * x(step, n, k);
    return sum;
  }
  double of_state(std::size_t d, std::size_t row, const Vector& h) const {
    const std::size_t width = case_.gates * recurrent_hidden;
    double sum = case_.biases ? b_[d * 2 * width + width + row] : 0.0;
    for (std::size_t k = 0; k < recurrent_hidden; ++k) sum += r_[(d * width + row) * recurrent_hidden + k] * h[k];
    return sum;
  }
  double function(std::size_t i, double value) const { return case_.functions[i](value); }

  void run(std::size_t d, std::size_t n) {
    Vector h(recurrent_hidden), c(recurrent_hidden);
    for (std::size_t j = 0; j < recurrent_hidden && case_.states; ++j) {
      h[j] = h_[state_place(d, n, j)];
      c[j] = c_[state_place(d, n, j)];
    }
    const bool backward = case_.direction == "reverse" || d == 1;
    for (std::size_t i = 0; i < recurrent_steps; ++i) {
      const std::size_t step = backward ? recurrent_steps - 1 - i : i;
      if (case_.op_type == "RNN") h = simple(d, step, n, h);
      if (case_.op_type == "GRU") h = gated(d, step, n, h);
      if (case_.op_type == "LSTM") h = long_short(d, step, n, h, c);
      for (std::size_t j = 0; j < recurrent_hidden; ++j) {
        const std::size_t directions = case_.directions();
        const std::size_t row = case_.batch_first ? (n * recurrent_steps + step) * directions + d
                                                  : (step * directions + d) * recurrent_batch + n;
        out_.sequence[row * recurrent_hidden + j] = h[j];
      }
    }
    for (std::size_t j = 0; j < recurrent_hidden; ++j) {
      out_.state[state_place(d, n, j)] = h[j];
      out_.cell[state_place(d, n, j)] = c[j];
    }
  }

  Vector simple(std::size_t d, std::size_t step, std::size_t n, const Vector& h) const {
    Vector next;
    for (std::size_t j = 0; j < recurrent_hidden; ++j)
      next.push_back(function(0, of_sequence(d, j, step, n) + of_state(d, j, h)));
    return next;
  }

  Vector gated(std::size_t d, std::size_t step, std::size_t n, const Vector& h) const {
    Vector z, r, reset, next;
    for (std::size_t j = 0; j < recurrent_hidden; ++j) {
      z.push_back(function(0, of_sequence(d, j, step, n) + of_state(d, j, h)));
      const std::size_t row = recurrent_hidden + j;
      r.push_back(function(0, of_sequence(d, row, step, n) + of_state(d, row, h)));
      reset.push_back(r[j] * h[j]);
    }
    for (std::size_t j = 0; j < recurrent_hidden; ++j) {
      const std::size_t row = 2 * recurrent_hidden + j;
      const double state = case_.linear_before_reset ? r[j] * of_state(d, row, h) : of_state(d, row, reset);
      next.push_back((1 - z[j]) * function(1, of_sequence(d, row, step, n) + state) + z[j] * h[j]);
    }
    return next;
  }

  Vector long_short(std::size_t d, std::size_t step, std::size_t n, const Vector& h, Vector& c) const {
    Vector next;
    for (std::size_t j = 0; j < recurrent_hidden; ++j) {
      const auto gate = [&](std::size_t g) {
        const std::size_t row = g * recurrent_hidden + j;
        return of_sequence(d, row, step, n) + of_state(d, row, h);
      };
      const auto peep = [&](std::size_t g, double cell) {
        return case_.peepholes ? p_[(d * 3 + g) * recurrent_hidden + j] * cell : 0.0;
      };
      const double in = function(0, gate(0) + peep(0, c[j])), forget = function(0, gate(2) + peep(2, c[j]));
      c[j] = forget * c[j] + in * function(1, gate(3));
      next.push_back(function(0, gate(1) + peep(1, c[j])) * function(2, c[j]));
    }
    return next;
  }

  const RecurrentCase& case_;
  std::vector<float> x_, w_, r_, b_, h_, c_, p_;
  RecurrentOutputs out_;
};

ModelBuilder RecurrentReference::model() const {
  const auto of = [](std::size_t extent) { return static_cast<std::int64_t>(extent); };
  const std::int64_t steps = of(recurrent_steps), batch = of(recurrent_batch), features = of(recurrent_features),
                     hidden = of(recurrent_hidden), directions = of(case_.directions()),
                     width = of(case_.gates) * hidden;
  ModelBuilder builder(14, "recurrent");
  builder.add_input("x", case_.batch_first ? Shape{batch, steps, features} : Shape{steps, batch, features});
  std::vector<std::string> inputs = {"x", "w", "r"};
  builder.add_initializer("w", {directions, width, features}, w_);
  builder.add_initializer("r", {directions, width, hidden}, r_);
  const Shape state = case_.batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  const auto add = [&](const std::string& name, bool present, const Shape& shape, const std::vector<float>& values) {
    if (present) builder.add_initializer(name, shape, values);
    inputs.push_back(present ? name : "");
  };
  add("b", case_.biases, {directions, 2 * width}, b_);
  add("lengths", false, {}, {});
  add("h", case_.states, state, h_);
  if (case_.op_type == "LSTM") {
    add("c", case_.states, state, c_);
    add("p", case_.peepholes, {directions, 3 * hidden}, p_);
  }
  std::vector<OnnxAttribute> attributes = case_.attributes;
  attributes.emplace_back("hidden_size", hidden);
  attributes.emplace_back("direction", case_.direction);
  if (case_.batch_first) attributes.emplace_back("layout", 1);
  if (case_.linear_before_reset) attributes.emplace_back("linear_before_reset", 1);
  std::vector<std::string> outputs = {"y", "last"};
  if (case_.op_type == "LSTM") outputs.emplace_back("cell");
  builder.add_node(case_.op_type, inputs, outputs, attributes, "node");
  builder.add_output(
      "y", case_.batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden});
  builder.add_output("last", state);
  if (case_.op_type == "LSTM") builder.add_output("cell", state);
  return builder;
}

/// The file, with the names of functions for every direction.
std::string recurrent_file(const RecurrentCase& one, const ModelBuilder& builder) {
  if (one.activations.empty()) return builder.serialize();
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(builder.serialize()));
  onnx::AttributeProto& names = *model.mutable_graph()->mutable_node(0)->add_attribute();
  names.set_name("activations");
  names.set_type(onnx::AttributeProto::STRINGS);
  for (std::size_t d = 0; d < one.directions(); ++d)
    for (const std::string& name : one.activations) names.add_strings(name);
  return model.SerializeAsString();
}

void expect_recurrent(const RecurrentCase& one) {
  RecurrentReference reference(one);
  const auto model = Model::parse(recurrent_file(one, reference.model()), "recurrent.onnx", test::registry());
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  ASSERT_TRUE(model->carried_nodes().empty()) << model->carried_nodes()[0].reason;
  test::expect_well_typed(*model);
  DoubleRing ring;
  RingTensor<double> input;
  input.shape = model->inputs()[0].type.shape;
  input.elements.assign(reference.x().begin(), reference.x().end());
  const auto outputs = evaluate(model->graph(), test::registry(), ring, {input});
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  const RecurrentOutputs expected = reference.run();
  const auto near = [](double value) { return testing::DoubleNear(value, 1e-6); };
  const auto expect = [&](std::size_t i, const std::vector<double>& values) {
    std::vector<testing::Matcher<double>> matchers;
    for (const double value : values) matchers.emplace_back(near(value));
    EXPECT_THAT((*outputs)[i].elements, testing::ElementsAreArray(matchers)) << one.op_type << " output " << i;
  };
  expect(0, expected.sequence);
  expect(1, expected.state);
  if (one.op_type == "LSTM") expect(2, expected.cell);
}

TEST(Recurrent, LstmInEveryDirectionAndLayout) {
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (const bool batch_first : {false, true})
      for (const bool peepholes : {false, true})
        for (const bool states : {false, true}) {
          RecurrentCase one{.op_type = "LSTM", .gates = 4, .direction = direction, .batch_first = batch_first};
          one.peepholes = peepholes;
          one.states = states;
          one.functions = {logistic, hyperbolic, hyperbolic};
          expect_recurrent(one);
        }
}

TEST(Recurrent, GruInEveryDirectionAndLayout) {
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (const bool batch_first : {false, true})
      for (const bool linear_before_reset : {false, true})
        for (const bool states : {false, true})
          for (const bool biases : {false, true}) {
            RecurrentCase one{.op_type = "GRU", .gates = 3, .direction = direction, .batch_first = batch_first};
            one.linear_before_reset = linear_before_reset;
            one.states = states;
            one.biases = biases;
            one.functions = {logistic, hyperbolic};
            expect_recurrent(one);
          }
}

TEST(Recurrent, FunctionsTakeTheirNumbersInOrder) {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::function<double(double)>>>> functions = {
      {{"HardSigmoid", "Affine", "ScaledTanh"},
       {[](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }, [](double x) { return 0.75 * x + 0.125; },
        [](double x) { return 1.5 * std::tanh(0.5 * x); }}},
      {{"sigmoid", "leakyrelu", "Relu"},
       {logistic, [](double x) { return x < 0 ? 0.25 * x : x; }, [](double x) { return std::max(x, 0.0); }}},
      {{"Softsign", "Elu", "Tanh"},
       {[](double x) { return x / (1 + std::abs(x)); }, [](double x) { return x < 0 ? 0.25 * (std::exp(x) - 1) : x; },
        hyperbolic}}};
  for (const auto& [names, meanings] : functions) {
    RecurrentCase one{.op_type = "LSTM", .gates = 4};
    one.activations = names;
    one.functions = meanings;
    one.attributes = {{"activation_alpha", std::vector<float>{0.25F, 0.75F, 1.5F}},
                      {"activation_beta", std::vector<float>{0.5F, 0.125F, 0.5F}}};
    expect_recurrent(one);
  }
}

TEST(Recurrent, RnnInEveryDirection) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    RecurrentCase one{.op_type = "RNN", .gates = 1, .direction = direction};
    one.activations = {"Relu"};
    one.functions = {[](double x) { return std::max(x, 0.0); }};
    expect_recurrent(one);
  }
}

}  // namespace
}  // namespace taso
