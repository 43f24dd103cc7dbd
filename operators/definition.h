/// The parsed form of a specification: operators, scalar functions and size functions.
/// Grammar and meaning: docs/spec-language.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph.h"
#include "support/status.h"

namespace taso {

/// What an expression stands for; assigned by the checker when a specification is loaded.
enum class Sort : std::uint8_t {
  integer,       ///< A number known once attributes and input shapes are: sizes, attributes.
  integers,      ///< A vector of such numbers: the extents of rest axes, list attributes.
  index,         ///< An integer that depends on an index variable.
  index_vector,  ///< A vector of them.
  integer_read,  ///< An element of a tensor of integers: a coordinate, or an argument of a function of integers.
  truth_read,    ///< An element of a tensor of truth values.
  any_read,      ///< An element of a tensor of which any element type will do.
  boolean,       ///< A comparison.
  real,          ///< A scalar of the ring: tensor elements, real attributes.
};

/// What the elements of a tensor are. Each is a set of element types: the real ones (graph/reals.h); i8 to u64,
/// integers of n bits that wrap around; boolean; all of these, where what is computed does not depend on what elements
/// are.
enum class ElementDomain : std::uint8_t { real, integer, boolean, any };
/// "real", "integer", "boolean", "any".
[[nodiscard]] const char* to_string(ElementDomain domain);
/// "floating-point numbers", "integers", "truth values", "numbers or truth values".
[[nodiscard]] const char* elements_of(ElementDomain domain);
/// Whether the elements of a type are of a domain.
[[nodiscard]] bool is_of(ElementType type, ElementDomain domain);

/// The functions of sizes and indices that the language has by itself (operators/size_functions.h).
enum class SizeBuiltin : std::uint8_t {
  none,
  before,
  first,
  inverse,
  is_permutation,
  join,
  last,
  length,
  max,
  min,
  nonzero,
  on,
  position,
  prod,
  repeat,
  sum,
};

/// One expression of the language. Which fields are used depends on `kind`.
struct Expression {
  enum class Kind : std::uint8_t {
    integer,   ///< `integer`.
    real,      ///< `real`.
    infinity,  ///< "inf"; "-inf" is `negate` of it. Only as the default of a read.
    name,      ///< `name`: a size, rest, attribute, `let`, index variable or parameter.
    piece,     ///< name.k: element operands[0] of the extents of a variadic input.
    list,      ///< [operands...].
    element,   ///< operands[0][operands[1]]: one element, or with a vector the elements it names.
    call,      ///< name(operands...): a built-in, a size function, a scalar function or a function attribute.
    negate,    ///< -operands[0].
    add,
    subtract,
    multiply,
    divide,
    floor_divide,
    modulo,  ///< operands[0] op operands[1].
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,  ///< Comparisons; of vectors: at every element.
    conjunction,
    disjunction,
    negation,     ///< && || !.
    conditional,  ///< if operands[0] then operands[1] else operands[2].
    read,         ///< name[operands...]: tensor element; `piece`, `flat`, `fallback` qualify it.
    valid,        ///< valid(read): 1 where the read lies inside the tensor, else 0.
    reduce,       ///< sum, prod, max, min over `ranges` of operands[0]; `name` is the reduction.
    all,          ///< all(i < n) operands[0]: a boolean.
    tuple,        ///< (operands...): the coordinate of a composite axis, outermost first.
  };
  /// An index variable with its extent; a vector of variables if `rest`.
  struct Range {
    std::string name;
    bool rest = false;
    std::shared_ptr<const Expression> extent;
  };

  Kind kind = Kind::integer;
  Sort sort = Sort::integer;
  std::int64_t integer = 0;
  double real = 0;
  std::string name;
  SizeBuiltin builtin = SizeBuiltin::none;  ///< Calls only; assigned by the checker.
  bool rest = false;                        ///< Coordinates only: "e..", a vector that stands for several axes.
  bool flat = false;                        ///< Reads only: name.flat[position].
  std::vector<Expression> operands;
  std::shared_ptr<const Expression> piece;     ///< Reads only: which tensor of a variadic input.
  std::shared_ptr<const Expression> fallback;  ///< Reads only: the value outside the tensor.
  std::vector<Range> ranges;
  SourceLocation where;

  /// The value of a literal, also of a negative one.
  [[nodiscard]] std::optional<double> number() const;
  /// Whether a scalar of the ring occurs, which says nothing of types.
  [[nodiscard]] bool speaks_of_reals() const;
};

__extension__ using WideInteger = __int128;

/// An element of a tensor as machines hold it. Of a number of a definition both members are that number.
struct MachineNumber {
  double real = 0;        ///< An element of a real type.
  std::int64_t word = 0;  ///< An integer, its bits extended to 64 by its sign if it has one; 0 or 1 of a truth value.
};
/// The element types of an operator's application, for functions of machine numbers.
struct MachineTypes {
  ElementType integers = ElementType::i64;  ///< Of those that it computes with.
  ElementType from = ElementType::f32;      ///< Of its first input: what is converted.
  ElementType to = ElementType::f32;        ///< Of what it makes.
};

/// The real numbers on which something is defined.
enum class ArgumentDomain : std::uint8_t { all, nonnegative, nonzero, positive };
/// "positive", ...
[[nodiscard]] const char* to_string(ArgumentDomain domain);

/// An equation between scalar expressions that holds wherever its left side is defined and the conditions hold:
/// `log(x * y) = log(x) + log(y) where x > 0`. Its variables stand for any reals. Provers read it from left to right.
struct FunctionLaw {
  /// A comparison of a variable with 0.
  struct Condition {
    enum class Relation : std::uint8_t { positive, nonnegative, negative, nonpositive, nonzero };
    std::size_t variable = 0;  ///< Index into FunctionLaw::variables.
    Relation relation = Relation::positive;
  };
  std::vector<std::string> variables;  ///< In the order of their first use on the left.
  /// A call of the function, each argument of which is a variable, a number, the negative or the inverse 1 / x of a
  /// variable, the sum or product of two variables, or a call of variables; or the product of a call f(x) and itself.
  Expression left;
  Expression right;
  std::vector<Condition> conditions;
  SourceLocation where;

  /// Whether this says what a call is where some of its arguments are numbers and the others any:
  /// `pow(x, 2) = x * x`. Then the left side is defined wherever the right one is, too.
  [[nodiscard]] bool is_special_case() const;
};

/// A scalar function: a primitive that every ring interprets, or an abbreviation, defined by an expression, which takes
/// its place wherever it is used, in every ring. Of primitives provers know the facts, the domain and the laws that are
/// declared; of abbreviations they know the definition alone.
struct FunctionDefinition {
  std::string name;
  int arity = 1;
  bool zero_at_zero = false;                    ///< f(0) = 0.
  bool monotone = false;                        ///< x <= y implies f(x) <= f(y).
  bool idempotent = false;                      ///< f(f(x)) = f(x).
  bool positive = false;                        ///< f(..) > 0 wherever it is defined.
  bool nonnegative = false;                     ///< f(..) >= 0 wherever it is defined.
  ArgumentDomain domain = ArgumentDomain::all;  ///< What the first argument must be for the function to have a value.
  std::vector<FunctionLaw> laws;
  std::string documentation;
  std::vector<std::string> parameters;
  std::optional<Expression> definition;         ///< Absent for a primitive.
  double (*real)(double) = nullptr;             ///< The real function of a unary primitive.
  double (*real2)(double, double) = nullptr;    ///< The real function of a binary primitive.
  WideInteger (*whole)(WideInteger) = nullptr;  ///< A unary primitive on integers, if it maps them to integers.
  /// What the parameters are, and the value. Where one is not real, so is the function no function of reals: no ring
  /// but that of machine numbers (operators/machine_ring.h) has it, and provers know nothing of it.
  std::vector<ElementDomain> parameter_domains;
  ElementDomain result = ElementDomain::real;
  /// Of such a function, which is a primitive: what it computes.
  MachineNumber (*machine)(std::span<const MachineNumber> arguments, const MachineTypes& types) = nullptr;
  std::uint64_t key = 0;  ///< Hash of the name: keys the oracle of FieldRing.
  SourceLocation where;

  /// Whether it is a function of reals.
  [[nodiscard]] bool is_real() const {
    return result == ElementDomain::real &&
           std::all_of(parameter_domains.begin(), parameter_domains.end(),
                       [](ElementDomain parameter) { return parameter == ElementDomain::real; });
  }

  [[nodiscard]] bool is_primitive() const { return !definition; }
  /// Whether a fact, a domain or a law is declared.
  [[nodiscard]] bool declares_anything() const {
    return zero_at_zero || monotone || idempotent || positive || nonnegative || domain != ArgumentDomain::all ||
           !laws.empty();
  }
};

/// A function on sizes, e.g. the number of positions of a window: expanded where it is used.
struct SizeFunction {
  std::string name;
  std::vector<std::string> parameters;
  Expression definition;
  SourceLocation where;
};

/// One entry of a tensor's axis list.
struct AxisSpec {
  enum class Kind : std::uint8_t {
    size,       ///< One axis; `factors` has one expression.
    composite,  ///< One axis whose extent is the product of `factors`, outermost first: (g*c).
    rest,       ///< Several axes: `name` is the vector of their extents.
  };
  Kind kind = Kind::size;
  std::vector<Expression> factors;   ///< Names are bound by the input in which they first occur.
  std::optional<Expression> length;  ///< Rest only: the number of axes, if the definition gives it.
  SourceLocation where;
};

struct InputSpec {
  std::string name;
  ElementDomain domain = ElementDomain::real;
  std::string piece;  ///< Variadic: the name that counts its tensors; otherwise empty.
  std::vector<AxisSpec> axes;
  SourceLocation where;
  [[nodiscard]] bool variadic() const { return !piece.empty(); }
  /// Holds integers: those of coordinates (i32 or i64), or numbers of any type.
  [[nodiscard]] bool integers() const { return domain == ElementDomain::integer; }
};

struct OutputSpec {
  /// Real or any: of the type of the inputs of that domain. Integers: likewise, i64 where there is no such input.
  ElementDomain domain = ElementDomain::real;
  std::string type;  ///< The attribute that is the element type; then `domain` is any. Otherwise empty.
  std::vector<AxisSpec> axes;
  std::string piece;                ///< Several outputs: the name that counts them; otherwise empty.
  std::optional<Expression> count;  ///< Several outputs: their number, from attributes alone.
  SourceLocation where;
};

struct AttributeSpec {
  std::string name;
  AttributeKind kind = AttributeKind::integer;
  bool element_type = false;                    ///< Of a symbol: it names an element type, not a function.
  std::optional<Expression> length;             ///< Lists only: how many entries; absent if any number will do.
  int constraint = 0;                           ///< Number of the constraint on a length that depends on shapes; or 0.
  std::optional<AttributeValue> default_value;  ///< Absent: the attribute must be given.
  SourceLocation where;
};

/// `let name = value` or `require condition "message"`, in the order of the definition.
struct SizeStatement {
  std::string name;  ///< Empty for a requirement.
  Expression value;
  std::string message;  ///< Of a requirement.
  int constraint = 0;   ///< Its number.
  SourceLocation where;
};

/// One step of finding the sizes of a definition from the shapes of its inputs. Steps are in the order of
/// OperatorDefinition::solution; a variadic input takes all of them for each of its tensors.
struct SizeStep {
  /// Tells apart which axes each entry of the input's axis list covers: at most one rest has an unknown length.
  static constexpr std::size_t align = static_cast<std::size_t>(-1);
  std::size_t input = 0;
  std::size_t entry = align;                ///< Of the axis list: binds its unknown factor, or is compared.
  std::optional<std::size_t> unknown = {};  ///< The factor that this step finds, where it is not known yet.
};

/// Tensors that are computed step by step along an axis of each, from one another and from themselves one step before:
/// `let h[t < n] = (h[t - 1] or 0) + x[t]`. They stand together; at one step they are computed in their order.
struct Recurrence {
  std::size_t first = 0, count = 1;  ///< Of the intermediates of the definition.
  /// The entry of this tensor's axis list along which the steps go: one axis, as long as those of the others.
  std::size_t axis = 0;
  bool carried = false;  ///< Some equation reads this tensor at the step before.
};

/// A tensor that is computed once and read like an input.
struct IntermediateSpec {
  std::string name;
  ElementDomain domain = ElementDomain::real;
  std::vector<AxisSpec> axes;  ///< The extents of a rest may be any vector of sizes.
  SourceLocation where;
  std::optional<Recurrence> recurrence = std::nullopt;  ///< Assigned by the checker.
};

/// One equation: target[...] = value.
struct Equation {
  std::string target;                     ///< "out", or the name of an intermediate.
  std::string piece;                      ///< out.k
  std::vector<Expression> coordinates;    ///< One per axis: index variables, tuples of them, or size + variable.
  std::vector<Expression::Range> ranges;  ///< Of the variables that are declared by `where`.
  Expression value;
  SourceLocation where;
};

/// An operator applied inside of a definition, `let y[n, c] = matmul(x, k)` or `out = softmax(y; axis=-1)`. When a
/// specification is loaded, the applied definition takes its place (operators/compose.h).
struct Application {
  /// An operand: a tensor of the definition, or another application.
  struct Operand {
    std::string tensor;
    std::shared_ptr<const Application> application;
    SourceLocation where;
  };
  std::string target;                         ///< "out", the name of an intermediate, or empty for an operand.
  std::optional<std::vector<AxisSpec>> axes;  ///< Those of the result, as the definition calls them.
  std::string op;
  std::vector<Operand> operands;
  std::vector<std::pair<std::string, Expression>> attributes;
  std::optional<std::int64_t> output;  ///< Which one of several outputs: `split(x; ...).0`.
  /// So many statements and equations of the definition stand before it.
  std::size_t statements = 0, equations = 0;
  SourceLocation where;
};

/// The parsed definition of one operator.
struct OperatorDefinition {
  std::string name;
  std::string documentation;
  std::vector<InputSpec> inputs;
  std::vector<AttributeSpec> attributes;  ///< In the order of the definition.
  std::vector<SizeStep> solution;         ///< Assigned by the checker.
  OutputSpec output;
  std::vector<SizeStatement> statements;
  std::vector<IntermediateSpec> intermediates;
  std::vector<Equation> equations;        ///< Those of an intermediate stand together, before those that read it.
  std::vector<Application> applications;  ///< As long as the definition is as it was written.
  /// The definition as it was written, if it applies other operators.
  std::shared_ptr<const OperatorDefinition> written;
  OperatorSignature signature;  ///< The same inputs and attributes as the graph layer sees them.
  bool commutative = false, associative = false;
  std::optional<PieceAttributes> coassociative;  ///< The law, with the attributes that it names.
  /// An element of the output is a scalar function of the elements of the inputs at the same place, and of inputs
  /// without axes. Assigned by the checker.
  bool elementwise = false;
  /// Every element of the outputs is an element of an input, or a number: whatever the elements are, the same ones.
  /// Inputs and outputs that are not declared otherwise are of any elements then. Assigned by the checker.
  bool moves = false;
  /// All that it computes are reals; integers are coordinates alone. What is proved of an operator is proved of these.
  /// Assigned by the checker.
  bool over_reals = true;
  SourceLocation where;

  [[nodiscard]] bool variadic() const { return inputs.size() == 1 && inputs[0].variadic(); }
  [[nodiscard]] bool several_outputs() const { return !output.piece.empty(); }
  /// nullptr if there is none of that name.
  [[nodiscard]] const AttributeSpec* find_attribute(std::string_view attribute) const;
  [[nodiscard]] const IntermediateSpec* find_intermediate(std::string_view intermediate) const;
  /// What the elements of input `i` may be (of a variadic one, of any of its tensors).
  [[nodiscard]] ElementDomain domain_of(std::size_t i) const;
  /// Whether input `i` may hold elements of a type; coordinates are i32 or i64.
  [[nodiscard]] bool takes(std::size_t i, ElementType type) const;
};

/// "The extent of output axis `output_axis` is the extent of axis `input_axis` of input `input`", axes counted from the
/// end. With `and_outer` the same holds for output_axis - i and input_axis - i as long as both axes exist.
struct AxisFact {
  int output_axis = -1;
  std::size_t input = 0;
  int input_axis = -1;
  bool and_outer = false;
  bool operator==(const AxisFact&) const = default;
};

/// Facts that hold for every application; for operators with one output and fixed inputs.
[[nodiscard]] std::vector<AxisFact> axis_facts(const OperatorDefinition& definition);

/// Whether every element that a checked definition makes is one that it reads, or a number (OperatorDefinition::moves).
[[nodiscard]] bool only_moves(const OperatorDefinition& definition);

/// Whether all that a checked definition computes are reals (OperatorDefinition::over_reals).
[[nodiscard]] bool is_over_reals(const OperatorDefinition& definition);

/// Whether a checked definition is of the form out[I..] = f(x[I..], y[I..], s[], ...), f a scalar function.
[[nodiscard]] bool is_elementwise(const OperatorDefinition& definition);

}  // namespace taso
