#include "onnx_io/symbolic_constants.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace taso {
namespace {

using Data = SymbolicConstants::Data;
using Integers = std::vector<std::int64_t>;

/// Longer lists are no shapes.
constexpr std::int64_t longest_list = 4096;
/// The first element of a stand-in that is no list.
constexpr std::int64_t mark = -0x7461736F'73747364;

/// The size that each entry is, from its values at the samples.
std::optional<Integers> fit_each(const SampledSizes& sizes, const std::vector<Integers>& samples) {
  Integers result;
  for (std::size_t i = 0; i < samples[0].size(); ++i) {
    Integers values;
    for (const Integers& sample : samples) values.push_back(sample[i]);
    const std::optional<std::int64_t> size = sizes.fit(values, {});
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

/// Start and step of constants that count up, of two elements at least.
std::optional<std::pair<std::int64_t, std::int64_t>> count_of(const std::vector<Data>& samples) {
  std::optional<std::pair<std::int64_t, std::int64_t>> result;
  for (const Data& data : samples) {
    if (data->type().element != ElementType::i64 || data->type().elements() < 2) return std::nullopt;
    const Integers elements = data->to_integers();
    if (!result) result.emplace(elements[0], elements[1] - elements[0]);
    if (!counts(elements, result->first, result->second)) return std::nullopt;
  }
  return result;
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
    if (data->type().element != form.type.element || data->type().shape.size() != first.size()) return form;
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
    form.kind = ConstantForm::Kind::count;
    std::tie(form.start, form.step) = *count;
  }
  return form;
}

Data SymbolicConstants::stand_in(const ConstantForm& form) {
  Data data;
  if (form.kind == ConstantForm::Kind::list) {
    data = ConstantData::of_integers(form.type.shape, form.elements);
  } else {
    Integers text = {mark, static_cast<std::int64_t>(form.kind), static_cast<std::int64_t>(form.type.element),
                     static_cast<std::int64_t>(form.type.shape.size())};
    text.insert(text.end(), form.type.shape.begin(), form.type.shape.end());
    for (const std::byte byte : form.element) text.push_back(static_cast<std::int64_t>(byte));
    text.insert(text.end(), {form.start, form.step});
    // What is not known is equal to itself only.
    if (form.kind == ConstantForm::Kind::unknown) text.push_back(static_cast<std::int64_t>(known_.size()));
    data = ConstantData::of_integers({static_cast<std::int64_t>(text.size())}, text);
  }
  forms_.emplace(data->identity(), form);
  return data;
}

const ConstantForm* SymbolicConstants::form_of(const ConstantData& data) const {
  const auto place = forms_.find(data.identity());
  if (place != forms_.end()) return &place->second;
  if (data.type().element != ElementType::i64 || data.type().shape.size() > 1 || data.type().elements() > longest_list)
    return nullptr;
  ConstantForm form{ConstantForm::Kind::list, data.type(), data.to_integers(), {}, 0, 0};
  const bool named = std::any_of(form.elements.begin(), form.elements.end(), [&](std::int64_t element) {
    return !sizes_->is_number(element) && sizes_->at(element, 0);
  });
  return named ? &forms_.emplace(data.identity(), std::move(form)).first->second : nullptr;
}

bool SymbolicConstants::is_at(const ConstantForm& form, const ConstantData& data, std::size_t sample) const {
  const TensorType& type = data.type();
  if (type.element != form.type.element || type.shape.size() != form.type.shape.size()) return false;
  const auto is = [&](std::int64_t size, std::int64_t number) {
    return size == number || (!sizes_->is_number(size) && sizes_->at(size, sample) == number);
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
      return counts(data.to_integers(), form.start, form.step);
    case ConstantForm::Kind::unknown:
      break;
  }
  return false;
}

}  // namespace taso
