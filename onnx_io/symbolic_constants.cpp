#include "onnx_io/symbolic_constants.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace taso {
namespace {

using Data = SymbolicConstants::Data;
using Integers = std::vector<std::int64_t>;

/// Longer lists are no shapes.
constexpr std::int64_t longest_list = 4096;
/// Where a stand-in is said to be stored, before what tells it from others: no file is there.
const std::string nowhere("\0", 1);
/// Larger integers stand for "as far as there is": they are the same at all sizes.
constexpr std::int64_t no_size = std::int64_t{1} << 62;

/// The size that each entry is, from its values at the samples.
std::optional<Integers> fit_each(const SampledSizes& sizes, const std::vector<Integers>& samples) {
  Integers result;
  for (std::size_t i = 0; i < samples[0].size(); ++i) {
    Integers values;
    for (const Integers& sample : samples) values.push_back(sample[i]);
    const bool same = std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == values[0]; });
    const std::optional<std::int64_t> size =
        same && (values[0] >= no_size || values[0] <= -no_size) ? values[0] : sizes.fit(values, {});
    if (!size) return std::nullopt;
    result.push_back(*size);
  }
  return result;
}

/// The element that a constant repeats; empty if it repeats none.
std::vector<std::byte> repeated_element(const ConstantData& data) {
  const std::size_t width = size_of(data.type().element);
  if (!data.is_dense()) return {data.splat_element().begin(), data.splat_element().end()};
  const std::vector<std::byte> bytes = data.to_bytes();
  if (width == 0 || bytes.size() < width) return {};
  for (std::size_t at = width; at < bytes.size(); at += width)
    if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at)))
      return {};
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width)};
}

bool counts(const Integers& elements, std::int64_t start, std::int64_t step) {
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i] != start + step * static_cast<std::int64_t>(i)) return false;
  return true;
}

/// The starts and the step of constants that count up, one of which has two elements.
std::optional<std::pair<Integers, std::int64_t>> count_of(const std::vector<Data>& samples) {
  Integers starts;
  std::optional<std::int64_t> step;
  std::vector<Integers> all;
  for (const Data& data : samples) {
    if (data->type().element != ElementType::i64 || data->type().elements() == 0) return std::nullopt;
    if (!data->is_dense() && data->type().elements() > 1) return std::nullopt;
    all.push_back(data->to_integers());
    starts.push_back(all.back()[0]);
    if (!step && all.back().size() > 1) step = all.back()[1] - all.back()[0];
  }
  if (!step || *step == 0) return std::nullopt;
  for (const Integers& elements : all)
    if (!counts(elements, elements[0], *step)) return std::nullopt;
  return std::pair(std::move(starts), *step);
}

}  // namespace

Data SymbolicConstants::unify(const std::vector<Data>& samples, bool told) {
  std::vector<Hash128> key;
  for (const Data& data : samples) key.push_back(data->identity());
  if (std::all_of(key.begin(), key.end(), [&](const Hash128& identity) { return identity == key[0]; }))
    return samples[0];
  const auto [place, added] = known_.try_emplace({told, std::move(key)});
  if (added) {
    ConstantForm form;
    form.type = samples[0]->type();
    place->second = stand_in(told ? find_form(samples) : form);
  }
  return place->second;
}

ConstantForm SymbolicConstants::find_form(const std::vector<Data>& samples) const {
  ConstantForm form;
  form.type = samples[0]->type();
  const Shape& first = form.type.shape;
  std::vector<Integers> shapes;
  for (const Data& data : samples) {
    if (!data->has_data() || data->type().element != form.type.element || data->type().shape.size() != first.size())
      return form;
    shapes.push_back(data->type().shape);
  }
  const bool same_shape = std::all_of(shapes.begin(), shapes.end(), [&](const Shape& shape) { return shape == first; });
  if (same_shape && form.type.element == ElementType::i64 && first.size() <= 1 && volume(first) <= longest_list) {
    std::vector<Integers> lists;
    for (const Data& data : samples) lists.push_back(data->to_integers());
    if (auto elements = fit_each(*sizes_, lists)) {
      form.kind = ConstantForm::Kind::list;
      form.elements = std::move(*elements);
    }
    return form;
  }
  auto shape = fit_each(*sizes_, shapes);
  if (!shape) return form;
  form.type.shape = std::move(*shape);
  form.element = repeated_element(*samples[0]);
  if (!form.element.empty() && std::all_of(samples.begin(), samples.end(),
                                           [&](const Data& data) { return repeated_element(*data) == form.element; })) {
    form.kind = ConstantForm::Kind::repeated;
    return form;
  }
  form.element.clear();
  if (const auto count = count_of(samples)) {
    const std::optional<std::int64_t> start = sizes_->fit(count->first, {});
    if (!start) return form;
    form.kind = ConstantForm::Kind::count;
    form.start = *start;
    form.step = count->second;
  }
  return form;
}

Data SymbolicConstants::stand_in(const ConstantForm& form) {
  std::string text = nowhere + std::to_string(static_cast<int>(form.kind)) + " " + taso::to_string(form.type);
  for (const std::int64_t element : form.elements) text += " " + std::to_string(element);
  for (const std::byte byte : form.element) text += " " + std::to_string(static_cast<int>(byte));
  text += " " + std::to_string(form.start) + " " + std::to_string(form.step);
  // What is not known is equal to itself only.
  if (form.kind == ConstantForm::Kind::unknown) text += " " + std::to_string(known_.size());
  Data data = ConstantData::borrow({ElementType::i64, {0}, true}, {}, nullptr, std::move(text));
  forms_.emplace(data->identity(), form);
  return data;
}

bool SymbolicConstants::is_number(std::int64_t element) const {
  return sizes_->is_number(element) || element >= no_size || element <= -no_size;
}

Data SymbolicConstants::list(const std::vector<std::int64_t>& elements) {
  const Shape shape = {static_cast<std::int64_t>(elements.size())};
  if (std::all_of(elements.begin(), elements.end(), [&](std::int64_t element) { return is_number(element); }))
    return ConstantData::of_integers(shape, elements);
  ConstantForm form;
  form.kind = ConstantForm::Kind::list;
  form.type = {ElementType::i64, shape, true};
  form.elements = elements;
  return stand_in(form);
}

const ConstantForm* SymbolicConstants::form_of(const ConstantData& data) const {
  const auto place = forms_.find(data.identity());
  return place == forms_.end() ? nullptr : &place->second;
}

bool SymbolicConstants::is_at(const ConstantForm& form, const ConstantData& data, std::size_t sample) const {
  const TensorType& type = data.type();
  if (type.element != form.type.element || type.shape.size() != form.type.shape.size()) return false;
  const auto is = [&](std::int64_t size, std::int64_t number) {
    return is_number(size) ? size == number : sizes_->at(size, sample) == number;
  };
  if (!std::equal(form.type.shape.begin(), form.type.shape.end(), type.shape.begin(), is)) return false;
  switch (form.kind) {
    case ConstantForm::Kind::list: {
      const Integers elements = data.to_integers();
      return std::equal(form.elements.begin(), form.elements.end(), elements.begin(), elements.end(), is);
    }
    case ConstantForm::Kind::repeated:
      return type.elements() == 0 || repeated_element(data) == form.element;
    case ConstantForm::Kind::count:
      return data.type().elements() == 0 ||
             (is(form.start, data.to_integers()[0]) && counts(data.to_integers(), data.to_integers()[0], form.step));
    case ConstantForm::Kind::unknown:
      break;
  }
  return false;
}

}  // namespace taso
