/// Constants of a model that are others at other sizes of its symbolic extents.
///
/// A constant that the importer computes from extents has other contents at every size: a list of extents, a mask of
/// zeros as long as the input, positions 0, 1, 2, ... In a graph for all sizes (graph/size_arithmetic.h) a stand-in
/// takes its place, which has a form that says what it is at any size. Equal forms have equal stand-ins, so that what
/// is one constant at all sizes is one constant there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "graph/constant.h"
#include "graph/size_arithmetic.h"

namespace taso {

/// What a constant is at all sizes. Extents and elements may be names of sizes.
struct ConstantForm {
  enum class Kind : std::uint8_t {
    list,      ///< `elements`, of 64-bit integers; of rank 1, or 0.
    repeated,  ///< One element, `element`.
    count,  ///< start, start + step, ... of 64-bit integers; the start may be the name of a size, the step is a number.
    unknown,  ///< Nothing is known but what it is at the samples.
  };
  Kind kind = Kind::unknown;
  TensorType type;
  std::vector<std::int64_t> elements;
  std::vector<std::byte> element;
  std::int64_t start = 0, step = 0;
};

/// The stand-ins of one model. Not for several threads at once.
class SymbolicConstants {
 public:
  using Data = std::shared_ptr<const ConstantData>;

  /// `sizes` must outlive this.
  explicit SymbolicConstants(const SampledSizes& sizes) : sizes_(&sizes) {}

  /// What is `samples[k]` at each sample k: that itself if it is the same at all, else a stand-in. The same constants
  /// have the same stand-in. `told`: the samples tell sizes that it may follow from; else what it is stays unknown.
  [[nodiscard]] Data unify(const std::vector<Data>& samples, bool told = true);
  /// Whether an element of a list is no name of a size. Those beyond 2^62 say "as far as there is".
  [[nodiscard]] bool is_number(std::int64_t element) const;
  /// A list of 64-bit integers some of which may be names of sizes: a stand-in if one is.
  [[nodiscard]] Data list(const std::vector<std::int64_t>& elements);
  /// The form of a stand-in; null of any other constant.
  [[nodiscard]] const ConstantForm* form_of(const ConstantData& data) const;
  /// Whether a form is `data` at a sample. Of one that is unknown, that cannot be told: no.
  [[nodiscard]] bool is_at(const ConstantForm& form, const ConstantData& data, std::size_t sample) const;

 private:
  [[nodiscard]] ConstantForm find_form(const std::vector<Data>& samples) const;
  [[nodiscard]] Data stand_in(const ConstantForm& form);

  const SampledSizes* sizes_;
  std::map<std::pair<bool, std::vector<Hash128>>, Data> known_;  ///< By the identities at the samples.
  std::map<Hash128, ConstantForm> forms_;                        ///< By the identity of the stand-in.
};

}  // namespace taso
