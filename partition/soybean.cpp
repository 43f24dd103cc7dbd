#include "partition/soybean.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "partition/partition_problem.h"
#include "partition/soybean_paths.h"

namespace taso {

std::string to_string(const Tiling& tiling, std::size_t rank) {
  std::string text;
  for (const BasicTiling& basic : tiling) text += basic.to_string(rank);
  return text;
}

Tiling in_order_of_axes(Tiling tiling) {
  std::sort(tiling.begin(), tiling.end());
  return tiling;
}

Expected<std::vector<MeshAxis>> binary_cuts(const Mesh& mesh) {
  std::vector<MeshAxis> cuts;
  for (const MeshAxis& axis : mesh.axes) {
    std::int64_t left = axis.size;
    for (; left % 2 == 0; left /= 2) {
      cuts.push_back(axis);
      cuts.back().size = 2;
    }
    if (left != 1)
      return bad_input("cuts into two do not divide " + std::to_string(axis.size) + " devices along the link " +
                       axis.link);
  }
  return cuts;
}

/// Tilings and forms of some cuts as a problem of elimination. Decisions: tensors, then operators.
class SoybeanTiler::Problem {
 public:
  Problem(const SoybeanTiler& tiler, const std::vector<Applied>& operators, const std::vector<Tensor>& tensors,
          std::size_t cuts, SoybeanPrice price)
      : tiler_(tiler),
        operators_(operators),
        tensors_(tensors),
        cuts_(cuts),
        price_(price),
        forms_(*tiler.strategies_) {}

  /// `before`: the tilings so far, per tensor.
  PartitionSolution solve(const std::vector<Tiling>& before) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tilings_.push_back(allowed_tilings(tensors_[i], before[i]));
      problem_.add_decision(static_cast<std::uint32_t>(tilings_.back().size()));
    }
    for (const Applied& applied : operators_) add(applied);
    return solve_exact(problem_, tiler_.options_.solver);
  }
  [[nodiscard]] const Tiling& tiling(std::size_t tensor, const PartitionSolution& solution) const {
    return tilings_[tensor][solution.choice[tensor]];
  }
  [[nodiscard]] const FormPath& path(std::size_t number, const PartitionSolution& solution) const {
    return paths_[number][solution.choice[tensors_.size() + number]];
  }
  /// Of the solution, each cut in one group.
  [[nodiscard]] std::vector<double> cut_bytes(const PartitionSolution& solution) const {
    std::vector<double> sums(cuts_, 0.0);
    for (std::size_t i = 0; i < operators_.size(); ++i)
      for_each_place(operators_[i], [&](OperandPlace place, std::size_t tensor) {
        const std::vector<double> costs =
            cut_costs(operators_[i].piece, path(i, solution), place, tensors_[tensor].type, tiling(tensor, solution));
        for (std::size_t cut = 0; cut < cuts_; ++cut) sums[cut] += costs[cut];
      });
    return sums;
  }

  template <class Each>
  static void for_each_place(const Applied& applied, const Each& each) {
    for (const bool output : {false, true}) {
      const std::vector<std::size_t>& tensors = output ? applied.outputs : applied.inputs;
      for (std::size_t i = 0; i < tensors.size(); ++i) each(OperandPlace{output, i}, tensors[i]);
    }
  }

 private:
  /// Where a table is the same: operators that are alike, one of their operands, the tilings of a tensor.
  using TableKey = std::tuple<std::size_t, OperandPlace, Shape, std::vector<Tiling>>;

  [[nodiscard]] std::vector<Tiling> allowed_tilings(const Tensor& tensor, const Tiling& before) const {
    const std::vector<Tiling> all = tilings_of(tensor.type.shape, cuts_);
    if (!tiler_.options_.allowed) return all;
    std::vector<Tiling> kept;
    for (const Tiling& tiling : all) {
      Tiling whole = before;
      whole.insert(whole.end(), tiling.begin(), tiling.end());
      if (std::all_of(tensor.values.begin(), tensor.values.end(),
                      [&](Value value) { return tiler_.options_.allowed(value, whole); }))
        kept.push_back(tiling);
    }
    return kept.empty() ? all : kept;
  }

  /// The first operator that is like this one and may have the same forms, or this one.
  [[nodiscard]] std::size_t like(const Applied& applied, const std::vector<FormPath>& paths) const {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      const OperatorPiece& one = operators_[i].piece;
      const OperatorPiece& other = applied.piece;
      if (one.op == other.op && one.attributes == other.attributes && one.inputs == other.inputs && paths_[i] == paths)
        return i;
    }
    return paths_.size();
  }

  void add(const Applied& applied) {
    FormFilter filter;
    if (const auto& allowed = tiler_.options_.allowed_forms)
      filter = [&](const AlignedForm& form) { return allowed(applied.node, form); };
    std::vector<FormPath> paths = form_paths(applied.piece, cuts_, forms_, filter);
    const std::size_t same = like(applied, paths);
    paths_.push_back(same < paths_.size() ? paths_[same] : std::move(paths));
    add(applied, same, paths_.back());
  }

  void add(const Applied& applied, std::size_t same, const std::vector<FormPath>& paths) {
    const auto decision = problem_.add_decision(static_cast<std::uint32_t>(paths.size()));
    for_each_place(applied, [&](OperandPlace place, std::size_t tensor) {
      const std::vector<Tiling>& tilings = tilings_[tensor];
      const TensorType& type = tensors_[tensor].type;
      PartitionProblem::Table& table = tables_[{same, place, type.shape, tilings}];
      if (!table)
        table = std::make_shared<const std::vector<double>>(costs(applied.piece, paths, place, type, tilings));
      problem_.add_cost({decision, static_cast<PartitionProblem::Decision>(tensor)}, table);
    });
  }

  [[nodiscard]] std::vector<double> costs(const OperatorPiece& piece, const std::vector<FormPath>& paths,
                                          OperandPlace place, const TensorType& type,
                                          const std::vector<Tiling>& tilings) {
    std::vector<double> table(paths.size() * tilings.size());
    if (price_ == SoybeanPrice::cut_by_cut) {
      for (std::size_t p = 0; p < paths.size(); ++p)
        for (std::size_t t = 0; t < tilings.size(); ++t)
          table[p * tilings.size() + t] = weighted_sum(cut_costs(piece, paths[p], place, type, tilings[t]));
      return table;
    }
    const Mesh mesh = binary_mesh(cuts_);
    const auto element = static_cast<std::int64_t>(size_of(type.element));
    std::vector<Placement> computed, kept;
    for (const FormPath& path : paths) computed.push_back(placement_of(piece, path, place, forms_));
    for (const Tiling& tiling : tilings) kept.push_back(placement_of(type.shape, tiling));
    const std::vector<Placement>& from = place.output ? computed : kept;
    const std::vector<Placement>& to = place.output ? kept : computed;
    for (std::size_t f = 0; f < from.size(); ++f) {
      TransferSource source(from[f], element, mesh);
      for (std::size_t t = 0; t < to.size(); ++t)
        table[place.output ? f * tilings.size() + t : t * tilings.size() + f] = source.to(to[t]).bytes;
    }
    return table;
  }

  const SoybeanTiler& tiler_;
  const std::vector<Applied>& operators_;
  const std::vector<Tensor>& tensors_;
  std::size_t cuts_;
  SoybeanPrice price_;
  FormTable forms_;
  std::vector<std::vector<Tiling>> tilings_;
  std::vector<std::vector<FormPath>> paths_;
  std::map<TableKey, PartitionProblem::Table> tables_;
  PartitionProblem problem_;
};

Expected<SoybeanTiler> SoybeanTiler::make(const Graph& graph, StrategyTable& strategies, SoybeanOptions options) {
  SoybeanTiler tiler;
  tiler.graph_ = &graph;
  tiler.strategies_ = &strategies;
  std::map<Value, Value> kept_with;
  for (const auto& [weight, after] : options.same) {
    if (graph.type(weight) != graph.type(after))
      return bad_input("a weight of type " + to_string(graph.type(weight)) + " cannot become one of type " +
                       to_string(graph.type(after)));
    kept_with.emplace(after, weight);
  }
  std::map<Value, std::size_t> numbers;
  const auto number_of = [&](Value value) {
    const auto found = kept_with.find(value);
    const auto [place, is_new] =
        numbers.emplace(found == kept_with.end() ? value : found->second, tiler.tensors_.size());
    if (is_new) tiler.tensors_.push_back({{}, graph.type(value)});
    std::vector<Value>& values = tiler.tensors_[place->second].values;
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    return place->second;
  };
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
      if (!node.outputs[port].known)
        return bad_input("the type of a value of " + (node.op.empty() ? "input " + node.name : node.op) +
                         " is not known, so that it cannot be tiled");
    if (node.kind == NodeKind::opaque) return bad_input(node.op + " has no definition, and so no aligned forms");
    if (node.kind != NodeKind::op) continue;
    Applied applied{id, all_of(graph, id), {}, {}};
    for (const Value& input : node.inputs) applied.inputs.push_back(number_of(input));
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) applied.outputs.push_back(number_of({id, port}));
    tiler.operators_.push_back(std::move(applied));
  }
  tiler.options_ = std::move(options);
  return tiler;
}

SoybeanPlan SoybeanTiler::recursive(std::size_t cuts) {
  SoybeanPlan plan;
  plan.cuts = cuts;
  std::vector<Applied> operators = operators_;
  std::vector<Tensor> tensors = tensors_;
  std::vector<Tiling> tilings(tensors.size());
  for (const Applied& applied : operators) plan.forms[applied.node] = {};
  for (std::size_t cut = 0; cut < cuts; ++cut) {
    Problem problem(*this, operators, tensors, 1, SoybeanPrice::cut_by_cut);
    const PartitionSolution solution = problem.solve(tilings);
    plan.exact = plan.exact && solution.exact;
    plan.cut_bytes.push_back(solution.cost);
    std::vector<Applied> pieces = operators;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const AlignedForm& form = *problem.path(i, solution).front();
      plan.forms[operators[i].node].push_back(form.variable);
      pieces[i].piece = form.first;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) tilings[i].push_back(problem.tiling(i, solution).front());
    operators = std::move(pieces);
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i].type.shape = half_of(tensors[i].type.shape, tilings[i].back());
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (const Value& value : tensors[i].values) plan.tilings[value] = tilings[i];
  plan.bytes = weighted_sum(plan.cut_bytes);
  return plan;
}

SoybeanPlan SoybeanTiler::exact(std::size_t cuts, SoybeanPrice price) {
  Problem problem(*this, operators_, tensors_, cuts, price);
  const PartitionSolution solution = problem.solve(std::vector<Tiling>(tensors_.size()));
  SoybeanPlan plan;
  plan.cuts = cuts;
  plan.exact = solution.exact;
  plan.bytes = solution.cost;
  plan.lower_bound = solution.lower_bound;
  plan.cut_bytes = problem.cut_bytes(solution);
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    for (const Value& value : tensors_[i].values) plan.tilings[value] = problem.tiling(i, solution);
  for (std::size_t i = 0; i < operators_.size(); ++i)
    for (const auto& form : problem.path(i, solution)) plan.forms[operators_[i].node].push_back(form->variable);
  return plan;
}

double SoybeanTiler::price(const SoybeanPlan& plan, SoybeanPrice price) {
  FormTable forms(*strategies_);
  const Mesh mesh = binary_mesh(plan.cuts);
  double sum = 0;
  for (const Applied& applied : operators_) {
    const FormPath path = form_path(applied.piece, plan.forms.at(applied.node), forms);
    Problem::for_each_place(applied, [&](OperandPlace place, std::size_t tensor) {
      const TensorType& type = tensors_[tensor].type;
      const Tiling& tiling = plan.tilings.at(tensors_[tensor].values.front());
      if (price == SoybeanPrice::cut_by_cut) {
        sum += weighted_sum(cut_costs(applied.piece, path, place, type, tiling));
        return;
      }
      const Placement computed = placement_of(applied.piece, path, place, forms);
      const Placement kept = placement_of(type.shape, tiling);
      const auto element = static_cast<std::int64_t>(size_of(type.element));
      sum += (place.output ? transfer(computed, kept, element, mesh) : transfer(kept, computed, element, mesh)).bytes;
    });
  }
  return sum;
}

std::vector<OperatorPiece> SoybeanTiler::pieces(const SoybeanPlan& plan) {
  FormTable forms(*strategies_);
  std::vector<OperatorPiece> pieces;
  for (const Applied& applied : operators_) {
    const FormPath path = form_path(applied.piece, plan.forms.at(applied.node), forms);
    pieces.push_back(path.empty() ? applied.piece : path.back()->first);
  }
  return pieces;
}

double parallelism_bytes(double weight_bytes, double activation_bytes, double groups, double devices,
                         CountedCopies copies) {
  const double members = devices / groups;
  const auto moved = [&](double of) { return of == 1 ? 0 : copies == CountedCopies::all ? of : of - 1; };
  return 2 * weight_bytes * moved(groups) + groups * (2 * (activation_bytes / groups) * moved(members));
}

}  // namespace taso
