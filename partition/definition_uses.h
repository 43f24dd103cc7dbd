/// How a definition uses its lists and rests. Private to the folder.
#pragma once

#include <string>
#include <vector>

#include "operators/definition.h"

namespace taso {

/// What a list attribute is for.
enum class ListUse : std::uint8_t {
  fixed,        ///< Its length is a number.
  outputs,      ///< There is an output for every element.
  axes,         ///< It names axes, counted from the end, for `on` alone.
  permutation,  ///< It names axes from 0 on, each once.
  per_axis,     ///< It has an element for every axis of something.
};

[[nodiscard]] ListUse use_of_list(const OperatorDefinition& definition, const AttributeSpec& attribute);

/// The names of the rests of the inputs, each once.
[[nodiscard]] std::vector<std::string> rests_of(const OperatorDefinition& definition);

}  // namespace taso
