#include "verifier/common_terms.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace taso {
namespace {

class Abstraction {
 public:
  explicit Abstraction(const Substitution& rule) : rule_(rule), result_(rule) {
    const Pattern &source = rule.source, &target = rule.target;
    shared_[0].assign(source.nodes.size(), none);
    shared_[1].assign(target.nodes.size(), none);
    for (std::uint32_t i = 0; i < source.nodes.size(); ++i)
      for (std::uint32_t j = 0; j < target.nodes.size(); ++j)
        if (same_term(source, {false, i, 0}, target, {false, j, 0})) shared_[0][i] = shared_[1][j] = i;
  }

  std::optional<Substitution> run() {
    result_.source = rebuilt(rule_.source, 0);
    result_.target = rebuilt(rule_.target, 1);
    if (variables_.empty()) return std::nullopt;
    return std::move(result_);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  Pattern rebuilt(const Pattern& pattern, int side) {
    Pattern made;
    std::map<std::uint32_t, std::uint32_t> places;  // old node, new node
    for (const PatternValue& output : pattern.outputs)
      made.outputs.push_back(value(pattern, output, shared_[side], made, places));
    return made;
  }

  PatternValue value(const Pattern& pattern, const PatternValue& old, const std::vector<std::uint32_t>& shared,
                     Pattern& made, std::map<std::uint32_t, std::uint32_t>& places) {
    if (old.is_variable) return old;
    if (shared[old.index] != none) {
      const auto [it, inserted] = variables_.emplace(std::pair(shared[old.index], old.port),
                                                     static_cast<std::uint32_t>(result_.tensor_variables.size()));
      if (inserted) result_.tensor_variables.push_back("common." + std::to_string(variables_.size()));
      return {true, it->second, 0};
    }
    if (const auto known = places.find(old.index); known != places.end()) return {false, known->second, old.port};
    PatternNode node = pattern.nodes[old.index];
    for (PatternValue& input : node.inputs) input = value(pattern, input, shared, made, places);
    made.nodes.push_back(std::move(node));
    const auto place = static_cast<std::uint32_t>(made.nodes.size() - 1);
    places.emplace(old.index, place);
    return {false, place, old.port};
  }

  const Substitution& rule_;
  Substitution result_;
  std::vector<std::uint32_t> shared_[2];  // per node of a side: the source's node that it is, or none
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> variables_;  // of source node and port
};

}  // namespace

std::optional<Substitution> without_common_terms(const Substitution& rule) { return Abstraction(rule).run(); }

}  // namespace taso
