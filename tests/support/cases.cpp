#include "tests/support/cases.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>

#include "support/file.h"

namespace taso::test {
namespace {

constexpr std::size_t key_indentation = 2, section_indentation = 4;

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// What a key must be followed by; nothing if `value` is that.
std::optional<std::string> wanted_instead(CaseValue kind, const std::string& value) {
  switch (kind) {
    case CaseValue::none:
      if (!value.empty()) return "nothing";
      break;
    case CaseValue::integer:
      if (!number_of<std::int64_t>(value)) return "an integer";
      break;
    case CaseValue::number: {
      const std::optional<double> number = number_of<double>(value);
      if (!number || !std::isfinite(*number)) return "a number";
      break;
    }
    case CaseValue::words:
      if (words_of(value).empty()) return "a value";
      break;
    case CaseValue::text:
    case CaseValue::section:
      break;
  }
  return std::nullopt;
}

bool is_key(std::string_view word) {
  return !word.empty() && word[0] >= 'a' && word[0] <= 'z' && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// Reads a file line by line.
class Reader {
 public:
  Reader(const std::string& file, const CaseKeys& keys) : file_(file), keys_(keys) {}

  Expected<std::vector<TextCase>> read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      TASO_RETURN_IF_ERROR(take(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    TASO_RETURN_IF_ERROR(end_case());
    if (cases_.empty()) return bad_input("there is no case in this file", {file_, 0, 0});
    return std::move(cases_);
  }

 private:
  [[nodiscard]] Error wrong(const std::string& message, int line) const { return bad_input(message, {file_, line, 0}); }
  [[nodiscard]] Error wrong(const std::string& message) const { return wrong(message, line_); }

  Status take(std::string_view line) {
    if (line.find('\t') != std::string_view::npos) return wrong("a tab; lines are indented by spaces");
    const std::size_t indentation = line.find_first_not_of(' ');
    if (indentation == std::string_view::npos) {
      if (in_section_) ++empty_lines_;
      return {};
    }
    if (in_section_ && indentation >= section_indentation) {
      CaseEntry& section = cases_.back().entries.back();
      section.value.append(section.value.empty() ? 0 : empty_lines_, '\n');
      section.value.append(line.substr(section_indentation)).push_back('\n');
      // Lines of the section count as they do in the file.
      if (section.value.size() == line.size() - section_indentation + 1) section.line = line_ - 1;
      empty_lines_ = 0;
      return {};
    }
    if (line[indentation] == '#') return {};
    while (line.back() == ' ') line.remove_suffix(1);
    if (indentation == 0) return begin_case(line);
    if (indentation != key_indentation)
      return wrong("indented by " + std::to_string(indentation) + " spaces; a key is indented by two, the text of a " +
                   "section by four");
    return take_key(line.substr(indentation));
  }

  Status begin_case(std::string_view line) {
    TASO_RETURN_IF_ERROR(end_case());
    if (line != "case" && !line.starts_with("case "))
      return wrong("expected 'case NAME', found '" + std::string(line) + "'");
    TextCase one{file_, line_, std::string(line.substr(std::min(line.size(), std::size_t{5}))), {}};
    if (const auto known = names_.find(one.name); !one.name.empty() && known != names_.end())
      return wrong("a second case '" + one.name + "'; the first is in line " + std::to_string(known->second));
    names_.emplace(one.name, line_);
    cases_.push_back(std::move(one));
    return {};
  }

  Status take_key(std::string_view line) {
    if (cases_.empty()) return wrong("a key before the first case");
    TASO_RETURN_IF_ERROR(end_section());
    const std::size_t space = std::min(line.find(' '), line.size());
    std::string key(line.substr(0, space));
    std::string value(line.substr(std::min(space + 1, line.size())));
    const bool section = key.ends_with(':') && value.empty();
    if (section) key.pop_back();
    const auto known = std::find_if(keys_.begin(), keys_.end(), [&](const CaseKey& each) { return each.name == key; });
    if (!is_key(key) || known == keys_.end()) return wrong("unknown key '" + key + "'; the keys are " + key_names());
    if (section != (known->value == CaseValue::section))
      return wrong(section ? "'" + key + "' is no section: its value stands in the same line"
                           : "'" + key + "' is a section: '" + key + ":', and below it its lines, indented by four");
    if (const auto wanted = wanted_instead(known->value, value))
      return wrong("'" + key + "' takes " + *wanted + ", not '" + value + "'");
    if (known->count != CaseCount::repeated)
      for (const CaseEntry& entry : cases_.back().entries)
        if (entry.key == key)
          return wrong("a second '" + key + "' in one case; the first is in line " + std::to_string(entry.line));
    cases_.back().entries.push_back({std::move(key), std::move(value), line_});
    in_section_ = section;
    return {};
  }

  /// A section without text is a mistake.
  Status end_section() {
    const bool ended = in_section_;
    in_section_ = false;
    empty_lines_ = 0;
    if (!ended || !cases_.back().entries.back().value.empty()) return {};
    return wrong("section '" + cases_.back().entries.back().key + "' is empty", cases_.back().entries.back().line);
  }

  Status end_case() {
    if (cases_.empty()) return {};
    TASO_RETURN_IF_ERROR(end_section());
    for (const CaseKey& key : keys_)
      if (key.count == CaseCount::once && !cases_.back().has(key.name))
        return wrong("this case has no '" + std::string(key.name) + "'", cases_.back().line);
    return {};
  }

  [[nodiscard]] std::string key_names() const {
    std::string names;
    for (const CaseKey& key : keys_) names.append(names.empty() ? "" : ", ").append(key.name);
    return names;
  }

  const std::string& file_;
  const CaseKeys& keys_;
  std::vector<TextCase> cases_;
  std::map<std::string, int> names_;
  int line_ = 0;
  bool in_section_ = false;
  std::size_t empty_lines_ = 0;  ///< Of the section; they count only if more text follows.
};

const CaseEntry* find(const TextCase& one, std::string_view key) {
  const auto place =
      std::find_if(one.entries.begin(), one.entries.end(), [&](const CaseEntry& entry) { return entry.key == key; });
  return place == one.entries.end() ? nullptr : &*place;
}

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

}  // namespace

std::string TextCase::place() const { return file + ":" + std::to_string(line); }

bool TextCase::has(std::string_view key) const { return find(*this, key) != nullptr; }

const std::string& TextCase::text(std::string_view key) const {
  static const std::string nothing;
  const CaseEntry* entry = find(*this, key);
  return entry == nullptr ? nothing : entry->value;
}

std::string TextCase::text(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

std::int64_t TextCase::integer(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? number_of<std::int64_t>(text(key)).value() : otherwise;
}

double TextCase::number(std::string_view key, double otherwise) const {
  return has(key) ? number_of<double>(text(key)).value() : otherwise;
}

std::vector<std::string> TextCase::all(std::string_view key) const {
  std::vector<std::string> values;
  for (const CaseEntry& entry : entries)
    if (entry.key == key) values.push_back(entry.value);
  return values;
}

std::string TextCase::placed(std::string_view key) const {
  const CaseEntry* entry = find(*this, key);
  return entry == nullptr ? "" : std::string(static_cast<std::size_t>(entry->line), '\n') + entry->value;
}

void PrintTo(const TextCase& one, std::ostream* out) { *out << one.place() << ": " << one.name; }

std::string case_name(const ::testing::TestParamInfo<TextCase>& info) {
  const TextCase& one = info.param;
  std::string name =
      std::filesystem::path(one.file).stem().string() + "_" + (one.name.empty() ? std::to_string(one.line) : one.name);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Expected<std::vector<TextCase>> parse_cases(std::string_view text, const std::string& file, const CaseKeys& keys) {
  return Reader(file, keys).read(text);
}

std::vector<TextCase> load_cases(const std::string& path, const CaseKeys& keys) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path whole = std::filesystem::path(TASO_SOURCE_DIR) / path;
  std::error_code failed;
  if (std::filesystem::is_directory(whole, failed)) {
    for (const auto& entry : std::filesystem::directory_iterator(whole, failed))
      if (entry.path().extension() == ".cases") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    if (files.empty()) give_up(path + ": there is no file *.cases in this folder");
  } else {
    files.push_back(whole);
  }
  std::vector<TextCase> cases;
  for (const std::filesystem::path& file : files) {
    const Expected<std::string> text = read_file(file.string());
    if (!text) give_up(text.error().to_string());
    Expected<std::vector<TextCase>> read =
        parse_cases(*text, std::filesystem::relative(file, TASO_SOURCE_DIR).string(), keys);
    if (!read) give_up(read.error().to_string());
    std::move(read->begin(), read->end(), std::back_inserter(cases));
  }
  return cases;
}

}  // namespace taso::test
