// Text for every kind of step. Steps of element-wise operators become one kind of kernel, those that compute whole rows
// another; the others have text of their own.
#include "runtime/cuda/source.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>

#include "runtime/cuda/dispatch.h"
#include "runtime/cuda/kernel_writer.h"

namespace taso::cuda {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Elements of a row that a thread keeps: rows that need more are read once more for every pass.
constexpr std::int64_t most_held = 32;

std::string of_value(int value) { return "v" + std::to_string(value); }

/// The loads and stores of 16 bytes of a type.
const char* load_function(ElementType element) {
  if (element == ElementType::f16) return "load_halves";
  return element == ElementType::bf16 ? "load_bfloats" : "load_floats";
}
const char* store_function(ElementType element) {
  if (element == ElementType::f16) return "store_halves";
  return element == ElementType::bf16 ? "store_bfloats" : "store_floats";
}
std::int64_t pack_of(ElementType element) { return static_cast<std::int64_t>(16 / size_of(element)); }

/// Extents of a walk or box.
template <class Box>
Numbers extents_of(const Box& box) {
  return {box.extents, box.extents + box.rank};
}
template <int K>
Numbers strides_of_walk(const Walk<K>& walk, int function) {
  return {walk.strides[function], walk.strides[function] + walk.rank};
}

/// An operand of a kernel: where it lies, along the axes of the index space and along those of a row.
struct PlacedOperand {
  Slot slot;
  Numbers strides, along;
};

/// A line of what is computed of an element. Values are numbered.
struct ElementLine {
  enum class Kind : std::uint8_t { load, compute, store };
  Kind kind = Kind::load;
  int value = 0;            ///< Made, or stored.
  std::size_t operand = 0;  ///< A source or a target.
  std::string text;         ///< What is computed.
  std::vector<int> reads;
};

/// What is computed of an element, in the order of lines.
class ElementLines {
 public:
  int load(std::size_t source) { return add({ElementLine::Kind::load, made_, source, "", {}}); }
  int compute(std::string text, std::vector<int> reads) {
    return add({ElementLine::Kind::compute, made_, 0, std::move(text), std::move(reads)});
  }
  int unary(Function function, int x, float p = 0, float q = 0) {
    return compute(text_of(function, of_value(x), p, q), {x});
  }
  int binary(Binary function, int x, int y) { return compute(text_of(function, of_value(x), of_value(y)), {x, y}); }
  /// A value that comes from elsewhere.
  int given() { return made_++; }
  void store(std::size_t target, int value) { lines.push_back({ElementLine::Kind::store, value, target, "", {value}}); }
  /// Leaves out what nothing reads but what is left out; `read`: what is read besides. `keeps` goes on to mean the same
  /// line.
  void prune(std::set<int> read, std::size_t& keeps) {
    std::vector<ElementLine> kept;
    const std::size_t begin = keeps;
    for (std::size_t i = lines.size(); i-- > 0;) {
      const bool is_kept = lines[i].kind == ElementLine::Kind::store || read.contains(lines[i].value);
      if (is_kept) {
        read.insert(lines[i].reads.begin(), lines[i].reads.end());
        kept.insert(kept.begin(), std::move(lines[i]));
      } else if (i < begin) {
        --keeps;
      }
    }
    lines = std::move(kept);
  }
  std::vector<ElementLine> lines;

 private:
  int add(ElementLine line) {
    lines.push_back(std::move(line));
    return made_++;
  }
  int made_ = 0;
};

/// The same for every element of a box.
struct ElementKernel {
  ElementType element = ElementType::f32;
  Numbers extents;
  std::vector<PlacedOperand> sources, targets;
  ElementLines code;
};

/// A function of every row: of what lines before `row_begins` leave in `value`; those from there on find its result in
/// `result`.
struct RowKernel {
  ElementType element = ElementType::f32;
  Numbers extents;  ///< Of rows.
  Numbers inner;    ///< Of one row.
  std::vector<PlacedOperand> sources, targets;
  ElementLines code;
  std::size_t row_begins = 0;
  int value = 0, result = 0;
  RowFunction function = RowFunction::softmax;
  float epsilon = 0;
  TeamShape team = TeamShape::warp;
};

/// Copies instructions from registers to values: `place` is the value of each register.
void add_instructions(ElementLines& code, const ElementCode& from, int first, int last,
                      std::array<int, max_registers>& place) {
  for (int i = first; i < last; ++i) {
    const Instruction& one = from.instructions[i];
    switch (one.kind) {
      case Instruction::Kind::load:
        place[one.to] = code.load(one.a);
        break;
      case Instruction::Kind::store:
        code.store(one.to, place[one.a]);
        break;
      case Instruction::Kind::unary:
        place[one.to] = code.unary(static_cast<Function>(one.function), place[one.a], one.p, one.q);
        break;
      case Instruction::Kind::binary:
        place[one.to] = code.binary(static_cast<Binary>(one.function), place[one.a], place[one.b]);
        break;
    }
  }
}

template <class Code>
void place_chain(const ChainOperands& operands, const ElementCode& code, int rank, Code& kernel) {
  const auto placed = [&](const Slot& slot, int operand) {
    return PlacedOperand{slot, {code.strides[operand], code.strides[operand] + rank}, {code.along[operand]}};
  };
  for (std::size_t i = 0; i < operands.sources.size(); ++i)
    kernel.sources.push_back(placed(operands.sources[i], static_cast<int>(i)));
  for (std::size_t i = 0; i < operands.targets.size(); ++i)
    kernel.targets.push_back(placed(operands.targets[i], max_sources + static_cast<int>(i)));
}

class SourceGenerator {
 public:
  explicit SourceGenerator(const Program& program) : program_(program) {}

  GeneratedOffer generate() {
    GeneratedProgram made;
    made.name = program_.name.starts_with("own ") ? "generated " + program_.name.substr(4) : "generated";
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      prefix_ = "step_" + std::to_string(i);
      step_ = {};
      std::visit([&](const auto& step) { add(step); }, program_.steps[i]);
      for (const GeneratedKernel& kernel : step_.kernels)
        if (kernel.blocks > std::numeric_limits<std::int32_t>::max())
          return {std::nullopt, "more blocks than a launch can have"};
      made.steps.push_back(std::move(step_));
    }
    made.source = definitions_for(text_) + text_;
    return {std::move(made), ""};
  }

 private:
  /// Takes a kernel; those for any operands come last.
  void take(const KernelWriter& writer) {
    if (!text_.empty()) text_ += "\n";
    text_ += writer.text();
    step_.kernels.push_back(writer.kernel());
  }

  // ---- Elements.

  void add(const UnaryStep& step) {
    ElementKernel kernel{step.element, extents_of(step.walk), {}, {}, {}};
    kernel.sources = {{step.x, strides_of_walk(step.walk, 1), {}}};
    kernel.targets = {{step.y, strides_of_walk(step.walk, 0), {}}};
    kernel.code.store(0, kernel.code.unary(step.function, kernel.code.load(0), step.p, step.q));
    add_elements(kernel);
  }

  void add(const BinaryStep& step) {
    ElementKernel kernel{step.element, extents_of(step.walk), {}, {}, {}};
    kernel.sources = {{step.a, strides_of_walk(step.walk, 1), {}}, {step.b, strides_of_walk(step.walk, 2), {}}};
    kernel.targets = {{step.y, strides_of_walk(step.walk, 0), {}}};
    const int a = kernel.code.load(0), b = kernel.code.load(1);
    kernel.code.store(0, kernel.code.binary(step.function, a, b));
    add_elements(kernel);
  }

  void add(const EpilogueStep& step) {
    ElementKernel kernel{step.element, extents_of(step.walk), {}, {}, {}};
    kernel.sources = {{step.y, strides_of_walk(step.walk, 0), {}}};
    kernel.targets = kernel.sources;
    int value = kernel.code.load(0);
    const auto plus = [&](const Slot& slot, int function) {
      if (slot.place == Slot::Place::none) return;
      kernel.sources.push_back({slot, strides_of_walk(step.walk, function), {}});
      value = kernel.code.binary(Binary::add, value, kernel.code.load(kernel.sources.size() - 1));
    };
    plus(step.bias, 1);
    plus(step.residual, 2);
    kernel.code.store(0, kernel.code.unary(step.function, value));
    add_elements(kernel);
  }

  void add(const BatchNormStep& step) {
    ElementKernel kernel{step.element, extents_of(step.walk), {}, {}, {}};
    kernel.sources = {{input(0), strides_of_walk(step.walk, 1), {}}};
    for (std::size_t i = 1; i < 5; ++i) kernel.sources.push_back({input(i), strides_of_walk(step.walk, 2), {}});
    kernel.targets = {{output(0), strides_of_walk(step.walk, 0), {}}};
    ElementLines& code = kernel.code;
    const int x = code.load(0), scale = code.load(1), bias = code.load(2), mean = code.load(3), variance = code.load(4);
    const int factor = code.compute(
        of_value(scale) + " / sqrtf(" + of_value(variance) + " + " + literal(step.epsilon) + ")", {scale, variance});
    const int distance = code.binary(Binary::sub, x, mean);
    code.store(0, code.compute(of_value(distance) + " * " + of_value(factor) + " + " + of_value(bias),
                               {distance, factor, bias}));
    add_elements(kernel);
  }

  void add(const ChainStep& step) {
    ElementKernel kernel{step.element, extents_of(step.box), {}, {}, {}};
    place_chain(step.operands, step.code, step.box.rank, kernel);
    std::array<int, max_registers> place{};
    add_instructions(kernel.code, step.code, 0, step.code.count, place);
    add_elements(kernel);
  }

  void add_elements(ElementKernel& kernel) {
    const std::int64_t count = product(kernel.extents);
    if (count == 0) return;
    std::size_t none = 0;
    kernel.code.prune({}, none);
    keep_used_sources(kernel);
    if (has_packs(kernel)) take(write_packs(kernel));
    KernelWriter writer(prefix_);
    span(writer, kernel);
    const std::vector<std::string> names = name_operands(writer, kernel, false);
    writer.begin_each(count);
    const auto coordinates = writer.coordinates("c", "i", kernel.extents);
    write_lines(writer, kernel, names, coordinates);
    take(writer);
  }

  /// Leaves out sources that nothing loads.
  template <class Kernel>
  static void keep_used_sources(Kernel& kernel) {
    std::vector<std::size_t> number(kernel.sources.size(), kernel.sources.size());
    std::vector<PlacedOperand> used;
    for (ElementLine& line : kernel.code.lines) {
      if (line.kind != ElementLine::Kind::load) continue;
      if (number[line.operand] == kernel.sources.size()) {
        number[line.operand] = used.size();
        used.push_back(kernel.sources[line.operand]);
      }
      line.operand = number[line.operand];
    }
    kernel.sources = std::move(used);
  }

  static std::int64_t product(const Numbers& extents) {
    return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  }

  /// Whether neighbours along the innermost axis are read and written 16 bytes at a time: all that varies along it lies
  /// together, and begins at multiples of that. A single axis may end in the middle.
  static bool has_packs(const ElementKernel& kernel) {
    if (kernel.extents.empty()) return false;
    const std::size_t last = kernel.extents.size() - 1;
    const std::int64_t pack = pack_of(kernel.element);
    if (kernel.extents[last] < pack || (last > 0 && kernel.extents[last] % pack != 0)) return false;
    const auto fits = [&](const PlacedOperand& operand, bool may_stay) {
      if (operand.strides[last] == 0 && may_stay) return true;
      const bool whole = std::all_of(operand.strides.begin(), operand.strides.end() - 1,
                                     [&](std::int64_t stride) { return stride % pack == 0; });
      return operand.strides[last] == 1 && whole;
    };
    return std::all_of(kernel.sources.begin(), kernel.sources.end(), [&](const auto& x) { return fits(x, true); }) &&
           std::all_of(kernel.targets.begin(), kernel.targets.end(), [&](const auto& y) { return fits(y, false); });
  }

  template <class Kernel>
  static void span(KernelWriter& writer, const Kernel& kernel) {
    for (const auto* operands : {&kernel.sources, &kernel.targets})
      for (const PlacedOperand& operand : *operands) writer.span_over(kernel.extents, operand.strides);
  }

  /// Parameters: sources, then targets.
  template <class Kernel>
  static std::vector<std::string> name_operands(KernelWriter& writer, const Kernel& kernel, bool packed) {
    std::vector<std::string> names;
    const auto alignment = [&](const PlacedOperand& operand) -> std::size_t {
      return packed && operand.strides.back() != 0 ? 16 : 1;
    };
    for (const PlacedOperand& source : kernel.sources)
      names.push_back(writer.reads(source.slot, type_of(kernel.element), alignment(source)));
    for (const PlacedOperand& target : kernel.targets)
      names.push_back(writer.writes(target.slot, type_of(kernel.element), alignment(target)));
    return names;
  }

  /// All lines for the element at the coordinates.
  static void write_lines(KernelWriter& writer, const ElementKernel& kernel, const std::vector<std::string>& names,
                          const std::vector<std::string>& coordinates) {
    for (const ElementLine& line : kernel.code.lines) {
      if (line.kind == ElementLine::Kind::store) {
        const std::string at = writer.sum(coordinates, kernel.targets[line.operand].strides);
        writer.line(names[kernel.sources.size() + line.operand] + "[" + at +
                    "] = " + narrowed(kernel.element, of_value(line.value)) + ";");
        continue;
      }
      const std::string at =
          line.kind == ElementLine::Kind::load
              ? names[line.operand] + "[" + writer.sum(coordinates, kernel.sources[line.operand].strides) + "]"
              : "";
      writer.line("const float " + of_value(line.value) + " = " +
                  (at.empty() ? line.text : widened(kernel.element, at)) + ";");
    }
  }

  KernelWriter write_packs(const ElementKernel& kernel) {
    const std::int64_t pack = pack_of(kernel.element), count = product(kernel.extents);
    const std::size_t last = kernel.extents.size() - 1;
    const std::string size = std::to_string(pack);
    KernelWriter writer(prefix_ + "_packs");
    span(writer, kernel);
    const std::vector<std::string> names = name_operands(writer, kernel, true);
    writer.begin_each((count + pack - 1) / pack);
    Numbers extents = kernel.extents;
    extents[last] = (extents[last] + pack - 1) / pack;
    const auto coordinates = writer.coordinates("c", "i", extents);
    const auto at = [&](const PlacedOperand& operand) {
      Numbers strides = operand.strides;
      strides[last] *= pack;
      return writer.sum(coordinates, strides);
    };
    const bool has_rest = kernel.extents[last] % pack != 0;  // of the only axis
    if (has_rest) {
      writer.open("if (i == " + writer.number(count / pack) + ")");
      writer.open(std::string("for (") + writer.index_type() + " e = i * " + size + "; e < " + writer.number(count) +
                  "; ++e)");
      write_lines(writer, kernel, names, {"e"});
      writer.close();
      writer.line("return;");
      writer.close();
    }
    std::vector<std::string> loaded;
    for (std::size_t s = 0; s < kernel.sources.size(); ++s) {
      const PlacedOperand& source = kernel.sources[s];
      const std::string name = "a" + std::to_string(s);
      if (source.strides[last] == 0) {
        writer.line("const float " + name + " = " + widened(kernel.element, names[s] + "[" + at(source) + "]") + ";");
        loaded.push_back(name);
      } else {
        writer.line("float " + name + "[" + size + "];");
        writer.line(std::string(load_function(kernel.element)) + "(" + names[s] + " + (" + at(source) + "), " + name +
                    ");");
        loaded.push_back(name + "[k]");
      }
    }
    for (std::size_t t = 0; t < kernel.targets.size(); ++t)
      writer.line("float b" + std::to_string(t) + "[" + size + "];");
    writer.line("#pragma unroll");
    writer.open("for (int k = 0; k < " + size + "; ++k)");
    for (const ElementLine& line : kernel.code.lines) {
      if (line.kind == ElementLine::Kind::store)
        writer.line("b" + std::to_string(line.operand) + "[k] = " + of_value(line.value) + ";");
      else
        writer.line("const float " + of_value(line.value) + " = " +
                    (line.kind == ElementLine::Kind::load ? loaded[line.operand] : line.text) + ";");
    }
    writer.close();
    for (std::size_t t = 0; t < kernel.targets.size(); ++t)
      writer.line(std::string(store_function(kernel.element)) + "(" + names[kernel.sources.size() + t] + " + (" +
                  at(kernel.targets[t]) + "), b" + std::to_string(t) + ");");
    return writer;
  }

  // ---- Rows.

  void add(const SoftmaxStep& step) {
    RowKernel kernel = row_kernel(step.element, step.rows, step.count, step.x_stride, step.y_stride, step.team);
    kernel.value = kernel.code.load(0);
    kernel.row_begins = kernel.code.lines.size();
    kernel.result = kernel.code.given();
    kernel.code.store(0, kernel.result);
    add_rows(kernel);
  }

  void add(const RowNormStep& step) {
    RowKernel kernel = row_kernel(step.element, step.rows, step.count, step.x_stride, step.y_stride, step.team);
    kernel.function = step.centers ? RowFunction::normalize : RowFunction::divide_by_root;
    kernel.epsilon = step.epsilon;
    kernel.value = kernel.code.load(0);
    kernel.row_begins = kernel.code.lines.size();
    kernel.result = kernel.code.given();
    const Numbers still(kernel.extents.size(), 0);
    kernel.sources.push_back({input(1), still, {1}});
    int value = kernel.code.binary(Binary::mul, kernel.result, kernel.code.load(1));
    if (step.centers) {
      kernel.sources.push_back({input(2), still, {1}});
      value = kernel.code.binary(Binary::add, value, kernel.code.load(2));
    }
    kernel.code.store(0, value);
    add_rows(kernel);
  }

  void add(const GroupNormStep& step) {
    const GroupNorm<float>& shape = step.shape;
    RowKernel kernel;
    kernel.element = step.element;
    kernel.extents = extents_of(shape.groups);
    kernel.inner = extents_of(shape.members);
    kernel.function = RowFunction::normalize;
    kernel.epsilon = shape.epsilon;
    kernel.team = step.team;
    const auto placed = [&](const Slot& slot, int function) {
      return PlacedOperand{slot, strides_of_walk(shape.groups, function), strides_of_walk(shape.members, function)};
    };
    kernel.sources = {placed(input(0), 1), placed(input(1), 2), placed(input(2), 2)};
    kernel.targets = {placed(output(0), 0)};
    ElementLines& code = kernel.code;
    kernel.value = code.load(0);
    kernel.row_begins = code.lines.size();
    kernel.result = code.given();
    const int scaled = code.binary(Binary::mul, kernel.result, code.load(1));
    const int shifted = code.binary(Binary::add, scaled, code.load(2));
    code.store(0, code.unary(shape.act, shifted));
    add_rows(kernel);
  }

  void add(const RowChainStep& step) {
    const RowChain<float>& shape = step.shape;
    RowKernel kernel;
    kernel.element = step.element;
    kernel.extents = extents_of(shape.rows);
    kernel.inner = {shape.count};
    kernel.function = shape.function;
    kernel.epsilon = shape.epsilon;
    kernel.team = step.team;
    place_chain(step.operands, shape.code, shape.rows.rank, kernel);
    std::array<int, max_registers> place{};
    add_instructions(kernel.code, shape.code, 0, shape.before, place);
    kernel.value = place[static_cast<std::size_t>(shape.value)];
    kernel.row_begins = kernel.code.lines.size();
    kernel.result = kernel.code.given();
    place[static_cast<std::size_t>(shape.result)] = kernel.result;
    add_instructions(kernel.code, shape.code, shape.before, shape.code.count, place);
    add_rows(kernel);
  }

  static RowKernel row_kernel(ElementType element, const Walk<2>& rows, std::int64_t count, std::int64_t x_stride,
                              std::int64_t y_stride, TeamShape team) {
    RowKernel kernel;
    kernel.element = element;
    kernel.extents = extents_of(rows);
    kernel.inner = {count};
    kernel.sources = {{input(0), strides_of_walk(rows, 1), {x_stride}}};
    kernel.targets = {{output(0), strides_of_walk(rows, 0), {y_stride}}};
    kernel.team = team;
    return kernel;
  }

  /// Writes lines [first, last) of a row's element: those that are wanted.
  static void write_row_lines(KernelWriter& writer, const RowKernel& kernel, const std::vector<std::string>& names,
                              std::size_t first, std::size_t last, const std::vector<std::string>& inner,
                              const std::set<int>* wanted) {
    for (std::size_t i = first; i < last; ++i) {
      const ElementLine& line = kernel.code.lines[i];
      if (line.kind == ElementLine::Kind::store) {
        writer.line(names[kernel.sources.size() + line.operand] + "[" +
                    writer.sum(inner, kernel.targets[line.operand].along) +
                    "] = " + narrowed(kernel.element, of_value(line.value)) + ";");
        continue;
      }
      if (wanted != nullptr && !wanted->contains(line.value)) continue;
      const std::string text =
          line.kind == ElementLine::Kind::compute
              ? line.text
              : widened(kernel.element,
                        names[line.operand] + "[" + writer.sum(inner, kernel.sources[line.operand].along) + "]");
      writer.line("const float " + of_value(line.value) + " = " + text + ";");
    }
  }

  /// What the lines behind the function of rows need of those before it.
  static std::set<int> needed_again(const RowKernel& kernel) {
    std::set<int> needed;
    for (std::size_t i = kernel.code.lines.size(); i-- > 0;) {
      const ElementLine& line = kernel.code.lines[i];
      if (i >= kernel.row_begins || needed.contains(line.value)) needed.insert(line.reads.begin(), line.reads.end());
    }
    return needed;
  }

  void add_rows(RowKernel& kernel) {
    const std::int64_t rows = product(kernel.extents), count = product(kernel.inner);
    if (rows == 0 || count == 0) return;
    const auto reads_result = [&](const ElementLine& line) {
      return std::find(line.reads.begin(), line.reads.end(), kernel.result) != line.reads.end();
    };
    kernel.code.prune({kernel.value}, kernel.row_begins);
    if (std::none_of(kernel.code.lines.begin(), kernel.code.lines.end(), reads_result)) {
      ElementKernel elements = without_rows(kernel);
      add_elements(elements);
      return;
    }
    keep_used_sources(kernel);
    KernelWriter writer(prefix_);
    for (const auto* operands : {&kernel.sources, &kernel.targets})
      for (const PlacedOperand& operand : *operands) {
        Numbers extents = kernel.extents, strides = operand.strides;
        extents.insert(extents.end(), kernel.inner.begin(), kernel.inner.end());
        strides.insert(strides.end(), operand.along.begin(), operand.along.end());
        writer.span_over(extents, strides);
      }
    std::vector<std::string> parameters;
    for (const PlacedOperand& source : kernel.sources)
      parameters.push_back(writer.reads(source.slot, type_of(kernel.element)));
    for (const PlacedOperand& target : kernel.targets)
      parameters.push_back(writer.writes(target.slot, type_of(kernel.element)));
    writer.begin_team(rows, count, kernel.team, !kernel.extents.empty());
    const auto coordinates = writer.coordinates("r", "row", kernel.extents);
    // Each operand from where its row begins.
    std::vector<std::string> names;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const bool is_source = i < kernel.sources.size();
      const PlacedOperand& operand = is_source ? kernel.sources[i] : kernel.targets[i - kernel.sources.size()];
      names.push_back((is_source ? "p" : "q") + std::to_string(i));
      writer.line(std::string(is_source ? "const " : "") + type_of(kernel.element) + "* const " + names.back() + " = " +
                  parameters[i] + " + (" + writer.sum(coordinates, operand.strides) + ");");
    }
    const std::int64_t step = writer.team_step(), per_thread = (count + step - 1) / step;
    const bool holds = per_thread <= most_held;
    if (holds) writer.line("float held[" + std::to_string(per_thread) + "];");
    bool is_held = false;
    // Goes over a thread's elements, and tells what the value is called.
    const auto open_pass = [&]() -> std::string {
      const std::string type = writer.index_type();
      if (holds) {
        writer.line("#pragma unroll");
        writer.open("for (int k = 0; k < " + std::to_string(per_thread) + "; ++k)");
        writer.line("const " + type + " i = begin + k * " + std::to_string(step) + ";");
        if (!is_held) writer.line("held[k] = 0.0f;");
        writer.open("if (i < " + writer.number(count) + ")");
      } else {
        writer.open("for (" + type + " i = begin; i < " + writer.number(count) + "; i += " + std::to_string(step) +
                    ")");
      }
      if (holds && is_held) return "held[k]";
      const auto inner = writer.coordinates("c", "i", kernel.inner);
      write_row_lines(writer, kernel, names, 0, kernel.row_begins, inner, nullptr);
      if (!holds) return of_value(kernel.value);
      writer.line("held[k] = " + of_value(kernel.value) + ";");
      is_held = true;
      return "held[k]";
    };
    const auto close_pass = [&] {
      writer.close();
      if (holds) writer.close();
    };
    const bool is_softmax = kernel.function == RowFunction::softmax;
    std::string from_center;  // what is taken off every value
    if (is_softmax) {
      writer.line("float center = " + literal(-std::numeric_limits<float>::infinity()) + ";");
      const std::string value = open_pass();
      writer.line("center = fmaxf(center, " + value + ");");
      close_pass();
      writer.line("center = " + writer.team_maximum("center") + ";");
      from_center = " - center";
    } else if (kernel.function == RowFunction::normalize) {
      writer.line("float center = 0.0f;");
      const std::string value = open_pass();
      writer.line("center += " + value + ";");
      close_pass();
      writer.line("center = " + writer.team_sum("center") + " / " + literal(static_cast<float>(count)) + ";");
      from_center = " - center";
    }
    writer.line("float scale = 0.0f;");
    {
      const std::string value = open_pass();
      const std::string power = "expf(" + value + " - center)";
      if (is_softmax && holds) {
        writer.line("held[k] = " + power + ";");
        writer.line("scale += held[k];");
      } else if (is_softmax) {
        writer.line("scale += " + power + ";");
      } else {
        writer.line("const float distance = " + value + from_center + ";");
        writer.line("scale += distance * distance;");
      }
      close_pass();
    }
    writer.line("scale = " +
                (is_softmax ? writer.team_sum("scale")
                            : "sqrtf(" + writer.team_sum("scale") + " / " + literal(static_cast<float>(count)) + " + " +
                                  literal(kernel.epsilon) + ")") +
                ";");
    {
      const std::string value = open_pass();
      const auto inner = holds ? writer.coordinates("c", "i", kernel.inner) : inner_names(kernel.inner);
      if (holds) {
        const std::set<int> needed = needed_again(kernel);
        write_row_lines(writer, kernel, names, 0, kernel.row_begins, inner, &needed);
      }
      const std::string numerator = is_softmax ? (holds ? value : "expf(" + value + " - center)")
                                               : (from_center.empty() ? value : "(" + value + from_center + ")");
      writer.line("const float " + of_value(kernel.result) + " = " + numerator + " / scale;");
      write_row_lines(writer, kernel, names, kernel.row_begins, kernel.code.lines.size(), inner, nullptr);
      close_pass();
    }
    take(writer);
  }

  /// The same where nothing reads the function of rows.
  static ElementKernel without_rows(const RowKernel& kernel) {
    const auto joined = [](Numbers outer, const Numbers& inner) {
      outer.insert(outer.end(), inner.begin(), inner.end());
      return outer;
    };
    ElementKernel made{kernel.element, joined(kernel.extents, kernel.inner), {}, {}, kernel.code};
    for (const PlacedOperand& source : kernel.sources)
      made.sources.push_back({source.slot, joined(source.strides, source.along), {}});
    for (const PlacedOperand& target : kernel.targets)
      made.targets.push_back({target.slot, joined(target.strides, target.along), {}});
    return made;
  }

  /// The names that coordinates("c", "i", extents) declared.
  static std::vector<std::string> inner_names(const Numbers& extents) {
    if (extents.size() == 1) return {"i"};
    std::vector<std::string> names;
    for (std::size_t axis = 0; axis < extents.size(); ++axis) names.push_back("c" + std::to_string(axis));
    return names;
  }

  void add(const ReductionStep& step) {
    const std::int64_t rows = step.kept.elements, count = step.reduced.elements;
    if (rows == 0) return;
    const Numbers kept = extents_of(step.kept), reduced = extents_of(step.reduced);
    const Numbers to = strides_of_walk(step.kept, 0), from = strides_of_walk(step.kept, 1);
    const Numbers along = strides_of_walk(step.reduced, 0);
    KernelWriter writer(prefix_);
    writer.span_over(kept, to);
    writer.span_over(kept, from);
    writer.span_over(reduced, along);
    const std::string x = writer.reads(input(0), type_of(step.element));
    const std::string y = writer.writes(output(0), type_of(step.element));
    writer.begin_team(rows, count, step.team, !kept.empty());
    const auto coordinates = writer.coordinates("r", "row", kept);
    const bool is_maximum = step.kind == ReductionKind::maximum;
    writer.line("float total = " + literal(is_maximum ? -std::numeric_limits<float>::infinity() : 0.0F) + ";");
    if (count > 0) {
      writer.line(std::string("const ") + type_of(step.element) + "* const p = " + x + " + (" +
                  writer.sum(coordinates, from) + ");");
      writer.open(std::string("for (") + writer.index_type() + " i = begin; i < " + writer.number(count) +
                  "; i += " + std::to_string(writer.team_step()) + ")");
      const auto inner = writer.coordinates("c", "i", reduced);
      const std::string value = widened(step.element, "p[" + writer.sum(inner, along) + "]");
      writer.line(is_maximum ? "total = fmaxf(total, " + value + ");" : "total += " + value + ";");
      writer.close();
    }
    writer.line("total = " + (is_maximum ? writer.team_maximum("total") : writer.team_sum("total")) + ";");
    if (step.kind == ReductionKind::mean) writer.line("total /= " + literal(static_cast<float>(count)) + ";");
    writer.line("if (" + writer.leads() + ") " + y + "[" + writer.sum(coordinates, to) +
                "] = " + narrowed(step.element, "total") + ";");
    take(writer);
  }

  void add(const ThinProductStep& step) {
    const ThinProduct<float>& shape = step.shape;
    if (step.wide_count == 0) return;
    const auto thin_count = static_cast<int>(shape.thin_count);
    const char* type = type_of(step.element);
    KernelWriter writer(prefix_);
    writer.span_over(Numbers{step.wide_count, shape.depth}, Numbers{shape.wide_step, shape.wide_depth});
    writer.span_over(Numbers{shape.thin_count, shape.depth}, Numbers{shape.thin_step, shape.thin_depth});
    writer.span_over(Numbers{step.wide_count, shape.thin_count}, Numbers{shape.y_wide, shape.y_thin});
    const std::string wide = writer.reads(step.wide, type), thin = writer.reads(step.thin, type);
    const bool biased = step.bias.place != Slot::Place::none;
    const std::string bias = biased ? writer.reads(step.bias, type) : "";
    const std::string y = writer.writes(step.y, type);
    writer.begin_team(step.wide_count, shape.depth, step.team, true);
    for (int k = 0; k < thin_count; ++k) writer.line("float total" + std::to_string(k) + " = 0.0f;");
    writer.open(std::string("for (") + writer.index_type() + " i = begin; i < " + writer.number(shape.depth) +
                "; i += " + std::to_string(writer.team_step()) + ")");
    writer.line(
        "const float factor = " +
        widened(step.element, wide + "[" + writer.sum({"row", "i"}, Numbers{shape.wide_step, shape.wide_depth}) + "]") +
        ";");
    const auto fixed = [&](int k, std::int64_t stride) { return writer.number(k * stride); };
    for (int k = 0; k < thin_count; ++k)
      writer.line("total" + std::to_string(k) + " += factor * " +
                  widened(step.element, thin + "[" + fixed(k, shape.thin_step) + " + " +
                                            writer.sum({"i"}, Numbers{shape.thin_depth}) + "]") +
                  ";");
    writer.close();
    for (int k = 0; k < thin_count; ++k) {
      const std::string total = "total" + std::to_string(k);
      writer.line(total + " = " + writer.team_sum(total) + ";");
    }
    writer.open("if (" + writer.leads() + ")");
    for (int k = 0; k < thin_count; ++k) {
      const std::string total = "total" + std::to_string(k);
      if (biased)
        writer.line(total + " += " +
                    widened(step.element, bias + "[" + writer.sum({"row"}, Numbers{shape.bias_wide}) + " + " +
                                              fixed(k, shape.bias_thin) + "]") +
                    ";");
      writer.line(y + "[" + writer.sum({"row"}, Numbers{shape.y_wide}) + " + " + fixed(k, shape.y_thin) +
                  "] = " + narrowed(step.element, text_of(shape.function, total)) + ";");
    }
    writer.close();
    take(writer);
  }

  // ---- Windows and what else looks at neighbours.

  /// Loops over the cells of a window that lie inside of the image: `cell` is left open, at `row` and `column`.
  template <class Window>
  static void open_window(KernelWriter& writer, const Window& of, const std::vector<std::string>& coordinates) {
    const std::string type = std::string("const ") + writer.index_type();
    const auto along = [&](int axis) { return writer.sum(coordinates, strides_of_walk(of.walk, 2 + axis)); };
    const std::string names[2] = {"top", "left"};
    for (int axis = 0; axis < 2; ++axis)
      writer.line(type + " " + names[axis] + " = (" + along(axis) + ") * " + writer.number(of.strides[axis]) + " - " +
                  writer.number(of.pads[axis]) + ";");
    writer.open("for (int u = 0; u < " + std::to_string(of.kernel[0]) + "; ++u)");
    writer.line(type + " row = top + u * " + writer.number(of.dilations[0]) + ";");
    writer.line("if (row < 0 || row >= " + writer.number(of.height) + ") continue;");
    writer.open("for (int v = 0; v < " + std::to_string(of.kernel[1]) + "; ++v)");
    writer.line(type + " column = left + v * " + writer.number(of.dilations[1]) + ";");
    writer.line("if (column < 0 || column >= " + writer.number(of.width) + ") continue;");
  }

  template <class Window>
  static void span_window(KernelWriter& writer, const Window& of) {
    const std::int64_t image = of.height * std::abs(of.row_stride) + of.width * std::abs(of.column_stride);
    constexpr int functions = static_cast<int>(std::extent_v<decltype(of.walk.strides), 0>);
    for (int function = 0; function < functions; ++function)
      writer.span_over(extents_of(of.walk), strides_of_walk(of.walk, function), image);
    for (int axis = 0; axis < 2; ++axis)
      writer.span_over(Numbers{of.height + of.width, of.kernel[axis]}, Numbers{of.strides[axis], of.dilations[axis]},
                       std::abs(of.pads[axis]));
  }

  /// Begins of tensors for as_packs, which asks whether they are aligned: they are where the kernel is chosen.
  static const void* aligned_begin(bool is_there = true) {
    alignas(16) static constexpr char begin[16] = {};
    return is_there ? begin : nullptr;
  }

  void add(const PoolingStep& step) {
    if (step.shape.walk.elements == 0) return;
    const std::int64_t pack = pack_of(step.element);
    Pooling<float> packed = step.shape;
    const bool whole = packed.row_stride % pack == 0 && packed.column_stride % pack == 0;
    if (whole && dispatch::as_packs(packed.walk, pack, {{0, aligned_begin()}, {1, aligned_begin()}}))
      write_pooling(step, packed, pack);
    write_pooling(step, step.shape, 1);
  }

  void write_pooling(const PoolingStep& step, const Pooling<float>& of, std::int64_t pack) {
    KernelWriter writer(pack > 1 ? prefix_ + "_packs" : prefix_);
    span_window(writer, step.shape);
    const std::size_t alignment = pack > 1 ? 16 : 1;
    const std::string x = writer.reads(step.x, type_of(step.element), alignment);
    const std::string y = writer.writes(step.y, type_of(step.element), alignment);
    writer.begin_each(of.walk.elements);
    const auto coordinates = writer.coordinates("c", "i", extents_of(of.walk));
    const bool is_maximum = of.kind == PoolKind::maximum, counts = of.kind == PoolKind::average_exclude;
    const std::string size = std::to_string(pack);
    const std::string each = "for (int k = 0; k < " + size + "; ++k) ";
    writer.line("float total[" + size + "];");
    writer.line(each + "total[k] = " + literal(is_maximum ? -std::numeric_limits<float>::infinity() : 0.0F) + ";");
    if (counts) writer.line("int cells = 0;");
    open_window(writer, of, coordinates);
    load_neighbours(writer, step.element, pack, "value",
                    x + " + (" + begin_of(writer, coordinates, strides_of_walk(of.walk, 1), pack) + " + row * " +
                        writer.number(of.row_stride) + " + column * " + writer.number(of.column_stride) + ")");
    writer.line(each + (is_maximum ? "total[k] = fmaxf(total[k], value[k]);" : "total[k] += value[k];"));
    if (counts) writer.line("++cells;");
    writer.close();
    writer.close();
    if (counts) writer.line(each + "total[k] /= (float)cells;");
    if (of.kind == PoolKind::average_include)
      writer.line(each + "total[k] /= " + literal(static_cast<float>(of.kernel[0] * of.kernel[1])) + ";");
    store_neighbours(writer, step.element, pack, "total",
                     y + " + (" + begin_of(writer, coordinates, strides_of_walk(of.walk, 0), pack) + ")");
    take(writer);
  }

  /// The first element of a pack: what the coordinates of packs lead to.
  static std::string begin_of(const KernelWriter& writer, const std::vector<std::string>& coordinates, Numbers strides,
                              std::int64_t pack) {
    for (std::int64_t& stride : strides) stride *= pack;
    return writer.sum(coordinates, strides);
  }

  /// Declares an array of floats, of `pack` elements from an address on.
  static void load_neighbours(KernelWriter& writer, ElementType element, std::int64_t pack, const std::string& name,
                              const std::string& address) {
    writer.line("float " + name + "[" + std::to_string(pack) + "];");
    writer.line(pack > 1 ? std::string(load_function(element)) + "(" + address + ", " + name + ");"
                         : name + "[0] = " + widened(element, "*(" + address + ")") + ";");
  }
  static void store_neighbours(KernelWriter& writer, ElementType element, std::int64_t pack, const std::string& name,
                               const std::string& address) {
    writer.line(pack > 1 ? std::string(store_function(element)) + "(" + address + ", " + name + ");"
                         : "*(" + address + ") = " + narrowed(element, name + "[0]") + ";");
  }

  void add(const DepthwiseStep& step) {
    if (step.shape.walk.elements == 0) return;
    const std::int64_t pack = pack_of(step.element);
    Depthwise<float> packed = step.shape;
    const bool whole = packed.row_stride % pack == 0 && packed.column_stride % pack == 0;
    const bool along_channels = packed.walk.rank > 0 && packed.walk.strides[4][packed.walk.rank - 1] == 1;
    const bool biased = step.bias.place != Slot::Place::none, adds = step.residual.place != Slot::Place::none;
    if (whole && along_channels &&
        dispatch::as_packs(
            packed.walk, pack,
            {{0, aligned_begin()}, {1, aligned_begin()}, {4, aligned_begin(biased)}, {5, aligned_begin(adds)}}))
      write_depthwise(step, packed, pack);
    write_depthwise(step, step.shape, 1);
  }

  void write_depthwise(const DepthwiseStep& step, const Depthwise<float>& of, std::int64_t pack) {
    KernelWriter writer(pack > 1 ? prefix_ + "_packs" : prefix_);
    span_window(writer, step.shape);
    writer.span_over(Numbers{of.kernel[0], of.kernel[1]}, Numbers{of.row_of_w, of.column_of_w},
                     std::abs(of.channel_of_w) * step.shape.walk.elements);
    const std::size_t alignment = pack > 1 ? 16 : 1;
    const char* type = type_of(step.element);
    const std::string x = writer.reads(step.x, type, alignment), w = writer.reads(step.w, type);
    const bool biased = step.bias.place != Slot::Place::none, adds = step.residual.place != Slot::Place::none;
    const std::string bias = biased ? writer.reads(step.bias, type, alignment) : "";
    const std::string residual = adds ? writer.reads(step.residual, type, alignment) : "";
    const std::string y = writer.writes(step.y, type, alignment);
    writer.begin_each(of.walk.elements);
    const auto coordinates = writer.coordinates("c", "i", extents_of(of.walk));
    const auto begin = [&](int function) {
      return begin_of(writer, coordinates, strides_of_walk(of.walk, function), pack);
    };
    const std::string size = std::to_string(pack);
    const std::string each = "for (int k = 0; k < " + size + "; ++k) ";
    writer.line("float total[" + size + "];");
    writer.line(each + "total[k] = 0.0f;");
    writer.line(std::string("const ") + type + "* const window = " + w + " + (" + begin(4) + ") * " +
                writer.number(of.channel_of_w) + ";");
    open_window(writer, of, coordinates);
    load_neighbours(writer, step.element, pack, "value",
                    x + " + (" + begin(1) + " + row * " + writer.number(of.row_stride) + " + column * " +
                        writer.number(of.column_stride) + ")");
    writer.line(each + "total[k] += value[k] * " +
                widened(step.element, "window[u * " + writer.number(of.row_of_w) + " + v * " +
                                          writer.number(of.column_of_w) + " + k * " + writer.number(of.channel_of_w) +
                                          "]") +
                ";");
    writer.close();
    writer.close();
    const auto plus = [&](const std::string& name, const std::string& address) {
      load_neighbours(writer, step.element, pack, name, address);
      writer.line(each + "total[k] += " + name + "[k];");
    };
    if (biased) plus("shift", bias + " + (" + begin(4) + ")");
    if (adds) plus("rest", residual + " + (" + begin(5) + ")");
    if (of.function != Function::identity) writer.line(each + "total[k] = " + text_of(of.function, "total[k]") + ";");
    store_neighbours(writer, step.element, pack, "total", y + " + (" + begin(0) + ")");
    take(writer);
  }

  void add(const LrnStep& step) {
    const Lrn<float>& of = step.shape;
    if (of.walk.elements == 0) return;
    const Numbers extents = extents_of(of.walk);
    KernelWriter writer(prefix_);
    for (int function = 0; function < 3; ++function)
      writer.span_over(extents, strides_of_walk(of.walk, function),
                       std::abs(of.channel_stride) * of.channels + of.size);
    const std::string x = writer.reads(input(0), type_of(step.element));
    const std::string y = writer.writes(output(0), type_of(step.element));
    writer.begin_each(of.walk.elements);
    const auto coordinates = writer.coordinates("c", "i", extents);
    const std::string type = std::string("const ") + writer.index_type();
    const std::int64_t below = (of.size - 1) / 2, above = of.size / 2;
    writer.line(type + " channel = " + writer.sum(coordinates, strides_of_walk(of.walk, 2)) + ";");
    writer.line(type + " at = " + writer.sum(coordinates, strides_of_walk(of.walk, 1)) + ";");
    writer.line(type + " first = channel < " + writer.number(below) + " ? 0 : channel - " + writer.number(below) + ";");
    writer.line(type + " last = " + writer.number(of.channels - 1) + " - channel < " + writer.number(above) + " ? " +
                writer.number(of.channels - 1) + " : channel + " + writer.number(above) + ";");
    writer.line("float energy = 0.0f;");
    writer.open(std::string("for (") + writer.index_type() + " k = first; k <= last; ++k)");
    writer.line("const float value = " +
                widened(step.element, x + "[at + (k - channel) * " + writer.number(of.channel_stride) + "]") + ";");
    writer.line("energy += value * value;");
    writer.close();
    writer.line(y + "[" + writer.sum(coordinates, strides_of_walk(of.walk, 0)) + "] = " +
                narrowed(step.element, widened(step.element, x + "[at]") + " / powf(" + literal(of.bias) + " + " +
                                           literal(of.alpha) + " * energy, " + literal(of.beta) + ")") +
                ";");
    take(writer);
  }

  void add(const TurnedPairsStep& step) {
    const TurnedPairs<float>& of = step.shape;
    if (of.walk.elements == 0) return;
    const Numbers extents = extents_of(of.walk);
    KernelWriter writer(prefix_);
    for (int function = 0; function < 5; ++function)
      writer.span_over(extents, strides_of_walk(of.walk, function), 2 * std::abs(of.apart));
    writer.span_over(Numbers{2 * of.pairs + of.second},
                     Numbers{std::abs(of.step_of_cosines) + std::abs(of.step_of_sines)});
    const char* type = type_of(step.element);
    const std::string x = writer.reads(input(0), type), cosines = writer.reads(input(1), type),
                      sines = writer.reads(input(2), type), y = writer.writes(output(0), type);
    writer.begin_each(of.walk.elements);
    const auto coordinates = writer.coordinates("c", "i", extents);
    const auto at = [&](int function) { return writer.sum(coordinates, strides_of_walk(of.walk, function)); };
    const std::string index = std::string("const ") + writer.index_type();
    writer.line(index + " place = " + at(4) + ";");
    writer.line(index + " from = " + at(1) + ";");
    writer.line("const float own = " + widened(step.element, x + "[from]") + ";");
    writer.open("if (place >= " + writer.number(2 * of.pairs) + ")");
    writer.line(y + "[" + at(0) + "] = " + narrowed(step.element, "own") + ";");
    writer.line("return;");
    writer.close();
    writer.line("const bool first = place < " + writer.number(of.pairs) + ";");
    writer.line("const float other = " +
                widened(step.element, x + "[first ? from + " + writer.number(of.apart) + " : from - " +
                                          writer.number(of.apart) + "]") +
                ";");
    writer.line(index + " angle = first ? place : place + " + writer.number(of.second - of.pairs) + ";");
    writer.line("const float turned = (first ? -other : other) * " +
                widened(step.element, sines + "[" + at(3) + " + angle * " + writer.number(of.step_of_sines) + "]") +
                ";");
    writer.line(y + "[" + at(0) + "] = " +
                narrowed(step.element, "own * " +
                                           widened(step.element, cosines + "[" + at(2) + " + angle * " +
                                                                     writer.number(of.step_of_cosines) + "]") +
                                           " + turned") +
                ";");
    take(writer);
  }

  // ---- What only moves.

  void add(const CopyStep& step) {
    if (step.walk.elements == 0) return;
    Walk<2> walk = step.walk;
    const std::int64_t factor = dispatch::enlarge(walk, 2, step.width, 0, {nullptr, nullptr});
    if (factor > 1) {
      write_copy(step, walk, step.width * static_cast<std::size_t>(factor), prefix_ + "_packs");
    } else if (step.width <= 8) {
      TiledCopy<std::uint8_t> tiled{};  // the shape is that of any width
      if (dispatch::as_tiles(walk, tiled)) {
        write_tiles(step, tiled);
        return;
      }
    }
    write_copy(step, step.walk, step.width, prefix_);
  }

  void write_copy(const CopyStep& step, const Walk<2>& walk, std::size_t width, const std::string& name) {
    KernelWriter writer(name);
    const Numbers extents = extents_of(walk);
    for (int function = 0; function < 2; ++function) writer.span_over(extents, strides_of_walk(walk, function));
    const std::size_t alignment = width > step.width ? width : 1;
    const std::string x = writer.reads(step.from, type_of_width(width), alignment);
    const std::string y = writer.writes(step.to, type_of_width(width), alignment);
    writer.begin_each(walk.elements);
    const auto coordinates = writer.coordinates("c", "i", extents);
    writer.line(y + "[" + writer.sum(coordinates, strides_of_walk(walk, 0)) + "] = " + x + "[" +
                writer.sum(coordinates, strides_of_walk(walk, 1)) + "];");
    take(writer);
  }

  /// A block of 256 threads moves a tile of 32 x 32, of which one column more keeps columns apart in shared memory.
  void write_tiles(const CopyStep& step, const TiledCopy<std::uint8_t>& tiled) {
    KernelWriter writer(prefix_);
    const Numbers outer = extents_of(tiled.outer);
    writer.span_over(outer, strides_of_walk(tiled.outer, 0), tiled.vs + tiled.us * std::abs(tiled.to_stride));
    writer.span_over(outer, strides_of_walk(tiled.outer, 1), tiled.us + tiled.vs * std::abs(tiled.from_stride));
    const std::string type = type_of_width(step.width), index = std::string("const ") + writer.index_type();
    const std::string x = writer.reads(step.from, type), y = writer.writes(step.to, type);
    writer.begin_blocks(tiled.blocks());
    const std::int64_t along_u = tiled.tiles_along(tiled.us), along_v = tiled.tiles_along(tiled.vs);
    writer.line("__shared__ " + type + " tile[32][33];");
    writer.line(index + " block = blockIdx.x;");
    writer.line(index + " first_u = block % " + writer.number(along_u) + " * 32;");
    writer.line(index + " first_v = block / " + writer.number(along_u) + " % " + writer.number(along_v) + " * 32;");
    std::vector<std::string> coordinates;
    if (!outer.empty()) {
      writer.line(index + " matrix = block / " + writer.number(along_u * along_v) + ";");
      coordinates = writer.coordinates("c", "matrix", outer);
    }
    writer.line("const " + type + "* const from = " + x + " + (" +
                writer.sum(coordinates, strides_of_walk(tiled.outer, 1)) + ");");
    writer.line(type + "* const to = " + y + " + (" + writer.sum(coordinates, strides_of_walk(tiled.outer, 0)) + ");");
    writer.line("const int lane = (int)threadIdx.x % 32, line = (int)threadIdx.x / 32;");
    writer.line("#pragma unroll");
    writer.open("for (int k = line; k < 32; k += 8)");
    writer.line(index + " u = first_u + lane, v = first_v + k;");
    writer.line("if (u < " + writer.number(tiled.us) + " && v < " + writer.number(tiled.vs) +
                ") tile[k][lane] = from[u + v * " + writer.number(tiled.from_stride) + "];");
    writer.close();
    writer.line("__syncthreads();");
    writer.line("#pragma unroll");
    writer.open("for (int k = line; k < 32; k += 8)");
    writer.line(index + " u = first_u + k, v = first_v + lane;");
    writer.line("if (u < " + writer.number(tiled.us) + " && v < " + writer.number(tiled.vs) + ") to[v + u * " +
                writer.number(tiled.to_stride) + "] = tile[lane][k];");
    writer.close();
    take(writer);
  }

  void add(const CopiesStep& step) {
    auto factor = static_cast<std::int64_t>(16 / step.width);
    for (const CopiesStep::Piece& piece : step.pieces) {
      Walk<2> walk = piece.walk;
      factor = std::min(factor, dispatch::enlarge(walk, 2, step.width, 0, {nullptr, nullptr}));
    }
    if (factor > 1) write_copies(step, factor, prefix_ + "_packs");
    write_copies(step, 1, prefix_);
  }

  void write_copies(const CopiesStep& step, std::int64_t factor, const std::string& name) {
    KernelWriter writer(name);
    const std::size_t width = step.width * static_cast<std::size_t>(factor), alignment = factor > 1 ? width : 1;
    std::vector<Walk<2>> walks;
    std::vector<std::pair<std::string, std::string>> names;
    std::int64_t count = 0;
    for (const CopiesStep::Piece& piece : step.pieces) {
      walks.push_back(dispatch::enlarged_by(piece.walk, factor));
      count += walks.back().elements;
      for (int function = 0; function < 2; ++function)
        writer.span_over(extents_of(walks.back()), strides_of_walk(walks.back(), function));
      names.emplace_back(writer.reads(piece.from, type_of_width(width), alignment),
                         writer.writes(piece.to, type_of_width(width), alignment));
    }
    writer.span_over(Numbers{count}, Numbers{1});
    if (count == 0) return;
    writer.begin_each(count);
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < walks.size(); ++k) {
      const Walk<2>& walk = walks[k];
      if (walk.elements == 0) continue;
      const Numbers extents = extents_of(walk);
      writer.open("if (i >= " + writer.number(begin) + " && i < " + writer.number(begin + walk.elements) + ")");
      std::vector<std::string> coordinates;
      if (!extents.empty()) {
        writer.line(std::string("const ") + writer.index_type() + " j = i - " + writer.number(begin) + ";");
        coordinates = writer.coordinates("c", "j", extents);
      }
      writer.line(names[k].second + "[" + writer.sum(coordinates, strides_of_walk(walk, 0)) + "] = " + names[k].first +
                  "[" + writer.sum(coordinates, strides_of_walk(walk, 1)) + "];");
      writer.close();
      begin += walk.elements;
    }
    take(writer);
  }

  void add(const FillStep& step) {
    if (step.count == 0) return;
    KernelWriter writer(prefix_);
    writer.span_over(Numbers{step.count}, Numbers{1});
    const std::string type = type_of_width(step.width);
    const std::string y = writer.writes(step.to, type);
    writer.begin_each(step.count);
    writer.line(y + "[i] = (" + type + ")" + std::to_string(step.value) + "ull;");
    take(writer);
  }

  void add(const PaddingStep& step) {
    if (step.count == 0) return;
    const Padding<std::uint64_t>& of = step.shape;
    const Numbers extents = extents_of(of);
    const Numbers to(of.to_strides, of.to_strides + of.rank), from(of.from_strides, of.from_strides + of.rank);
    KernelWriter writer(prefix_);
    writer.span_over(extents, to);
    for (int axis = 0; axis < of.rank; ++axis)
      writer.span_over(Numbers{of.extents[axis] + std::abs(of.before[axis])},
                       Numbers{from[static_cast<std::size_t>(axis)]});
    writer.span_over(extents, from);
    const std::string type = type_of_width(step.width);
    const bool is_read = std::all_of(of.inside, of.inside + of.rank, [](std::int64_t extent) { return extent > 0; });
    const std::string x = is_read ? writer.reads(step.from, type) : "";
    const std::string y = writer.writes(step.to, type);
    writer.begin_each(step.count);
    const auto coordinates = writer.coordinates("c", "i", extents);
    const std::string value = "(" + type + ")" + std::to_string(step.value) + "ull";
    std::string condition, source;
    for (std::size_t axis = 0; axis < extents.size() && is_read; ++axis) {
      const std::int64_t before = of.before[axis], inside = of.inside[axis];
      const std::string& place = coordinates[axis];
      const auto also = [&](const std::string& one) { condition += (condition.empty() ? "" : " && ") + one; };
      if (before > 0) also(place + " >= " + writer.number(before));
      if (before + inside < extents[axis]) also(place + " < " + writer.number(before + inside));
      if (from[axis] == 0) continue;
      source += (source.empty() ? "" : " + ") + ("(" + place + " - " + writer.number(before) + ") * ") +
                writer.number(from[axis]);
    }
    if (source.empty()) source = "0";
    const std::string read = x + "[" + source + "]";
    writer.line(y + "[" + writer.sum(coordinates, to) + "] = " +
                (!is_read            ? value
                 : condition.empty() ? read
                                     : condition + " ? " + read + " : " + value) +
                ";");
    take(writer);
  }

  void add(const GatheringStep& step) {
    if (step.walk.elements == 0) return;
    Walk<3> walk = step.walk;
    const std::int64_t factor = dispatch::enlarge(walk, 2, step.width, step.stride, {nullptr, nullptr});
    if (factor > 1) write_gathering(step, walk, factor, prefix_ + "_packs");
    write_gathering(step, step.walk, 1, prefix_);
  }

  void write_gathering(const GatheringStep& step, const Walk<3>& walk, std::int64_t factor, const std::string& name) {
    KernelWriter writer(name);
    const Numbers extents = extents_of(walk);
    for (int function = 0; function < 3; ++function)
      writer.span_over(extents, strides_of_walk(walk, function), step.extent * std::abs(step.stride));
    const std::size_t width = step.width * static_cast<std::size_t>(factor), alignment = factor > 1 ? width : 1;
    const std::string type = type_of_width(width);
    const std::string x = writer.reads(step.x, type, alignment);
    const std::string index = writer.reads(step.index, step.wide_index ? "long long" : "int");
    const std::string y = writer.writes(step.y, type, alignment);
    writer.note_errors();
    writer.begin_each(walk.elements);
    const auto coordinates = writer.coordinates("c", "i", extents);
    const std::string extent = std::to_string(step.extent) + "ll",
                      at = writer.sum(coordinates, strides_of_walk(walk, 2));
    writer.line("long long place = " + index + "[" + at + "];");
    writer.line("if (place < 0) place += " + extent + ";");
    writer.open("if (place < 0 || place >= " + extent + ")");
    writer.line("atomicMin(error, number << 40 | (unsigned long long)(" + at + "));");
    writer.line("place = 0;");
    writer.close();
    const std::int64_t stride = step.stride / factor;
    writer.line(y + "[" + writer.sum(coordinates, strides_of_walk(walk, 0)) + "] = " + x + "[" +
                writer.sum(coordinates, strides_of_walk(walk, 1)) + " + place * " + std::to_string(stride) + "];");
    take(writer);
  }

  // ---- Elements that are no reals, or of several types. An integer on its way is the 64 bits that hold it.

  static const char* type_of_word(WordType type) {
    switch (type) {
      case WordType::boolean:
      case WordType::u8:
        return "unsigned char";
      case WordType::i8:
        return "signed char";
      case WordType::i16:
        return "short";
      case WordType::i32:
        return "int";
      case WordType::i64:
        return "long long";
      case WordType::u16:
        return "unsigned short";
      case WordType::u32:
        return "unsigned int";
      case WordType::u64:
        return "unsigned long long";
      case WordType::f16:
        return "Half";
      case WordType::bf16:
        return "BFloat16";
      case WordType::f32:
        return "float";
    }
    return "";
  }
  static const char* type_of_register(WordType type) { return is_real_word(type) ? "float" : "unsigned long long"; }

  static std::string loaded_word(WordType type, const std::string& element) {
    switch (type) {
      case WordType::boolean:
        return "(" + element + " != 0 ? 1ull : 0ull)";
      case WordType::i8:
      case WordType::i16:
      case WordType::i32:
      case WordType::i64:
        return "(unsigned long long)(long long)" + element;
      case WordType::u8:
      case WordType::u16:
      case WordType::u32:
      case WordType::u64:
        return "(unsigned long long)" + element;
      case WordType::f16:
        return widened(ElementType::f16, element);
      case WordType::bf16:
        return widened(ElementType::bf16, element);
      case WordType::f32:
        return element;
    }
    return element;
  }
  static std::string stored_word(WordType type, const std::string& value) {
    if (type == WordType::f16) return narrowed(ElementType::f16, value);
    if (type == WordType::bf16) return narrowed(ElementType::bf16, value);
    if (type == WordType::f32) return value;
    return std::string("(") + type_of_word(type) + ")(" + value + ")";
  }

  static std::string converted(WordType from, WordType to) {
    const bool real = is_real_word(from);
    if (to == WordType::boolean) return real ? "p != 0.0f ? 1ull : 0ull" : "p != 0 ? 1ull : 0ull";
    if (is_real_word(to)) return real ? "p" : from == WordType::u64 ? "(float)p" : "(float)(long long)p";
    if (!real) return "p";
    if (to == WordType::u64) return "whole_unsigned(p)";
    return to == WordType::i64 || to == WordType::u32 ? "whole_in_64(p)" : "whole_in_32(p)";
  }

  /// What a function makes of the registers p and q.
  static std::string word_text(WordFunction function, WordType operands, WordType result) {
    const bool is_signed = !is_real_word(operands) && operands != WordType::u64;
    const std::string p = is_signed ? "(long long)p" : "p", q = is_signed ? "(long long)q" : "q";
    const auto truth = [](const std::string& condition) { return condition + " ? 1ull : 0ull"; };
    switch (function) {
      case WordFunction::convert:
        return converted(operands, result);
      case WordFunction::select:
        return "";
      case WordFunction::less:
        return truth(p + " < " + q);
      case WordFunction::less_equal:
        return truth(p + " <= " + q);
      case WordFunction::equal:
        return truth("p == q");
      case WordFunction::is_nan:
        return truth("p != p");
      case WordFunction::add:
        return "p + q";
      case WordFunction::sub:
        return "p - q";
      case WordFunction::mul:
        return "p * q";
      case WordFunction::minimum:
        return q + " < " + p + " ? q : p";
      case WordFunction::maximum:
        return p + " < " + q + " ? q : p";
      case WordFunction::negate:
        return "0ull - p";
      case WordFunction::absolute:
        return is_signed ? "(long long)p < 0 ? 0ull - p : p" : "p";
      case WordFunction::bit_and:
        return "p & q";
      case WordFunction::bit_or:
        return "p | q";
      case WordFunction::bit_xor:
        return "p ^ q";
      case WordFunction::bit_not:
        return "~p";
      case WordFunction::logical_not:
        return "p ^ 1ull";
    }
    return "";
  }

  void add(const WordsStep& step) {
    const Words& of = step.shape;
    if (of.walk.elements == 0) return;
    const Numbers extents = extents_of(of.walk);
    KernelWriter writer(prefix_);
    for (int function = 0; function < 4; ++function) writer.span_over(extents, strides_of_walk(of.walk, function));
    const bool selects = of.function == WordFunction::select;
    const Slot* slots[3] = {&step.a, &step.b, &step.c};
    std::string names[3];
    for (int k = 0; k < 3; ++k)
      if (slots[k]->place != Slot::Place::none)
        names[k] = writer.reads(*slots[k], selects && k == 0 ? "unsigned char" : type_of_word(of.operands));
    const std::string y = writer.writes(step.y, type_of_word(of.result));
    writer.begin_each(of.walk.elements);
    const auto coordinates = writer.coordinates("c", "i", extents);
    const auto element = [&](int k) {
      return names[k] + "[" + writer.sum(coordinates, strides_of_walk(of.walk, k + 1)) + "]";
    };
    const std::string type = std::string("const ") + type_of_register(of.operands);
    if (selects) {
      writer.line(type + " z = " + element(0) + " != 0 ? " + loaded_word(of.operands, element(1)) + " : " +
                  loaded_word(of.operands, element(2)) + ";");
    } else {
      writer.line(type + " p = " + loaded_word(of.operands, element(0)) + ";");
      if (!names[1].empty()) writer.line(type + " q = " + loaded_word(of.operands, element(1)) + ";");
      writer.line(std::string("const ") + type_of_register(of.result) +
                  " z = " + word_text(of.function, of.operands, of.result) + ";");
    }
    writer.line(y + "[" + writer.sum(coordinates, strides_of_walk(of.walk, 0)) + "] = " + stored_word(of.result, "z") +
                ";");
    take(writer);
  }

  const Program& program_;
  std::string prefix_, text_;
  GeneratedStep step_;
};

}  // namespace

GeneratedOffer generate_source(const Program& program) { return SourceGenerator(program).generate(); }

const std::byte* address_of(const Slot& slot, const Buffers& buffers) {
  return dispatch::source<std::byte>(slot, buffers);
}

const GeneratedKernel* kernel_for(const GeneratedStep& step, const Buffers& buffers) {
  for (const GeneratedKernel& kernel : step.kernels) {
    bool fits = true;
    for (std::size_t i = 0; i < kernel.operands.size() && fits; ++i)
      fits = dispatch::is_aligned(address_of(kernel.operands[i], buffers), kernel.alignments[i]);
    if (fits) return &kernel;
  }
  return nullptr;
}

}  // namespace taso::cuda
