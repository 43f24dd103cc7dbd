/// The files beside this one of which a script for JAX consists, as CMake put them into the library.
#pragma once

#include <string_view>

namespace taso {

extern const std::string_view jax_operators_text;  ///< operators.py: a function per operator, "op_NAME".
extern const std::string_view jax_driver_text;     ///< driver.py

}  // namespace taso
