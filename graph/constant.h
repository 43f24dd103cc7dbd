/// Constant tensors as handles: rewriting a graph never loads a weight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/tensor_type.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

/// An immutable constant tensor in row-major order. Its bytes lie in memory it owns or keeps alive, in a
/// mapped file, or are one element repeated (ConstantOfShape), which is never expanded until asked for. Or it is only a
/// shape: a type and a name, of which no element is known (a weight of a model whose data is elsewhere). What needs
/// elements of such a constant fails with the error of require_data(), or is not done; no condition on elements holds.
class ConstantData {
 public:
  /// Owned bytes; their number is the type's.
  [[nodiscard]] static std::shared_ptr<const ConstantData> own(TensorType type, std::vector<std::byte> bytes);
  /// Bytes that `owner` keeps alive (a parsed model, a mapped file). With a non-empty `place` (such as
  /// "weights.bin@4096") the constant is told from others by that name, so that its bytes need not be read.
  /// `mapped`: they are pages of a file (release_pages).
  [[nodiscard]] static std::shared_ptr<const ConstantData> borrow(TensorType type, std::span<const std::byte> bytes,
                                                                  std::shared_ptr<const void> owner,
                                                                  std::string place = "", bool mapped = false);
  /// One element (size_of(type.element) bytes) repeated.
  [[nodiscard]] static std::shared_ptr<const ConstantData> splat(TensorType type, std::vector<std::byte> element);
  /// A tensor of which only the type is known. Equal names and types mean equal contents, other names say nothing.
  [[nodiscard]] static std::shared_ptr<const ConstantData> shape_only(TensorType type, std::string name);
  /// A tensor of a real type from as many values as it has elements, rounded to it.
  [[nodiscard]] static std::shared_ptr<const ConstantData> of_reals(TensorType type, std::span<const double> values);
  /// A float tensor from values.
  [[nodiscard]] static std::shared_ptr<const ConstantData> of_floats(Shape shape, std::span<const float> values);
  /// An int64 tensor from values.
  [[nodiscard]] static std::shared_ptr<const ConstantData> of_integers(Shape shape,
                                                                       std::span<const std::int64_t> values);
  /// The same bytes under another shape of equal volume.
  [[nodiscard]] std::shared_ptr<const ConstantData> reshaped(Shape shape) const;

  [[nodiscard]] const TensorType& type() const { return type_; }
  /// False if it is only a shape: then there is nothing to read (TASO_CHECK).
  [[nodiscard]] bool has_data() const { return !shape_only_; }
  /// bad_input where the constant is only a shape, with its name.
  [[nodiscard]] Status require_data() const;
  /// Of a constant that is only a shape.
  [[nodiscard]] const std::string& name() const { return place_; }
  /// The repeated element, or an empty span if the constant is not a splat.
  [[nodiscard]] std::span<const std::byte> splat_element() const { return splat_; }
  /// True if dense_bytes() are there: neither a splat nor only a shape.
  [[nodiscard]] bool is_dense() const { return splat_.empty() && !shape_only_; }
  /// All bytes of a dense constant (TASO_CHECK).
  [[nodiscard]] std::span<const std::byte> dense_bytes() const;
  /// Whether dense_bytes() are pages of a mapped file, which can be released and read again.
  [[nodiscard]] bool is_mapped() const { return mapped_; }
  /// Takes what lies in a mapped file out of memory, until it is read again; other constants stay as they are.
  void release_pages() const;
  /// The same of some of dense_bytes().
  void release_pages(std::span<const std::byte> part) const;
  /// All bytes, expanded if need be.
  [[nodiscard]] std::vector<std::byte> to_bytes() const;
  /// Values of a tensor of a real type.
  [[nodiscard]] std::vector<double> to_reals() const;
  /// The same as f32: exactly what is kept in 16 or 32 bits.
  [[nodiscard]] std::vector<float> to_floats() const;
  /// Values of any integer or boolean tensor, widened.
  [[nodiscard]] std::vector<std::int64_t> to_integers() const;
  /// Whether all elements of a tensor of a real type are.
  [[nodiscard]] bool is_finite() const;
  /// What all elements of a tensor of a real type have in common; all are finite where any of it holds.
  struct Signs {
    bool positive = false, nonnegative = false, nonzero = false;
  };
  /// Nothing for other elements, and where they are not known. Read once; later questions cost nothing.
  [[nodiscard]] std::optional<Signs> signs() const;
  /// Identity of the constant, the same in every process: type and contents, or type and place, or of what is only a
  /// shape type and name. Equal identities mean equal contents.
  [[nodiscard]] const Hash128& identity() const { return identity_; }

 private:
  TensorType type_;
  std::vector<std::byte> owned_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::string place_;  ///< Or the name of what is only a shape.
  bool shape_only_ = false;
  bool mapped_ = false;  ///< bytes_ are pages of a file.
  std::vector<std::byte> splat_;
  Hash128 identity_;
  /// Signs once they were read, as bits; a copy reads them anew.
  struct RememberedSigns {
    RememberedSigns() = default;
    RememberedSigns(const RememberedSigns&) {}
    RememberedSigns& operator=(const RememberedSigns&) = delete;
    std::atomic<std::uint8_t> bits{0};
  };
  mutable RememberedSigns signs_;

  void compute_identity();
};

/// A constant of real elements in another real type: itself where it is of that type, else its elements rounded. What
/// repeats one element still does, and what is only a shape still is.
[[nodiscard]] std::shared_ptr<const ConstantData> converted(const std::shared_ptr<const ConstantData>& constant,
                                                            ElementType to);

}  // namespace taso
