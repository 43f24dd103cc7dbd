#include "tools/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "graph/rewrite.h"
#include "optimizer/report.h"
#include "partition/expand.h"
#include "partition/plan_document.h"
#include "partition/proved_strategies.h"
#include "partition/restore_plan.h"
#include "runtime/measure.h"
#include "runtime/rank_executor.h"
#include "runtime/thread_transport.h"
#include "runtime/weight_slices.h"
#include "support/file_identity.h"
#include "support/process_memory.h"
#include "support/text_output.h"
#include "tools/specs.h"

namespace taso::tools {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

/// What one rank has to tell rank 0.
struct RankReport {
  std::vector<double> run_us;  ///< Of each timed run, from when all had begun.
  RankMemory memory;
  ProcessMemory process;  ///< Of the rank's process, when it has run.
  std::size_t kernels = 0;
  MovedPayload moved;
  std::vector<KernelProfile> profile;
  ordered_json trace;  ///< Events of the last run.
};

MovedBytes sum_of(const MovedPayload& moved) {
  MovedBytes all;
  for (const MovedBytes& bytes : moved) {
    all.sent += bytes.sent;
    all.received += bytes.received;
  }
  return all;
}

ordered_json to_json(const RankReport& report) {
  ordered_json json{{"run_us", report.run_us},
                    {"weights", report.memory.weights},
                    {"arena", report.memory.arena},
                    {"temporaries", report.memory.temporaries},
                    {"resident", report.process.resident},
                    {"peak", report.process.peak},
                    {"kernels", report.kernels},
                    {"moved", ordered_json::array()},
                    {"profile", ordered_json::array()},
                    {"trace", report.trace}};
  for (const MovedBytes& bytes : report.moved) json["moved"].push_back({bytes.sent, bytes.received});
  for (const KernelProfile& kernel : report.profile)
    json["profile"].push_back({kernel.op, kernel.implementation, kernel.key, kernel.median_us, kernel.minimum_us});
  return json;
}

RankReport report_of(const ordered_json& json) {
  RankReport report;
  report.run_us = json["run_us"].get<std::vector<double>>();
  report.memory = {json["weights"], json["arena"], json["temporaries"]};
  report.process = {json["resident"], json["peak"]};
  report.kernels = json["kernels"];
  for (const ordered_json& one : json["moved"]) report.moved.push_back({one[0], one[1]});
  for (const ordered_json& one : json["profile"]) report.profile.push_back({one[0], one[1], one[2], 0, one[3], one[4]});
  report.trace = json["trace"];
  return report;
}

class PlanRun {
 public:
  PlanRun(RunOptions options, const OperatorRegistry& registry, const Device& device, Transport& transport)
      : options_(std::move(options)), registry_(registry), device_(device), transport_(transport) {
    if (!leads()) options_.common.quiet = true;
    return_large_memory_at_once();
  }

  Expected<int> run() {
    TASO_RETURN_IF_ERROR(agree_on_job());
    TASO_RETURN_IF_ERROR(connect());
    TASO_RETURN_IF_ERROR(agree(transport_, prepare()));
    return_free_memory();
    RankReport own;
    if (const Status status = execute(own); !status) {
      transport_.fail(status.error());
      return status.error();
    }
    TASO_ASSIGN(const std::vector<std::string> texts, transport_.all_gather(to_json(own).dump()));
    std::vector<RankReport> reports;
    if (leads())
      for (const std::string& text : texts) reports.push_back(report_of(ordered_json::parse(text)));
    TASO_RETURN_IF_ERROR(agree(transport_, leads() ? conclude(reports) : Status()));
    return interrupted() ? static_cast<int>(ErrorCode::interrupted) : 0;
  }

 private:
  [[nodiscard]] bool leads() const { return transport_.rank() == 0; }

  /// That all ranks have been started for the same.
  Status agree_on_job() {
    TASO_RETURN_IF_ERROR(agree_on(transport_, "the version of the program", TASO_VERSION));
    std::string model, plan;
    const Status own = [&]() -> Status {
      TASO_ASSIGN(model_, identify_file(options_.model));
      TASO_ASSIGN(const FileIdentity plan_file, identify_file(options_.plan));
      model = fmt::format("{} ({})", model_.name, model_.hash.to_string());
      plan = fmt::format("{} ({})", plan_file.name, plan_file.hash.to_string());
      return {};
    }();
    TASO_RETURN_IF_ERROR(agree(transport_, own));
    TASO_RETURN_IF_ERROR(agree_on(transport_, "the model", model));
    TASO_RETURN_IF_ERROR(agree_on(transport_, "the plan", plan));
    return agree_on(transport_, "the options",
                    fmt::format("--seed {} --repeat {} --threads {} --streams {} --messages {}{}{}{}{}",
                                options_.common.seed, options_.repeat, options_.threads, streams(), options_.messages,
                                options_.as_is ? " --as-is" : "", options_.no_groups ? " --no-groups" : "",
                                options_.profile ? " --profile" : "", options_.trace.empty() ? "" : " --trace"));
  }

  /// Of each rank's device; one unless the user says otherwise.
  [[nodiscard]] std::size_t streams() const { return options_.streams.value_or(1); }

  /// Finds out how tensors go from rank to rank.
  Status connect() {
    if (options_.messages == "auto" && streams() > 1) return {};  // device messages are in one stream
    if (options_.messages == "host" || (options_.messages == "auto" && !device_.library.backend())) return {};
    TASO_ASSIGN(devices_, connect_devices(transport_, device_.library));
    if (devices_.messages || options_.messages == "auto") return {};
    return Error{ErrorCode::device_unavailable,
                 "--messages device: ranks have no messages from device to device: " + devices_.reason,
                 {}};
  }

  Status prepare() {
    std::vector<HostTensor> inputs;
    TASO_ASSIGN(const RankGraph rank, read_program(inputs));
    // Only then weights are laid out: what the program was made from takes memory, too.
    return_free_memory();
    ExecutorOptions executor_options;
    executor_options.threads = options_.threads;
    executor_options.channels_last = options_.layouts != "row-major";
    executor_options.float_storage = device_.float_storage;
    executor_options.streams = streams();
    executor_options.side_by_side = executor_options.groups = !options_.no_groups;
    TASO_ASSIGN(RankExecutor made,
                RankExecutor::create(rank, transport_, device_.library, executor_options, devices_.messages.get()));
    executor_.emplace(std::move(made));
    return executor_->set_inputs(std::move(inputs));
  }

  /// The plan, if it is one of this model and for as many ranks as there are.
  Expected<PlanDocument> read_plan() {
    TASO_ASSIGN(PlanDocument document, load_plan_document(options_.plan));
    if (document.model.hash != model_.hash || document.model.bytes != model_.bytes)
      return bad_input(
          fmt::format("the plan is of another model: of {} with {} bytes and hash {}, where {} has {} and {}",
                      document.model.name, document.model.bytes, document.model.hash.to_string(), options_.model,
                      model_.bytes, model_.hash.to_string()),
          {options_.plan});
    if (document.mesh.devices() != transport_.size())
      return Error{ErrorCode::usage,
                   fmt::format("--plan {}: the plan is for {} devices, and there {} {}; start as many: mpirun -np {} "
                               "taso-run {} --plan {}",
                               options_.plan, document.mesh.devices(), transport_.size() == 1 ? "is" : "are",
                               transport_.size() == 1 ? "one rank" : fmt::format("{} ranks", transport_.size()),
                               document.mesh.devices(), options_.model, options_.plan),
                   {}};
    planned_memory_ = document.sums.memory;
    return document;
  }

  /// The rank's program, and the inputs of the model.
  Expected<RankGraph> read_program(std::vector<HostTensor>& inputs) {
    TASO_ASSIGN(const PlanDocument document, read_plan());
    TASO_ASSIGN(const Tensors given, read_inputs(options_));
    ImportOptions import;
    import.input_shapes = document.input_shapes;
    import.symbol_sizes = document.symbols;
    TASO_ASSIGN(const Model model, Model::load(options_.model, registry_, import));
    subject_ = subject_of(options_.model, model, options_);
    normalize(subject_.graph, registry_);
    TASO_RETURN_IF_ERROR(describe_carried(subject_, options_));
    if (leads()) TASO_RETURN_IF_ERROR(claim_tensors(options_, subject_));
    TASO_ASSIGN(std::vector<HostTensor> random, random_inputs(subject_.graph, registry_, options_.common.seed));
    TASO_ASSIGN(inputs, inputs_for(subject_, std::move(random), given));
    for (const NodeId id : subject_.graph.inputs()) input_names_.push_back(subject_.graph.node(id).name);
    TASO_ASSIGN(RankGraph rank, own_part(document, node_names(model)));
    if (options_.fuses()) {
      TASO_ASSIGN(const RuleIndex rules, fusing_rules(options_, registry_));
      TASO_RETURN_IF_ERROR(fuse(rank.graph, options_.model, rules, registry_));
    }
    predict(document);
    forget_model();
    return rank;
  }

  /// What the plan's file says that a step takes: by the programs of ranks, or else the costs that the plan adds up.
  void predict(const PlanDocument& document) {
    if (document.sums.step) {
      predicted_seconds_ = *document.sums.step;
      predicted_by_ = "the times of kernels and messages of its file";
    } else if (unit_of(document.cost) == CostUnit::seconds) {
      predicted_seconds_ = document.sums.cost;
      predicted_by_ = source_of(document.cost, document.mesh);
    }
  }

  /// What the rank computes. `node_names` are those of the file.
  Expected<RankGraph> own_part(const PlanDocument& document, const std::vector<std::string>& node_names) {
    TASO_ASSIGN(const std::vector<std::string> files, strategy_files(options_.common));
    TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(files, registry_));
    StrategyTable strategies(
        registry_, [&](std::string_view op) { return proved.of(op); },
        [&](std::string_view op) { return proved.passages_of(op); });
    TASO_ASSIGN(const PartitionPlan plan, restore_plan(document, subject_.graph, node_names, strategies));
    TASO_ASSIGN(const Expansion expansion, expand(subject_.graph, plan, strategies));
    predict_payload(expansion);
    TASO_ASSIGN(RankGraph rank, rank_graph(expansion.graph, transport_.rank(), transfer_by_move(expansion)));
    slice_weights_first(rank.graph, registry_);
    return rank;
  }

  /// A rank keeps its program; what that has not laid out of the weights is read again from the file where it is used.
  void forget_model() {
    for (const NodeId id : subject_.graph.topological_order())
      if (const auto& constant = subject_.graph.node(id).constant) constant->release_pages();
    if (!options_.check || !leads()) subject_.graph = Graph();
  }

  /// A run that is not timed, then the timed ones, each begun by all together.
  Status execute(RankReport& report) {
    std::vector<std::vector<double>> steps;
    for (int round = 0; round <= options_.repeat; ++round) {
      TASO_ASSIGN(const std::vector<std::string> begun, transport_.all_gather(interrupted() ? "interrupted" : ""));
      if (round > 1 && std::find(begun.begin(), begun.end(), "interrupted") != begun.end()) break;
      std::vector<StepTime> times;
      const Clock::time_point start = Clock::now();
      TASO_RETURN_IF_ERROR(run_once(times));
      const Clock::time_point end = Clock::now();
      if (executor_->moved() != executor_->planned())
        return internal_error("the messages of a run are not those of the program");
      if (round == 0) {
        return_free_memory();  // of building the executor
        continue;
      }
      report.run_us.push_back(std::chrono::duration<double, std::micro>(end - start).count());
      note_steps(times, start, steps, report);
    }
    report.memory = executor_->memory();
    report.process = process_memory();
    report.kernels = executor_->executor().launches();
    report.moved = executor_->moved();
    describe_steps(std::move(steps), report);
    return {};
  }

  Status run_once(std::vector<StepTime>& times) {
    const bool timed = options_.profile || !options_.trace.empty();
    TASO_ASSIGN(outputs_, timed ? executor_->run_timed(times) : executor_->run());
    return {};
  }

  void note_steps(const std::vector<StepTime>& times, Clock::time_point start, std::vector<std::vector<double>>& steps,
                  RankReport& report) const {
    const auto us = [](Clock::duration duration) {
      return std::chrono::duration<double, std::micro>(duration).count();
    };
    steps.resize(times.size());
    report.trace = ordered_json::array();
    for (std::size_t i = 0; i < times.size(); ++i) {
      steps[i].push_back(us(times[i].end - times[i].start));
      if (options_.trace.empty()) continue;
      const LoweredStep& step = executor_->executor().lowered().steps[i];
      report.trace.push_back({{"name", step.kernel->request.op},
                              {"cat", executor_->executor().implementation(i)},
                              {"ph", "X"},
                              {"ts", us(times[i].start - start)},
                              {"dur", us(times[i].end - times[i].start)},
                              {"pid", transport_.rank()},
                              {"tid", 0},
                              {"args", {{"request", step.kernel->key}}}});
    }
  }

  void describe_steps(std::vector<std::vector<double>> steps, RankReport& report) const {
    for (std::size_t i = 0; options_.profile && i < steps.size(); ++i) {
      const LoweredStep& step = executor_->executor().lowered().steps[i];
      const Measurement time = summarize(std::move(steps[i]));
      report.profile.push_back({step.kernel->request.op, executor_->executor().implementation(i), step.kernel->key,
                                step.node, time.median_us, time.minimum_us});
    }
  }

  /// What rank 0 does with all reports.
  Status conclude(const std::vector<RankReport>& reports) {
    TASO_RETURN_IF_ERROR(check_payload(reports));
    std::string text = summary(reports);
    ordered_json json = summary_json(reports);
    bool correct = true;
    if (options_.check) {
      TASO_ASSIGN(correct, check_outputs(subject_.graph, subject_, executor_->inputs(), outputs_, options_, registry_,
                                         text, json["check"]));
    }
    if (!options_.save_outputs.empty())
      TASO_RETURN_IF_ERROR(save_tensors(options_.save_outputs, subject_.output_names, outputs_));
    if (!options_.save_inputs.empty())
      TASO_RETURN_IF_ERROR(save_tensors(options_.save_inputs, input_names_, executor_->inputs()));
    if (!options_.trace.empty()) TASO_RETURN_IF_ERROR(write_trace(reports));
    if (!options_.common.json.empty()) TASO_RETURN_IF_ERROR(write_text(options_.common.json, json.dump(2) + "\n"));
    if (!options_.common.quiet && !options_.files.claims().uses_stdout()) TASO_RETURN_IF_ERROR(write_text("-", text));
    if (!correct)
      return Error{ErrorCode::check_failed,
                   fmt::format("its outputs differ from float64 by a relative L2 norm of more than {}",
                               tolerance_of(options_.device.math).l2),
                   {options_.model}};
    return {};
  }

  /// What was counted, by transfer, against what the plan states, but for what no output needs: that is not sent.
  Status check_payload(const std::vector<RankReport>& reports) {
    std::vector<MovedPayload> moved;
    for (const RankReport& report : reports) moved.push_back(report.moved);
    TASO_RETURN_IF_ERROR(check_moved(predicted_, moved));
    payload_ = std::accumulate(predicted_.begin(), predicted_.end(), std::int64_t{0});
    return {};
  }

  /// What ranks send, of what the plan states: not what no output depends on.
  void predict_payload(const Expansion& expansion) {
    const TransferOf transfer_of = transfer_by_move(expansion);
    for (const ExpandedTransfer& transfer : expansion.transfers) {
      predicted_.push_back(transfer.bytes);
      needless_ += transfer.bytes;
    }
    std::vector<std::int64_t> stated(predicted_.size(), 0);
    for (const auto& [id, transfer] : expansion.moves) stated[transfer] += expansion.graph.type({id, 0}).bytes();
    const std::map<std::uint32_t, std::int64_t> sent = message_bytes(expansion.graph, transfer_of);
    for (std::uint32_t i = 0; i < predicted_.size(); ++i) {
      const auto needed = sent.find(i);
      predicted_[i] -= stated[i] - (needed == sent.end() ? 0 : needed->second);
      needless_ -= predicted_[i];
    }
    // The plan is in the types of the model; devices send what they keep.
    if (!devices_.messages) return;
    const std::map<std::uint32_t, std::int64_t> kept =
        message_bytes(expansion.graph, transfer_of, device_.float_storage);
    for (std::uint32_t i = 0; i < predicted_.size(); ++i)
      if (const auto as_kept = kept.find(i); as_kept != kept.end()) predicted_[i] += as_kept->second - sent.at(i);
  }

  [[nodiscard]] static TransferOf transfer_by_move(const Expansion& expansion) {
    return [&expansion](NodeId reader) {
      const auto move = expansion.moves.find(reader);
      return move == expansion.moves.end() ? static_cast<std::uint32_t>(expansion.transfers.size()) : move->second;
    };
  }

  /// Times of runs, of the rank that took longest.
  [[nodiscard]] static Measurement time_of(const std::vector<RankReport>& reports) {
    std::vector<double> samples = reports[0].run_us;
    for (const RankReport& report : reports)
      for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = std::max(samples[i], report.run_us[i]);
    return summarize(std::move(samples));
  }

  /// By what share of the measured time more is predicted.
  [[nodiscard]] double off(const Measurement& time) const { return *predicted_seconds_ / (time.median_us * 1e-6) - 1; }

  [[nodiscard]] std::string summary(const std::vector<RankReport>& reports) const {
    const Measurement time = time_of(reports);
    std::string text = fmt::format("{} on {} rank{} ({}): median {}, min {}, spread {:.1f} % of {} runs\n",
                                   options_.model, reports.size(), reports.size() == 1 ? "" : "s", transport_.name(),
                                   duration_text(time.median_us * 1e-6), duration_text(time.minimum_us * 1e-6),
                                   time.spread * 100, time.samples);
    if (predicted_seconds_)
      text += fmt::format("predicted: {}, {:.1f} % {} than the median; by {}\n", duration_text(*predicted_seconds_),
                          std::abs(off(time)) * 100, off(time) < 0 ? "less" : "more", predicted_by_);
    text += fmt::format("payload: {} bytes in {} transfers a run, as predicted\n", payload_, predicted_.size());
    if (devices_.messages)
      text += "messages: from device to device\n";
    else if (device_.library.backend())
      text += fmt::format("messages: by way of the host{}\n", devices_.reason.empty() ? "" : ": " + devices_.reason);
    text += memory_line(reports);
    text += fmt::format("\n{:>4} {:>8} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14}\n", "rank", "kernels", "sent",
                        "received", "weights", "temporaries", "without reuse", "resident");
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      const MovedBytes all = sum_of(reports[rank].moved);
      const RankMemory& memory = reports[rank].memory;
      text +=
          fmt::format("{:>4} {:>8} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14}\n", rank, reports[rank].kernels, all.sent,
                      all.received, memory.weights, memory.arena, memory.temporaries, reports[rank].process.resident);
    }
    for (std::size_t rank = 0; options_.profile && rank < reports.size(); ++rank)
      text += fmt::format("\nrank {}:{}", rank, profile_table(reports[rank].profile));
    return text;
  }

  /// What the plan takes, and what is resident.
  [[nodiscard]] std::string memory_line(const std::vector<RankReport>& reports) const {
    std::int64_t resident = 0, peak = 0;
    for (const RankReport& report : reports) {
      resident = std::max(resident, report.process.resident);
      peak = std::max(peak, report.process.peak);
    }
    return fmt::format(
        "memory: {:.0f} bytes on a device by the plan; resident {} bytes in {}, {} at most\n", planned_memory_,
        resident, transport_.name() == "threads" ? "the process of all ranks" : "the process that takes most", peak);
  }

  [[nodiscard]] ordered_json summary_json(const std::vector<RankReport>& reports) const {
    const Measurement time = time_of(reports);
    ordered_json json{{"device", device_.library.device()},
                      {"transport", transport_.name()},
                      {"messages", devices_.messages ? "device" : "host"},
                      {"threads", options_.threads},
                      {"seed", options_.common.seed},
                      {"fused", options_.fuses()},
                      {"file", options_.model},
                      {"plan", options_.plan},
                      {"payload_bytes", payload_},
                      {"unneeded_bytes", needless_},
                      {"planned_memory_bytes", planned_memory_},
                      {"time",
                       {{"median_us", time.median_us},
                        {"minimum_us", time.minimum_us},
                        {"spread", time.spread},
                        {"samples", time.samples}}},
                      {"ranks", ordered_json::array()}};
    if (predicted_seconds_) json["predicted"] = {{"seconds", *predicted_seconds_}, {"by", predicted_by_}};
    for (const RankReport& report : reports) {
      const MovedBytes all = sum_of(report.moved);
      ordered_json rank{{"kernels", report.kernels},
                        {"sent_bytes", all.sent},
                        {"received_bytes", all.received},
                        {"weight_bytes", report.memory.weights},
                        {"arena_bytes", report.memory.arena},
                        {"temporaries_bytes", report.memory.temporaries},
                        {"resident_bytes", report.process.resident},
                        {"peak_resident_bytes", report.process.peak}};
      for (const KernelProfile& kernel : report.profile)
        rank["profile"].push_back({{"operator", kernel.op},
                                   {"implementation", kernel.implementation},
                                   {"request", kernel.key},
                                   {"median_us", kernel.median_us},
                                   {"minimum_us", kernel.minimum_us}});
      json["ranks"].push_back(std::move(rank));
    }
    return json;
  }

  /// The last run as chrome://tracing and Perfetto read it: a process per rank.
  [[nodiscard]] Status write_trace(const std::vector<RankReport>& reports) const {
    ordered_json events = ordered_json::array();
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      events.push_back(
          {{"name", "process_name"}, {"ph", "M"}, {"pid", rank}, {"args", {{"name", fmt::format("rank {}", rank)}}}});
      for (const ordered_json& event : reports[rank].trace) events.push_back(event);
    }
    return write_text(options_.trace, ordered_json{{"traceEvents", std::move(events)}}.dump(1) + "\n");
  }

  RunOptions options_;
  const OperatorRegistry& registry_;
  const Device& device_;
  Transport& transport_;
  FileIdentity model_;
  Subject subject_;  ///< Without its graph where that is not needed any more.
  std::vector<std::string> input_names_;
  double planned_memory_ = 0;            ///< Bytes that the plan takes on the device that holds most.
  std::vector<std::int64_t> predicted_;  ///< Payload of each transfer of the plan.
  std::int64_t payload_ = 0, needless_ = 0;
  std::optional<double> predicted_seconds_;  ///< Seconds of a step.
  std::string predicted_by_;
  ConnectedDevices devices_;  ///< Without messages: they go by way of the host.
  std::optional<RankExecutor> executor_;
  std::span<const HostTensor> outputs_;  ///< Of the last run.
};

}  // namespace

Expected<int> run_plan(RunOptions options, const OperatorRegistry& registry, const Device& device,
                       Transport& transport) {
  return PlanRun(std::move(options), registry, device, transport).run();
}

Expected<int> run_plan_by_threads(const RunOptions& options, const OperatorRegistry& registry) {
  TASO_ASSIGN(const PlanDocument document, load_plan_document(options.plan));
  std::vector<std::unique_ptr<Transport>> transports =
      make_thread_transports(static_cast<int>(document.mesh.devices()));
  std::vector<Device> devices;
  for (const std::unique_ptr<Transport>& transport : transports) {
    TASO_ASSIGN(Device device, open_device_of_rank(options.device, registry, transport->rank_on_host(), options.costs));
    devices.push_back(std::move(device));
  }
  std::vector<std::optional<Expected<int>>> results(transports.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < transports.size(); ++rank)
    threads.emplace_back([&, rank] { results[rank] = run_plan(options, registry, devices[rank], *transports[rank]); });
  for (std::thread& thread : threads) thread.join();
  return *results[0];
}

}  // namespace taso::tools
