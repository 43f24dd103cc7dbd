// Partition plans of least cost: what they cost, how large the tables of the solver become, time and memory. One
// process a row, since the greatest memory is that of a process. bench/partition.md has the figures.
//
//   planner --list FILE.md | --make FILE.md
//
// The tables of a document like bench/partition.md: its headings, and the commands that stand in it (lines that are
// indented by four or more; a backslash at the end goes on in the next one). --make runs them, and prints what they
// print.
//
//   planner [--network NAME]... [--devices N]... [--order RULE]... [--maximum-table ENTRIES] [--dominance]
//           [--every-tensor] [--sizes] [-j N]
//
// PaSE's networks, configurations and costs. RULE: min-degree (PaSE's order; the default), min-fill, smallest-table,
// breadth-first. --sizes: of each order the sizes of tables alone; nothing is solved. --dominance: also where little
// work is ahead. --every-tensor: two tensors between the same layers cost twice.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tbb/global_control.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "partition/pase_problem.h"
#include "partition/solve_exact.h"
#include "support/file.h"

namespace {

using namespace taso;

struct Network {
  std::string_view name;
  PaseGraph (*build)(std::int64_t batch);
  std::int64_t batch;
  std::array<double, 5> published;  ///< Seconds on 4, 8, 16, 32, 64 devices: Table I of the paper, "Ours".
};

constexpr Network networks[] = {
    {"AlexNet", pase_alexnet, 128, {0.226, 0.253, 0.295, 0.361, 0.475}},
    {"Inception-v3", pase_inception_v3, 128, {14.398, 20.018, 39.791, 86.039, 196.253}},
    {"RNNLM", pase_rnnlm, 64, {0.057, 0.086, 0.069, 0.131, 0.215}},
    {"Transformer", pase_transformer, 64, {9.752, 28.798, 130.882, 553.022, 1883.187}},
    {"ResNet-101", pase_resnet101, 128, {}},
};

struct Order {
  std::string_view name;
  OrderRule rule;
};
constexpr Order orders[] = {{"min-degree", OrderRule::min_degree},
                            {"min-fill", OrderRule::min_fill},
                            {"smallest-table", OrderRule::smallest_table},
                            {"breadth-first", OrderRule::breadth_first}};

struct Request {
  std::vector<Network> networks;
  std::vector<std::int64_t> devices;
  std::vector<Order> orders;
  ExactOptions options;
  PaseParallelEdges parallel = PaseParallelEdges::last;
  bool sizes = false;
  int threads = 2;
};

/// An integer with commas.
std::string grouped(double number) {
  if (number >= 1e18) return fmt::format("{:.1e}", number);
  std::string digits = fmt::format("{:.0f}", number);
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<std::size_t>(place), 1, ',');
  return digits;
}

std::string published(const Network& network, std::int64_t devices) {
  for (std::size_t i = 0; i < network.published.size(); ++i)
    if (devices == std::int64_t{4} << i && network.published[i] > 0) return fmt::format("{:.2f}", network.published[i]);
  return "";
}

std::string row(const Network& network, std::int64_t devices, const Order& order, const Request& request) {
  const auto start = std::chrono::steady_clock::now();
  const PaseGraph graph = network.build(network.batch);
  const PaseProblem problem = pase_problem(graph, devices, {}, request.parallel);
  std::size_t most = 0;
  for (const PaseConfigurations& configurations : problem.configurations) most = std::max(most, configurations.size());
  if (request.sizes) {
    const EliminationOrder sizes =
        elimination_order(interaction_graph(problem.problem.elimination_problem()), order.rule);
    return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |", network.name, devices, order.name, most,
                       sizes.width, grouped(sizes.largest_table), grouped(sizes.largest_combinations),
                       grouped(sizes.combinations));
  }
  ExactOptions options = request.options;
  options.order = order.rule;
  options.known = {pase_data_parallel(graph, problem)};
  const PartitionSolution solution = solve_exact(problem.problem, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double data_parallel = problem.problem.cost(pase_data_parallel(graph, problem));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} | {:.3f} | {} | {} |", network.name,
      graph.layers.size(), problem.edges, devices, most, solution.order.width,
      grouped(solution.order.largest_combinations), grouped(static_cast<double>(solution.largest_table)),
      solution.kept_ways == solution.ways ? "" : fmt::format("{} of {}", solution.kept_ways, solution.ways),
      grouped(solution.cost), solution.exact ? "0" : fmt::format("{:.2g} %", 100 * solution.gap()),
      grouped(data_parallel), data_parallel / solution.cost, seconds, published(network, devices),
      usage.ru_maxrss / 1024);
}

constexpr std::string_view solved_header =
    "| network | layers | edges | devices | K | M | K^(M+1) | largest table | ways kept | cost, FLOP | gap | data "
    "parallel, "
    "FLOP | ratio | s | published s | MB |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";
constexpr std::string_view sizes_header =
    "| network | devices | order | K | M | largest table | K^(M+1) | combinations in all |\n"
    "|---|---:|---|---:|---:|---:|---:|---:|";

std::optional<Request> parse(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (word == "--network") {
      const std::string name = value();
      for (const Network& network : networks)
        if (name == network.name) request.networks.push_back(network);
      if (request.networks.empty()) return std::nullopt;
    } else if (word == "--devices") {
      request.devices.push_back(std::atoll(value().c_str()));
      if (request.devices.back() < 1) return std::nullopt;
    } else if (word == "--order") {
      const std::string name = value();
      for (const Order& order : orders)
        if (name == order.name) request.orders.push_back(order);
      if (request.orders.empty()) return std::nullopt;
    } else if (word == "--maximum-table") {
      request.options.maximum_table = std::strtoul(value().c_str(), nullptr, 10);
    } else if (word == "--dominance") {
      request.options.dominance_from = 0;
    } else if (word == "--every-tensor") {
      request.parallel = PaseParallelEdges::all;
    } else if (word == "--sizes") {
      request.sizes = true;
    } else if (word == "-j") {
      request.threads = std::max(1, std::atoi(value().c_str()));
    } else {
      return std::nullopt;
    }
  }
  if (request.networks.empty()) request.networks.assign(std::begin(networks), std::end(networks));
  if (request.devices.empty()) request.devices = {4, 8, 16, 32, 64};
  if (request.orders.empty()) request.orders = {orders[0]};
  return request;
}

/// Prints what `make` returns from a process of its own. False if that process did not end well.
template <class Make>
bool print_from_own_process(const Make& make) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::puts(make().c_str());
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The headings and the indented commands of a document, in order.
std::vector<std::string> headings_and_commands(const std::string& text) {
  std::vector<std::string> lines;
  bool goes_on = false;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const bool is_command = line.starts_with("    ");
    if (goes_on && is_command) {
      lines.back() += "\n" + line;
    } else if (is_command || line.starts_with('#')) {
      lines.push_back(line);
    }
    goes_on = is_command && line.ends_with('\\');
  }
  return lines;
}

/// Lists or makes the tables of a document; the exit code.
int tables_of_document(const std::string& path, bool make) {
  const Expected<std::string> text = read_file(path);
  if (!text) {
    std::fprintf(stderr, "%s\n", text.error().to_string().c_str());
    return text.error().exit_code();
  }
  for (const std::string& line : headings_and_commands(*text)) {
    std::printf("\n%s\n", line.c_str());
    if (!make || line.starts_with('#')) continue;
    std::fputs("\n", stdout);
    std::fflush(stdout);
    if (const int status = std::system(line.c_str()); status != 0) {  // NOLINT(concurrency-mt-unsafe)
      std::fprintf(stderr, "planner: this command of %s failed:\n%s\n", path.c_str(), line.c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc == 3 ? argv[1] : "";
  if (first == "--list" || first == "--make") return tables_of_document(argv[2], first == "--make");
  const std::optional<Request> request = parse(argc, argv);
  if (!request) {
    std::fputs("planner: no such option, network, order, or number of devices; the source's first lines say which\n",
               stderr);
    return 2;
  }
  std::puts(request->sizes ? sizes_header.data() : solved_header.data());
  for (const Network& network : request->networks)
    for (const std::int64_t devices : request->devices)
      for (const Order& order : request->orders) {
        const bool printed = print_from_own_process([&] {
          const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                            static_cast<std::size_t>(request->threads));
          return row(network, devices, order, *request);
        });
        if (!printed) return 1;
      }
  return 0;
}
