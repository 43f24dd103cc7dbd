#include "runtime/cuda/driver.h"

namespace taso::cuda {

std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string driver_complaint(int driver, int runtime) {
  // Drivers serve the runtimes of their own major version, of whatever minor one, and of earlier ones. The oldest
  // driver of each: NVIDIA, CUDA Toolkit Release Notes, table "CUDA Toolkit and Minimum Required Driver Version".
  if (driver == 0 || driver / 1000 >= runtime / 1000) return "";
  const int major = runtime / 1000;
  const std::string needed = major == 13 ? "driver >= 580" : major == 12 ? "driver >= 525" : "a newer driver";
  return "CUDA " + cuda_version(runtime) + " needs " + needed + ", and this one is of CUDA " + cuda_version(driver);
}

}  // namespace taso::cuda
