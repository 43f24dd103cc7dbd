/// A model whose inputs have symbolic extents, kept symbolic: it is optimized at one size of its symbols, by steps that
/// hold at all (certificate/symbolic_model.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "certificate/symbolic_model.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "session/message.h"
#include "support/status.h"

namespace taso {

/// Parses "SYMBOL=N" as given to --assume.
[[nodiscard]] Expected<std::pair<std::string, std::int64_t>> parse_symbol_size(const std::string& text);

/// What sizes are multiples of, and how many different ones there are of first axes and of others.
struct SizeScale {
  std::int64_t unit = 32;
  std::size_t different = SIZE_MAX;
};

/// Sizes for which costs count: those that are `given`, or else 2, 3, 5, ... for first axes of inputs (batches) and 4,
/// 3, 5, 7, ... times a unit for others (128, 96, 160, ...: networks of several scales need multiples), within the
/// ranges.
[[nodiscard]] SymbolSizes choose_symbol_sizes(const std::vector<Symbol>& symbols, const SymbolSizes& given,
                                              const SymbolRanges& ranges, const SizeScale& scale = {});

/// elements_at_once at sizes that nobody chose, if there are such sizes (256 MB of f32).
constexpr std::int64_t most_elements = std::int64_t{1} << 26;

/// What a graph needs at once at run time, at least: the elements of all that it is given (its inputs, and what carried
/// nodes make), or of the largest tensor if that has more. Weights do not count.
[[nodiscard]] std::int64_t elements_at_once(const Graph& graph);

/// A model as it is, or at one size.
class SizedModel {
 public:
  /// Reads a model. If its inputs have symbolic extents that `import` leaves open, and more of it is understood when
  /// they have sizes, at those of choose_symbol_sizes, of a smaller scale where more than most_elements would be needed
  /// at once; where it cannot be taken at all sizes, as it is, and problem() says why. Fails as Model::load does, and
  /// (usage) if `given` or `ranges` names what is not a symbol of the model or a size outside of the ranges.
  [[nodiscard]] static Expected<SizedModel> load(const std::string& path, const OperatorRegistry& registry,
                                                 const ImportOptions& import, const SymbolSizes& given,
                                                 const SymbolRanges& ranges);

  /// The same of a model that was read already.
  [[nodiscard]] static Expected<SizedModel> of(Model read, const OperatorRegistry& registry, const SymbolSizes& given,
                                               const SymbolRanges& ranges);

  /// The model at the sizes, or as it is.
  [[nodiscard]] const Model& model() const { return *model_; }
  /// The sizes; empty: the model is taken as it is.
  [[nodiscard]] const SymbolSizes& sizes() const { return sizes_; }
  /// The model at all sizes; nothing if it is taken as it is.
  [[nodiscard]] const std::optional<SymbolicModel>& symbolic() const { return symbolic_; }
  /// Why symbolic extents could not be kept while the model is optimized; empty if there are none, or they could.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::optional<Model> model_;
  SymbolSizes sizes_;
  std::optional<SymbolicModel> symbolic_;
  std::string problem_;
};

/// Says what of a model is not as its user may expect.
void describe(const SizedModel& sized, const MessageSink& message);

}  // namespace taso
