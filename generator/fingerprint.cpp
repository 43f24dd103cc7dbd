#include "generator/fingerprint.h"

#include <atomic>
#include <string>

#include "generator/parallel.h"
#include "support/random.h"

namespace taso {

const Functional& Channel::functional(TypeId type) {
  const auto [it, inserted] = functionals_.try_emplace(type);
  Functional& functional = it->second;
  if (inserted) {
    std::string name = "functional";
    for (const Shape& shape : instances_.shapes(type)) name += " " + to_string(shape);
    for (std::size_t point = 0; point < evaluation_points; ++point) {
      Random random(seed_, name + "@" + std::to_string(point));
      functional.constant[point] = Mod61::from_bits(random.next());
      functional.weights[point].resize(instances_.elements(type));
      for (Mod61& weight : functional.weights[point]) weight = Mod61::from_bits(random.next());
    }
  }
  return functional;
}

Hash128 Channel::fingerprint(TypeId type, const Mod61* elements) {
  const Functional& f = functional(type);
  const std::size_t size = f.weights[0].size();
  return {(f.constant[1] + dot(f.weights[1].data(), elements + size, size)).value(),
          (f.constant[0] + dot(f.weights[0].data(), elements, size)).value()};
}

BlockEvaluator::BlockEvaluator(Channel& channel, const ClassStore& store, const InstanceCache::Entry& entry,
                               std::span<const TypeId> types, std::span<const std::vector<ClassId>> members,
                               std::span<const std::uint32_t> position)
    : channel_(channel),
      store_(store),
      entry_(entry),
      types_(types.begin(), types.end()),
      members_(members),
      position_(position),
      ring_(channel.ring()),
      tape_(record_tape(entry.worlds, ring_, 1'000'000)) {
  for (const TypeId type : entry.outputs) functionals_.push_back(&channel_.functional(type));
}

bool BlockEvaluator::run(std::span<const ClassId> arguments, std::size_t point, Scratch& scratch) const {
  scratch.inputs.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t size = tape_->argument_size(i);
    scratch.inputs.push_back(channel_.values[arguments[i]] + point * size);
  }
  return tape_->run(scratch.inputs, ring_, scratch.values);
}

bool BlockEvaluator::slow(std::span<const ClassId> arguments, std::span<Mod61* const> outputs) const {
  std::vector<std::size_t> begin(arguments.size(), 0);
  std::vector<std::size_t> end(outputs.size(), 0);
  for (std::size_t point = 0; point < evaluation_points; ++point)
    for (const OperatorInstance& instance : entry_.worlds) {
      std::vector<RingTensor<Mod61>> tensors(arguments.size());
      std::vector<const RingTensor<Mod61>*> pointers;
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        tensors[i].shape = instance.input_types()[i].shape;
        const Mod61* const first = channel_.values[arguments[i]] + begin[i];
        begin[i] += static_cast<std::size_t>(volume(tensors[i].shape));
        tensors[i].elements.assign(first, channel_.values[arguments[i]] + begin[i]);
        pointers.push_back(&tensors[i]);
      }
      FieldRing ring = ring_;
      const auto results = evaluate(instance, ring, std::span<const RingTensor<Mod61>* const>(pointers));
      if (!results || !ring.status()) return false;
      for (std::size_t port = 0; port < outputs.size(); ++port)
        for (const Mod61 element : (*results)[port].elements) outputs[port][end[port]++] = element;
    }
  return true;
}

bool BlockEvaluator::values(std::span<const ClassId> arguments, std::span<Mod61* const> outputs,
                            Scratch& scratch) const {
  if (!tape_) return slow(arguments, outputs);
  for (std::size_t point = 0; point < evaluation_points; ++point) {
    if (!run(arguments, point, scratch)) return false;
    for (std::size_t port = 0; port < outputs.size(); ++port) {
      const std::vector<std::uint32_t>& registers = tape_->outputs[port];
      for (std::size_t i = 0; i < registers.size(); ++i) {
        outputs[port][point * registers.size() + i] = scratch.values[registers[i]];
      }
    }
  }
  return true;
}

void BlockEvaluator::prepare(int max_ops, unsigned threads) {
  if (types_.size() == 1) return prepare_single(threads);
  if (!tape_ || types_.empty()) return;
  if (tape_->separable) return prepare_separable();
  if (tape_->bilinear && port_count() == 1) prepare_bilinear(max_ops, threads);
}

/// One argument: the fingerprints themselves, whatever the operator.
void BlockEvaluator::prepare_single(unsigned threads) {
  const std::vector<ClassId>& ids = members_[types_[0]];
  if (tape_ && tape_->separable) return prepare_separable();
  const std::size_t ports = port_count();
  std::vector<std::uint64_t> results(ids.size() * ports * evaluation_points);
  std::vector<std::uint8_t> failed(ids.size(), 0);
  std::vector<Scratch> scratch(std::max(1u, threads));
  parallel_ranges(threads, ids.size(), 256, [&](std::size_t begin, std::size_t end, unsigned thread) {
    for (std::size_t i = begin; i < end; ++i) {
      Ports found;
      failed[i] = fingerprints({&ids[i], 1}, found, scratch[thread]) ? 0 : 1;
      for (std::size_t port = 0; port < ports; ++port)
        for (std::size_t point = 0; point < evaluation_points; ++point)
          results[(i * ports + port) * evaluation_points + point] = point == 0 ? found[port].low : found[port].high;
    }
  });
  failed_.assign(failed.begin(), failed.end());
  base_.assign(ports, {});
  shares_.push_back(std::move(results));
}

/// Affine in all arguments together: the derivative is one and the same for all terms.
void BlockEvaluator::prepare_separable() {
  const std::size_t ports = port_count();
  const FieldRing& ring = ring_;
  std::vector<Mod61> zeros;
  std::vector<const Mod61*> inputs;
  for (std::size_t i = 0; i < types_.size(); ++i) zeros.resize(std::max(zeros.size(), tape_->argument_size(i)));
  inputs.assign(types_.size(), zeros.data());
  std::vector<Mod61> values;
  if (!tape_->run(inputs, ring, values)) return;
  base_.assign(ports, {});
  adjoints_.resize(ports * evaluation_points);
  for (std::size_t port = 0; port < ports; ++port)
    for (std::size_t point = 0; point < evaluation_points; ++point) {
      const Functional& functional = *functionals_[port];
      base_[port][point] = functional.constant[point];
      for (std::size_t i = 0; i < tape_->outputs[port].size(); ++i)
        base_[port][point] += functional.weights[point][i] * values[tape_->outputs[port][i]];
      tape_->derive(port, functional.weights[point], values, adjoints_[port * evaluation_points + point]);
    }
  shares_.resize(types_.size());
  for (std::size_t argument = 0; argument < types_.size(); ++argument)
    shares_[argument].assign(members_[types_[argument]].size() * ports * evaluation_points, unknown);
}

/// The same numbers whichever thread writes them.
void BlockEvaluator::share(std::size_t argument, ClassId id) const {
  const std::size_t size = tape_->argument_size(argument), words = port_count() * evaluation_points;
  std::uint64_t* const words_of_class = &shares_[argument][position_[id] * words];
  for (std::size_t i = 0; i < words; ++i) {
    const Mod61 value =
        dot(adjoints_[i].data() + tape_->arguments[argument], channel_.values[id] + i % evaluation_points * size, size);
    std::atomic_ref(words_of_class[i]).store(value.value(), std::memory_order_relaxed);
  }
}

void BlockEvaluator::prepare_bilinear(int max_ops, unsigned threads) {
  // The second argument first: where all its classes are in the table (weights), the other table is not needed.
  for (const std::size_t fixed : {std::size_t{1}, std::size_t{0}}) {
    Derivatives& derivatives = derivatives_[fixed];
    const std::vector<ClassId>& ids = members_[types_[fixed]];
    const std::size_t other = 1 - fixed, size = tape_->argument_size(other);
    derivatives.stride = evaluation_points * (size + 1);
    derivatives.index.assign(ids.size(), -1);
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (store_.classes[ids[i]].ops <= max_ops) {
        derivatives.index[i] = static_cast<std::int32_t>(chosen.size());
        chosen.push_back(i);
      }
    if (fixed == 0 && derivatives_[1].complete) {
      derivatives.index.assign(ids.size(), -1);
      return;
    }
    derivatives.complete = chosen.size() == ids.size();
    derivatives.rows.resize(chosen.size() * derivatives.stride);
    const std::vector<Mod61> zeros(size);
    std::vector<Scratch> scratches(std::max(1u, threads));
    parallel_ranges(threads, chosen.size(), 16, [&](std::size_t begin, std::size_t end, unsigned thread) {
      Scratch& scratch = scratches[thread];
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t point = 0; point < evaluation_points; ++point) {
          std::array<const Mod61*, 2> inputs{};
          inputs[fixed] = channel_.values[ids[chosen[i]]] + point * tape_->argument_size(fixed);
          inputs[other] = zeros.data();
          // Bilinear tapes have no comparison that depends on an argument: both channels run them alike.
          if (!tape_->run(inputs, ring_, scratch.values)) {
            derivatives.index[chosen[i]] = -1;
            break;
          }
          Mod61* const row = &derivatives.rows[i * derivatives.stride + point * (size + 1)];
          const Functional& functional = *functionals_[0];
          row[0] = functional.constant[point];
          for (std::size_t k = 0; k < tape_->outputs[0].size(); ++k)
            row[0] += functional.weights[point][k] * scratch.values[tape_->outputs[0][k]];
          tape_->derive(0, functional.weights[point], scratch.values, scratch.adjoints);
          std::copy_n(scratch.adjoints.begin() + tape_->arguments[other], size, row + 1);
        }
    });
  }
}

bool BlockEvaluator::fingerprints(std::span<const ClassId> arguments, Ports& ports, Scratch& scratch) const {
  if (!shares_.empty()) {
    if (!failed_.empty() && failed_[position_[arguments[0]]]) return false;
    const std::size_t words = port_count() * evaluation_points;
    for (std::size_t port = 0; port < port_count(); ++port) {
      Mod61 low = base_[port][0], high = base_[port][1];
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::uint64_t* const at = &shares_[i][position_[arguments[i]] * words + port * evaluation_points];
        std::uint64_t first = std::atomic_ref(at[0]).load(std::memory_order_relaxed);
        std::uint64_t second = std::atomic_ref(at[1]).load(std::memory_order_relaxed);
        if (first == unknown || second == unknown) {
          share(i, arguments[i]);
          first = std::atomic_ref(at[0]).load(std::memory_order_relaxed);
          second = std::atomic_ref(at[1]).load(std::memory_order_relaxed);
        }
        low += Mod61::from_bits(first);
        high += Mod61::from_bits(second);
      }
      ports[port] = {high.value(), low.value()};
    }
    return true;
  }
  if (!derivatives_[0].index.empty())
    // The table of the argument whose row is there already; a row is short, and the same for a run of terms.
    for (const std::size_t fixed : {std::size_t{1}, std::size_t{0}}) {
      const Derivatives& derivatives = derivatives_[fixed];
      const std::int32_t index = derivatives.index[position_[arguments[fixed]]];
      if (index < 0) continue;
      const std::size_t size = derivatives.stride / evaluation_points - 1;
      const Mod61* const row = &derivatives.rows[static_cast<std::size_t>(index) * derivatives.stride];
      const Mod61* const value = channel_.values[arguments[1 - fixed]];
      const Mod61 low = row[0] + dot(row + 1, value, size);
      const Mod61 high = row[size + 1] + dot(row + size + 2, value + size, size);
      ports[0] = {high.value(), low.value()};
      return true;
    }
  if (!tape_) {
    std::vector<std::vector<Mod61>> buffers;
    std::vector<Mod61*> outputs;
    for (const Functional* functional : functionals_)
      buffers.emplace_back(functional->weights[0].size() * evaluation_points);
    for (std::vector<Mod61>& buffer : buffers) outputs.push_back(buffer.data());
    if (!slow(arguments, outputs)) return false;
    for (std::size_t port = 0; port < port_count(); ++port)
      ports[port] = channel_.fingerprint(entry_.outputs[port], outputs[port]);
    return true;
  }
  std::array<std::array<Mod61, evaluation_points>, max_ports> sums{};
  for (std::size_t point = 0; point < evaluation_points; ++point) {
    if (!run(arguments, point, scratch)) return false;
    for (std::size_t port = 0; port < port_count(); ++port) {
      const Functional& functional = *functionals_[port];
      const std::vector<std::uint32_t>& registers = tape_->outputs[port];
      Mod61 sum = functional.constant[point];
      for (std::size_t i = 0; i < registers.size(); ++i)
        sum += functional.weights[point][i] * scratch.values[registers[i]];
      sums[port][point] = sum;
    }
  }
  for (std::size_t port = 0; port < port_count(); ++port) ports[port] = {sums[port][1].value(), sums[port][0].value()};
  return true;
}

}  // namespace taso
