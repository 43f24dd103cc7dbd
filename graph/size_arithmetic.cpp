#include "graph/size_arithmetic.h"

#include <algorithm>
#include <string>

namespace taso {

const SizeArithmetic* sizes_of(const OperatorCatalog& catalog) {
  const auto* sized = dynamic_cast<const SizedCatalog*>(&catalog);
  return sized == nullptr ? nullptr : &sized->sizes();
}

Expected<std::int64_t> sum_of_sizes(std::span<const std::int64_t> list, const SizeArithmetic* sizes) {
  std::int64_t total = 0;
  for (const std::int64_t size : list) {
    if (sizes != nullptr && !(sizes->is_number(total) && sizes->is_number(size))) {
      TASO_ASSIGN(total, sizes->combine(SizeArithmetic::Operation::add, total, size));
    } else if (__builtin_add_overflow(total, size, &total)) {
      return bad_input("the sum of " + to_string(list) + " does not fit 64 bits");
    }
  }
  return total;
}

std::string to_string(const TensorType& type, const SizeArithmetic* sizes) {
  if (sizes == nullptr || !type.known) return to_string(type);
  std::string text = std::string(to_string(type.element)) + "[";
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis)
    text += (axis == 0 ? "" : ", ") + sizes->to_string(type.shape[axis]);
  return text + "]";
}

std::string to_string(const Attributes& attributes, const SizeArithmetic* sizes) {
  if (sizes == nullptr) return to_string(attributes);
  std::string text;
  for (const auto& [name, value] : attributes.entries()) {
    text += (text.empty() ? "" : ", ") + name + "=";
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      text += "[";
      for (std::size_t i = 0; i < list->size(); ++i) text += (i == 0 ? "" : ", ") + sizes->to_string((*list)[i]);
      text += "]";
    } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      text += sizes->to_string(*integer);
    } else {
      text += to_string(value);
    }
  }
  return text;
}

}  // namespace taso
