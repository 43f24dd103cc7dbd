/// How much of a user's model stands in a graph of operators that are understood, and why the rest does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace taso {

/// Nodes of one operator of the user's file that are carried for one reason of their own. A node that is carried only
/// because types or numbers that it reads are not known stands behind those that do not make them known.
struct CarriedCause {
  std::string op;            ///< As the file has it: "LSTM", "com.acme::Silu".
  std::string cause;         ///< In words: "the operator is not modelled".
  std::string node;          ///< The first of the nodes, as messages name it: `node "rnn" (LSTM)`.
  std::string help;          ///< What would help, in words.
  std::int64_t nodes = 0;    ///< Nodes that have this cause.
  std::int64_t behind = 0;   ///< Nodes that stand behind one of them. A node behind several causes counts for each.
  std::int64_t blocked = 0;  ///< Of these, the nodes that stand behind no other cause.
};

/// What is computed at run time by nodes of the user's file: what depends on constants alone is left out.
struct Coverage {
  std::int64_t understood = 0;          ///< Nodes that stand in the graph as operators.
  std::int64_t carried = 0;             ///< Nodes that are carried as they are.
  std::int64_t behind = 0;              ///< Of these, the nodes that are carried for no reason of their own.
  double understood_flops = 0;          ///< Scalar operations, as Work counts them.
  std::optional<double> carried_flops;  ///< An estimate; nothing where types or meaning of a carried node are unknown.
  /// Those with the most nodes behind them first, then those of the most nodes, then by operator and cause.
  std::vector<CarriedCause> causes;

  /// Whether open_share() is one of arithmetic: that of carried nodes is known, and there is some.
  [[nodiscard]] bool counts_flops() const;
  /// The part of the model that rules can rewrite, in [0, 1]: of its arithmetic if counts_flops(), else of its nodes.
  /// 1 where nothing is carried.
  [[nodiscard]] double open_share() const;
};

/// "3.1 % of the model's arithmetic", or "3.1 % of the model's nodes".
[[nodiscard]] std::string open_share_text(const Coverage& coverage);
/// "2 x LSTM, 40 nodes behind: the operator is not modelled; helps: ...".
[[nodiscard]] std::string to_string(const CarriedCause& cause);
/// The lines of the first `limit` causes, and how many more there are, each ended. Empty if there is no cause.
[[nodiscard]] std::string causes_text(const Coverage& coverage, std::size_t limit);
/// Where less than half of the model is open: one line that says so, and names the first cause and what would help.
/// Else empty.
[[nodiscard]] std::string coverage_warning(const Coverage& coverage);

}  // namespace taso
