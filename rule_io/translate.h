/// Rule files of the original TASO become substitutions of ours.
///
/// What the format leaves open is read as follows (docs/verification.md lists it for users):
///   - Axes count from the front at a rank that concat and transpose state, convolutions and poolings have (4), and
///     matrix products have where nothing else is said (2). Here they count from the end at that rank.
///   - SAME padding of a convolution whose kernel may have any extents is an attribute variable `pads`, one for all
///     windows of the rule with the same extents and strides: the rule is stated for any padding. Where windows of
///     other extents meet (enlarge, the identity kernel, a window only the target has), it is the padding of stride 1,
///     k - 1 cells, the larger half before; with a larger stride such a rule cannot be told.
///   - Extents of a convolution's kernel are not part of a match, as in TASO's optimizer and verifier.
///   - A split undoes the last concatenation along its axis, as seen through the operators that keep the axis. One in
///     the source whose tensor no concatenation of the rule made takes any sizes.
///   - Constants have the shapes that the tensors they meet require; a kernel that is one belongs to a convolution of
///     one group (identity) or of one channel each (pooling kernel). Average pooling counts the padding.
#pragma once

#include <string>
#include <vector>

#include "graph/pattern.h"
#include "rule_io/rule_collection.h"
#include "support/status.h"

namespace taso::rule_io {

/// A rule of the file: as a substitution, or the reason why it is none.
struct TranslatedRule {
  Substitution rule;    ///< Its name, `taso_000` for the first rule of a file, is always set, and so is `where.file`.
  std::string problem;  ///< Empty, or what in the rule has no counterpart: "source operator 1 (pool2d_max): ...".
};

/// Translates one rule; `name` becomes its name.
[[nodiscard]] TranslatedRule translate(const FileRule& rule, const std::string& name, const std::string& path,
                                       const OperatorCatalog& catalog);

/// Reads and translates a file. bad_input if it is no such file at all.
[[nodiscard]] Expected<std::vector<TranslatedRule>> load_taso_rules(const std::string& path,
                                                                    const OperatorCatalog& catalog);

}  // namespace taso::rule_io
