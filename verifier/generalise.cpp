#include "verifier/generalise.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "verifier/instances.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

// Sites of one value that are divided into blocks: more are one block.
constexpr std::size_t max_divided = 6;
// Lists that are taken apart.
constexpr std::size_t max_elements = 4;

/// A literal attribute value in a rule.
struct Site {
  bool in_source = true;
  std::size_t node = 0, attribute = 0;
  bool operator==(const Site&) const = default;
};

AttributeExpression variable_of(std::size_t index) {
  AttributeExpression result;
  result.kind = Kind::variable;
  result.index = static_cast<std::uint32_t>(index);
  return result;
}

AttributeExpression literal_of(AttributeValue value) {
  AttributeExpression result;
  result.literal = std::move(value);
  return result;
}

AttributeExpression& expression_at(Substitution& rule, const Site& site) {
  return (site.in_source ? rule.source : rule.target).nodes[site.node].attributes[site.attribute].second;
}

const std::string& name_at(const Substitution& rule, const Site& site) {
  return (site.in_source ? rule.source : rule.target).nodes[site.node].attributes[site.attribute].first;
}

Condition relation(Condition::Relation kind, AttributeExpression left, AttributeExpression right) {
  return {kind, std::move(left), std::move(right)};
}

class GeneralisationSearch {
 public:
  GeneralisationSearch(const OperatorRegistry& registry, const Substitution& rule, const GeneraliseOptions& options)
      : registry_(registry), options_(options) {
    result_.rule = rule;
  }

  Generalisation run() {
    const UnboundedOutcome given = prove_unbounded(registry_, result_.rule, options_.prover);
    result_.proofs = 1;
    result_.proved = given.proved;
    result_.reason = given.reason;
    if (!given.proved) return std::move(result_);
    if (options_.drop_conditions) drop_conditions();
    // Blocks that do not vary alone may do so once others do: a second round where the first one moved something.
    for (int round = 0; round < 2; ++round) {
      const std::size_t before = result_.steps.size();
      for (const std::vector<Site>& block : blocks()) generalise_block(block);
      if (result_.steps.size() == before) break;
    }
    tidy();
    return std::move(result_);
  }

 private:
  /// Sites with one value; the first of each block is in the source, since that is where variables are bound.
  [[nodiscard]] std::vector<std::vector<Site>> blocks() {
    std::vector<std::vector<Site>> result;
    for (const bool in_source : {true, false}) {
      const Pattern& pattern = in_source ? result_.rule.source : result_.rule.target;
      for (std::size_t n = 0; n < pattern.nodes.size(); ++n)
        for (std::size_t a = 0; a < pattern.nodes[n].attributes.size(); ++a) {
          const std::string& name = pattern.nodes[n].attributes[a].first;
          const AttributeExpression& value = pattern.nodes[n].attributes[a].second;
          if (value.kind != Kind::literal) continue;
          const Site site{in_source, n, a};
          auto joins = [&](const std::vector<Site>& block, bool by_name) {
            return expression_at(result_.rule, block.front()) == value &&
                   (!by_name || name_at(result_.rule, block.front()) == name);
          };
          auto block = std::find_if(result.begin(), result.end(), [&](const auto& b) { return joins(b, true); });
          // In the target the value may be known by another name: a margin that was a padding.
          if (block == result.end() && !in_source)
            block = std::find_if(result.begin(), result.end(), [&](const auto& b) { return joins(b, false); });
          if (block != result.end())
            block->push_back(site);
          else if (in_source)
            result.push_back({site});
        }
    }
    return result;
  }

  [[nodiscard]] bool proves(const Substitution& rule) {
    if (result_.proofs >= options_.max_proofs) return false;
    ++result_.proofs;
    return prove_unbounded(registry_, rule, options_.prover).proved;
  }

  /// Whether the variable can have another value than `literal`.
  [[nodiscard]] bool varies(Substitution rule, std::size_t variable, const AttributeValue& literal) const {
    if (!options_.other_values) return true;
    rule.conditions.push_back(relation(Condition::Relation::not_equal, variable_of(variable), literal_of(literal)));
    return !find_instances(registry_, rule, {.max_instances = 1, .search = false, .rare = false}).instances.empty();
  }

  /// A name for a variable after the attribute that it stands for: its first letter, numbered where that is taken.
  [[nodiscard]] std::string fresh_name(const Substitution& rule, const std::string& attribute) const {
    auto taken = [&](const std::string& name) {
      auto contains = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      return contains(rule.tensor_variables) || contains(rule.attribute_variables) || registry_.is_function(name);
    };
    std::string name = attribute.substr(0, 1);
    for (int number = 2; taken(name); ++number) name = attribute.substr(0, 1) + std::to_string(number);
    return name;
  }

  /// The rule with `count` new variables, and `make` of the number of the first of them at each of the sites.
  [[nodiscard]] Substitution with(const std::vector<Site>& block, std::size_t count,
                                  const std::function<AttributeExpression(std::size_t)>& make) const {
    Substitution rule = result_.rule;
    const std::string attribute = name_at(rule, block.front());
    const std::size_t first = rule.attribute_variables.size();
    for (std::size_t i = 0; i < count; ++i) rule.attribute_variables.push_back(fresh_name(rule, attribute));
    for (const Site& site : block) expression_at(rule, site) = make(first);
    return rule;
  }

  /// Keeps a form of the rule.
  void keep(Substitution rule, const std::vector<Site>& block, const AttributeValue& literal,
            const std::vector<Condition>& added) {
    const std::string name = name_at(rule, block.front());
    std::string step = name + "=" + to_string(literal) + " is " + text(rule, expression_at(rule, block.front()));
    for (const Condition& condition : added)
      step += (condition == added.front() ? " with " : ", ") + to_string(condition, rule);
    result_.steps.push_back(std::move(step));
    result_.rule = std::move(rule);
  }

  bool generalise_block(const std::vector<Site>& block) {
    // A step before may have taken the sites.
    for (const Site& site : block)
      if (expression_at(result_.rule, site).kind != Kind::literal) return false;
    const AttributeValue literal = expression_at(result_.rule, block.front()).literal;
    if (whole(block, literal)) {
      divide(block);
      return true;
    }
    // Some of the sites only.
    if (block.size() > 1 && block.size() <= max_divided)
      for (const std::vector<Site>& part : parts(block))
        if (whole(part, literal)) {
          if (const std::vector<Site> others = rest(block, part); others.front().in_source) generalise_block(others);
          return true;
        }
    if (std::holds_alternative<std::vector<std::int64_t>>(literal)) return elements(block, literal);
    if (std::holds_alternative<std::int64_t>(literal)) return bounded(block, literal);
    return false;
  }

  /// One variable for all of these sites.
  bool whole(const std::vector<Site>& block, const AttributeValue& literal) {
    Substitution rule = with(block, 1, [](std::size_t first) { return variable_of(first); });
    if (!proves(rule) || !varies(rule, rule.attribute_variables.size() - 1, literal)) return false;
    keep(std::move(rule), block, literal, {});
    return true;
  }

  /// Proper parts of a block that hold a site of the source, larger ones first.
  [[nodiscard]] static std::vector<std::vector<Site>> parts(const std::vector<Site>& block) {
    std::vector<std::vector<Site>> result;
    for (std::uint32_t mask = 1; mask + 1 < (std::uint32_t{1} << block.size()); ++mask) {
      std::vector<Site> part;
      for (std::size_t i = 0; i < block.size(); ++i)
        if ((mask >> i & 1U) != 0) part.push_back(block[i]);
      if (part.front().in_source) result.push_back(std::move(part));
    }
    std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return result;
  }

  [[nodiscard]] static std::vector<Site> rest(const std::vector<Site>& block, const std::vector<Site>& part) {
    std::vector<Site> result;
    for (const Site& site : block)
      if (std::find(part.begin(), part.end(), site) == part.end()) result.push_back(site);
    return result;
  }

  /// Two variables instead of one, where the value need not be the same everywhere.
  void divide(const std::vector<Site>& block) {
    const auto in_source = std::count_if(block.begin(), block.end(), [](const Site& site) { return site.in_source; });
    if (in_source < 2 || block.size() > max_divided) return;
    const AttributeExpression one = expression_at(result_.rule, block.front());
    for (const std::vector<Site>& part : parts(block)) {
      // Each division once: the first site stays.
      if (part.front() == block.front() || !part.front().in_source) continue;
      Substitution rule = with(part, 1, [](std::size_t first) { return variable_of(first); });
      if (!proves(rule)) continue;
      Substitution differs = rule;
      differs.conditions.push_back(
          relation(Condition::Relation::not_equal, one, variable_of(rule.attribute_variables.size() - 1)));
      if (options_.other_values &&
          find_instances(registry_, differs, {.max_instances = 1, .search = false, .rare = false}).instances.empty())
        continue;
      result_.steps.push_back(name_at(rule, part.front()) + " is " + text(rule, one) + " and " +
                              text(rule, expression_at(rule, part.front())) + ", which may differ");
      result_.rule = std::move(rule);
      divide(part);
      divide(rest(block, part));
      return;
    }
  }

  /// Elements of a list: all of them, then one variable for all if they are equal, then one at a time.
  bool elements(const std::vector<Site>& block, const AttributeValue& literal) {
    const auto& values = std::get<std::vector<std::int64_t>>(literal);
    if (values.size() < 2 || values.size() > max_elements) return false;
    auto attempt = [&](std::size_t count, const std::function<std::optional<std::size_t>(std::size_t)>& which) {
      Substitution rule = with(block, count, [&](std::size_t first) {
        AttributeExpression list;
        list.kind = Kind::list;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::optional<std::size_t> variable = which(i);
          list.operands.push_back(variable ? variable_of(first + *variable) : literal_of(values[i]));
        }
        return list;
      });
      if (!proves(rule)) return false;
      const std::size_t first = rule.attribute_variables.size() - count;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (const auto variable = which(i); variable && !varies(rule, first + *variable, values[i])) return false;
      keep(std::move(rule), block, literal, {});
      return true;
    };
    if (attempt(values.size(), [](std::size_t i) { return std::optional(i); })) return true;
    if (std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values.front(); }) &&
        attempt(1, [](std::size_t) { return std::optional(std::size_t{0}); }))
      return true;
    for (std::size_t one = 0; one < values.size(); ++one)
      if (attempt(1, [&](std::size_t i) { return i == one ? std::optional(std::size_t{0}) : std::nullopt; }))
        return true;
    return false;
  }

  /// An integer under a condition that its value satisfies: apart from others of its name, or on one side of it.
  bool bounded(const std::vector<Site>& block, const AttributeValue& literal) {
    const std::int64_t value = std::get<std::int64_t>(literal);
    const Substitution rule = with(block, 1, [](std::size_t first) { return variable_of(first); });
    const AttributeExpression variable = variable_of(rule.attribute_variables.size() - 1);
    std::vector<std::pair<Condition, Substitution>> candidates;
    auto add = [&](const Substitution& base, Condition condition) {
      const auto same = [&](const auto& candidate) { return candidate.first == condition; };
      if (std::any_of(candidates.begin(), candidates.end(), same)) return;
      candidates.emplace_back(condition, base);
      candidates.back().second.conditions.push_back(std::move(condition));
    };
    const std::string name = name_at(rule, block.front());
    for (const Pattern* pattern : {&rule.source, &rule.target})
      for (const PatternNode& node : pattern->nodes)
        for (const auto& [attribute, other] : node.attributes) {
          if (attribute != name || other == variable) continue;
          if (other.kind == Kind::literal && other.literal != literal)
            add(rule, relation(Condition::Relation::not_equal, variable, other));
          if (other.kind != Kind::variable) continue;
          // A variable differs from this value only if a condition says so, which then speaks of the new variable.
          Substitution base = rule;
          if (std::erase(base.conditions, relation(Condition::Relation::not_equal, other, literal_of(literal))) > 0)
            add(base, relation(Condition::Relation::not_equal, other, variable));
        }
    add(rule, relation(Condition::Relation::less, variable, literal_of(value + 1)));
    add(rule, relation(Condition::Relation::less, literal_of(value - 1), variable));
    for (auto& [condition, narrowed] : candidates) {
      if (!proves(narrowed) || !varies(narrowed, variable.index, literal)) continue;
      keep(std::move(narrowed), block, literal, {condition});
      return true;
    }
    return false;
  }

  void drop_conditions() {
    for (std::size_t i = result_.rule.conditions.size(); i-- > 0;) {
      Substitution weaker = result_.rule;
      weaker.conditions.erase(weaker.conditions.begin() + static_cast<std::ptrdiff_t>(i));
      if (!proves(weaker)) continue;
      result_.steps.push_back("without " + to_string(result_.rule.conditions[i], result_.rule));
      result_.rule = std::move(weaker);
    }
  }

  /// Variables in the order of first use, as a reader of the text would number them.
  void tidy() {
    if (result_.steps.empty()) return;
    const auto again = parse_rules(to_string(result_.rule, registry_), result_.rule.where.file, registry_);
    if (!again || again->size() != 1) return;
    const SourceLocation where = result_.rule.where;
    result_.rule = again->front();
    result_.rule.where = where;
  }

  [[nodiscard]] static std::string text(const Substitution& rule, const AttributeExpression& expression) {
    const std::string both =
        to_string(relation(Condition::Relation::equal, expression, literal_of(std::int64_t{0})), rule);
    return both.substr(0, both.rfind(" == "));
  }

  const OperatorRegistry& registry_;
  const GeneraliseOptions& options_;
  Generalisation result_;
};

}  // namespace

Generalisation generalise(const OperatorRegistry& registry, const Substitution& rule,
                          const GeneraliseOptions& options) {
  return GeneralisationSearch(registry, rule, options).run();
}

}  // namespace taso
