#include <algorithm>

#include "operators/definition.h"
#include "operators/unparse.h"

namespace taso {

std::vector<AxisFact> axis_facts(const OperatorDefinition& definition) {
  std::vector<AxisFact> facts;
  if (definition.variadic() || definition.several_outputs()) return facts;
  const std::vector<AxisSpec>& output = definition.output.axes;
  // The spelling of an axis is its extent: a name has one value throughout a definition.
  auto spelling = [](const AxisSpec& axis) {
    return to_text(axis.factors[0]) + (axis.kind == AxisSpec::Kind::rest ? ".." : to_text(axis));
  };
  for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
    const std::vector<AxisSpec>& input = definition.inputs[i].axes;
    // Positions from the end are known up to the first rest on either side.
    for (std::size_t o = 0; o < output.size(); ++o) {
      const AxisSpec& axis = output[output.size() - 1 - o];
      for (std::size_t a = 0; a < input.size(); ++a) {
        const AxisSpec& candidate = input[input.size() - 1 - a];
        if (spelling(candidate) == spelling(axis)) {
          AxisFact fact{-1 - static_cast<int>(o), i, -1 - static_cast<int>(a), axis.kind == AxisSpec::Kind::rest};
          if (fact.and_outer) {
            // It reaches outwards as long as the remaining entries are the same, up to the end of one side.
            bool same = true;
            for (std::size_t k = 0; o + k < output.size() && a + k < input.size(); ++k)
              same = same && spelling(output[output.size() - 1 - o - k]) == spelling(input[input.size() - 1 - a - k]);
            if (same) facts.push_back(fact);
          } else {
            facts.push_back(fact);
          }
        }
        if (candidate.kind == AxisSpec::Kind::rest) break;
      }
      if (axis.kind == AxisSpec::Kind::rest) break;
    }
  }
  return facts;
}

}  // namespace taso
