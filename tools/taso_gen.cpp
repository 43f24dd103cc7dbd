// taso-gen: generates rewrite rules from operator specifications.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "generator/generator.h"
#include "generator/profile.h"
#include "generator/records.h"
#include "operators/registry.h"
#include "support/file.h"
#include "support/text_output.h"
#include "tools/common.h"
#include "tools/files.h"
#include "tools/proved_specs.h"
#include "tools/ranks.h"
#include "tools/specs.h"
#include "verifier/verify.h"

namespace {

using namespace taso;         // NOLINT(google-build-using-namespace)
using namespace taso::tools;  // NOLINT(google-build-using-namespace)

constexpr const char* program = "taso-gen";

struct Arguments {
  CommonOptions common;
  FileOptions files;
  std::string profile = "default";
  std::string output = "-";
  int max_ops = 3;
  std::uint64_t max_terms = 4'000'000'000;
  std::string memory_limit, temporary, checkpoint, shard;
  std::vector<std::string> merge;
  bool resume = false, counts = false;
  bool verify = false;
};

/// "500M", "8G", "123456": bytes.
Expected<std::uint64_t> size_of(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  int shift = 0;
  if (rest + 1 == end) shift = *rest == 'K' ? 10 : *rest == 'M' ? 20 : *rest == 'G' ? 30 : 0;
  if (error != std::errc() || (rest != end && shift == 0) || value == 0 || value > (std::uint64_t{1} << 33))
    return Error{ErrorCode::usage, "--memory-limit: '" + text + "' is not a size such as 500M or 8G", {}};
  return value << shift;
}

/// "i/N", counted from 1.
Expected<std::pair<std::uint32_t, std::uint32_t>> shard_of(const std::string& text) {
  std::uint32_t number = 0, of = 0;
  const char* const end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, number);
  if (first == std::errc() && slash != end && *slash == '/') {
    const auto [rest, second] = std::from_chars(slash + 1, end, of);
    if (second == std::errc() && rest == end && number >= 1 && number <= of && of <= 65536)
      return std::pair(number - 1, of);
  }
  return Error{ErrorCode::usage, "--shard: '" + text + "' is not i/N with 1 <= i <= N, such as 2/4", {}};
}

/// The segments of shard files, found by what they belong to.
class ShardFiles {
 public:
  Status add(const std::string& path) {
    TASO_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
    const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t begin = at;
      TASO_ASSIGN(const Segment segment, segment_from_bytes(bytes, at, path));
      places_.push_back({segment.enumeration, files_.size(), begin});
    }
    files_.push_back(std::move(file));
    return {};
  }
  [[nodiscard]] Status visit(const Hash128& enumeration, const std::function<Status(const Segment&)>& accept) const {
    for (const Place& place : places_) {
      if (place.enumeration != enumeration) continue;
      const MappedFile& file = *files_[place.file];
      const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
      std::size_t at = place.at;
      TASO_ASSIGN(const Segment segment, segment_from_bytes(bytes, at, file.path()));
      TASO_RETURN_IF_ERROR(accept(segment));
    }
    return {};
  }

 private:
  struct Place {
    Hash128 enumeration;
    std::size_t file = 0, at = 0;
  };
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<Place> places_;
};

/// The extensions of the files in a folder for checkpoints.
std::vector<std::string> checkpoint_extensions() { return {".segment", ".level", ".journal"}; }

/// A folder for checkpoints: made if need be; with segments of an earlier run only if it is to be resumed.
Status prepare_checkpoint(const std::string& folder, bool resume) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder))
    return bad_input("cannot make the folder for checkpoints" + (error ? ": " + error.message() : std::string()),
                     {folder, 0, 0});
  const std::vector<std::string> own = checkpoint_extensions();
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (!resume && std::find(own.begin(), own.end(), entry.path().extension()) != own.end())
      return bad_input("holds checkpoints of an earlier run: give --resume to go on with it, or another folder",
                       {folder, 0, 0});
  if (error) return bad_input("cannot read the folder for checkpoints: " + error.message(), {folder, 0, 0});
  return {};
}

/// What a run needs.
struct Setup {
  std::optional<OperatorRegistry> registry;
  Profile profile;
  GeneratorOptions options;
  ShardFiles shards;
  std::string part;  ///< The segments of this process, if they go elsewhere.
};

/// This process evaluates one of several parts and keeps it as bytes.
void evaluate_part(Setup& setup, std::uint32_t number, std::uint32_t of) {
  setup.options.scale.shard = number;
  setup.options.scale.shards = of;
  setup.options.scale.send = [&setup](const Segment& segment) {
    setup.part += to_bytes(segment);
    return Status();
  };
}

/// Shares the work among ranks: the others send their segments to rank 0 after each enumeration.
void use_ranks(Setup& setup, const Ranks& ranks) {
  ScaleOptions& scale = setup.options.scale;
  if (ranks.rank() > 0) {
    evaluate_part(setup, static_cast<std::uint32_t>(ranks.rank()), static_cast<std::uint32_t>(ranks.size()));
    scale.sent_all = [&] { return ranks.send(std::exchange(setup.part, {})); };
    return;
  }
  scale.shards = static_cast<std::uint32_t>(ranks.size());
  scale.receive = [&](const Hash128& enumeration, const std::function<Status(const Segment&)>& accept) -> Status {
    for (int rank = 1; rank < ranks.size(); ++rank) {
      TASO_ASSIGN(const std::string bytes, ranks.receive(rank));
      const std::string from = "rank " + std::to_string(rank);
      for (std::size_t at = 0; at < bytes.size();) {
        TASO_ASSIGN(const Segment segment, segment_from_bytes(bytes, at, from));
        if (segment.enumeration != enumeration)
          return bad_input(from +
                           " enumerates something else: all machines need the same program, profile and "
                           "specifications");
        TASO_RETURN_IF_ERROR(accept(segment));
      }
    }
    return {};
  };
}

/// All files that rules depend on, and the program.
Expected<Hash128> hash_of_inputs(const Arguments& arguments, const std::string& profile) {
  std::vector<std::string> files = {"/proc/self/exe", profile};
  std::vector<std::string> folders = {arguments.common.specs};
  folders.insert(folders.end(), arguments.common.added_specs.begin(), arguments.common.added_specs.end());
  for (const std::string& folder : folders) {
    TASO_ASSIGN(const std::vector<std::string> found, files_in(folder, {".op", ".axioms", ".profile"}));
    files.insert(files.end(), found.begin(), found.end());
  }
  Hasher hasher;
  for (const std::string& file : files) {
    TASO_ASSIGN(const std::string bytes, read_file(file));
    hasher.add(hash_text(bytes));
  }
  return hasher.finish();
}

/// Everything that can be wrong from the start.
Status prepare(Arguments& arguments, const Ranks& ranks, Setup& setup) {
  if (ranks.rank() == 0) TASO_RETURN_IF_ERROR(arguments.files.claim_all());
  if (ranks.size() > 1 && (!arguments.shard.empty() || !arguments.merge.empty()))
    return Error{ErrorCode::usage, "mpirun shares the work itself: leave out --shard and --merge", {}};
  TASO_ASSIGN(setup.registry, load_proved_operators(arguments.common, program));
  const OperatorRegistry& registry = *setup.registry;
  const std::string path = profile_file(arguments.common, arguments.profile);
  TASO_ASSIGN(setup.profile, load_profile(path, registry));

  GeneratorOptions& options = setup.options;
  options.max_ops = arguments.max_ops;
  options.max_terms = arguments.max_terms;
  options.seed = arguments.common.seed;
  // What follows the enumeration is done by rank 0: it takes all threads.
  const unsigned all = std::max(1u, std::thread::hardware_concurrency());
  options.threads = arguments.common.threads > 0 ? static_cast<unsigned>(arguments.common.threads)
                    : ranks.rank() == 0          ? all
                                                 : std::max(1u, all / static_cast<unsigned>(ranks.size()));
  options.verify = arguments.verify;
  if (arguments.verify) {
    TASO_ASSIGN(BelievedAxioms believed, load_believed_axioms(arguments.common, registry, program));
    options.axioms = std::move(believed.axioms);
  }
  if (!arguments.memory_limit.empty()) {
    TASO_ASSIGN(options.scale.memory_limit, size_of(arguments.memory_limit));
  }
  options.scale.temporary =
      arguments.temporary.empty() ? std::filesystem::temp_directory_path().string() : arguments.temporary;
  options.scale.checkpoint = arguments.checkpoint;
  options.counts_only = arguments.counts;
  if (!arguments.checkpoint.empty()) {
    TASO_RETURN_IF_ERROR(prepare_checkpoint(arguments.checkpoint, arguments.resume));
    TASO_ASSIGN(options.inputs, hash_of_inputs(arguments, path));
  }
  if (!arguments.shard.empty()) {
    TASO_ASSIGN(const auto shard, shard_of(arguments.shard));
    evaluate_part(setup, shard.first, shard.second);
  }
  if (!arguments.merge.empty()) {
    for (const std::string& file : arguments.merge) TASO_RETURN_IF_ERROR(setup.shards.add(file));
    options.scale.shard = options.scale.shards = 1;
    options.scale.receive = [&](const Hash128& enumeration, const std::function<Status(const Segment&)>& accept) {
      return setup.shards.visit(enumeration, accept);
    };
  }
  return {};
}

Status run(const Arguments& arguments, const Ranks& ranks, Setup& setup) {
  const OperatorRegistry& registry = *setup.registry;
  const Profile& profile = setup.profile;
  GeneratorOptions& options = setup.options;
  if (ranks.size() > 1) use_ranks(setup, ranks);
  if (ranks.rank() > 0) {
    const auto done = generate(profile, registry, options);
    return done ? Status() : done.error();
  }
  ProgressLine line(arguments.common.quiet);
  auto begin = std::chrono::steady_clock::now();
  std::string stage;
  options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    std::string text = total == 0 ? what : what + " " + std::to_string(done) + "/" + std::to_string(total);
    const auto now = std::chrono::steady_clock::now();
    if (what != stage) {
      stage = what;
      begin = now;
    }
    const double seconds = std::chrono::duration<double>(now - begin).count();
    if (seconds > 1 && done > 0 && total >= done) {
      const double rate = static_cast<double>(done) / seconds;
      text += fmt::format(", {:.3g}/s, {:.0f} s left", rate, static_cast<double>(total - done) / rate);
    }
    line.show(text);
  };
  if (!arguments.common.quiet)
    options.estimate = [&](const std::string& group, const LevelEstimate& estimate) {
      // What is over at once needs no forecast.
      if (estimate.terms < 1'000'000 && arguments.common.verbosity == 0) return;
      line.clear();
      // The speed is not known where the level before came from a checkpoint.
      const std::string seconds = estimate.seconds > 0 ? fmt::format("{:.0f} s, ", estimate.seconds) : std::string();
      std::fprintf(stderr, "%s: about %s terms up to renaming, %s%.0f MB\n", group.c_str(),
                   std::to_string(estimate.terms).c_str(), seconds.c_str(), static_cast<double>(estimate.bytes) / 1e6);
    };
  if (!arguments.common.quiet)
    options.never_applied = [&](const ProfileGroup& group, const ProfileOperator& op) {
      line.clear();
      tools::warn(
          "taso-gen",
          Error{ErrorCode::bad_input,
                fmt::format("'{}' is never applied in group '{}' at up to {} operators: no tensor has a role and "
                            "a type that it takes{}",
                            op.op, group.name, group.max_ops,
                            op.on_weights ? "" : ", or all are weights (on_weights applies it to these)"),
                op.where}
              .to_string());
    };
  if (arguments.common.verbosity > 0)
    options.dropped = [&](const std::string& rule, const std::string& why) {
      line.clear();
      std::fprintf(stderr, "dropped: %s%s\n\n", rule.c_str(), why.c_str());
    };
  TASO_ASSIGN(const Generation generation, generate(profile, registry, options));
  line.clear();
  catch_interrupts();  // what is being written is finished

  if (!arguments.shard.empty()) return write_text(arguments.output, setup.part);
  if (arguments.counts) {
    if (!arguments.common.json.empty())
      TASO_RETURN_IF_ERROR(write_text(arguments.common.json, statistics_json(generation, profile, options)));
    if (!arguments.files.claims().uses_stdout()) std::fputs(statistics_text(generation).c_str(), stdout);
    return {};
  }

  std::string command = "taso-gen --profile " + profile.name + " --max-ops " + std::to_string(options.max_ops);
  if (options.verify) command += " --verify";
  command += " --seed " + std::to_string(options.seed);
  TASO_RETURN_IF_ERROR(write_text(arguments.output, rule_file(generation, profile, options, command, registry)));
  if (!arguments.common.json.empty())
    TASO_RETURN_IF_ERROR(write_text(arguments.common.json, statistics_json(generation, profile, options)));
  // The tables go where the rules do not.
  if (!arguments.common.quiet)
    std::fputs(statistics_text(generation).c_str(), arguments.files.claims().uses_stdout() ? stderr : stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const Expected<Ranks> joined = Ranks::join(argc, argv, program);
  if (!joined) return fail(program, joined.error());
  const Ranks& ranks = *joined;
  CLI::App app{
      "Generates rewrite rules from operator specifications: every equality between terms of the operators in "
      "a profile, up to a size, generalised, proved and pruned.",
      program};
  Arguments arguments;
  arguments.common.seed = 1;
  FileOptions& files = arguments.files;
  files.declare(
      app.add_option("--profile", arguments.profile,
                     "profile: a name (specs/profiles/NAME.profile) or a file (default: default)")
          ->type_name("PROFILE"),
      [&](FileClaims& claims, const std::string& name) {
        return claims.reads(name, profile_file(arguments.common, arguments.profile));
      },
      true);
  app.add_option("--max-ops", arguments.max_ops, "largest number of operators of a side, 1 to 8 (default: 3)")
      ->check(whole_number(1, 8));
  app.add_option("--max-terms", arguments.max_terms, "largest number of terms of one group (default: 4000000000)")
      ->check(whole_number(1));
  app.add_option(
         "--memory-limit", arguments.memory_limit,
         "memory for the enumeration, such as 500M or 8G: fingerprints beyond it go to files (default: no limit)")
      ->type_name("SIZE");
  files.fills(app, "--temporary", arguments.temporary, "folder for those files (default: the system's)");
  CLI::Option* const checkpoint =
      files.fills(app, "--checkpoint", arguments.checkpoint,
                  "folder for what is enumerated and proved, so that --resume can go on", checkpoint_extensions());
  app.add_flag("--resume", arguments.resume, "go on with what is in the folder of --checkpoint")->needs(checkpoint);
  app.add_flag("--counts", arguments.counts, "enumerate only, and print how many terms and values there are by size");
  CLI::Option* const shard =
      app.add_option("--shard", arguments.shard,
                     "i/N: evaluate the i-th of N parts only and write it to --output, for --merge")
          ->type_name("I/N");
  CLI::Option* const merge =
      app.add_option("--merge", arguments.merge, "files of all shards: go on from them instead of evaluating")
          ->type_name("FILE")
          ->excludes(shard);
  files.declare(merge, [&](FileClaims& claims, const std::string& name) -> Status {
    for (const std::string& file : arguments.merge) TASO_RETURN_IF_ERROR(claims.reads(name, file));
    return {};
  });
  app.add_flag("--verify", arguments.verify, "keep only rules that are proved; write the kind of proof beside each");
  // Without rules there is no output but for --json.
  files.declare(
      app.add_option("-o,--output", arguments.output, "rule file to write, - for standard output (default: -)")
          ->type_name("FILE"),
      [&](FileClaims& claims, const std::string& name) {
        return arguments.counts ? Status() : claims.writes(name, arguments.output);
      },
      true);
  add_common_options(app, files, arguments.common, {".op", ".map", ".axioms", ".facts", ".profile"});
  {
    const Silence silence(ranks.rank() > 0);  // rank 0 says what is wrong
    if (const auto exit_code = parse_command_line(app, files, argc, argv, false)) return *exit_code;
  }
  if (arguments.common.specs.empty()) arguments.common.specs = default_specs();
  if (ranks.rank() == 0) end_on_interrupt(program);
  Setup setup;
  if (const Status ready = ranks.agree(prepare(arguments, ranks, setup)); !ready)
    return ranks.rank() == 0 ? fail(program, ready.error()) : ready.error().exit_code();
  const Status status = run(arguments, ranks, setup);
  return status ? 0 : ranks.fail(status.error());
}
