#include "operators/trial_points.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

namespace taso {
namespace {

using Curve = std::function<void(double, TrialPoint&)>;
using Switch = NumberProgram::Switch;

// Of one program: definitions that unfold to many operations are tried as long as others.
constexpr std::size_t max_switches = 100;
// How many places are looked for along one curve and for one switch at a time, and how often: between places that were
// found there may be others.
constexpr std::size_t max_places = 40;
constexpr int max_rounds = 4;
// Steps of floor and the like are many: some of those at moderate numbers.
constexpr std::size_t max_jumps = 16;
constexpr double largest_jump = 1e4;
// Places among whose pairs a statement of several variables is tried.
constexpr std::size_t max_shared_places = 24;
constexpr std::size_t max_choices = 80;
// Values are equal that differ by less than this part: rounding would make places everywhere.
constexpr double noise = 1e-14;
// Numbers closer to each other than this are not told apart.
constexpr double resolution = 1e-15;

// Of many magnitudes, those of neural networks most often.
constexpr double magnitudes[] = {1e-30, 1e-20, 1e-12, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1,  0.3,  0.5, 0.7,
                                 1,     1.25,  1.5,   2,    2.75, 3,    4.4,  6.1,  7.3,  10,   14,   20,  37,
                                 60,    100,   250,   1e3,  3e3,  1e4,  1e5,  1e6,  1e8,  1e12, 1e20, 1e30};
constexpr double few[] = {0, 1e-6, 0.3, 0.5, 1, 1.25, 2, 3, 7.3, 20, 100, 1e6};

void sort_unique(std::vector<double>& numbers) {
  if (!std::is_sorted(numbers.begin(), numbers.end())) std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

void add_both_signs(std::vector<double>& numbers, double number) {
  numbers.push_back(number + 0.0);
  numbers.push_back(0.0 - number);
}

void add_neighbourhood(std::vector<double>& numbers, double place) {
  numbers.push_back(place);
  if (std::fabs(place) < magnitudes[0]) return;
  for (const double direction : {-1.0, 1.0}) {
    numbers.push_back(std::nextafter(place, direction * HUGE_VAL));
    for (const double near : {1e-9, 1e-6, 1e-4}) numbers.push_back(place + direction * near * std::fabs(place));
    numbers.push_back(place + direction * 0.01);
  }
}

void add_literals(std::vector<double>& numbers, const NumberProgram& program) {
  std::vector<double> literals = program.literals();
  sort_unique(literals);
  for (const double literal : literals)
    if (std::isfinite(literal)) {
      for (const double near : {literal, literal - 0.01, literal + 0.01}) add_both_signs(numbers, near);
      if (literal == 0) continue;
      for (const double direction : {-HUGE_VAL, HUGE_VAL}) add_both_signs(numbers, std::nextafter(literal, direction));
    }
}

// The double between two others in their order, so that any two are bisected in 64 steps.
double between(double low, double high) {
  auto ordinal = [](double x) {
    const auto bits = std::bit_cast<std::int64_t>(x + 0.0);
    return bits < 0 ? std::int64_t(0x8000000000000000ULL) - bits : bits;
  };
  const std::int64_t a = ordinal(low), b = ordinal(high);
  const std::int64_t middle = a / 2 + b / 2 + (a % 2 + b % 2) / 2;
  return std::bit_cast<double>(middle < 0 ? std::int64_t(0x8000000000000000ULL) - middle : middle);
}

// Finds the places along one curve.
class Search {
 public:
  Search(const NumberProgram& program, const Curve& curve) : program_(program), curve_(curve) {
    switches_ = program.switches();
    if (switches_.size() > max_switches) switches_.resize(max_switches);
  }

  // Numbers between which something may be, too.
  void mark(const std::vector<double>& numbers) { places_.insert(places_.end(), numbers.begin(), numbers.end()); }

  // The numbers, and those at and about places.
  std::vector<double> extend(std::vector<double> grid) {
    if (switches_.empty() && places_.empty()) return grid;
    for (int round = 0; round < max_rounds; ++round) {
      const std::size_t before = round == 0 ? 0 : places_.size();
      look_between(grid);
      if (places_.size() == before) break;
      std::vector<double> sorted = places_;
      sort_unique(sorted);
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        add_neighbourhood(grid, sorted[i]);
        if (i > 0) grid.push_back(sorted[i - 1] + (sorted[i] - sorted[i - 1]) / 2);
      }
      sort_unique(grid);
    }
    return grid;
  }

  [[nodiscard]] const std::vector<double>& places() const { return places_; }

 private:
  double difference(const Switch& at, double t) {
    curve_(t, numbers_);
    (void)program_.run(numbers_, values_);
    return read(at);
  }
  [[nodiscard]] double read(const Switch& at) const {
    const double left = values_[static_cast<std::size_t>(at.left)];
    if (at.right < 0) return left;
    double right = values_[static_cast<std::size_t>(at.right)];
    if (at.kind == Switch::Kind::opposite) right = -right;
    const double difference = left - right;
    return std::fabs(difference) <= noise * std::fabs(left) ? 0 : difference;
  }
  // Which side of the place a difference is on.
  static int side(double difference) {
    return std::isnan(difference) ? 2 : (difference > 0 ? 1 : 0) - (difference < 0 ? 1 : 0);
  }
  static bool same(const Switch& at, double a, double b) {
    return at.kind == Switch::Kind::jump ? a == b : side(a) == side(b);
  }

  void look_between(const std::vector<double>& grid) {
    std::vector<double> differences(switches_.size() * grid.size());
    for (std::size_t i = 0; i < grid.size(); ++i) {
      curve_(grid[i], numbers_);
      (void)program_.run(numbers_, values_);
      for (std::size_t s = 0; s < switches_.size(); ++s) differences[s * grid.size() + i] = read(switches_[s]);
    }
    for (std::size_t s = 0; s < switches_.size(); ++s) {
      const double* const d = differences.data() + s * grid.size();
      const bool jump = switches_[s].kind == Switch::Kind::jump;
      const std::size_t limit = places_.size() + 2 * (jump ? max_jumps : max_places);
      for (std::size_t i = 0; i + 1 < grid.size() && places_.size() < limit; ++i) {
        if (jump && (std::fabs(grid[i]) > largest_jump || i % jump_stride(grid) != 0)) continue;
        if (!same(switches_[s], d[i], d[i + 1]))
          bisect(switches_[s], grid[i], d[i], grid[i + 1]);
        else if (!jump && i > 0 && turns(d[i - 1], d[i], d[i + 1]))
          approach(switches_[s], grid[i - 1], d[i], grid[i + 1]);
      }
    }
  }

  static std::size_t jump_stride(const std::vector<double>& grid) { return 1 + grid.size() / (4 * max_jumps); }

  static bool is_narrow(double low, double high) {
    return high - low <= resolution * std::max(std::fabs(low), std::fabs(high)) || high - low <= magnitudes[0];
  }

  void bisect(const Switch& at, double low, double at_low, double high) {
    if (is_narrow(low, high)) return;
    while (true) {
      const double middle = between(low, high);
      if (middle <= low || middle >= high || is_narrow(low, high)) break;
      (same(at, difference(at, middle), at_low) ? low : high) = middle;
    }
    places_.push_back(high);
    places_.push_back(low);
  }

  // Whether the middle one of three numbers of one sign is nearest to 0, perhaps as near as the last.
  static bool turns(double before, double here, double after) {
    return side(before) == side(here) && side(after) == side(here) && std::fabs(here) < std::fabs(before) &&
           std::fabs(here) <= std::fabs(after);
  }

  // Golden section, until the difference has another sign.
  void approach(const Switch& at, double low, double here, double high) {
    constexpr double ratio = 0.6180339887498949;
    double left = high - ratio * (high - low), right = low + ratio * (high - low);
    double at_left = difference(at, left), at_right = difference(at, right);
    while (!is_narrow(low, high)) {
      for (const auto& [t, value] : {std::pair(left, at_left), {right, at_right}})
        if (side(value) != side(here)) {
          places_.push_back(t);
          return;
        }
      if (std::fabs(at_left) < std::fabs(at_right)) {
        high = std::exchange(right, left);
        at_right = at_left;
        left = high - ratio * (high - low);
        at_left = difference(at, left);
      } else if (std::fabs(at_left) > std::fabs(at_right)) {
        low = std::exchange(left, right);
        at_left = at_right;
        right = low + ratio * (high - low);
        at_right = difference(at, right);
      } else {  // On both sides of the least value.
        low = left;
        high = right;
        left = high - ratio * (high - low);
        right = low + ratio * (high - low);
        at_left = difference(at, left);
        at_right = difference(at, right);
      }
    }
  }

  const NumberProgram& program_;
  const Curve& curve_;
  std::vector<Switch> switches_;
  TrialPoint numbers_{};
  std::vector<double> values_, places_;
};

// Without what a program names.
std::vector<double> numbers_of_all_magnitudes() {
  std::vector<double> grid = {0};
  for (const double magnitude : magnitudes) add_both_signs(grid, magnitude);
  for (int decade = -30; decade <= 30; ++decade) add_both_signs(grid, 1.7 * std::pow(10.0, decade));
  // Multiples of an irrational number, spread over some magnitudes.
  double x = 0.7548776662466927;
  for (int i = 0; i < 60; ++i) {
    x = std::fmod(x * 1.3247179572447460 + 0.5698402909980532, 1.0);
    grid.push_back((x - 0.5) * std::ldexp(1.0, i % 12));
  }
  sort_unique(grid);
  return grid;
}

// The line of numbers, of one variable.
std::vector<TrialPoint> points_of_line(const NumberProgram& program) {
  static const std::vector<double> fixed = numbers_of_all_magnitudes();
  std::vector<double> grid = fixed;
  add_literals(grid, program);
  sort_unique(grid);
  const Curve line = [](double t, TrialPoint& numbers) { numbers[0] = t; };
  std::vector<TrialPoint> points;
  Search search(program, line);
  std::vector<double> literals;
  for (const double literal : program.literals())
    if (std::isfinite(literal)) add_both_signs(literals, literal);
  search.mark(literals);
  for (const double t : search.extend(std::move(grid))) points.push_back({t});
  return points;
}

}  // namespace

std::vector<TrialPoint> trial_points(const NumberProgram& program, std::size_t variables) {
  std::vector<TrialPoint> points;
  if (variables == 0) return {{}};
  if (variables == 1) return points_of_line(program);
  // Parallels of the axes and diagonals. What the other variables are differs from line to line.
  std::vector<Curve> curves;
  constexpr double others[] = {1, -1, 0.3, -2.75, 100, 0};
  for (std::size_t v = 0; v < variables; ++v)
    for (std::size_t o = 0; o < std::size(others); ++o)
      curves.emplace_back([v, o, &others](double t, TrialPoint& numbers) {
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = others[(o + i) % std::size(others)];
        numbers[v] = t;
      });
  for (std::size_t v = 0; v < variables; ++v)
    for (std::size_t w = v + 1; w < variables; ++w)
      for (int kind = 0; kind < 4; ++kind)
        curves.emplace_back([v, w, kind](double t, TrialPoint& numbers) {
          numbers.fill(1.25);
          numbers[v] = t;
          numbers[w] = (kind % 2 == 0 ? 1 : -1) * (kind < 2 || t == 0 ? t : 1 / t);
        });
  std::vector<double> grid = {0}, shared;
  for (const double magnitude : magnitudes) add_both_signs(grid, magnitude);
  add_literals(grid, program);
  sort_unique(grid);
  TrialPoint numbers{};
  for (const Curve& curve : curves) {
    Search search(program, curve);
    for (const double t : search.extend(grid)) {
      curve(t, numbers);
      points.push_back(numbers);
    }
    shared.insert(shared.end(), search.places().begin(), search.places().end());
  }
  // All pairs, or triples, of a few numbers.
  std::vector<double> choices;
  for (const double number : few)
    if (variables == 2 || number == std::floor(number)) add_both_signs(choices, number);
  std::sort(shared.begin(), shared.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  const std::size_t stride = 1 + shared.size() / max_shared_places;
  for (std::size_t i = 0; i < shared.size(); i += variables == 2 ? stride : 4 * stride) choices.push_back(shared[i]);
  if (variables == 2) add_literals(choices, program);
  sort_unique(choices);
  for (std::size_t i = choices.size(); i > 0 && choices.size() > max_choices; i -= std::min<std::size_t>(i, 2))
    choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(i - 1));
  std::vector<std::size_t> choice(variables, 0);
  while (true) {
    for (std::size_t i = 0; i < variables; ++i) numbers[i] = choices[choice[i]];
    points.push_back(numbers);
    std::size_t i = 0;
    while (i < variables && ++choice[i] == choices.size()) choice[i++] = 0;
    if (i == variables) return points;
  }
}

}  // namespace taso
