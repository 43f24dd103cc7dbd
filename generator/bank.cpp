#include "generator/bank.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>

#include "generator/last_level.h"
#include "generator/parallel.h"
#include "support/file.h"
#include "support/random.h"

namespace taso {

Bank::Bank(const ProfileGroup& group, const OperatorRegistry& registry, BankOptions options)
    : group_(group),
      registry_(registry),
      options_(std::move(options)),
      instances_(group, registry),
      channel_(instances_, options_.seed, FieldRing(options_.seed, group.ordered)) {}

FieldValue Bank::random_value(TypeId type, const std::string& name) const {
  FieldValue result;
  for (std::size_t world = 0; world < group_.worlds; ++world)
    for (std::size_t point = 0; point < points; ++point) {
      Random random(options_.seed, name + "@" + std::to_string(world) + "," + std::to_string(point));
      RingTensor<Mod61> tensor;
      tensor.shape = instances_.shapes(type)[world];
      tensor.elements.resize(static_cast<std::size_t>(volume(tensor.shape)));
      for (Mod61& element : tensor.elements) element = channel_.ring().element(random.next());
      result.push_back(std::move(tensor));
    }
  return result;
}

std::vector<FieldValue> Bank::apply(const InstanceCache::Entry& instance,
                                    std::span<const FieldValue* const> arguments) const {
  std::vector<FieldValue> result(instance.outputs.size());
  std::vector<const RingTensor<Mod61>*> tensors(arguments.size());
  for (std::size_t i = 0; i < group_.worlds * points; ++i) {
    for (std::size_t argument = 0; argument < arguments.size(); ++argument)
      tensors[argument] = &(*arguments[argument])[i];
    FieldRing ring = channel_.ring();
    auto outputs = evaluate(instance.worlds[i / points], ring, tensors);
    if (!outputs || !ring.status()) return {};
    for (std::size_t port = 0; port < result.size(); ++port) result[port].push_back(std::move((*outputs)[port]));
  }
  return result;
}

std::vector<TermId> Bank::union_of_terms(std::span<const ClassId> values) const {
  std::vector<TermId> result, merged;
  for (const ClassId value : values) {
    const std::span<const TermId> terms = store_.terms_of(value);
    merged.clear();
    std::set_union(result.begin(), result.end(), terms.begin(), terms.end(), std::back_inserter(merged));
    result.swap(merged);
  }
  return result;
}

Error Bank::too_many(int level) const {
  return bad_input("group '" + group_.name + "' has more than " + std::to_string(options_.max_terms) + " terms of " +
                   std::to_string(level) + " operators: lower max_ops or split the group");
}

Status Bank::fits(std::uint64_t more, const std::string& what) const {
  const std::uint64_t limit = options_.scale.memory_limit;
  // Beside the values: fingerprints, their places, and the images under renamings.
  const std::uint64_t images = generator_images_.empty() ? symmetry_.size() : generator_images_.size();
  const std::uint64_t held = store_.bytes() +
                             store_.classes.size() * (sizeof(Hash128) + sizeof(void*) + images * sizeof(ClassId)) +
                             hits_.capacity() * sizeof(Hit) + more;
  if (limit == 0 || held <= limit) return {};
  auto megabytes = [](std::uint64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; };
  return bad_input("group '" + group_.name + "': " + what + " take " + megabytes(held) + ", beyond --memory-limit (" +
                   megabytes(limit) + "), and cannot go to files: give more memory, lower max_ops or split the group");
}

TermId Bank::add_term(const Term& term, std::size_t outputs) {
  store_.terms.push_back(term);
  output_counts_.push_back(static_cast<std::uint8_t>(outputs));
  return static_cast<TermId>(store_.terms.size() - 1);
}

ClassId Bank::add_class(ValueClass value, const Hash128& fingerprint, std::span<const TermId> terms) {
  const auto id = static_cast<ClassId>(store_.classes.size());
  value.first_term = store_.term_arena.size();
  value.term_count = static_cast<std::uint8_t>(terms.size());
  store_.term_arena.insert(store_.term_arena.end(), terms.begin(), terms.end());
  store_.classes.push_back(value);
  channel_.fingerprints.push_back(fingerprint);
  channel_.values.push_back(nullptr);
  store_.inputs.push_back(0);
  return id;
}

void Bank::add_inputs() {
  std::map<std::pair<TypeId, bool>, std::uint32_t> kinds;
  std::vector<std::uint32_t> kind;
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
    kind.push_back(
        kinds.try_emplace({value.type, value.is_weight}, static_cast<std::uint32_t>(kinds.size())).first->second);
    const FieldValue field = random_value(value.type, "input " + input.name);
    const std::size_t size = instances_.elements(value.type);
    Mod61* const elements = store_.elements.take(size * points);
    Mod61* out = elements;
    for (std::size_t point = 0; point < points; ++point)
      for (std::size_t world = 0; world < group_.worlds; ++world)
        for (const Mod61 element : field[world * points + point].elements) *out++ = element;
    const Hash128 fingerprint = channel_.fingerprint(value.type, elements);
    const ClassId id = add_class(value, fingerprint, {});
    channel_.values[id] = elements;
    store_.by_fingerprint.insert(fingerprint, id);
    if (store_.by_type.size() <= value.type) store_.by_type.resize(value.type + 1u);
    auto& by_ops = store_.by_type[value.type];
    if (by_ops.empty()) by_ops.resize(1);
    by_ops[0][value.is_weight ? 1 : 0].push_back(id);
  }
  symmetry_ = Symmetry(kind);
  generator_images_.resize(symmetry_.generators().size());
  for (std::uint32_t i = 0; i < group_.inputs.size(); ++i) {
    store_.inputs[i] = symmetry_.mask(i);
    for (std::size_t g = 0; g < generator_images_.size(); ++g)
      generator_images_[g].push_back(symmetry_.input(symmetry_.generators()[g], i));
  }
  levels_[0].classes += group_.inputs.size();
}

/// The terms of a level, in the order of the enumeration, with their fingerprints.
Status Bank::evaluate_level(const TermEnumerator& enumerator, int level, std::vector<FoundTerm>& found) {
  std::vector<BlockEvaluator::Scratch> scratch(std::max(1u, options_.threads));
  std::atomic<std::uint64_t> count{evaluated_};
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t index = 0; index < enumerator.blocks().size(); ++index) {
    const Block& block = enumerator.blocks()[index];
    BlockEvaluator evaluator(channel_, store_, *block.instance, block.types, enumerator.members(),
                             enumerator.position());
    if (evaluator.port_count() > BlockEvaluator::max_ports) continue;
    evaluator.prepare(std::max(1, (level - 1) / 2), options_.threads);
    std::vector<std::vector<FoundTerm>> by_unit(block.units);
    parallel_for(options_.threads, block.units, [&](std::size_t unit, unsigned thread) {
      const std::size_t begin = unit * TermEnumerator::rows_per_unit;
      const std::size_t end = std::min(begin + TermEnumerator::rows_per_unit, block.row_count());
      enumerator.for_each(block, begin, end, [&](std::span<const ClassId> arguments, int weight_ops) {
        BlockEvaluator::Ports ports;
        if (count.load(std::memory_order_relaxed) > options_.max_terms ||
            !evaluator.fingerprints(arguments, ports, scratch[thread]))
          return;
        ++count;
        FoundTerm stored;
        stored.term.op = block.op;
        stored.term.count = static_cast<std::uint8_t>(arguments.size());
        std::copy(arguments.begin(), arguments.end(), stored.term.arguments.begin());
        stored.block = index;
        stored.weight_ops = static_cast<std::uint8_t>(weight_ops);
        stored.fingerprints.assign(ports.begin(), ports.begin() + static_cast<std::ptrdiff_t>(evaluator.port_count()));
        by_unit[unit].push_back(std::move(stored));
      });
    });
    for (std::vector<FoundTerm>& terms : by_unit)
      found.insert(found.end(), std::move_iterator(terms.begin()), std::move_iterator(terms.end()));
    if (count > options_.max_terms) return too_many(level);
    TASO_RETURN_IF_ERROR(fits(found.capacity() * (sizeof(FoundTerm) + sizeof(Hash128)),
                              "terms of " + std::to_string(level) + " operators"));
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  seconds_per_term_ = taken.count() / static_cast<double>(std::max<std::uint64_t>(1, count - evaluated_));
  evaluated_ = count;
  return {};
}

/// Everything that the numbers of terms and classes in a checkpoint refer to.
Hash128 Bank::enumeration_hash(const TermEnumerator& enumerator, int level) const {
  Hasher hasher;
  hasher.add(options_.seed).add(level);
  for (const Hash128& fingerprint : channel_.fingerprints) hasher.add(fingerprint);
  for (const Block& block : enumerator.blocks()) {
    hasher.add(block.op).add(std::uint64_t{block.row_count()}).add(group_.operators[block.op].op);
    for (const TypeId type : block.types) hasher.add(type);
  }
  return hasher.finish();
}

void Bank::note_applied(const TermEnumerator& enumerator) {
  for (const Block& block : enumerator.blocks())
    for (std::size_t row = 0; row < block.row_count() && !applied_[block.op]; ++row)
      enumerator.for_each(block, row, row + 1,
                          [&](std::span<const ClassId>, int /*weight_ops*/) { applied_[block.op] = true; });
}

std::vector<std::size_t> Bank::never_applied() const {
  std::vector<std::size_t> never;
  for (std::size_t op = 0; op < applied_.size(); ++op)
    if (!applied_[op]) never.push_back(op);
  return never;
}

Status Bank::add_level(int level, int weight_level) {
  const TermEnumerator enumerator(store_, group_, registry_, instances_, level, weight_level, options_.max_elements);
  note_applied(enumerator);
  std::vector<FoundTerm> found;
  const std::string& folder = options_.scale.checkpoint;
  const std::string file = folder + "/" + group_.name + "-" + std::to_string(level) + "ops" +
                           (level == 0 ? "-" + std::to_string(weight_level) + "weights" : std::string()) + ".level";
  const Hash128 enumeration = folder.empty() ? Hash128() : enumeration_hash(enumerator, level);
  if (!folder.empty() && std::filesystem::exists(file)) {
    TASO_ASSIGN(const std::string bytes, read_file(file));
    TASO_ASSIGN(found, level_from_bytes(bytes, enumeration, file));
    evaluated_ += found.size();
  } else {
    TASO_RETURN_IF_ERROR(evaluate_level(enumerator, level, found));
    if (!folder.empty()) TASO_RETURN_IF_ERROR(write_file_atomically(file, level_to_bytes(enumeration, found)));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const FoundTerm& a, const FoundTerm& b) { return a.weight_ops < b.weight_ops; });
  std::vector<std::vector<TermId>> fresh;
  const auto first_class = static_cast<ClassId>(store_.classes.size());
  const auto first_term = static_cast<TermId>(store_.terms.size());
  const std::size_t first_hit = hits_.size();
  insert(found, level, fresh, enumerator.blocks().size());
  found = {};
  std::uint64_t more = 0;
  for (std::size_t id = first_class; id < store_.classes.size(); ++id)
    more += instances_.elements(store_.classes[id].type) * points * sizeof(Mod61);
  TASO_RETURN_IF_ERROR(fits(more, "the values of terms of up to " + std::to_string(level) + " operators"));
  add_values(enumerator, fresh);
  align_representatives(first_class, first_term, first_hit);
  return {};
}

/// Classes are numbered in the order of the enumeration, whichever thread evaluated them. `fresh`: per block the terms
/// that represent new classes.
void Bank::insert(std::vector<FoundTerm>& found, int level, std::vector<std::vector<TermId>>& fresh,
                  std::size_t block_count) {
  fresh.assign(block_count, {});
  LevelCounts& counts = levels_[static_cast<std::size_t>(level)];
  for (const FoundTerm& stored : found) {
    const TermId term = add_term(stored.term, stored.fingerprints.size());
    if (level == 0) store_.weight_term_end = term + 1;
    ++counts.terms;
    ++counts.evaluated;
    MultiTerm multi;
    bool is_fresh = false;
    for (std::uint32_t port = 0; port < stored.fingerprints.size(); ++port) {
      const Hash128& fingerprint = stored.fingerprints[port];
      const auto [known, added] =
          store_.by_fingerprint.insert(fingerprint, static_cast<ClassId>(store_.classes.size()));
      multi.outputs.push_back(known);
      if (!added) {
        hits_.push_back({term, port, known, static_cast<std::uint8_t>(level), stored.weight_ops});
        ++counts.hits;
        continue;
      }
      ++counts.classes;
      is_fresh = true;
      ValueClass value;
      value.is_weight = level == 0;
      value.index = term;
      value.port = static_cast<std::uint8_t>(port);
      const auto* const instance = [&] {
        std::vector<TypeId> types;
        for (const ClassId id : stored.term.inputs()) types.push_back(store_.classes[id].type);
        return instances_.find(stored.term.op, types);
      }();
      value.type = instance->outputs[port];
      value.ops = static_cast<std::uint8_t>(level);
      value.weight_ops = stored.weight_ops;
      std::vector<TermId> terms = union_of_terms(stored.term.inputs());
      terms.push_back(term);  // the newest id is the largest
      const ClassId id = add_class(value, fingerprint, terms);
      for (const ClassId argument : stored.term.inputs()) store_.inputs[id] |= store_.inputs[argument];
      if (store_.by_type.size() <= value.type) store_.by_type.resize(value.type + 1u);
      auto& by_ops = store_.by_type[value.type];
      if (by_ops.size() <= value.ops) by_ops.resize(value.ops + 1u);
      by_ops[value.ops][value.is_weight ? 1 : 0].push_back(id);
    }
    if (is_fresh) fresh[stored.block].push_back(term);
    if (multi.outputs.size() > 1 && level > 0) {
      multi.term = term;
      multi.ops = static_cast<std::uint8_t>(level);
      multi.weight_ops = stored.weight_ops;
      multi_terms_.push_back(std::move(multi));
    }
  }
}

/// The elements of new classes, and where renamings take them.
void Bank::add_values(const TermEnumerator& enumerator, const std::vector<std::vector<TermId>>& fresh) {
  // Per new term the first class that it represents; its other outputs follow where they are new.
  std::vector<std::vector<ClassId>> first(fresh.size());
  {
    std::vector<std::pair<TermId, std::pair<std::size_t, std::size_t>>> places;
    for (std::size_t block = 0; block < fresh.size(); ++block) {
      first[block].assign(fresh[block].size(), 0);
      for (std::size_t i = 0; i < fresh[block].size(); ++i) places.push_back({fresh[block][i], {block, i}});
    }
    std::sort(places.begin(), places.end());
    auto at = places.begin();
    for (auto id = static_cast<ClassId>(generator_images_.empty() ? 0 : generator_images_[0].size());
         id < store_.classes.size() && at != places.end(); ++id) {
      const ValueClass& value = store_.classes[id];
      if (value.is_input || value.index != at->first) continue;
      first[at->second.first][at->second.second] = id;
      ++at;
    }
  }
  std::vector<BlockEvaluator::Scratch> scratch(std::max(1u, options_.threads));
  for (std::vector<ClassId>& images : generator_images_) images.resize(store_.classes.size(), Symmetry::none);
  for (std::size_t index = 0; index < fresh.size(); ++index) {
    if (fresh[index].empty()) continue;
    const Block& block = enumerator.blocks()[index];
    const BlockEvaluator evaluator(channel_, store_, *block.instance, block.types, enumerator.members(),
                                   enumerator.position());
    const std::size_t ports = evaluator.port_count();
    auto classes_of = [&](std::size_t i, auto&& use) {
      for (ClassId id = first[index][i]; id < store_.classes.size(); ++id) {
        const ValueClass& value = store_.classes[id];
        if (value.index != fresh[index][i]) break;
        use(id, value.port);
      }
    };
    std::vector<std::vector<Mod61*>> elements(fresh[index].size(), std::vector<Mod61*>(ports));
    for (std::size_t i = 0; i < fresh[index].size(); ++i) {
      for (std::size_t port = 0; port < ports; ++port)
        elements[i][port] = store_.elements.take(instances_.elements(block.instance->outputs[port]) * points);
      classes_of(i, [&](ClassId id, std::size_t port) { channel_.values[id] = elements[i][port]; });
    }
    parallel_ranges(options_.threads, fresh[index].size(), 64,
                    [&](std::size_t begin, std::size_t end, unsigned thread) {
                      for (std::size_t i = begin; i < end; ++i) {
                        const Term& term = store_.terms[fresh[index][i]];
                        const bool good = evaluator.values(term.inputs(), elements[i], scratch[thread]);
                        TASO_CHECK(good, "a term that has a fingerprint has a value");
                        for (std::size_t g = 0; g < generator_images_.size(); ++g) {
                          Term image = term;
                          bool known = true;
                          for (std::size_t k = 0; k < term.count; ++k) {
                            image.arguments[k] = generator_images_[g][term.arguments[k]];
                            known = known && image.arguments[k] != Symmetry::none;
                          }
                          BlockEvaluator::Ports found;
                          if (!known || !evaluator.fingerprints(image.inputs(), found, scratch[thread])) continue;
                          classes_of(i, [&](ClassId id, std::size_t port) {
                            generator_images_[g][id] = store_.by_fingerprint.find(found[port]);
                          });
                        }
                      }
                    });
  }
}

/// Lets renamed classes have renamed representatives, so that sizes, which depend on what representatives share, are
/// the same under renaming: from the first class of an orbit its term is carried on along the generators. The term that
/// was the representative takes the place of the other one among the hits.
void Bank::align_representatives(ClassId first_class, TermId first_term, std::size_t first_hit) {
  if (generator_images_.empty()) return;
  std::vector<TermId> by_term;
  for (TermId term = first_term; term < store_.terms.size(); ++term) by_term.push_back(term);
  std::sort(by_term.begin(), by_term.end(), [&](TermId a, TermId b) { return store_.terms[a] < store_.terms[b]; });
  // Hits are in the order of their terms.
  auto hit_of = [&](TermId term, std::uint32_t port) {
    const auto it =
        std::lower_bound(hits_.begin() + static_cast<std::ptrdiff_t>(first_hit), hits_.end(), std::pair(term, port),
                         [](const Hit& hit, const auto& key) { return std::pair(hit.term, hit.port) < key; });
    return it != hits_.end() && it->term == term && it->port == port ? it : hits_.end();
  };
  std::vector<Hit> replaced;  // sorted in again below
  std::vector<bool> reached(store_.classes.size() - first_class, false);
  std::vector<ClassId> queue;
  for (ClassId start = first_class; start < store_.classes.size(); ++start) {
    if (reached[start - first_class]) continue;
    reached[start - first_class] = true;
    queue.assign(1, start);
    for (std::size_t at = 0; at < queue.size(); ++at)
      for (const std::vector<ClassId>& images : generator_images_) {
        const ClassId image = images[queue[at]];
        if (image == Symmetry::none || image < first_class || reached[image - first_class]) continue;
        reached[image - first_class] = true;
        queue.push_back(image);
        const ValueClass& from = store_.classes[queue[at]];
        ValueClass& to = store_.classes[image];
        Term term = store_.terms[from.index];
        for (std::size_t i = 0; i < term.count; ++i) term.arguments[i] = images[term.arguments[i]];
        const ProfileOperator& op = group_.operators[term.op];
        if (term.count == 2 && op.arguments[0] == op.arguments[1] && registry_.is_commutative(op.op) &&
            term.arguments[0] > term.arguments[1])
          std::swap(term.arguments[0], term.arguments[1]);
        const auto found = std::lower_bound(by_term.begin(), by_term.end(), term,
                                            [&](TermId a, const Term& b) { return store_.terms[a] < b; });
        if (found == by_term.end() || store_.terms[*found] != term) continue;
        if (*found == to.index && from.port == to.port) continue;
        const auto hit = hit_of(*found, from.port);
        if (hit == hits_.end() || hit->value != image || hit->weight_ops != to.weight_ops) continue;
        hit->value = Symmetry::none;
        replaced.push_back({to.index, to.port, image, to.ops, to.weight_ops});
        to.index = *found;
        to.port = from.port;
        std::vector<TermId> terms = union_of_terms(term.inputs());
        terms.push_back(*found);
        to.first_term = store_.term_arena.size();
        to.term_count = static_cast<std::uint8_t>(terms.size());
        store_.term_arena.insert(store_.term_arena.end(), terms.begin(), terms.end());
      }
  }
  std::erase_if(hits_, [](const Hit& hit) { return hit.value == Symmetry::none; });
  hits_.insert(hits_.end(), replaced.begin(), replaced.end());
  std::sort(hits_.begin() + static_cast<std::ptrdiff_t>(first_hit), hits_.end(),
            [](const Hit& a, const Hit& b) { return std::pair(a.term, a.port) < std::pair(b.term, b.port); });
}

Status Bank::run() {
  const int max_ops = std::min(options_.max_ops, group_.max_ops);
  levels_.assign(static_cast<std::size_t>(max_ops) + 1, {});
  applied_.assign(group_.operators.size(), false);
  add_inputs();
  for (int weight_ops = 1; weight_ops <= group_.max_weight_ops; ++weight_ops)
    TASO_RETURN_IF_ERROR(add_level(0, weight_ops));
  for (int level = 1; level < max_ops; ++level) TASO_RETURN_IF_ERROR(add_level(level, 0));
  if (max_ops == 0) return {};
  symmetry_.compose(generator_images_, store_.classes.size());
  generator_images_ = {};
  return LastLevel(*this, max_ops).run();
}

}  // namespace taso
