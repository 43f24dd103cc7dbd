/// A catalog of a few operators written by hand, so that the graph layer is tested without specifications.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"

namespace taso {

class FakeCatalog final : public OperatorCatalog {
 public:
  FakeCatalog();
  [[nodiscard]] bool defines(std::string_view op) const override { return signature(op) != nullptr; }
  [[nodiscard]] const OperatorSignature* signature(std::string_view op) const override;
  [[nodiscard]] Expected<Attributes> complete(std::string_view op, const Attributes& attributes) const override;
  [[nodiscard]] Expected<std::vector<TensorType>> infer(std::string_view op, const Attributes& attributes,
                                                        std::span<const TensorType> inputs) const override;
  [[nodiscard]] std::size_t output_count(std::string_view op, const Attributes& attributes) const override;
  [[nodiscard]] bool is_commutative(std::string_view op) const override { return op == "add" || op == "mul"; }
  [[nodiscard]] bool is_associative(std::string_view op) const override { return op == "concat"; }
  [[nodiscard]] const PieceAttributes* pieces(std::string_view op) const override {
    static const PieceAttributes of_split{"sizes", "axis"}, of_cut{"extents", "place"};
    return op == "split" ? &of_split : op == "cut" ? &of_cut : nullptr;
  }
  [[nodiscard]] bool is_function(std::string_view name) const override {
    return name == "relu" || name == "identity" || name == "log";
  }
  [[nodiscard]] bool is_total_function(std::string_view name) const override {
    return is_function(name) && name != "log";
  }

 private:
  std::map<std::string, OperatorSignature, std::less<>> signatures_;
};

}  // namespace taso
