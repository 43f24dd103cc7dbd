#include "generator/bank.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "support/random.h"

namespace taso {
namespace {

Hash128 fingerprint_of(const FieldValue& value) {
  Hasher hasher;
  for (const RingTensor<Mod61>& tensor : value) {
    hasher.add(static_cast<std::uint64_t>(tensor.shape.size()));
    for (const std::int64_t extent : tensor.shape) hasher.add(extent);
    for (const Mod61 element : tensor.elements) hasher.add(element.value());
  }
  return hasher.finish();
}

}  // namespace

InstanceCache::InstanceCache(const ProfileGroup& group, const OperatorRegistry& registry)
    : group_(group), registry_(registry) {
  for (const ProfileOperator& op : group.operators) {
    std::vector<Attributes> per_world;
    for (std::size_t world = 0; world < group.worlds; ++world) {
      Attributes attributes;
      const auto symbols = group.world(world);
      for (const auto& [name, expression] : op.attributes) {
        auto value = evaluate_symbolic(expression, symbols);
        TASO_CHECK(value.ok(), "attribute of a checked profile");
        attributes.set(name, std::move(value).value());
      }
      per_world.push_back(std::move(attributes));
    }
    attributes_.push_back(std::move(per_world));
  }
}

TypeId InstanceCache::intern(std::vector<Shape> shapes) {
  auto [it, inserted] = type_ids_.try_emplace(std::move(shapes), static_cast<TypeId>(types_.size()));
  if (inserted) types_.push_back(&it->first);
  return it->second;
}

const InstanceCache::Entry* InstanceCache::find(std::uint32_t op, std::span<const TypeId> arguments) {
  std::vector<std::uint32_t> key{op};
  key.insert(key.end(), arguments.begin(), arguments.end());
  auto [it, inserted] = entries_.try_emplace(std::move(key));
  Entry& entry = it->second;
  if (inserted) {
    std::vector<std::vector<Shape>> outputs;
    entry.typed = true;
    for (std::size_t world = 0; world < group_.worlds && entry.typed; ++world) {
      std::vector<TensorType> types;
      for (const TypeId type : arguments) types.push_back({ElementType::f32, shapes(type)[world], true});
      auto instance = OperatorInstance::create(registry_, group_.operators[op].op, attributes_[op][world], types);
      if (!instance) {
        entry.typed = false;
        break;
      }
      outputs.resize(instance->output_types().size());
      for (std::size_t port = 0; port < outputs.size(); ++port)
        outputs[port].push_back(instance->output_types()[port].shape);
      entry.worlds.push_back(std::move(instance).value());
    }
    if (entry.typed)
      for (std::vector<Shape>& output : outputs) {
        entry.typed = entry.typed && output.size() == group_.worlds;
        if (entry.typed) entry.outputs.push_back(intern(std::move(output)));
      }
    if (!entry.typed) entry.worlds.clear();
  }
  return entry.typed ? &entry : nullptr;
}

/// The evaluated outputs of one task.
struct Bank::Result {
  std::vector<Hash128> fingerprints;
  std::vector<FieldValue> values;
};

Bank::Bank(const ProfileGroup& group, const OperatorRegistry& registry, BankOptions options)
    : group_(group), registry_(registry), options_(options), instances_(group, registry) {}

FieldValue Bank::random_value(TypeId type, const std::string& name) const {
  FieldValue result;
  for (std::size_t world = 0; world < group_.worlds; ++world)
    for (std::size_t point = 0; point < options_.points; ++point) {
      Random random(options_.seed, name + "@" + std::to_string(world) + "," + std::to_string(point));
      RingTensor<Mod61> tensor;
      tensor.shape = instances_.shapes(type)[world];
      tensor.elements.resize(static_cast<std::size_t>(volume(tensor.shape)));
      for (Mod61& element : tensor.elements) element = Mod61::from_bits(random.next());
      result.push_back(std::move(tensor));
    }
  return result;
}

std::vector<FieldValue> Bank::apply(const InstanceCache::Entry& instance,
                                    std::span<const FieldValue* const> arguments) const {
  std::vector<FieldValue> result(instance.outputs.size());
  std::vector<const RingTensor<Mod61>*> tensors(arguments.size());
  for (std::size_t i = 0; i < group_.worlds * options_.points; ++i) {
    for (std::size_t argument = 0; argument < arguments.size(); ++argument)
      tensors[argument] = &(*arguments[argument])[i];
    FieldRing ring(options_.seed);
    auto outputs = evaluate(instance.worlds[i / options_.points], ring, tensors);
    if (!outputs || !ring.status()) return {};
    for (std::size_t port = 0; port < result.size(); ++port) result[port].push_back(std::move((*outputs)[port]));
  }
  return result;
}

std::vector<TermId> Bank::union_of_terms(std::span<const ClassId> values) const {
  std::vector<TermId> result, merged;
  for (const ClassId value : values) {
    const std::vector<TermId>& terms = classes_[value].terms;
    merged.clear();
    std::set_union(result.begin(), result.end(), terms.begin(), terms.end(), std::back_inserter(merged));
    result.swap(merged);
  }
  return result;
}

void Bank::add_class(ValueClass value, Hash128 fingerprint, FieldValue values, bool keep_values) {
  const ClassId id = static_cast<ClassId>(classes_.size());
  by_fingerprint_.emplace(fingerprint, id);
  if (keep_values) {
    if (classes_of_.size() <= value.type) classes_of_.resize(value.type + 1);
    auto& by_ops = classes_of_[value.type];
    if (by_ops.size() <= value.ops) by_ops.resize(value.ops + 1u);
    by_ops[value.ops][value.is_weight ? 1 : 0].push_back(id);
    for (const TermId term : value.terms)
      if (!is_weight_term(term)) containing_[term].push_back(id);
    values_.resize(id + 1);
    values_[id] = std::move(values);
  }
  classes_.push_back(std::move(value));
}

void Bank::add_inputs() {
  for (std::size_t i = 0; i < group_.inputs.size(); ++i) {
    const ProfileInput& input = group_.inputs[i];
    std::vector<Shape> shapes;
    for (std::size_t world = 0; world < group_.worlds; ++world) {
      auto shape = evaluate_symbolic(input.shape, group_.world(world));
      TASO_CHECK(shape.ok(), "shape of a checked profile");
      shapes.push_back(std::get<std::vector<std::int64_t>>(*shape));
    }
    ValueClass value;
    value.is_input = true;
    value.is_weight = input.is_weight;
    value.index = static_cast<std::uint32_t>(i);
    value.type = instances_.intern(std::move(shapes));
    FieldValue field = random_value(value.type, "input " + input.name);
    const Hash128 fingerprint = fingerprint_of(field);
    add_class(std::move(value), fingerprint, std::move(field), true);
  }
  levels_[0].classes += group_.inputs.size();
}

/// Collects the applications with exactly `level` operators (or, at level 0, exactly `weight_level` operators on
/// weights), sorted by their number of operators on weights.
Status Bank::make_tasks(int level, int weight_level, std::vector<std::vector<Task>>& by_weight_ops) {
  by_weight_ops.assign(static_cast<std::size_t>(group_.max_weight_ops) + 1, {});
  const int below = level == 0 ? 0 : level - 1;  // operators among the arguments
  std::size_t made = 0;
  bool too_many = false;
  for (std::uint32_t op = 0; op < group_.operators.size() && !too_many; ++op) {
    const ProfileOperator& application = group_.operators[op];
    if (application.on_weights != (level == 0)) continue;
    const std::size_t arity = application.arguments.size();
    const bool commutative =
        registry_.is_commutative(application.op) && arity == 2 && application.arguments[0] == application.arguments[1];
    // Types are chosen first, so that an ill-typed combination is rejected once.
    std::vector<TypeId> types(arity);
    std::vector<ClassId> chosen(arity);
    const InstanceCache::Entry* instance = nullptr;

    auto emit = [&](const std::vector<TermId>& terms, bool all_weights) {
      if (level > 0 && all_weights) return;
      int ops = 0;
      for (const TermId term : terms) ops += is_weight_term(term) ? 0 : 1;
      const int weight_ops = static_cast<int>(terms.size()) - ops + (level == 0 ? 1 : 0);
      if (ops != below || weight_ops > group_.max_weight_ops) return;
      if (level == 0 && weight_ops != weight_level) return;
      Task task;
      task.term.op = op;
      task.term.count = static_cast<std::uint8_t>(arity);
      std::copy(chosen.begin(), chosen.end(), task.term.arguments.begin());
      task.instance = instance;
      by_weight_ops[static_cast<std::size_t>(weight_ops)].push_back(task);
      if (++made + terms_.size() > options_.max_terms) too_many = true;
    };

    std::function<void(std::size_t, const std::vector<TermId>&, int, int, bool)> choose_class =
        [&](std::size_t position, const std::vector<TermId>& terms, int ops, int weight_ops, bool all_weights) {
          if (too_many) return;
          if (position == arity) {
            emit(terms, all_weights);
            return;
          }
          if (types[position] >= classes_of_.size()) return;
          const auto& by_ops = classes_of_[types[position]];
          const bool last = position + 1 == arity;
          auto take = [&](ClassId id) {
            if (commutative && position == 1 && id < chosen[0]) return;
            // f(x, x) is left out: what holds of it is almost always an instance of what holds of f(x, y).
            // (On weights it makes constants: ones - ones.)
            for (std::size_t other = 0; other < position; ++other)
              if (chosen[other] == id && !application.on_weights) return;
            const ValueClass& value = classes_[id];
            if (application.arguments[position] == ArgumentRole::input && !value.is_input) return;
            if (application.on_weights && !value.is_weight) return;
            chosen[position] = id;
            std::vector<TermId> merged;
            merged.reserve(terms.size() + value.terms.size());
            std::set_union(terms.begin(), terms.end(), value.terms.begin(), value.terms.end(),
                           std::back_inserter(merged));
            int merged_ops = 0;
            for (const TermId term : merged) merged_ops += is_weight_term(term) ? 0 : 1;
            const int merged_weight_ops = static_cast<int>(merged.size()) - merged_ops;
            if (merged_ops > below || merged_weight_ops > group_.max_weight_ops) return;
            choose_class(position + 1, merged, merged_ops, merged_weight_ops, all_weights && value.is_weight);
          };
          const ArgumentRole role = application.arguments[position];
          for (int kind = 0; kind < 2; ++kind) {
            if (kind == 0 && role == ArgumentRole::weight) continue;
            if (kind == 1 && role == ArgumentRole::activation) continue;
            for (int more = 0; more < static_cast<int>(by_ops.size()); ++more) {
              if (more > below) break;
              const auto& ids = by_ops[static_cast<std::size_t>(more)][static_cast<std::size_t>(kind)];
              if (ids.empty()) continue;
              if (ops + more <= below) {
                // On the last argument nothing can make up for too few operators.
                if (last && ops + more < below) continue;
                for (const ClassId id : ids) {
                  if (commutative && position == 1 && id < chosen[0]) continue;
                  if (weight_ops + classes_[id].weight_ops > group_.max_weight_ops &&
                      (weight_ops == 0 || classes_[id].weight_ops == 0))
                    continue;
                  take(id);
                }
              }
            }
          }
          // Arguments that share operators with those chosen before.
          if (ops == 0 || role == ArgumentRole::weight) return;
          std::vector<ClassId> shared;
          for (const TermId term : terms) {
            if (is_weight_term(term)) continue;
            const auto it = containing_.find(term);
            if (it == containing_.end()) continue;
            for (const ClassId id : it->second) {
              const ValueClass& value = classes_[id];
              if (value.type != types[position]) continue;
              const bool seen_above = ops + value.ops <= below && !(last && ops + value.ops < below);
              if (!seen_above) shared.push_back(id);
            }
          }
          std::sort(shared.begin(), shared.end());
          shared.erase(std::unique(shared.begin(), shared.end()), shared.end());
          for (const ClassId id : shared) take(id);
        };

    std::function<void(std::size_t)> choose_type = [&](std::size_t position) {
      if (position == arity) {
        instance = instances_.find(op, types);
        if (instance == nullptr) return;
        for (const TypeId output : instance->outputs)
          for (const Shape& shape : instances_.shapes(output))
            if (volume(shape) > options_.max_elements) return;
        choose_class(0, {}, 0, 0, true);
        return;
      }
      const TypeId bound = static_cast<TypeId>(classes_of_.size());
      for (TypeId type = 0; type < bound; ++type) {
        bool occurs = false;
        for (const auto& by_kind : classes_of_[type]) {
          occurs = occurs || (application.arguments[position] != ArgumentRole::weight && !by_kind[0].empty()) ||
                   (application.arguments[position] != ArgumentRole::activation && !by_kind[1].empty());
        }
        if (!occurs) continue;
        types[position] = type;
        choose_type(position + 1);
      }
    };
    if (arity > Term::max_arguments) continue;
    choose_type(0);
  }
  if (too_many)
    return bad_input("group '" + group_.name + "' has more than " + std::to_string(options_.max_terms) + " terms of " +
                     std::to_string(level) + " operators: lower max_ops or split the group");
  return {};
}

void Bank::run_tasks(const std::vector<Task>& tasks, int level, int weight_ops, bool keep_values) {
  constexpr std::size_t chunk = 4096;
  std::vector<Result> results;
  for (std::size_t begin = 0; begin < tasks.size(); begin += chunk) {
    const std::size_t size = std::min(chunk, tasks.size() - begin);
    results.assign(size, {});
    std::atomic<std::size_t> next{0};
    auto work = [&] {
      std::vector<const FieldValue*> arguments;
      for (std::size_t i = next.fetch_add(1); i < size; i = next.fetch_add(1)) {
        const Task& task = tasks[begin + i];
        arguments.clear();
        for (const ClassId id : task.term.inputs()) arguments.push_back(&values_[id]);
        results[i].values = apply(*task.instance, arguments);
        for (const FieldValue& value : results[i].values) results[i].fingerprints.push_back(fingerprint_of(value));
        if (!keep_values) results[i].values.clear();
      }
    };
    std::vector<std::thread> threads;
    for (unsigned t = 1; t < options_.threads && t < size; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();

    // Classes are numbered in the order of the tasks, whichever thread evaluated them.
    for (std::size_t i = 0; i < size; ++i) {
      if (results[i].fingerprints.empty()) continue;
      const Task& task = tasks[begin + i];
      const TermId term = static_cast<TermId>(terms_.size());
      terms_.push_back(task.term);
      ++levels_[static_cast<std::size_t>(level)].terms;
      MultiTerm multi;
      for (std::size_t port = 0; port < results[i].fingerprints.size(); ++port) {
        const Hash128 fingerprint = results[i].fingerprints[port];
        const auto known = by_fingerprint_.find(fingerprint);
        if (known != by_fingerprint_.end()) {
          hits_.push_back({term, static_cast<std::uint32_t>(port), known->second, static_cast<std::uint8_t>(level),
                           static_cast<std::uint8_t>(weight_ops)});
          ++levels_[static_cast<std::size_t>(level)].hits;
          multi.outputs.push_back(known->second);
          continue;
        }
        ValueClass value;
        value.is_weight = level == 0;
        value.index = term;
        value.port = static_cast<std::uint32_t>(port);
        value.type = task.instance->outputs[port];
        value.ops = static_cast<std::uint8_t>(level);
        value.weight_ops = static_cast<std::uint8_t>(weight_ops);
        value.terms = union_of_terms(task.term.inputs());
        value.terms.push_back(term);  // the newest id is the largest
        ++levels_[static_cast<std::size_t>(level)].classes;
        multi.outputs.push_back(static_cast<ClassId>(classes_.size()));
        add_class(std::move(value), fingerprint, keep_values ? std::move(results[i].values[port]) : FieldValue{},
                  keep_values);
      }
      if (multi.outputs.size() > 1 && level > 0) {
        multi.term = term;
        multi.ops = static_cast<std::uint8_t>(level);
        multi.weight_ops = static_cast<std::uint8_t>(weight_ops);
        multi_terms_.push_back(std::move(multi));
      }
    }
  }
}

Status Bank::run() {
  const int max_ops = std::min(options_.max_ops, group_.max_ops);
  levels_.assign(static_cast<std::size_t>(max_ops) + 1, {});
  add_inputs();
  std::vector<std::vector<Task>> tasks;
  for (int weight_ops = 1; weight_ops <= group_.max_weight_ops; ++weight_ops) {
    TASO_RETURN_IF_ERROR(make_tasks(0, weight_ops, tasks));
    run_tasks(tasks[static_cast<std::size_t>(weight_ops)], 0, weight_ops, true);
  }
  for (int level = 1; level <= max_ops; ++level) {
    TASO_RETURN_IF_ERROR(make_tasks(level, 0, tasks));
    for (std::size_t weight_ops = 0; weight_ops < tasks.size(); ++weight_ops)
      run_tasks(tasks[weight_ops], level, static_cast<int>(weight_ops), level < max_ops);
  }
  return {};
}

}  // namespace taso
