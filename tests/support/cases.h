/// Files of text cases, in the one grammar that all of them share (docs/testing.md, "Case files"):
///
///   # A comment.
///   case NAME
///     key value
///     section:
///       text, indented by four
///
/// A test says which keys its cases have; the reader refuses all others. Values are checked while reading, so that a
/// file that is read holds no mistake but in the text of its sections.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "support/status.h"

namespace taso::test {

/// What stands behind a key.
enum class CaseValue : std::uint8_t {
  none,     ///< Nothing.
  text,     ///< The rest of the line; it may be empty.
  integer,  ///< An integer of 64 bits.
  number,   ///< A finite number.
  words,    ///< At least one word.
  section,  ///< Lines of their own.
};

/// How often a case has a key.
enum class CaseCount : std::uint8_t { optional, once, repeated };

/// A key that the cases of a test may have.
struct CaseKey {
  std::string_view name;
  CaseValue value = CaseValue::text;
  CaseCount count = CaseCount::optional;
};

/// The keys of the cases of a test.
using CaseKeys = std::vector<CaseKey>;

/// A key of a case, and what stands behind it.
struct CaseEntry {
  std::string key;
  std::string value;  ///< Of a section: its lines without their indentation, each ended by a line end.
  int line = 0;       ///< Where the key stands; a section begins in the line below.
};

/// One case of a file.
struct TextCase {
  std::string file;  ///< As it was given to the reader.
  int line = 0;
  std::string name;  ///< May be empty.
  std::vector<CaseEntry> entries;

  /// "file:line".
  [[nodiscard]] std::string place() const;
  [[nodiscard]] bool has(std::string_view key) const;
  /// The value of the first entry with this key; empty if there is none.
  [[nodiscard]] const std::string& text(std::string_view key) const;
  /// The same, or `otherwise` if there is none.
  [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise) const;
  /// The value of a key of kind `integer`, or `otherwise`.
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t otherwise = 0) const;
  /// The value of a key of kind `number`, or `otherwise`.
  [[nodiscard]] double number(std::string_view key, double otherwise = 0) const;
  /// The values of all entries with this key, in order.
  [[nodiscard]] std::vector<std::string> all(std::string_view key) const;
  /// The text of a section with as many empty lines before it as the file has, so that a parser that is given it names
  /// the line of the file.
  [[nodiscard]] std::string placed(std::string_view key) const;
};

/// Names a case in the output of tests.
void PrintTo(const TextCase& one, std::ostream* out);

/// The name of a parameterized test: that of the file and that of the case.
[[nodiscard]] std::string case_name(const ::testing::TestParamInfo<TextCase>& info);

/// Words that are separated by spaces.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

/// The cases of a text. An error names the line and what is wrong there.
[[nodiscard]] Expected<std::vector<TextCase>> parse_cases(std::string_view text, const std::string& file,
                                                          const CaseKeys& keys);

/// The cases of a file of the source tree, or of all files *.cases of a folder, in the order of their names. A file
/// that cannot be read, or that is wrong, ends the program with its error: tests that are made from cases exist before
/// any test runs.
[[nodiscard]] std::vector<TextCase> load_cases(const std::string& path, const CaseKeys& keys);

}  // namespace taso::test
