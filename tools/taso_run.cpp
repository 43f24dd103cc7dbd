// taso-run: executes, times, profiles and compares ONNX models. See docs/runtime.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "graph/pattern.h"
#include "onnx_io/model.h"
#include "onnx_io/tensor_file.h"
#include "operators/registry.h"
#include "optimizer/baseline.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/cpu_target.h"
#include "optimizer/layout_choice.h"
#include "runtime/executor.h"
#include "runtime/lowering.h"
#include "runtime/measure.h"
#include "runtime/tensor.h"
#include "tools/common.h"
#include "tools/specs.h"

namespace taso {
namespace {

constexpr std::string_view kProgram = "taso-run";

struct Options {
  tools::CommonOptions common;
  std::string model, other, device = "cpu", save_outputs, layouts = "chosen", costs;
  std::vector<std::string> inputs, input_shapes;
  int threads = 1;
  int repeat = 10;
  bool profile = false, as_is = false;
  double rtol = 1e-4, atol = 1e-6;
};

void declare(CLI::App& app, Options& options) {
  tools::add_common_options(app, options.common);
  app.add_option("model", options.model, "The ONNX model")->required()->type_name("MODEL");
  app.add_option("--compare", options.other, "Run this model on the same inputs, in turn, and compare")
      ->type_name("OTHER");
  app.add_option("--device", options.device, "cpu, or reference: the operators' definitions in double (slow)")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of the kernels")
      ->check(tools::whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--layouts", options.layouts,
                 "chosen: the best by the recorded costs, if there are; channels-last: convolutions so, by rule; "
                 "row-major: as in the file")
      ->check(CLI::IsMember({"chosen", "channels-last", "row-major"}))
      ->capture_default_str();
  app.add_option("--costs", options.costs,
                 "Database of costs that taso-opt recorded (default: " + default_cost_database_path() + ")")
      ->type_name("FILE");
  app.add_option("--repeat", options.repeat, "Timed runs of each model")
      ->check(tools::whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_flag(
      "--as-is", options.as_is,
      "Run the operators of the file one by one; otherwise chains of them that one kernel computes are fused first");
  app.add_flag("--profile", options.profile, "Time every kernel");
  app.add_option("--input", options.inputs, "NAME=FILE gives an input as .npy or .pb; random otherwise; repeatable")
      ->type_name("NAME=FILE")
      ->expected(1)
      ->take_all();
  app.add_option("--input-shape", options.input_shapes, "NAME:D,D,.. makes a symbolic shape concrete; repeatable")
      ->type_name("NAME:D,..")
      ->expected(1)
      ->take_all();
  app.add_option("--save-outputs", options.save_outputs, "Write every output as DIR/NAME.npy")->type_name("DIR");
  app.add_option("--check-rtol", options.rtol, "With --compare: allowed difference relative to the largest magnitude")
      ->check(tools::real_number(0))
      ->capture_default_str();
  app.add_option("--check-atol", options.atol, "With --compare: allowed absolute difference besides")
      ->check(tools::real_number(0))
      ->capture_default_str();
}

/// A model made ready to run: its graph, cut at opaque nodes where it is only compared.
struct Subject {
  std::string path;
  Graph graph;
  std::vector<std::string> output_names;
  std::size_t own_outputs = 0;  ///< The outputs after these are compared only.
  std::size_t opaque_nodes = 0;
  std::optional<Executor> executor;
};

using Tensors = std::map<std::string, HostTensor>;

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

Expected<Tensors> read_inputs(const Options& options) {
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

Expected<Subject> load_subject(const std::string& path, const Options& options, const OperatorRegistry& registry,
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
  if (!options.common.quiet)
    for (const std::string& warning : model.warnings()) tools::warn(kProgram, path + ": " + warning);
  Subject subject;
  subject.path = path;
  subject.graph = model.graph();
  for (const TensorDeclaration& output : model.outputs()) subject.output_names.push_back(output.name);
  subject.own_outputs = subject.graph.outputs().size();
  return subject;
}

/// Cuts two models at what cannot be executed, so that the parts between can be compared.
void cut_subjects(Subject& left, Subject& right) {
  auto cuts = cut_alike(left.graph, right.graph, left.output_names, right.output_names);
  for (const auto& [subject, cut] : {std::pair{&left, &cuts.first}, {&right, &cuts.second}}) {
    subject->opaque_nodes = cut->opaque_nodes;
    subject->graph = std::move(cut->graph);
    subject->output_names = std::move(cut->output_names);
    subject->own_outputs = subject->graph.outputs().size();
  }
}

/// What a softmax is taken of, if `value` is one (or a reshaped one): differences show there that it hides.
std::optional<Value> before_softmax(const Graph& graph, Value value) {
  for (;;) {
    const Node& node = graph.node(value.node);
    if (node.is_op("softmax")) return node.inputs[0];
    if (!node.is_op("reshape")) return std::nullopt;
    value = node.inputs[0];
  }
}

/// Adds the tensors before final softmaxes to the outputs of two graphs that are to be compared.
void look_behind_softmax(Subject& left, Subject& right) {
  for (std::size_t i = 0; i < std::min(left.own_outputs, right.own_outputs); ++i) {
    const auto a = before_softmax(left.graph, left.graph.outputs()[i]);
    const auto b = before_softmax(right.graph, right.graph.outputs()[i]);
    if (!a || !b || !(left.graph.type(*a) == right.graph.type(*b))) continue;
    for (const auto& [subject, value] : {std::pair{&left, *a}, {&right, *b}}) {
      subject->graph.add_output(value);
      subject->output_names.push_back(subject->output_names[i] + " before softmax");
    }
  }
}

/// The costs that taso-opt has recorded on this machine, if any are needed and there.
Expected<std::optional<CostDatabase>> open_costs(const Options& options, const Target& target) {
  std::optional<CostDatabase> costs;
  if (options.device != "cpu" || options.layouts != "chosen") return costs;
  const std::string path = options.costs.empty() ? default_cost_database_path() : options.costs;
  std::error_code error;
  if (options.costs.empty() && (path.empty() || !std::filesystem::exists(path, error))) return costs;
  Expected<CostDatabase> opened = CostDatabase::open(path, target.identity(), CostDatabase::Mode::read_only);
  if (opened) {
    costs.emplace(std::move(*opened));
  } else if (!options.costs.empty()) {
    return opened.error();
  } else {
    tools::warn(kProgram, opened.error().to_string() + "; layouts follow the rule");
  }
  return costs;
}

/// The rules by which operators are fused before a model is run: those of taso-opt, as far as they are proved.
Expected<RuleIndex> fusing_rules(const Options& options, const OperatorRegistry& registry) {
  TASO_ASSIGN(const std::vector<std::string> files, tools::rule_files(options.common));
  std::vector<Substitution> rules;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> loaded, load_rules(file, registry));
    for (Substitution& rule : loaded)
      if (!rule.is_axiom && !rule.proofs.empty()) rules.push_back(std::move(rule));
  }
  return RuleIndex(std::move(rules), registry);
}

/// Folds and fuses as every runtime does before it runs a model. The file cannot say it: ONNX has no fused operators.
Status fuse(Subject& subject, const RuleIndex& rules, const OperatorRegistry& registry) {
  Expected<Baseline> baseline = make_baseline(subject.graph, rules, registry);
  if (!baseline) {
    Error error = baseline.error();
    error.where.file = subject.path;
    return error;
  }
  subject.graph = std::move(baseline->graph);
  return {};
}

Expected<std::vector<HostTensor>> run_once(Subject& subject, const std::vector<HostTensor>& inputs) {
  Expected<std::vector<HostTensor>> outputs = subject.executor->run(inputs);
  if (outputs) return outputs;
  Error error = outputs.error();
  error.where.file = subject.path;
  return error;
}

Status build_executor(Subject& subject, const Options& options, const KernelLibrary& library,
                      const std::optional<CostDatabase>& costs, const std::shared_ptr<WeightStore>& weights) {
  ExecutorOptions executor_options{.threads = options.threads,
                                   .channels_last = options.layouts != "row-major",
                                   .weights = weights,
                                   .layouts = nullptr};
  if (costs) {
    // A graph that cannot be run has no layouts either: the executor says why.
    // taso-opt has measured kernels as the original's size made them, which may be another.
    CpuTarget measured(library, {.threads = options.threads, .counting = false, .row_major = false, .cancelled = {}});
    std::vector<int> tenths;
    if (const auto own = costs->find("cache", cache_key(working_set_bytes(subject.graph, measured))))
      tenths.push_back(static_cast<int>(*own));
    for (const CostDatabase::Entry& entry : costs->entries())
      if (entry.kind == "cache") tenths.push_back(static_cast<int>(entry.value));
    tenths.push_back(0);
    for (std::size_t i = 0; i < tenths.size() && !executor_options.layouts; ++i) {
      if (std::find(tenths.begin(), tenths.begin() + static_cast<std::ptrdiff_t>(i), tenths[i]) !=
          tenths.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      measured.set_cached_tenths(tenths[i]);
      if (auto layouts = recorded_layouts(subject.graph, measured, *costs))
        executor_options.layouts = std::move(*layouts);
    }
    if (!executor_options.layouts && options.common.verbosity > 0)
      fmt::print(stderr, "{}: layouts follow the rule: not all kernels have recorded costs\n", subject.path);
  }
  Expected<Executor> executor = Executor::create(subject.graph, library, executor_options);
  if (!executor) {
    Error error = executor.error();
    error.where.file = subject.path;
    return error;
  }
  subject.executor = std::move(*executor);
  return {};
}

/// The given tensors and seeded random ones for the rest, in the executor's order.
Expected<std::vector<HostTensor>> inputs_for(const Subject& subject, const Tensors& given, std::uint64_t seed) {
  std::vector<HostTensor> inputs = subject.executor->random_inputs(seed);
  const std::vector<std::string>& names = subject.executor->input_names();
  for (const auto& [name, tensor] : given) {
    const auto place = std::find(names.begin(), names.end(), name);
    if (place == names.end())
      return bad_input(fmt::format("the model has no input '{}'; its inputs are: {}", name, fmt::join(names, ", ")),
                       {subject.path});
    const auto index = static_cast<std::size_t>(place - names.begin());
    const TensorType& type = subject.executor->input_types()[index];
    if (type.known && !(type == tensor.type()))
      return bad_input(
          fmt::format("input '{}' is {}, a tensor {} was given", name, to_string(type), to_string(tensor.type())),
          {subject.path});
    inputs[index] = tensor.copy();
  }
  return inputs;
}

/// Refuses to compare models that do not take the same inputs and give the same outputs.
Status check_comparable(const Subject& left, const Subject& right) {
  const auto describe = [](const std::vector<std::string>& names, const std::vector<TensorType>& types) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", names[i], to_string(types[i]));
    return text;
  };
  const std::string left_inputs = describe(left.executor->input_names(), left.executor->input_types());
  const std::string right_inputs = describe(right.executor->input_names(), right.executor->input_types());
  if (left_inputs != right_inputs)
    return bad_input(fmt::format("its inputs ({}) are not those of {} ({})", right_inputs, left.path, left_inputs),
                     {right.path});
  const std::string left_outputs = describe(left.output_names, left.executor->output_types());
  const std::string right_outputs = describe(right.output_names, right.executor->output_types());
  if (left_outputs != right_outputs)
    return bad_input(fmt::format("its outputs ({}) are not those of {} ({})", right_outputs, left.path, left_outputs),
                     {right.path});
  return {};
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

Status save_outputs(const std::string& folder, const Subject& subject, const std::vector<HostTensor>& outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return bad_input("cannot make the folder: " + error.message(), {folder});
  std::set<std::string> used;
  for (std::size_t i = 0; i < subject.own_outputs; ++i)
    TASO_RETURN_IF_ERROR(write_npy(folder + "/" + file_name(subject.output_names[i], used), outputs[i]));
  return {};
}

nlohmann::ordered_json to_json(const Measurement& time) {
  return {{"median_us", time.median_us},
          {"minimum_us", time.minimum_us},
          {"spread", time.spread},
          {"samples", time.samples}};
}

nlohmann::ordered_json to_json(const Subject& subject, const Measurement& time) {
  nlohmann::ordered_json json{{"file", subject.path},
                              {"kernels", subject.executor->launches()},
                              {"arena_bytes", subject.executor->arena_bytes()},
                              {"weight_bytes", subject.executor->weight_bytes()},
                              {"time", to_json(time)}};
  for (std::size_t i = 0; i < subject.executor->input_names().size(); ++i)
    json["inputs"].push_back(
        {{"name", subject.executor->input_names()[i]}, {"type", to_string(subject.executor->input_types()[i])}});
  for (std::size_t i = 0; i < subject.own_outputs; ++i)
    json["outputs"].push_back(
        {{"name", subject.output_names[i]}, {"type", to_string(subject.executor->output_types()[i])}});
  return json;
}

std::string time_line(const Subject& subject, const Measurement& time) {
  return fmt::format("{}: {} kernels, median {:.3f} ms, min {:.3f} ms, spread {:.1f} % of {} runs\n", subject.path,
                     subject.executor->launches(), time.median_us * 1e-3, time.minimum_us * 1e-3, time.spread * 100,
                     time.samples);
}

std::string profile_table(const std::vector<KernelProfile>& profile) {
  double total = 0;
  for (const KernelProfile& kernel : profile) total += kernel.median_us;
  total = std::max(total, 1e-9);
  std::string text =
      fmt::format("\n{:>10} {:>6}  {:<22} {:<34} {}\n", "median us", "share", "operator", "implementation", "request");
  std::map<std::string, std::pair<double, int>> by_operator;
  for (const KernelProfile& kernel : profile) {
    const std::size_t start = kernel.key.find("; ");
    text += fmt::format("{:>10.1f} {:>5.1f}%  {:<22} {:<34} {}\n", kernel.median_us, 100 * kernel.median_us / total,
                        kernel.op, kernel.implementation,
                        start == std::string::npos ? kernel.key : kernel.key.substr(start + 2));
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

/// Times the subjects in turn, on inputs of their own copies.
Expected<std::vector<Measurement>> time_subjects(std::vector<Subject>& subjects, const std::vector<HostTensor>& inputs,
                                                 const Options& options) {
  std::vector<Executor*> executors;
  std::vector<std::span<const HostTensor>> spans;
  for (Subject& subject : subjects) {
    executors.push_back(&*subject.executor);
    spans.emplace_back(inputs);
  }
  WholeOptions whole;
  whole.minimum_rounds = whole.maximum_rounds = options.repeat;
  whole.warm_up = options.device == "reference" ? 0 : 1;
  whole.cancelled = [] { return tools::interrupted().load(); };
  return time_interleaved(executors, spans, whole);
}

/// Compares outputs; true if all are within the tolerance.
bool compare_outputs(const Subject& subject, const std::vector<HostTensor>& reference,
                     const std::vector<HostTensor>& actual, const Options& options, std::string& text,
                     nlohmann::ordered_json& json) {
  bool all_within = true;
  text += fmt::format("\n{:<40} {:>12} {:>12} {:>12}\n", "output", "max |ref|", "max abs diff", "relative");
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const Difference difference = compare(actual[i], reference[i], options.rtol, options.atol);
    const bool within = difference.comparable && difference.violations == 0;
    all_within = all_within && within;
    text += fmt::format(
        "{:<40} {:>12.4g} {:>12.3g} {:>12.3g}{}\n", subject.output_names[i], difference.reference_maximum,
        difference.max_absolute, difference.max_relative,
        within ? ""
               : fmt::format("  {} elements differ, the most at {}", difference.violations, difference.worst_index));
    json["outputs"].push_back({{"name", subject.output_names[i]},
                               {"max_reference", difference.reference_maximum},
                               {"max_absolute", difference.max_absolute},
                               {"max_relative", difference.max_relative},
                               {"violations", difference.violations},
                               {"within", within}});
  }
  return all_within;
}

/// The exit code of a run without errors.
Expected<int> run(const Options& options) {
  if (options.device != "cpu" && options.device != "reference")
    return Error{ErrorCode::device_unavailable,
                 fmt::format("--device {}: not available in this build; available: cpu, reference", options.device),
                 {}};
  if (!options.common.json.empty()) TASO_RETURN_IF_ERROR(tools::check_output("--json", options.common.json));
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(options.common));
  const KernelLibrary library(registry, options.device == "cpu" ? KernelSet::cpu : KernelSet::reference);
  TASO_ASSIGN(const Tensors given, read_inputs(options));
  std::vector<Subject> subjects;
  for (const std::string& path : {options.model, options.other}) {
    if (path.empty()) continue;
    TASO_ASSIGN(Subject subject, load_subject(path, options, registry, given));
    subjects.push_back(std::move(subject));
  }
  if (subjects.size() == 2) {
    cut_subjects(subjects[0], subjects[1]);
    look_behind_softmax(subjects[0], subjects[1]);
    if (subjects[0].opaque_nodes > 0 && !options.common.quiet)
      tools::warn(kProgram, fmt::format("{}: {} nodes cannot be executed; the parts between them are compared",
                                        options.model, subjects[0].opaque_nodes));
  }
  const auto weights = std::make_shared<WeightStore>();
  const CpuTarget target(library, {.threads = options.threads, .counting = false, .row_major = false, .cancelled = {}});
  TASO_ASSIGN(const std::optional<CostDatabase> costs, open_costs(options, target));
  tools::catch_interrupts();
  const bool fused = !options.as_is && options.device == "cpu";
  std::vector<HostTensor> inputs;
  std::vector<std::vector<HostTensor>> outputs;
  // What is compared with is what the file says: a fusion that were wrong would show.
  if (fused && subjects.size() == 2) {
    TASO_RETURN_IF_ERROR(build_executor(subjects[0], options, library, {}, std::make_shared<WeightStore>()));
    TASO_ASSIGN(inputs, inputs_for(subjects[0], given, options.common.seed));
    TASO_ASSIGN(std::vector<HostTensor> reference, run_once(subjects[0], inputs));
    outputs.push_back(std::move(reference));
    subjects[0].executor.reset();
  }
  if (fused) {
    TASO_ASSIGN(const RuleIndex rules, fusing_rules(options, registry));
    for (Subject& subject : subjects) TASO_RETURN_IF_ERROR(fuse(subject, rules, registry));
  }
  for (Subject& subject : subjects) TASO_RETURN_IF_ERROR(build_executor(subject, options, library, costs, weights));
  if (subjects.size() == 2) TASO_RETURN_IF_ERROR(check_comparable(subjects[0], subjects[1]));
  TASO_ASSIGN(inputs, inputs_for(subjects[0], given, options.common.seed));
  while (outputs.size() < subjects.size()) {
    TASO_ASSIGN(std::vector<HostTensor> result, run_once(subjects[outputs.size()], inputs));
    outputs.push_back(std::move(result));
  }
  if (!options.save_outputs.empty()) TASO_RETURN_IF_ERROR(save_outputs(options.save_outputs, subjects[0], outputs[0]));
  TASO_ASSIGN(const std::vector<Measurement> times, time_subjects(subjects, inputs, options));

  std::string text;
  nlohmann::ordered_json json{
      {"device", library.device()}, {"threads", options.threads}, {"seed", options.common.seed}, {"fused", fused}};
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    text += time_line(subjects[i], times[i]);
    json["models"].push_back(to_json(subjects[i], times[i]));
    if (!options.profile) continue;
    TASO_ASSIGN(const std::vector<KernelProfile> profile, subjects[i].executor->profile(inputs, options.repeat));
    text += profile_table(profile) + "\n";
    for (const KernelProfile& kernel : profile)
      json["models"][i]["profile"].push_back({{"operator", kernel.op},
                                              {"implementation", kernel.implementation},
                                              {"request", kernel.key},
                                              {"median_us", kernel.median_us},
                                              {"minimum_us", kernel.minimum_us}});
  }
  bool within = true;
  if (subjects.size() == 2) {
    const double ratio = times[0].median_us / std::max(times[1].median_us, 1e-9);
    text += fmt::format("{} takes {:.3f} times as long as {}\n", options.model, ratio, options.other);
    nlohmann::ordered_json& comparison = json["comparison"];
    comparison["time_ratio"] = ratio;
    comparison["rtol"] = options.rtol;
    comparison["atol"] = options.atol;
    within = compare_outputs(subjects[0], outputs[0], outputs[1], options, text, comparison);
    comparison["within"] = within;
  }
  if (!options.common.json.empty()) TASO_RETURN_IF_ERROR(tools::write_text(options.common.json, json.dump(2) + "\n"));
  if (!options.common.quiet && options.common.json != "-") fmt::print("{}", text);
  if (tools::interrupted()) return static_cast<int>(ErrorCode::interrupted);
  if (!within)
    return Error{ErrorCode::check_failed,
                 fmt::format("its outputs differ from those of {} by more than {} * max|reference| + {}", options.model,
                             options.rtol, options.atol),
                 {options.other}};
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) {
  CLI::App app("Runs an ONNX model: times it, profiles it, compares it with another.", std::string(taso::kProgram));
  taso::Options options;
  taso::declare(app, options);
  if (const auto code = taso::tools::parse_command_line(app, argc, argv)) return *code;
  const taso::Expected<int> code = taso::run(options);
  return code ? *code : taso::tools::fail(taso::kProgram, code.error());
}
