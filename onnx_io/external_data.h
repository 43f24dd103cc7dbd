/// Files with external weights, opened so that a model cannot name anything outside its own folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "support/status.h"

namespace taso {

/// Bytes and what keeps them alive.
struct SharedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  /// The bytes are pages of a mapped file: they can be read again after release_pages.
  bool mapped = false;
};

/// The external-data files of one model, mapped on first use. Locations are relative to the model's folder; absolute
/// ones, ones with "..", and symbolic links are refused, as ONNX's security note on external data asks.
class ExternalData {
 public:
  explicit ExternalData(std::string model_path);
  /// Whether there is anything at a location, of which read() may yet fail. Fails as that where the location itself is
  /// refused.
  [[nodiscard]] Expected<bool> exists(const std::string& location) const;
  /// `length` bytes (the rest of the file if absent) at `offset`. Error messages do not name the tensor; the caller
  /// adds it.
  [[nodiscard]] Expected<SharedBytes> read(const std::string& location, std::int64_t offset,
                                           std::optional<std::int64_t> length);

 private:
  std::string folder_;
  std::map<std::string, SharedBytes> files_;
};

}  // namespace taso
