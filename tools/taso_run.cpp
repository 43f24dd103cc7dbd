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
#include "onnx_io/external_files.h"
#include "onnx_io/model.h"
#include "onnx_io/original_names.h"
#include "onnx_io/tensor_file.h"
#include "operators/registry.h"
#include "optimizer/baseline.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/layout_choice.h"
#include "optimizer/report.h"
#include "optimizer/runtime_target.h"
#include "runtime/executor.h"
#include "runtime/lowering.h"
#include "runtime/measure.h"
#include "runtime/mpi/transport_mpi.h"
#include "runtime/tensor.h"
#include "support/text_output.h"
#include "tools/common.h"
#include "tools/costs.h"
#include "tools/device.h"
#include "tools/files.h"
#include "tools/proved_specs.h"
#include "tools/run_links.h"
#include "tools/run_model.h"
#include "tools/run_plan.h"

namespace taso {
namespace {

using tools::program_name;
using tools::RunOptions;
using tools::Subject;
using tools::Tensors;

void declare(CLI::App& app, RunOptions& options) {
  tools::FileOptions& files = options.files;
  tools::add_common_options(app, files, options.common, {".op", ".map", ".rules"});
  files.reads(app, "model", options.model, "The ONNX model", "MODEL");
  files.reads(app, "--compare", options.other, "Run this model on the same inputs, in turn, and compare", "OTHER");
  tools::add_device_options(app, options.device, "cpu; reference: the operators' definitions in double (slow)");
  app.add_flag("--print-device", options.print_device,
               "Print the properties of the backend's device, for --device-properties, and end");
  files.writes(app, "--measure-links", options.measure_links,
               "Run no model; under mpirun: measure the ranks and write their topology, for --topology of taso-opt");
  app.add_option("--ranks", options.ranks,
                 "With --measure-links and without mpirun: measure so many threads of this process")
      ->check(tools::whole_number(1, 64))
      ->capture_default_str();
  app.add_flag(
      "--measure-collectives", options.measure_collectives,
      "With --measure-links: measure, too, what transfers of plans take, for --plan-cost time of taso-opt, and "
      "record it in the database of costs");
  app.add_option("--largest-message", options.largest_message,
                 "With --measure-collectives: of messages up to this size")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of the kernels")
      ->check(tools::whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--layouts", options.layouts,
                 "chosen: the best by the recorded costs, if there are; channels-last: convolutions so, by rule; "
                 "row-major: as in the file")
      ->check(CLI::IsMember({"chosen", "channels-last", "row-major"}))
      ->capture_default_str();
  tools::add_streams_option(app, options.streams, "Kernels are placed on at most so many streams of a backend");
  tools::add_cost_option(app, files, options.costs,
                         "Database of costs that taso-opt recorded (default: " + default_cost_database_path() + ")");
  app.add_option("--repeat", options.repeat, "Timed runs of each model")
      ->check(tools::whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--as-is", options.as_is, "Run the operators of the file as they are; otherwise rules fuse them first");
  app.add_flag(
      "--no-groups", options.no_groups,
      "A kernel for each operator: none computes several, and on a device no launch runs several side by side");
  app.add_flag("--profile", options.profile, "Time every kernel; with --no-measure: name every kernel");
  app.add_flag("--no-measure", options.no_measure,
               "Run nothing; say how many launches of kernels a run is planned to be, on the device or on one that "
               "--device-properties describes");
  files.reads(app, "--device-properties", options.device.properties,
              "With --no-measure: plan for the device that FILE describes (--print-device writes it)");
  app.add_flag("--print-graph", options.print_graph,
               "Run nothing; print the graph that would run, as text: fused, or with --as-is as imported");
  app.add_flag("--print-kernels", options.print_kernels,
               "Run nothing; print each of the kernels that a run would have, and what those do that are made for the "
               "model: fused operators, and definitions");
  files.reads(app, "--input", options.inputs, "NAME=FILE gives an input as .npy or .pb; random otherwise; repeatable",
              "NAME=FILE");
  app.add_option("--input-shape", options.input_shapes, "NAME:D,D,.. makes a symbolic shape concrete; repeatable")
      ->type_name("NAME:D,..")
      ->expected(1)
      ->take_all();
  app.add_flag("--check", options.check,
               "Compare the outputs with float64 (--device reference, slow): by the relative L2 norm, at most 1e-5 "
               "with --math fp32, 2e-3 with tf32, 1e-2 with fp16, 8e-2 with bf16");
  files.declare(app.add_option("--references", options.references,
                               "With --check: read the outputs in float64 from DIR/NAME.npy, as --device reference "
                               "--save-outputs DIR wrote them with the same --seed, and do not compute them")
                    ->type_name("DIR"),
                [&options](tools::FileClaims& claims, const std::string& name) {
                  return claims.reads_all(name, options.references, {".npy"});
                });
  files.reads(
      app, "--plan", options.plan,
      "Run the model on several ranks, as this plan of taso-opt --devices says: the processes of mpirun, or else "
      "threads of this one",
      "FILE");
  app.add_option("--messages", options.messages,
                 "With --plan: device: ranks send tensors from device to device (NCCL, between CUDA devices); host: by "
                 "way of the host; auto: from device to device if all ranks can")
      ->check(CLI::IsMember({"auto", "device", "host"}))
      ->capture_default_str();
  files.writes(app, "--trace", options.trace, "With --plan: when each rank ran what, for chrome://tracing", "FILE");
  files.fills(app, "--save-outputs", options.save_outputs, "Write every output as DIR/NAME.npy");
  files.fills(app, "--save-inputs", options.save_inputs, "Write every input, random ones too, as DIR/NAME.npy");
  app.add_option(
         "--check-rtol", options.rtol,
         "With --compare: allowed difference relative to the largest magnitude (default: 1e-4 with --math fp32, "
         "5e-3 with tf32, 2e-2 with fp16, 0.16 with bf16)")
      ->check(tools::real_number(0));
  app.add_option("--check-atol", options.atol, "With --compare: allowed absolute difference besides")
      ->check(tools::real_number(0))
      ->capture_default_str();
}

/// Cuts two models at what cannot be executed, so that the parts between can be compared.
void cut_subjects(Subject& left, Subject& right) {
  auto cuts = cut_alike(left.graph, right.graph, left.output_names, right.output_names);
  for (const auto& [subject, cut] : {std::pair{&left, &cuts.first}, {&right, &cuts.second}}) {
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
Expected<std::optional<CostDatabase>> open_costs(const RunOptions& options, const Target& target) {
  std::optional<CostDatabase> costs;
  if (options.device.device == "reference" || options.layouts != "chosen") return costs;
  const std::string path = options.costs.empty() ? default_cost_database_path() : options.costs;
  std::error_code error;
  if (options.costs.empty() && (path.empty() || !std::filesystem::exists(path, error))) return costs;
  Expected<CostDatabase> opened = CostDatabase::open(path, target.identity(), CostDatabase::Mode::read_only);
  if (opened) {
    costs.emplace(std::move(*opened));
  } else if (!options.costs.empty()) {
    return opened.error();
  } else {
    tools::warn(program_name, opened.error().to_string() + "; layouts follow the rule");
  }
  return costs;
}

Expected<std::vector<HostTensor>> run_once(Subject& subject, const std::vector<HostTensor>& inputs) {
  Expected<std::vector<HostTensor>> outputs = subject.executor->run(inputs);
  if (outputs) return outputs;
  Error error = outputs.error();
  error.where.file = subject.path;
  return error;
}

/// What models are planned by.
struct Costs {
  std::optional<CostDatabase> kernels;  ///< For layouts.
  std::shared_ptr<StepCosts> steps;     ///< For streams; null without a backend.
  std::shared_ptr<std::vector<std::string>> fallbacks = std::make_shared<std::vector<std::string>>();
};

/// With layouts of recorded costs, if they are there.
ExecutorOptions executor_options_of(const Subject& subject, const RunOptions& options, const tools::Device& device,
                                    const Costs& all_costs, const std::shared_ptr<WeightStore>& weights) {
  const std::optional<CostDatabase>& costs = all_costs.kernels;
  ExecutorOptions executor_options{.threads = options.threads,
                                   .channels_last = options.layouts != "row-major",
                                   .weights = weights,
                                   .layouts = nullptr,
                                   .float_storage = device.float_storage,
                                   .streams = tools::streams_of(options.streams, device),
                                   .side_by_side = !options.no_groups,
                                   .groups = !options.no_groups,
                                   .step_costs = all_costs.steps,
                                   .fallbacks = all_costs.fallbacks};
  if (costs) {
    // A graph that cannot be run has no layouts either: the executor says why.
    // taso-opt has measured kernels as the original's size made them, which may be another.
    RuntimeTarget measured(device.library, {.threads = options.threads,
                                            .counting = false,
                                            .row_major = false,
                                            .float_storage = device.float_storage,
                                            .cancelled = {}});
    std::vector<int> tenths;
    if (const auto own = costs->find("cache", cache_key(working_set_bytes(subject.graph, measured))))
      tenths.push_back(static_cast<int>(*own));
    for (const CostDatabase::Entry& entry : costs->entries())
      if (entry.kind == "cache") tenths.push_back(static_cast<int>(entry.value));
    tenths.push_back(0);
    bool priced = false;
    for (std::size_t i = 0; i < tenths.size() && !priced; ++i) {
      if (std::find(tenths.begin(), tenths.begin() + static_cast<std::ptrdiff_t>(i), tenths[i]) !=
          tenths.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      measured.set_cached_tenths(tenths[i]);
      if (auto recorded = recorded_layouts(subject.graph, measured, *costs)) {
        priced = recorded->priced;
        executor_options.layouts = std::move(recorded->layouts);
      }
    }
    if (!priced && options.common.verbosity > 0)
      fmt::print(stderr, "{}: layouts follow the rule: not all kernels have recorded costs\n", subject.path);
  }
  return executor_options;
}

Error in_model(Error error, const Subject& subject) {
  error.where.file = subject.path;
  return error;
}

/// `measured`: costs of steps that had to be measured first.
Status build_executor(Subject& subject, const RunOptions& options, const tools::Device& device, const Costs& costs,
                      const std::shared_ptr<WeightStore>& weights, std::size_t& measured) {
  const ExecutorOptions executor_options = executor_options_of(subject, options, device, costs, weights);
  if (costs.steps) {
    const Expected<std::size_t> count = measure_step_costs(subject.graph, device.library, executor_options);
    if (!count) return in_model(count.error(), subject);
    measured += *count;
  }
  Expected<Executor> executor = Executor::create(subject.graph, device.library, executor_options);
  if (!executor) return in_model(executor.error(), subject);
  subject.executor = std::move(*executor);
  return {};
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
                              {"ill_typed_nodes", subject.ill_typed_nodes},
                              {"time", to_json(time)}};
  if (subject.executor->on_device()) {
    json["on_host"] = subject.executor->declined();
    json["streams"] = subject.executor->schedule().streams;
  }
  for (std::size_t i = 0; i < subject.executor->input_names().size(); ++i)
    json["inputs"].push_back(
        {{"name", subject.executor->input_names()[i]}, {"type", to_string(subject.executor->input_types()[i])}});
  for (std::size_t i = 0; i < subject.own_outputs; ++i)
    json["outputs"].push_back(
        {{"name", subject.output_names[i]}, {"type", to_string(subject.executor->output_types()[i])}});
  return json;
}

std::string time_line(const Subject& subject, const Measurement& time) {
  const std::vector<std::string> declined = subject.executor->declined();
  const std::string on_host =
      declined.empty() ? ""
                       : fmt::format(" ({} on the host: {})", declined.size(),
                                     fmt::join(std::set<std::string>(declined.begin(), declined.end()), ", "));
  const std::size_t streams = subject.executor->schedule().streams;
  return fmt::format("{}: {} kernels{}{}, median {}, min {}, spread {:.1f} % of {} runs\n", subject.path,
                     subject.executor->launches(), on_host, streams > 1 ? fmt::format(" on {} streams", streams) : "",
                     duration_text(time.median_us * 1e-6), duration_text(time.minimum_us * 1e-6), time.spread * 100,
                     time.samples);
}

/// Times the subjects in turn, on inputs of their own copies.
Expected<std::vector<Measurement>> time_subjects(std::vector<Subject>& subjects, const std::vector<HostTensor>& inputs,
                                                 const RunOptions& options) {
  std::vector<Executor*> executors;
  std::vector<std::span<const HostTensor>> spans;
  for (Subject& subject : subjects) {
    executors.push_back(&*subject.executor);
    spans.emplace_back(inputs);
  }
  WholeOptions whole;
  whole.minimum_rounds = whole.maximum_rounds = options.repeat;
  whole.warm_up = options.device.device == "reference" ? 0 : 1;
  whole.cancelled = [] { return tools::interrupted().load(); };
  return time_interleaved(executors, spans, whole);
}

/// Compares outputs; true if all are within the tolerance.
bool compare_outputs(const Subject& subject, const std::vector<HostTensor>& reference,
                     const std::vector<HostTensor>& actual, const RunOptions& options, std::string& text,
                     nlohmann::ordered_json& json) {
  bool all_within = true;
  text += fmt::format("\n{:<40} {:>12} {:>12} {:>12}\n", "output", "max |ref|", "max abs diff", "relative");
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const Difference difference = compare(actual[i], reference[i], options.tolerance(subject.graph), options.atol);
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

/// The models that are run, cut to what both can execute if there are two.
Expected<std::vector<Subject>> load_subjects(const RunOptions& options, const OperatorRegistry& registry,
                                             const Tensors& given) {
  std::vector<Subject> subjects;
  for (const std::string& path : {options.model, options.other}) {
    if (path.empty()) continue;
    TASO_ASSIGN(Subject subject, tools::load_subject(path, options, registry, given));
    subjects.push_back(std::move(subject));
  }
  TASO_RETURN_IF_ERROR(tools::describe_carried(subjects[0], options));
  if (subjects.size() < 2) return subjects;
  cut_subjects(subjects[0], subjects[1]);
  look_behind_softmax(subjects[0], subjects[1]);
  return subjects;
}

/// Inputs, and what every subject makes of them.
struct Values {
  std::vector<HostTensor> inputs;
  std::vector<std::vector<HostTensor>> outputs;
  std::size_t measured_steps = 0;                             ///< Costs of steps that had to be measured first.
  std::shared_ptr<const std::vector<std::string>> fallbacks;  ///< As for ExecutorOptions.
};

/// Fuses the subjects, builds their executors and runs each once.
Expected<Values> run_subjects(std::vector<Subject>& subjects, const RunOptions& options,
                              const OperatorRegistry& registry, const tools::Device& device, const Tensors& given) {
  const RuntimeTarget target(device.library, {.threads = options.threads,
                                              .counting = false,
                                              .row_major = false,
                                              .float_storage = device.float_storage,
                                              .cancelled = {}});
  Costs costs;
  TASO_ASSIGN(costs.kernels, open_costs(options, target));
  TASO_ASSIGN(costs.steps, tools::keep_step_costs(device.library, options.costs, CostDatabase::Mode::read_write,
                                                  tools::program_name));
  tools::catch_interrupts();
  Values values;
  values.fallbacks = costs.fallbacks;
  // What is compared with is what the file says: a fusion that were wrong would show.
  if (options.fuses() && subjects.size() == 2) {
    TASO_RETURN_IF_ERROR(build_executor(subjects[0], options, device,
                                        Costs{.kernels = {}, .steps = {}, .fallbacks = costs.fallbacks},
                                        std::make_shared<WeightStore>(), values.measured_steps));
    TASO_ASSIGN(values.inputs,
                tools::inputs_for(subjects[0], subjects[0].executor->random_inputs(options.common.seed), given));
    TASO_ASSIGN(std::vector<HostTensor> reference, run_once(subjects[0], values.inputs));
    values.outputs.push_back(std::move(reference));
    subjects[0].executor.reset();
  }
  if (options.fuses()) {
    TASO_ASSIGN(const RuleIndex rules, tools::fusing_rules(options, registry));
    for (Subject& subject : subjects) TASO_RETURN_IF_ERROR(tools::fuse(subject.graph, subject.path, rules, registry));
  }
  const auto weights = std::make_shared<WeightStore>();
  for (Subject& subject : subjects)
    TASO_RETURN_IF_ERROR(build_executor(subject, options, device, costs, weights, values.measured_steps));
  if (subjects.size() == 2) TASO_RETURN_IF_ERROR(check_comparable(subjects[0], subjects[1]));
  TASO_ASSIGN(values.inputs,
              tools::inputs_for(subjects[0], subjects[0].executor->random_inputs(options.common.seed), given));
  while (values.outputs.size() < subjects.size()) {
    TASO_ASSIGN(std::vector<HostTensor> result, run_once(subjects[values.outputs.size()], values.inputs));
    values.outputs.push_back(std::move(result));
  }
  return values;
}

Status save(const Subject& subject, const Values& values, const RunOptions& options) {
  if (!options.save_outputs.empty())
    TASO_RETURN_IF_ERROR(tools::save_tensors(
        options.save_outputs, std::span<const std::string>(subject.output_names).first(subject.own_outputs),
        values.outputs[0]));
  if (!options.save_inputs.empty())
    TASO_RETURN_IF_ERROR(tools::save_tensors(options.save_inputs, subject.executor->input_names(), values.inputs));
  return {};
}

/// The time of a subject, and of its kernels with --profile.
Status report_time(Subject& subject, const Measurement& time, const Values& values, const RunOptions& options,
                   std::string& text, nlohmann::ordered_json& json) {
  text += time_line(subject, time);
  json["models"].push_back(to_json(subject, time));
  if (!options.profile) return {};
  TASO_ASSIGN(const std::vector<KernelProfile> profile, subject.executor->profile(values.inputs, options.repeat));
  text += tools::profile_table(profile) + "\n";
  for (const KernelProfile& kernel : profile)
    json["models"].back()["profile"].push_back({{"operator", kernel.op},
                                                {"implementation", kernel.implementation},
                                                {"request", kernel.key},
                                                {"median_us", kernel.median_us},
                                                {"minimum_us", kernel.minimum_us},
                                                {"stream", kernel.stream}});
  return {};
}

/// Compares two subjects; true if outputs are within the tolerance.
bool report_comparison(const Subject& subject, const std::vector<Measurement>& times, const Values& values,
                       const RunOptions& options, std::string& text, nlohmann::ordered_json& json) {
  const double ratio = times[0].median_us / std::max(times[1].median_us, 1e-9);
  text += fmt::format("{} takes {:.3f} times as long as {}\n", options.model, ratio, options.other);
  json["time_ratio"] = ratio;
  json["rtol"] = options.tolerance(subject.graph);
  json["atol"] = options.atol;
  const bool within = compare_outputs(subject, values.outputs[0], values.outputs[1], options, text, json);
  json["within"] = within;
  return within;
}

Status print_device(const KernelLibrary& library, const RunOptions& options) {
  if (!library.backend())
    return Error{
        ErrorCode::usage, fmt::format("--print-device: --device {} has no properties", options.device.device), {}};
  TASO_ASSIGN(const std::string properties, library.backend()->device_properties());
  fmt::print("{}\n", properties);
  return {};
}

/// Prints the graph that would run.
Status print_graph(const RunOptions& options, const OperatorRegistry& registry) {
  for (const auto& [name, given] : {std::pair("--compare", !options.other.empty()),
                                    {"--check", options.check},
                                    {"--profile", options.profile},
                                    {"--json", !options.common.json.empty()},
                                    {"--save-outputs", !options.save_outputs.empty()},
                                    {"--save-inputs", !options.save_inputs.empty()}})
    if (given) return Error{ErrorCode::usage, fmt::format("{}: --print-graph runs nothing; leave it out", name), {}};
  TASO_ASSIGN(const Tensors given, tools::read_inputs(options));
  TASO_ASSIGN(Subject subject, tools::load_subject(options.model, options, registry, given));
  if (options.fuses()) {
    TASO_ASSIGN(const RuleIndex rules, tools::fusing_rules(options, registry));
    TASO_RETURN_IF_ERROR(tools::fuse(subject.graph, subject.path, rules, registry));
  }
  fmt::print("{}", annotated_text(subject.graph, subject.original_nodes));
  return {};
}

/// Says what a run would launch, by kernel with --profile.
Status print_planned_launches(const RunOptions& options, const OperatorRegistry& registry,
                              const tools::Device& device) {
  TASO_ASSIGN(const Tensors given, tools::read_inputs(options));
  TASO_ASSIGN(std::vector<Subject> subjects, load_subjects(options, registry, given));
  Subject& subject = subjects[0];
  if (options.fuses()) {
    TASO_ASSIGN(const RuleIndex rules, tools::fusing_rules(options, registry));
    TASO_RETURN_IF_ERROR(tools::fuse(subject.graph, subject.path, rules, registry));
  }
  const RuntimeTarget target(device.library, {.threads = options.threads,
                                              .counting = false,
                                              .row_major = false,
                                              .float_storage = device.float_storage,
                                              .cancelled = {}});
  Costs costs;
  TASO_ASSIGN(costs.kernels, open_costs(options, target));
  TASO_ASSIGN(costs.steps, tools::keep_step_costs(device.library, options.costs, CostDatabase::Mode::read_only,
                                                  tools::program_name));
  const Expected<PlannedRun> planned =
      plan_launches(subject.graph, device.library, executor_options_of(subject, options, device, costs, nullptr));
  if (!planned) return in_model(planned.error(), subject);
  if (!options.common.json.empty()) {
    nlohmann::ordered_json json{{"device", device.library.device()}, {"math", options.device.math}};
    json["models"].push_back(tools::planned_json(subject.path, *planned));
    TASO_RETURN_IF_ERROR(write_text(options.common.json, json.dump(2) + "\n"));
  }
  if (options.common.quiet || options.files.claims().uses_stdout()) return {};
  return write_text("-", options.print_kernels ? tools::kernels_text(subject.path, *planned)
                                               : tools::planned_text(subject.path, *planned, options.profile));
}

/// What is wrong with a command line that runs nothing.
Status check_unmeasured(const RunOptions& options) {
  if (!options.no_measure && !options.print_kernels) {
    if (options.device.properties.empty()) return {};
    return Error{
        ErrorCode::usage, "--device-properties: a device that is not there runs nothing; give --no-measure", {}};
  }
  for (const auto& [name, given] : {std::pair("--compare", !options.other.empty()),
                                    {"--check", options.check},
                                    {"--print-graph", options.print_kernels && options.print_graph},
                                    {"--plan", !options.plan.empty()},
                                    {"--save-outputs", !options.save_outputs.empty()},
                                    {"--save-inputs", !options.save_inputs.empty()}})
    if (given)
      return Error{ErrorCode::usage,
                   fmt::format("{}: {} runs nothing; leave it out", name,
                               options.print_kernels ? "--print-kernels" : "--no-measure"),
                   {}};
  return {};
}

/// What is wrong with a command line beyond single options.
Status check_options(const RunOptions& options) {
  const auto wrong = [](const char* message) { return Error{ErrorCode::usage, message, {}}; };
  if (options.model.empty() && !options.print_device) return wrong("MODEL is required");
  if (options.check && !options.other.empty())
    return wrong("--check: one model is compared with float64; leave out --compare");
  TASO_RETURN_IF_ERROR(check_unmeasured(options));
  if (!options.references.empty() && !options.check) return wrong("--references: it goes with --check");
  if (options.plan.empty() && !options.trace.empty()) return wrong("--trace: runs with a --plan are traced");
  if (options.plan.empty() && options.messages != "auto") return wrong("--messages: it goes with --plan");
  if (options.messages == "device" && options.streams.value_or(1) > 1)
    return wrong("--streams: messages from device to device are in one stream; leave it out, or give --messages host");
  if (options.measure_collectives) return wrong("--measure-collectives: it goes with --measure-links");
  if (options.ranks != 1) return wrong("--ranks: it goes with --measure-links");
  TASO_RETURN_IF_ERROR(tools::check_streams(options.streams, options.device));
  if (options.plan.empty()) return {};
  for (const auto& [name, given] : {std::pair("--compare", !options.other.empty()),
                                    {"--print-graph", options.print_graph},
                                    {"--print-device", options.print_device},
                                    {"--input-shape", !options.input_shapes.empty()},
                                    {"--costs", !options.costs.empty()}})
    if (given) return Error{ErrorCode::usage, fmt::format("{}: does not go with --plan; leave one out", name), {}};
  return {};
}

/// The same on each of several processes.
Expected<int> run_as_rank(RunOptions& options, Transport& ranks) {
  std::optional<OperatorRegistry> registry;
  std::optional<tools::Device> device;
  const Status ready = [&]() -> Status {
    TASO_RETURN_IF_ERROR(check_options(options));
    if (options.plan.empty())
      return Error{ErrorCode::usage, "mpirun runs a model as a plan says: give one with --plan", {}};
    if (ranks.rank() == 0) {
      TASO_RETURN_IF_ERROR(options.files.claim_all());
      TASO_RETURN_IF_ERROR(tools::claim_external_data(options));
    }
    TASO_ASSIGN(registry, tools::load_proved_operators(options.common));
    TASO_ASSIGN(device, tools::open_device_of_rank(options.device, *registry, ranks.rank_on_host(), options.costs));
    return {};
  }();
  TASO_RETURN_IF_ERROR(agree(ranks, ready));
  tools::catch_interrupts();
  return tools::run_plan(options, *registry, *device, ranks);
}

/// The exit code of a run without errors.
Expected<int> run(RunOptions& options) {
  TASO_RETURN_IF_ERROR(check_options(options));
  TASO_RETURN_IF_ERROR(options.files.claim_all());
  TASO_RETURN_IF_ERROR(tools::claim_external_data(options));
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_proved_operators(options.common));
  if (options.print_graph) {
    TASO_RETURN_IF_ERROR(print_graph(options, registry));
    return 0;
  }
  if (!options.plan.empty()) {
    tools::catch_interrupts();
    return tools::run_plan_by_threads(options, registry);
  }
  TASO_ASSIGN(const tools::Device device, tools::open_device(options.device, registry, true, options.costs));
  const tools::RemarksAtEnd remarks(device, options.common);
  if (options.print_device) {
    TASO_RETURN_IF_ERROR(print_device(device.library, options));
    return 0;
  }
  if (options.no_measure || options.print_kernels) {
    TASO_RETURN_IF_ERROR(print_planned_launches(options, registry, device));
    return 0;
  }
  TASO_ASSIGN(const std::shared_ptr<RecordedChoices> choices,
              tools::keep_choices(device.library, options.costs, tools::program_name));
  TASO_ASSIGN(const Tensors given, tools::read_inputs(options));
  TASO_ASSIGN(std::vector<Subject> subjects, load_subjects(options, registry, given));
  TASO_RETURN_IF_ERROR(tools::claim_tensors(options, subjects[0]));
  Graph as_imported;
  if (options.check) as_imported = subjects[0].graph;
  TASO_ASSIGN(const Values values, run_subjects(subjects, options, registry, device, given));
  TASO_RETURN_IF_ERROR(save(subjects[0], values, options));
  TASO_ASSIGN(const std::vector<Measurement> times, time_subjects(subjects, values.inputs, options));

  std::string text;
  nlohmann::ordered_json json{{"device", device.library.device()},
                              {"math", options.device.math},
                              {"threads", options.threads},
                              {"seed", options.common.seed},
                              {"fused", options.fuses()}};
  for (std::size_t i = 0; i < subjects.size(); ++i)
    TASO_RETURN_IF_ERROR(report_time(subjects[i], times[i], values, options, text, json));
  const bool within =
      subjects.size() < 2 || report_comparison(subjects[0], times, values, options, text, json["comparison"]);
  bool correct = true;
  if (options.check) {
    TASO_ASSIGN(correct, tools::check_outputs(as_imported, subjects[0], values.inputs, values.outputs[0], options,
                                              registry, text, json["check"]));
  }
  if (choices) json["tuning"] = {{"choices", choices->tuning().choices}, {"seconds", choices->tuning().seconds}};
  if (device.library.backend()) {
    json["measured_steps"] = values.measured_steps;
    json["fallbacks"] = *values.fallbacks;
  }
  for (const std::string& fallback : *values.fallbacks) text += fallback + "\n";
  if (!options.common.json.empty()) TASO_RETURN_IF_ERROR(write_text(options.common.json, json.dump(2) + "\n"));
  if (!options.common.quiet && !options.files.claims().uses_stdout()) TASO_RETURN_IF_ERROR(write_text("-", text));
  if (tools::interrupted()) return static_cast<int>(ErrorCode::interrupted);
  if (!within)
    return Error{ErrorCode::check_failed,
                 fmt::format("its outputs differ from those of {} by more than {} * max|reference| + {}", options.model,
                             options.tolerance(subjects[0].graph), options.atol),
                 {options.other}};
  if (!correct)
    return Error{ErrorCode::check_failed,
                 fmt::format("its outputs differ from float64 by a relative L2 norm of more than {}",
                             tools::tolerance_of(options.device.math, as_imported).l2),
                 {options.model}};
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) {
  const std::string program(taso::tools::program_name);
  std::unique_ptr<taso::Transport> ranks;
  if (taso::started_by_mpi()) {
    taso::MpiOptions mpi;
    mpi.report = [program](const taso::Error& error) { (void)taso::tools::fail(program, error); };
    taso::Expected<std::unique_ptr<taso::Transport>> opened = taso::open_mpi_transport(argc, argv, std::move(mpi));
    if (!opened) return taso::tools::fail(program, opened.error());
    ranks = std::move(*opened);
  }
  const bool speaks = ranks == nullptr || ranks->rank() == 0;
  CLI::App app("Runs an ONNX model: times it, profiles it, compares it with another.", program);
  taso::tools::RunOptions options;
  taso::declare(app, options);
  std::optional<int> ended;
  {
    const taso::tools::Silence silence(!speaks);
    ended = taso::tools::parse_command_line(app, options.files, argc, argv, false);
  }
  if (ranks != nullptr) {
    // Command lines may differ: who ends here must not be waited for.
    const std::string asked = ended ? fmt::format("an end with code {}", *ended) : "a run";
    if (const auto same = taso::agree_on(*ranks, "what the command line asks for", asked); !same) {
      const taso::Error error{taso::ErrorCode::usage, same.error().message, {}};
      return speaks && ended.value_or(0) == 0 ? taso::tools::fail(program, error) : error.exit_code();
    }
  }
  if (ended) return *ended;
  const taso::Expected<int> code = !options.measure_links.empty() ? taso::tools::measure_links(options, ranks.get())
                                   : ranks != nullptr && ranks->size() > 1 ? taso::run_as_rank(options, *ranks)
                                                                           : taso::run(options);
  if (code) return *code;
  const bool said = ranks != nullptr && ranks->failed();
  return speaks && !said ? taso::tools::fail(program, code.error()) : code.error().exit_code();
}
