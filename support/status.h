/// Errors as values. Anything that input can make fail returns an Expected<T>; a broken invariant
/// of ours is TASO_CHECK, which stays on in release builds.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace taso {

/// The few kinds of failure; each is one documented exit code of the four programs.
enum class ErrorCode {
  internal = 1,            ///< A fault of ours.
  usage = 2,               ///< Wrong command line.
  bad_input = 3,           ///< A file of the user is unreadable or wrong.
  check_failed = 4,        ///< Numeric check failed; nothing was written.
  not_proved = 5,          ///< Not everything proved, or no gain under --fail-if-no-gain.
  device_unavailable = 6,  ///< The device or its library is not on this machine, or a rank is lost.
  cost_missing = 7,        ///< A cost is not recorded and --no-measure forbids measuring it.
  interrupted = 130,       ///< SIGINT; the best result so far was written.
};

/// A place in a text file; line and column count from 1, 0 means unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

/// One failure: what kind, where, and one line that says what is wrong and what would be right.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  SourceLocation where;

  /// "file:line:column: message", leaving out what is unknown.
  [[nodiscard]] std::string to_string() const;
  /// The process exit code that stands for this error.
  [[nodiscard]] int exit_code() const { return static_cast<int>(code); }
};

/// An Error with code bad_input.
[[nodiscard]] Error bad_input(std::string message, SourceLocation where = {});
/// An Error with code internal.
[[nodiscard]] Error internal_error(std::string message);

/// A value of type T or the Error that prevented it. Reading the wrong side is a TASO_CHECK failure.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Expected*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*checked()); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Expected*>(this)->checked(); }

  [[nodiscard]] const Error& error() const {
    const Error* error = std::get_if<1>(&state_);
    if (error == nullptr) std::abort();
    return *error;
  }

 private:
  T* checked() {
    T* value = std::get_if<0>(&state_);
    if (value == nullptr) {
      std::fprintf(stderr, "internal error: value of a failed Expected read: %s\n", error().message.c_str());
      std::abort();
    }
    return value;
  }

  std::variant<T, Error> state_;
};

/// Success, or the Error that prevented it.
template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    if (!error_) std::abort();
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Expected<void>;

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace detail

}  // namespace taso

#define TASO_CONCAT_INNER(a, b) a##b
#define TASO_CONCAT(a, b) TASO_CONCAT_INNER(a, b)

/// Aborts with file, line and message unless `condition` holds. For our own invariants only.
#define TASO_CHECK(condition, message) \
  (static_cast<bool>(condition) ? void(0) : ::taso::detail::check_failed(__FILE__, __LINE__, #condition, (message)))

/// Returns the error of a Status expression from the enclosing function.
#define TASO_RETURN_IF_ERROR(expression)                                                  \
  do {                                                                                    \
    if (const auto& taso_status = (expression); !taso_status) return taso_status.error(); \
  } while (false)

/// Declares `target` from an Expected expression, or returns its error from the enclosing function.
#define TASO_ASSIGN(target, expression) TASO_ASSIGN_IMPL(TASO_CONCAT(taso_expected_, __LINE__), target, expression)
// `target` and `temporary` are declared: no parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define TASO_ASSIGN_IMPL(temporary, target, expression) \
  auto temporary = (expression);                        \
  if (!temporary) return temporary.error();             \
  target = std::move(temporary).value()
// NOLINTEND(bugprone-macro-parentheses)
