#include "tools/run_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "graph/reals.h"
#include "onnx_io/external_files.h"
#include "onnx_io/tensor_file.h"
#include "optimizer/baseline.h"
#include "optimizer/report.h"
#include "runtime/kernel.h"
#include "tools/specs.h"

namespace taso::tools {
namespace {

Expected<HostTensor> read_tensor(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy") return read_npy(path);
  if (extension == ".pb") {
    TASO_ASSIGN(const std::shared_ptr<const ConstantData> constant, load_tensor(path));
    if (size_of(constant->type().element) == 0) return bad_input("its elements are not numbers", {path});
    return HostTensor::of_constant(*constant);
  }
  return bad_input("an input file is .npy or .pb", {path});
}

std::string file_name(const std::string& name, std::set<std::string>& used) {
  std::string safe = name;
  for (char& c : safe)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.') c = '_';
  if (safe.empty() || safe[0] == '.') safe = "_" + safe;
  std::string unique = safe;
  for (int i = 2; !used.insert(unique).second; ++i) unique = fmt::format("{}_{}", safe, i);
  return unique + ".npy";
}

/// A request's key without its operator.
std::string operands_in(const std::string& key) {
  const std::size_t start = key.find("; ");
  return start == std::string::npos ? key : key.substr(start + 2);
}

/// Where tensors of these names are saved.
std::vector<std::string> files_in(const std::string& folder, std::span<const std::string> names) {
  std::set<std::string> used;
  std::vector<std::string> files;
  for (const std::string& name : names) files.push_back(folder + "/" + file_name(name, used));
  return files;
}

}  // namespace

Expected<Tensors> read_inputs(const RunOptions& options) {
  Tensors tensors;
  for (const std::string& text : options.inputs) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return Error{ErrorCode::usage, fmt::format("--input {}: expected NAME=FILE", text), {}};
    TASO_ASSIGN(HostTensor tensor, read_tensor(text.substr(equals + 1)));
    if (!tensors.emplace(text.substr(0, equals), std::move(tensor)).second)
      return Error{ErrorCode::usage, fmt::format("--input {}: the input is given twice", text), {}};
  }
  return tensors;
}

Expected<Subject> load_subject(const std::string& path, const RunOptions& options, const OperatorRegistry& registry,
                               const Tensors& given) {
  ImportOptions import;
  for (const std::string& text : options.input_shapes) {
    TASO_ASSIGN(auto name_and_shape, parse_input_shape(text));
    import.input_shapes.insert(std::move(name_and_shape));
  }
  TASO_ASSIGN(Model model, Model::load(path, registry, import));
  // A given tensor makes a symbolic shape concrete.
  bool reload = false;
  for (const TensorDeclaration& input : model.inputs())
    if (const auto tensor = given.find(input.name); tensor != given.end() && !input.type.known)
      reload = import.input_shapes.emplace(input.name, tensor->second.type().shape).second || reload;
  if (reload) {
    TASO_ASSIGN(model, Model::load(path, registry, import));
  }
  return subject_of(path, model, options);
}

Subject subject_of(const std::string& path, const Model& model, const RunOptions& options) {
  if (!options.common.quiet)
    for (const std::string& warning : model.warnings()) warn(program_name, path + ": " + warning);
  Subject subject;
  subject.path = path;
  subject.graph = model.graph();
  subject.original_nodes = model.original_nodes();
  subject.ill_typed_nodes = model.ill_typed_nodes().size();
  subject.coverage = model.coverage();
  for (const TensorDeclaration& output : model.outputs()) subject.output_names.push_back(output.name);
  subject.own_outputs = subject.graph.outputs().size();
  return subject;
}

Expected<RuleIndex> fusing_rules(const RunOptions& options, const OperatorRegistry& registry) {
  TASO_ASSIGN(std::vector<std::string> files, simplify_rule_files(options.common));
  TASO_ASSIGN(const std::vector<std::string> fusing, rule_files(options.common));
  files.insert(files.end(), fusing.begin(), fusing.end());
  std::vector<Substitution> rules;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> loaded, load_rules(file, registry));
    for (Substitution& rule : loaded)
      if (!rule.is_axiom && carries_proof(rule, registry)) rules.push_back(std::move(rule));
  }
  return RuleIndex(std::move(rules), registry);
}

Status fuse(Graph& graph, const std::string& path, const RuleIndex& rules, const OperatorRegistry& registry) {
  Expected<Baseline> baseline = make_baseline(graph, rules, registry);
  if (!baseline) {
    Error error = baseline.error();
    error.where.file = path;
    return error;
  }
  graph = std::move(baseline->graph);
  return {};
}

Expected<std::vector<HostTensor>> inputs_for(const Subject& subject, std::vector<HostTensor> inputs,
                                             const Tensors& given) {
  std::vector<std::string> names;
  for (const NodeId id : subject.graph.inputs()) names.push_back(subject.graph.node(id).name);
  for (const auto& [name, tensor] : given) {
    const auto place = std::find(names.begin(), names.end(), name);
    if (place == names.end())
      return bad_input(fmt::format("the model has no input '{}'; its inputs are: {}", name, fmt::join(names, ", ")),
                       {subject.path});
    const auto index = static_cast<std::size_t>(place - names.begin());
    const TensorType& type = subject.graph.type({subject.graph.inputs()[index], 0});
    if (type.known && !(type == tensor.type()))
      return bad_input(
          fmt::format("input '{}' is {}, a tensor {} was given", name, to_string(type), to_string(tensor.type())),
          {subject.path});
    inputs[index] = tensor.copy();
  }
  return inputs;
}

Status save_tensors(const std::string& folder, std::span<const std::string> names,
                    std::span<const HostTensor> tensors) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return bad_input("cannot make the folder: " + error.message(), {folder});
  const std::vector<std::string> files = files_in(folder, names);
  for (std::size_t i = 0; i < names.size(); ++i) TASO_RETURN_IF_ERROR(write_npy(files[i], tensors[i]));
  return {};
}

Status claim_external_data(RunOptions& options) {
  FileClaims& claims = options.files.claims();
  for (const std::string& model : {options.model, options.other})
    for (const std::string& file : external_data_of_model(model))
      TASO_RETURN_IF_ERROR(claims.reads("external data of a model", file));
  for (const std::string& input : options.inputs)
    for (const std::string& file : external_data_of_tensor(input.substr(input.rfind('=') + 1)))
      TASO_RETURN_IF_ERROR(claims.reads("external data of --input", file));
  return {};
}

Status claim_tensors(RunOptions& options, const Subject& subject) {
  std::vector<std::string> inputs;
  for (const NodeId id : subject.graph.inputs()) inputs.push_back(subject.graph.node(id).name);
  const std::span<const std::string> outputs = std::span(subject.output_names).first(subject.own_outputs);
  for (const auto& [option, folder, names] :
       {std::tuple("--save-outputs", options.save_outputs, outputs),
        {"--save-inputs", options.save_inputs, std::span<const std::string>(inputs)}}) {
    if (folder.empty()) continue;
    for (const std::string& file : files_in(folder, names))
      TASO_RETURN_IF_ERROR(options.files.claims().writes(option, file));
  }
  return {};
}

std::string profile_table(const std::vector<KernelProfile>& profile) {
  double total = 0;
  bool has_streams = false;
  for (const KernelProfile& kernel : profile) {
    total += kernel.median_us;
    has_streams = has_streams || kernel.stream != 0;
  }
  total = std::max(total, 1e-9);
  std::string text = fmt::format("\n{:>10} {:>6}  {}{:<22} {:<34} {}\n", "median us", "share",
                                 has_streams ? "stream  " : "", "operator", "implementation", "request");
  std::map<std::string, std::pair<double, int>> by_operator;
  for (const KernelProfile& kernel : profile) {
    text += fmt::format("{:>10.1f} {:>5.1f}%  {}{:<22} {:<34} {}\n", kernel.median_us, 100 * kernel.median_us / total,
                        has_streams ? fmt::format("{:>6}  ", kernel.stream) : "", kernel.op, kernel.implementation,
                        operands_in(kernel.key));
    by_operator[kernel.op].first += kernel.median_us;
    ++by_operator[kernel.op].second;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> sorted(by_operator.begin(), by_operator.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  text += fmt::format("\n{:>10} {:>6}  {:>5}  {}\n", "sum us", "share", "count", "operator");
  for (const auto& [op, entry] : sorted)
    text += fmt::format("{:>10.1f} {:>5.1f}%  {:>5}  {}\n", entry.first, 100 * entry.first / total, entry.second, op);
  return text;
}

namespace {

/// How the kernels of several operators were chosen.
std::string groups_text(const FusionStatistics& groups) {
  std::string how = "the least estimated cost";
  if (!groups.exact)
    how = fmt::format("at most {:.1f} % above the least estimated cost",
                      std::ceil(1000 * (groups.chosen / groups.lower_bound - 1)) / 10);
  return fmt::format("operators in one kernel: chosen among {} candidates{}, {}\n", groups.candidates,
                     groups.complete ? "" : ", not all that there are", how);
}

/// What the model of streams has: "on 3 streams 310.2 us instead of 402.0 us, by a model (of 121 kernels 0 measured)".
std::string streams_text(const PlannedRun& planned) {
  if (planned.seconds <= 0) return "";
  const std::string by =
      fmt::format("by a model, of whose {} costs {} were measured", planned.kernels.size(), planned.measured);
  if (planned.streams == 1) return fmt::format("; on one stream {}, {}", duration_text(planned.seconds), by);
  return fmt::format("; on {} streams {} instead of {}, {}", planned.streams, duration_text(planned.seconds),
                     duration_text(planned.seconds_on_one_stream), by);
}

}  // namespace

std::string planned_text(const std::string& path, const PlannedRun& planned, bool each) {
  std::string table;
  std::map<std::string, std::size_t> by_operator;
  std::size_t launches = 0, on_host = 0;
  const bool is_timed = planned.seconds > 0;
  for (const PlannedLaunches& kernel : planned.kernels) {
    const std::string when = is_timed ? fmt::format("{:>6} {:>10.1f} {:>10.1f}  ", kernel.stream, kernel.begin_s * 1e6,
                                                    (kernel.end_s - kernel.begin_s) * 1e6)
                                      : "";
    table += fmt::format("{:>8}  {}{:<22} {:<34} {}\n", kernel.launches, when, kernel.op, kernel.implementation,
                         operands_in(kernel.key));
    by_operator[kernel.op] += kernel.launches;
    launches += kernel.launches;
    on_host += kernel.implementation.starts_with("host: ") ? 1 : 0;
  }
  std::string text = fmt::format("{}: {} kernels, {} launches planned{}{}\n", path, planned.kernels.size(), launches,
                                 on_host > 0 ? fmt::format(", {} on the host", on_host) : "", streams_text(planned));
  if (!each) return text;
  text += fmt::format("\n{:>8}  {}{:<22} {:<34} {}\n{}", "launches",
                      is_timed ? fmt::format("{:>6} {:>10} {:>10}  ", "stream", "begin us", "model us") : "",
                      "operator", "implementation", "request", table);
  std::vector<std::pair<std::string, std::size_t>> sorted(by_operator.begin(), by_operator.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  text += fmt::format("\n{:>8}  {}\n", "launches", "operator");
  for (const auto& [op, count] : sorted) text += fmt::format("{:>8}  {}\n", count, op);
  return text;
}

std::string kernels_text(const std::string& path, const PlannedRun& planned) {
  std::map<std::string, std::size_t> times;
  for (const PlannedLaunches& kernel : planned.kernels) ++times[kernel.key];
  std::string text = fmt::format("{}: {} kernels, {} different\n", path, planned.kernels.size(), times.size());
  if (planned.groups) text += groups_text(*planned.groups);
  for (const PlannedLaunches& kernel : planned.kernels) {
    const auto count = times.find(kernel.key);
    if (count == times.end()) continue;
    text += fmt::format("\n{} x {}: {}\n", count->second, kernel.implementation, kernel.key);
    times.erase(count);
    for (std::size_t begin = 0, end = 0; begin < kernel.code.size(); begin = end + 1) {
      end = std::min(kernel.code.find('\n', begin), kernel.code.size());
      text += "  " + kernel.code.substr(begin, end - begin) + "\n";
    }
  }
  return text;
}

nlohmann::ordered_json planned_json(const std::string& path, const PlannedRun& planned) {
  nlohmann::ordered_json json{{"file", path}, {"kernels", planned.kernels.size()}};
  std::size_t launches = 0;
  for (const PlannedLaunches& kernel : planned.kernels) launches += kernel.launches;
  json["launches"] = launches;
  if (planned.groups)
    json["groups"] = {{"estimated_cost", planned.groups->chosen},
                      {"lower_bound", planned.groups->lower_bound},
                      {"exact", planned.groups->exact},
                      {"complete", planned.groups->complete},
                      {"candidates", planned.groups->candidates}};
  if (planned.seconds > 0)
    json["model"] = {{"streams", planned.streams},
                     {"seconds", planned.seconds},
                     {"seconds_on_one_stream", planned.seconds_on_one_stream},
                     {"measured_costs", planned.measured}};
  for (const PlannedLaunches& kernel : planned.kernels) {
    nlohmann::ordered_json one{{"operator", kernel.op},
                               {"implementation", kernel.implementation},
                               {"request", kernel.key},
                               {"launches", kernel.launches}};
    if (!kernel.code.empty()) one["code"] = kernel.code;
    if (planned.seconds > 0) {
      one["stream"] = kernel.stream;
      one["model_begin_s"] = kernel.begin_s;
      one["model_end_s"] = kernel.end_s;
    }
    json["planned"].push_back(std::move(one));
  }
  return json;
}

namespace {

Expected<std::vector<HostTensor>> compute_references(const Graph& graph, std::span<const HostTensor> inputs,
                                                     const OperatorRegistry& registry) {
  const KernelLibrary library(registry, KernelSet::reference);
  // What is kept in 16 bits is rounded to them nowhere.
  TASO_ASSIGN(Executor reference, Executor::create(graph.in_working_types(), library));
  std::vector<HostTensor> wide;
  for (const HostTensor& input : inputs) wide.push_back(input.converted(working_type(input.type().element)));
  return reference.run(wide);
}

/// The outputs that --save-outputs wrote to the folder.
Expected<std::vector<HostTensor>> read_references(const Subject& subject, std::span<const HostTensor> actual,
                                                  const std::string& folder) {
  const auto names = std::span<const std::string>(subject.output_names).first(subject.own_outputs);
  const std::vector<std::string> files = files_in(folder, names);
  std::vector<HostTensor> expected;
  for (std::size_t i = 0; i < files.size(); ++i) {
    TASO_ASSIGN(HostTensor tensor, read_npy(files[i]));
    const ElementType element = tensor.type().element, own = actual[i].type().element;
    const bool comparable = element == own || (is_real(element) && is_real(own));
    if (!comparable || tensor.type().shape != actual[i].type().shape)
      return bad_input(fmt::format("a reference of type {} for the output '{}', which is {}", to_string(tensor.type()),
                                   names[i], to_string(actual[i].type())),
                       {files[i]});
    expected.push_back(std::move(tensor));
  }
  return expected;
}

}  // namespace

Expected<bool> check_outputs(const Graph& as_imported, const Subject& subject, std::span<const HostTensor> inputs,
                             std::span<const HostTensor> actual, const RunOptions& options,
                             const OperatorRegistry& registry, std::string& text, nlohmann::ordered_json& json) {
  TASO_ASSIGN(const std::vector<HostTensor> expected, options.references.empty()
                                                          ? compute_references(as_imported, inputs, registry)
                                                          : read_references(subject, actual, options.references));
  const double bound = tolerance_of(options.device.math, as_imported).l2;
  bool all_within = true;
  text += fmt::format("\n{:<40} {:>12} {:>12}\n", "output", "relative L2", "bound");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = relative_l2(actual[i].converted(expected[i].type().element), expected[i]);
    const bool within = error <= bound;
    all_within = all_within && within;
    text += fmt::format("{:<40} {:>12.3g} {:>12.3g}{}\n", subject.output_names[i], error, bound,
                        within ? "" : "  not within it");
    json["outputs"].push_back({{"name", subject.output_names[i]}, {"relative_l2", error}, {"within", within}});
  }
  json["bound"] = bound;
  json["within"] = all_within;
  return all_within;
}

std::string not_executable(const Coverage& coverage) {
  const CarriedCause& first = coverage.causes[0];
  const std::string why = fmt::format("{}; helps: {}", first.cause, first.help);
  if (coverage.carried == 1) return fmt::format("{} cannot be executed: {}", first.node, why);
  return fmt::format("{} of {} nodes cannot be executed, mainly because of {}: {}", coverage.carried,
                     coverage.carried + coverage.understood, first.node, why);
}

Status describe_carried(const Subject& subject, const RunOptions& options) {
  const Coverage& coverage = subject.coverage;
  if (options.common.verbosity > 0 && !options.common.quiet)
    for (const CarriedCause& cause : coverage.causes) fmt::print(stderr, "carried: {}\n", to_string(cause));
  if (coverage.carried == 0) return {};
  // Lowering asks for the shapes of inputs.
  const Graph& graph = subject.graph;
  const bool typed = std::all_of(graph.inputs().begin(), graph.inputs().end(),
                                 [&](NodeId input) { return graph.node(input).outputs[0].known; });
  if (options.other.empty() && !typed) return {};
  if (options.other.empty()) return bad_input(not_executable(coverage), {subject.path});
  if (!options.common.quiet)
    warn(program_name,
         fmt::format("{}: {}; the parts between them are compared", options.model, not_executable(coverage)));
  return {};
}

}  // namespace taso::tools
