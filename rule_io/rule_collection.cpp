#include "rule_io/rule_collection.h"

#include <array>
#include <limits>
#include <optional>
#include <string_view>

#include "support/wire.h"

namespace taso::rule_io {
namespace {

constexpr const char* format = "a rule file of TASO";
// Far above any rule that a person or a generator writes; keeps what follows from a damaged file small.
constexpr std::size_t max_operators = 200;

class CollectionReader {
 public:
  CollectionReader(std::span<const std::byte> file, const std::string& path) : file_(file), path_(path) {}

  Expected<std::vector<FileRule>> run() {
    std::vector<FileRule> rules;
    wire::FieldReader reader = read(file_);
    while (!reader.done()) {
      place_.clear();
      TASO_ASSIGN(const wire::Field field, reader.next());
      TASO_RETURN_IF_ERROR(expect(field, 2, 1, "the file"));
      place_ = "rule " + std::to_string(rules.size()) + ": ";
      TASO_ASSIGN(FileRule rule, one_rule(field.payload));
      rules.push_back(std::move(rule));
    }
    if (rules.empty()) return bad_input("not " + std::string(format) + ": it holds no rule", {path_});
    return rules;
  }

 private:
  [[nodiscard]] wire::FieldReader read(std::span<const std::byte> message) const {
    return {message, file_.data(), path_, format};
  }
  [[nodiscard]] Error error(const std::string& message) const { return bad_input(place_ + message, {path_}); }

  // The field is of the wire type of all fields of its message, and its number is one of 1, ..., `last`.
  Status expect(const wire::Field& field, int wire_type, int last, std::string_view message) const {
    if (field.number > last)
      return error("not " + std::string(format) + ": field " + std::to_string(field.number) + " of " +
                   std::string(message) + ", where " + std::to_string(last) + " is the last");
    if (field.wire_type != wire_type)
      return error("not " + std::string(format) + ": field " + std::to_string(field.number) + " of " +
                   std::string(message) + " has wire type " + std::to_string(field.wire_type) + " instead of " +
                   std::to_string(wire_type));
    return {};
  }

  Expected<std::int32_t> number(const wire::Field& field, std::string_view message) const {
    const auto value = static_cast<std::int64_t>(field.value);
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
      return error("field " + std::to_string(field.number) + " of " + std::string(message) + " is " +
                   std::to_string(value) + ", which is no 32-bit number");
    return static_cast<std::int32_t>(value);
  }

  // A message of `count` required numbers.
  template <std::size_t count>
  Expected<std::array<std::int32_t, count>> numbers(std::span<const std::byte> bytes, std::string_view message) const {
    std::array<std::optional<std::int32_t>, count> found;
    wire::FieldReader reader = read(bytes);
    while (!reader.done()) {
      TASO_ASSIGN(const wire::Field field, reader.next());
      TASO_RETURN_IF_ERROR(expect(field, 0, count, message));
      TASO_ASSIGN(found[static_cast<std::size_t>(field.number) - 1], number(field, message));
    }
    std::array<std::int32_t, count> result{};
    for (std::size_t i = 0; i < count; ++i) {
      if (!found[i]) return error("field " + std::to_string(i + 1) + " of " + std::string(message) + " is missing");
      result[i] = *found[i];
    }
    return result;
  }

  Expected<FileOperator> one_operator(std::span<const std::byte> bytes) const {
    FileOperator result;
    bool typed = false;
    wire::FieldReader reader = read(bytes);
    while (!reader.done()) {
      TASO_ASSIGN(const wire::Field field, reader.next());
      TASO_RETURN_IF_ERROR(expect(field, field.number == 1 ? 0 : 2, 3, "an operator"));
      if (field.number == 1) {
        TASO_ASSIGN(result.type, number(field, "an operator"));
        typed = true;
      } else if (field.number == 2) {
        TASO_ASSIGN(const auto tensor, numbers<2>(field.payload, "a tensor"));
        result.inputs.push_back({tensor[0], tensor[1]});
      } else {
        TASO_ASSIGN(const auto parameter, numbers<2>(field.payload, "a parameter"));
        if (!result.parameters.emplace(parameter[0], parameter[1]).second)
          return error("an operator has parameter " + std::to_string(parameter[0]) + " twice");
      }
    }
    if (!typed) return error("field 1 (type) of an operator is missing");
    return result;
  }

  Expected<FileRule> one_rule(std::span<const std::byte> bytes) const {
    FileRule rule;
    wire::FieldReader reader = read(bytes);
    while (!reader.done()) {
      TASO_ASSIGN(const wire::Field field, reader.next());
      TASO_RETURN_IF_ERROR(expect(field, 2, 3, "a rule"));
      if (field.number == 3) {
        TASO_ASSIGN(const auto output, numbers<4>(field.payload, "a mapped output"));
        rule.outputs.push_back({{output[0], output[2]}, {output[1], output[3]}});
        continue;
      }
      std::vector<FileOperator>& side = field.number == 1 ? rule.source : rule.target;
      TASO_ASSIGN(FileOperator op, one_operator(field.payload));
      side.push_back(std::move(op));
      if (side.size() > max_operators)
        return error("more than " + std::to_string(max_operators) + " operators on one side");
    }
    TASO_RETURN_IF_ERROR(check_references(rule.source, "source"));
    TASO_RETURN_IF_ERROR(check_references(rule.target, "target"));
    if (rule.outputs.empty()) return error("it maps no output of the source to one of the target");
    for (const FileOutput& output : rule.outputs) {
      TASO_RETURN_IF_ERROR(check_output(output.source, rule.source, "source"));
      TASO_RETURN_IF_ERROR(check_output(output.target, rule.target, "target"));
    }
    return rule;
  }

  Status check_references(const std::vector<FileOperator>& side, std::string_view name) const {
    for (std::size_t i = 0; i < side.size(); ++i)
      for (const FileTensor& input : side[i].inputs) {
        if (input.op >= 0 && static_cast<std::size_t>(input.op) >= i)
          return error(std::string(name) + " operator " + std::to_string(i) + " reads operator " +
                       std::to_string(input.op) + ", which does not stand before it");
        if (input.output < 0)
          return error(std::string(name) + " operator " + std::to_string(i) + " reads output " +
                       std::to_string(input.output));
      }
    return {};
  }

  Status check_output(const FileTensor& tensor, const std::vector<FileOperator>& side, std::string_view name) const {
    if (tensor.op >= 0 && static_cast<std::size_t>(tensor.op) < side.size() && tensor.output >= 0) return {};
    return error("a mapped output is output " + std::to_string(tensor.output) + " of " + std::string(name) +
                 " operator " + std::to_string(tensor.op) + "; the " + std::string(name) + " has " +
                 std::to_string(side.size()) + " operators");
  }

  std::span<const std::byte> file_;
  const std::string& path_;
  std::string place_;
};

}  // namespace

Expected<std::vector<FileRule>> read_rule_collection(std::span<const std::byte> bytes, const std::string& path) {
  return CollectionReader(bytes, path).run();
}

}  // namespace taso::rule_io
