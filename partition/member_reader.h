/// Objects of JSON files that people write, read member by member: what is wrong is said with file, line and place.
/// Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/json_tree.h"
#include "partition/mesh.h"
#include "support/status.h"

namespace taso {

/// Reads the members of one object. All errors are bad_input, "FILE:LINE: PLACE: expected ..., found ...".
class MemberReader {
 public:
  /// The object stands at `place`, as "levels[1]"; "" is the whole file. It must have the members `names`, and no
  /// others but `optional` ones. The tree is referred to.
  [[nodiscard]] static Expected<MemberReader> open(const JsonTree& tree, const std::string& place,
                                                   const std::string& file, const std::vector<std::string>& names,
                                                   const std::vector<std::string>& optional = {});

  /// A member that is there (TASO_CHECK).
  [[nodiscard]] const JsonTree& member(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return find(name) != nullptr; }
  [[nodiscard]] bool is_null(const std::string& name) const;
  /// "levels[1].size".
  [[nodiscard]] std::string place_of(const std::string& name) const;
  [[nodiscard]] const std::string& file() const { return file_; }

  /// A text of one line that is not empty.
  [[nodiscard]] Expected<std::string> text(const std::string& name, std::size_t longest) const;
  /// Any text.
  [[nodiscard]] Expected<std::string> any_text(const std::string& name) const;
  /// One of some words.
  [[nodiscard]] Expected<std::string> word(const std::string& name, const std::vector<std::string>& words) const;
  [[nodiscard]] Expected<bool> truth(const std::string& name) const;
  /// An integer from `least` to `most`, which are less than 2^53; 8e9 is one, too.
  [[nodiscard]] Expected<std::int64_t> integer(const std::string& name, std::int64_t least, std::int64_t most) const;
  [[nodiscard]] Expected<std::vector<std::int64_t>> integers(const std::string& name, std::int64_t least,
                                                             std::int64_t most) const;
  /// Bytes per second, or operations.
  [[nodiscard]] Expected<double> rate(const std::string& name) const;
  /// Of a latency.
  [[nodiscard]] Expected<double> seconds(const std::string& name) const;
  /// A number from 0 on.
  [[nodiscard]] Expected<double> amount(const std::string& name) const;
  /// An object with the rates of a device.
  [[nodiscard]] Expected<DeviceRates> device(const std::string& name) const;
  /// A list of points [bytes, seconds].
  [[nodiscard]] Expected<TimeTable> times(const std::string& name) const;
  /// A list of `of`.
  [[nodiscard]] Expected<const JsonTree::List*> list(const std::string& name, const std::string& of) const;
  /// An object whose members have any names.
  [[nodiscard]] Expected<const JsonTree::Object*> object(const std::string& name) const;

  /// The error that something else was expected as this member's value.
  [[nodiscard]] Error expected(const std::string& name, const std::string& what) const;
  [[nodiscard]] Error wrong(const std::string& place, const JsonTree& tree, const std::string& message) const;

 private:
  MemberReader(const JsonTree::Object* object, std::string place, std::string file)
      : object_(object), place_(std::move(place)), file_(std::move(file)) {}
  [[nodiscard]] const JsonTree* find(const std::string& name) const;
  [[nodiscard]] double number_of(const std::string& name) const;

  const JsonTree::Object* object_;
  std::string place_, file_;
};

/// An axis of a mesh, or a level of a topology: `size`, `link`, `bandwidth`, `latency`; with `measured`, `times`.
[[nodiscard]] Expected<MeshAxis> read_mesh_axis(const JsonTree& tree, const std::string& place, const std::string& file,
                                                bool measured = false);

}  // namespace taso
