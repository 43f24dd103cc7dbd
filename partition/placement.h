/// Where the elements of a tensor are: on a mesh, every device holds a box. What moving from one placement to another
/// takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/mesh.h"
#include "partition/operator_piece.h"
#include "partition/scatter.h"

namespace taso {

/// Who holds what of a tensor.
struct Placement {
  std::vector<IndexBox> boxes;  ///< Per device.
  /// Mesh axes, ascending, along which the holders of a box have partial results, which `reducer` combines. Boxes do
  /// not differ along these.
  std::vector<std::size_t> partial;
  std::string reducer;
  auto operator<=>(const Placement&) const = default;
};

/// Payload of communication and its time. Times of steps that follow each other are added; nothing overlaps with
/// computing.
struct Transfer {
  double bytes = 0;  ///< Received, by all devices together.
  double seconds = 0;
  bool possible = true;
  Transfer& operator+=(const Transfer& other) {
    bytes += other.bytes;
    seconds += other.seconds;
    possible = possible && other.possible;
    return *this;
  }
};

/// From `have`, so that every device holds at least its box of `need`: what the schedule of that takes
/// (partition/transfer_schedule.h), to the byte.
///
/// What a device lacks it gets from the nearest owners: along the fastest mesh axis as far as devices there have it,
/// then along the next. Partial results are combined first, along the axes that are partial in `have` and not in
/// `need`: by a reduce-scatter, each device of a group keeping a part of the box along one axis of the tensor, or an
/// all-reduce, which also brings the parts together, whichever leads to less time in all; both inner axes first
/// (hierarchical; Thakur, Rabenseifner and Gropp 2005: p devices take p - 1 steps of the largest of p pieces for each
/// of scatter and gather; where a device keeps several boxes, each is a message). Not possible: partial results of what
/// is not partial, or of another reducer; elements that nobody has.
[[nodiscard]] Transfer transfer(const Placement& have, const Placement& need, std::int64_t element_bytes,
                                const Mesh& mesh);

/// The same from one placement to many: what does not depend on the other one is found out once. Not thread-safe.
class TransferSource {
 public:
  /// All are referred to, and stay as they are.
  TransferSource(const Placement& have, std::int64_t element_bytes, const Mesh& mesh);
  ~TransferSource();
  TransferSource(const TransferSource&) = delete;
  TransferSource& operator=(const TransferSource&) = delete;
  [[nodiscard]] Transfer to(const Placement& need);
  /// How partial results are combined on that way, which is the fastest; nothing where it is not possible.
  [[nodiscard]] std::optional<Reduction> reduction_to(const Placement& need);

 private:
  class Held;
  struct Reduced;
  struct Way {
    Transfer transfer;
    const Reduction* reduction = nullptr;  ///< None where there is nothing to combine.
  };
  [[nodiscard]] Way best_to(const Placement& need);
  [[nodiscard]] Reduced& reduced_along(const std::vector<std::size_t>& axes);
  const Placement& have_;
  std::int64_t element_bytes_;
  const Mesh& mesh_;
  std::unique_ptr<Held> held_;
  std::map<std::vector<std::size_t>, std::unique_ptr<Reduced>> reduced_;  ///< By the axes along which is reduced.
};

/// Whether all elements of a tensor are somewhere.
[[nodiscard]] bool covers(const Placement& placement, const Shape& shape);

/// All devices hold everything.
[[nodiscard]] Placement everywhere(const Shape& shape, const Mesh& mesh);

/// The first device holds everything, the others nothing; a tensor without axes is everywhere.
[[nodiscard]] Placement on_first(const Shape& shape, const Mesh& mesh);

}  // namespace taso
