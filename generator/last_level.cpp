#include "generator/last_level.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "generator/parallel.h"
#include "support/file.h"

namespace taso {

namespace {

/// What the process holds now.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// What is left of a limit for fingerprints. At least a little: files beyond it are as good as memory, only slower.
std::uint64_t records_limit(std::uint64_t memory_limit) {
  if (memory_limit == 0) return 0;
  constexpr std::uint64_t least = 1u << 20;
  // A quarter of what is there already is left for the tables of one block and for sorting.
  const std::uint64_t held = resident_bytes() / 4 * 5;
  return memory_limit > held + least ? memory_limit - held : least;
}

}  // namespace

LastLevel::LastLevel(Bank& bank, int level)
    : bank_(bank),
      level_(level),
      enumerator_(bank.store_, bank.group_, bank.registry_, bank.instances_, level, 0, bank.options_.max_elements),
      records_(records_limit(bank.options_.scale.memory_limit), bank.options_.scale.temporary),
      first_(bank.store_.classes.size(), true) {
  for (ClassId id = 0; id < first_.size(); ++id) {
    const ClassId* const images = bank.symmetry_.images(id);
    first_[id] = std::all_of(images, images + bank.symmetry_.size(), [&](ClassId image) { return image >= id; });
  }
  bank.note_applied(enumerator_);
}

std::uint64_t LastLevel::place_of(int weight_ops, std::uint32_t unit, std::uint32_t index, std::uint32_t port,
                                  std::size_t orbit, bool self) {
  return static_cast<std::uint64_t>(weight_ops + 1) << 60 | std::uint64_t{unit} << 38 | std::uint64_t{index} << 10 |
         std::uint64_t{port} << 7 | static_cast<std::uint64_t>(orbit - 1) << 1 | (self ? 1u : 0u);
}

std::uint64_t LastLevel::inputs_of(std::span<const ClassId> arguments) const {
  std::uint64_t mask = 0;
  for (const ClassId id : arguments) mask |= bank_.store_.inputs[id];
  return mask;
}

bool LastLevel::rename(const Block& block, std::span<const ClassId> arguments, std::size_t element,
                       std::span<ClassId> renamed) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    renamed[i] = bank_.symmetry_.images(arguments[i])[element];
    if (renamed[i] == Symmetry::none) return false;
  }
  if (block.commutative && renamed[0] > renamed[1]) std::swap(renamed[0], renamed[1]);
  return true;
}

bool LastLevel::is_first(const Block& block, std::span<const ClassId> arguments) const {
  std::array<ClassId, Term::max_arguments> renamed{};
  for (const std::uint8_t element : bank_.symmetry_.renamings(inputs_of(arguments))) {
    if (element == 0 || !rename(block, arguments, element, renamed)) continue;
    if (std::lexicographical_compare(renamed.begin(), renamed.begin() + static_cast<std::ptrdiff_t>(arguments.size()),
                                     arguments.begin(), arguments.end()))
      return false;
  }
  return true;
}

void LastLevel::evaluate_unit(const Block& block, const BlockEvaluator& evaluator, std::uint32_t unit, Scratch& scratch,
                              Segment& segment) const {
  const std::size_t begin = std::size_t{unit - block.first_unit} * TermEnumerator::rows_per_unit;
  const std::size_t end = std::min(begin + TermEnumerator::rows_per_unit, block.row_count());
  const std::size_t ports = evaluator.port_count();
  std::uint32_t index = 0;
  for_each_first(block, begin, end, [&](std::span<const ClassId> arguments, int weight_ops) {
    const std::uint32_t at = index++;
    std::array<ClassId, Term::max_arguments> renamed{};
    const auto size = static_cast<std::ptrdiff_t>(arguments.size());
    BlockEvaluator::Ports least{}, found{};
    // Per output: how many renamings give the least, the first of them, and whether another gives another term.
    std::array<std::size_t, BlockEvaluator::max_ports> ties{};
    std::array<std::array<ClassId, Term::max_arguments>, BlockEvaluator::max_ports> tied{};
    std::array<bool, BlockEvaluator::max_ports> self{};
    std::size_t tried = 0, same = 0;
    for (const std::uint8_t element : bank_.symmetry_.renamings(inputs_of(arguments))) {
      if (!rename(block, arguments, element, renamed) ||
          !evaluator.fingerprints({renamed.data(), arguments.size()}, found, scratch)) {
        if (element == 0) return;
        continue;
      }
      ++tried;
      if (std::equal(arguments.begin(), arguments.end(), renamed.begin())) ++same;
      for (std::size_t port = 0; port < ports; ++port) {
        if (tried == 1 || found[port] < least[port]) {
          least[port] = found[port];
          ties[port] = 1;
          tied[port] = renamed;
          self[port] = false;
        } else if (found[port] == least[port]) {
          ++ties[port];
          if (!std::equal(renamed.begin(), renamed.begin() + size, tied[port].begin())) self[port] = true;
        }
      }
    }
    ++segment.counts.evaluated;
    segment.counts.terms += tried / same;
    segment.counts.outputs += tried / same * ports;
    for (std::size_t port = 0; port < ports; ++port)
      segment.records.push_back(
          {least[port].low, least[port].high,
           place_of(weight_ops, unit, at, static_cast<std::uint32_t>(port), tried / ties[port], self[port])});
  });
}

const Block& LastLevel::block_of(std::uint32_t unit) const {
  const auto after =
      std::upper_bound(enumerator_.blocks().begin(), enumerator_.blocks().end(), unit,
                       [](std::uint32_t number, const Block& block) { return number < block.first_unit; });
  return *std::prev(after);
}

/// Counts the terms of some rows of every block: of each size of the first argument, since few small ones have many
/// partners each and many large ones have few.
void LastLevel::estimate() {
  constexpr std::size_t sample = 12;
  double terms = 0, fingerprints = 0;
  std::vector<std::size_t> rows;
  for (const Block& block : enumerator_.blocks()) {
    auto add = [&] {
      const std::size_t step = std::max<std::size_t>(1, rows.size() / sample);
      std::uint64_t count = 0, renamings = 0;
      std::size_t looked = 0;
      for (std::size_t i = step / 2; i < rows.size(); i += step, ++looked)
        for_each_first(block, rows[i], rows[i] + 1, [&](std::span<const ClassId> arguments, int) {
          ++count;
          renamings += bank_.symmetry_.renamings(inputs_of(arguments)).size();
        });
      if (looked > 0) {
        const double share = static_cast<double>(rows.size()) / static_cast<double>(looked);
        terms += static_cast<double>(count) * share;
        fingerprints += static_cast<double>(renamings) * share;
      }
      rows.clear();
    };
    for (std::size_t row = 0; row < block.row_count(); ++row) {
      if (!block.types.empty()) {
        if (!first_[block.rows[row]]) continue;
        const auto ops = [&](std::size_t at) { return bank_.store_.classes[block.rows[at]].ops; };
        if (!rows.empty() && ops(rows.back()) != ops(row)) add();
      }
      rows.push_back(row);
    }
    add();
  }
  expected_ = static_cast<std::uint64_t>(terms);
  expected_fingerprints_ = fingerprints;
}

/// What the numbers of terms and classes in a segment refer to.
Hash128 LastLevel::enumeration_hash() const {
  return Hasher().add(bank_.enumeration_hash(enumerator_, level_)).add(segment_units).finish();
}

std::string LastLevel::segment_file(std::uint32_t segment) const {
  return fmt::format("{}/{}-{}ops-{:06}.segment", bank_.options_.scale.checkpoint, bank_.group_.name, level_, segment);
}

Status LastLevel::accept(const Segment& segment) {
  counts_.terms += segment.counts.terms;
  counts_.evaluated += segment.counts.evaluated;
  outputs_ += segment.counts.outputs;
  return bank_.complete_ ? records_.add(segment.records) : Status();
}

/// Segments that other processes evaluated; afterwards none may be missing.
Status LastLevel::receive_all(const Hash128& enumeration, std::vector<bool>& done) {
  const ScaleOptions& scale = bank_.options_.scale;
  if (scale.receive)
    TASO_RETURN_IF_ERROR(scale.receive(enumeration, [&](const Segment& segment) -> Status {
      const std::uint32_t number = segment.begin / segment_units;
      if (segment.enumeration != enumeration || number >= done.size() || done[number]) return {};
      done[number] = true;
      return accept(segment);
    }));
  const auto missing = static_cast<std::size_t>(std::find(done.begin(), done.end(), false) - done.begin());
  if (missing < done.size())
    return bad_input(
        fmt::format("group '{}': segment {} of {} is missing: merge the files of all shards, made by this "
                    "version from the same profile, specifications, seed and size",
                    bank_.group_.name, missing, done.size()));
  return {};
}

Status LastLevel::evaluate_all() {
  const BankOptions& options = bank_.options_;
  const ScaleOptions& scale = options.scale;
  const std::uint32_t units = enumerator_.unit_count();
  const std::uint32_t segment_count = (units + segment_units - 1) / segment_units;
  const bool saved = !scale.checkpoint.empty(), sent = static_cast<bool>(scale.send);
  // Segments are needed as a whole where they leave the process.
  const bool collected = saved || sent;
  bank_.complete_ = !sent;
  const Hash128 enumeration = enumeration_hash();
  std::vector<bool> done(segment_count, false), own(segment_count, false);
  for (std::uint32_t number = 0; number < segment_count; ++number) own[number] = number % scale.shards == scale.shard;
  for (std::uint32_t number = 0; saved && number < segment_count; ++number) {
    const std::string file = segment_file(number);
    if (!own[number] || !std::filesystem::exists(file)) continue;
    TASO_ASSIGN(const std::string bytes, read_file(file));
    std::size_t at = 0;
    TASO_ASSIGN(const Segment segment, segment_from_bytes(bytes, at, file));
    if (segment.enumeration != enumeration || segment.begin != number * segment_units)
      return bad_input(
          "made from another profile, specifications, seed, size or version: give another folder to "
          "--checkpoint",
          {file, 0, 0});
    done[number] = true;
    if (sent) TASO_RETURN_IF_ERROR(scale.send(segment));
    TASO_RETURN_IF_ERROR(accept(segment));
  }

  std::vector<Segment> open(segment_count);
  std::vector<std::uint32_t> left(segment_count);
  for (std::uint32_t number = 0; number < segment_count; ++number) {
    open[number].enumeration = enumeration;
    open[number].begin = number * segment_units;
    open[number].end = std::min(units, (number + 1) * segment_units);
    left[number] = open[number].end - open[number].begin;
  }
  std::mutex mutex;
  Status status;
  bool stop = false;
  std::vector<bool> finished = done;
  std::vector<Scratch> scratch(std::max(1u, options.threads));
  for (const Block& block : enumerator_.blocks()) {
    std::vector<std::uint32_t> todo;
    for (std::uint32_t unit = block.first_unit; unit < block.first_unit + block.units; ++unit)
      if (own[unit / segment_units] && !done[unit / segment_units]) todo.push_back(unit);
    if (todo.empty()) continue;
    BlockEvaluator evaluator(bank_.channel_, bank_.store_, *block.instance, block.types, enumerator_.members(),
                             enumerator_.position());
    const bool possible = evaluator.port_count() <= BlockEvaluator::max_ports;
    if (possible) evaluator.prepare(std::max(1, (level_ - 1) / 2), options.threads);
    parallel_for(options.threads, todo.size(), [&](std::size_t i, unsigned thread) {
      {
        const std::lock_guard lock(mutex);
        if (stop) return;
      }
      Segment part;
      if (possible) evaluate_unit(block, evaluator, todo[i], scratch[thread], part);
      Status added = collected ? Status() : records_.add(part.records);
      const std::uint32_t number = todo[i] / segment_units;
      const std::lock_guard lock(mutex);
      Segment& segment = open[number];
      segment.counts.terms += part.counts.terms;
      segment.counts.evaluated += part.counts.evaluated;
      segment.counts.outputs += part.counts.outputs;
      if (collected) segment.records.insert(segment.records.end(), part.records.begin(), part.records.end());
      if (--left[number] == 0) {
        std::sort(segment.records.begin(), segment.records.end());
        if (saved && added) added = write_file_atomically(segment_file(number), to_bytes(segment));
        if (sent && added) added = scale.send(segment);
        if (added) added = accept(segment);
        segment.records = {};
        finished[number] = true;
      }
      if (bank_.evaluated_ + counts_.evaluated > options.max_terms && added) added = bank_.too_many(level_);
      if (!added && status) status = std::move(added);
      stop = !status;
      if (options.progress) options.progress(counts_.evaluated, expected_ / (sent ? scale.shards : 1));
    });
    TASO_RETURN_IF_ERROR(std::move(status));
    status = {};
  }
  if (sent) return scale.sent_all ? scale.sent_all() : Status();
  return receive_all(enumeration, finished);
}

/// Classes of smaller size, one of each set of classes that are equal up to renaming.
Status LastLevel::add_known() {
  std::vector<Record> records;
  for (ClassId id = 0; id < bank_.store_.classes.size(); ++id) {
    const ClassId* const images = bank_.symmetry_.images(id);
    if (!first_[id]) continue;
    Hash128 least = bank_.channel_.fingerprints[id];
    for (std::size_t element = 1; element < bank_.symmetry_.size(); ++element)
      if (images[element] != Symmetry::none) least = std::min(least, bank_.channel_.fingerprints[images[element]]);
    records.push_back({least.low, least.high, id});
    if (records.size() == 65536) {
      TASO_RETURN_IF_ERROR(records_.add(records));
      records.clear();
    }
  }
  return records_.add(records);
}

Status LastLevel::find_groups() {
  std::vector<std::vector<Group>> found(RecordStore::partitions);
  std::vector<std::uint64_t> classes(RecordStore::partitions, 0);
  std::mutex mutex;
  Status status;
  parallel_for(bank_.options_.threads, RecordStore::partitions, [&](std::size_t partition, unsigned) {
    auto taken = records_.take(partition);
    if (!taken) {
      const std::lock_guard lock(mutex);
      if (status) status = taken.error();
      return;
    }
    const std::vector<Record>& records = *taken;
    for (std::size_t begin = 0, end = 0; begin < records.size(); begin = end) {
      const Record& first = records[begin];
      for (end = begin; end < records.size() && records[end].low == first.low && records[end].high == first.high;)
        ++end;
      const bool known = is_class(first.place);
      if (!known) classes[partition] += orbit_of(first.place);
      if (known ? end == begin + 1 : end == begin + 1 && !is_self(first.place)) continue;
      Group group;
      group.key = {first.high, first.low};
      if (known) group.known = static_cast<ClassId>(first.place);
      for (std::size_t i = begin + (known ? 1 : 0); i < end; ++i)
        if (!is_class(records[i].place)) group.places.push_back(records[i].place);
      if (!group.places.empty()) found[partition].push_back(std::move(group));
    }
  });
  TASO_RETURN_IF_ERROR(std::move(status));
  for (std::size_t partition = 0; partition < RecordStore::partitions; ++partition) {
    counts_.classes += classes[partition];
    groups_.insert(groups_.end(), std::move_iterator(found[partition].begin()),
                   std::move_iterator(found[partition].end()));
  }
  counts_.hits = outputs_ - counts_.classes;
  // In the order in which the first terms were enumerated; known values first.
  std::sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
    return std::pair(a.known, a.places.front()) < std::pair(b.known, b.places.front());
  });
  return {};
}

/// Makes the terms of the groups again.
void LastLevel::make_members() {
  std::vector<std::pair<std::uint64_t, std::size_t>> wanted;  // place without the first field, group
  for (std::size_t group = 0; group < groups_.size(); ++group)
    for (const std::uint64_t place : groups_[group].places) wanted.push_back({place, group});
  std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first << 4 < b.first << 4; });
  members_.resize(wanted.size());
  std::vector<Scratch> scratch(std::max(1u, bank_.options_.threads));
  auto next = wanted.begin();
  for (const Block& block : enumerator_.blocks()) {
    // Runs of wanted places, one per unit.
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    while (next != wanted.end() && unit_of(next->first) < block.first_unit + block.units) {
      const std::uint32_t unit = unit_of(next->first);
      const auto begin = static_cast<std::size_t>(next - wanted.begin());
      while (next != wanted.end() && unit_of(next->first) == unit) ++next;
      runs.push_back({begin, static_cast<std::size_t>(next - wanted.begin())});
    }
    if (runs.empty()) continue;
    BlockEvaluator evaluator(bank_.channel_, bank_.store_, *block.instance, block.types, enumerator_.members(),
                             enumerator_.position());
    evaluator.prepare(std::max(1, (level_ - 1) / 2), bank_.options_.threads);
    parallel_for(bank_.options_.threads, runs.size(), [&](std::size_t run, unsigned thread) {
      std::size_t at = runs[run].first;
      const std::size_t stop = runs[run].second;
      const std::uint32_t unit = unit_of(wanted[at].first);
      const std::size_t begin = std::size_t{unit - block.first_unit} * TermEnumerator::rows_per_unit;
      const std::size_t end = std::min(begin + TermEnumerator::rows_per_unit, block.row_count());
      std::uint32_t index = 0;
      for_each_first(block, begin, end, [&](std::span<const ClassId> arguments, int) {
        if (at == stop) return;
        if (index++ != index_of(wanted[at].first)) return;
        std::array<ClassId, Term::max_arguments> renamed{};
        BlockEvaluator::Ports found{};
        const std::size_t first = at;
        for (; at < stop && index_of(wanted[at].first) + 1 == index; ++at) {
          Member& member = members_[at];
          member.place = wanted[at].first;
          member.term.op = block.op;
          member.term.count = static_cast<std::uint8_t>(arguments.size());
          std::copy(arguments.begin(), arguments.end(), member.term.arguments.begin());
        }
        for (const std::uint8_t element : bank_.symmetry_.renamings(inputs_of(arguments))) {
          if (!rename(block, arguments, element, renamed) ||
              !evaluator.fingerprints({renamed.data(), arguments.size()}, found, scratch[thread]))
            continue;
          for (std::size_t i = first; i < at; ++i) {
            const Hash128& fingerprint = found[port_of(wanted[i].first)];
            if (element == 0) members_[i].fingerprint = fingerprint;
            if (fingerprint == groups_[wanted[i].second].key) members_[i].renamings.push_back(element);
          }
        }
      });
    });
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) groups_[wanted[i].second].members.push_back(i);
  for (Group& group : groups_)
    std::sort(group.members.begin(), group.members.end(),
              [&](std::size_t a, std::size_t b) { return members_[a].place < members_[b].place; });
}

TermId LastLevel::term_id(const Term& term, std::uint64_t place) {
  const auto [it, inserted] = made_.try_emplace(term, 0);
  if (inserted) it->second = bank_.add_term(term, block_of(unit_of(place)).instance->outputs.size());
  return it->second;
}

/// The class of a group, named so that `frame` takes its value to the one with the smallest fingerprint. All members
/// of the group become terms of the class.
ClassId LastLevel::class_of(Group& group, std::size_t frame, const Hash128& fingerprint) {
  if (const auto it = classes_.find(fingerprint); it != classes_.end()) return it->second;
  const Symmetry& symmetry = bank_.symmetry_;
  const std::size_t back = symmetry.inverse(frame);
  ClassId known = Symmetry::none;
  if (group.known != Symmetry::none) known = bank_.store_.by_fingerprint.find(fingerprint);
  // All names that the members can have in this class, the first member's own first.
  std::vector<std::pair<std::uint64_t, Term>> terms;
  for (const std::size_t index : group.members) {
    const Member& member = members_[index];
    std::set<Term> names;
    for (const std::uint8_t renaming : member.renamings) {
      const std::size_t element = symmetry.product(back, renaming);
      Term term = member.term;
      bool good = true;
      for (std::size_t i = 0; i < term.count; ++i) {
        term.arguments[i] = symmetry.images(member.term.arguments[i])[element];
        good = good && term.arguments[i] != Symmetry::none;
      }
      if (!good) continue;
      const ProfileOperator& op = bank_.group_.operators[term.op];
      if (term.count == 2 && op.arguments[0] == op.arguments[1] && bank_.registry_.is_commutative(op.op) &&
          term.arguments[0] > term.arguments[1])
        std::swap(term.arguments[0], term.arguments[1]);
      names.insert(term);
    }
    for (const Term& term : names) terms.push_back({member.place, term});
  }
  ClassId id = known;
  for (const auto& [place, term] : terms) {
    const TermId number = term_id(term, place);
    const auto weight_ops = static_cast<std::uint8_t>(weight_ops_of(place));
    if (id == Symmetry::none) {
      ValueClass value;
      value.index = number;
      value.port = static_cast<std::uint8_t>(port_of(place));
      value.ops = static_cast<std::uint8_t>(level_);
      value.weight_ops = weight_ops;
      std::vector<TypeId> types;
      for (const ClassId argument : term.inputs()) types.push_back(bank_.store_.classes[argument].type);
      value.type = bank_.instances_.find(term.op, types)->outputs[value.port];
      std::vector<TermId> below = bank_.union_of_terms(term.inputs());
      below.push_back(number);
      id = bank_.add_class(value, fingerprint, below);
      continue;
    }
    hits_.push_back({place, {number, port_of(place), id, static_cast<std::uint8_t>(level_), weight_ops}});
  }
  classes_.emplace(fingerprint, id);
  return id;
}

void LastLevel::make_classes() {
  const Symmetry& symmetry = bank_.symmetry_;
  // Terms with several outputs all of which are known: place without port -> outputs.
  struct Output {
    std::size_t group = 0, member = 0;
  };
  std::map<std::uint64_t, std::map<std::uint32_t, Output>> several;
  auto without_port = [](std::uint64_t place) { return place >> 10; };
  for (std::size_t group = 0; group < groups_.size(); ++group)
    for (const std::size_t index : groups_[group].members) {
      const Member& member = members_[index];
      std::vector<TypeId> types;
      for (const ClassId argument : member.term.inputs()) types.push_back(bank_.store_.classes[argument].type);
      if (bank_.instances_.find(member.term.op, types)->outputs.size() > 1)
        several[without_port(member.place)][port_of(member.place)] = {group, index};
    }
  for (Group& group : groups_) {
    if (group.known != Symmetry::none) {
      // The names of the known class.
      const Hash128 fingerprint = bank_.channel_.fingerprints[group.known];
      const ClassId* const images = symmetry.images(group.known);
      for (std::size_t element = 0; element < symmetry.size(); ++element)
        if (images[element] != Symmetry::none && bank_.channel_.fingerprints[images[element]] == group.key) {
          class_of(group, element, fingerprint);
          break;
        }
    } else {
      const Member& member = members_[group.members.front()];
      if (!member.renamings.empty()) class_of(group, member.renamings.front(), member.fingerprint);
    }
  }
  for (const auto& [place, outputs] : several) {
    const Member& any = members_[outputs.begin()->second.member];
    std::vector<TypeId> types;
    for (const ClassId argument : any.term.inputs()) types.push_back(bank_.store_.classes[argument].type);
    const std::size_t count = bank_.instances_.find(any.term.op, types)->outputs.size();
    if (outputs.size() < count) continue;
    Bank::MultiTerm multi;
    for (const auto& [port, output] : outputs) {
      const Member& member = members_[output.member];
      if (member.renamings.empty()) break;
      multi.outputs.push_back(class_of(groups_[output.group], member.renamings.front(), member.fingerprint));
    }
    if (multi.outputs.size() < count) continue;
    multi.term = term_id(any.term, any.place);
    multi.ops = static_cast<std::uint8_t>(level_);
    multi.weight_ops = static_cast<std::uint8_t>(weight_ops_of(any.place));
    bank_.multi_terms_.push_back(std::move(multi));
  }
  // In the order of the enumeration, as on the other levels.
  std::stable_sort(hits_.begin(), hits_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, hit] : hits_) bank_.hits_.push_back(hit);
}

Status LastLevel::run() {
  estimate();
  if (bank_.options_.estimate)
    bank_.options_.estimate({expected_, resident_bytes() + 2 * expected_ * sizeof(Record),
                             expected_fingerprints_ * bank_.seconds_per_term_});
  TASO_RETURN_IF_ERROR(evaluate_all());
  LevelCounts& counts = bank_.levels_[static_cast<std::size_t>(level_)];
  if (bank_.complete_) {
    TASO_RETURN_IF_ERROR(add_known());
    TASO_RETURN_IF_ERROR(find_groups());
    // Of each term that is equal to something: where it is, itself, its names, its hits.
    std::uint64_t equal = 0;
    for (const Group& group : groups_)
      for (const std::uint64_t place : group.places)
        equal += sizeof(place) + 2 * sizeof(std::size_t) + sizeof(Member) + 32 +
                 orbit_of(place) * (sizeof(Hit) + sizeof(Term) + 64);
    TASO_RETURN_IF_ERROR(bank_.fits(equal, "equal terms of " + std::to_string(level_) + " operators"));
    make_members();
    make_classes();
  }
  bank_.evaluated_ += counts_.evaluated;
  counts = counts_;
  return {};
}

}  // namespace taso
