#include "optimizer/cost_model.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>

#include "optimizer/equal_costs.h"
#include "optimizer/layout_moves.h"
#include "optimizer/paired_times.h"

namespace taso {
namespace {

using Term = CostFormula::Term;

constexpr std::array<std::pair<Term, std::string_view>, 5> term_names{{{Term::time, "time"},
                                                                       {Term::flops, "flops"},
                                                                       {Term::bytes, "bytes"},
                                                                       {Term::launches, "launches"},
                                                                       {Term::memory, "memory"}}};

std::string_view name_of(Term term) {
  for (const auto& [candidate, name] : term_names)
    if (candidate == term) return name;
  return "?";
}

double largest_weight(const CostFormula& formula) {
  double largest = 0;
  for (const CostFormula::Weighted& weighted : formula.terms) largest = std::max(largest, weighted.weight);
  return largest > 0 ? largest : 1;
}

class WeightedSum final : public CostModel {
 public:
  WeightedSum(CostFormula formula, MeasuredCosts& measured)
      : formula_(std::move(formula)), measured_(&measured), grid_(largest_weight(formula_)) {}

  Expected<double> cost(const Graph& graph, KernelPlan& plan, double limit) override {
    const Target& target = measured_->target();
    if (plan.open && !plan.layouts) {
      // A sum over kernels that are not fused is no bound of what they cost when they are.
      TASO_ASSIGN(const double chosen, choose(plan, target.fuses() ? MeasuredCosts::no_limit : limit));
      if (!plan.layouts) return chosen;
    }
    std::shared_ptr<const KernelPlan> prepared = std::exchange(plan.by_rule, nullptr);
    if (!plan.open || !target.fuses() || (plan.fused && !prepared)) return total(graph, plan, limit);
    if (!plan.fused) TASO_RETURN_IF_ERROR(target.fuse(graph, plan));
    TASO_ASSIGN(const double chosen, total(graph, plan, limit));
    // In the layouts that are best for kernels by themselves less may be fused than in those of the rule.
    KernelPlan by_rule;
    if (prepared) {
      by_rule = *prepared;
    } else {
      TASO_ASSIGN(by_rule, target.plan(graph));
    }
    const Expected<double> of_rule = total(graph, by_rule, std::min(limit, chosen));
    if (!of_rule && of_rule.error().code != ErrorCode::cost_missing) return of_rule.error();
    if (!of_rule || *of_rule >= chosen) return chosen;
    plan = std::move(by_rule);
    return *of_rule;
  }

  Expected<double> improve(const Graph& graph, KernelPlan& plan, double cost) override {
    const Target& target = measured_->target();
    if (!target.fuses()) return cost;
    const auto cost_of = [&](const KernelPlan& fused, double limit) { return total(graph, fused, limit); };
    Local& local = locals_.local();
    TASO_ASSIGN(std::optional<PricedPlan> moved,
                cheaper_by_moves(graph, target, price_list(), cost_of, cost, local.cache, local.statistics));
    if (!moved) return cost;
    plan = std::move(moved->plan);
    return moved->cost;
  }

  Expected<std::optional<double>> least(const Graph& graph) override {
    const Target& target = measured_->target();
    TASO_ASSIGN(KernelPlan plan, target.open_plan(graph));
    if (!plan.open || counts(Term::bytes) || counts(Term::memory)) return std::optional<double>();
    PriceList prices;
    prices.look_up = [&](const KernelInfo& kernel) {
      return target.may_cost_nothing(kernel) ? Price{0, true} : bound(kernel);
    };
    prices.find_out = [this](const KernelInfo& kernel) { return find_out(kernel); };
    EliminationCache cache;
    LayoutStatistics statistics;
    const Expected<double> cost = choose_layouts(plan, prices, MeasuredCosts::no_limit, cache, statistics);
    if (cost) return std::optional(*cost * (1 - statistics.largest_gap));
    for (const ErrorCode code : {ErrorCode::cost_missing, ErrorCode::device_unavailable, ErrorCode::interrupted})
      if (cost.error().code == code) return std::optional<double>();
    return cost.error();
  }

  void prepare(std::span<const Unpriced> graphs) override {
    // Prices are looked up by one thread: the database is no place for several.
    std::unordered_map<const KernelInfo*, Price> known;
    for (const Unpriced& one : graphs)
      if (one.plan->open && !one.plan->layouts)
        for (const auto& kernel : one.plan->open->kernels)
          if (const auto [place, fresh] = known.emplace(kernel.get(), Price()); fresh) place->second = price(*kernel);
    PriceList prices;
    prices.look_up = [&](const KernelInfo& kernel) { return known.at(&kernel); };
    prices.find_out = [](const KernelInfo&) -> Expected<Price> { return Error{ErrorCode::cost_missing, "", {}}; };
    const Target& target = measured_->target();
    tbb::parallel_for(std::size_t{0}, graphs.size(), [&](std::size_t i) {
      KernelPlan& plan = *graphs[i].plan;
      if (!plan.open || plan.fused) return;
      Local& local = locals_.local();
      if (!plan.layouts) (void)choose_layouts(plan, prices, MeasuredCosts::no_limit, local.cache, local.statistics);
      // What fails here fails again in cost(), which says so.
      if (!plan.layouts || !target.fuses()) return;
      Expected<KernelPlan> by_rule = target.plan(*graphs[i].graph);
      if (!by_rule || !target.fuse(*graphs[i].graph, plan)) return;
      plan.by_rule = std::make_shared<const KernelPlan>(std::move(*by_rule));
    });
  }

  LayoutStatistics layout_statistics() const override {
    LayoutStatistics all;
    for (const Local& local : locals_) all.add(local.statistics);
    return all;
  }
  std::string name() const override { return formula_.to_string(); }
  bool uses_time() const override { return formula_.uses_time(); }

 private:
  [[nodiscard]] bool counts(Term term) const {
    return std::any_of(formula_.terms.begin(), formula_.terms.end(),
                       [&](const CostFormula::Weighted& one) { return one.term == term && one.weight > 0; });
  }

  /// The cost of a plan whose launches are there; any number from `limit` up if it is not below that.
  Expected<double> total(const Graph& graph, const KernelPlan& plan, double limit) {
    double sum = 0;
    std::vector<std::pair<const KernelInfo*, double>> missing;
    for (const Launch& launch : plan.launches) {
      const Price price = bound(*launch.kernel);
      sum += price.value;
      if (!price.known) missing.emplace_back(launch.kernel.get(), price.value);
    }
    for (const CostFormula::Weighted& weighted : formula_.terms) {
      if (weighted.term != Term::memory || weighted.weight == 0) continue;
      if (sum >= limit) return sum;
      TASO_ASSIGN(const double bytes, measured_->target().peak_bytes(graph, plan.layouts.get()));
      sum += grid_(weighted.weight * bytes * 1e-6);
    }
    // What is not known is measured last, and only as far as that may matter: first what it is at least.
    for (std::vector<std::pair<const KernelInfo*, double>> open; !missing.empty(); missing = std::move(open)) {
      open.clear();
      for (const auto& [kernel, assumed] : missing) {
        if (sum >= limit) return sum;
        TASO_ASSIGN(const Price found, find_out(*kernel));
        sum += found.value - assumed;
        if (!found.known) open.emplace_back(kernel, found.value);
      }
    }
    return sum;
  }

  /// All terms of a kernel, which ran for so many seconds.
  [[nodiscard]] double priced(const KernelInfo& kernel, double seconds) const {
    double price = 0;
    for (const auto& [weight, term] : formula_.terms) switch (term) {
        case Term::time:
          price += weight * seconds * 1e6;
          break;
        case Term::flops:
          price += weight * kernel.flops * 1e-6;
          break;
        case Term::bytes:
          price += weight * kernel.bytes * 1e-6;
          break;
        case Term::launches:
          price += weight;
          break;
        case Term::memory:  // no sum over kernels
          break;
      }
    return grid_(price);
  }

  /// A kernel's price by all terms that are sums over kernels. Without a recorded time it is a lower bound.
  [[nodiscard]] Price bound(const KernelInfo& kernel) const {
    if (!formula_.uses_time()) return {priced(kernel, 0), true};
    const MeasuredCosts::Known known = measured_->known(kernel);
    return {priced(kernel, known.seconds), known.exactly};
  }

  /// The same for a choice of layouts. Where nothing may be measured, a prohibitive price makes that a kernel without a
  /// recorded time is avoided.
  [[nodiscard]] Price price(const KernelInfo& kernel) const {
    Price price = bound(kernel);
    if (!price.known && !measured_->may_measure()) price.value = CostGrid::prohibitive;
    return price;
  }

  [[nodiscard]] Expected<Price> find_out(const KernelInfo& kernel) const {
    TASO_ASSIGN(const MeasuredCosts::Known found, measured_->find_out(kernel));
    return Price{priced(kernel, found.seconds), found.exactly};
  }

  [[nodiscard]] PriceList price_list() const {
    return {[this](const KernelInfo& kernel) { return price(kernel); },
            [this](const KernelInfo& kernel) { return find_out(kernel); }};
  }

  Expected<double> choose(KernelPlan& plan, double limit) {
    Local& local = locals_.local();
    return choose_layouts(plan, price_list(), limit, local.cache, local.statistics);
  }

  CostFormula formula_;
  MeasuredCosts* measured_;
  CostGrid grid_;
  /// What each thread has met.
  struct Local {
    EliminationCache cache;
    LayoutStatistics statistics;
  };
  tbb::enumerable_thread_specific<Local> locals_;
};

/// The date, as 20261126.
double today() {
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  return int{date.year()} * 10000 + unsigned{date.month()} * 100 + unsigned{date.day()};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// By which times of a graph are recorded.
Hash128 hash_of(const TimedGraph& timed, const std::string& conditions) {
  Hash128 hash = timed.graph->structural_hash();
  if (timed.layouts) hash = Hasher().add(hash).add(timed.kernels).finish();
  if (!conditions.empty()) hash = Hasher().add(hash).add(conditions).finish();
  return hash;
}

}  // namespace

bool CostFormula::uses_time() const {
  for (const Weighted& weighted : terms)
    if (weighted.term == Term::time && weighted.weight > 0) return true;
  return false;
}

std::string CostFormula::to_string() const {
  std::string text;
  for (const Weighted& weighted : terms) {
    if (!text.empty()) text += "+";
    if (weighted.weight != 1) text += fmt::format("{}*", weighted.weight);
    text += name_of(weighted.term);
  }
  return text;
}

std::optional<double> MeasuredCosts::recorded(const KernelInfo& kernel) {
  if (const auto place = kernels_.find(kernel.hash); place != kernels_.end()) return place->second.second;
  const std::optional<double> value = database_->find("kernel", kernel.key);
  if (value) kernels_.emplace(kernel.hash, std::pair(kernel.key, *value));
  return value;
}

MeasuredCosts::Known MeasuredCosts::known(const KernelInfo& kernel) {
  if (const std::optional<double> seconds = recorded(kernel)) return {*seconds, true};
  const auto [place, fresh] = least_.try_emplace(kernel.hash, kernel.key, 0);
  if (fresh) place->second.second = database_->find("least", kernel.key).value_or(0);
  return {place->second.second, false};
}

Expected<MeasuredCosts::Known> MeasuredCosts::find_out(const KernelInfo& kernel) {
  const Known before = known(kernel);
  if (!before.exactly && before.seconds == 0 && measure_) {
    TASO_ASSIGN(const double least, target_->least_seconds(kernel));
    if (least > 0) {
      TASO_ASSIGN(const double value, database_->record("least", kernel.key, least));
      least_[kernel.hash] = {kernel.key, value};
      ++tried_count_;
      return Known{value, false};
    }
  }
  TASO_ASSIGN(const double exact, seconds(kernel));
  return Known{exact, true};
}

Expected<double> MeasuredCosts::seconds(const KernelInfo& kernel) {
  if (const std::optional<double> value = recorded(kernel)) return *value;
  if (!measure_)
    return Error{ErrorCode::cost_missing,
                 fmt::format("no recorded cost of the kernel '{}' on '{}'; measure it (without --no-measure) or give "
                             "recorded costs with --costs",
                             kernel.key, database_->device()),
                 {database_->path()}};
  TASO_ASSIGN(const double measured, target_->measure(kernel));
  // What was chosen in view of a bound must stay chosen, also when all is known from the beginning.
  const double bound = known(kernel).seconds;
  TASO_ASSIGN(const double value, database_->record("kernel", kernel.key, std::max(measured, bound)));
  ++measured_count_;
  kernels_.emplace(kernel.hash, std::pair(kernel.key, value));
  return value;
}

Status MeasuredCosts::correct(const KernelInfo& kernel, double seconds) {
  TASO_RETURN_IF_ERROR(database_->replace("kernel", kernel.key, seconds));
  kernels_.insert_or_assign(kernel.hash, std::pair(kernel.key, seconds));
  return {};
}

Expected<double> MeasuredCosts::seconds(const KernelPlan& plan) {
  double sum = 0;
  for (const Launch& launch : plan.launches) {
    TASO_ASSIGN(const double value, seconds(*launch.kernel));
    sum += value;
  }
  return sum;
}

Expected<int> MeasuredCosts::cached_tenths(double bytes) {
  const std::string key = cache_key(bytes);
  std::optional<double> tenths = database_->find("cache", key);
  if (!tenths && measure_) {
    TASO_ASSIGN(tenths, database_->record("cache", key, target_->cached_tenths(bytes)));
  }
  if (!tenths) return 0;
  others_[{"cache", key}] = *tenths;
  return static_cast<int>(*tenths);
}

Expected<GraphTimes> MeasuredCosts::graph_seconds(const std::vector<TimedGraph>& graphs) {
  std::vector<Hash128> hashes;
  std::vector<char> is_reference;
  const std::string conditions = target_->conditions();
  for (const TimedGraph& timed : graphs) {
    hashes.push_back(hash_of(timed, conditions));
    is_reference.push_back(timed.reference ? 1 : 0);
  }
  is_reference[0] = 1;
  return seconds_together("graph", hashes, is_reference, [&] { return target_->measure_graphs(graphs); });
}

std::optional<std::string> MeasuredCosts::recorded_refusal(const TimedGraph& graph) {
  const std::string key = hash_of(graph, target_->conditions()).to_string();
  if (!database_->find("refused", key)) return std::nullopt;
  others_[{"refused", key}] = 1;
  return "so it is recorded";
}

Expected<std::optional<std::string>> MeasuredCosts::refusal(const TimedGraph& graph) {
  if (std::optional<std::string> recorded = recorded_refusal(graph)) return recorded;
  if (!measure_) return std::optional<std::string>();
  TASO_ASSIGN(std::optional<GraphRefusal> refusal, target_->refusal(graph));
  if (!refusal) return std::optional<std::string>();
  if (refusal->for_good) {
    const std::string key = hash_of(graph, target_->conditions()).to_string();
    TASO_RETURN_IF_ERROR(database_->replace("refused", key, 1));
    others_[{"refused", key}] = 1;
  }
  return std::optional(std::move(refusal->why));
}

Expected<GraphTimes> MeasuredCosts::seconds_together(std::string_view kind, const std::vector<Hash128>& hashes,
                                                     const std::vector<char>& is_reference,
                                                     const std::function<Expected<GraphTimes>()>& time) {
  // Times of one run are comparable with each other only: the key names the whole set.
  Hasher set;
  for (const Hash128& hash : hashes) set.add(hash);
  const std::string prefix = set.finish().to_string() + " ";
  const auto key = [&](std::size_t i) { return prefix + std::to_string(i) + " " + hashes[i].to_string(); };
  GraphTimes times;
  const auto noise = database_->find("noise", prefix);
  for (std::size_t i = 0; noise && i < hashes.size(); ++i)
    if (const auto recorded = database_->find(kind, key(i))) times.seconds.push_back(*recorded);
  // Without a word of finals the times are of an earlier version, which had none.
  const bool recorded =
      noise && times.seconds.size() == hashes.size() && (!measure_ || database_->find("finalist", prefix).has_value());
  if (recorded) {
    times.noise = *noise;
    times.date = static_cast<int>(database_->find("date", prefix).value_or(0));
    const double finalist = database_->find("finalist", prefix).value_or(0);
    const auto of_final = database_->find("noise of final", prefix);
    if (of_final && finalist >= 1 && finalist <= static_cast<double>(hashes.size()))
      times.final = GraphTimes::Final{static_cast<std::size_t>(finalist) - 1, *of_final};
  }
  if (!recorded && !measure_)
    return Error{
        ErrorCode::cost_missing,
        fmt::format("no recorded times of these {}s, whole, on '{}' (--no-measure)", kind, database_->device()),
        {database_->path()}};
  // Times that differed so much in one run say nothing of the next one.
  constexpr double too_noisy = 0.3;
  if (measure_ && (!recorded || times.noise > too_noisy || is_near_the_noise(times, is_reference))) {
    TASO_ASSIGN(times, time());
    if (times.cut_short) return times;
    for (std::size_t i = 0; i < hashes.size(); ++i)
      TASO_RETURN_IF_ERROR(database_->replace(kind, key(i), times.seconds[i]));
    const std::size_t finalist = times.final ? times.final->graph + 1 : 0;
    TASO_RETURN_IF_ERROR(database_->replace("noise", prefix, times.noise));
    TASO_RETURN_IF_ERROR(database_->replace("finalist", prefix, static_cast<double>(finalist)));
    if (times.final) TASO_RETURN_IF_ERROR(database_->replace("noise of final", prefix, times.final->noise));
    TASO_RETURN_IF_ERROR(database_->replace("date", prefix, today()));
  }
  for (std::size_t i = 0; i < hashes.size(); ++i) others_[{std::string(kind), key(i)}] = times.seconds[i];
  others_[{"noise", prefix}] = times.noise;
  if (database_->find("finalist", prefix))
    others_[{"finalist", prefix}] = times.final ? static_cast<double>(times.final->graph + 1) : 0;
  others_.erase({"noise of final", prefix});
  if (times.final) others_[{"noise of final", prefix}] = times.final->noise;
  if (const auto date = database_->find("date", prefix)) others_[{"date", prefix}] = *date;
  return times;
}

std::string cache_key(double bytes) { return fmt::format("{} MB", std::ceil(bytes / 1e6)); }

std::vector<CostDatabase::Entry> MeasuredCosts::used() const {
  std::vector<CostDatabase::Entry> entries;
  for (const auto& [hash, kernel] : kernels_)
    entries.push_back({database_->device(), "kernel", kernel.first, kernel.second});
  for (const auto& [hash, kernel] : least_)
    if (kernel.second > 0 && !kernels_.contains(hash))
      entries.push_back({database_->device(), "least", kernel.first, kernel.second});
  for (const auto& [key, value] : others_) entries.push_back({database_->device(), key.first, key.second, value});
  std::sort(entries.begin(), entries.end());
  return entries;
}

Expected<CostFormula> parse_cost_formula(std::string_view text) {
  auto wrong = [&](std::string_view what) {
    return Error{ErrorCode::usage,
                 fmt::format("--cost {}: {}; expected time, flops, bytes, launches, memory or a sum such as "
                             "time+0.1*bytes",
                             text, what),
                 {}};
  };
  CostFormula formula;
  for (std::string_view rest = text;;) {
    // A '+' after an 'e' belongs to a number such as 1e+3.
    std::size_t plus = rest.find('+');
    while (plus != std::string_view::npos && plus > 1 && (rest[plus - 1] == 'e' || rest[plus - 1] == 'E') &&
           (std::isdigit(static_cast<unsigned char>(rest[plus - 2])) != 0 || rest[plus - 2] == '.'))
      plus = rest.find('+', plus + 1);
    std::string_view part = trimmed(rest.substr(0, plus));
    CostFormula::Weighted term;
    if (const std::size_t times = part.find('*'); times != std::string_view::npos) {
      const std::string_view number = trimmed(part.substr(0, times));
      const auto [end, status] = std::from_chars(number.data(), number.data() + number.size(), term.weight);
      if (status != std::errc{} || end != number.data() + number.size() || !std::isfinite(term.weight) ||
          term.weight < 0)
        return wrong(fmt::format("'{}' is not a weight of at least 0", number));
      part = trimmed(part.substr(times + 1));
    }
    bool known = false;
    for (const auto& [candidate, name] : term_names)
      if (name == part) {
        term.term = candidate;
        known = true;
      }
    if (!known) return wrong(part.empty() ? "a term is empty" : fmt::format("'{}' is not a cost", part));
    formula.terms.push_back(term);
    if (plus == std::string_view::npos) break;
    rest.remove_prefix(plus + 1);
  }
  return formula;
}

std::unique_ptr<CostModel> make_cost_model(CostFormula formula, MeasuredCosts& measured) {
  return std::make_unique<WeightedSum>(std::move(formula), measured);
}

}  // namespace taso
