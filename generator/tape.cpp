#include "generator/tape.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace taso {
namespace {

/// What is computed, as register numbers. Until the tape is finished constants and results have tags of their own;
/// number 0 is the constant 0, so that a default element is zero.
struct TapeElement {
  std::uint32_t id = 0;
};
constexpr std::uint32_t argument_tag = 1u << 30, result_tag = 2u << 30, tag_mask = 3u << 30;

class TapeRing {
 public:
  using Element = TapeElement;
  TapeRing(Tape& tape, const FieldRing& field, std::size_t max_length)
      : tape_(tape), field_(field), max_length_(max_length) {
    (void)constant(Mod61(), 0);
  }

  Element number(double value) {
    if (value == 0) return {};
    const auto [it, inserted] = numbers_.try_emplace(std::bit_cast<std::uint64_t>(value), 0);
    if (inserted) it->second = constant(field_.number(value), value);
    return {it->second};
  }
  Element add(Element a, Element b) {
    if (is_zero(a)) return b;
    if (is_zero(b)) return a;
    if (is_constant(a) && is_constant(b)) return {constant(field(a) + field(b), real(a) + real(b))};
    return emit(Tape::Op::add, a, b);
  }
  Element subtract(Element a, Element b) {
    if (is_zero(b)) return a;
    if (is_constant(a) && is_constant(b)) return {constant(field(a) - field(b), real(a) - real(b))};
    return emit(Tape::Op::subtract, a, b);
  }
  Element multiply(Element a, Element b) {
    if (is_zero(a) || is_zero(b)) return {};
    if (is_constant(a) && is_constant(b)) return {constant(field(a) * field(b), real(a) * real(b))};
    if (is_constant(a) && field(a) == Mod61(1) && real(a) == 1) return b;
    if (is_constant(b) && field(b) == Mod61(1) && real(b) == 1) return a;
    return emit(Tape::Op::multiply, a, b);
  }
  Element divide(Element a, Element b) {
    if (is_constant(b)) {
      if (field(b) == Mod61()) {
        fail("division by zero");
        return {};
      }
      return multiply(a, {constant(field(b).inverse(), 1 / real(b))});
    }
    return emit(Tape::Op::divide, a, b);
  }
  Element call(const FunctionDefinition& function, Element x) {
    if (is_zero(x) && function.zero_at_zero) return x;
    return emit(Tape::Op::call, x, {}, number_of(function));
  }
  Element call(const FunctionDefinition& function, Element x, Element y) {
    return emit(Tape::Op::call2, x, y, number_of(function));
  }
  Element extremum(bool maximum, std::span<const Element> values) {
    std::vector<std::uint32_t> set;
    for (const Element& value : values) set.push_back(value.id);
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    if (set.size() == 1) return {set[0]};
    const TapeElement first{static_cast<std::uint32_t>(tape_.sets.size())};
    tape_.sets.insert(tape_.sets.end(), set.begin(), set.end());
    return emit(maximum ? Tape::Op::maximum : Tape::Op::minimum, first, {static_cast<std::uint32_t>(set.size())});
  }
  Element infinity(bool negative) { return {constant(field_.infinity(negative), negative ? -HUGE_VAL : HUGE_VAL)}; }
  [[nodiscard]] Status status() const { return status_; }

 private:
  std::uint32_t constant(Mod61 value, double real) {
    const auto [it, inserted] = constants_.try_emplace(std::pair(value, std::bit_cast<std::uint64_t>(real)), 0);
    if (inserted) {
      it->second = static_cast<std::uint32_t>(tape_.constants.size());
      tape_.constants.push_back(value);
      tape_.real_constants.push_back(real);
    }
    return it->second;
  }
  static bool is_zero(Element x) { return x.id == 0; }
  static bool is_constant(Element x) { return (x.id & tag_mask) == 0; }
  [[nodiscard]] Mod61 field(Element x) const { return tape_.constants[x.id]; }
  [[nodiscard]] double real(Element x) const { return tape_.real_constants[x.id]; }
  std::uint32_t number_of(const FunctionDefinition& function) {
    const auto it = std::find(tape_.functions.begin(), tape_.functions.end(), &function);
    if (it != tape_.functions.end()) return static_cast<std::uint32_t>(it - tape_.functions.begin());
    tape_.functions.push_back(&function);
    return static_cast<std::uint32_t>(tape_.functions.size() - 1);
  }
  Element emit(Tape::Op op, Element a, Element b, std::uint32_t function = 0) {
    if (tape_.code.size() >= max_length_) {
      fail("too long");
      return {};
    }
    tape_.code.push_back({op, a.id, b.id, function});
    return {result_tag | static_cast<std::uint32_t>(tape_.code.size() - 1)};
  }
  void fail(const char* what) {
    if (status_) status_ = bad_input(what);
  }

  Tape& tape_;
  const FieldRing& field_;
  std::size_t max_length_;
  std::map<std::uint64_t, std::uint32_t> numbers_;
  std::map<std::pair<Mod61, std::uint64_t>, std::uint32_t> constants_;
  Status status_;
};

bool is_extremum(Tape::Op op) { return op == Tape::Op::maximum || op == Tape::Op::minimum; }

/// Degrees, cut off at 2: by each argument, and by all together.
void classify(Tape& tape) {
  const std::size_t count = tape.arguments.size() - 1;
  std::vector<std::vector<std::uint8_t>> degree(count + 1, std::vector<std::uint8_t>(tape.registers(), 0));
  for (std::size_t argument = 0; argument < count; ++argument)
    for (std::uint32_t i = tape.arguments[argument]; i < tape.arguments[argument + 1]; ++i)
      degree[argument][i] = degree[count][i] = 1;
  const std::size_t first = tape.arguments.back() + tape.constants.size();
  for (std::size_t i = 0; i < tape.code.size(); ++i) {
    const Tape::Instruction& instruction = tape.code[i];
    for (std::vector<std::uint8_t>& of : degree) {
      int result = 0;
      switch (instruction.op) {
        case Tape::Op::add:
        case Tape::Op::subtract:
          result = std::max(of[instruction.a], of[instruction.b]);
          break;
        case Tape::Op::multiply:
          result = of[instruction.a] + of[instruction.b];
          break;
        case Tape::Op::divide:
          result = of[instruction.b] > 0 ? 2 : of[instruction.a];
          break;
        case Tape::Op::call:
          result = of[instruction.a] > 0 ? 2 : 0;
          break;
        case Tape::Op::call2:
          result = of[instruction.a] + of[instruction.b] > 0 ? 2 : 0;
          break;
        case Tape::Op::maximum:
        case Tape::Op::minimum:
          for (std::uint32_t k = 0; k < instruction.b; ++k)
            if (of[tape.sets[instruction.a + k]] > 0) result = 2;
          break;
      }
      of[first + i] = static_cast<std::uint8_t>(std::min(result, 2));
    }
  }
  auto largest = [&](const std::vector<std::uint8_t>& of) {
    int result = 0;
    for (const std::vector<std::uint32_t>& output : tape.outputs)
      for (const std::uint32_t id : output) result = std::max<int>(result, of[id]);
    return result;
  };
  tape.separable = largest(degree[count]) <= 1;
  tape.bilinear = count == 2 && largest(degree[0]) <= 1 && largest(degree[1]) <= 1;
}

}  // namespace

std::optional<Tape> record_tape(std::span<const OperatorInstance> worlds, const FieldRing& field,
                                std::size_t max_length) {
  Tape tape;
  const std::size_t count = worlds[0].input_types().size();
  std::vector<std::uint32_t> sizes(count, 0);
  for (const OperatorInstance& instance : worlds)
    for (std::size_t argument = 0; argument < count; ++argument)
      sizes[argument] += static_cast<std::uint32_t>(volume(instance.input_types()[argument].shape));
  tape.arguments.assign(1, 0);
  for (const std::uint32_t size : sizes) tape.arguments.push_back(tape.arguments.back() + size);

  TapeRing ring(tape, field, max_length);
  std::vector<std::uint32_t> next(tape.arguments.begin(), tape.arguments.end());
  tape.outputs.resize(worlds[0].output_types().size());
  for (const OperatorInstance& instance : worlds) {
    std::vector<RingTensor<TapeElement>> inputs(count);
    std::vector<const RingTensor<TapeElement>*> pointers;
    for (std::size_t argument = 0; argument < count; ++argument) {
      inputs[argument].shape = instance.input_types()[argument].shape;
      inputs[argument].elements.resize(static_cast<std::size_t>(volume(inputs[argument].shape)));
      for (TapeElement& element : inputs[argument].elements) element.id = argument_tag | next[argument]++;
      pointers.push_back(&inputs[argument]);
    }
    const auto outputs = evaluate(instance, ring, std::span<const RingTensor<TapeElement>* const>(pointers));
    if (!outputs || !ring.status()) return std::nullopt;
    for (std::size_t port = 0; port < outputs->size(); ++port)
      for (const TapeElement element : (*outputs)[port].elements) tape.outputs[port].push_back(element.id);
  }

  const std::uint32_t first_constant = tape.arguments.back();
  const std::uint32_t first_result = first_constant + static_cast<std::uint32_t>(tape.constants.size());
  auto settle = [&](std::uint32_t& id) {
    const std::uint32_t number = id & ~tag_mask;
    id = (id & tag_mask) == argument_tag ? number
         : (id & tag_mask) == result_tag ? first_result + number
                                         : first_constant + number;
  };
  for (Tape::Instruction& instruction : tape.code) {
    if (is_extremum(instruction.op)) continue;
    settle(instruction.a);
    settle(instruction.b);
  }
  for (std::uint32_t& id : tape.sets) settle(id);
  for (std::vector<std::uint32_t>& output : tape.outputs)
    for (std::uint32_t& id : output) settle(id);
  classify(tape);
  return tape;
}

bool Tape::run(std::span<const Mod61* const> inputs, const FieldRing& ring, std::vector<Mod61>& values) const {
  values.resize(registers());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    std::copy_n(inputs[i], argument_size(i), values.begin() + static_cast<std::ptrdiff_t>(arguments[i]));
  std::copy(constants.begin(), constants.end(), values.begin() + static_cast<std::ptrdiff_t>(arguments.back()));
  Mod61* const value = values.data();
  Mod61* out = value + arguments.back() + constants.size();
  std::vector<Mod61> set;
  for (const Instruction& instruction : code) {
    switch (instruction.op) {
      case Op::add:
        *out = value[instruction.a] + value[instruction.b];
        break;
      case Op::subtract:
        *out = value[instruction.a] - value[instruction.b];
        break;
      case Op::multiply:
        *out = value[instruction.a] * value[instruction.b];
        break;
      case Op::divide:
        if (value[instruction.b] == Mod61()) return false;
        *out = value[instruction.a] * value[instruction.b].inverse();
        break;
      case Op::call:
        *out = ring.call(*functions[instruction.function], value[instruction.a]);
        break;
      case Op::call2:
        *out = ring.call(*functions[instruction.function], value[instruction.a], value[instruction.b]);
        break;
      case Op::maximum:
      case Op::minimum:
        set.clear();
        for (std::uint32_t k = 0; k < instruction.b; ++k) set.push_back(value[sets[instruction.a + k]]);
        *out = ring.extremum(instruction.op == Op::maximum, set);
        break;
    }
    ++out;
  }
  return true;
}

void Tape::derive(std::size_t port, std::span<const Mod61> functional, const std::vector<Mod61>& values,
                  std::vector<Mod61>& adjoints) const {
  adjoints.assign(registers(), Mod61());
  for (std::size_t i = 0; i < outputs[port].size(); ++i) adjoints[outputs[port][i]] += functional[i];
  const std::size_t first = arguments.back() + constants.size();
  for (std::size_t i = code.size(); i-- > 0;) {
    const Instruction& instruction = code[i];
    const Mod61 adjoint = adjoints[first + i];
    if (adjoint == Mod61()) continue;
    switch (instruction.op) {
      case Op::add:
        adjoints[instruction.a] += adjoint;
        adjoints[instruction.b] += adjoint;
        break;
      case Op::subtract:
        adjoints[instruction.a] += adjoint;
        adjoints[instruction.b] += -adjoint;
        break;
      case Op::multiply:
        adjoints[instruction.a] += adjoint * values[instruction.b];
        adjoints[instruction.b] += adjoint * values[instruction.a];
        break;
      case Op::divide:  // the divisor does not depend on an argument in which the output is affine
        adjoints[instruction.a] += adjoint * values[instruction.b].inverse();
        break;
      case Op::call:
      case Op::call2:
      case Op::maximum:
      case Op::minimum:
        break;  // constant in those arguments
    }
  }
}

}  // namespace taso
