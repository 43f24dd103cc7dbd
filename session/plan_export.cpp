#include "session/plan_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "partition/collective_graph.h"
#include "partition/expand.h"
#include "partition/proved_strategies.h"
#include "session/collective_dialects.h"
#include "session/sharding.h"
#include "support/file.h"

namespace taso {
namespace {

/// What is known of a form.
struct FormEntry {
  PlanExport form;
  std::string_view name;
  const char* extension;  ///< In place of the model's.
  bool folder;
};
constexpr FormEntry forms[] = {{PlanExport::sharding, "sharding", ".sharding.onnx", false},
                               {PlanExport::ort_ranks, "ort-ranks", ".ort", true},
                               {PlanExport::tensorrt_ranks, "tensorrt-ranks", ".tensorrt", true},
                               {PlanExport::jax, "jax", ".jax", true}};

const FormEntry& entry_of(PlanExport form) {
  for (const FormEntry& entry : forms)
    if (entry.form == form) return entry;
  TASO_CHECK(false, "an export of no form");
  return forms[0];
}

Error in_form(PlanExport form, Error error) {
  error.message = fmt::format("--emit {}: {}", to_string(form), error.message);
  return error;
}

/// What collectives move, beside what the plan states.
std::string remark_on(PlanExport form, const CollectiveExpansion& expansion, const Graph& graph) {
  std::int64_t stated = 0, moved = 0;
  std::size_t exact = 0, count = 0;
  const CollectiveMove* first = nullptr;
  for (const CollectiveMove& move : expansion.moves) {
    if (move.by.steps.empty()) continue;
    ++count;
    stated += move.transfer.bytes;
    moved += move.bytes;
    if (move.bytes <= move.transfer.bytes) {
      ++exact;
    } else if (first == nullptr) {
      first = &move;
    }
  }
  if (first == nullptr) return "";
  const Node& node = graph.node(first->transfer.value.node);
  return fmt::format(
      "{}: {} of {} transfers move more as collectives than the plan has them move ({} bytes in all, not {}); the "
      "first: "
      "{} as {}",
      to_string(form), count - exact, count, moved, stated, node.op.empty() ? node.name : node.op,
      to_string(first->by));
}

class Exporter {
 public:
  Exporter(PlanExport form, const Graph& graph, const PartitionPlan& plan, const Model& model,
           StrategyTable& strategies)
      : graph_(graph), plan_(plan), model_(model), strategies_(strategies) {
    result_.form = form;
  }

  Expected<ExportedPlan> run() {
    switch (result_.form) {
      case PlanExport::sharding:
        annotate();
        break;
      case PlanExport::ort_ranks:
        TASO_RETURN_IF_ERROR(write_ranks(onnx_runtime_collectives()));
        break;
      case PlanExport::tensorrt_ranks:
        TASO_RETURN_IF_ERROR(write_ranks(tensorrt_collectives()));
        break;
      case PlanExport::jax:
        TASO_RETURN_IF_ERROR(write_script());
        break;
    }
    return std::move(result_);
  }

 private:
  void annotate() {
    ShardingPlan sharding = sharding_plan(graph_, plan_);
    result_.annotated = graph_;
    result_.annotations = std::move(sharding.annotations);
    if (sharding.unsaid.empty()) return;
    std::size_t count = 0;
    std::vector<std::string> reasons;
    for (const auto& [reason, tensors] : sharding.unsaid) {
      count += tensors;
      reasons.push_back(fmt::format("{} ({})", reason, tensors));
    }
    result_.remark = fmt::format("sharding: {} of {} tensors of operators have no annotation, which cannot say {}",
                                 count, sharding.tensors, fmt::join(reasons, ", "));
  }

  Status write_ranks(const CollectiveDialect& dialect) {
    TASO_ASSIGN(const std::vector<Graph> ranks, ranks_with(dialect.vocabulary));
    for (const Graph& rank : ranks) {
      TASO_ASSIGN(Graph written, in_dialect(rank, dialect, strategies_.registry()));
      result_.ranks.push_back(std::move(written));
    }
    return {};
  }

  Status write_script() {
    TASO_ASSIGN(const std::vector<Graph> ranks, ranks_with(jax_collectives()));
    std::vector<std::string> inputs, outputs;
    for (const TensorDeclaration& input : model_.inputs()) inputs.push_back(input.name);
    for (const TensorDeclaration& output : model_.outputs()) outputs.push_back(output.name);
    TASO_ASSIGN(result_.script, jax_script(ranks, plan_.mesh, inputs, outputs, strategies_.registry()));
    return {};
  }

  /// The graphs of ranks, with collectives.
  Expected<std::vector<Graph>> ranks_with(const CollectiveVocabulary& vocabulary) {
    TASO_ASSIGN(const CollectiveExpansion expansion, expand_with_collectives(graph_, plan_, strategies_, vocabulary));
    result_.remark = remark_on(result_.form, expansion, graph_);
    const auto devices = static_cast<std::size_t>(plan_.mesh.devices());
    TASO_ASSIGN(result_.together, without_collectives(expansion.graph, 0, devices, strategies_.registry()));
    std::vector<Graph> ranks;
    for (std::size_t rank = 0; rank < devices; ++rank) ranks.push_back(graph_of_rank(expansion.graph, rank, devices));
    return ranks;
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  const Model& model_;
  StrategyTable& strategies_;
  ExportedPlan result_;
};

Status write_files(const ExportedPlan& plan, const Model& model, const std::string& folder, bool external_data) {
  SaveOptions options;
  options.external_data = external_data;
  options.in_order_of_ids = true;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    TASO_ASSIGN(const SaveReport saved,
                model.save(plan.ranks[rank], fmt::format("{}/rank{}.onnx", folder, rank), options));
  }
  if (!plan.script) return {};
  for (const auto& [element, tensor] : plan.script->weights)
    TASO_RETURN_IF_ERROR(write_npy(folder + "/" + jax_weights_file(element), tensor));
  return write_file_atomically(folder + "/program.py", plan.script->text);
}

}  // namespace

std::string_view to_string(PlanExport form) { return entry_of(form).name; }

std::optional<PlanExport> parse_plan_export(std::string_view text) {
  for (const FormEntry& entry : forms)
    if (text == entry.name) return entry.form;
  return std::nullopt;
}

Expected<ExportedPlan> export_plan(PlanExport form, const Graph& graph, const PartitionPlan& plan, const Model& model,
                                   StrategyTable& strategies) {
  Expected<ExportedPlan> exported = Exporter(form, graph, plan, model, strategies).run();
  if (!exported) return in_form(form, exported.error());
  return exported;
}

Expected<std::vector<ExportedPlan>> export_plans(const std::vector<PlanExport>& forms, const Graph& graph,
                                                 const PartitionPlan& plan, const Model& model,
                                                 const std::vector<std::string>& strategy_files,
                                                 const OperatorRegistry& registry) {
  std::vector<ExportedPlan> exports;
  if (forms.empty()) return exports;
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(strategy_files, registry));
  StrategyTable strategies(
      registry, [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  for (const PlanExport form : forms) {
    TASO_ASSIGN(ExportedPlan exported, export_plan(form, graph, plan, model, strategies));
    exports.push_back(std::move(exported));
  }
  return exports;
}

std::string export_path(PlanExport form, const std::string& model) {
  return std::filesystem::path(model).replace_extension(entry_of(form).extension).string();
}

bool is_folder(PlanExport form) { return entry_of(form).folder; }

Expected<std::int64_t> write_export(const ExportedPlan& plan, const Model& model, const std::string& path,
                                    bool external_data) {
  if (is_folder(plan.form)) {
    TASO_RETURN_IF_ERROR(
        fill_folder(path, [&](const std::string& folder) { return write_files(plan, model, folder, external_data); }));
    return std::int64_t{0};
  }
  SaveOptions options;
  options.external_data = external_data;
  options.annotations = plan.annotations;
  TASO_ASSIGN(const SaveReport saved, model.save(plan.annotated, path, options));
  return saved.annotated_tensors;
}

}  // namespace taso
