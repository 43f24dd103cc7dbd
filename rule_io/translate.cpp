#include "rule_io/translate.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "rule_io/extents.h"
#include "rule_io/rule_check.h"
#include "rule_io/vocabulary.h"
#include "support/file.h"

namespace taso::rule_io {
namespace {

using Id = Extents::Id;

// How a tensor came about along one axis by concatenation: where the last one put its two parts together.
// Concatenations of more than two tensors are taken as two at a time, from the left.
struct Tree {
  Id left_extent, right_extent;
  std::shared_ptr<const Tree> left, right;
};
using History = std::shared_ptr<const Tree>;

// A tensor of a rule. Axes count from the front.
struct Tensor {
  std::optional<std::size_t> rank;
  std::vector<Id> extents;         // As many as the rank.
  std::vector<History> histories;  // Likewise; null: no concatenation is known.
};

struct Side {
  const std::vector<FileOperator>* operators;
  std::string prefix;  // Of the names of its operators in the text: "s", "t".
  std::vector<Id> ranks;
  std::vector<std::vector<Tensor>> outputs;
};

// A window that moves over images: kernel extents, strides, and the image's extents where the stride is not 1.
using Window = std::tuple<Id, Id, std::int32_t, std::int32_t, Id, Id>;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string variable_name(std::int32_t input) { return "v" + std::to_string(-static_cast<std::int64_t>(input)); }

// More pieces than any rule has.
constexpr std::size_t max_pieces = 1000;

// The text of one rule, in two passes: what extents the tensors have, then the terms.
class Translator {
 public:
  Translator(const FileRule& rule, std::string name, const OperatorCatalog& catalog)
      : rule_(rule),
        name_(std::move(name)),
        catalog_(catalog),
        source_{&rule.source, "s", {}, {}},
        target_{&rule.target, "t", {}, {}} {}

  Expected<Substitution> run() {
    TASO_RETURN_IF_ERROR(check_rule(rule_));
    TASO_RETURN_IF_ERROR(find_ranks());
    // Splits of what the rule does not make are met one by one, and each changes what is known of the variables.
    for (bool again = true; again;) {
      again = false;
      extents_ = {};
      variables_.clear();
      agreements_.clear();
      conditions_.clear();
      TASO_RETURN_IF_ERROR(evaluate(source_, again));
      if (again) continue;
      TASO_RETURN_IF_ERROR(evaluate(target_, again));
    }
    TASO_RETURN_IF_ERROR(equate_outputs());
    TASO_RETURN_IF_ERROR(complete_constants());
    choose_padding();
    TASO_ASSIGN(const std::string text, write());
    Expected<std::vector<Substitution>> rules = parse_rules(text, "", catalog_);
    if (!rules) return bad_input(rules.error().message);
    if (rules->size() != 1) return internal_error("a rule became " + std::to_string(rules->size()));
    return std::move(rules->front());
  }

 private:
  static const FileOperator& at(const Side& side, std::size_t i) { return (*side.operators)[i]; }
  [[nodiscard]] Error problem(const Side& side, std::size_t i, const std::string& message) const {
    return operator_problem(at(side, i), &side == &source_, i, message);
  }

  // ---- Ranks --------------------------------------------------------------------------------------------------------

  Id rank_of(const Side& side, const FileTensor& tensor) {
    if (tensor.op >= 0) return side.ranks[static_cast<std::size_t>(tensor.op)];
    const auto [place, added] = variable_ranks_.emplace(tensor.op, 0);
    if (added) place->second = ranks_.fresh();
    return place->second;
  }

  Status find_ranks() {
    for (Side* side : {&source_, &target_})
      for (std::size_t i = 0; i < side->operators->size(); ++i) {
        const FileOperator& op = at(*side, i);
        side->ranks.push_back(ranks_.fresh());
        const Id own = side->ranks.back();
        bool fits = true;
        auto all = [&](Id rank) {
          fits = ranks_.unify(own, rank);
          for (const FileTensor& input : op.inputs) fits = ranks_.unify(rank_of(*side, input), own) && fits;
        };
        switch (type(op)) {
          case OperatorType::conv2d:
          case OperatorType::pool2d_max:
          case OperatorType::pool2d_avg:
          case OperatorType::enlarge:
          case OperatorType::const_iconv:
          case OperatorType::const_pool:
            all(ranks_.literal(4));
            break;
          case OperatorType::concat:
          case OperatorType::transpose:
            all(ranks_.literal(given(op, Parameter::numdim)));
            break;
          case OperatorType::const_imm:
            all(ranks_.literal(2));
            break;
          case OperatorType::scalar_mul:
            fits = ranks_.unify(rank_of(*side, op.inputs[0]), own) &&
                   ranks_.unify(rank_of(*side, op.inputs[1]), ranks_.literal(0));
            break;
          case OperatorType::relu:
          case OperatorType::sigmoid:
          case OperatorType::tanh:
          case OperatorType::split:
          case OperatorType::ewadd:
          case OperatorType::ewmul:
          case OperatorType::matmul:
          case OperatorType::const_one:
            all(own);
            break;
        }
        if (!fits) return problem(*side, i, "its tensors have different ranks");
      }
    for (const FileOutput& output : rule_.outputs)
      if (!ranks_.unify(rank_of(source_, output.source), rank_of(target_, output.target)))
        return bad_input("source and target have different ranks");
    for (Side* side : {&source_, &target_})
      for (std::size_t i = 0; i < side->operators->size(); ++i)
        if (type(at(*side, i)) == OperatorType::matmul) {
          if (!ranks_.value(side->ranks[i])) (void)ranks_.unify(side->ranks[i], ranks_.literal(2));
          if (*ranks_.value(side->ranks[i]) < 2) return problem(*side, i, "a matrix has at least 2 axes");
        }
    return {};
  }

  // ---- Extents and histories ----------------------------------------------------------------------------------------

  Tensor blank(Id rank) {
    Tensor result;
    if (const std::optional<std::int64_t> known = ranks_.value(rank)) {
      result.rank = static_cast<std::size_t>(*known);
      for (std::size_t axis = 0; axis < *result.rank; ++axis) result.extents.push_back(extents_.fresh());
      result.histories.resize(*result.rank);
    }
    return result;
  }

  const Tensor& variable(std::int32_t input) {
    const auto [place, added] = variables_.try_emplace(input);
    Tensor& result = place->second;
    if (!added) return result;
    result = blank(variable_ranks_.at(input));
    for (std::size_t axis = 0; axis < result.extents.size(); ++axis) {
      result.extents[axis] =
          extents_.named("dim(" + variable_name(input) + ", " +
                         std::to_string(static_cast<int>(axis) - static_cast<int>(*result.rank)) + ")");
      const auto pieces = assumed_.find({input, axis});
      if (pieces == assumed_.end()) continue;
      std::vector<Id> extents;
      for (const std::string& name : pieces->second) extents.push_back(extents_.named(name));
      Id whole = extents[0];
      result.histories[axis] = grown(extents, std::vector<History>(extents.size()), whole);
      (void)extents_.unify(result.extents[axis], whole);
    }
    return result;
  }

  // The history of a concatenation of pieces; `whole` becomes the sum of their extents.
  History grown(const std::vector<Id>& pieces, const std::vector<History>& histories, Id& whole) {
    History history = histories[0];
    whole = pieces[0];
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      history = std::make_shared<const Tree>(Tree{whole, pieces[i], history, histories[i]});
      whole = extents_.sum(whole, pieces[i]);
    }
    return history;
  }

  const Tensor& tensor(const Side& side, const FileTensor& reference) {
    if (reference.op < 0) return variable(reference.op);
    return side.outputs[static_cast<std::size_t>(reference.op)][static_cast<std::size_t>(reference.output)];
  }

  // Whether two histories have one form; then the extents that must be equal are appended.
  bool same_form(const History& a, const History& b, std::vector<std::pair<Id, Id>>& equal) const {
    if (a == b) return true;
    // A history of many equal parts is larger than the rule that it comes from.
    if (a == nullptr || b == nullptr || equal.size() > max_pieces) return false;
    equal.emplace_back(a->left_extent, b->left_extent);
    equal.emplace_back(a->right_extent, b->right_extent);
    return same_form(a->left, b->left, equal) && same_form(a->right, b->right, equal);
  }

  // Several operands side by side that have equal extents along an axis: they share a history if theirs have one form.
  // That the parts are equal is a condition of whoever splits the result.
  History combined(const std::vector<History>& histories) {
    if (histories[0] == nullptr) return nullptr;
    std::vector<std::pair<Id, Id>> equal;
    for (const History& history : histories) {
      if (!same_form(histories[0], history, equal)) return nullptr;
      if (const auto known = agreements_.find(history); known != agreements_.end())
        equal.insert(equal.end(), known->second.begin(), known->second.end());
    }
    History result = std::make_shared<const Tree>(*histories[0]);
    agreements_.emplace(result, std::move(equal));
    return result;
  }

  Status unify(const Side& side, std::size_t i, Id a, Id b) {
    if (extents_.unify(a, b)) return {};
    return problem(side, i,
                   "extents " + std::to_string(*extents_.value(a)) + " and " + std::to_string(*extents_.value(b)) +
                       " meet, which should be equal");
  }

  // SAME padding with stride 1 leaves height and width as they are: of a kernel, too, which is pooled or convolved
  // before it is used.
  static void keep_extents(const FileOperator& op, const Tensor& image, Tensor& result) {
    if (!is_same(op)) return;
    if (given(op, Parameter::stride_h) == 1) result.extents[2] = image.extents[2];
    if (given(op, Parameter::stride_w) == 1) result.extents[3] = image.extents[3];
  }

  Status evaluate(Side& side, bool& again) {
    side.outputs.clear();
    for (std::size_t i = 0; i < side.operators->size() && !again; ++i) {
      const FileOperator& op = at(side, i);
      std::vector<const Tensor*> inputs;
      for (const FileTensor& input : op.inputs)
        if (input.op < 0) (void)variable(input.op);  // references into a map stay valid
      for (const FileTensor& input : op.inputs) inputs.push_back(&tensor(side, input));
      std::vector<Tensor> outputs(1, blank(side.ranks[i]));
      Tensor& result = outputs[0];
      switch (type(op)) {
        case OperatorType::relu:
        case OperatorType::sigmoid:
        case OperatorType::tanh:
        case OperatorType::scalar_mul:
          result = *inputs[0];
          break;
        case OperatorType::ewadd:
        case OperatorType::ewmul:
          for (std::size_t axis = 0; axis < result.extents.size(); ++axis) {
            for (const Tensor* input : inputs)
              TASO_RETURN_IF_ERROR(unify(side, i, input->extents[axis], result.extents[axis]));
            result.histories[axis] = combined({inputs[0]->histories[axis], inputs[1]->histories[axis]});
          }
          break;
        case OperatorType::concat:
          TASO_RETURN_IF_ERROR(concat(side, i, inputs, result));
          break;
        case OperatorType::split:
          TASO_RETURN_IF_ERROR(split(side, i, *inputs[0], outputs, again));
          break;
        case OperatorType::transpose: {
          const std::vector<std::size_t> perm = permutation(op).value_or(std::vector<std::size_t>());
          for (std::size_t axis = 0; axis < perm.size(); ++axis) {
            result.extents[axis] = inputs[0]->extents[perm[axis]];
            result.histories[axis] = inputs[0]->histories[perm[axis]];
          }
          break;
        }
        case OperatorType::matmul: {
          const std::size_t row = *result.rank - 2, column = *result.rank - 1;
          TASO_RETURN_IF_ERROR(unify(side, i, inputs[0]->extents[column], inputs[1]->extents[row]));
          for (std::size_t axis = 0; axis < row; ++axis)
            for (const Tensor* input : inputs)
              TASO_RETURN_IF_ERROR(unify(side, i, result.extents[axis], input->extents[axis]));
          result.extents[row] = inputs[0]->extents[row];
          result.histories[row] = inputs[0]->histories[row];
          result.extents[column] = inputs[1]->extents[column];
          result.histories[column] = inputs[1]->histories[column];
          break;
        }
        case OperatorType::conv2d:
          result.extents[0] = inputs[0]->extents[0];
          result.histories[0] = inputs[0]->histories[0];
          result.extents[1] = inputs[1]->extents[0];
          result.histories[1] = inputs[1]->histories[0];
          if (op.inputs[1].op >= 0) {
            const OperatorType kernel = type(at(side, static_cast<std::size_t>(op.inputs[1].op)));
            if (kernel == OperatorType::const_iconv || kernel == OperatorType::const_pool)
              TASO_RETURN_IF_ERROR(unify(side, i, inputs[1]->extents[0], inputs[0]->extents[1]));
          }
          keep_extents(op, *inputs[0], result);
          break;
        case OperatorType::pool2d_max:
        case OperatorType::pool2d_avg:
          for (std::size_t axis = 0; axis < 2; ++axis) result.extents[axis] = inputs[0]->extents[axis];
          result.histories[0] = inputs[0]->histories[0];
          keep_extents(op, *inputs[0], result);
          break;
        case OperatorType::enlarge:
          for (std::size_t axis = 0; axis < 2; ++axis) {
            result.extents[axis] = inputs[0]->extents[axis];
            result.histories[axis] = inputs[0]->histories[axis];
            result.extents[axis + 2] =
                inputs.size() == 2 ? inputs[1]->extents[axis + 2] : extents_.literal(given(op, kernel_axes[axis]));
          }
          break;
        case OperatorType::const_imm:
          result.extents[1] = result.extents[0];
          break;
        case OperatorType::const_iconv:
        case OperatorType::const_pool:
          result.extents[1] = type(op) == OperatorType::const_pool ? extents_.literal(1) : result.extents[0];
          for (std::size_t axis = 0; axis < 2; ++axis)
            result.extents[axis + 2] = extents_.literal(given(op, kernel_axes[axis]));
          break;
        case OperatorType::const_one:
          break;
      }
      side.outputs.push_back(std::move(outputs));
    }
    return {};
  }

  Status concat(const Side& side, std::size_t i, const std::vector<const Tensor*>& inputs, Tensor& result) {
    const auto axis = static_cast<std::size_t>(given(at(side, i), Parameter::axis));
    for (std::size_t other = 0; other < result.extents.size(); ++other) {
      std::vector<History> histories;
      std::vector<Id> pieces;
      for (const Tensor* input : inputs) {
        histories.push_back(input->histories[other]);
        pieces.push_back(input->extents[other]);
      }
      if (other == axis) {
        Id whole = pieces[0];
        result.histories[other] = grown(pieces, histories, whole);
        result.extents[other] = whole;
        continue;
      }
      for (const Id piece : pieces) TASO_RETURN_IF_ERROR(unify(side, i, piece, result.extents[other]));
      result.histories[other] = combined(histories);
    }
    return {};
  }

  Status split(const Side& side, std::size_t i, const Tensor& input, std::vector<Tensor>& outputs, bool& again) {
    const FileOperator& op = at(side, i);
    const auto axis = static_cast<std::size_t>(given(op, Parameter::axis));
    const std::size_t count = output_count(op);
    if (!input.rank)
      return problem(side, i, "PM_AXIS counts from the front, but nothing in the rule tells the rank of its tensor");
    if (axis >= *input.rank)
      return problem(
          side, i, "PM_AXIS is " + std::to_string(axis) + ", its tensor has " + std::to_string(*input.rank) + " axes");
    if (input.histories[axis] == nullptr) {
      if (&side == &target_ || !assume(op.inputs[0], axis, count))
        return problem(side, i,
                       "no concatenation of the rule made its tensor along axis " + std::to_string(axis) +
                           ", so that the sizes of its pieces are not known");
      again = true;
      return {};
    }
    outputs.assign(count, input);
    // From the back: the last piece is what the last concatenation appended.
    History rest = input.histories[axis];
    Id extent = input.extents[axis];
    for (std::size_t k = count; k-- > 1;) {
      if (rest == nullptr)
        return problem(side, i,
                       "PM_NUM_OUTPUTS is " + std::to_string(count) + ", but its tensor was put together of " +
                           std::to_string(count - k) + " pieces");
      if (const auto equal = agreements_.find(rest); equal != agreements_.end())
        conditions_.insert(conditions_.end(), equal->second.begin(), equal->second.end());
      outputs[k].extents[axis] = rest->right_extent;
      outputs[k].histories[axis] = rest->right;
      extent = rest->left_extent;
      rest = History(rest->left);
    }
    outputs[0].extents[axis] = extent;
    outputs[0].histories[axis] = rest;
    return {};
  }

  // Lets the pieces of a source tensor have any sizes, named by attribute variables: its variables are taken as made of
  // these pieces.
  bool assume(const FileTensor& tensor, std::size_t axis, std::size_t count) {
    std::set<std::pair<std::int32_t, std::size_t>> found;
    if (!trace(tensor, axis, found)) return false;
    std::erase_if(found, [](const auto& place) { return place.first >= 0; });
    if (found.empty()) return false;
    std::vector<std::string> names;
    for (std::size_t k = 0; k < count; ++k) names.push_back("n" + std::to_string(++sizes_));
    for (const auto& place : found)
      if (!assumed_.emplace(place, names).second) return false;
    return true;
  }

  // The variables, and their axes, from which a tensor of the source has an axis; false if some of it is of other
  // origin.
  bool trace(const FileTensor& tensor, std::size_t axis, std::set<std::pair<std::int32_t, std::size_t>>& found) {
    if (!found.emplace(tensor.op, axis).second || tensor.op < 0) return true;
    const auto i = static_cast<std::size_t>(tensor.op);
    const FileOperator& op = at(source_, i);
    auto all = [&] {
      return std::all_of(op.inputs.begin(), op.inputs.end(),
                         [&](const FileTensor& input) { return trace(input, axis, found); });
    };
    switch (type(op)) {
      case OperatorType::relu:
      case OperatorType::sigmoid:
      case OperatorType::tanh:
      case OperatorType::scalar_mul:
        return trace(op.inputs[0], axis, found);
      case OperatorType::ewadd:
      case OperatorType::ewmul:
        return all();
      case OperatorType::concat:
        return static_cast<std::size_t>(given(op, Parameter::axis)) != axis && all();
      case OperatorType::split:
        return static_cast<std::size_t>(given(op, Parameter::axis)) != axis && trace(op.inputs[0], axis, found);
      case OperatorType::transpose:
        return trace(op.inputs[0], permutation(op).value_or(std::vector<std::size_t>()).at(axis), found);
      case OperatorType::matmul: {
        const auto rank = static_cast<std::size_t>(*ranks_.value(source_.ranks[i]));
        return axis + 2 >= rank && trace(op.inputs[axis + 1 == rank ? 1 : 0], axis, found);
      }
      case OperatorType::conv2d:
        return axis < 2 && trace(op.inputs[axis], 0, found);
      case OperatorType::pool2d_max:
      case OperatorType::pool2d_avg:
        return axis == 0 && trace(op.inputs[0], axis, found);
      case OperatorType::enlarge:
        return axis < 2 && trace(op.inputs[0], axis, found);
      case OperatorType::const_imm:
      case OperatorType::const_iconv:
      case OperatorType::const_one:
      case OperatorType::const_pool:
        return false;
    }
    return false;
  }

  Status equate_outputs() {
    for (const FileOutput& output : rule_.outputs) {
      const Tensor &a = tensor(source_, output.source), &b = tensor(target_, output.target);
      for (std::size_t axis = 0; axis < std::min(a.extents.size(), b.extents.size()); ++axis)
        TASO_RETURN_IF_ERROR(
            unify(target_, static_cast<std::size_t>(output.target.op), a.extents[axis], b.extents[axis]));
    }
    return {};
  }

  // What the tensors beside a constant kernel do not tell follows from the convolution having one group, or one channel
  // in each.
  Status complete_constants() {
    for (Side* side : {&source_, &target_})
      for (std::size_t i = 0; i < side->operators->size(); ++i) {
        const FileOperator& op = at(*side, i);
        if (type(op) != OperatorType::conv2d) continue;
        const Tensor &image = tensor(*side, op.inputs[0]), &kernel = tensor(*side, op.inputs[1]);
        if (extents_.text(kernel.extents[0]) && extents_.text(kernel.extents[1])) continue;
        const std::size_t axis = extents_.value(kernel.extents[1]) == 1 ? 0 : 1;
        TASO_RETURN_IF_ERROR(unify(*side, i, kernel.extents[axis], image.extents[1]));
      }
    return {};
  }

  // ---- Padding ------------------------------------------------------------------------------------------------------

  [[nodiscard]] static bool has_window(const FileOperator& op) {
    return type(op) == OperatorType::conv2d || type(op) == OperatorType::pool2d_max ||
           type(op) == OperatorType::pool2d_avg;
  }
  [[nodiscard]] static bool is_same(const FileOperator& op) { return has_window(op) && given(op, Parameter::pad) == 0; }

  // Extents of a window, along axis 0 (height) or 1 (width).
  Id window_extent(const Side& side, const FileOperator& op, std::size_t axis) {
    if (type(op) == OperatorType::conv2d) return tensor(side, op.inputs[1]).extents[axis + 2];
    return extents_.literal(given(op, kernel_axes[axis]));
  }

  Window window(const Side& side, const FileOperator& op) {
    const std::int32_t down = given(op, Parameter::stride_h), across = given(op, Parameter::stride_w);
    const Tensor& image = tensor(side, op.inputs[0]);
    return {extents_.find(window_extent(side, op, 0)),
            extents_.find(window_extent(side, op, 1)),
            down,
            across,
            down == 1 ? 0 : extents_.find(image.extents[2]) + 1,
            across == 1 ? 0 : extents_.find(image.extents[3]) + 1};
  }

  void choose_padding() {
    for (const FileOperator& op : *source_.operators)
      if (is_same(op)) pads_.try_emplace(window(source_, op), "p" + std::to_string(pads_.size() + 1));
    for (const Side* side : {&source_, &target_})
      for (const FileOperator& op : *side->operators) {
        if (type(op) == OperatorType::enlarge || type(op) == OperatorType::const_iconv) explicit_pads_ = true;
        if (is_same(op) && !pads_.contains(window(*side, op))) explicit_pads_ = true;
      }
  }

  Expected<std::string> pads(const Side& side, std::size_t i) {
    const FileOperator& op = at(side, i);
    if (!is_same(op)) return std::string();
    if (!explicit_pads_) return ", pads=" + pads_.at(window(side, op));
    if (given(op, Parameter::stride_h) != 1 || given(op, Parameter::stride_w) != 1)
      return problem(side, i,
                     "SAME padding with a stride depends on the image's extents; it can be told only where source and "
                     "target have windows of the same extents and strides");
    std::vector<std::string> before, after;
    for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) {
      const Id extent = window_extent(side, op, axis);
      if (const std::optional<std::int64_t> value = extents_.value(extent)) {
        before.push_back(std::to_string(*value / 2));
        after.push_back(std::to_string((*value - 1) / 2));
        continue;
      }
      const std::optional<std::string> text = extents_.text(extent);
      if (!text) return problem(side, i, "nothing tells the extents of its kernel");
      before.push_back("(" + *text + ") // 2");
      after.push_back("(" + *text + " - 1) // 2");
    }
    return ", pads=[" + joined(before) + ", " + joined(after) + "]";
  }

  // ---- Text ---------------------------------------------------------------------------------------------------------

  Expected<std::string> extent(const Side& side, std::size_t i, Id id) const {
    if (std::optional<std::string> text = extents_.text(id)) return std::move(*text);
    return problem(side, i, "the rule does not tell its extents");
  }

  std::string reference(const Side& side, const FileTensor& tensor) const {
    if (tensor.op < 0) return variable_name(tensor.op);
    std::string text = side.prefix + std::to_string(tensor.op);
    if (type(at(side, static_cast<std::size_t>(tensor.op))) == OperatorType::split)
      text += "." + std::to_string(tensor.output);
    return text;
  }

  static std::string activated(const FileOperator& op, const std::string& term) {
    static constexpr std::array<std::string_view, 4> names = {"", "sigmoid", "relu", "tanh"};
    const std::int32_t activation = given(op, Parameter::acti);
    return activation == 0 ? term : std::string(names[static_cast<std::size_t>(activation)]) + "(" + term + ")";
  }

  Expected<std::string> term(const Side& side, std::size_t i) {
    const FileOperator& op = at(side, i);
    std::vector<std::string> operands;
    for (const FileTensor& input : op.inputs) operands.push_back(reference(side, input));
    const std::string arguments = "(" + joined(operands);
    const Tensor& result = side.outputs[i][0];
    auto axis = [&] { return std::to_string(given(op, Parameter::axis) - static_cast<std::int64_t>(*result.rank)); };
    auto pair = [&](Parameter first, Parameter second) {
      return "[" + std::to_string(given(op, first)) + ", " + std::to_string(given(op, second)) + "]";
    };
    switch (type(op)) {
      case OperatorType::conv2d: {
        TASO_ASSIGN(const std::string padding, pads(side, i));
        return activated(
            op, "conv2d" + arguments + "; strides=" + pair(Parameter::stride_h, Parameter::stride_w) + padding + ")");
      }
      case OperatorType::pool2d_max:
      case OperatorType::pool2d_avg: {
        TASO_ASSIGN(const std::string padding, pads(side, i));
        return activated(op, (type(op) == OperatorType::pool2d_max ? "max_pool2d" : "avg_pool2d_include") + arguments +
                                 "; kernel=" + pair(Parameter::kernel_h, Parameter::kernel_w) +
                                 ", strides=" + pair(Parameter::stride_h, Parameter::stride_w) + padding + ")");
      }
      case OperatorType::relu:
      case OperatorType::sigmoid:
      case OperatorType::tanh:
        return operator_name(op.type) + arguments + ")";
      case OperatorType::ewadd:
        return "add" + arguments + ")";
      case OperatorType::ewmul:
        return "mul" + arguments + ")";
      case OperatorType::scalar_mul:
        return "smul" + arguments + ")";
      case OperatorType::matmul:
        return activated(op, "matmul" + arguments + ")");
      case OperatorType::concat:
        return "concat" + arguments + "; axis=" + axis() + ")";
      case OperatorType::split: {
        std::vector<std::string> sizes;
        for (const Tensor& piece : side.outputs[i]) {
          TASO_ASSIGN(const std::string size,
                      extent(side, i, piece.extents[static_cast<std::size_t>(given(op, Parameter::axis))]));
          sizes.push_back(size);
        }
        return "split" + arguments + "; axis=" + axis() + ", sizes=[" + joined(sizes) + "])";
      }
      case OperatorType::transpose: {
        std::vector<std::string> axes;
        const std::vector<std::size_t> perm = permutation(op).value_or(std::vector<std::size_t>());
        axes.reserve(perm.size());
        for (const std::size_t from : perm) axes.push_back(std::to_string(from));
        return "transpose" + arguments + "; perm=[" + joined(axes) + "])";
      }
      case OperatorType::enlarge:
        return enlarged(side, i);
      case OperatorType::const_imm: {
        TASO_ASSIGN(const std::string size, extent(side, i, result.extents[0]));
        return "matrix_identity(; size=" + size + ")";
      }
      case OperatorType::const_iconv:
      case OperatorType::const_pool: {
        const bool identity = type(op) == OperatorType::const_iconv;
        if (identity && (given(op, Parameter::kernel_h) % 2 == 0 || given(op, Parameter::kernel_w) % 2 == 0))
          return problem(side, i, "the identity of convolution needs a kernel with odd extents");
        TASO_ASSIGN(const std::string channels, extent(side, i, result.extents[0]));
        return (identity ? "conv_identity(; channels=" : "pool_kernel(; channels=") + channels +
               ", kernel=" + pair(Parameter::kernel_h, Parameter::kernel_w) + ")";
      }
      case OperatorType::const_one: {
        if (!result.rank) return problem(side, i, "the rule does not tell its rank");
        std::vector<std::string> shape;
        for (const Id id : result.extents) {
          TASO_ASSIGN(const std::string text, extent(side, i, id));
          shape.push_back(text);
        }
        return "ones(; shape=[" + joined(shape) + "])";
      }
    }
    return problem(side, i, "this operator has no counterpart in rules");
  }

  // TASO puts the smaller half of the zeros before the kernel.
  Expected<std::string> enlarged(const Side& side, std::size_t i) {
    const FileOperator& op = at(side, i);
    std::vector<std::string> before, after;
    for (const std::size_t axis : {std::size_t{2}, std::size_t{3}}) {
      const Id small = tensor(side, op.inputs[0]).extents[axis], large = side.outputs[i][0].extents[axis];
      if (const auto from = extents_.value(small), to = extents_.value(large); from && to) {
        if (*from > *to)
          return problem(
              side, i, "a kernel of extent " + std::to_string(*from) + " cannot become one of " + std::to_string(*to));
        before.push_back(std::to_string((*to - *from) / 2));
        after.push_back(std::to_string(*to - *from - (*to - *from) / 2));
        continue;
      }
      TASO_ASSIGN(const std::string from, extent(side, i, small));
      TASO_ASSIGN(const std::string to, extent(side, i, large));
      const std::string difference = "(" + to + " - (" + from + "))";
      before.push_back(difference + " // 2");
      after.push_back(difference + " - " + difference + " // 2");
    }
    return "enlarge(" + reference(side, op.inputs[0]) + "; margin=[" + joined(before) + ", " + joined(after) + "])";
  }

  Expected<std::string> write() {
    std::vector<std::string> left, right, parts, conditions;
    for (const FileOutput& output : rule_.outputs) {
      left.push_back(reference(source_, output.source));
      right.push_back(reference(target_, output.target));
    }
    for (const Side* side : {&source_, &target_})
      for (std::size_t i = 0; i < side->operators->size(); ++i) {
        TASO_ASSIGN(const std::string text, term(*side, i));
        parts.push_back(side->prefix + std::to_string(i) + " = " + text);
      }
    for (const auto& [a, b] : conditions_) {
      if (extents_.find(a) == extents_.find(b)) continue;
      const std::optional<std::string> x = extents_.text(a), y = extents_.text(b);
      if (!x || !y) return bad_input("a split needs equal pieces whose extents the rule does not tell");
      const std::string condition = *x + " == " + *y;
      if (std::find(conditions.begin(), conditions.end(), condition) == conditions.end())
        conditions.push_back(condition);
    }
    return "rule " + name_ + ":\n  " + joined(left) + " => " + joined(right) + "\n  where " + joined(parts) +
           (conditions.empty() ? "" : "\n  if " + joined(conditions)) + "\n";
  }

  static constexpr std::array<Parameter, 2> kernel_axes = {Parameter::kernel_h, Parameter::kernel_w};

  const FileRule& rule_;
  std::string name_;
  const OperatorCatalog& catalog_;
  Side source_, target_;

  Extents ranks_;  // Extents serve as ranks: numbers that may have to be equal.
  std::map<std::int32_t, Id> variable_ranks_;

  Extents extents_;
  std::map<std::int32_t, Tensor> variables_;
  std::map<History, std::vector<std::pair<Id, Id>>> agreements_;  // Extents that a shared history takes as equal.
  std::vector<std::pair<Id, Id>> conditions_;                     // Those of histories that were split.
  std::map<std::pair<std::int32_t, std::size_t>, std::vector<std::string>> assumed_;  // Pieces of (variable, axis).
  std::size_t sizes_ = 0;

  std::map<Window, std::string> pads_;  // Attribute variables of the windows with SAME padding in the source.
  bool explicit_pads_ = false;
};

}  // namespace

TranslatedRule translate(const FileRule& rule, const std::string& name, const std::string& path,
                         const OperatorCatalog& catalog) {
  TranslatedRule result;
  Expected<Substitution> translated = Translator(rule, name, catalog).run();
  if (translated)
    result.rule = std::move(*translated);
  else
    result.problem = translated.error().message;
  result.rule.name = name;
  result.rule.where = {.file = path};
  return result;
}

Expected<std::vector<TranslatedRule>> load_taso_rules(const std::string& path, const OperatorCatalog& catalog) {
  TASO_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  TASO_ASSIGN(const std::vector<FileRule> rules, read_rule_collection(file->bytes(), path));
  std::vector<TranslatedRule> result;
  const std::size_t width = std::max<std::size_t>(3, std::to_string(rules.size() - 1).size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string number = std::to_string(i);
    result.push_back(translate(rules[i], "taso_" + std::string(width - number.size(), '0') + number, path, catalog));
  }
  return result;
}

}  // namespace taso::rule_io
