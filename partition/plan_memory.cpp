#include "partition/plan_memory.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace taso {
namespace {

bool lies_in(const IndexBox& inner, const IndexBox& outer) {
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    if (inner[axis].begin < outer[axis].begin || inner[axis].end > outer[axis].end) return false;
  return true;
}

double bytes_of(const IndexBox& box, std::int64_t element_bytes) {
  return static_cast<double>(volume_of(box)) * static_cast<double>(element_bytes);
}

/// What is stored of a part of a supplied value.
IndexBox stored_box(const SuppliedValue& value, IndexBox box) {
  for (const std::size_t axis : value.repeated) box[axis] = {0, std::min<std::int64_t>(1, box[axis].size())};
  return box;
}

/// What is fetched besides what is there, to be read.
double fetched(const IndexBox& held, const IndexBox& read, std::int64_t element_bytes) {
  return lies_in(read, held) ? 0 : bytes_of(read, element_bytes);
}

/// What is held besides what is kept, until that is there. What is kept may be a part of what was made.
double made_besides(const IndexBox& made, const IndexBox& kept, std::int64_t element_bytes) {
  if (made == kept) return 0;
  return bytes_of(made, element_bytes) - (lies_in(kept, made) ? bytes_of(kept, element_bytes) : 0);
}

/// Whether an earlier operand of the node is the same value.
bool read_before(const Graph& graph, const ValueReader& reader) {
  const std::vector<Value>& inputs = graph.node(reader.node).inputs;
  return std::find(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(reader.input), inputs[reader.input]) !=
         inputs.begin() + static_cast<std::ptrdiff_t>(reader.input);
}

/// Adds up tables over the same decisions.
class Tables {
 public:
  void add(const std::vector<PartitionProblem::Decision>& scope, const std::vector<double>& table) {
    std::vector<double>& sum = tables_.try_emplace(scope, table.size(), 0.0).first->second;
    for (std::size_t i = 0; i < table.size(); ++i) sum[i] += table[i];
  }
  std::vector<PartitionProblem::Cost> take() {
    std::vector<PartitionProblem::Cost> all;
    for (auto& [scope, table] : tables_)
      all.push_back({scope, std::make_shared<const std::vector<double>>(std::move(table))});
    return all;
  }

 private:
  std::map<std::vector<PartitionProblem::Decision>, std::vector<double>> tables_;
};

/// A table over the ways of two decisions.
template <class Of>
std::vector<double> table_of(std::uint32_t rows, std::uint32_t columns, const Of& of) {
  std::vector<double> table;
  table.reserve(std::size_t{rows} * columns);
  for (std::uint32_t i = 0; i < rows; ++i)
    for (std::uint32_t j = 0; j < columns; ++j) table.push_back(of(i, j));
  return table;
}

}  // namespace

PlanMemory::PlanMemory(const PlanProblem& plan)
    : plan_(plan), devices_(static_cast<std::size_t>(plan.mesh().devices())) {}

std::size_t PlanMemory::last_read(const std::vector<ValueReader>& readers, std::size_t none) const {
  return readers.empty() ? none : plan_.position(readers.back().node);
}

PlanMemory::Life PlanMemory::life_of(const PlannedValue& value) const {
  const std::size_t begin = value.made ? plan_.position(value.value.node) : 0;
  return {begin, value.output ? plan_.order().size() - 1 : last_read(value.readers, begin)};
}

PlanMemory::Life PlanMemory::life_of(const SuppliedValue& value) const {
  return {0, value.weight ? plan_.order().size() - 1 : last_read(value.readers, 0)};
}

double PlanMemory::stored(const SuppliedValue& value, const PlanProblem::Choice& choice, std::size_t device) const {
  std::vector<IndexBox> boxes;
  for (const ValueReader& reader : value.readers) {
    IndexBox box = stored_box(value, plan_.read(reader, choice[plan_.decision(reader.node)]).boxes[device]);
    if (std::any_of(boxes.begin(), boxes.end(), [&](const IndexBox& other) { return lies_in(box, other); })) continue;
    std::erase_if(boxes, [&](const IndexBox& other) { return lies_in(other, box); });
    boxes.push_back(std::move(box));
  }
  double bytes = 0;
  for (const IndexBox& box : boxes) bytes += bytes_of(box, value.element_bytes);
  return bytes;
}

void PlanMemory::add_value(const PlannedValue& value, const PlanProblem::Choice& choice, std::size_t device,
                           std::vector<double>& changes) const {
  const auto add = [&](std::size_t begin, std::size_t end, double bytes) {
    changes[begin] += bytes;
    changes[end + 1] -= bytes;
  };
  const Life life = life_of(value);
  const IndexBox& held = plan_.held(value, choice[plan_.holder(value)]).boxes[device];
  add(life.begin, life.end, bytes_of(held, value.element_bytes));
  if (value.kept && value.made) {
    const NodeId maker = value.value.node;
    const NodeConfiguration& making = plan_.configuration(maker, choice[plan_.decision(maker)]);
    add(life.begin, life.begin, made_besides(making.makes[value.value.port].boxes[device], held, value.element_bytes));
  }
  std::set<std::pair<NodeId, IndexBox>> seen;
  for (const ValueReader& reader : value.readers) {
    const IndexBox& read = plan_.read(reader, choice[plan_.decision(reader.node)]).boxes[device];
    const std::size_t at = plan_.position(reader.node);
    if (seen.emplace(reader.node, read).second) add(at, at, fetched(held, read, value.element_bytes));
  }
}

std::vector<double> PlanMemory::while_nodes_run(const PlanProblem::Choice& choice) const {
  const std::size_t count = plan_.order().size();
  std::vector<std::vector<double>> of_device(devices_, std::vector<double>(count + 1, 0));
  tbb::parallel_for(std::size_t{0}, devices_, [&](std::size_t device) {
    std::vector<double>& bytes = of_device[device];
    for (const SuppliedValue& value : plan_.supplied()) {
      const double held = stored(value, choice, device);
      bytes[0] += held;
      bytes[life_of(value).end + 1] -= held;
    }
    for (const PlannedValue& value : plan_.values()) add_value(value, choice, device, bytes);
    for (std::size_t at = 1; at < bytes.size(); ++at) bytes[at] += bytes[at - 1];
  });
  std::vector<double> most(count, 0);
  for (const std::vector<double>& bytes : of_device)
    for (std::size_t at = 0; at < count; ++at) most[at] = std::max(most[at], bytes[at]);
  return most;
}

std::vector<StoredWeight> PlanMemory::weights(const PlanProblem::Choice& choice, double& most) const {
  std::vector<StoredWeight> all;
  std::vector<double> sums(devices_, 0);
  for (const SuppliedValue& value : plan_.supplied()) {
    if (!value.weight) continue;
    StoredWeight weight{value.value, {}, 0, 0};
    std::set<Placement> parts;
    for (const ValueReader& reader : value.readers) {
      weight.readers.push_back(reader.node);
      parts.insert(plan_.read(reader, choice[plan_.decision(reader.node)]));
    }
    weight.parts = parts.size();
    for (std::size_t device = 0; device < devices_; ++device) {
      const double bytes = stored(value, choice, device);
      weight.bytes = std::max(weight.bytes, bytes);
      sums[device] += bytes;
    }
    all.push_back(std::move(weight));
  }
  most = sums.empty() ? 0 : *std::max_element(sums.begin(), sums.end());
  return all;
}

std::vector<PartitionProblem::Cost> PlanMemory::at_least(std::size_t at) const {
  Tables tables;
  const std::size_t device = devices_ - 1;
  const auto alive = [&](const Life& life) { return life.begin <= at && at <= life.end; };
  for (const SuppliedValue& value : plan_.supplied()) {
    if (!alive(life_of(value))) continue;
    const auto readers = static_cast<double>(value.readers.size());
    for (const ValueReader& reader : value.readers)
      tables.add({plan_.decision(reader.node)}, table_of(1, plan_.ways(reader.node), [&](auto, std::uint32_t way) {
                   const IndexBox box = stored_box(value, plan_.read(reader, way).boxes[device]);
                   return bytes_of(box, value.element_bytes) / readers;
                 }));
  }
  for (const PlannedValue& value : plan_.values()) {
    const Life life = life_of(value);
    if (!alive(life)) continue;
    const PartitionProblem::Decision holder = plan_.holder(value);
    const std::uint32_t ways = plan_.problem().ways(holder);
    tables.add({holder}, table_of(1, ways, [&](auto, std::uint32_t way) {
                 return bytes_of(plan_.held(value, way).boxes[device], value.element_bytes);
               }));
    if (value.kept && value.made && at == life.begin) {
      const NodeId maker = value.value.node;
      tables.add({plan_.decision(maker), holder}, table_of(plan_.ways(maker), ways, [&](std::uint32_t i, auto j) {
                   return made_besides(plan_.configuration(maker, i).makes[value.value.port].boxes[device],
                                       plan_.held(value, j).boxes[device], value.element_bytes);
                 }));
    }
    for (const ValueReader& reader : value.readers) {
      if (plan_.position(reader.node) != at || read_before(plan_.graph(), reader)) continue;
      tables.add({holder, plan_.decision(reader.node)},
                 table_of(ways, plan_.ways(reader.node), [&](std::uint32_t i, std::uint32_t j) {
                   return fetched(plan_.held(value, i).boxes[device], plan_.read(reader, j).boxes[device],
                                  value.element_bytes);
                 }));
    }
  }
  return tables.take();
}

double PlanMemory::weights_at_least() const {
  std::map<NodeId, std::vector<double>> of_node;  // per way
  for (const SuppliedValue& value : plan_.supplied()) {
    if (!value.weight) continue;
    for (const ValueReader& reader : value.readers) {
      std::vector<double>& bytes = of_node.try_emplace(reader.node, plan_.ways(reader.node), 0.0).first->second;
      for (std::uint32_t way = 0; way < bytes.size(); ++way)
        bytes[way] += bytes_of(stored_box(value, plan_.read(reader, way).boxes[devices_ - 1]), value.element_bytes) /
                      static_cast<double>(value.readers.size());
    }
  }
  double least = 0;
  for (const auto& [node, bytes] : of_node) least += *std::min_element(bytes.begin(), bytes.end());
  return least;
}

}  // namespace taso
