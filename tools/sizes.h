/// A model whose inputs have symbolic extents, kept symbolic: it is read at several sizes of its symbols, optimized at
/// the first, and what was done is repeated at the others before it counts (certificate/replay.h,
/// onnx_io/generalize.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "graph/pattern.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso::tools {

/// Parses "SYMBOL=N" as given to --assume.
[[nodiscard]] Expected<std::pair<std::string, std::int64_t>> parse_symbol_size(const std::string& text);

/// Sizes at which to look at a model. Those of the first are `given`, or by default 2, 3, 5, ... for the first axis of
/// an input (a batch) and 4, 3, 5, 7, ... times `unit` for others (128, 96, 160, ...: networks of several scales need
/// multiples); sizes of different symbols differ, and each symbol has another size in each, so that extents that are
/// equal by chance at one are not at another. The last ones are odd: what depends on remainders is another there. Not
/// every model exists at these.
[[nodiscard]] std::vector<SymbolSizes> choose_symbol_sizes(const std::vector<Symbol>& symbols, const SymbolSizes& given,
                                                           std::int64_t unit = 32);

/// A model as it is, or at several sizes.
class SizedModel {
 public:
  /// Reads a model. If its inputs have symbolic extents that `import` leaves open, and more of it is understood when
  /// they have sizes, at the sizes of choose_symbol_sizes; where that cannot be, as it is, and problem() says why.
  /// Fails as Model::load does, and (usage) if `given` names what is not a symbol of the model.
  [[nodiscard]] static Expected<SizedModel> load(const std::string& path, const OperatorRegistry& registry,
                                                 const ImportOptions& import, const SymbolSizes& given);

  /// The model at the first sizes, or as it is.
  [[nodiscard]] const Model& model() const { return models_.front(); }
  /// The sizes; empty: the model is taken as it is.
  [[nodiscard]] const std::vector<SymbolSizes>& sizes() const { return sizes_; }
  /// Why symbolic extents could not be kept while the model is optimized; empty if there are none, or they could.
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// The graphs, in normal form, that steps make of the model at each size. An error says what does not fit.
  [[nodiscard]] Expected<std::vector<Graph>> repeat(const std::vector<Substitution>& rules,
                                                    const std::vector<CertificateStep>& steps) const;
  /// Whether a file can hold these graphs, one for each size, for all sizes.
  [[nodiscard]] Status can_save(const std::vector<Graph>& graphs) const;
  /// Writes them as one file.
  [[nodiscard]] Expected<SaveReport> save(const std::vector<Graph>& graphs, const std::string& path,
                                          const SaveOptions& options) const;

 private:
  /// Reads the model at these sizes; sizes_ stays empty, and problem_ says why, if it cannot be taken at them.
  void take_sizes(std::vector<SymbolSizes> sizes, const std::string& path, const ImportOptions& import);
  [[nodiscard]] std::vector<Model::Sized> sized(const std::vector<Graph>& graphs) const;

  const OperatorRegistry* registry_ = nullptr;
  std::vector<Model> models_;
  std::vector<SymbolSizes> sizes_;
  std::string problem_;
};

}  // namespace taso::tools
