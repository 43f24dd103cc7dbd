#pragma once

// The loops of cpu/loops.h, included once per instruction set with TASO_LOOPS_NAME defined as the function to define
// and TASO_LOOPS_SET as the name of the instruction set. Everything here has internal linkage and uses no
// library templates, so that no code for a newer processor can be picked by the linker for general use.

#include <math.h>    // NOLINT(modernize-deprecated-headers): <cmath> declares templates
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)
#include <string.h>  // NOLINT(modernize-deprecated-headers)

#include "runtime/cpu/loops.h"
#include "runtime/cpu/loops_functions.h"
#include "runtime/cpu/pack.h"
#include "runtime/cpu/pack_parts.h"

namespace taso::cpu {
namespace {

template <class F>
void unary(const float* x, float* y, Count count, float p, float q) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(x[i], p, q);
}

/// What follows an exponential, as in log(1 + e^x), is small often: then that much is computed.
void area_sine(const float* x, float* y, Count count, float, float) {
  constexpr Count some = 4 * lanes;
  for (Count begin = 0; begin < count; begin += some) {
    const Count end = begin + some < count ? begin + some : count;
    int32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (Count i = begin; i < end; ++i) {
      const int32_t size = to_bits(fabsf(x[i]));
      largest = size > largest ? size : largest;
    }
    if (largest < to_bits(0.5f)) {
#pragma omp simd
      for (Count i = begin; i < end; ++i) y[i] = Asinh::small(x[i]);
    } else {
      unary<Asinh>(x + begin, y + begin, end - begin, 0, 0);
    }
  }
}

struct Add {
  static float apply(float a, float b) { return a + b; }
};
struct Sub {
  static float apply(float a, float b) { return a - b; }
};
struct Maximum {
  static float apply(float a, float b) { return a > b ? a : b; }
};
/// The larger and the smaller one; NaN if one is.
struct Greater {
  static float apply(float a, float b) { return a > b || a != a ? a : b; }
};
struct Less {
  static float apply(float a, float b) { return a < b || a != a ? a : b; }
};
struct Remainder {
  static float apply(float a, float b) { return fmodf(a, b); }
};
struct Mul {
  static float apply(float a, float b) { return a * b; }
};
struct Div {
  static float apply(float a, float b) { return a / b; }
};

template <class F>
void both(const float* a, const float* b, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(a[i], b[i]);
}
template <class F>
void second_scalar(const float* a, const float* b, float* y, Count count) {
  const float value = *b;
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(a[i], value);
}
template <class F>
void first_scalar(const float* a, const float* b, float* y, Count count) {
  const float value = *a;
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(value, b[i]);
}

void power_both(const float* a, const float* b, float* y, Count count) {
  for (Count i = 0; i < count; ++i) y[i] = powf(a[i], b[i]);
}
void power_second_scalar(const float* a, const float* b, float* y, Count count) {
  const float exponent = *b;
  if (exponent == 2.0f) {  // NOLINT(bugprone-branch-clone): the pragma hides what differs
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = a[i] * a[i];
  } else if (exponent == 3.0f) {
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = a[i] * a[i] * a[i];
  } else if (exponent == 1.0f) {
    if (y != a) memcpy(y, a, static_cast<size_t>(count) * sizeof(float));
  } else {
    for (Count i = 0; i < count; ++i) y[i] = powf(a[i], exponent);
  }
}
void power_first_scalar(const float* a, const float* b, float* y, Count count) {
  const float base = *a;
  for (Count i = 0; i < count; ++i) y[i] = powf(base, b[i]);
}

constexpr UnaryEntry unary_entries[] = {
    {"identity", unary<Identity>},
    {"neg", unary<Neg>},
    {"abs", unary<Abs>},
    {"sqrt", unary<Sqrt>},
    {"exp", unary<Exp>},
    {"log", unary<Log>},
    {"erf", unary<Erf>},
    {"tanh", unary<Tanh>},
    {"sigmoid", unary<Sigmoid>},
    {"sin", unary<Sin>},
    {"cos", unary<Cos>},
    {"tan", unary<Tan>},
    {"atan", unary<Atan>},
    {"sinh", unary<Sinh>},
    {"cosh", unary<Cosh>},
    {"asinh", area_sine},
    {"floor", unary<Floor>},
    {"ceil", unary<Ceil>},
    {"round", unary<Round>},
    {"sign", unary<Sign>},
    {"relu", unary<Relu>},
    {"gelu", unary<Gelu>},
    {"gelu_tanh", unary<GeluTanh>},
    {"silu", unary<Silu>},
    {"quick_gelu", unary<QuickGelu>},
    {"hard_swish", unary<HardSwish>},
    {"hard_sigmoid", unary<HardSigmoid>},
    {"square", unary<Square>},
    {"clip", unary<Clip>},
};

constexpr BinaryEntry binary_entries[] = {
    {"add", both<Add>, second_scalar<Add>, first_scalar<Add>},
    {"sub", both<Sub>, second_scalar<Sub>, first_scalar<Sub>},
    {"mul", both<Mul>, second_scalar<Mul>, first_scalar<Mul>},
    {"div", both<Div>, second_scalar<Div>, first_scalar<Div>},
    {"pow", power_both, power_second_scalar, power_first_scalar},
    {"maximum", both<Maximum>, second_scalar<Maximum>, first_scalar<Maximum>},
    {"remainder", both<Remainder>, second_scalar<Remainder>, first_scalar<Remainder>},
    {"max", both<Greater>, second_scalar<Greater>, first_scalar<Greater>},
    {"min", both<Less>, second_scalar<Less>, first_scalar<Less>},
};

// ---- Reductions.

/// As many partial results of a reduction are kept: an operation need not wait for the one before.
constexpr int partials = 4;

/// Combines the elements of x by F, but for the lanes of the value: of(result, vector of x, i, load) takes in the
/// vector that begins at the i-th, where load(p) is what lies at p as the vector of x does; both() combines results.
/// `neutral` is the result for none, and rest() has no effect on it.
template <class F>
inline Pack reduce_to_lanes(const float* x, Count count, F f) {
  constexpr Whole load;
  Pack results[partials];
#pragma GCC unroll 4
  for (int k = 0; k < partials; ++k) results[k] = Pack{} + F::neutral;
  Count done = 0;
  for (; done + partials * lanes <= count; done += partials * lanes) {
#pragma GCC unroll 4
    for (int k = 0; k < partials; ++k)
      results[k] = f.of(results[k], load(x + done + k * lanes), done + k * lanes, load);
  }
  for (; done + lanes <= count; done += lanes) results[0] = f.of(results[0], load(x + done), done, load);
  if (done < count) {
    const Some load_last{part_of(count - done), f.rest()};
    results[1] = f.of(results[1], load_last(x + done), done, load_last);
  }
  const Pack first = F::both(results[0], results[1]);
  return count < partials * lanes ? first : F::both(first, F::both(results[2], results[3]));
}

template <class F>
float reduce(const float* x, Count count, F f) {
  return F::both(F::neutral, combined<F>(reduce_to_lanes(x, count, f)));
}

/// The same of each of so many rows, `stride` apart, by f_of(row): lanes of as many rows are combined together.
template <class F, class Of>
void reduce_each(const float* x, Count stride, Count rows, Count count, float* y, const Of& f_of) {
  Pack packs[lanes];
  for (Count first = 0; first < rows; first += lanes) {
    const Count some = rows - first < lanes ? rows - first : lanes;
    for (Count r = 0; r < some; ++r) packs[r] = reduce_to_lanes<F>(x + (first + r) * stride, count, f_of(first + r));
    for (Count r = some; r < lanes; ++r) packs[r] = Pack{};
    const Pack all = F::both(Pack{} + F::neutral, across<F>(packs));
    if (some == lanes)
      keep(y + first, all);
    else
      for (Count r = 0; r < some; ++r) y[first + r] = all[r];
  }
}

struct SumOf {
  static constexpr float neutral = 0;
  template <class T>
  static T both(T a, T b) {
    return a + b;
  }
  static Pack rest() { return Pack{}; }
  template <class Load>
  static Pack of(Pack total, Pack x, Count, const Load&) {
    return total + x;
  }
};
/// Of products with b.
struct SumOfProducts : SumOf {
  const float* b;
  template <class Load>
  Pack of(Pack total, Pack x, Count at, const Load& load_as_x) const {
    return total + x * load_as_x(b + at);
  }
};
/// Of squares of what is above (or below) the mean.
struct SumOfSquares : SumOf {
  float mean;
  template <class Load>
  Pack of(Pack total, Pack x, Count, const Load& load_as_x) const {
    const Pack value = load_as_x.only(x - mean);
    return total + value * value;
  }
};
/// The largest, or the smallest with Less; NaN where one is, or left out.
template <bool Less, bool KeepNan>
struct ExtremumOf {
  static constexpr float neutral = Less ? HUGE_VALF : -HUGE_VALF;
  template <class T>
  static T both(T total, T value) {
    if (KeepNan) return ((Less ? value < total : value > total) | (value != value)) ? value : total;
    return (Less ? value < total : value > total) ? value : total;
  }
  static Pack rest() { return Pack{} + neutral; }
  template <class Load>
  static Pack of(Pack total, Pack x, Count, const Load&) {
    return both(total, x);
  }
};

float sum(const float* x, Count count) { return reduce(x, count, SumOf()); }
float maximum(const float* x, Count count) { return reduce(x, count, ExtremumOf<false, false>()); }
float greatest(const float* x, Count count) { return reduce(x, count, ExtremumOf<false, true>()); }
float least(const float* x, Count count) { return reduce(x, count, ExtremumOf<true, true>()); }
float dot(const float* a, const float* b, Count count) { return reduce(a, count, SumOfProducts{{}, b}); }
float squares(const float* x, Count count, float mean) { return reduce(x, count, SumOfSquares{{}, mean}); }

void sum_rows(const float* x, Count stride, Count rows, Count count, float* y) {
  reduce_each<SumOf>(x, stride, rows, count, y, [](Count) { return SumOf(); });
}
void greatest_rows(const float* x, Count stride, Count rows, Count count, float* y) {
  using Greatest = ExtremumOf<false, true>;
  reduce_each<Greatest>(x, stride, rows, count, y, [](Count) { return Greatest(); });
}
void least_rows(const float* x, Count stride, Count rows, Count count, float* y) {
  using Least = ExtremumOf<true, true>;
  reduce_each<Least>(x, stride, rows, count, y, [](Count) { return Least(); });
}
/// The elements of each row and one number of it.
template <class Of>
inline void with_number_of_row(const float* x, const float* of_rows, Count stride, float* y, Count rows, Count count,
                               const Of& of) {
  const Count whole = count - count % lanes;
  const Part part = part_of(count - whole);
  for (Count r = 0; r < rows; ++r, x += count, y += count) {
    const Pack number = Pack{} + of_rows[r * stride];
    for (Count i = 0; i < whole; i += lanes) keep(y + i, of(Whole()(x + i), number));
    if (whole < count) store_part(y + whole, part, of(load_part(x + whole, part, Pack{}), number));
  }
}
void subtract_of_rows(const float* x, const float* of_rows, Count stride, float* y, Count rows, Count count) {
  with_number_of_row(x, of_rows, stride, y, rows, count, [](Pack a, Pack b) { return a - b; });
}
void multiply_by_rows(const float* x, const float* of_rows, Count stride, float* y, Count rows, Count count) {
  with_number_of_row(x, of_rows, stride, y, rows, count, [](Pack a, Pack b) { return a * b; });
}
void dot_rows(const float* a, Count a_stride, const float* b, Count b_stride, Count rows, Count count, float* y) {
  reduce_each<SumOfProducts>(a, a_stride, rows, count, y, [&](Count r) { return SumOfProducts{{}, b + r * b_stride}; });
}
void squares_rows(const float* x, Count stride, const float* from, Count from_stride, Count rows, Count count,
                  float* y) {
  reduce_each<SumOfSquares>(x, stride, rows, count, y, [&](Count r) {
    return SumOfSquares{{}, from[r * from_stride]};
  });
}

/// So many rows at once: sums of a panel's width stay in registers.
template <int Rows>
void panel_rows(const float* a, Count length, const float* panel, float* y, Count y_stride, Count columns) {
  using Vector = float __attribute__((vector_size(64)));
  using Anywhere = float __attribute__((vector_size(64), aligned(4), may_alias));
  constexpr Count width = sizeof(Vector) / sizeof(float);
  constexpr int vectors = static_cast<int>(panel_width / width);
  Vector sums[Rows][vectors] = {};
  for (Count k = 0; k < length; ++k, panel += panel_width) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector of_k = *reinterpret_cast<const Anywhere*>(panel + v * width);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) sums[r][v] += of_k * a[r * length + k];
    }
  }
  float row[panel_width];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<Anywhere*>(row + v * width) = sums[r][v];
    memcpy(y + r * y_stride, row, static_cast<size_t>(columns) * sizeof(float));
  }
}

void panel_product(const float* a, Count rows, Count length, const float* panel, float* y, Count y_stride,
                   Count columns) {
  for (; rows >= 4; rows -= 4, a += 4 * length, y += 4 * y_stride)
    panel_rows<4>(a, length, panel, y, y_stride, columns);
  if (rows == 3) panel_rows<3>(a, length, panel, y, y_stride, columns);
  if (rows == 2) panel_rows<2>(a, length, panel, y, y_stride, columns);
  if (rows == 1) panel_rows<1>(a, length, panel, y, y_stride, columns);
}

void accumulate(const float* x, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] += x[i];
}

void accumulate_maximum(const float* x, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = x[i] > y[i] ? x[i] : y[i];
}

void accumulate_products(const float* a, const float* b, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] += a[i] * b[i];
}

void accumulate_scaled(const float* x, float* y, Count count, float factor) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] += x[i] * factor;
}

void scale(float* y, Count count, float factor) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] *= factor;
}

void affine(const float* x, float* y, Count count, float a, float b) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = x[i] * a + b;
}

void affine_rows(const float* x, const float* a, const float* b, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = x[i] * a[i] + b[i];
}

void exp_minus(const float* x, const float* m, float* y, float* s, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) {
    const float e = falling_exponential(x[i] - m[i]);
    y[i] = e;
    s[i] += e;
  }
}

void lrn(const float* x, const float* s, float* y, Count count, float alpha, float beta, float bias) {
  if (beta == 0.75f) {
#pragma omp simd
    for (Count i = 0; i < count; ++i) {
      const float root = sqrtf(bias + alpha * s[i]);
      y[i] = x[i] / (root * sqrtf(root));
    }
  } else {
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = x[i] * exponential(-beta * logarithm(bias + alpha * s[i]));
  }
}

void turn_pairs(const float* x, const float* c, const float* s, float* y, Count pairs, Count second) {
#pragma omp simd
  for (Count i = 0; i < pairs; ++i) {
    const float a = x[i], b = x[pairs + i];
    y[i] = a * c[i] - b * s[i];
    y[pairs + i] = b * c[second + i] + a * s[second + i];
  }
}

// ---- Rows: several at a time, where they are short.

/// Elements of rows that are computed `lanes` at a time: what a row needs once, as a root and a quotient, is then one
/// vector of all of them. Longer rows need it seldom, and would not stay in the first-level cache.
constexpr Count short_row = 256;

/// Rows of `count` elements as vectors, of which the last may be a part.
struct RowParts {
  Count count, vectors, last;
  Part part;
};

/// F of each of `rows` rows, at most `lanes` (All: as many): one vector. F::of(result, vector, of_row) with an element
/// of `of_rows` for each row; F::rest(of_row) in a vector has no effect on the result. Vectors of a row; 0: any number.
template <class F, int Vectors, bool All>
inline Pack reduce_rows(const float* x, Count rows, const RowParts& parts, const float* of_rows) {
  Pack packs[lanes];
  const auto of_row = [&](Count r) {
    const float* const row = x + r * parts.count;
    const Pack same = Pack{} + of_rows[r];
    Pack result = Pack{} + F::neutral;
    for (Count v = 0; v + 1 < (Vectors > 0 ? Vectors : parts.vectors); ++v)
      result = F::of(result, Whole()(row + v * lanes), same);
    return F::of(result, load_part(row + parts.last, parts.part, F::rest(same)), same);
  };
  if (All) {
#pragma GCC unroll 16
    for (Count r = 0; r < lanes; ++r) packs[r] = of_row(r);
  } else {
    for (Count r = 0; r < lanes; ++r) packs[r] = r < rows ? of_row(r) : Pack{};
  }
  return across<F>(packs);
}

/// y = value(vector of x, place in the row, load, r) for each of so many rows; load(p) is what lies at p as the
/// vector of x does.
template <int Vectors, class Value>
inline void write_rows(const float* x, float* y, Count rows, const RowParts& parts, const Value& value) {
  const Whole whole;
  const Some some{parts.part, Pack{}};
  for (Count r = 0; r < rows; ++r) {
    const float* const from = x + r * parts.count;
    float* const to = y + r * parts.count;
    for (Count v = 0; v + 1 < (Vectors > 0 ? Vectors : parts.vectors); ++v)
      keep(to + v * lanes, value(whole(from + v * lanes), v * lanes, whole, r));
    store_part(to + parts.last, parts.part, value(some(from + parts.last), parts.last, some, r));
  }
}

struct SumOfRow : SumOf {
  static Pack of(Pack result, Pack x, Pack) { return result + x; }
  static Pack rest(Pack) { return Pack{}; }
};
struct SquaresOfRow : SumOf {
  static Pack of(Pack result, Pack x, Pack) { return result + x * x; }
  static Pack rest(Pack) { return Pack{}; }
};
/// Squares of what is above (or below) the mean.
struct SpreadOfRow : SumOf {
  static Pack of(Pack result, Pack x, Pack mean) {
    const Pack d = x - mean;
    return result + d * d;
  }
  static Pack rest(Pack mean) { return mean; }
};
struct MaximumOfRow : ExtremumOf<false, false> {
  static Pack of(Pack result, Pack x, Pack) { return both(result, x); }
  static Pack rest(Pack) { return Pack{} - HUGE_VALF; }
};

struct Softmax {
  void one(const float* x, float* y, Count count) const {
    const float top = maximum(x, count);
    const Count rest = count % lanes, whole = count - rest;
    Pack totals = {}, last = {};
    for (Count i = 0; i < whole; i += lanes) {
      const Pack power = falling_exponential(Whole()(x + i) - top);
      keep(y + i, power);
      totals += power;
    }
    if (rest > 0) {
      const Some some{part_of(rest), Pack{} - INFINITY};
      last = falling_exponential(some(x + whole) - top);
      totals += last;
    }
    const float factor = 1.0f / combined<SumOf>(totals);
    for (Count i = 0; i < whole; i += lanes) keep(y + i, Whole()(y + i) * factor);
    if (rest > 0) store_part(y + whole, part_of(rest), last * factor);
  }
  template <int Vectors, bool All>
  void group(const float* x, float* y, Count rows, const RowParts& parts) const {
    float tops[lanes] = {}, factors[lanes];
    keep(tops, reduce_rows<MaximumOfRow, Vectors, All>(x, rows, parts, tops));
    const Count vectors = Vectors > 0 ? Vectors : parts.vectors;
    // Whole vectors, as what is written in part and read at once has to wait.
    float local[(Vectors > 0 ? Vectors * lanes : short_row) * lanes];
    float* const powers = parts.count == vectors * lanes ? y : local;
    Pack packs[lanes];
    for (Count r = 0; r < (All ? lanes : rows); ++r) {
      const float* const row = x + r * parts.count;
      float* const to = powers + r * vectors * lanes;
      // Behind the row, powers that are 0.
      const Some some{parts.part, Pack{} - INFINITY};
      Pack total = {};
      for (Count v = 0; v < vectors; ++v) {
        const Pack element = v + 1 < vectors ? Whole()(row + v * lanes) : some(row + v * lanes);
        const Pack power = falling_exponential(element - tops[r]);
        keep(to + v * lanes, power);
        total += power;
      }
      packs[r] = total;
    }
    for (Count r = rows; r < lanes; ++r) packs[r] = Pack{};
    keep(factors, 1.0f / across<SumOf>(packs));
    for (Count r = 0; r < (All ? lanes : rows); ++r) {
      const float* const from = powers + r * vectors * lanes;
      float* const row = y + r * parts.count;
      for (Count v = 0; v + 1 < vectors; ++v) keep(row + v * lanes, Whole()(from + v * lanes) * factors[r]);
      store_part(row + parts.last, parts.part, Whole()(from + parts.last) * factors[r]);
    }
  }
};

struct LayerNorm {
  const float *scales, *bias;
  float epsilon;
  void one(const float* x, float* y, Count count) const {
    const float mean = sum(x, count) / static_cast<float>(count);
    const float factor = 1.0f / sqrtf(squares(x, count, mean) / static_cast<float>(count) + epsilon);
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = (x[i] - mean) * factor * scales[i] + bias[i];
  }
  template <int Vectors, bool All>
  void group(const float* x, float* y, Count rows, const RowParts& parts) const {
    const auto length = static_cast<float>(parts.count);
    float means[lanes] = {}, factors[lanes];
    keep(means, reduce_rows<SumOfRow, Vectors, All>(x, rows, parts, means) / length);
    const Pack spread = reduce_rows<SpreadOfRow, Vectors, All>(x, rows, parts, means);
    keep(factors, 1.0f / root(spread / length + epsilon));
    write_rows<Vectors>(x, y, rows, parts, [&](Pack element, Count at, const auto& load, Count r) {
      return (element - means[r]) * factors[r] * load(scales + at) + load(bias + at);
    });
  }
};

struct RmsNorm {
  const float* scales;
  float epsilon;
  void one(const float* x, float* y, Count count) const {
    const float factor = 1.0f / sqrtf(dot(x, x, count) / static_cast<float>(count) + epsilon);
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = x[i] * factor * scales[i];
  }
  template <int Vectors, bool All>
  void group(const float* x, float* y, Count rows, const RowParts& parts) const {
    float factors[lanes] = {};
    const Pack squares = reduce_rows<SquaresOfRow, Vectors, All>(x, rows, parts, factors);
    keep(factors, 1.0f / root(squares / static_cast<float>(parts.count) + epsilon));
    write_rows<Vectors>(x, y, rows, parts, [&](Pack element, Count at, const auto& load, Count r) {
      return element * factors[r] * load(scales + at);
    });
  }
};

template <int Vectors, class Operation>
void in_groups(const Operation& operation, const float* x, float* y, Count rows, const RowParts& parts) {
  for (; rows >= lanes; rows -= lanes, x += lanes * parts.count, y += lanes * parts.count)
    operation.template group<Vectors, true>(x, y, lanes, parts);
  if (rows > 0) operation.template group<Vectors, false>(x, y, rows, parts);
}

template <class Operation>
void each_row(const Operation& operation, const float* x, float* y, Count rows, Count count) {
  if (count > short_row) {
    for (Count r = 0; r < rows; ++r) operation.one(x + r * count, y + r * count, count);
    return;
  }
  const Count vectors = (count + lanes - 1) / lanes, last = (vectors - 1) * lanes;
  const RowParts parts{count, vectors, last, part_of(count - last)};
  switch (vectors) {
    case 1:
      return in_groups<1>(operation, x, y, rows, parts);
    case 2:
      return in_groups<2>(operation, x, y, rows, parts);
    case 3:
      return in_groups<3>(operation, x, y, rows, parts);
    case 4:
      return in_groups<4>(operation, x, y, rows, parts);
    default:
      return in_groups<0>(operation, x, y, rows, parts);
  }
}

void softmax(const float* x, float* y, Count rows, Count count) { each_row(Softmax(), x, y, rows, count); }

void layer_norm(const float* x, const float* scales, const float* bias, float* y, Count rows, Count count,
                float epsilon) {
  each_row(LayerNorm{scales, bias, epsilon}, x, y, rows, count);
}

void rms_norm(const float* x, const float* scales, float* y, Count rows, Count count, float epsilon) {
  each_row(RmsNorm{scales, epsilon}, x, y, rows, count);
}

// ---- Transposition.

/// Of so few elements of a tile, each by itself.
constexpr Count few_of_tile = lanes * 4;

void transpose_each(const float* x, Count x_stride, float* y, Count y_stride, Count rows, Count columns) {
  for (Count i = 0; i < rows; ++i)
    for (Count j = 0; j < columns; ++j) y[i * y_stride + j] = x[j * x_stride + i];
}

void transpose_part(const float* x, Count x_stride, float* y, Count y_stride, Count rows, Count columns) {
  Pack tile[lanes];
  const Part of_x = part_of(rows), of_y = part_of(columns);
  for (Count j = 0; j < lanes; ++j) tile[j] = j < columns ? load_part(x + j * x_stride, of_x, Pack{}) : Pack{};
  exchange(tile);
  for (Count i = 0; i < rows; ++i) store_part(y + i * y_stride, of_y, tile[i]);
}

void transpose_tile(const float* x, Count x_stride, float* y, Count y_stride) {
  Pack tile[lanes];
#pragma GCC unroll 16
  for (Count j = 0; j < lanes; ++j) tile[j] = Whole()(x + j * x_stride);
  exchange(tile);
#pragma GCC unroll 16
  for (Count i = 0; i < lanes; ++i) keep(y + i * y_stride, tile[i]);
}

/// Lane l of what begins at element `First` of y, of vectors a and b that are columns `Column` and the next, or a
/// vector that has those before already, and column `Column`.
template <int Columns, int First, int Column, bool Begins, int... I>
inline Pack woven(Pack a, Pack b, Lanes<I...>) {
  constexpr int width = static_cast<int>(lanes);
  return __builtin_shufflevector(a, b,
                                 ((First + I) % Columns < Column    ? (Begins ? (First + I) / Columns : I)
                                  : (First + I) % Columns == Column ? width + (First + I) / Columns
                                                                    : I)...);
}

template <int Columns, int Vector = 0>
inline void weave(const Pack* columns, float* y) {
  constexpr int first = Vector * static_cast<int>(lanes);
  Pack made = woven<Columns, first, 1, true>(columns[0], columns[1], AllLanes());
  if constexpr (Columns > 2) made = woven<Columns, first, 2, false>(made, columns[2], AllLanes());
  if constexpr (Columns > 3) made = woven<Columns, first, 3, false>(made, columns[3], AllLanes());
  keep(y + first, made);
  if constexpr (Vector + 1 < Columns) weave<Columns, Vector + 1>(columns, y);
}

/// Few columns that lie together, as channels of an image: `lanes` rows at a time are as many vectors. Returns how many
/// rows are done.
template <int Columns>
Count weave_rows(const float* x, Count x_stride, float* y, Count rows) {
  Count done = 0;
  for (; done + lanes <= rows; done += lanes) {
    Pack columns[Columns];
    for (int j = 0; j < Columns; ++j) columns[j] = Whole()(x + j * x_stride + done);
    weave<Columns>(columns, y + done * Columns);
  }
  return done;
}

void transpose(const float* x, Count x_stride, float* y, Count y_stride, Count rows, Count columns) {
  if (columns == y_stride && columns > 1 && columns <= 4) {
    const Count done = columns == 2   ? weave_rows<2>(x, x_stride, y, rows)
                       : columns == 3 ? weave_rows<3>(x, x_stride, y, rows)
                                      : weave_rows<4>(x, x_stride, y, rows);
    transpose_each(x + done, x_stride, y + done * columns, y_stride, rows - done, columns);
    return;
  }
  for (Count j = 0; j < columns; j += lanes) {
    const Count some_columns = columns - j < lanes ? columns - j : lanes;
    for (Count i = 0; i < rows; i += lanes) {
      const Count some_rows = rows - i < lanes ? rows - i : lanes;
      const float* const from = x + j * x_stride + i;
      float* const to = y + i * y_stride + j;
      if (some_rows == lanes && some_columns == lanes)
        transpose_tile(from, x_stride, to, y_stride);
      else if (some_rows * some_columns > few_of_tile)
        transpose_part(from, x_stride, to, y_stride, some_rows, some_columns);
      else
        transpose_each(from, x_stride, to, y_stride, some_rows, some_columns);
    }
  }
}

}  // namespace

const LoopTable* TASO_LOOPS_NAME();

const LoopTable* TASO_LOOPS_NAME() {
  static constexpr LoopTable table = {TASO_LOOPS_SET,
                                      unary_entries,
                                      sizeof unary_entries / sizeof unary_entries[0],
                                      binary_entries,
                                      sizeof binary_entries / sizeof binary_entries[0],
                                      sum,
                                      maximum,
                                      greatest,
                                      least,
                                      dot,
                                      squares,
                                      sum_rows,
                                      greatest_rows,
                                      least_rows,
                                      dot_rows,
                                      squares_rows,
                                      subtract_of_rows,
                                      multiply_by_rows,
                                      panel_product,
                                      accumulate,
                                      accumulate_maximum,
                                      accumulate_products,
                                      accumulate_scaled,
                                      scale,
                                      affine,
                                      affine_rows,
                                      softmax,
                                      exp_minus,
                                      layer_norm,
                                      rms_norm,
                                      lrn,
                                      turn_pairs,
                                      transpose};
  return &table;
}

}  // namespace taso::cpu
