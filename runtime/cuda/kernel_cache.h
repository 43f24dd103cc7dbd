/// Compiled kernels that are kept from run to run, as files in a folder, one for each text, compiler, options and
/// architecture.
///
/// An entry holds all of these besides the code, and a checksum: what is found is what was asked for, and whole. Any
/// other file is taken for none, and written anew. Entries are written beside their place and then renamed, so that
/// programs which run at the same time see whole ones. Nothing is ever removed: the folder may be, at any time.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/cuda/compiler.h"
#include "support/status.h"

namespace taso::cuda {

/// The folder. Thread-safe.
class KernelCache {
 public:
  /// `folder` is made when something is first kept. Empty: nothing is.
  explicit KernelCache(std::string folder) : folder_(std::move(folder)) {}

  /// The code that is kept under a key, a text of any length.
  [[nodiscard]] std::optional<std::string> find(std::string_view key) const;
  /// Keeps code under a key. bad_input where it cannot be written.
  [[nodiscard]] Status keep(std::string_view key, std::string_view code) const;
  /// The file of a key.
  [[nodiscard]] std::string path_of(std::string_view key) const;
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// Code for texts: from the cache, or compiled now and kept there. Thread-safe.
class KernelBuilder {
 public:
  KernelBuilder(std::shared_ptr<const SourceCompiler> compiler, int architecture, std::string folder)
      : compiler_(std::move(compiler)), architecture_(architecture), cache_(std::move(folder)) {}

  /// device_unavailable where it cannot be compiled; what failed once is not tried again.
  [[nodiscard]] Expected<std::string> build(const std::string& source);
  /// What is the same of two builds that give the same code.
  [[nodiscard]] std::string key_of(const std::string& source) const;

  [[nodiscard]] const SourceCompiler& compiler() const { return *compiler_; }

  /// What has been done so far.
  struct Counts {
    std::size_t compiled = 0, found = 0, failed = 0, unwritten = 0;
  };
  [[nodiscard]] Counts counts() const;
  /// The first reason why a text was not compiled, or code not kept; empty if there was none.
  [[nodiscard]] std::string complaint() const;

 private:
  std::shared_ptr<const SourceCompiler> compiler_;
  int architecture_;
  KernelCache cache_;
  mutable std::mutex mutex_;
  Counts counts_;
  std::string complaint_;
  std::map<std::string, Error> failed_;  ///< By key.
};

}  // namespace taso::cuda
