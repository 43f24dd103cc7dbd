/// Measured times of communication, by payload.
#pragma once

#include <string>
#include <vector>

namespace taso {

/// Seconds by bytes: a line from each measured size to the next. Above the largest size the last line goes on; below
/// the smallest one takes as long as that, which is what an empty message takes. Never falls.
class TimeTable {
 public:
  struct Point {
    double bytes = 0, seconds = 0;
    auto operator<=>(const Point&) const = default;
  };

  /// Nothing is measured.
  TimeTable() = default;
  /// Of measured points in any order, of different sizes. Where a larger size took less time than a smaller one, which
  /// is noise, both get their mean: the least squares among what does not fall (pool adjacent violators; Ayer et al.
  /// 1955).
  [[nodiscard]] static TimeTable of(std::vector<Point> measured);

  [[nodiscard]] bool empty() const { return points_.empty(); }
  /// By size; seconds do not fall.
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }
  /// There are points (TASO_CHECK).
  [[nodiscard]] double seconds(double bytes) const;
  bool operator==(const TimeTable&) const = default;

 private:
  std::vector<Point> points_;
};

/// What communication among the devices of a group takes, as ranks carry it out: with cutting out what is sent, putting
/// together what is received, and adding, while all groups do the same.
struct CollectiveTimes {
  /// Everybody gets a piece of the sum of what all have, by direct exchange; by the bytes of a piece.
  TimeTable reduce_scatter;
  /// Everybody gets what the others have; by the bytes that a device receives. What it has itself is not copied.
  TimeTable all_gather;
  /// The same, of boxes that are no ranges of bytes, neither where they are cut out nor where they arrive.
  TimeTable all_to_all;
  /// Everybody gets what the next one has; by bytes.
  TimeTable neighbor;
  /// The part of that which the sender takes; the other is the receiver's.
  TimeTable send;

  [[nodiscard]] bool measured() const { return !all_gather.empty(); }
  bool operator==(const CollectiveTimes&) const = default;
};

/// The kinds of tables: their names in files and databases, and where they are.
struct CollectiveKind {
  const char* name;
  TimeTable CollectiveTimes::*table;
};
inline constexpr CollectiveKind collective_kinds[] = {{"reduce_scatter", &CollectiveTimes::reduce_scatter},
                                                      {"all_gather", &CollectiveTimes::all_gather},
                                                      {"all_to_all", &CollectiveTimes::all_to_all},
                                                      {"neighbor", &CollectiveTimes::neighbor},
                                                      {"send", &CollectiveTimes::send}};

}  // namespace taso
