#include "runtime/cuda/kernel_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "support/status.h"

namespace taso::cuda {
namespace {

constexpr std::int64_t most_int = std::numeric_limits<std::int32_t>::max();
constexpr int lanes = 32;
constexpr int teams_of_block = generated_threads / lanes;

std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
  return text;
}

/// A type or function of generated texts.
struct Definition {
  std::string_view name;
  std::string_view text;
};

// In an order in which each comes after what it uses. Conversions of halves are instructions of the device; a compiler
// for another one brings functions of these names.
constexpr Definition definitions[] = {
    {"Half", "struct Half {\n  unsigned short bits;\n};\n"},
    {"BFloat16", "struct BFloat16 {\n  unsigned short bits;\n};\n"},
    {"float_of_half",
     "#ifdef __CUDACC__\n"
     "__device__ inline float float_of_half(unsigned short bits) {\n"
     "  float value;\n"
     "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(value) : \"h\"(bits));\n"
     "  return value;\n"
     "}\n"
     "#endif\n"},
    {"half_of_float",
     "#ifdef __CUDACC__\n"
     "__device__ inline unsigned short half_of_float(float value) {\n"
     "  unsigned short bits;\n"
     "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));\n"
     "  return bits;\n"
     "}\n"
     "#endif\n"},
    {"half_value", "__device__ inline float half_value(Half x) { return float_of_half(x.bits); }\n"},
    {"to_half", "__device__ inline Half to_half(float x) { return Half{half_of_float(x)}; }\n"},
    {"bfloat16_value",
     "__device__ inline float bfloat16_value(BFloat16 x) { return __uint_as_float((unsigned int)x.bits << 16); }\n"},
    {"to_bfloat16",
     "__device__ inline BFloat16 to_bfloat16(float x) {\n"
     "  const unsigned int bits = __float_as_uint(x);\n"
     "  if ((bits & 0x7fffffffu) > 0x7f800000u) return BFloat16{(unsigned short)((bits >> 16) | 0x40u)};\n"
     "  return BFloat16{(unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};\n"
     "}\n"},
    {"load_floats",
     "__device__ inline void load_floats(const float* from, float (&to)[4]) {\n"
     "  const uint4 all = *(const uint4*)from;\n"
     "  to[0] = __uint_as_float(all.x);\n"
     "  to[1] = __uint_as_float(all.y);\n"
     "  to[2] = __uint_as_float(all.z);\n"
     "  to[3] = __uint_as_float(all.w);\n"
     "}\n"},
    {"store_floats",
     "__device__ inline void store_floats(float* to, const float (&from)[4]) {\n"
     "  uint4 all;\n"
     "  all.x = __float_as_uint(from[0]);\n"
     "  all.y = __float_as_uint(from[1]);\n"
     "  all.z = __float_as_uint(from[2]);\n"
     "  all.w = __float_as_uint(from[3]);\n"
     "  *(uint4*)to = all;\n"
     "}\n"},
    {"load_halves",
     "__device__ inline void load_halves(const Half* from, float (&to)[8]) {\n"
     "  const uint4 all = *(const uint4*)from;\n"
     "  const unsigned int words[4] = {all.x, all.y, all.z, all.w};\n"
     "  for (int k = 0; k < 8; ++k) to[k] = float_of_half((unsigned short)(words[k / 2] >> (k % 2 * 16)));\n"
     "}\n"},
    {"store_halves",
     "__device__ inline void store_halves(Half* to, const float (&from)[8]) {\n"
     "  unsigned int words[4];\n"
     "  for (int k = 0; k < 4; ++k)\n"
     "    words[k] = half_of_float(from[2 * k]) | (unsigned int)half_of_float(from[2 * k + 1]) << 16;\n"
     "  uint4 all;\n"
     "  all.x = words[0];\n"
     "  all.y = words[1];\n"
     "  all.z = words[2];\n"
     "  all.w = words[3];\n"
     "  *(uint4*)to = all;\n"
     "}\n"},
    {"load_bfloats",
     "__device__ inline void load_bfloats(const BFloat16* from, float (&to)[8]) {\n"
     "  const uint4 all = *(const uint4*)from;\n"
     "  const unsigned int words[4] = {all.x, all.y, all.z, all.w};\n"
     "  for (int k = 0; k < 8; ++k) to[k] = __uint_as_float(words[k / 2] >> (k % 2 * 16) << 16);\n"
     "}\n"},
    {"store_bfloats",
     "__device__ inline void store_bfloats(BFloat16* to, const float (&from)[8]) {\n"
     "  unsigned int words[4];\n"
     "  for (int k = 0; k < 4; ++k)\n"
     "    words[k] = to_bfloat16(from[2 * k]).bits | (unsigned int)to_bfloat16(from[2 * k + 1]).bits << 16;\n"
     "  uint4 all;\n"
     "  all.x = words[0];\n"
     "  all.y = words[1];\n"
     "  all.z = words[2];\n"
     "  all.w = words[3];\n"
     "  *(uint4*)to = all;\n"
     "}\n"},
    // x / 2 * (1 + erf(x / sqrt(2))) without the cancellation at negative x
    {"gelu", "__device__ inline float gelu(float x) { return 0.5f * x * erfcf(-0.707106781186547524f * x); }\n"},
    // (1 + tanh(t)) / 2 = sigmoid(2 t)
    {"gelu_tanh",
     "__device__ inline float gelu_tanh(float x) {\n"
     "  return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * (x * x * x))));\n"
     "}\n"},
    {"hard_sigmoid",
     "__device__ inline float hard_sigmoid(float x) {\n"
     "  return fminf(fmaxf(x * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f);\n"
     "}\n"},
    {"hard_swish",
     "__device__ inline float hard_swish(float x) {\n"
     "  return x * fminf(fmaxf(x * (1.0f / 6.0f) + 0.5f, 0.0f), 1.0f);\n"
     "}\n"},
    {"quick_gelu", "__device__ inline float quick_gelu(float x) { return x / (1.0f + expf(-1.702f * x)); }\n"},
    // NaN stays
    {"relu", "__device__ inline float relu(float x) { return x < 0.0f ? 0.0f : x; }\n"},
    {"sigmoid", "__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }\n"},
    {"sign",
     "__device__ inline float sign(float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x == 0.0f ? 0.0f : x; }\n"},
    {"silu", "__device__ inline float silu(float x) { return x / (1.0f + expf(-x)); }\n"},
    {"square", "__device__ inline float square(float x) { return x * x; }\n"},
    {"larger", "__device__ inline float larger(float x, float y) { return x > y ? x : y; }\n"},
    {"larger_or_nan", "__device__ inline float larger_or_nan(float x, float y) { return x > y || x != x ? x : y; }\n"},
    {"smaller_or_nan",
     "__device__ inline float smaller_or_nan(float x, float y) { return x < y || x != x ? x : y; }\n"},
    // The whole number towards 0; of what does not fit, the number that processors of the x86 kind make.
    {"whole_in_32",
     "__device__ inline unsigned long long whole_in_32(float x) {\n"
     "  const float cut = truncf(x);\n"
     "  if (cut >= -2147483648.0f && cut < 2147483648.0f) return (unsigned long long)(long long)cut;\n"
     "  return 0xffffffff80000000ull;\n"
     "}\n"},
    {"whole_in_64",
     "__device__ inline unsigned long long whole_in_64(float x) {\n"
     "  const float cut = truncf(x);\n"
     "  if (cut >= -9223372036854775808.0f && cut < 9223372036854775808.0f) return (unsigned long long)(long "
     "long)cut;\n"
     "  return 0x8000000000000000ull;\n"
     "}\n"},
    {"whole_unsigned",
     "__device__ inline unsigned long long whole_unsigned(float x) {\n"
     "  const float cut = truncf(x);\n"
     "  if (cut >= 9223372036854775808.0f && cut < 18446744073709551616.0f) return (unsigned long long)cut;\n"
     "  return whole_in_64(x);\n"
     "}\n"},
    {"warp_sum",
     "__device__ inline float warp_sum(float x) {\n"
     "  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);\n"
     "  return x;\n"
     "}\n"},
    {"warp_maximum",
     "__device__ inline float warp_maximum(float x) {\n"
     "  for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));\n"
     "  return x;\n"
     "}\n"},
    {"block_sum",
     "__device__ inline float block_sum(float x, float* partial) {\n"
     "  x = warp_sum(x);\n"
     "  __syncthreads();\n"
     "  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;\n"
     "  __syncthreads();\n"
     "  float total = partial[0];\n"
     "  for (int warp = 1; warp < 8; ++warp) total += partial[warp];\n"
     "  return total;\n"
     "}\n"},
    {"block_maximum",
     "__device__ inline float block_maximum(float x, float* partial) {\n"
     "  x = warp_maximum(x);\n"
     "  __syncthreads();\n"
     "  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;\n"
     "  __syncthreads();\n"
     "  float largest = partial[0];\n"
     "  for (int warp = 1; warp < 8; ++warp) largest = fmaxf(largest, partial[warp]);\n"
     "  return largest;\n"
     "}\n"},
    {"column_sum",
     "__device__ inline float column_sum(float x, float* partial) {\n"
     "  __syncthreads();\n"
     "  partial[threadIdx.x] = x;\n"
     "  __syncthreads();\n"
     "  float total = partial[threadIdx.x % 32];\n"
     "  for (int slice = 1; slice < 8; ++slice) total += partial[slice * 32 + threadIdx.x % 32];\n"
     "  return total;\n"
     "}\n"},
    {"column_maximum",
     "__device__ inline float column_maximum(float x, float* partial) {\n"
     "  __syncthreads();\n"
     "  partial[threadIdx.x] = x;\n"
     "  __syncthreads();\n"
     "  float largest = partial[threadIdx.x % 32];\n"
     "  for (int slice = 1; slice < 8; ++slice) largest = fmaxf(largest, partial[slice * 32 + threadIdx.x % 32]);\n"
     "  return largest;\n"
     "}\n"},
};

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Whether a text uses a name, as a whole word.
bool uses(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end]))) return true;
  }
  return false;
}

std::string as_text(std::int64_t value) { return std::to_string(value); }

/// What the definitions call elements that are loaded and stored together.
const char* packs_of(ElementType element) {
  if (element == ElementType::f16) return "halves";
  return element == ElementType::bf16 ? "bfloats" : "floats";
}

}  // namespace

const char* type_of(ElementType element) {
  if (element == ElementType::f16) return "Half";
  return element == ElementType::bf16 ? "BFloat16" : "float";
}

const char* type_of_width(std::size_t width) {
  switch (width) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned int";
    case 8:
      return "unsigned long long";
    default:
      return "uint4";
  }
}

std::string literal(float value) {
  if (!std::isfinite(value)) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), bits_of(value), 16);
    return "__uint_as_float(0x" + std::string(digits.data(), end.ptr) + "u)";
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text(digits.data(), end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  text += 'f';
  return std::signbit(value) ? '(' + text + ')' : text;
}

std::string widened(ElementType element, const std::string& expression) {
  if (element == ElementType::f16) return "half_value(" + expression + ")";
  return element == ElementType::bf16 ? "bfloat16_value(" + expression + ")" : expression;
}

std::string narrowed(ElementType element, const std::string& expression) {
  if (element == ElementType::f16) return "to_half(" + expression + ")";
  return element == ElementType::bf16 ? "to_bfloat16(" + expression + ")" : expression;
}

std::int64_t pack_of(ElementType element) { return static_cast<std::int64_t>(16 / size_of(element)); }

std::string loading_pack(ElementType element, const std::string& address, const std::string& array) {
  return std::string("load_") + packs_of(element) + "(" + address + ", " + array + ");";
}

std::string storing_pack(ElementType element, const std::string& address, const std::string& array) {
  return std::string("store_") + packs_of(element) + "(" + address + ", " + array + ");";
}

std::string text_of(Function function, const std::string& x, float p, float q) {
  const auto call = [&](const char* name) { return std::string(name) + "(" + x + ")"; };
  switch (function) {
    case Function::identity:
      return x;
    case Function::abs:
      return call("fabsf");
    case Function::asinh:
      return call("asinhf");
    case Function::atan:
      return call("atanf");
    case Function::ceil:
      return call("ceilf");
    case Function::clip:
      return "fminf(fmaxf(" + x + ", " + literal(p) + "), " + literal(q) + ")";
    case Function::cos:
      return call("cosf");
    case Function::cosh:
      return call("coshf");
    case Function::erf:
      return call("erff");
    case Function::exp:
      return call("expf");
    case Function::floor:
      return call("floorf");
    case Function::gelu:
      return call("gelu");
    case Function::gelu_tanh:
      return call("gelu_tanh");
    case Function::hard_sigmoid:
      return call("hard_sigmoid");
    case Function::hard_swish:
      return call("hard_swish");
    case Function::log:
      return call("logf");
    case Function::neg:
      return "-" + x;
    case Function::quick_gelu:
      return call("quick_gelu");
    case Function::relu:
      return call("relu");
    case Function::round:
      return call("rintf");
    case Function::sigmoid:
      return call("sigmoid");
    case Function::sign:
      return call("sign");
    case Function::silu:
      return call("silu");
    case Function::sin:
      return call("sinf");
    case Function::sinh:
      return call("sinhf");
    case Function::sqrt:
      return call("sqrtf");
    case Function::square:
      return call("square");
    case Function::tan:
      return call("tanf");
    case Function::tanh:
      return call("tanhf");
  }
  return x;
}

std::string text_of(Binary function, const std::string& x, const std::string& y) {
  switch (function) {
    case Binary::add:
      return x + " + " + y;
    case Binary::sub:
      return x + " - " + y;
    case Binary::mul:
      return x + " * " + y;
    case Binary::div:
      return x + " / " + y;
    case Binary::maximum:
      return "larger(" + x + ", " + y + ")";
    case Binary::pow:
      return "powf(" + x + ", " + y + ")";
    case Binary::remainder:  // of the sign of x
      return "fmodf(" + x + ", " + y + ")";
  }
  return x;
}

std::string definitions_for(std::string_view kernels) {
  std::string all(kernels), result;
  for (std::size_t i = std::size(definitions); i-- > 0;) {
    if (!uses(all, definitions[i].name)) continue;
    all += definitions[i].text;
    result = std::string(definitions[i].text) + "\n" + result;
  }
  return result;
}

std::string KernelWriter::add_parameter(const Slot& slot, const std::string& type, std::size_t alignment, char letter) {
  std::string name = letter + std::to_string(kernel_.operands.size());
  kernel_.operands.push_back(slot);
  kernel_.alignments.push_back(alignment);
  parameter_types_.push_back(type);
  parameter_names_.push_back(name);
  return name;
}

std::string KernelWriter::reads(const Slot& slot, const std::string& type, std::size_t alignment) {
  return add_parameter(slot, "const " + type, alignment, 'x');
}
std::string KernelWriter::writes(const Slot& slot, const std::string& type, std::size_t alignment) {
  return add_parameter(slot, type, alignment, 'y');
}

void KernelWriter::span_over(std::span<const std::int64_t> extents, std::span<const std::int64_t> strides,
                             std::int64_t more) {
  // Twice as much as is needed, as are the threads that have nothing to do.
  std::int64_t span = more + 1024, elements = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    span += std::abs(strides[axis]) * extents[axis];
    elements *= extents[axis];
  }
  wide_ = wide_ || std::max(span, elements) > most_int / 2;
}

std::string KernelWriter::number(std::int64_t value) const {
  const std::string text = as_text(value) + (wide_ ? "ll" : "");
  return value < 0 ? "(" + text + ")" : text;
}

void KernelWriter::line(const std::string& text) {
  if (text.starts_with('#'))
    body_ += text + "\n";
  else
    body_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') + text + "\n";
}

std::vector<std::string> KernelWriter::coordinates(const std::string& prefix, const std::string& index,
                                                   std::span<const std::int64_t> extents) {
  if (extents.size() == 1) return {index};
  std::vector<std::string> names(extents.size());
  const std::string unsigned_type = wide_ ? "unsigned long long" : "unsigned int", suffix = wide_ ? "ull" : "u";
  std::string rest = "(" + unsigned_type + ")" + index;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    names[axis] = prefix + std::to_string(axis);
    const std::string begin = std::string("const ") + index_type() + " " + names[axis] + " = (" + index_type() + ")(";
    if (axis == 0) {
      line(begin + rest + ");");
      continue;
    }
    const std::string extent = as_text(extents[axis]) + suffix, next = prefix + "r" + std::to_string(axis);
    line("const " + unsigned_type + " " + next + " = " + rest + " / " + extent + ";");
    line(begin + rest + " - " + next + " * " + extent + ");");
    rest = next;
  }
  return names;
}

std::string KernelWriter::sum(const std::vector<std::string>& coordinates,
                              std::span<const std::int64_t> strides) const {
  std::string text;
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    if (strides[axis] == 0) continue;
    if (!text.empty()) text += " + ";
    text += coordinates[axis];
    if (strides[axis] != 1) text += " * " + number(strides[axis]);
  }
  return text.empty() ? "0" : text;
}

void KernelWriter::begin_each(std::int64_t count) {
  kernel_.blocks = (count + generated_threads - 1) / generated_threads;
  const std::string type = index_type();
  line("const " + type + " i = (" + type + ")blockIdx.x * " + number(generated_threads) + " + (" + type +
       ")threadIdx.x;");
  line("if (i >= " + number(count) + ") return;");
}

void KernelWriter::begin_team(std::int64_t rows, std::int64_t count, TeamShape shape, bool uses_row, bool exchanges) {
  shape_ = shape;
  kernel_.has_barriers = true;
  const std::string type = index_type(), block = "(" + type + ")blockIdx.x", thread = "(" + type + ")threadIdx.x";
  switch (shape) {
    case TeamShape::warp:
      kernel_.blocks = (rows + teams_of_block - 1) / teams_of_block;
      line("const " + type + " row = " + block + " * 8 + " + thread + " / 32;");
      line("if (row >= " + number(rows) + ") return;");
      line("const " + type + " begin = " + thread + " % 32;");
      break;
    case TeamShape::block:
      kernel_.blocks = rows;
      if (exchanges) line("__shared__ float partial[8];");
      if (uses_row) line("const " + type + " row = " + block + ";");
      line("const " + type + " begin = " + thread + ";");
      break;
    case TeamShape::columns:
      kernel_.blocks = (rows + lanes - 1) / lanes;
      line("__shared__ float partial[256];");
      line("const " + type + " place = " + block + " * 32 + " + thread + " % 32;");
      line("const bool active = place < " + number(rows) + ";");
      if (uses_row) line("const " + type + " row = active ? place : " + number(rows - 1) + ";");
      line("const " + type + " begin = active ? " + thread + " / 32 : " + number(count) + ";");
      break;
  }
}

int KernelWriter::team_step() const {
  switch (shape_) {
    case TeamShape::warp:
      return lanes;
    case TeamShape::block:
      return generated_threads;
    case TeamShape::columns:
      return teams_of_block;
  }
  return lanes;
}

void KernelWriter::open_row(std::int64_t count) {
  open(std::string("for (") + index_type() + " i = begin; i < " + number(count) +
       "; i += " + std::to_string(team_step()) + ")");
}

std::string KernelWriter::leads() const {
  return shape_ == TeamShape::columns ? "active && threadIdx.x < 32" : "begin == 0";
}

std::string KernelWriter::of_team(const std::string& function, const std::string& x) const {
  switch (shape_) {
    case TeamShape::warp:
      return "warp_" + function + "(" + x + ")";
    case TeamShape::block:
      return "block_" + function + "(" + x + ", partial)";
    case TeamShape::columns:
      return "column_" + function + "(" + x + ", partial)";
  }
  return x;
}

void KernelWriter::begin_blocks(std::int64_t blocks) {
  kernel_.blocks = blocks;
  kernel_.has_barriers = true;
}

std::vector<std::string> KernelWriter::declarations() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < parameter_names_.size(); ++i)
    all.push_back(parameter_types_[i] + "* " + parameter_names_[i]);
  if (kernel_.notes_errors) {
    all.emplace_back("unsigned long long* error");
    all.emplace_back("unsigned long long number");
  }
  return all;
}

std::string KernelWriter::text() const {
  return "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(generated_threads) + ") " + kernel_.name +
         "(" + listed(declarations()) + ") {\n" + body_ + "}\n";
}

std::string KernelWriter::text_of_function() const {
  static const std::string place = "blockIdx.x", parameter = "block_of_function";
  std::string body = body_;
  for (std::size_t at = body.find(place); at != std::string::npos; at = body.find(place, at + parameter.size()))
    body.replace(at, place.size(), parameter);
  std::vector<std::string> all = declarations();
  all.push_back("const unsigned int " + parameter);
  return "__device__ void " + kernel_.name + "(" + listed(all) + ") {\n" + body + "}\n";
}

KernelWriter KernelWriter::with_operands(std::span<const std::uint32_t> inputs,
                                         std::span<const std::uint32_t> outputs) const {
  KernelWriter made = *this;
  for (Slot& slot : made.kernel_.operands) {
    TASO_CHECK(slot.place != Slot::Place::workspace, "a part with a workspace");
    if (slot.place == Slot::Place::input) slot.index = inputs[slot.index];
    if (slot.place == Slot::Place::output) slot.index = outputs[slot.index];
  }
  return made;
}

KernelWriter KernelWriter::beside(std::string name, std::span<const KernelWriter* const> kernels) {
  KernelWriter made(std::move(name));
  for (std::size_t number = 0; number < kernels.size(); ++number) {
    const KernelWriter& one = *kernels[number];
    TASO_CHECK(!one.kernel_.notes_errors, "a kernel that notes errors beside others");
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < one.parameter_names_.size(); ++i) {
      // The letter tells what is written.
      arguments.push_back(made.add_parameter(one.kernel_.operands[i], one.parameter_types_[i],
                                             one.kernel_.alignments[i], one.parameter_names_[i][0]));
    }
    const std::string first = made.kernel_.blocks == 0 ? "" : " - " + std::to_string(made.kernel_.blocks) + "u";
    made.kernel_.blocks += one.kernel_.blocks;
    made.kernel_.has_barriers = made.kernel_.has_barriers || one.kernel_.has_barriers;
    arguments.push_back("blockIdx.x" + first);
    const std::string call = one.kernel_.name + "(" + listed(arguments) + ");";
    const bool is_last = number + 1 == kernels.size();
    made.line((number == 0 ? "" : "else ") +
              (is_last ? "" : "if (blockIdx.x < " + std::to_string(made.kernel_.blocks) + "u) ") + call);
  }
  return made;
}

}  // namespace taso::cuda
