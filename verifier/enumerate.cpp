#include "verifier/enumerate.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "support/random.h"
#include "verifier/fact_field.h"
#include "verifier/partial_instance.h"
#include "verifier/proposals.h"

namespace taso {
namespace {

using FieldTensor = RingTensor<Mod61>;

// Random paths by which the number of instances is estimated.
constexpr int probes = 400;
// Typings of one node that are remembered; when there are more, those not asked for since half as many are dropped.
constexpr std::size_t max_typings = 1 << 15;

// Different beginnings that thinning leaves, about.
constexpr double wanted_families = 300;

struct ConditionState {
  const Condition* condition = nullptr;
  std::vector<std::uint32_t> attributes, tensors;
  bool holds = false;
};

// The points of the field at which a variable is taken. Those of an element are the same whatever the shape is.
struct Points {
  std::uint32_t type = 0;  // of which `tensor` is
  FieldTensor tensor;
  std::vector<Mod61> elements;  // as many as have been needed
  std::vector<std::int64_t> integers;
};

}  // namespace

class Enumeration::Search {
 public:
  Search(const OperatorRegistry& registry, const Substitution& rule, LoweredCache& cache,
         const EnumerationOptions& options)
      : rule_(rule),
        cache_(cache),
        options_(options),
        random_(random_for(registry, rule, options.seed, "thinning")),
        points_seed_(Random(options.seed, "points of the field").next()),
        ring_(points_seed_),
        partial_(registry, rule),
        proposals_(partial_, options.domain, cache) {
    for (const Condition& condition : rule.conditions) {
      ConditionState state;
      state.condition = &condition;
      for (const AttributeExpression* side : {&condition.left, &condition.right}) {
        const ExpressionVariables variables = variables_of(*side);
        state.attributes.insert(state.attributes.end(), variables.attributes.begin(), variables.attributes.end());
        state.tensors.insert(state.tensors.end(), variables.tensors.begin(), variables.tensors.end());
      }
      conditions_.push_back(std::move(state));
    }
    typings_.resize(rule.source.nodes.size() + rule.target.nodes.size());
    points_.resize(rule.tensor_variables.size());
  }

  void run(const std::function<bool()>& visit) {
    if (options_.thin_above > 0) estimate();
    visit_ = [&] {
      ++visited_;
      if (!visit() || (options_.max_instances > 0 && visited_ >= options_.max_instances)) {
        cut_ = true;
        return false;
      }
      return true;
    };
    extend();
    if (thinned_ && visited_ == 0) {
      // Instances lie too sparsely for thinning: the smallest ones.
      keep_ = 1;
      steps_ = 0;
      stopped_ = false;
      extend();
    }
  }

  [[nodiscard]] Instance instance() const { return partial_.instance(); }
  [[nodiscard]] bool complete() const { return !cut_ && !thinned_ && !too_large_; }
  [[nodiscard]] double estimated() const { return estimate_; }

  Field field_agreement() {
    ring_.clear_status();
    if (ring_.full()) forget_values();
    for (const bool target : {false, true})
      for (NodeState& state : partial_.side(target))
        if (!state.valued && !evaluate_node(state, partial_.side(target))) return Field::unknown;
    // A typed operator may lack the port.
    for (const bool target : {false, true})
      for (const PatternValue& output : (target ? rule_.target : rule_.source).outputs)
        if (!output.is_variable && output.port >= partial_.side(target)[output.index].values.size())
          return Field::unknown;
    for (std::size_t i = 0; i < rule_.source.outputs.size(); ++i) {
      const FieldTensor& a = value(rule_.source.outputs[i], partial_.side(false));
      const FieldTensor& b = value(rule_.target.outputs[i], partial_.side(true));
      if (a.elements != b.elements || a.integers != b.integers) return Field::different;
    }
    return Field::equal;
  }

 private:
  // Follows random paths: the mean of the products of the numbers of choices, 0 for a path that reaches no instance.
  // All decisions are thinned, or, for families of instances that have most in common, the first ones only, as many as
  // still leave some hundred different families.
  void estimate() {
    double total = 0, reached = 0, levels = 0;
    visit_ = [&] {
      reached_ = weight_;
      ++reached;
      levels += static_cast<double>(depth_);
      return false;
    };
    probing_ = true;
    for (int i = 0; i < probes; ++i) {
      weight_ = 1;
      reached_ = 0;
      depth_ = 0;
      steps_ = 0;
      extend();
      stopped_ = false;
      total += reached_;
    }
    probing_ = false;
    steps_ = 0;
    depth_ = 0;
    estimate_ = total / probes;
    if (estimate_ <= static_cast<double>(options_.thin_above) || levels == 0) return;
    thinned_ = true;
    const double part = static_cast<double>(options_.thin_above) / estimate_;
    if (!options_.families) {
      thinned_levels_ = SIZE_MAX;
      keep_ = std::pow(part, reached / levels);
      return;
    }
    double families = part;
    while (thinned_levels_ < branching_.size() && families < wanted_families) {
      const Branching& level = branching_[thinned_levels_++];
      families *= std::exp(level.logarithms / level.count);
    }
    keep_ = std::pow(part, 1.0 / static_cast<double>(thinned_levels_));
  }

  // Typings of a node under its operands and attributes, in two generations as in LoweredCache.
  struct Typings {
    KeyMap<std::shared_ptr<const Typing>> young, old;
  };

  enum class Step : std::uint8_t { typed, not_yet, not_well_typed };

  // Whether everything is known that the typing of a node needs; leaves what that is in `key_`, after the types of its
  // inputs the values of its variables.
  Step find_key(const NodeState& state, const Side& side) {
    if (!partial_.bound(state.attributes, state.tensors)) return Step::not_yet;
    key_.clear();
    for (const PatternValue& input : state.node->inputs) {
      const std::uint32_t type = partial_.type_id(input, side);
      // A typed operator may lack the port.
      if (type == 0) return input.is_variable || !side[input.index].typing ? Step::not_yet : Step::not_well_typed;
      key_.push_back(type);
    }
    for (const std::uint32_t v : state.attributes) key_.push_back(partial_.attribute(v));
    for (const std::uint32_t v : state.tensors) key_.push_back(partial_.tensor(v));
    return Step::typed;
  }

  // What is remembered of the node under `key_`; null if nothing is.
  const std::shared_ptr<const Typing>* remembered(const NodeState& state) {
    Typings& known = typings_[state.number];
    if (const auto it = known.young.find(key_); it != known.young.end()) return &it->second;
    const auto older = known.old.find(key_);
    if (older == known.old.end()) return nullptr;
    return &keep(known, older->second);
  }

  const std::shared_ptr<const Typing>& keep(Typings& known, std::shared_ptr<const Typing> typing) {
    if (known.young.size() >= max_typings) {
      known.old = std::move(known.young);
      known.young.clear();
    }
    return known.young.emplace(key_, std::move(typing)).first->second;
  }

  Step take(NodeState& state, const std::shared_ptr<const Typing>& typing) {
    if (typing->too_large) too_large_ = true;
    if (typing->instance == nullptr || typing->too_large) return Step::not_well_typed;
    state.typing = typing;
    state.valued = false;
    nodes_typed_.push_back(&state);
    return Step::typed;
  }

  // Types a node if everything it needs is known.
  Step type_node(NodeState& state, const Side& side) {
    const Step known = find_key(state, side);
    if (known != Step::typed) return known;
    if (const std::shared_ptr<const Typing>* typing = remembered(state)) return take(state, *typing);
    std::shared_ptr<const Typing> typing = make_typing(state, std::span(key_).first(state.node->inputs.size()));
    return take(state, keep(typings_[state.number], std::move(typing)));
  }

  // The same where nothing new has to be found out.
  Step type_remembered_node(NodeState& state, const Side& side) {
    const Step known = find_key(state, side);
    if (known != Step::typed) return known;
    const std::shared_ptr<const Typing>* typing = remembered(state);
    return typing == nullptr ? Step::not_yet : take(state, *typing);
  }

  std::shared_ptr<const Typing> make_typing(const NodeState& state, std::span<const std::uint32_t> inputs) {
    const std::optional<Attributes>& attributes =
        attributes_of(state, key_.cbegin() + static_cast<std::ptrdiff_t>(inputs.size()));
    if (!attributes) return not_well_typed_;
    types_.clear();
    for (const std::uint32_t type : inputs) types_.push_back(partial_.type(type));
    std::shared_ptr<const OperatorInstance> instance = cache_.find(state.node->op, *attributes, types_);
    if (instance == nullptr) return not_well_typed_;
    auto typing = std::make_shared<Typing>();
    typing->instance = std::move(instance);
    typing->outputs.reserve(typing->instance->output_types().size());
    for (const TensorType& type : typing->instance->output_types()) {
      typing->outputs.push_back(partial_.intern(type));
      if (type.elements() > options_.max_elements) typing->too_large = true;
    }
    return typing;
  }

  // The complete attributes of a node whose variables have the values from `values` on in the key; nothing if the
  // expressions have no value.
  const std::optional<Attributes>& attributes_of(const NodeState& state, Key::const_iterator values) {
    attributes_key_.assign(values, key_.cend());
    attributes_key_.push_back(state.number);
    const auto [it, inserted] = attributes_.try_emplace(attributes_key_);
    if (inserted)
      if (const auto given = evaluate_attributes(*state.node, partial_.bindings(), partial_.registry()))
        if (auto complete = partial_.registry().complete(state.node->op, *given)) it->second = std::move(*complete);
    return it->second;
  }

  // What a decision made known: nodes and conditions were put on these stacks.
  struct Mark {
    std::size_t nodes, conditions;
  };

  // Types what can be typed and tests what can be tested; false if this branch holds no instance.
  bool propagate() {
    for (ConditionState& state : conditions_) {
      if (state.holds || state.condition->of_elements() || !partial_.bound(state.attributes, state.tensors)) continue;
      const Expected<bool> result = holds(*state.condition, partial_.bindings());
      if (!result || !*result) return false;
      state.holds = true;
      conditions_tested_.push_back(&state);
    }
    // First what is remembered: most branches end there.
    for (const bool new_ones : {false, true})
      for (const bool target : {false, true}) {
        Side& side = partial_.side(target);
        for (NodeState& state : side)
          if (!state.typing &&
              (new_ones ? type_node(state, side) : type_remembered_node(state, side)) == Step::not_well_typed)
            return false;
      }
    for (std::size_t i = 0; i < rule_.source.outputs.size(); ++i) {
      const std::uint32_t a = partial_.type_id(rule_.source.outputs[i], partial_.side(false));
      const std::uint32_t b = partial_.type_id(rule_.target.outputs[i], partial_.side(true));
      if (a != 0 && b != 0 && a != b) return false;
    }
    return true;
  }

  void undo(const Mark& mark) {
    while (nodes_typed_.size() > mark.nodes) {
      nodes_typed_.back()->typing.reset();
      nodes_typed_.back()->valued = false;
      nodes_typed_.pop_back();
    }
    while (conditions_tested_.size() > mark.conditions) {
      conditions_tested_.back()->holds = false;
      conditions_tested_.pop_back();
    }
  }

  void extend() {
    if (stopped_) return;
    if (options_.max_steps > 0 && ++steps_ > options_.max_steps) {
      cut_ = stopped_ = true;
      return;
    }
    const Mark mark{nodes_typed_.size(), conditions_tested_.size()};
    if (propagate()) decide();
    undo(mark);
  }

  // The first operator that lacks only variables, those with lists of any length last.
  NodeState* next_node(Side*& side_of_next) {
    NodeState* chosen = nullptr;
    for (const bool target : {false, true}) {
      Side& side = partial_.side(target);
      for (NodeState& state : side) {
        if (state.typing) continue;
        const bool ready = std::all_of(
            state.node->inputs.begin(), state.node->inputs.end(),
            [&](const PatternValue& input) { return input.is_variable || side[input.index].typing != nullptr; });
        if (!ready) continue;
        const bool late = std::any_of(state.attributes.begin(), state.attributes.end(), [&](std::uint32_t v) {
          return partial_.attribute(v) == 0 && proposals_.is_free_list(v);
        });
        if (chosen == nullptr || !late) {
          chosen = &state;
          side_of_next = &side;
        }
        if (!late) return chosen;
      }
    }
    return chosen;
  }

  void decide() {
    Side* side = nullptr;
    const NodeState* chosen = next_node(side);
    if (chosen == nullptr) {
      for (std::uint32_t v = 0; v < rule_.tensor_variables.size(); ++v)
        if (partial_.tensor(v) == 0) return assign_tensor(v, proposals_.any_types(v));
      for (std::uint32_t v = 0; v < rule_.attribute_variables.size(); ++v)
        if (partial_.attribute(v) == 0) return assign_attribute(v, {partial_.values().id(std::int64_t{1})});
      if (!visit_()) stopped_ = true;
      return;
    }
    // Lists that are the shape of a result which another operator, or the other side, determines.
    for (const std::uint32_t v : chosen->attributes)
      if (partial_.attribute(v) == 0 && proposals_.is_free_list(v))
        if (const auto shapes = proposals_.shapes_wanted(*chosen, *side, v)) return assign_attribute(v, *shapes);
    for (std::size_t i = 0; i < chosen->node->inputs.size(); ++i) {
      const PatternValue& input = chosen->node->inputs[i];
      if (input.is_variable && partial_.tensor(input.index) == 0)
        return assign_tensor(input.index, types_of(input.index, *chosen, *side, i));
    }
    for (const std::uint32_t v : chosen->tensors)
      if (partial_.tensor(v) == 0) return assign_tensor(v, proposals_.any_types(v));
    // Pads follow from the other lists: they come last.
    std::optional<std::uint32_t> last;
    for (const std::uint32_t v : chosen->attributes) {
      if (partial_.attribute(v) != 0) continue;
      if (!proposals_.is_pads(v)) return assign_attribute(v, proposals_.values_for(*chosen, *side, v));
      if (!last) last = v;
    }
    if (last) return assign_attribute(*last, proposals_.values_for(*chosen, *side, *last));
    // Typed as soon as everything is known, so that this is an operator that cannot be typed.
  }

  // Types of a variable that is an input of this operator, without those that another operator of which something is
  // known cannot have.
  std::vector<std::uint32_t> types_of(std::uint32_t v, const NodeState& chosen, const Side& side_of_chosen,
                                      std::size_t input) {
    std::vector<std::uint32_t> types = proposals_.types_for(chosen, side_of_chosen, input);
    for (const bool target : {false, true}) {
      const Side& side = partial_.side(target);
      for (const NodeState& state : side) {
        if (&state == &chosen || state.typing || types.size() < 2) continue;
        const std::vector<PatternValue>& inputs = state.node->inputs;
        const bool constrained = std::any_of(inputs.begin(), inputs.end(), [&](const PatternValue& other) {
          return partial_.type_id(other, side) != 0;
        });
        if (!constrained) continue;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          if (!inputs[i].is_variable || inputs[i].index != v) continue;
          ++mark_;
          for (const std::uint32_t type : proposals_.types_for(state, side, i)) {
            if (marked_.size() <= type) marked_.resize(2 * std::size_t{type} + 1, 0);
            marked_[type] = mark_;
          }
          std::erase_if(types, [&](std::uint32_t type) { return type >= marked_.size() || marked_[type] != mark_; });
        }
      }
    }
    return types;
  }

  void assign_tensor(std::uint32_t v, const std::vector<std::uint32_t>& types) {
    choose(types, [&](std::uint32_t type) {
      partial_.assign_tensor(v, type);
      extend();
    });
    partial_.assign_tensor(v, 0);
  }

  void assign_attribute(std::uint32_t v, const std::vector<std::uint32_t>& values) {
    choose(values, [&](std::uint32_t value) {
      partial_.assign_attribute(v, value);
      extend();
    });
    partial_.assign_attribute(v, 0);
  }

  // All choices, or a random one.
  template <class Take>
  void choose(const std::vector<std::uint32_t>& choices, const Take& take) {
    if (choices.empty()) return;
    const bool several = choices.size() > 1;
    if (probing_) {
      const auto count = static_cast<double>(choices.size());
      weight_ *= count;
      if (several) {
        if (branching_.size() == depth_) branching_.emplace_back();
        branching_[depth_].logarithms += std::log(count);
        ++branching_[depth_].count;
        ++depth_;
      }
      return take(choices[random_.below(choices.size())]);
    }
    const bool thinned = thinned_ && several && depth_ < thinned_levels_;
    depth_ += several ? 1 : 0;
    for (const std::uint32_t choice : choices) {
      if (stopped_) break;
      if (thinned && random_.uniform() > keep_) continue;
      take(choice);
    }
    depth_ -= several ? 1 : 0;
  }

  const FieldTensor& value(const PatternValue& value, const Side& side) {
    if (!value.is_variable) return side[value.index].values[value.port];
    Points& points = points_[value.index];
    const std::uint32_t id = partial_.tensor(value.index);
    if (points.type == id) return points.tensor;
    points.type = id;
    const TensorType& type = partial_.type(id);
    const auto size = static_cast<std::ptrdiff_t>(type.elements());
    const bool reals = type.element == ElementType::f32;
    Random random(points_seed_ + value.index);
    if (reals && points.elements.size() < static_cast<std::size_t>(size)) {
      points.elements.clear();
      for (std::ptrdiff_t i = 0; i < size; ++i) points.elements.push_back(Mod61::from_bits(random.next()));
    }
    // Indices that are in range on every axis.
    if (!reals && points.integers.size() < static_cast<std::size_t>(size)) {
      points.integers.clear();
      for (std::ptrdiff_t i = 0; i < size; ++i) points.integers.push_back(-static_cast<std::int64_t>(random.below(2)));
    }
    points.tensor.shape = type.shape;
    if (reals)
      points.tensor.elements.assign(points.elements.begin(), points.elements.begin() + size);
    else
      points.tensor.integers.assign(points.integers.begin(), points.integers.begin() + size);
    return points.tensor;
  }

  // Forgets what the ring remembers, and with it the values computed with that.
  void forget_values() {
    ring_.forget();
    for (const bool target : {false, true})
      for (NodeState& state : partial_.side(target)) state.valued = false;
  }

  bool evaluate_node(NodeState& state, const Side& side) {
    arguments_.clear();
    for (const PatternValue& input : state.node->inputs) arguments_.push_back(&value(input, side));
    auto results = evaluate(*state.typing->instance, ring_, std::span<const FieldTensor* const>(arguments_));
    if (!results || !ring_.status()) return false;
    state.values = std::move(*results);
    state.valued = true;
    return true;
  }

  const Substitution& rule_;
  LoweredCache& cache_;
  EnumerationOptions options_;
  Random random_;
  std::uint64_t points_seed_;
  FactField ring_;
  PartialInstance partial_;
  Proposals proposals_;
  std::vector<ConditionState> conditions_;
  std::vector<Typings> typings_;  // by NodeState::number
  std::vector<Points> points_;    // of each tensor variable
  std::vector<NodeState*> nodes_typed_;
  std::vector<ConditionState*> conditions_tested_;
  std::function<bool()> visit_;
  KeyMap<std::optional<Attributes>> attributes_;
  Key key_, attributes_key_;
  std::vector<TensorType> types_;  // of the operands of what is being typed
  const std::shared_ptr<const Typing> not_well_typed_ = std::make_shared<Typing>();
  std::vector<const FieldTensor*> arguments_;
  std::vector<std::uint32_t> marked_;  // by type: the number of the last set that it was in
  std::uint32_t mark_ = 0;
  bool stopped_ = false, cut_ = false, thinned_ = false, too_large_ = false;
  bool probing_ = false;
  double weight_ = 1, reached_ = 0, estimate_ = 0;
  // Of the random paths, for each decision on them that had a choice: how often there was one, and between how many.
  struct Branching {
    double logarithms = 0, count = 0;
  };
  std::vector<Branching> branching_;
  std::size_t depth_ = 0;           // decisions with a choice on the path
  std::size_t thinned_levels_ = 0;  // so many of them are thinned
  double keep_ = 1;                 // the probability with which a choice is followed there
  std::size_t visited_ = 0, steps_ = 0;
};

Enumeration::Enumeration(const OperatorRegistry& registry, const Substitution& rule, LoweredCache& cache,
                         const EnumerationOptions& options)
    : search_(std::make_unique<Search>(registry, rule, cache, options)) {}
Enumeration::~Enumeration() = default;
void Enumeration::run(const std::function<bool()>& visit) { search_->run(visit); }
Instance Enumeration::instance() const { return search_->instance(); }
Enumeration::Field Enumeration::field_agreement() { return search_->field_agreement(); }
bool Enumeration::complete() const { return search_->complete(); }
double Enumeration::estimate() const { return search_->estimated(); }

}  // namespace taso
