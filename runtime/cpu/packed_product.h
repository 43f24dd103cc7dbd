/// Products of single matrices by oneDNN, for kernels that compute many alike: blocks of rows of one matrix times
/// another, which is brought once into the format that is fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel.h"

namespace taso::cpu {

/// a[m, k] times b[k, n] in f32. a and the result are dense, b's elements lie `row` and `column` apart.
struct ProductExtents {
  std::vector<std::int64_t> rows;  ///< What m may be.
  std::int64_t k = 1, n = 1;
  std::int64_t row = 1, column = 1;
  bool once = false;  ///< Few products are computed with each b: it is made dense, no more.
};

/// Computes products; for one thread at a time.
class ProductRunner {
 public:
  ProductRunner() = default;
  virtual ~ProductRunner() = default;
  ProductRunner(const ProductRunner&) = delete;
  ProductRunner& operator=(const ProductRunner&) = delete;
  /// Where it may write while it computes: as many bytes as the product says, aligned to 64.
  virtual void use(std::byte* scratch) = 0;
  /// Brings b into its format.
  virtual Status pack(const float* b, float* packed) = 0;
  /// y = a b. `which`: of ProductExtents::rows.
  virtual Status multiply(std::size_t which, const float* a, const float* packed, float* y) = 0;
};

/// Immutable; runners may run at the same time.
class PackedProduct {
 public:
  virtual ~PackedProduct() = default;
  PackedProduct(const PackedProduct&) = delete;
  PackedProduct& operator=(const PackedProduct&) = delete;

  /// What computes it: "onednn brg:avx512_core".
  [[nodiscard]] const std::string& implementation() const { return implementation_; }
  /// Whether b is used as it lies; then nothing is packed.
  [[nodiscard]] bool takes_plain() const { return takes_plain_; }
  [[nodiscard]] std::size_t packed_bytes() const { return packed_bytes_; }
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// The product must outlive it.
  [[nodiscard]] virtual std::unique_ptr<ProductRunner> runner() const = 0;

 protected:
  PackedProduct() = default;
  std::string implementation_;
  bool takes_plain_ = false;
  std::size_t packed_bytes_ = 0, scratch_bytes_ = 0;
};

/// A product, or the reason why oneDNN has none that is fast.
struct OfferedProduct {
  std::unique_ptr<PackedProduct> product;
  std::string reason;
};
[[nodiscard]] OfferedProduct onednn_packed_product(const ProductExtents& extents);

}  // namespace taso::cpu
