#include "verifier/instances.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "verifier/landmarks.h"
#include "verifier/sampler.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

// Samples per wanted instance, and those taken after that for rare combinations.
constexpr std::size_t samples_per_instance = 40;
constexpr std::size_t extra_samples = 3000;

std::string key_of(const Instance& instance) {
  std::string key;
  for (const TensorType& type : instance.variables) append_to_key(key, type);
  for (const auto& value : instance.attributes)
    if (value) append_to_key(key, *value);
  return key;
}

std::int64_t size_of(const Instance& instance) {
  std::int64_t size = 0;
  for (const TensorType& type : instance.variables)
    size += 2 * type.elements() + static_cast<std::int64_t>(type.shape.size());
  for (const auto& value : instance.attributes)
    if (value)
      if (const auto* list = std::get_if<Integers>(&*value))
        for (const std::int64_t e : *list) size += std::abs(e);
  return size;
}

// Which combinations of three unusual things have been seen together: elements of list attributes beyond their least
// value, an element of one list below that of another, kernels that see a part of the channels.
class Coverage {
 public:
  explicit Coverage(const Substitution& rule) : rule_(rule) {}

  // Whether the instance has a new combination, which is then known: of three features, or of two where there are very
  // many.
  bool adds(const Instance& instance) {
    std::vector<std::uint32_t> present;
    std::uint32_t feature = 0;
    auto note = [&](bool here) {
      if (here) present.push_back(feature);
      ++feature;
    };
    std::vector<const Integers*> lists;
    for (const auto& value : instance.attributes)
      if (value)
        if (const auto* list = std::get_if<Integers>(&*value)) lists.push_back(list);
    for (const Integers* list : lists)
      for (const std::int64_t e : *list) note(e > (list->size() == 2 ? 1 : 0));
    for (std::size_t a = 0; a < lists.size(); ++a)
      for (std::size_t b = a + 1; b < lists.size(); ++b)
        if (lists[a]->size() == lists[b]->size())
          for (std::size_t i = 0; i < lists[a]->size(); ++i) {
            note((*lists[a])[i] < (*lists[b])[i]);
            note((*lists[a])[i] > (*lists[b])[i]);
          }
    for (std::size_t a = 0; a < instance.variables.size(); ++a)
      for (std::size_t b = 0; b < instance.variables.size(); ++b) {
        const Shape &x = instance.variables[a].shape, &k = instance.variables[b].shape;
        note(a != b && x.size() == 4 && k.size() == 4 && x[1] > k[1] && k[1] > 0 && x[1] % k[1] == 0);
      }
    features_ = std::max<std::size_t>(features_, feature);
    bool added = false;
    const bool triples = feature <= max_features;
    for (std::size_t i = 0; i < present.size(); ++i)
      for (std::size_t j = i; j < present.size(); ++j)
        for (std::size_t k = j; k < (triples ? present.size() : j + 1); ++k)
          added |= seen_
                       .insert((static_cast<std::uint64_t>(present[i]) << 40) |
                               (static_cast<std::uint64_t>(present[j]) << 20) | present[k])
                       .second;
    return added;
  }
  [[nodiscard]] std::size_t features() const { return rule_.attribute_variables.empty() ? 0 : features_; }

 private:
  // Of which triples are looked at.
  static constexpr std::uint32_t max_features = 160;

  const Substitution& rule_;
  absl::flat_hash_set<std::uint64_t> seen_;
  std::size_t features_ = 0;
};

// Where a number stands in an instance: variable and axis from the end, or attribute and element.
using Place = std::pair<std::size_t, std::size_t>;

std::vector<Place> places_of(const Instance& instance, std::int64_t number) {
  std::vector<Place> places;
  for (std::size_t v = 0; v < instance.variables.size(); ++v) {
    const Shape& shape = instance.variables[v].shape;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == number) places.emplace_back(v, shape.size() - i);
  }
  for (std::size_t a = 0; a < instance.attributes.size(); ++a) {
    if (!instance.attributes[a]) continue;
    const std::size_t key = instance.variables.size() + a;
    if (const auto* integer = std::get_if<std::int64_t>(&*instance.attributes[a])) {
      if (std::abs(*integer) == number) places.emplace_back(key, 0);
    } else if (const auto* list = std::get_if<Integers>(&*instance.attributes[a])) {
      for (std::size_t i = 0; i < list->size(); ++i)
        if ((*list)[i] == number) places.emplace_back(key, i);
    }
  }
  return places;
}

// Which variables have a rank.
std::vector<Place> places_of_rank(const Instance& instance, std::size_t rank) {
  std::vector<Place> places;
  for (std::size_t v = 0; v < instance.variables.size(); ++v)
    if (instance.variables[v].shape.size() == rank) places.emplace_back(v, 0);
  return places;
}

// Collects instances at landmarks: those first in which a landmark stands at a place, or at two, where it has not
// stood.
class LandmarkSearch {
 public:
  LandmarkSearch(const OperatorRegistry& registry, Typer& typer, const Landmarks& landmarks,
                 const LandmarkOptions& options)
      : typer_(typer),
        options_(options),
        sampler_(registry, typer, InstanceOptions{.bound = 3, .seed = options.seed}, &landmarks) {}

  // Samples at one landmark, with its share of the work.
  void at(const Focus& focus, double share) {
    if (focus.rank && std::none_of(sampler_.ranks().begin(), sampler_.ranks().end(),
                                   [&](const auto& ranks) { return ranks.contains(*focus.rank); }))
      return;
    std::set<std::pair<Place, Place>> covered;
    std::size_t found = 0, repeated = 0;
    allowed_ += share;
    for (std::size_t i = 0; i < options_.samples_per_landmark && samples_ < options_.max_samples; ++i, ++samples_) {
      Focus here = focus;
      here.percent = focus.rank ? 0 : std::array{20, 45, 85}[i % 3];
      const std::optional<Instance> instance = sampler_.sample_at(here, 1 + i);
      if (!instance) continue;
      const std::vector<Place> places =
          focus.rank ? places_of_rank(*instance, *focus.rank) : places_of(*instance, focus.size);
      bool fresh = false;
      for (const Place& a : places)
        for (const Place& b : places) fresh = fresh || !covered.contains({a, b});
      if ((!fresh && repeated == options_.instances_per_landmark) || !consider(*instance)) continue;
      for (const Place& a : places)
        for (const Place& b : places) covered.emplace(a, b);
      if (!fresh) ++repeated;
      if (++found == 4 * options_.instances_per_landmark) return;
    }
  }

  [[nodiscard]] std::vector<TypedInstance> take() { return std::move(instances_); }

 private:
  bool consider(const Instance& instance) {
    if (!seen_.insert(key_of(instance)).second) return false;
    TypeCheck check = check_types(typer_, instance);
    if (!check.typed) return false;
    const double work = check.typed->source.work() + check.typed->target.work();
    if (work > options_.max_work || work > allowed_) return false;
    allowed_ -= work;
    instances_.push_back(std::move(*check.typed));
    return true;
  }

  Typer& typer_;
  LandmarkOptions options_;
  Sampler sampler_;
  std::size_t samples_ = 0;
  double allowed_ = 0;  // work that is left
  std::set<std::string> seen_;
  std::vector<TypedInstance> instances_;
};

// All instances of a rule without attribute variables.
std::vector<Instance> all_instances(const Sampler& sampler, std::size_t variables, const InstanceOptions& options) {
  std::vector<std::vector<TensorType>> choices(variables);
  std::size_t total = 1;
  for (std::size_t v = 0; v < variables; ++v) {
    for (const std::size_t rank : sampler.ranks()[v]) {
      Shape shape(rank, 1);
      for (;;) {
        choices[v].push_back({sampler.integers()[v] ? ElementType::i64 : ElementType::f32, shape, true});
        std::size_t axis = 0;
        while (axis < rank && shape[axis] == options.bound) shape[axis++] = 1;
        if (axis == rank) break;
        ++shape[axis];
        if (choices[v].size() > options.max_candidates) return {};
      }
    }
    total *= choices[v].size();
    if (total > options.max_candidates) return {};
  }
  std::vector<Instance> result;
  std::vector<std::size_t> digits(variables, 0);
  if (total == 0) return result;
  for (std::size_t n = 0; n < total; ++n) {
    Instance instance;
    std::size_t rest = n;
    for (std::size_t v = 0; v < variables; ++v) {
      instance.variables.push_back(choices[v][rest % choices[v].size()]);
      rest /= choices[v].size();
    }
    result.push_back(std::move(instance));
  }
  return result;
}

}  // namespace

std::string to_string(const Substitution& rule, const Instance& instance) {
  std::string text;
  for (std::size_t i = 0; i < rule.tensor_variables.size(); ++i)
    text += (text.empty() ? "" : "; ") + rule.tensor_variables[i] + ": " + to_string(instance.variables[i]);
  for (std::size_t i = 0; i < rule.attribute_variables.size(); ++i)
    if (instance.attributes[i])
      text += (text.empty() ? "" : "; ") + rule.attribute_variables[i] + " = " + to_string(*instance.attributes[i]);
  return text;
}

Random random_for(const OperatorRegistry& registry, const Substitution& rule, std::uint64_t seed,
                  std::string_view purpose) {
  Substitution content = canonical(rule);
  content.name = purpose;
  content.is_axiom = false;
  content.proofs.clear();
  content.numeric_class.reset();
  content.expect.reset();
  return {seed, to_string(content, registry)};
}

std::optional<Program> Program::create(Typer& typer, bool target, const Instance& instance) {
  const Pattern& pattern = target ? typer.rule().target : typer.rule().source;
  Program program;
  const Bindings bindings = bindings_of(instance);
  auto type_of = [&](const PatternValue& value) -> const TensorType* {
    if (value.is_variable) return &instance.variables[value.index];
    const std::vector<TensorType>& outputs = program.steps_[value.index].instance->output_types();
    return value.port < outputs.size() ? &outputs[value.port] : nullptr;
  };
  program.steps_.reserve(pattern.nodes.size());
  std::vector<const TensorType*> inputs;
  for (std::size_t n = 0; n < pattern.nodes.size(); ++n) {
    inputs.clear();
    for (const PatternValue& input : pattern.nodes[n].inputs) {
      inputs.push_back(type_of(input));
      if (inputs.back() == nullptr) return std::nullopt;
    }
    std::shared_ptr<const OperatorInstance> typed = typer.type(target, n, inputs, bindings);
    if (typed == nullptr) return std::nullopt;
    program.work_ += typed->work().flops + typed->work().bytes_written / 4;
    program.steps_.push_back({std::move(typed), pattern.nodes[n].inputs});
  }
  program.outputs_ = pattern.outputs;
  for (const PatternValue& output : pattern.outputs) {
    const TensorType* type = type_of(output);
    if (type == nullptr) return std::nullopt;
    program.output_types_.push_back(*type);
  }
  return program;
}

TypeCheck check_types(Typer& typer, const Instance& instance) {
  TypeCheck check;
  if (!conditions_hold(typer.rule(), bindings_of(instance))) return check;
  std::optional<Program> source = Program::create(typer, false, instance);
  if (!source) return check;
  check.source = true;
  std::optional<Program> target = Program::create(typer, true, instance);
  if (!target) return check;
  check.target = true;
  if (source->output_types() != target->output_types()) return check;
  check.equal_types = true;
  check.typed = TypedInstance{instance, std::move(*source), std::move(*target)};
  return check;
}

TypeCheck check_types(const OperatorRegistry& registry, const Substitution& rule, const Instance& instance) {
  LoweredCache cache(registry);
  Typer typer(registry, rule, cache);
  return check_types(typer, instance);
}

InstanceSet find_instances(const OperatorRegistry& registry, const Substitution& rule, const InstanceOptions& options) {
  LoweredCache cache(registry);
  return find_instances(registry, rule, options, cache);
}

InstanceSet find_instances(const OperatorRegistry& registry, const Substitution& rule, const InstanceOptions& options,
                           LoweredCache& cache) {
  InstanceSet result;
  Typer typer(registry, rule, cache);
  Sampler sampler(registry, typer, options);
  std::set<std::string> seen;
  bool left_out = false;
  auto consider = [&](const Instance& instance) {
    if (!seen.insert(key_of(instance)).second) return;
    TypeCheck check = check_types(typer, instance);
    if (!check.source) return;
    if (check.typed) {
      if (check.typed->source.work() + check.typed->target.work() > 2.0 * static_cast<double>(options.max_work))
        left_out = true;
      else
        result.instances.push_back(std::move(*check.typed));
    } else if (!check.target) {
      ++result.ill_typed_target;
    } else if (!result.shapes_differ || size_of(instance) < size_of(*result.shapes_differ)) {
      result.shapes_differ = instance;
    }
  };
  if (rule.attribute_variables.empty()) {
    const std::vector<Instance> all = all_instances(sampler, rule.tensor_variables.size(), options);
    for (const Instance& instance : all) consider(instance);
    result.complete = !all.empty() && !left_out && result.instances.size() <= options.max_instances;
  }
  Coverage coverage(rule);
  std::vector<TypedInstance> rare;
  if (!result.complete) {
    const std::size_t samples = std::max<std::size_t>(options.max_instances, 100) * samples_per_instance;
    // Rules that are hardly ever well-typed get a first round of all samples, the others stop when they have enough.
    for (std::size_t i = 0; i < samples && result.instances.size() < options.max_instances; ++i)
      if (const std::optional<Instance> instance = sampler.sample(i)) consider(*instance);
    // More of those that combine what has not been combined: a stride with a dilation with unequal pads, say.
    for (const TypedInstance& typed : result.instances) (void)coverage.adds(typed.instance);
    if (options.rare && coverage.features() > 2 && result.instances.size() >= options.max_instances) {
      std::vector<TypedInstance> ordinary = std::move(result.instances);
      result.instances.clear();
      for (std::size_t i = samples; i < samples + extra_samples && rare.size() < options.max_instances; ++i) {
        const std::optional<Instance> instance = sampler.sample(i);
        if (!instance) continue;
        consider(*instance);
        if (result.instances.empty()) continue;
        if (coverage.adds(result.instances[0].instance)) rare.push_back(std::move(result.instances[0]));
        result.instances.clear();
      }
      result.instances = std::move(ordinary);
    }
  }
  std::stable_sort(
      result.instances.begin(), result.instances.end(),
      [](const TypedInstance& a, const TypedInstance& b) { return size_of(a.instance) < size_of(b.instance); });
  if (result.instances.size() > options.max_instances) {
    // Too many: the smallest half of the quota, and others evenly from the rest.
    std::vector<TypedInstance> kept;
    const std::size_t half = options.max_instances / 2;
    for (std::size_t i = 0; i < half; ++i) kept.push_back(std::move(result.instances[i]));
    const std::size_t rest = result.instances.size() - half, wanted = options.max_instances - half;
    for (std::size_t i = 0; i < wanted; ++i) kept.push_back(std::move(result.instances[half + i * rest / wanted]));
    result.instances = std::move(kept);
  }
  std::move(rare.begin(), rare.end(), std::back_inserter(result.instances));
  return result;
}

std::vector<TypedInstance> find_landmark_instances(const OperatorRegistry& registry, const Substitution& rule,
                                                   const Landmarks& landmarks, const LandmarkOptions& options,
                                                   LoweredCache& cache) {
  Typer typer(registry, rule, cache);
  LandmarkSearch search(registry, typer, landmarks, options);
  const double share = options.total_work / static_cast<double>(landmarks.sizes.size() + landmarks.ranks.size());
  for (const std::int64_t size : landmarks.sizes) search.at({.size = size, .rank = std::nullopt}, share);
  for (const std::size_t rank : landmarks.ranks) search.at({.size = 1, .rank = rank}, share);
  return search.take();
}

}  // namespace taso
