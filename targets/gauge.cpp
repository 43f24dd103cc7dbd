#include "targets/gauge.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "onnx_io/builder.h"
#include "runtime/measure.h"
#include "support/file.h"

namespace taso {
namespace {

constexpr std::int64_t rows = 64, width = 256;
constexpr int products = 4;
/// Times that are longer by less than this are as ever.
constexpr double disturbed = 1.15;

}  // namespace

Expected<Gauge> Gauge::make(const std::string& file, double least_us) {
  ModelBuilder builder(17, "gauge");
  builder.add_input("x0", {rows, width});
  builder.add_initializer("w", {width, width}, std::vector<float>(width * width, 1.0F / width));
  for (int i = 0; i < products; ++i)
    builder.add_node("MatMul", {"x" + std::to_string(i), "w"}, {"x" + std::to_string(i + 1)});
  builder.add_output("x" + std::to_string(products), {rows, width});
  TASO_RETURN_IF_ERROR(write_file_atomically(file, builder.serialize()));
  return Gauge({file, {{"x0", TensorType{ElementType::f32, {rows, width}}, 0, 2}}, 0}, least_us);
}

bool Gauge::is_calm(const ModelTimes& times) {
  if (!times.refusal.empty() || times.seconds.empty()) return least_us_ == 0;
  std::vector<double> sorted = times.seconds;
  std::sort(sorted.begin(), sorted.end());
  const double median = quantile(sorted, 0.5) * 1e6;
  const auto least = [&](double before) { return before == 0 ? median : std::min(before, median); };
  least_us_ = least(least_us_);
  least_of_run_us_ = least(least_of_run_us_);
  return median <= disturbed * least_us_;
}

}  // namespace taso
