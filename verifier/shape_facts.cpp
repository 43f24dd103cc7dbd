#include "verifier/shape_facts.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "verifier/attribute_kinds.h"
#include "verifier/axiom_use.h"
#include "verifier/instances.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

void collect_variables(const AttributeExpression& expression, std::set<std::uint32_t>& variables) {
  if (expression.kind == Kind::variable) variables.insert(expression.index);
  for (const AttributeExpression& operand : expression.operands) collect_variables(operand, variables);
}

// Whether an attribute variable stands on one side only: the other side's shape cannot depend on it, this side's may.
bool has_one_sided_attribute(const Substitution& axiom) {
  std::set<std::uint32_t> variables[2];
  for (const bool target : {false, true})
    for (const PatternNode& node : (target ? axiom.target : axiom.source).nodes)
      for (const auto& [name, expression] : node.attributes) collect_variables(expression, variables[target ? 1 : 0]);
  return variables[0] != variables[1];
}

ShapeFacts result_shapes(const OperatorRegistry& registry, const Substitution& axiom, LoweredCache& cache) {
  ShapeFacts facts;
  std::vector<std::vector<std::size_t>>& result = facts.result_shapes;
  result.resize(axiom.source.outputs.size());
  std::vector<std::size_t> lists;
  const AttributeKinds kinds(registry, axiom);
  for (std::size_t v = 0; v < axiom.attribute_variables.size(); ++v)
    if (kinds[v].kind == Kindness::list && !kinds[v].length) lists.push_back(v);
  if (lists.empty() && !has_one_sided_attribute(axiom)) return facts;
  const InstanceSet set = find_instances(registry, axiom, {.max_instances = 12, .rare = false}, cache);
  facts.may_differ = set.shapes_differ.has_value();
  if (set.instances.empty()) return facts;
  for (std::size_t output = 0; output < result.size(); ++output)
    for (const std::size_t v : lists)
      if (std::all_of(set.instances.begin(), set.instances.end(), [&](const TypedInstance& typed) {
            const auto& value = typed.instance.attributes[v];
            return value && *value == AttributeValue(typed.source.output_types()[output].shape);
          }))
        result[output].push_back(v);
  return facts;
}

// The two halves of "A:B".
std::optional<std::pair<std::string_view, std::string_view>> halves(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return std::pair(text.substr(0, colon), text.substr(colon + 1));
}

constexpr std::size_t no_number = SIZE_MAX;

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : no_number;
}

constexpr const char* use_names[2] = {"left", "right"};

// What a line of a record says.
struct Record {
  std::string name, key;
  bool may_differ = false;
  std::vector<std::pair<std::size_t, std::size_t>> result_shapes;  // output, variable
  std::vector<std::size_t> ill_typed[2];                           // outputs
};

Expected<Record> parse_line(std::string_view rest) {
  std::vector<std::string_view> words;
  while (!rest.empty()) {
    const std::size_t first = std::min(rest.find_first_not_of(" \t\r"), rest.size());
    const std::size_t last = std::min(rest.find_first_of(" \t\r", first), rest.size());
    if (last > first) words.push_back(rest.substr(first, last - first));
    rest.remove_prefix(last);
  }
  auto wrong = [](const std::string& what) {
    return bad_input(what +
                     "; expected 'NAME KEY [differ] [shape=OUTPUT:VARIABLE] [ill-typed=left:OUTPUT]' as taso-verify "
                     "--record-facts writes it");
  };
  constexpr std::size_t key_digits = 32;
  if (words.size() < 2 || words[1].size() != key_digits ||
      words[1].find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return wrong("no key of 32 hexadecimal digits");
  Record record;
  record.name = words[0];
  record.key = words[1];
  for (const std::string_view word : std::span(words).subspan(2)) {
    if (word == "differ") {
      record.may_differ = true;
      continue;
    }
    const std::size_t sign = word.find('=');
    const std::string_view what = word.substr(0, sign);
    const auto pair = sign == std::string_view::npos ? std::nullopt : halves(word.substr(sign + 1));
    const std::size_t second = pair ? number(pair->second) : no_number;
    if (second != no_number && what == "shape" && number(pair->first) != no_number) {
      record.result_shapes.emplace_back(number(pair->first), second);
      continue;
    }
    if (second != no_number && what == "ill-typed" && (pair->first == use_names[0] || pair->first == use_names[1])) {
      record.ill_typed[pair->first == use_names[0] ? 0 : 1].push_back(second);
      continue;
    }
    return wrong("'" + std::string(word) + "'");
  }
  return record;
}

}  // namespace

Hash128 ShapeFactsTable::key(const Substitution& axiom) const {
  std::set<std::string> operators;
  for (const Pattern* pattern : {&axiom.source, &axiom.target})
    for (const PatternNode& node : pattern->nodes) operators.insert(node.op);
  Hasher hasher;
  hasher.add(std::string_view(to_string(axiom, registry_)));
  for (const std::string& op : operators) hasher.add(std::string_view(registry_.typing_text(op)));
  return hasher.finish();
}

std::optional<ShapeFacts> ShapeFactsTable::recorded(const Substitution& axiom) const {
  if (axiom.facts.empty()) return std::nullopt;
  const Expected<Record> record = parse_line(axiom.facts);
  if (!record || record->key != key(axiom).to_string()) return std::nullopt;
  const std::size_t outputs = axiom.source.outputs.size();
  ShapeFacts facts;
  facts.may_differ = record->may_differ;
  facts.result_shapes.resize(outputs);
  for (const auto& [output, variable] : record->result_shapes)
    if (output < outputs) facts.result_shapes[output].push_back(variable);
  for (const int use : {0, 1}) {
    facts.may_be_ill_typed[use].assign(outputs, false);
    for (const std::size_t output : record->ill_typed[use])
      if (output < outputs) facts.may_be_ill_typed[use][output] = true;
  }
  return facts;
}

ShapeFacts ShapeFactsTable::examine(const Substitution& axiom, std::size_t instances) {
  ShapeFacts facts = result_shapes(registry_, axiom, cache_);
  for (const bool left_to_right : {true, false})
    for (std::size_t output = 0; output < axiom.source.outputs.size(); ++output)
      facts.may_be_ill_typed[left_to_right ? 0 : 1].push_back(
          ill_typed_use(registry_, axiom, facts, left_to_right, output, instances, cache_).has_value());
  return facts;
}

std::string ShapeFactsTable::line(const Substitution& axiom, const ShapeFacts& facts) const {
  std::string text = axiom.name + " " + key(axiom).to_string();
  if (facts.may_differ) text += " differ";
  for (std::size_t output = 0; output < facts.result_shapes.size(); ++output)
    for (const std::size_t variable : facts.result_shapes[output])
      text += " shape=" + std::to_string(output) + ":" + std::to_string(variable);
  for (const int use : {0, 1})
    for (std::size_t output = 0; output < facts.may_be_ill_typed[use].size(); ++output)
      if (facts.may_be_ill_typed[use][output])
        text += std::string(" ill-typed=") + use_names[use] + ":" + std::to_string(output);
  return text;
}

ShapeFactsTable::Entry& ShapeFactsTable::entry(const Substitution& axiom) {
  const Hash128 its_key = key(axiom);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Entry>& slot = entries_[its_key];
  if (slot == nullptr) slot = std::make_unique<Entry>();
  return *slot;
}

void ShapeFactsTable::complete(Entry& entry, const Substitution& axiom) {
  entry.begun = true;
  std::call_once(entry.once, [&] {
    if (std::optional<ShapeFacts> facts = recorded(axiom)) {
      entry.facts = std::move(*facts);
      return;
    }
    entry.facts = result_shapes(registry_, axiom, cache_);
    for (std::vector<bool>& use : entry.facts.may_be_ill_typed) use.assign(axiom.source.outputs.size(), true);
  });
}

const ShapeFacts& ShapeFactsTable::of(const Substitution& axiom) {
  Entry& one = entry(axiom);
  complete(one, axiom);
  return one.facts;
}

std::vector<const ShapeFacts*> ShapeFactsTable::of(const std::vector<const Substitution*>& axioms) {
  std::vector<Entry*> all;
  for (const Substitution* axiom : axioms) all.push_back(&entry(*axiom));
  // First what nobody has begun, then what is missing: another thread is at it.
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i]->begun.exchange(true)) complete(*all[i], *axioms[i]);
  std::vector<const ShapeFacts*> result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    complete(*all[i], *axioms[i]);
    result.push_back(&all[i]->facts);
  }
  return result;
}

Expected<std::map<std::string, std::string>> read_shape_facts(std::string_view text, const std::string& file) {
  std::map<std::string, std::string> lines;
  int number_of_line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number_of_line;
    if (line.empty() || line.front() == '#') continue;
    const Expected<Record> record = parse_line(line);
    if (!record) return bad_input(record.error().message, {.file = file, .line = number_of_line});
    if (!lines.emplace(record->name, line).second)
      return bad_input("a second line for '" + record->name + "'", {.file = file, .line = number_of_line});
  }
  return lines;
}

}  // namespace taso
