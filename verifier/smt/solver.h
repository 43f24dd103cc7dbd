/// First-order terms and a solver: the one door to Z3.
///
/// Terms, sorts and functions are values that share a reference-counted handle; a Context must outlive them and is
/// used by one thread at a time. Solver failures are answers, never exceptions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct _Z3_ast;      // NOLINT(bugprone-reserved-identifier): Z3's own names
struct _Z3_context;  // NOLINT(bugprone-reserved-identifier)
struct _Z3_solver;   // NOLINT(bugprone-reserved-identifier)

namespace taso::smt {

class Context;
class Watchdog;

/// A reference-counted handle of a term, a sort or a function.
class Handle {
 public:
  Handle() = default;
  Handle(_Z3_context* context, _Z3_ast* ast);
  Handle(const Handle& other) : Handle(other.context_, other.ast_) {}
  Handle(Handle&& other) noexcept : context_(other.context_), ast_(other.ast_) { other.ast_ = nullptr; }
  Handle& operator=(Handle other) noexcept;
  ~Handle();
  [[nodiscard]] bool valid() const { return ast_ != nullptr; }
  [[nodiscard]] _Z3_context* context() const { return context_; }
  [[nodiscard]] _Z3_ast* ast() const { return ast_; }
  /// SMT-LIB text.
  [[nodiscard]] std::string to_string() const;

 private:
  _Z3_context* context_ = nullptr;
  _Z3_ast* ast_ = nullptr;
};

/// A sort: Int, Real, or an uninterpreted one.
class Sort : public Handle {
  using Handle::Handle;
};

/// A term or formula. Equal terms of one context are the same term.
class Expr : public Handle {
 public:
  using Handle::Handle;
  friend bool operator==(const Expr& a, const Expr& b) { return a.ast() == b.ast(); }
};

/// An uninterpreted function.
class Function : public Handle {
 public:
  using Handle::Handle;
  [[nodiscard]] Expr operator()(std::span<const Expr> arguments) const;
};

/// One Z3 context with its sorts. Making one takes Z3 as long as many a proof (10 ms).
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] Sort integer_sort();
  [[nodiscard]] Sort real_sort();
  [[nodiscard]] Sort uninterpreted_sort(const std::string& name);
  [[nodiscard]] Function function(const std::string& name, std::span<const Sort> arguments, const Sort& result);
  [[nodiscard]] Expr constant(const std::string& name, const Sort& sort);
  /// A constant that occurs nowhere else.
  [[nodiscard]] Expr fresh(const std::string& prefix, const Sort& sort);

  [[nodiscard]] Expr integer(std::int64_t value);
  /// The exact rational value of a finite double.
  [[nodiscard]] Expr real(double value);
  [[nodiscard]] Expr add(const Expr& a, const Expr& b);
  [[nodiscard]] Expr subtract(const Expr& a, const Expr& b);
  [[nodiscard]] Expr multiply(const Expr& a, const Expr& b);
  /// Floor division as in rules; Z3's `div` agrees for positive divisors, which is all that is claimed.
  [[nodiscard]] Expr divide(const Expr& a, const Expr& b);
  [[nodiscard]] Expr to_real(const Expr& a);
  [[nodiscard]] Expr equal(const Expr& a, const Expr& b);
  [[nodiscard]] Expr less(const Expr& a, const Expr& b);
  [[nodiscard]] Expr less_equal(const Expr& a, const Expr& b);
  [[nodiscard]] Expr negation(const Expr& a);
  [[nodiscard]] Expr distinct(std::span<const Expr> terms);
  [[nodiscard]] Expr conjunction(std::span<const Expr> terms);
  [[nodiscard]] Expr disjunction(std::span<const Expr> terms);
  [[nodiscard]] Expr implies(const Expr& a, const Expr& b);
  /// forall variables. body, instantiated where all of `triggers` match (a multi-pattern). `variables` are constants.
  [[nodiscard]] Expr forall(std::span<const Expr> variables, std::span<const Expr> triggers, const Expr& body,
                            const std::string& name);

  [[nodiscard]] _Z3_context* handle() const { return context_; }
  /// Interrupts what takes too long in this context; made on first use.
  [[nodiscard]] Watchdog& watchdog();

 private:
  _Z3_context* context_;
  std::unique_ptr<Watchdog> watchdog_;
};

enum class Answer : std::uint8_t { unsatisfiable, satisfiable, unknown };

/// What check() found.
struct Result {
  Answer answer = Answer::unknown;
  std::string reason;        ///< Why unknown.
  bool interrupted = false;  ///< Unknown, since a limit was reached.
};

struct SolverOptions {
  bool model_based_quantifiers = false;  ///< Z3's mbqi; otherwise E-matching alone.
  bool tangents = true;  ///< Lemmas on products by tangent planes: without end for some equations of integers.
  /// Resource units per check, 0 for no limit. Instances of quantifiers are limited in proportion.
  std::uint64_t rlimit = 0;
  /// A check that takes more processor time is interrupted: a net under `rlimit`.
  double watchdog_seconds = 30;
};

/// An incremental solver over one context.
class Solver {
 public:
  Solver(Context& context, const SolverOptions& options);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  void add(const Expr& formula);
  [[nodiscard]] Result check();
  /// The same with another limit on resource units.
  [[nodiscard]] Result check(std::uint64_t rlimit);
  /// The assertions as an SMT-LIB 2 script with (check-sat).
  [[nodiscard]] std::string smt2() const;

  /// Assertions added during its life are forgotten at its end.
  class Scope {
   public:
    explicit Scope(Solver& solver);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Solver& solver_;
  };

 private:
  void limit(std::uint64_t rlimit);
  Context& context_;
  _Z3_solver* solver_;
  SolverOptions options_;
};

}  // namespace taso::smt
