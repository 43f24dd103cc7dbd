// taso-gen: generates rewrite rules from operator specifications.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "generator/generator.h"
#include "generator/profile.h"
#include "generator/records.h"
#include "operators/registry.h"
#include "support/file.h"
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

/// A folder for checkpoints: made if need be; with segments of an earlier run only if it is to be resumed.
Status prepare_checkpoint(const std::string& folder, bool resume) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder))
    return bad_input("cannot make the folder for checkpoints" + (error ? ": " + error.message() : std::string()),
                     {folder, 0, 0});
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".segment" && !resume)
      return bad_input("holds checkpoints of an earlier run: give --resume to go on with it, or another folder",
                       {folder, 0, 0});
  if (error) return bad_input("cannot read the folder for checkpoints: " + error.message(), {folder, 0, 0});
  return {};
}

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
  if (!arguments.memory_limit.empty()) {
    TASO_ASSIGN(options.scale.memory_limit, size_of(arguments.memory_limit));
  }
  options.scale.temporary =
      arguments.temporary.empty() ? std::filesystem::temp_directory_path().string() : arguments.temporary;
  options.scale.checkpoint = arguments.checkpoint;
  options.counts_only = arguments.counts;
  if (!arguments.checkpoint.empty()) TASO_RETURN_IF_ERROR(prepare_checkpoint(arguments.checkpoint, arguments.resume));
  std::string shard_bytes;
  if (!arguments.shard.empty()) {
    TASO_ASSIGN(const auto shard, shard_of(arguments.shard));
    options.scale.shard = shard.first;
    options.scale.shards = shard.second;
    options.scale.send = [&](const Segment& segment) {
      shard_bytes += to_bytes(segment);
      return Status();
    };
  }
  ShardFiles shards;
  if (!arguments.merge.empty()) {
    for (const std::string& file : arguments.merge) TASO_RETURN_IF_ERROR(shards.add(file));
    options.scale.shard = options.scale.shards = 1;
    options.scale.receive = [&](const Hash128& enumeration, const std::function<Status(const Segment&)>& accept) {
      return shards.visit(enumeration, accept);
    };
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
      std::fprintf(stderr, "%s: about %s terms up to renaming, %.0f s, %.0f MB\n", group.c_str(),
                   std::to_string(estimate.terms).c_str(), estimate.seconds, static_cast<double>(estimate.bytes) / 1e6);
    };
  if (arguments.common.verbosity > 0)
    options.dropped = [&](const std::string& rule, const std::string& why) {
      line.clear();
      std::fprintf(stderr, "dropped: %s%s\n\n", rule.c_str(), why.c_str());
    };
  TASO_ASSIGN(const Generation generation, generate(profile, registry, options));
  line.clear();
  catch_interrupts();  // what is being written is finished

  if (!arguments.shard.empty()) return write_text(arguments.output, shard_bytes);
  if (arguments.counts) {
    if (!arguments.common.json.empty())
      TASO_RETURN_IF_ERROR(write_text(arguments.common.json, statistics_json(generation, profile, options)));
    std::fputs(statistics_text(generation).c_str(), stdout);
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
  app.add_option("--max-terms", arguments.max_terms, "largest number of terms of one group (default: 4000000000)")
      ->check(whole_number(1));
  app.add_option("--memory-limit", arguments.memory_limit,
                 "memory to use, such as 500M or 8G; fingerprints beyond it go to files (default: no limit)");
  app.add_option("--temporary", arguments.temporary, "folder for those files (default: the system's)");
  CLI::Option* const checkpoint =
      app.add_option("--checkpoint", arguments.checkpoint, "folder for what is done, so that --resume can go on");
  app.add_flag("--resume", arguments.resume, "go on with what is in the folder of --checkpoint")->needs(checkpoint);
  app.add_flag("--counts", arguments.counts, "enumerate only, and print how many terms and values there are by size");
  CLI::Option* const shard = app.add_option(
      "--shard", arguments.shard, "i/N: evaluate the i-th of N parts only and write it to --output, for --merge");
  app.add_option("--merge", arguments.merge, "files of all shards: go on from them instead of evaluating")
      ->excludes(shard);
  app.add_flag("--verify", arguments.verify, "keep only rules that are proved; write the kind of proof beside each");
  app.add_option("-o,--output", arguments.output, "rule file to write, - for standard output (default: -)");
  add_common_options(app, arguments.common);
  if (const auto exit_code = parse_command_line(app, argc, argv)) return *exit_code;
  if (arguments.common.specs.empty()) arguments.common.specs = default_specs();
  if (const Status status = run(arguments); !status) return fail(program, status.error());
  return 0;
}
