// Files of plans that are changed in one place: each is refused, or states a plan that is right. Plans written out that
// are changed in one place: each is refused, or computes the same.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "operators/evaluate.h"
#include "operators/ring.h"
#include "partition/expand.h"
#include "partition/expansion_check.h"
#include "partition/plan_check.h"
#include "partition/recursive.h"
#include "partition/restore_plan.h"
#include "support/random.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/stated_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

using nlohmann::json;
using Tensors = std::vector<RingTensor<double>>;

/// A graph with a plan.
struct MutationSubject {
  Graph graph;
  Mesh mesh;
  PartitionPlan plan;
  json document;
  Tensors inputs, outputs;  ///< Empty, if the graph has operators that are carried.
};

/// Devices that are slow, and a link that costs something.
Mesh mesh_that_pays(const std::vector<std::int64_t>& sizes) {
  Mesh mesh = mesh_of_sizes(sizes);
  for (MeshAxis& axis : mesh.axes) axis = {axis.size, "wire", 1e8, 1e-7};
  return mesh;
}

Tensors outputs_on(const Graph& graph, const Tensors& inputs) {
  DoubleRing ring;
  return value_of(evaluate(graph, registry(), ring, inputs));
}

bool same(const Tensors& a, const Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].shape != b[i].shape) return false;
    for (std::size_t at = 0; at < a[i].elements.size(); ++at)
      if (!(std::abs(a[i].elements[at] - b[i].elements[at]) <= 1e-9 * (1 + std::abs(a[i].elements[at])))) return false;
  }
  return true;
}

/// What else is asked of the planner.
struct Wanted {
  bool recursive = false;
  double memory_share = 1;  ///< Of what the plan takes that may take anything.
  ConfigurationFilter allowed;
};

MutationSubject subject_of(const std::string& text, const std::vector<std::int64_t>& sizes, StrategyTable& strategies,
                           const Wanted& wanted = {}) {
  MutationSubject subject;
  subject.graph = graph_of(text);
  normalize(subject.graph, registry());
  subject.mesh = mesh_that_pays(sizes);
  PlannerOptions options;
  Planner free(subject.graph, subject.mesh, strategies, options);
  subject.plan = value_of(wanted.allowed ? free.plan(wanted.allowed) : free.plan());
  std::optional<double> memory;
  if (wanted.memory_share < 1) {
    options.memory = memory = std::floor(subject.plan.memory * wanted.memory_share);
    Planner limited(subject.graph, subject.mesh, strategies, options);
    subject.plan = value_of(limited.plan());
  }
  if (wanted.recursive) subject.plan = value_of(plan_recursively(subject.graph, subject.mesh, strategies, options));
  PlanDocument document = stated(subject.graph, subject.mesh, subject.plan, strategies);
  document.memory_per_device = memory;
  document.method = wanted.recursive ? PlanMethod::recursive : PlanMethod::exact;
  document.others["data parallel"].missing = "nothing to cut";
  document.others["all repeated"].sums = StatedSums{3, 1, 2, 4, 5, 6};
  subject.document = json::parse(to_json(document));
  for (const NodeId id : subject.graph.topological_order())
    if (subject.graph.node(id).kind == NodeKind::opaque) return subject;
  Random random(7);
  for (const NodeId id : subject.graph.inputs()) {
    RingTensor<double> tensor{subject.graph.type({id, 0}).shape, {}, {}};
    for (std::int64_t i = 0; i < subject.graph.type({id, 0}).elements(); ++i)
      tensor.elements.push_back(random.normal());
    subject.inputs.push_back(std::move(tensor));
  }
  subject.outputs = outputs_on(subject.graph, subject.inputs);
  return subject;
}

std::vector<MutationSubject> all_subjects(StrategyTable& strategies) {
  const std::string readers =
      "input x f32[8, 6]\nweight w f32[6, 5]\na = matmul(x, w)\nb = relu(a)\nc = sigmoid(a)\nd = add(b, c)\noutput d\n";
  const std::string layers =
      "input x f32[16, 32]\nweight v f32[32, 64]\nweight w f32[64, 32]\nweight b f32[32] = 0.5\n"
      "h = relu(matmul(x, v))\ny = add(matmul(h, w), broadcast(b; shape=[16, 32]))\nz = softmax(y; axis=-1)\noutput "
      "z\n";
  const std::string images =
      "input x f32[2, 4, 9, 9]\nweight k f32[8, 4, 3, 3]\ny = conv2d(x, k; pads=[1, 1, 1, 1])\n"
      "s, t = split(relu(y); axis=-3, sizes=[3, 5])\nz = concat(tanh(t), s; axis=-3)\noutput z, y\n";
  const std::string carried =
      "input x f32[8, 6]\ny = relu(x)\nz = opaque custom(y) f32[8, 6]\noutput sub(z, y), exp(y)\n";
  const auto summed = [](NodeId, const NodeConfiguration& configuration) {
    const std::string uses = configuration.to_string();
    return uses == "i@-2 | t (sum)" || uses == "I@-1 | I@-2" || uses == "I@-2 | I@-2";
  };
  const auto halo = [](NodeId, const NodeConfiguration& configuration) {
    const std::string uses = configuration.to_string();
    return uses.find("@-2") != std::string::npos;
  };
  std::vector<MutationSubject> subjects;
  subjects.push_back(subject_of(readers, {2}, strategies));
  subjects.push_back(subject_of(readers, {2, 2}, strategies, {false, 1, summed}));
  subjects.push_back(subject_of(layers, {3}, strategies));
  subjects.push_back(subject_of(layers, {2, 2}, strategies, {true, 1, {}}));
  subjects.push_back(subject_of(layers, {2, 2}, strategies, {false, 0.9, {}}));
  subjects.push_back(subject_of(images, {4}, strategies, {false, 1, halo}));
  subjects.push_back(subject_of(images, {2, 3}, strategies));
  subjects.push_back(subject_of(carried, {2}, strategies));
  return subjects;
}

/// The places of all values in a document, lists and objects too, but the whole.
void find_places(const json& value, const json::json_pointer& at, std::vector<json::json_pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (value.is_object())
    for (const auto& [name, member] : value.items()) find_places(member, at / name, places);
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) find_places(value[i], at / i, places);
}

/// A place without its numbers: "/nodes/*/cuts/*/points/*".
std::string kind_of(const json::json_pointer& place) {
  std::string kind;
  for (json::json_pointer at = place; !at.empty(); at.pop_back()) {
    const std::string& name = at.back();
    const bool number = name.find_first_not_of("0123456789") == std::string::npos;
    kind = "/" + (number ? "*" : name) + kind;
  }
  return kind;
}

/// A list or an object with one element less, twice, or two exchanged.
void change_elements(json& value, Random& random) {
  if (value.empty()) {
    if (value.is_array())
      value.push_back(1);
    else
      value["more"] = 1;
    return;
  }
  const std::size_t at = random.below(value.size());
  if (value.is_object()) {
    auto member = value.begin();
    std::advance(member, static_cast<std::ptrdiff_t>(at));
    value.erase(member);
    return;
  }
  const std::size_t other = random.below(value.size());
  if (random.below(3) == 0)
    value.erase(at);
  else if (random.below(2) == 0)
    value.push_back(value[at]);
  else
    std::swap(value[at], value[other]);
}

/// Another value; words are taken from others of the document.
void change_value(json& value, const std::vector<std::string>& words, Random& random) {
  if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (value.is_number_integer()) {
    value = value.get<std::int64_t>() + (random.below(2) == 0 ? 1 : -1);
  } else if (value.is_number()) {
    value = value.get<double>() * (random.below(2) == 0 ? 1.5 : 0.5) + (random.below(2) == 0 ? 4 : 0);
  } else if (value.is_string()) {
    value = random.below(4) == 0 ? value.get<std::string>() + "x" : words[random.below(words.size())];
  } else if (value.is_null()) {
    value = random.below(1000);
  } else {
    change_elements(value, random);
  }
}

std::vector<std::string> words_in(const json& document) {
  std::vector<json::json_pointer> places;
  find_places(document, json::json_pointer(), places);
  std::set<std::string> words = {"cut",        "repeat", "partial", "made", "read",
                                 "everywhere", "sum",    "max",     "time", "bytes"};
  for (const json::json_pointer& place : places)
    if (document[place].is_string()) words.insert(document[place].get<std::string>());
  return {words.begin(), words.end()};
}

/// The plan that a changed file states, if it is not refused.
std::optional<PartitionPlan> believed(const std::string& text, const MutationSubject& subject,
                                      StrategyTable& strategies) {
  const Expected<PlanDocument> document = parse_plan_document(text, "plan.json");
  if (!document) return std::nullopt;
  if (document->model != FileIdentity{"model.onnx", 12, hash_text("model")}) return std::nullopt;
  Expected<PartitionPlan> plan = restore_plan(*document, subject.graph, {}, strategies);
  if (!plan || !check_figures(*document, *plan)) return std::nullopt;
  return std::move(*plan);
}

/// Whether a plan, written out, is right: computed beside the graph that it is of, or, if that is not all understood,
/// checked piece by piece.
void expect_right(const PartitionPlan& plan, const MutationSubject& subject, StrategyTable& strategies) {
  const Graph expanded = on_one_device(value_of(expand(subject.graph, plan, strategies)));
  const Status status = check_expansion(subject.graph, expanded, plan.mesh, uses_of(plan), strategies);
  EXPECT_TRUE(status) << status.error().message;
  if (!subject.inputs.empty()) {
    EXPECT_TRUE(same(subject.outputs, outputs_on(expanded, subject.inputs)));
  }
}

/// What a file may state otherwise and still be right, since nothing else says it. (Sizes of symbolic extents
/// taso-verify compares with those that the model has.)
bool is_only_said(const std::string& kind) {
  static const std::set<std::string> said = {"/topology",      "/device",
                                             "/device/memory", "/mesh/*/link",
                                             "/partition",     "/memory_per_device",
                                             "/plan/complete", "/plan/exact",
                                             "/plan/stopped",  "/plan/lower_bound",
                                             "/others",        "/costs",
                                             "/device/flops",  "/device/memory_bandwidth",
                                             "/symbols"};
  return said.contains(kind) || kind.starts_with("/others/");
}

TEST(PlanMutations, AreRefusedOrStateAPlanThatIsRight) {
  StrategyTable strategies = every_strategy();
  const std::vector<MutationSubject> subjects = all_subjects(strategies);
  std::size_t refused = 0, said = 0, right = 0;
  std::set<std::string> kinds, changed_kinds;
  Random random(1);
  for (const MutationSubject& subject : subjects) {
    ASSERT_TRUE(believed(subject.document.dump(), subject, strategies)) << subject.document.dump(1);
    expect_right(subject.plan, subject, strategies);
    std::vector<json::json_pointer> places;
    find_places(subject.document, json::json_pointer(), places);
    const std::vector<std::string> words = words_in(subject.document);
    // Each kind of place once, then drawn ones.
    std::vector<json::json_pointer> chosen;
    std::set<std::string> of_subject;
    for (const json::json_pointer& place : places) {
      kinds.insert(kind_of(place));
      if (of_subject.insert(kind_of(place)).second) chosen.push_back(place);
    }
    for (int i = 0; i < 60; ++i) chosen.push_back(places[random.below(places.size())]);
    for (const json::json_pointer& place : chosen) {
      json changed = subject.document;
      change_value(changed[place], words, random);
      if (changed == subject.document) continue;
      const std::string kind = kind_of(place);
      changed_kinds.insert(kind);
      SCOPED_TRACE(place.to_string() + ": " + subject.document[place].dump() + " became " + changed[place].dump());
      const std::optional<PartitionPlan> plan = believed(changed.dump(), subject, strategies);
      if (!plan) {
        ++refused;
        continue;
      }
      expect_right(*plan, subject, strategies);
      ++(is_only_said(kind) ? said : right);
      // Where something else moves or is computed, figures must have changed with it: those of all plans differ.
      if (is_only_said(kind)) continue;
      EXPECT_TRUE(kind.starts_with("/kept") || kind.starts_with("/nodes/*/axes") || kind.starts_with("/mesh")) << kind;
    }
  }
  EXPECT_EQ(changed_kinds, kinds);
  EXPECT_GE(refused + said + right, 300U);
  EXPECT_GT(refused, 250U);
  EXPECT_GT(said, 20U);
  RecordProperty("refused", static_cast<int>(refused));
  RecordProperty("said", static_cast<int>(said));
  RecordProperty("right", static_cast<int>(right));
}

/// A copy of a graph in which `change` may change nodes, but not their types.
template <class Change>
Graph copied(const Graph& graph, const Change& change) {
  Graph copy;
  std::map<Value, Value> values;
  for (const NodeId id : graph.inputs())
    values[{id, 0}] = {copy.add_input(graph.node(id).name, graph.type({id, 0})), 0};
  for (const NodeId id : graph.topological_order()) {
    Node node = graph.node(id);
    if (node.kind == NodeKind::input) continue;
    const std::optional<Value> instead = change(id, node);
    if (instead) {
      values[{id, 0}] = values.at(*instead);
      continue;
    }
    const std::size_t ports = node.outputs.size();
    for (Value& input : node.inputs) input = values.at(input);
    const NodeId added = copy.add(std::move(node));
    for (std::uint32_t port = 0; port < ports; ++port) values[{id, port}] = {added, port};
  }
  for (const Value& output : graph.outputs()) copy.add_output(values.at(output));
  return copy;
}

enum class ExpansionChange { slice, operands, drop, weight };

/// A plan written out, with one node changed; nothing if it has none that can be.
std::optional<Graph> changed_expansion(const Graph& graph, ExpansionChange kind, Random& random) {
  std::vector<NodeId> candidates;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const bool like_first = !node.inputs.empty() && graph.type(node.inputs[0]) == graph.type({id, 0});
    const bool fits = kind == ExpansionChange::slice    ? node.is_op("slice")
                      : kind == ExpansionChange::weight ? node.kind == NodeKind::constant
                      : kind == ExpansionChange::drop
                          ? node.kind == NodeKind::op && !node.weight_only && node.outputs.size() == 1 && like_first
                          : node.inputs.size() == 2 && node.kind == NodeKind::op &&
                                graph.type(node.inputs[0]) == graph.type(node.inputs[1]);
    if (fits) candidates.push_back(id);
  }
  if (candidates.empty()) return std::nullopt;
  const NodeId chosen = candidates[random.below(candidates.size())];
  return copied(graph, [&](NodeId id, Node& node) -> std::optional<Value> {
    if (id != chosen) return std::nullopt;
    switch (kind) {
      case ExpansionChange::slice: {
        std::vector<std::int64_t> starts = node.attributes.integers("starts");
        const Shape& whole = graph.type(node.inputs[0]).shape;
        for (std::size_t axis = 0; axis < starts.size(); ++axis) {
          const std::int64_t most = whole[axis] - node.outputs[0].shape[axis];
          if (most > 0) starts[axis] = starts[axis] == 0 ? most : starts[axis] - 1;
        }
        node.attributes.set("starts", starts);
        return std::nullopt;
      }
      case ExpansionChange::operands:
        std::swap(node.inputs[0], node.inputs[1]);
        return std::nullopt;
      case ExpansionChange::drop:
        return node.inputs[0];
      case ExpansionChange::weight: {
        std::vector<float> elements(static_cast<std::size_t>(node.outputs[0].elements()), 0.125F);
        node.constant = ConstantData::of_floats(node.outputs[0].shape, elements);
        return std::nullopt;
      }
    }
    return std::nullopt;
  });
}

TEST(ExpansionMutations, AreRefusedOrComputeTheSame) {
  StrategyTable strategies = every_strategy();
  std::map<ExpansionChange, std::size_t> refused;
  std::size_t equal = 0;
  Random random(2);
  for (const MutationSubject& subject : all_subjects(strategies)) {
    if (subject.inputs.empty()) continue;
    const Graph expanded = on_one_device(value_of(expand(subject.graph, subject.plan, strategies)));
    for (const ExpansionChange kind :
         {ExpansionChange::slice, ExpansionChange::operands, ExpansionChange::drop, ExpansionChange::weight})
      for (int i = 0; i < 12; ++i) {
        const std::optional<Graph> changed = changed_expansion(expanded, kind, random);
        if (!changed) continue;
        if (check_expansion(subject.graph, *changed, subject.plan.mesh, uses_of(subject.plan), strategies)) {
          EXPECT_TRUE(same(subject.outputs, outputs_on(*changed, subject.inputs))) << to_text(*changed);
          ++equal;
        } else {
          ++refused[kind];
        }
      }
  }
  EXPECT_GT(refused[ExpansionChange::slice], 20U);
  EXPECT_GT(refused[ExpansionChange::operands], 5U);
  EXPECT_GT(refused[ExpansionChange::drop], 20U);
  EXPECT_GT(refused[ExpansionChange::weight], 20U);
  EXPECT_GT(equal, 5U);  // operands of a sum, exchanged
}

}  // namespace
}  // namespace taso::test
