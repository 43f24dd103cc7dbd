/// Versions of drivers and of CUDA, as text. Knows nothing of CUDA.
#pragma once

#include <string>

namespace taso::cuda {

/// "13.0" from 13000, as CUDA numbers its versions.
[[nodiscard]] std::string cuda_version(int number);

/// Why a driver cannot serve this CUDA runtime: "CUDA 13.0 needs driver >= 580, and this one is of CUDA 12.4". Empty if
/// it can, and where there is no driver (0), of which CUDA's own words tell.
[[nodiscard]] std::string driver_complaint(int driver, int runtime);

}  // namespace taso::cuda
