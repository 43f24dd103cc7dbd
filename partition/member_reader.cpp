#include "partition/member_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "partition/topology.h"
#include "support/nearest_word.h"

namespace taso {
namespace {

constexpr std::int64_t most_memory = std::int64_t{1} << 50;
constexpr double most_rate = 1e21, most_latency = 1e3;
constexpr std::size_t longest_known_name = 60, most_points = 64;

/// Not a number if it is none.
double number_in(const JsonTree& tree) {
  if (const auto* integer = std::get_if<std::int64_t>(&tree.value)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&tree.value);
  return real == nullptr ? std::numeric_limits<double>::quiet_NaN() : *real;
}

bool is_integer(double number, std::int64_t least, std::int64_t most) {
  return number >= static_cast<double>(least) && number <= static_cast<double>(most) && number == std::floor(number);
}

}  // namespace

Expected<MemberReader> MemberReader::open(const JsonTree& tree, const std::string& place, const std::string& file,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::string>& optional) {
  const auto* object = std::get_if<JsonTree::Object>(&tree.value);
  MemberReader reader(object, place, file);
  if (object == nullptr)
    return reader.wrong(place, tree,
                        fmt::format("expected an object with {}, found {}", fmt::join(names, ", "), tree.kind()));
  std::vector<std::string> known = names;
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& [name, member] : *object) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = name.size() <= longest_known_name ? nearest_word(name, known) : "";
    return reader.wrong(place, member,
                        fmt::format("unknown key {}; {}", JsonTree{name}.kind(),
                                    nearest.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                                                    : fmt::format("did you mean '{}'?", nearest)));
  }
  for (const std::string& name : names)
    if (reader.find(name) == nullptr) return reader.wrong(place, tree, fmt::format("'{}' is missing", name));
  return reader;
}

const JsonTree& MemberReader::member(const std::string& name) const {
  const JsonTree* found = find(name);
  TASO_CHECK(found != nullptr, "a member that is not there");
  return *found;
}

bool MemberReader::is_null(const std::string& name) const {
  return std::holds_alternative<std::nullptr_t>(member(name).value);
}

std::string MemberReader::place_of(const std::string& name) const {
  return place_.empty() ? name : place_ + "." + name;
}

Expected<std::string> MemberReader::text(const std::string& name, std::size_t longest) const {
  const auto* text = std::get_if<std::string>(&member(name).value);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text == nullptr || text->empty() || text->size() > longest || std::any_of(text->begin(), text->end(), is_control))
    return expected(name, fmt::format("a text of one line and 1 to {} bytes", longest));
  return *text;
}

Expected<std::string> MemberReader::any_text(const std::string& name) const {
  const auto* text = std::get_if<std::string>(&member(name).value);
  if (text == nullptr) return expected(name, "a text");
  return *text;
}

Expected<std::string> MemberReader::word(const std::string& name, const std::vector<std::string>& words) const {
  const auto* text = std::get_if<std::string>(&member(name).value);
  if (text == nullptr || std::find(words.begin(), words.end(), *text) == words.end())
    return expected(name, fmt::format("\"{}\"", fmt::join(words, "\" or \"")));
  return *text;
}

Expected<bool> MemberReader::truth(const std::string& name) const {
  const auto* truth = std::get_if<bool>(&member(name).value);
  if (truth == nullptr) return expected(name, "true or false");
  return *truth;
}

Expected<std::int64_t> MemberReader::integer(const std::string& name, std::int64_t least, std::int64_t most) const {
  const double number = number_of(name);
  if (!is_integer(number, least, most)) return expected(name, fmt::format("an integer from {} to {}", least, most));
  return static_cast<std::int64_t>(number);
}

Expected<std::vector<std::int64_t>> MemberReader::integers(const std::string& name, std::int64_t least,
                                                           std::int64_t most) const {
  TASO_ASSIGN(const JsonTree::List* trees, list(name, "integers"));
  std::vector<std::int64_t> numbers;
  for (const JsonTree& tree : *trees) {
    const double number = number_in(tree);
    if (!is_integer(number, least, most))
      return wrong(fmt::format("{}[{}]", place_of(name), numbers.size()), tree,
                   fmt::format("expected an integer from {} to {}, found {}", least, most, tree.kind()));
    numbers.push_back(static_cast<std::int64_t>(number));
  }
  return numbers;
}

Expected<double> MemberReader::rate(const std::string& name) const {
  const double number = number_of(name);
  if (!(number >= 1 && number <= most_rate)) return expected(name, fmt::format("a number from 1 to {}", most_rate));
  return number;
}

Expected<double> MemberReader::seconds(const std::string& name) const {
  const double number = number_of(name);
  if (!(number >= 0 && number <= most_latency))
    return expected(name, fmt::format("a number of seconds from 0 to {}", most_latency));
  return number;
}

Expected<double> MemberReader::amount(const std::string& name) const {
  const double number = number_of(name);
  if (!(number >= 0)) return expected(name, "a number from 0 on");
  return number;
}

Expected<DeviceRates> MemberReader::device(const std::string& name) const {
  TASO_ASSIGN(const MemberReader reader,
              open(member(name), place_of(name), file_, {"memory", "flops", "memory_bandwidth"}));
  DeviceRates device;
  TASO_ASSIGN(device.memory, reader.integer("memory", 1, most_memory));
  TASO_ASSIGN(device.flops, reader.rate("flops"));
  TASO_ASSIGN(device.memory_bandwidth, reader.rate("memory_bandwidth"));
  return device;
}

Expected<TimeTable> MemberReader::times(const std::string& name) const {
  const auto wrong = [&] {
    return this->wrong(place_of(name), member(name),
                       fmt::format("expected 1 to {} points [bytes, seconds], of more bytes from one to the next, and "
                                   "not of less seconds",
                                   most_points));
  };
  const auto* list = std::get_if<JsonTree::List>(&member(name).value);
  if (list == nullptr || list->empty() || list->size() > most_points) return wrong();
  std::vector<TimeTable::Point> points;
  for (const JsonTree& tree : *list) {
    const auto* pair = std::get_if<JsonTree::List>(&tree.value);
    if (pair == nullptr || pair->size() != 2) return wrong();
    const TimeTable::Point point{number_in((*pair)[0]), number_in((*pair)[1])};
    const TimeTable::Point before = points.empty() ? TimeTable::Point{} : points.back();
    if (!(point.bytes > before.bytes && point.bytes <= most_rate)) return wrong();
    if (!(point.seconds >= before.seconds && point.seconds <= most_latency)) return wrong();
    points.push_back(point);
  }
  return TimeTable::of(std::move(points));
}

Expected<const JsonTree::List*> MemberReader::list(const std::string& name, const std::string& of) const {
  const auto* list = std::get_if<JsonTree::List>(&member(name).value);
  if (list == nullptr) return expected(name, "a list of " + of);
  return list;
}

Expected<const JsonTree::Object*> MemberReader::object(const std::string& name) const {
  const auto* object = std::get_if<JsonTree::Object>(&member(name).value);
  if (object == nullptr) return expected(name, "an object");
  return object;
}

Error MemberReader::expected(const std::string& name, const std::string& what) const {
  return wrong(place_of(name), member(name), fmt::format("expected {}, found {}", what, member(name).kind()));
}

Error MemberReader::wrong(const std::string& place, const JsonTree& tree, const std::string& message) const {
  return bad_input(place.empty() ? message : place + ": " + message, {file_, tree.line});
}

const JsonTree* MemberReader::find(const std::string& name) const {
  for (const auto& [other, tree] : *object_)
    if (other == name) return &tree;
  return nullptr;
}

double MemberReader::number_of(const std::string& name) const { return number_in(member(name)); }

Expected<MeshAxis> read_mesh_axis(const JsonTree& tree, const std::string& place, const std::string& file,
                                  bool measured) {
  std::vector<std::string> names{"size", "link", "bandwidth", "latency"};
  if (measured) names.emplace_back("times");
  TASO_ASSIGN(const MemberReader reader, MemberReader::open(tree, place, file, names));
  MeshAxis axis;
  TASO_ASSIGN(axis.size, reader.integer("size", 1, most_devices));
  TASO_ASSIGN(axis.link, reader.text("link", longest_known_name));
  TASO_ASSIGN(axis.bandwidth, reader.rate("bandwidth"));
  TASO_ASSIGN(axis.latency, reader.seconds("latency"));
  if (!measured) return axis;
  std::vector<std::string> kinds;
  for (const CollectiveKind& kind : collective_kinds) kinds.emplace_back(kind.name);
  TASO_ASSIGN(const MemberReader times,
              MemberReader::open(reader.member("times"), reader.place_of("times"), file, kinds));
  for (const CollectiveKind& kind : collective_kinds) {
    TASO_ASSIGN(axis.times.*kind.table, times.times(kind.name));
  }
  return axis;
}

}  // namespace taso
