// taso-gen: generates rewrite rules from operator specifications.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "generator/generator.h"
#include "generator/profile.h"
#include "operators/registry.h"
#include "tools/common.h"
#include "tools/specs.h"
#include "verifier/verify.h"

namespace {

using namespace taso;         // NOLINT(google-build-using-namespace)
using namespace taso::tools;  // NOLINT(google-build-using-namespace)

constexpr const char* program = "taso-gen";

struct Arguments {
  CommonOptions common;
  std::string profile = "default";
  std::string output = "-";
  int max_ops = 3;
  std::size_t max_terms = 20'000'000;
  bool verify = false;
};

Status run(const Arguments& arguments) {
  TASO_RETURN_IF_ERROR(check_output("--output", arguments.output));
  if (!arguments.common.json.empty()) TASO_RETURN_IF_ERROR(check_output("--json", arguments.common.json));
  end_on_interrupt(program);
  TASO_ASSIGN(const OperatorRegistry registry, load_operators(arguments.common));
  const std::string path = profile_file(arguments.common, arguments.profile);
  TASO_ASSIGN(const Profile profile, load_profile(path, registry));

  GeneratorOptions options;
  options.max_ops = arguments.max_ops;
  options.max_terms = arguments.max_terms;
  options.seed = arguments.common.seed;
  options.threads = arguments.common.threads > 0 ? static_cast<unsigned>(arguments.common.threads)
                                                 : std::max(1u, std::thread::hardware_concurrency());
  options.verify = arguments.verify;
  if (arguments.verify) {
    TASO_ASSIGN(const std::vector<std::string> files, axiom_files(arguments.common));
    for (const std::string& file : files) {
      TASO_ASSIGN(const std::vector<Substitution> axioms, load_axioms(file, registry));
      options.axioms.insert(options.axioms.end(), axioms.begin(), axioms.end());
    }
  }
  ProgressLine line(arguments.common.quiet);
  options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    line.show(total == 0 ? what : what + " " + std::to_string(done) + "/" + std::to_string(total));
  };
  if (arguments.common.verbosity > 0)
    options.dropped = [&](const std::string& rule, const std::string& why) {
      line.clear();
      std::fprintf(stderr, "dropped: %s%s\n\n", rule.c_str(), why.c_str());
    };
  TASO_ASSIGN(const Generation generation, generate(profile, registry, options));
  line.clear();
  catch_interrupts();  // what is being written is finished

  std::string command = "taso-gen --profile " + profile.name + " --max-ops " + std::to_string(options.max_ops);
  if (options.verify) command += " --verify";
  command += " --seed " + std::to_string(options.seed);
  TASO_RETURN_IF_ERROR(write_text(arguments.output, rule_file(generation, profile, options, command, registry)));
  if (!arguments.common.json.empty())
    TASO_RETURN_IF_ERROR(write_text(arguments.common.json, statistics_json(generation, profile, options)));
  // The tables go where the rules do not.
  if (!arguments.common.quiet)
    std::fputs(statistics_text(generation).c_str(), arguments.output == "-" ? stderr : stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Generates rewrite rules from operator specifications: every equality between terms of the operators in "
      "a profile, up to a size, generalised, proved and pruned.",
      program};
  Arguments arguments;
  arguments.common.seed = 1;
  app.add_option("--profile", arguments.profile,
                 "profile: a name (specs/profiles/NAME.profile) or a file (default: default)");
  app.add_option("--max-ops", arguments.max_ops, "largest number of operators of a side, 1 to 8 (default: 3)")
      ->check(whole_number(1, 8));
  app.add_option("--max-terms", arguments.max_terms, "largest number of terms of one group (default: 20000000)")
      ->check(whole_number(1));
  app.add_flag("--verify", arguments.verify, "keep only rules that are proved; write the kind of proof beside each");
  app.add_option("-o,--output", arguments.output, "rule file to write, - for standard output (default: -)");
  add_common_options(app, arguments.common);
  if (const auto exit_code = parse_command_line(app, argc, argv)) return *exit_code;
  if (arguments.common.specs.empty()) arguments.common.specs = default_specs();
  if (const Status status = run(arguments); !status) return fail(program, status.error());
  return 0;
}
