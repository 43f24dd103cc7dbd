#include "tools/verify_axioms.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "support/text_output.h"
#include "verifier/axiom_report.h"
#include "verifier/exhaustive.h"
#include "verifier/verify.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

/// Everything that is found out about one statement.
struct Found {
  ExhaustiveOutcome validation;
  double seconds = 0;  ///< Processor time of the validation.
  std::optional<AxiomUse> use;
  std::optional<IllTypedUse> ill_typed;
  bool recorded = false;  // has its shapes on record (axioms)
  std::optional<bool> redundant;
};

/// Processor time of this thread so far.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Runs `task` for every number below `count` on some threads, each with its own state; stops on Ctrl-C.
template <class MakeState, class Task>
void in_parallel(std::size_t count, int wanted, const MakeState& make_state, const Task& task) {
  std::atomic<std::size_t> next = 0;
  auto work = [&] {
    auto state = make_state();
    for (std::size_t i = next++; i < count && !interrupted(); i = next++) task(i, state);
  };
  const std::size_t threads_wanted =
      wanted > 0 ? static_cast<std::size_t>(wanted) : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t < std::min(threads_wanted, count); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

const char* verdict(const ExhaustiveOutcome& outcome) {
  switch (outcome.kind) {
    case BoundedOutcome::Kind::agrees:
      return "valid";
    case BoundedOutcome::Kind::differs:
      return "refuted";
    case BoundedOutcome::Kind::forms_differ:
    case BoundedOutcome::Kind::vacuous:
    case BoundedOutcome::Kind::undecided:
      return "unknown";
  }
  return "?";
}

std::string complaint(const IllTypedUse& use) {
  return fmt::format("{} at output {} it makes a term that is not well-typed at {}: its record is wrong, make it anew",
                     use.left_to_right ? "from left to right" : "from right to left", use.output, use.types);
}

std::string line(const Substitution& statement, const Found& found, bool times) {
  const ExhaustiveOutcome& outcome = found.validation;
  std::string text = fmt::format("{:8} {:32} {:8} instances, {}", verdict(outcome), statement.name, outcome.obligations,
                                 outcome.complete ? "complete" : "part");
  if (found.use) {
    text += found.use->left_to_right && found.use->right_to_left ? ", both directions"
            : found.use->left_to_right                           ? ", left to right"
            : found.use->right_to_left                           ? ", right to left"
                                                                 : ", no direction";
  }
  if (found.redundant) text += *found.redundant ? ", follows from the others" : "";
  if (found.use && !found.recorded) text += ", shapes not recorded";
  if (times) text += fmt::format(", {:.2f} s", found.seconds);
  text += "\n";
  if (found.ill_typed) text += "    " + complaint(*found.ill_typed) + "\n";
  if (!outcome.reason.empty()) text += "    " + outcome.reason + "\n";
  if (outcome.counterexample) {
    std::string indented = "    ";
    for (const char c : outcome.counterexample->text) indented += c == '\n' ? std::string("\n    ") : std::string(1, c);
    while (!indented.empty() && (indented.back() == ' ' || indented.back() == '\n')) indented.pop_back();
    text += indented + "\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const Substitution& statement, const Found& found) {
  const ExhaustiveOutcome& outcome = found.validation;
  nlohmann::ordered_json json;
  json["name"] = statement.name;
  json["validation"] = verdict(outcome);
  json["instances"] = outcome.obligations;
  json["complete"] = outcome.complete;
  if (!outcome.complete) json["estimate"] = outcome.estimate;
  json["at_field_points"] = outcome.by_field;
  json["by_polynomials"] = outcome.by_polynomials;
  json["also_by_polynomials"] = outcome.cross_checked;
  json["also_by_z3"] = outcome.smt_checked;
  json["z3_unknown"] = outcome.smt_unknown;
  json["reason"] = outcome.reason;
  json["counterexample"] = nullptr;
  if (outcome.counterexample) json["counterexample"] = outcome.counterexample->text;
  if (found.use) {
    json["left_to_right"] = found.use->left_to_right;
    json["right_to_left"] = found.use->right_to_left;
  }
  if (found.use) {
    json["shapes_recorded"] = found.recorded;
    json["ill_typed_use"] = nullptr;
    if (found.ill_typed) json["ill_typed_use"] = complaint(*found.ill_typed);
  }
  if (found.redundant) json["follows_from_others"] = *found.redundant;
  return json;
}

/// Whether a statement is false because its sides may have different types. A derivation speaks of instances at which
/// these agree, where the statement may well be true.
bool differs_in_types(const OperatorRegistry& registry, const Substitution& falsehood) {
  VerifierOptions options;
  options.axioms = false;
  const Verdict verdict = Verifier(registry, {}, options).verify(falsehood);
  return verdict.counterexample && verdict.counterexample->of_types();
}

}  // namespace

Expected<int> run_axiom_modes(const OperatorRegistry& registry, const std::vector<Substitution>& statements,
                              const std::vector<Substitution>& axioms, const CommonOptions& common,
                              const AxiomArguments& arguments) {
  std::vector<Substitution> falsehoods;
  if (!arguments.falsehoods.empty()) {
    TASO_ASSIGN(falsehoods, load_rules(arguments.falsehoods, registry));
  }
  ExhaustiveOptions options;
  options.domain.bound = options.domain.composite = arguments.bound;
  options.seed = common.seed;
  options.max_obligations = arguments.obligations;
  std::map<std::string, std::size_t> axiom_numbers;
  for (std::size_t i = 0; i < axioms.size(); ++i) axiom_numbers.emplace(axioms[i].name, i);

  const std::size_t total = statements.size();
  std::vector<Found> found(total);
  std::atomic<std::size_t> done = 0;
  std::mutex mutex;
  ProgressLine progress(common.quiet);
  LoweredCache cache(registry);
  in_parallel(
      total, common.threads, [] { return 0; },
      [&](std::size_t i, int&) {
        const double start = thread_seconds();
        found[i].validation = validate_exhaustively(registry, statements[i], cache, options);
        found[i].seconds = thread_seconds() - start;
        const std::lock_guard lock(mutex);
        progress.show(fmt::format("validated {} of {}: {}", ++done, total, statements[i].name));
      });
  const double cpu_seconds = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  std::vector<std::string> derived;
  if (arguments.report && !interrupted()) {
    struct Checks {
      Checks(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit)
          : redundancy(registry, axioms, rlimit), consistency(registry, axioms, rlimit) {}
      RedundancyCheck redundancy;
      ConsistencyCheck consistency;
    };
    ShapeFactsTable shapes(registry);
    // Statements, then axioms, then falsehoods; what was derived from the latter two in their order.
    const std::size_t asked = total + axioms.size() + falsehoods.size();
    std::vector<std::optional<std::string>> follows(asked);
    done = 0;
    in_parallel(
        asked, common.threads, [&] { return std::make_unique<Checks>(registry, axioms, arguments.rlimit); },
        [&](std::size_t task, std::unique_ptr<Checks>& checks) {
          std::string what;
          if (task < total) {
            const Substitution& statement = statements[task];
            what = statement.name;
            if (statement.is_axiom) {
              found[task].use = usable_directions(statement);
              found[task].recorded = shapes.recorded(statement).has_value();
              found[task].ill_typed = unguarded_use(registry, statement, shapes.of(statement), cache);
              const auto number = axiom_numbers.find(statement.name);
              if (number != axiom_numbers.end()) found[task].redundant = checks->redundancy.follows(number->second);
            }
          } else if (task < total + axioms.size()) {
            what = "x = y with " + axioms[task - total].name;
            follows[task] = checks->consistency.collapse(task - total);
          } else {
            const Substitution& falsehood = falsehoods[task - total - axioms.size()];
            what = falsehood.name;
            if (checks->consistency.entails(falsehood) && !differs_in_types(registry, falsehood))
              follows[task] = falsehood.name;
          }
          const std::lock_guard lock(mutex);
          progress.show(fmt::format("reported {} of {}: {}", ++done, asked, what));
        });
    for (const std::optional<std::string>& name : follows)
      if (name) derived.push_back(*name);
  }
  progress.clear();
  if (interrupted()) return Error{ErrorCode::interrupted, "interrupted; nothing was reported", {}};

  ExhaustiveOutcome sums;
  std::size_t wrong = 0, complete = 0, redundant = 0;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < total; ++i) {
    const ExhaustiveOutcome& outcome = found[i].validation;
    sums.obligations += outcome.obligations;
    sums.by_field += outcome.by_field;
    sums.by_polynomials += outcome.by_polynomials;
    sums.cross_checked += outcome.cross_checked;
    sums.smt_checked += outcome.smt_checked;
    sums.smt_unknown += outcome.smt_unknown;
    complete += outcome.complete ? 1 : 0;
    redundant += found[i].redundant.value_or(false) ? 1 : 0;
    const bool expected_refuted = statements[i].expect && *statements[i].expect == "refuted";
    const bool fine = outcome.kind == (expected_refuted ? BoundedOutcome::Kind::differs : BoundedOutcome::Kind::agrees);
    wrong += fine && !found[i].ill_typed ? 0 : 1;
    list.push_back(to_json(statements[i], found[i]));
    if (common.json != "-" && !(fine && common.quiet))
      std::fputs(line(statements[i], found[i], common.verbosity > 0).c_str(), stdout);
  }
  std::string summary = fmt::format(
      "{} statements, {} with all instances of the domain: {} obligations, {} decided at points of GF(2^61-1) ({} of "
      "them again by canonical polynomials), {} by canonical polynomials alone; {} again by Z3 ({} without an "
      "answer)\n",
      total, complete, sums.obligations, sums.by_field, sums.cross_checked, sums.by_polynomials, sums.smt_checked,
      sums.smt_unknown);
  if (arguments.report) {
    summary += fmt::format(
        "{} axioms follow from the others; {} x = y among the terms of {} axioms {} one of {} falsehoods{}\n",
        redundant, derived.empty() ? "nothing false does: neither" : "something FALSE follows:", axioms.size(),
        derived.empty() ? "nor" : "or", falsehoods.size(), derived.empty() ? "" : ":");
    for (const std::string& name : derived) summary += "    follows: " + name + "\n";
    wrong += derived.size();
  }
  if (common.json != "-" && !common.quiet) {
    std::fputs(summary.c_str(), stdout);
    if (common.verbosity > 0) std::fputs(fmt::format("{:.1f} s of processor time\n", cpu_seconds).c_str(), stdout);
  }
  if (!common.json.empty()) {
    nlohmann::ordered_json json;
    json["statements"] = std::move(list);
    json["obligations"] = sums.obligations;
    json["at_field_points"] = sums.by_field;
    json["by_polynomials"] = sums.by_polynomials;
    json["also_by_polynomials"] = sums.cross_checked;
    json["also_by_z3"] = sums.smt_checked;
    json["z3_unknown"] = sums.smt_unknown;
    json["bound"] = arguments.bound;
    json["seed"] = common.seed;
    if (arguments.report) {
      json["consistency"] = {
          {"terms_of_axioms", axioms.size()}, {"falsehoods", falsehoods.size()}, {"derived", derived}};
    }
    TASO_RETURN_IF_ERROR(write_text(common.json, json.dump(2) + "\n"));
  }
  return wrong == 0 ? 0 : static_cast<int>(ErrorCode::not_proved);
}

Expected<int> record_shape_facts(const OperatorRegistry& registry, const std::vector<Substitution>& statements,
                                 const CommonOptions& common) {
  std::vector<const Substitution*> axioms;
  for (const Substitution& statement : statements)
    if (statement.is_axiom && fs::path(statement.where.file).extension() == ".axioms") axioms.push_back(&statement);
  if (axioms.empty()) return Error{ErrorCode::usage, "--record-facts takes axiom files, or folders of them", {}};
  ShapeFactsTable table(registry);
  std::vector<std::string> lines(axioms.size());
  std::atomic<std::size_t> done = 0;
  std::mutex mutex;
  ProgressLine progress(common.quiet);
  in_parallel(
      axioms.size(), common.threads, [] { return 0; },
      [&](std::size_t i, int&) {
        lines[i] = table.line(*axioms[i], table.examine(*axioms[i]));
        const std::lock_guard lock(mutex);
        progress.show(fmt::format("examined {} of {}: {}", ++done, axioms.size(), axioms[i]->name));
      });
  progress.clear();
  if (interrupted()) return Error{ErrorCode::interrupted, "interrupted; nothing was written", {}};
  std::map<std::string, std::string> texts;  // by file
  std::size_t changed = 0;
  for (std::size_t i = 0; i < axioms.size(); ++i) {
    std::string& text = texts[shape_facts_file(axioms[i]->where.file)];
    if (text.empty())
      text =
          "# What instances say of the shapes of these axioms. Written by taso-verify --record-facts; see\n"
          "# docs/verification.md.\n";
    text += lines[i] + "\n";
    changed += lines[i] == axioms[i]->facts ? 0 : 1;
  }
  for (const auto& [file, text] : texts) TASO_RETURN_IF_ERROR(write_file_atomically(file, text));
  if (!common.quiet)
    std::fputs(fmt::format("{} axioms recorded, {} of them new or changed\n", axioms.size(), changed).c_str(), stdout);
  return 0;
}

}  // namespace taso::tools
