/// Evaluation of single elements of a graph's tensors over any ring: only what they depend on is computed.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/reals.h"
#include "graph/words.h"
#include "operators/evaluate.h"
#include "operators/instance.h"
#include "operators/lowered_body.h"
#include "operators/stage_interpreter.h"
#include "support/status.h"

namespace taso {

/// The elements of a tensor that lies in memory, row-major.
struct TensorElements {
  TensorType type;
  std::span<const std::byte> bytes;
  bool repeated = false;  ///< `bytes` are one element, which all are.

  /// Whether elements of this type are read: real ones, integers and truth values.
  [[nodiscard]] bool is_readable() const { return is_real(type.element) || is_integer(); }
  /// Whether they are words (graph/words.h).
  [[nodiscard]] bool is_integer() const { return is_word(type.element); }
  [[nodiscard]] double real(std::int64_t offset) const {
    return load_real(bytes.data(), type.element, repeated ? 0 : static_cast<std::size_t>(offset));
  }
  [[nodiscard]] std::int64_t integer(std::int64_t offset) const {
    return load_word(bytes.data(), type.element, repeated ? 0 : static_cast<std::size_t>(offset));
  }
};

/// Evaluates elements of a graph without opaque nodes, each at most once. Elements of one tensor of an operator are
/// computed alone where its definition says which loop indices write an element; an operator with recurrences is
/// computed whole.
template <class Ring>
class ElementEvaluator {
 public:
  using Element = typename Ring::Element;

  /// `inputs` are those of the graph, in its order. Everything is referred to.
  ElementEvaluator(const Graph& graph, const OperatorRegistry& registry, Ring& ring,
                   std::span<const TensorElements> inputs)
      : graph_(graph), registry_(registry), ring_(ring), inputs_(inputs) {}
  ElementEvaluator(const ElementEvaluator&) = delete;
  ElementEvaluator& operator=(const ElementEvaluator&) = delete;

  /// The element of a floating-point tensor at a row-major offset. Fails (bad_input) on operators that cannot be
  /// evaluated, on element types that are not read, and where more is read than allowed (exhausted() tells).
  [[nodiscard]] Expected<Element> at(Value value, std::int64_t offset) {
    TASO_ASSIGN(const Operand operand, operand_of(value));
    if (operand.producer == nullptr && operand.tensor.is_integer()) return bad_input("integers have no real elements");
    const Element element = read(operand, offset);
    if (exhausted_) return bad_input("more elements are read than allowed");
    if (!status_) return status_.error();
    if (Status status = ring_.status(); !status) return status.error();
    return element;
  }

  /// So many more elements may be read from now on.
  void allow(std::int64_t reads) {
    allowed_ = reads > std::numeric_limits<std::int64_t>::max() - reads_ ? std::numeric_limits<std::int64_t>::max()
                                                                         : reads_ + reads;
    exhausted_ = false;
  }
  /// Elements read so far: the measure of the work.
  [[nodiscard]] std::int64_t reads() const { return reads_; }
  /// The last at() failed because the allowance was used up.
  [[nodiscard]] bool exhausted() const { return exhausted_; }

 private:
  struct Operator;

  /// What an operator reads: a tensor in memory, or what another operator computes.
  struct Operand {
    TensorElements tensor;
    Operator* producer = nullptr;
    std::uint32_t buffer = 0;  ///< Of the producer.
  };

  /// Gives a stage its elements.
  struct Reader {
    ElementEvaluator* evaluator;
    Operator* op;
    [[nodiscard]] Element read(std::uint32_t buffer, std::int64_t offset) const {
      return buffer < op->operands.size() ? evaluator->read(op->operands[buffer], offset)
                                          : evaluator->computed(*op, buffer, offset);
    }
    [[nodiscard]] std::int64_t integer(std::uint32_t buffer, std::int64_t offset) const {
      return op->operands[buffer].tensor.integer(offset);
    }
  };

  /// A stage, and how the loop variables follow from the offset of an element that it writes: by division, largest
  /// coefficient first.
  struct Stage {
    Stage(const LoweredStage& lowered, Ring& ring, Reader reader) : interpreter(lowered, ring, reader) {
      const Affine& write = lowered.forms[lowered.write];
      base = write.base;
      for (const auto& [variable, coefficient] : write.terms)
        digits.push_back({variable, coefficient, lowered.extents[variable]});
      std::sort(digits.begin(), digits.end(),
                [](const Digit& a, const Digit& b) { return a.coefficient > b.coefficient; });
      std::int64_t reach = 0;
      for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
        decodable = decodable && digit->coefficient > reach;
        reach += digit->coefficient * (digit->extent - 1);
      }
      decodable = decodable && !lowered.steps_of;
    }
    /// Brings the interpreter to the element; false if the stage does not write it.
    [[nodiscard]] bool go_to(std::int64_t offset) {
      std::int64_t rest = offset - base;
      if (rest < 0) return false;
      indices.clear();
      for (const Digit& digit : digits) {
        indices.push_back(std::min(rest / digit.coefficient, digit.extent - 1));
        rest -= indices.back() * digit.coefficient;
      }
      if (rest != 0) return false;
      interpreter.reset();
      for (std::size_t i = 0; i < digits.size(); ++i) interpreter.step(digits[i].variable, indices[i]);
      return true;
    }
    struct Digit {
      std::uint32_t variable;
      std::int64_t coefficient, extent;
    };
    detail::StageInterpreter<Ring, Reader> interpreter;
    std::vector<Digit> digits;
    std::vector<std::int64_t> indices;
    std::int64_t base = 0;
    bool decodable = true;
  };

  struct Operator {
    explicit Operator(OperatorInstance i) : instance(std::move(i)) {}
    OperatorInstance instance;
    std::vector<TensorType> types;  ///< Of its results.
    std::vector<Operand> operands;
    std::vector<std::vector<Stage>> stages;  ///< Per buffer behind the operands.
    std::vector<absl::flat_hash_map<std::int64_t, Element>> known;
    bool whole = false;  ///< It is computed whole, and then known.
    std::vector<RingTensor<Element>> outputs;
  };

  Expected<Operand> operand_of(Value value) {
    const Node& node = graph_.node(value.node);
    Operand operand;
    switch (node.kind) {
      case NodeKind::input: {
        const auto& inputs = graph_.inputs();
        const auto place = std::find(inputs.begin(), inputs.end(), value.node);
        operand.tensor = inputs_[static_cast<std::size_t>(place - inputs.begin())];
        break;
      }
      case NodeKind::constant: {
        const ConstantData& constant = *node.constant;
        TASO_RETURN_IF_ERROR(constant.require_data());
        operand.tensor = {constant.type(), constant.is_dense() ? constant.dense_bytes() : constant.splat_element(),
                          !constant.is_dense()};
        break;
      }
      case NodeKind::op: {
        if (is_word(graph_.type(value).element)) {
          TASO_ASSIGN(operand.tensor, moved_words(value));
          return operand;
        }
        TASO_ASSIGN(operand.producer, operator_of(value.node));
        const LoweredBody& body = operand.producer->instance.body();
        operand.buffer = static_cast<std::uint32_t>(body.inputs + body.intermediates.size() + value.port);
        return operand;
      }
      case NodeKind::opaque:
        return bad_input("opaque node '" + node.op + "' cannot be evaluated");
    }
    if (!operand.tensor.is_readable())
      return bad_input("a tensor of type " + std::string(to_string(operand.tensor.type.element)) +
                       " cannot be evaluated");
    return operand;
  }

  /// Integers or truth values that an operator moves, all of them.
  Expected<TensorElements> moved_words(Value value) {
    const TensorType type{ElementType::i64, graph_.type(value).shape, true};
    if (moved_.find(value.node) == moved_.end()) {
      const Node& node = graph_.node(value.node);
      std::vector<TensorType> types;
      std::vector<RingTensor<double>> inputs;
      for (const Value& input : node.inputs) {
        types.push_back(graph_.type(input));
        TASO_ASSIGN(const Operand operand, operand_of(input));
        if (operand.producer != nullptr || !operand.tensor.is_integer())
          return bad_input(node.op + " makes " + to_string(graph_.type(value).element) + " of reals");
        RingTensor<double>& tensor = inputs.emplace_back();
        tensor.shape = types.back().shape;
        for (std::int64_t i = 0; i < types.back().elements(); ++i) tensor.integers.push_back(operand.tensor.integer(i));
      }
      TASO_ASSIGN(const OperatorInstance instance,
                  OperatorInstance::create(registry_, node.op, node.attributes, types));
      std::vector<const RingTensor<double>*> pointers;
      for (const RingTensor<double>& tensor : inputs) pointers.push_back(&tensor);
      TASO_ASSIGN(moved_[value.node],
                  evaluate_machine_numbers(instance, std::span<const RingTensor<double>* const>(pointers)));
    }
    return TensorElements{type, std::as_bytes(std::span(moved_[value.node].at(value.port).integers)), false};
  }

  Expected<Operator*> operator_of(NodeId id) {
    if (const auto known = operators_.find(id); known != operators_.end()) return known->second.get();
    const Node& node = graph_.node(id);
    std::vector<TensorType> types;
    for (const Value& input : node.inputs) types.push_back(graph_.type(input));
    TASO_ASSIGN(OperatorInstance instance, OperatorInstance::create(registry_, node.op, node.attributes, types));
    if (!instance.body().over_reals) return bad_input(node.op + " computes with integers or truth values");
    auto made = std::make_unique<Operator>(std::move(instance));
    made->types = node.outputs;
    for (const Value& input : node.inputs) {
      TASO_ASSIGN(Operand operand, operand_of(input));
      made->operands.push_back(std::move(operand));
    }
    const LoweredBody& body = made->instance.body();
    const std::size_t buffers = body.intermediates.size() + body.outputs.size();
    made->stages.resize(buffers);
    made->known.resize(buffers);
    for (const LoweredStage& stage : body.stages) {
      if (stage.empty) continue;
      auto& list = made->stages[stage.buffer - body.inputs];
      list.emplace_back(stage, ring_, Reader{this, made.get()});
      made->whole = made->whole || !list.back().decodable;
    }
    return (operators_[id] = std::move(made)).get();
  }

  Element read(const Operand& operand, std::int64_t offset) {
    if (++reads_ > allowed_) exhausted_ = true;
    if (exhausted_) return ring_.number(0);
    return operand.producer == nullptr ? ring_.number(operand.tensor.real(offset))
                                       : computed(*operand.producer, operand.buffer, offset);
  }

  Element computed(Operator& op, std::uint32_t buffer, std::int64_t offset) {
    if (exhausted_) return ring_.number(0);
    const LoweredBody& body = op.instance.body();
    const std::size_t number = buffer - body.inputs;
    if (op.whole) return computed_whole(op, number - body.intermediates.size(), offset);
    if (const auto known = op.known[number].find(offset); known != op.known[number].end()) return known->second;
    for (Stage& stage : op.stages[number]) {
      if (!stage.go_to(offset)) continue;
      Element element = stage.interpreter.value();
      if (number >= body.intermediates.size()) element = kept(op, number - body.intermediates.size(), element);
      if (status_ && !stage.interpreter.status()) status_ = stage.interpreter.status();
      if (!exhausted_) op.known[number].emplace(offset, element);
      return element;
    }
    TASO_CHECK(false, body.op + ": no stage writes an element");
    return ring_.number(0);
  }

  /// An element of an operator's result, as it is kept.
  Element kept(const Operator& op, std::size_t output, const Element& element) const {
    if constexpr (detail::KeepsNumbers<Ring>) return ring_.kept(element, op.types[output].element);
    return element;
  }

  Element computed_whole(Operator& op, std::size_t output, std::int64_t offset) {
    if (op.outputs.empty()) {
      std::vector<RingTensor<Element>> inputs;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        RingTensor<Element>& tensor = inputs.emplace_back();
        tensor.shape = op.instance.input_types()[i].shape;
        const Operand& operand = op.operands[i];
        const std::int64_t count = volume(tensor.shape);
        const bool integers = operand.producer == nullptr && operand.tensor.is_integer();
        for (std::int64_t element = 0; element < count; ++element) {
          if (integers)
            tensor.integers.push_back(operand.tensor.integer(element));
          else
            tensor.elements.push_back(read(operand, element));
        }
      }
      const double work = op.instance.work().flops;
      reads_ += work < 1e15 ? static_cast<std::int64_t>(work) : std::int64_t{1'000'000'000'000'000};
      if (reads_ > allowed_) exhausted_ = true;
      if (exhausted_) return ring_.number(0);
      std::vector<const RingTensor<Element>*> pointers;
      for (const RingTensor<Element>& input : inputs) pointers.push_back(&input);
      auto outputs = evaluate(op.instance, ring_, std::span<const RingTensor<Element>* const>(pointers));
      if (!outputs) {
        if (status_) status_ = outputs.error();
        return ring_.number(0);
      }
      op.outputs = std::move(*outputs);
      for (std::size_t i = 0; i < op.outputs.size(); ++i)
        for (Element& element : op.outputs[i].elements) element = kept(op, i, element);
    }
    return op.outputs[output].elements[static_cast<std::size_t>(offset)];
  }

  const Graph& graph_;
  const OperatorRegistry& registry_;
  Ring& ring_;
  std::span<const TensorElements> inputs_;
  std::unordered_map<NodeId, std::unique_ptr<Operator>> operators_;
  std::unordered_map<NodeId, std::vector<RingTensor<double>>> moved_;
  std::int64_t reads_ = 0, allowed_ = std::numeric_limits<std::int64_t>::max();
  bool exhausted_ = false;
  Status status_;
};

}  // namespace taso
