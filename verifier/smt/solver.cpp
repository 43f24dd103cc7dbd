#include "verifier/smt/solver.h"

#include <pthread.h>
#include <z3.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>

#include "support/status.h"

namespace taso::smt {
namespace {

// Z3 must not end the process on an error; the codes are looked at where they can occur.
void ignore_error(Z3_context, Z3_error_code) {}

Expr term(Z3_context context, Z3_ast ast) {
  TASO_CHECK(ast != nullptr,
             std::string("Z3 refuses a term: ") + Z3_get_error_msg(context, Z3_get_error_code(context)));
  return {context, ast};
}

std::vector<Z3_ast> asts(std::span<const Expr> terms) {
  std::vector<Z3_ast> result;
  result.reserve(terms.size());
  for (const Expr& expr : terms) result.push_back(expr.ast());
  return result;
}

}  // namespace

// One thread that interrupts the context when a check has used up its processor time. Not the clock on the wall: on a
// busy machine the same check may take ten times as long there.
class Watchdog {
 public:
  explicit Watchdog(Z3_context context) : context_(context), thread_([this] { run(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  /// For a check by the calling thread.
  void arm(double seconds) {
    {
      const std::lock_guard lock(mutex_);
      watched_ = pthread_getcpuclockid(pthread_self(), &clock_) == 0;
      deadline_ = processor_time() + seconds;
      armed_ = true;
      fired_ = false;
    }
    changed_.notify_one();
  }
  /// Whether the time was used up.
  bool disarm() {
    const std::lock_guard lock(mutex_);
    armed_ = false;
    return fired_;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (!armed_) {
        changed_.wait(lock);
        continue;
      }
      const double left = deadline_ - processor_time();
      if (left <= 0) {
        fired_ = true;
        // The check may have begun after the first interrupt: repeat until disarmed.
        Z3_interrupt(context_);
      }
      changed_.wait_for(lock, std::chrono::duration<double>(std::max(left, 0.1)));
    }
  }

  // Of the thread that armed, while it is armed, in seconds.
  [[nodiscard]] double processor_time() const {
    timespec time{};
    if (!watched_ || clock_gettime(clock_, &time) != 0) clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  Z3_context context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  clockid_t clock_ = CLOCK_MONOTONIC;
  double deadline_ = 0;
  bool watched_ = false;  // clock_ is the thread's
  bool armed_ = false, fired_ = false, stop_ = false;
  std::thread thread_;
};

Handle::Handle(_Z3_context* context, _Z3_ast* ast) : context_(context), ast_(ast) {
  if (ast_ != nullptr) Z3_inc_ref(context_, ast_);
}

Handle::~Handle() {
  if (ast_ != nullptr) Z3_dec_ref(context_, ast_);
}

Handle& Handle::operator=(Handle other) noexcept {
  std::swap(context_, other.context_);
  std::swap(ast_, other.ast_);
  return *this;
}

std::string Handle::to_string() const { return ast_ == nullptr ? "" : Z3_ast_to_string(context_, ast_); }

Expr Function::operator()(std::span<const Expr> arguments) const {
  const std::vector<Z3_ast> list = asts(arguments);
  return term(context(), Z3_mk_app(context(), reinterpret_cast<Z3_func_decl>(ast()), static_cast<unsigned>(list.size()),
                                   list.data()));
}

Context::Context() {
  Z3_config config = Z3_mk_config();
  Z3_set_param_value(config, "auto_config", "false");
  context_ = Z3_mk_context_rc(config);
  Z3_del_config(config);
  Z3_set_error_handler(context_, ignore_error);
  Z3_set_ast_print_mode(context_, Z3_PRINT_SMTLIB2_COMPLIANT);
}

Context::~Context() {
  watchdog_.reset();
  Z3_del_context(context_);
}

Watchdog& Context::watchdog() {
  if (watchdog_ == nullptr) watchdog_ = std::make_unique<Watchdog>(context_);
  return *watchdog_;
}

Sort Context::integer_sort() { return {context_, Z3_sort_to_ast(context_, Z3_mk_int_sort(context_))}; }
Sort Context::real_sort() { return {context_, Z3_sort_to_ast(context_, Z3_mk_real_sort(context_))}; }

Sort Context::uninterpreted_sort(const std::string& name) {
  return {context_,
          Z3_sort_to_ast(context_, Z3_mk_uninterpreted_sort(context_, Z3_mk_string_symbol(context_, name.c_str())))};
}

Function Context::function(const std::string& name, std::span<const Sort> arguments, const Sort& result) {
  std::vector<Z3_sort> sorts;
  sorts.reserve(arguments.size());
  for (const Sort& sort : arguments) sorts.push_back(reinterpret_cast<Z3_sort>(sort.ast()));
  Z3_func_decl declaration =
      Z3_mk_func_decl(context_, Z3_mk_string_symbol(context_, name.c_str()), static_cast<unsigned>(sorts.size()),
                      sorts.data(), reinterpret_cast<Z3_sort>(result.ast()));
  return {context_, Z3_func_decl_to_ast(context_, declaration)};
}

Expr Context::constant(const std::string& name, const Sort& sort) {
  return term(context_, Z3_mk_const(context_, Z3_mk_string_symbol(context_, name.c_str()),
                                    reinterpret_cast<Z3_sort>(sort.ast())));
}

Expr Context::fresh(const std::string& prefix, const Sort& sort) {
  return term(context_, Z3_mk_fresh_const(context_, prefix.c_str(), reinterpret_cast<Z3_sort>(sort.ast())));
}

Expr Context::integer(std::int64_t value) {
  return term(context_, Z3_mk_int64(context_, value, Z3_mk_int_sort(context_)));
}

Expr Context::real(double value) {
  TASO_CHECK(std::isfinite(value), "a solver has no infinite numbers");
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  const auto scaled = static_cast<std::int64_t>(std::ldexp(mantissa, 53));
  exponent -= 53;
  const Expr number = term(context_, Z3_mk_int2real(context_, integer(scaled).ast()));
  const Expr base = term(context_, Z3_mk_real(context_, 2, 1));
  const Expr power =
      term(context_, Z3_mk_power(context_, base.ast(), term(context_, Z3_mk_real(context_, exponent, 1)).ast()));
  const Z3_ast product[] = {number.ast(), power.ast()};
  const Expr result = term(context_, Z3_mk_mul(context_, 2, product));
  return term(context_, Z3_simplify(context_, result.ast()));
}

Expr Context::add(const Expr& a, const Expr& b) {
  const Z3_ast list[] = {a.ast(), b.ast()};
  return term(context_, Z3_simplify(context_, term(context_, Z3_mk_add(context_, 2, list)).ast()));
}

Expr Context::subtract(const Expr& a, const Expr& b) {
  const Z3_ast list[] = {a.ast(), b.ast()};
  return term(context_, Z3_simplify(context_, term(context_, Z3_mk_sub(context_, 2, list)).ast()));
}

Expr Context::multiply(const Expr& a, const Expr& b) {
  const Z3_ast list[] = {a.ast(), b.ast()};
  return term(context_, Z3_simplify(context_, term(context_, Z3_mk_mul(context_, 2, list)).ast()));
}

Expr Context::divide(const Expr& a, const Expr& b) { return term(context_, Z3_mk_div(context_, a.ast(), b.ast())); }
Expr Context::to_real(const Expr& a) { return term(context_, Z3_mk_int2real(context_, a.ast())); }
Expr Context::equal(const Expr& a, const Expr& b) { return term(context_, Z3_mk_eq(context_, a.ast(), b.ast())); }
Expr Context::less(const Expr& a, const Expr& b) { return term(context_, Z3_mk_lt(context_, a.ast(), b.ast())); }
Expr Context::less_equal(const Expr& a, const Expr& b) { return term(context_, Z3_mk_le(context_, a.ast(), b.ast())); }
Expr Context::negation(const Expr& a) { return term(context_, Z3_mk_not(context_, a.ast())); }

Expr Context::distinct(std::span<const Expr> terms) {
  const std::vector<Z3_ast> list = asts(terms);
  return term(context_, Z3_mk_distinct(context_, static_cast<unsigned>(list.size()), list.data()));
}

Expr Context::conjunction(std::span<const Expr> terms) {
  const std::vector<Z3_ast> list = asts(terms);
  if (list.size() == 1) return terms[0];
  return term(context_, Z3_mk_and(context_, static_cast<unsigned>(list.size()), list.data()));
}

Expr Context::disjunction(std::span<const Expr> terms) {
  const std::vector<Z3_ast> list = asts(terms);
  if (list.size() == 1) return terms[0];
  return term(context_, Z3_mk_or(context_, static_cast<unsigned>(list.size()), list.data()));
}

Expr Context::implies(const Expr& a, const Expr& b) {
  return term(context_, Z3_mk_implies(context_, a.ast(), b.ast()));
}

Expr Context::forall(std::span<const Expr> variables, std::span<const Expr> triggers, const Expr& body,
                     const std::string& name) {
  if (variables.empty()) return body;
  std::vector<Z3_app> bound;
  bound.reserve(variables.size());
  for (const Expr& variable : variables) bound.push_back(Z3_to_app(context_, variable.ast()));
  const std::vector<Z3_ast> terms = asts(triggers);
  std::vector<Z3_pattern> patterns;
  if (!terms.empty()) patterns.push_back(Z3_mk_pattern(context_, static_cast<unsigned>(terms.size()), terms.data()));
  return term(context_, Z3_mk_quantifier_const_ex(context_, true, 1, Z3_mk_string_symbol(context_, name.c_str()),
                                                  Z3_mk_string_symbol(context_, (name + ".skolem").c_str()),
                                                  static_cast<unsigned>(bound.size()), bound.data(),
                                                  static_cast<unsigned>(patterns.size()), patterns.data(), 0, nullptr,
                                                  body.ast()));
}

namespace {
constexpr std::uint64_t units_per_instance = 100, least_instances = 2'000;
}  // namespace

Solver::Solver(Context& context, const SolverOptions& options)
    : context_(context), solver_(Z3_mk_simple_solver(context.handle())), options_(options) {
  Z3_solver_inc_ref(context.handle(), solver_);
  limit(options.rlimit);
}

void Solver::limit(std::uint64_t rlimit) {
  const Z3_context context = context_.handle();
  Z3_params params = Z3_mk_params(context);
  Z3_params_inc_ref(context, params);
  auto symbol = [&](const char* name) { return Z3_mk_string_symbol(context, name); };
  Z3_params_set_bool(context, params, symbol("auto_config"), false);
  Z3_params_set_bool(context, params, symbol("mbqi"), options_.model_based_quantifiers);
  if (!options_.tangents) Z3_params_set_bool(context, params, symbol("arith.nl.tangents"), false);
  if (rlimit != 0 || options_.rlimit != 0) {
    Z3_params_set_uint(context, params, symbol("rlimit"),
                       static_cast<unsigned>(std::min<std::uint64_t>(rlimit, 0xFFFFFFFFU)));
    // Instances of quantifiers cost few resource units and much memory.
    const std::uint64_t instances =
        rlimit == 0 ? 0xFFFFFFFFU
                    : std::clamp<std::uint64_t>(rlimit / units_per_instance, least_instances, 0xFFFFFFFFU);
    Z3_params_set_uint(context, params, symbol("qi.max_instances"), static_cast<unsigned>(instances));
  }
  Z3_solver_set_params(context, solver_, params);
  Z3_params_dec_ref(context, params);
}

Solver::~Solver() { Z3_solver_dec_ref(context_.handle(), solver_); }

void Solver::add(const Expr& formula) { Z3_solver_assert(context_.handle(), solver_, formula.ast()); }

Result Solver::check(std::uint64_t rlimit) {
  limit(rlimit);
  Result result = check();
  limit(options_.rlimit);
  return result;
}

Result Solver::check() {
  Watchdog& watchdog = context_.watchdog();
  watchdog.arm(options_.watchdog_seconds);
  const Z3_lbool answer = Z3_solver_check(context_.handle(), solver_);
  const bool late = watchdog.disarm();
  switch (answer) {
    case Z3_L_FALSE:
      return {Answer::unsatisfiable, ""};
    case Z3_L_TRUE:
      return {Answer::satisfiable, ""};
    case Z3_L_UNDEF:
      break;
  }
  if (late) return {Answer::unknown, "time limit", true};
  // How Z3 calls an interruption depends on what the context did before; reports must not.
  const std::string reason = Z3_solver_get_reason_unknown(context_.handle(), solver_);
  if (reason.find("incomplete") != std::string::npos) return {Answer::unknown, "incomplete", false};
  return {Answer::unknown, "no answer within the limit", true};
}

std::string Solver::smt2() const {
  return std::string(Z3_solver_to_string(context_.handle(), solver_)) + "(check-sat)\n";
}

Solver::Scope::Scope(Solver& solver) : solver_(solver) { Z3_solver_push(solver_.context_.handle(), solver_.solver_); }
Solver::Scope::~Scope() { Z3_solver_pop(solver_.context_.handle(), solver_.solver_, 1); }

}  // namespace taso::smt
