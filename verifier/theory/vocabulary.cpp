#include "verifier/theory/vocabulary.h"

namespace taso::theory {

Expr Vocabulary::apply(const std::string& name, const smt::Sort& result, std::vector<Expr> arguments,
                       const std::vector<smt::Sort>& sorts) {
  auto it = functions_.find(name);
  if (it == functions_.end()) it = functions_.emplace(name, context_.function(name, sorts, result)).first;
  return it->second(arguments);
}

Expr Vocabulary::application(const std::string& op, std::uint32_t port, const std::vector<Expr>& tensors,
                             const std::vector<std::pair<Kindness, Expr>>& attributes) {
  std::vector<Expr> arguments = tensors;
  std::vector<smt::Sort> sorts(tensors.size(), tensor_);
  for (const auto& [kind, expr] : attributes) {
    arguments.push_back(expr);
    sorts.push_back(kind == Kindness::integer ? integer_
                    : kind == Kindness::real  ? real_
                    : kind == Kindness::list  ? list_
                                              : symbol_);
  }
  return apply(op + "/" + std::to_string(tensors.size()) + "." + std::to_string(port), tensor_, arguments, sorts);
}

}  // namespace taso::theory
