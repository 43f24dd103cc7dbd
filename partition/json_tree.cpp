#include "partition/json_tree.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace taso {
namespace {

using nlohmann::json;

constexpr std::size_t most_nested = 16;

/// How far the parser has read. It may have looked at one character behind a number, so that a line is that of the last
/// character which is no space.
struct ReadPosition {
  int line = 1, last_line = 1;
  void read(char c) {
    if (c == '\n') ++line;
    if (c != '\n' && c != '\r' && c != ' ' && c != '\t') last_line = line;
  }
};

/// Gives the parser a text and notes how far it has read.
class NotedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  NotedIterator(const char* at, ReadPosition* position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  NotedIterator& operator++() {
    position_->read(*at_++);
    return *this;
  }
  bool operator==(const NotedIterator& other) const { return at_ == other.at_; }
  bool operator!=(const NotedIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  ReadPosition* position_;
};

/// A name or text of a file as part of a message of one line: JSON's own spelling, cut where it is long.
std::string spelled(const std::string& text) {
  constexpr std::size_t longest = 40;
  const bool whole = text.size() <= longest;
  return json(whole ? text : text.substr(0, longest) + "...").dump(-1, ' ', true, json::error_handler_t::replace);
}

/// Builds the tree from the parser's events (nlohmann's interface of these, whose functions have these names).
class TreeBuilder {
 public:
  TreeBuilder(const ReadPosition& position, const std::string& file) : position_(position), file_(file) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return add(static_cast<std::int64_t>(value));
    return add(static_cast<double>(value));
  }
  bool number_float(double value, const std::string& /*text*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(json::binary_t& /*value*/) { return false; }  // JSON as text has none
  bool start_object(std::size_t /*size*/) { return open(JsonTree::Object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t /*size*/) { return open(JsonTree::List()); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    auto& object = std::get<JsonTree::Object>(open_.back()->value);
    for (const auto& [other, member] : object)
      if (other == name) return fail(fmt::format("{} is given twice, first in line {}", spelled(name), member.line));
    object.emplace_back(std::move(name), JsonTree{nullptr, position_.last_line});
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const json::exception& error) {
    if (error.id == 406) return fail("a number is too large: none may exceed 1.8e308");
    // "[json...] parse error at line 1, column 5: REASON; last read: '...'; expected ..."
    std::string_view reason = error.what();
    if (const std::size_t at = reason.find(": "); at != std::string_view::npos) reason.remove_prefix(at + 2);
    std::string message = fmt::format("this is not JSON: {}", reason.substr(0, reason.find("; last read")));
    // The parser forgets that more could follow.
    for (const char* end : {"expected '}'", "expected ']'"})
      if (message.ends_with(end)) message.insert(message.size() - 3, "',' or ");
    return fail(std::move(message));
  }

  [[nodiscard]] Expected<JsonTree> result() {
    if (error_) return *error_;
    return std::move(root_);
  }

 private:
  bool fail(std::string message) {
    error_ = bad_input(std::move(message), {file_, position_.last_line});
    return false;
  }

  /// Where the next value belongs. A member's line is known from its name.
  JsonTree& place() {
    if (open_.empty()) return root_;
    if (auto* list = std::get_if<JsonTree::List>(&open_.back()->value)) return list->emplace_back();
    return std::get<JsonTree::Object>(open_.back()->value).back().second;
  }

  template <class Value>
  bool add(Value value) {
    JsonTree& tree = place();
    tree.value = std::move(value);
    if (tree.line == 0) tree.line = position_.last_line;
    last_ = &tree;
    return true;
  }

  template <class Value>
  bool open(Value value) {
    if (open_.size() == most_nested)
      return fail(fmt::format("lists and objects are nested deeper than {}", most_nested));
    add(std::move(value));
    open_.push_back(last_);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const ReadPosition& position_;
  const std::string& file_;
  JsonTree root_;
  JsonTree* last_ = nullptr;
  /// Lists and objects that are not closed, the innermost last. An outer one does not grow while an inner one is open.
  std::vector<JsonTree*> open_;
  std::optional<Error> error_;
};

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

std::string JsonTree::kind() const {
  return std::visit(Overloaded{[](std::nullptr_t) -> std::string { return "null"; },
                               [](bool truth) -> std::string { return truth ? "true" : "false"; },
                               [](std::int64_t number) { return std::to_string(number); },
                               [](double number) { return fmt::format("{}", number); },
                               [](const std::string& text) { return spelled(text); },
                               [](const List&) -> std::string { return "a list"; },
                               [](const Object&) -> std::string { return "an object"; }},
                    value);
}

Expected<JsonTree> parse_json_tree(const std::string& text, const std::string& file) {
  ReadPosition position;
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {  // the parser takes it for the end
    for (const char c : text.substr(0, zero)) position.read(c);
    return bad_input("this is not JSON: a byte is zero", {file, position.line});
  }
  TreeBuilder builder(position, file);
  json::sax_parse(NotedIterator(text.data(), &position), NotedIterator(text.data() + text.size(), &position), &builder);
  return builder.result();
}

}  // namespace taso
