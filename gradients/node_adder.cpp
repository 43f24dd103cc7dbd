#include "gradients/node_adder.h"

#include <utility>

namespace taso {

Expected<NodeId> NodeAdder::add(std::string_view op, const Attributes& attributes, std::vector<Value> inputs) {
  std::string key = std::string(op) + "(" + to_string(attributes) + ")";
  for (const Value input : inputs) key += " " + std::to_string(input.node) + "." + std::to_string(input.port);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  TASO_ASSIGN(const NodeId id, add_op(graph_, catalog_, op, attributes, std::move(inputs)));
  known_.emplace(std::move(key), id);
  added_.push_back(id);
  return id;
}

}  // namespace taso
