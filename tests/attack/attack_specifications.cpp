// The attack on specifications: files with false facts, laws, domains and axioms, and whether one is believed.
//
//   attack_specifications [--seed S] [--first I] [--count N] [--kind functions|operators|axioms|bytes]...
//                         [--without-trials] [--expect-falsehood] [--quiet] [--programs N]
//
// Mutant number i depends on the seed and i alone. It is of one of four kinds, in turn:
//
//   functions  a scalar function, its body, facts, domain and laws (specification_mutator.h). What the loader
//              accepts is judged at far more numbers than it tries (specification_judge.h).
//   operators  an operator, its laws, requirements, attributes, sizes and elements. What is loaded, its laws proved, is
//              judged by evaluating the laws at random shapes (rule_judge.h).
//   axioms     a true axiom made false, as one of an added folder. One that is believed must be true.
//   bytes      bytes of any of these. A refusal is one line that names a place; what is accepted is read to its end.
//
// Of what is accepted, rules that would follow are given to the verifier, and those that are proved are judged by
// evaluation. A falsehood that is believed is a finding, printed as the smallest file that still is one, with a rule
// that is proved and false, where there is one. --without-trials is the control, which must find something: all that
// is declared is believed. --programs N gives the first N refused mutants to taso-verify as well: exit code 3 and one
// line.
//
// Exit code: 0 nothing false is believed; 1 something is (with --expect-falsehood 0 where something is of every kind,
// and the attack ends there); 2 wrong command line or set-up.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/file.h"
#include "tests/attack/common.h"
#include "tests/attack/rule_judge.h"
#include "tests/attack/rule_mutator.h"
#include "tests/attack/specification_judge.h"
#include "tests/attack/specification_mutator.h"
#include "verifier/declarations.h"
#include "verifier/verify.h"

namespace taso::testing {
namespace {

namespace fs = std::filesystem;

enum Kind : std::size_t { functions, operators, axioms, bytes };
constexpr std::array<const char*, 4> kind_names = {"functions", "operators", "axioms", "bytes"};

// Of the mutants of functions and operators that are accepted and judged true: one of so many has its consequences
// proved.
constexpr std::uint64_t consequences_of = 4;
constexpr std::size_t max_shrinking = 60;
constexpr std::size_t judged_numbers = 1500;

struct Arguments {
  std::uint64_t seed = 1, first = 0, count = 400, programs = 0;
  std::vector<std::size_t> kinds;
  bool without_trials = false, expect_falsehood = false, quiet = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string { return ++i == argc ? "" : argv[i]; };
    if (option == "--seed") {
      arguments.seed = number_argument(option, value());
    } else if (option == "--first") {
      arguments.first = number_argument(option, value());
    } else if (option == "--count") {
      arguments.count = number_argument(option, value());
    } else if (option == "--programs") {
      arguments.programs = number_argument(option, value());
    } else if (option == "--kind") {
      const auto* const name = std::find(kind_names.begin(), kind_names.end(), value());
      if (name == kind_names.end()) stop("--kind wants functions, operators, axioms or bytes");
      arguments.kinds.push_back(static_cast<std::size_t>(name - kind_names.begin()));
    } else if (option == "--without-trials") {
      arguments.without_trials = true;
    } else if (option == "--expect-falsehood") {
      arguments.expect_falsehood = true;
    } else if (option == "--quiet") {
      arguments.quiet = true;
    } else {
      stop("unknown option " + option);
    }
  }
  if (arguments.kinds.empty()) arguments.kinds = {functions, operators, axioms, bytes};
  return arguments;
}

struct Counts {
  std::size_t made = 0, refused = 0, accepted = 0, proved = 0, findings = 0;
};

// A rule that would follow from what is declared, with operators of its own.
struct Consequence {
  std::string operators, rule;
};

// Operators made of a function, and what its facts and laws say of them.
std::vector<Consequence> consequences(const FunctionDefinition& function, const std::vector<std::string>& law_texts) {
  const std::string two = function.arity == 2 ? ", y[D..]" : "",
                    read = function.arity == 2 ? "x[I..], y[I..]" : "x[I..]";
  const auto op = [](const std::string& name, const std::string& inputs, const std::string& body) {
    return fmt::format("operator {}({}) -> [D..]\n  out[I..] = {}\n", name, inputs, body);
  };
  const std::string f = op("f_", "x[D..]" + two, function.name + "(" + read + ")");
  const std::string args = function.arity == 2 ? "(x, y)" : "(x)";
  std::vector<Consequence> result = {
      {f + op("positive_part", "x[D..]", "max(x[I..], 0)"), "positive_part(f_" + args + ") => f_" + args},
      {f + op("size", "x[D..]", "max(x[I..], -x[I..])"), "size_(f_" + args + ") => f_" + args},
      {f, "mul(z, f_" + args + ") => div(mul(mul(z, f_" + args + "), f_" + args + "), f_" + args + ")"},
      {f, "f_" + args + " => mul(f_" + args + ", div(x, x))"},
  };
  result[1].operators.replace(result[1].operators.find("operator size("), 14, "operator size_(");
  if (function.arity == 1) {
    result.push_back({f, "f_(f_(x)) => f_(x)"});
    result.push_back({f, "f_(reduce_max(x; axes=[-1])) => reduce_max(f_(x); axes=[-1])"});
    result.push_back({f, "f_(sub(x, x)) => sub(x, x)"});
    result.push_back({f, "f_(pad(x; before=[1], after=[0])) => pad(f_(x); before=[1], after=[0])"});
  }
  for (std::size_t i = 0; i < function.laws.size() && i < law_texts.size(); ++i) {
    const FunctionLaw& law = function.laws[i];
    if (law.variables.empty() || law.variables.size() > 3) continue;
    const std::size_t begin = law_texts[i].find("law ") + 4, equals = law_texts[i].find(" = ", begin);
    const std::size_t where = law_texts[i].find(" where ");
    std::string inputs, arguments, conditions;
    for (const std::string& variable : law.variables) {
      inputs += (inputs.empty() ? "" : ", ") + variable + "[D..]";
      arguments += (arguments.empty() ? "" : ", ") + variable;
    }
    bool sayable = equals != std::string::npos;
    for (const FunctionLaw::Condition& condition : law.conditions) {
      using Relation = FunctionLaw::Condition::Relation;
      const char* const words = condition.relation == Relation::positive      ? "positive"
                                : condition.relation == Relation::nonnegative ? "nonnegative"
                                : condition.relation == Relation::nonzero     ? "nonzero"
                                                                              : nullptr;
      sayable = sayable && words != nullptr;
      if (sayable)
        conditions +=
            fmt::format("{}{}({})", conditions.empty() ? " if " : ", ", words, law.variables[condition.variable]);
    }
    if (!sayable) continue;
    // Variables become reads of elements.
    const auto body = [&](std::string text) {
      std::string read_text;
      for (std::size_t c = 0; c < text.size(); ++c) {
        const auto is_word = [&](std::size_t at) {
          return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
        };
        read_text += text[c];
        if (is_word(c) && !is_word(c + 1) && (c == 0 || !is_word(c - 1)) &&
            std::find(law.variables.begin(), law.variables.end(), std::string(1, text[c])) != law.variables.end())
          read_text += "[I..]";
      }
      return read_text;
    };
    const std::string left = law_texts[i].substr(begin, equals - begin);
    const std::string right = law_texts[i].substr(equals + 3, where == std::string::npos ? where : where - equals - 3);
    result.push_back({op("left", inputs, body(left)) + op("right", inputs, body(right)),
                      fmt::format("left({}) => right({}){}", arguments, arguments, conditions)});
  }
  return result;
}

class Attack {
 public:
  explicit Attack(Arguments arguments) : arguments_(std::move(arguments)) {
    const std::string source = TASO_SOURCE_DIR, own = source + "/tests/attack/specifications/";
    SpecificationPool function_pool, operator_pool, shipped_pool;
    function_pool.add(must(read_file(source + "/specs/operators/functions.op")));
    std::erase_if(function_pool.definitions, [](const auto& d) { return d.lines[0].rfind("function ", 0) != 0; });
    const std::string own_functions = must(read_file(own + "functions.op"));
    function_pool.add(own_functions);
    operator_pool.add(must(read_file(own + "operators.op")));
    for (const char* file : {"elementwise.op", "reduce.op", "shape.op"})
      shipped_pool.add(must(read_file(source + "/specs/operators/" + file)));
    std::string arithmetic;
    for (const char* name : {"add", "sub", "mul", "div", "neg", "reduce_max", "pad"})
      arithmetic += shipped_pool.find(name)->text();
    arithmetic_ = must(OperatorRegistry::parse(arithmetic, "arithmetic.op"));
    shipped_ = must(OperatorRegistry::load(source + "/specs/operators"));
    with_functions_ = must(OperatorRegistry::parse(own_functions, "functions.op", &shipped_));
    own_ = must(OperatorRegistry::parse(must(read_file(own + "operators.op")), "operators.op", &with_functions_));
    must(prove_declared_laws(own_, with_functions_));
    shipped_axioms_ = must(load_axioms(source + "/specs/axioms", shipped_));
    std::vector<Substitution> seeds = must(load_axioms(own + "own.axioms", own_));
    const BelievedAxioms believed = proved_axioms(own_, seeds);
    if (!believed.not_proved.empty()) stop(believed.not_proved[0].why.to_string());
    seeds.insert(seeds.end(), seeds.begin(), seeds.end());
    seeds.insert(seeds.end(), shipped_axioms_.begin(), shipped_axioms_.end());
    mutator_.emplace(std::move(function_pool), std::move(operator_pool));
    rule_mutator_.emplace(own_, std::move(seeds));
    alone_.axioms = alone_.bounded = false;
  }

  int run() {
    const std::size_t kinds = arguments_.kinds.size();
    for (std::uint64_t i = arguments_.first; i < arguments_.first + arguments_.count; ++i) {
      if (arguments_.expect_falsehood && of_every_kind()) break;
      const std::size_t kind = arguments_.kinds[i % kinds];
      number_ = i / kinds;
      ++counts_[kind].made;
      switch (kind) {
        case functions:
          attack_function();
          break;
        case operators:
          attack_operator();
          break;
        case axioms:
          attack_axiom();
          break;
        default:
          attack_bytes();
      }
      if (!arguments_.quiet && (i + 1) % 2000 == 0)
        std::fprintf(stderr, "%llu mutants\n", static_cast<unsigned long long>(i + 1));
    }
    std::size_t findings = 0;
    for (const std::size_t kind : {functions, operators, axioms, bytes}) {
      const Counts& counts = counts_[kind];
      findings += counts.findings;
      if (counts.made > 0)
        std::printf("%-10s %6zu mutants: %6zu refused, %6zu accepted; %6zu consequences proved; %zu false\n",
                    kind_names[kind], counts.made, counts.refused, counts.accepted, counts.proved, counts.findings);
    }
    return (arguments_.expect_falsehood ? of_every_kind() : findings == 0) ? 0 : 1;
  }

 private:
  [[nodiscard]] bool of_every_kind() const {
    return std::all_of(arguments_.kinds.begin(), arguments_.kinds.end(),
                       [&](std::size_t kind) { return counts_[kind].findings > 0; });
  }

  [[nodiscard]] Trials trials() const { return arguments_.without_trials ? Trials::omitted : Trials::made; }

  void finding(Kind kind, const std::string& text, const std::string& why) {
    ++counts_[kind].findings;
    if (!arguments_.quiet)
      std::printf("BELIEVED AND FALSE (%s %llu)\n%s%s\n\n", kind_names[kind], static_cast<unsigned long long>(number_),
                  text.c_str(), why.c_str());
    std::fflush(stdout);
  }

  // A refusal says in one line what is wrong, and where.
  void refused(Kind kind, const std::string& text, const Error& error) {
    ++counts_[kind].refused;
    const bool one_line = !error.message.empty() && error.message.find('\n') == std::string::npos;
    if (error.code != ErrorCode::bad_input || !one_line || error.where.file.empty() || error.where.line <= 0)
      finding(kind, text, "the refusal is no line with a place: " + error.to_string());
    if (arguments_.programs == 0 || text.rfind("rule ", 0) == 0 || text.rfind("axiom ", 0) == 0) return;
    --arguments_.programs;
    refused_by_program(kind, text);
  }

  // The same by the program: the mutant stands in an added folder, or takes the place of the shipped functions.
  void refused_by_program(Kind kind, const std::string& text) {
    const fs::path folder = fs::temp_directory_path() / fmt::format("attack_specifications.{}", ::getpid());
    fs::create_directories(folder / "operators");
    must(write_file_atomically((folder / "operators/mutant.op").string(), text));
    const std::string output = (folder / "output").string();
    // Mutants of shipped functions define anew what is shipped: that is an error, too.
    const std::string command =
        fmt::format("'{}' --specs '{}/specs' --add-specs '{}' --rule 'neg(neg(x)) => x' -q > '{}' 2>&1", TASO_VERIFY,
                    TASO_SOURCE_DIR, folder.string(), output);
    const int status = std::system(command.c_str());
    const std::string said = must(read_file(output));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3 || std::count(said.begin(), said.end(), '\n') != 1 ||
        said.find(".op:") == std::string::npos)
      finding(kind, text, fmt::format("taso-verify ends with {} and says\n{}", status, said));
    fs::remove_all(folder);
  }

  // Rules that would follow from a function's declarations: the first that is proved and false.
  std::optional<std::string> false_consequence(const SpecificationMutant& mutant, const OperatorRegistry& registry,
                                               Kind kind) {
    const FunctionDefinition* const function = registry.find_function(mutant.name);
    if (function == nullptr) return std::nullopt;
    std::vector<std::string> laws;
    for (const std::string& line : mutant.parts.back().lines)
      if (line.find("  law ") == 0) laws.push_back(line);
    for (const Consequence& consequence : consequences(*function, laws)) {
      const auto extended = OperatorRegistry::parse(consequence.operators, "consequence.op", &registry);
      if (!extended) continue;
      const auto rules = parse_rules("rule consequence: " + consequence.rule, "consequence", *extended);
      if (!rules) continue;
      Verifier verifier(*extended, {}, alone_);
      if (const auto found = proved_and_false(*extended, verifier, rules->front(), kind, mutant.places))
        return consequence.operators + consequence.rule + "\n" + *found;
    }
    return std::nullopt;
  }

  std::optional<std::string> proved_and_false(const OperatorRegistry& registry, Verifier& verifier,
                                              const Substitution& rule, Kind kind, const std::vector<double>& places) {
    const Verdict verdict = verifier.verify(rule);
    if (verdict.kind != VerdictKind::proved) return std::nullopt;
    ++counts_[kind].proved;
    LoweredCache cache(registry);
    const JudgeOptions options{.seed = arguments_.seed, .doubts_functions = true, .reals = places};
    return judge(registry, stored_form(rule, verdict, registry), options, cache).falsehood;
  }

  // The falsehood in what is declared of a function; nothing if the file is refused.
  std::optional<std::string> false_function(const SpecificationMutant& mutant, const OperatorRegistry& registry) {
    std::vector<std::string> names;
    for (const SpecificationPool::Definition& part : mutant.parts)
      if (part.name == mutant.name || part.text().find(mutant.name + "(") != std::string::npos)
        names.push_back(part.name);
    const auto found = judge_functions(registry, names, mutant.places, arguments_.seed + number_, judged_numbers);
    return found ? std::optional(found->text) : std::nullopt;
  }

  void attack_function() {
    const SpecificationMutant mutant = mutator_->function(arguments_.seed, number_);
    const auto registry = OperatorRegistry::parse(mutant.text(), "mutant.op", &arithmetic_, trials());
    if (!registry) return refused(functions, mutant.text(), registry.error());
    ++counts_[functions].accepted;
    const bool is_false = false_function(mutant, *registry).has_value();
    if (!is_false && number_ % consequences_of != 0) return;
    const std::optional<std::string> rule = false_consequence(mutant, *registry, functions);
    if (is_false || rule) report(mutant, rule);
  }

  // Leaves out of a mutant what need not be there for it to be accepted and false.
  void report(SpecificationMutant mutant, const std::optional<std::string>& rule) {
    std::string why;
    const auto is_finding = [&](const SpecificationMutant& candidate) {
      const auto registry = OperatorRegistry::parse(candidate.text(), "mutant.op", &arithmetic_, trials());
      if (!registry) return false;
      const std::optional<std::string> found = false_function(candidate, *registry);
      if (found) why = *found;
      return found.has_value();
    };
    if (is_finding(mutant) && !arguments_.quiet) {
      std::size_t left = max_shrinking;
      for (bool progress = true; progress && left > 0;) {
        progress = false;
        for (std::size_t part = 0; part < mutant.parts.size() && left > 0; ++part)
          for (std::size_t line = mutant.parts[part].lines.size(); line-- > 0 && left > 0;) {
            SpecificationMutant smaller = mutant;
            if (line == 0 && part + 1 == mutant.parts.size()) continue;
            if (line == 0)
              smaller.parts.erase(smaller.parts.begin() + static_cast<std::ptrdiff_t>(part));
            else
              smaller.parts[part].lines.erase(smaller.parts[part].lines.begin() + static_cast<std::ptrdiff_t>(line));
            --left;
            if (!is_finding(smaller)) continue;
            mutant = smaller;
            progress = true;
            break;
          }
      }
      (void)is_finding(mutant);
    }
    finding(functions, mutant.text(), why + (rule ? "\nproved and false:\n" + *rule : ""));
  }

  // Wraps all outputs of both sides: what follows from a statement and is none itself.
  static Substitution consequence_of(Substitution rule) {
    rule.is_axiom = false;
    rule.name = "consequence";
    rule.where = {};
    for (Pattern* side : {&rule.source, &rule.target})
      for (PatternValue& output : side->outputs) {
        side->nodes.push_back({"neg", {output}, {}});
        output = {false, static_cast<std::uint32_t>(side->nodes.size() - 1), 0};
      }
    return rule;
  }

  void attack_operator() {
    const SpecificationMutant made = mutator_->operator_(arguments_.seed, number_);
    const std::string text = made.parts.back().text();
    const auto registry = OperatorRegistry::parse(text, "mutant.op", &with_functions_, trials());
    if (!registry) return refused(operators, text, registry.error());
    if (!arguments_.without_trials)
      if (const Status proved = prove_declared_laws(*registry, with_functions_); !proved)
        return refused(operators, text, proved.error());
    ++counts_[operators].accepted;
    LoweredCache cache(*registry);
    for (Substitution law : Verifier::declared_laws(*registry)) {
      if (with_functions_.find(law.name.substr(0, law.name.find('.'))) != nullptr) continue;
      const Substitution consequence = consequence_of(law);
      law.numeric_class = NumericClass::distribution;
      law.conditions.clear();
      const JudgeOptions options{.seed = arguments_.seed, .doubts_functions = true, .reals = made.places};
      if (const auto falsehood = judge(*registry, law, options, cache).falsehood)
        return finding(operators, text, law.name + ": " + *falsehood);
      if (number_ % consequences_of != 0) continue;
      Verifier whole(*registry, shipped_axioms_);
      if (const auto falsehood = proved_and_false(*registry, whole, consequence, operators, made.places))
        return finding(operators, text, to_string(consequence, *registry) + *falsehood);
    }
  }

  void attack_axiom() {
    std::optional<Substitution> axiom = rule_mutator_->mutant(arguments_.seed, number_);
    if (!axiom) {
      ++counts_[axioms].refused;
      return;
    }
    axiom->is_axiom = true;
    axiom->name = "mutant";
    const std::string text = to_string(*axiom, own_);
    const auto parsed = parse_rules(text, "mutant.axioms", own_);
    if (!parsed) return refused(axioms, text, parsed.error());
    BelievedAxioms believed{*parsed, {}};
    if (!arguments_.without_trials) believed = proved_axioms(own_, *parsed);
    ++(believed.axioms.empty() ? counts_[axioms].refused : counts_[axioms].accepted);
    for (const auto& [name, error] : believed.not_proved)
      if (error.message.find('\n') != std::string::npos || error.where.line <= 0)
        finding(axioms, text, "the warning is no line with a place: " + error.to_string());
    if (!believed.axioms.empty()) {
      LoweredCache cache(own_);
      Substitution claimed = *axiom;
      claimed.numeric_class = NumericClass::distribution;
      const JudgeOptions options{.seed = arguments_.seed, .definedness = false};
      if (const auto falsehood = judge(own_, with_limits(claimed), options, cache).falsehood)
        return finding(axioms, text, *falsehood);
    }
    if (number_ % (8 * consequences_of) != 0) return;
    // What follows, with all axioms that are believed.
    std::vector<Substitution> theory = shipped_axioms_;
    theory.insert(theory.end(), believed.axioms.begin(), believed.axioms.end());
    Verifier whole(own_, std::move(theory));
    const Substitution consequence = consequence_of(*axiom);
    if (const auto falsehood = proved_and_false(own_, whole, consequence, axioms, {}))
      finding(axioms, text, to_string(consequence, own_) + *falsehood);
  }

  // An axiom speaks of the ranks that proofs examine.
  [[nodiscard]] Substitution with_limits(const Substitution& axiom) const {
    Verifier verifier(own_, {}, alone_);
    const Verdict verdict = verifier.verify(axiom);
    return verdict.kind == VerdictKind::proved ? stored_form(axiom, verdict, own_) : axiom;
  }

  // Bytes of an axiom file.
  void attack_axiom_bytes() {
    const std::optional<Substitution> axiom = rule_mutator_->mutant(arguments_.seed, number_);
    if (!axiom) return;
    Random random(arguments_.seed, "bytes of axiom " + std::to_string(number_));
    std::string text = to_string(*axiom, own_);
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) change_bytes(text, random);
    const auto parsed = parse_rules(text, "mutant.axioms", own_);
    if (!parsed) return refused(bytes, text, parsed.error());
    ++counts_[bytes].accepted;
    const int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    const auto longer = parse_rules(text + "\n)", "mutant.axioms", own_);
    if (longer || longer.error().where.line < lines) finding(bytes, text, "the file is not read to its end");
  }

  void attack_bytes() {
    if (number_ % 3 == 2) return attack_axiom_bytes();
    const std::string text = mutator_->bytes(arguments_.seed, number_);
    const bool defines_functions = text.find("function ") != std::string::npos;
    const OperatorRegistry& base = defines_functions ? arithmetic_ : with_functions_;
    const auto registry = OperatorRegistry::parse(text, "mutant.op", &base, trials());
    if (!registry) return refused(bytes, text, registry.error());
    ++counts_[bytes].accepted;
    // The last byte was read.
    const auto longer = OperatorRegistry::parse(text + "\n)", "mutant.op", &base, trials());
    const int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    if (longer || longer.error().where.line < lines) finding(bytes, text, "the file is not read to its end");
    std::vector<std::string> names;
    for (const auto& [name, function] : registry->functions())
      if (base.find_function(name) == nullptr) names.push_back(name);
    if (const auto found = judge_functions(*registry, names, {}, arguments_.seed + number_, judged_numbers / 5))
      finding(bytes, text, found->text);
  }

  Arguments arguments_;
  OperatorRegistry arithmetic_, shipped_, with_functions_, own_;
  std::vector<Substitution> shipped_axioms_;
  std::optional<SpecificationMutator> mutator_;
  std::optional<RuleMutator> rule_mutator_;
  VerifierOptions alone_;
  std::uint64_t number_ = 0;
  std::array<Counts, 4> counts_;
};

}  // namespace
}  // namespace taso::testing

int main(int argc, char** argv) { return taso::testing::Attack(taso::testing::parse(argc, argv)).run(); }
