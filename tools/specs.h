/// What the programs read from folders of specifications: the one that is shipped (--specs) and those that a user adds
/// (--add-specs), each with operators/*.op, onnx/*.map, axioms/*.axioms, rules/*.rules and profiles/*.profile as it has
/// them; strategies/*.rules and devices/*.json, too.
#pragma once

#include <string>
#include <vector>

#include "operators/registry.h"
#include "support/status.h"
#include "tools/common.h"

namespace taso::tools {

/// The operators of all folders, and the maps of nodes onto them. An added folder may use, and not redefine, operators
/// that stand before it; its maps are tried before those of the folders before it.
[[nodiscard]] Expected<OperatorRegistry> load_operators(const CommonOptions& options);

/// The axiom files of all folders, in order; those of one folder in name order.
[[nodiscard]] Expected<std::vector<std::string>> axiom_files(const CommonOptions& options);

/// The rules that are used where none are named: rules/default.rules, then those of the added folders.
[[nodiscard]] Expected<std::vector<std::string>> rule_files(const CommonOptions& options);

/// Rules that are used whatever rules are named: simplify_rules/*.rules of all folders that have some, in order.
[[nodiscard]] Expected<std::vector<std::string>> simplify_rule_files(const CommonOptions& options);

/// Rules for the runtimes of others: those that write an operator in another form, target_rules/default.rules of all
/// folders, in order, and the DOMAIN.rules of each of these domains, whose operators the runtime is known to have; and
/// those that undo merging, plan_rules/cutting.rules.
[[nodiscard]] std::vector<std::string> target_rule_files(const CommonOptions& options,
                                                         const std::vector<std::string>& domains);

/// Rules that take apart, for plans for several devices: plan_rules/*.rules of all folders, in order.
[[nodiscard]] Expected<std::vector<std::string>> plan_rule_files(const CommonOptions& options);

/// Strategies that are proved: strategies/*.rules of all folders, in order; those of one folder in name order.
[[nodiscard]] Expected<std::vector<std::string>> strategy_files(const CommonOptions& options);

/// Shipped costs of devices: costs/*.costs of the added folders, the last one first, then of the specifications; none
/// where no folder has any.
[[nodiscard]] Expected<std::vector<std::string>> cost_files(const CommonOptions& options);

/// The file of a profile: NAME stands for profiles/NAME.profile of the last folder that has it; anything with a slash
/// or a dot is a file.
[[nodiscard]] std::string profile_file(const CommonOptions& options, const std::string& profile);

/// The files of a folder, and of those in it, with one of the given extensions, in name order.
[[nodiscard]] Expected<std::vector<std::string>> files_in(const std::string& folder,
                                                          const std::vector<std::string>& extensions);

}  // namespace taso::tools
