// Sums, maxima and means of what is reduced, and products of which one side is thin: a team adds for each result.
#include <array>
#include <limits>

#include "runtime/cuda/source_steps.h"

namespace taso::cuda {
void write_step(SourceText& text, const ReductionStep& step) {
  const std::int64_t rows = step.kept.elements, count = step.reduced.elements;
  if (rows == 0) return;
  const std::vector<std::int64_t> kept = extents_of(step.kept);
  KernelWriter writer = text.kernel();
  writer.span_over(step.kept);
  writer.span_over(step.reduced);
  const std::string x = writer.reads(input(0), type_of(step.element));
  const std::string y = writer.writes(output(0), type_of(step.element));
  writer.begin_team(rows, count, step.team, !kept.empty());
  const auto coordinates = writer.coordinates("r", "row", kept);
  const bool is_maximum = step.kind == ReductionKind::maximum;
  writer.line("float total = " + literal(is_maximum ? -std::numeric_limits<float>::infinity() : 0.0F) + ";");
  if (count > 0) {
    writer.line(std::string("const ") + type_of(step.element) + "* const p = " + x + " + (" +
                writer.sum(coordinates, step.kept, 1) + ");");
    writer.open_row(count);
    const auto inner = writer.coordinates("c", "i", extents_of(step.reduced));
    const std::string value = widened(step.element, "p[" + writer.sum(inner, step.reduced, 0) + "]");
    writer.line(is_maximum ? "total = fmaxf(total, " + value + ");" : "total += " + value + ";");
    writer.close();
  }
  writer.line("total = " + (is_maximum ? writer.team_maximum("total") : writer.team_sum("total")) + ";");
  if (step.kind == ReductionKind::mean) writer.line("total /= " + literal(static_cast<float>(count)) + ";");
  writer.line("if (" + writer.leads() + ") " + y + "[" + writer.sum(coordinates, step.kept, 0) +
              "] = " + narrowed(step.element, "total") + ";");
  text.take(writer);
}

void write_step(SourceText& text, const ThinProductStep& step) {
  const ThinProduct<float>& shape = step.shape;
  if (step.wide_count == 0) return;
  const auto thin_count = static_cast<int>(shape.thin_count);
  const char* type = type_of(step.element);
  KernelWriter writer = text.kernel();
  writer.span_over(std::array{step.wide_count, shape.depth}, std::array{shape.wide_step, shape.wide_depth});
  writer.span_over(std::array{shape.thin_count, shape.depth}, std::array{shape.thin_step, shape.thin_depth});
  writer.span_over(std::array{step.wide_count, shape.thin_count}, std::array{shape.y_wide, shape.y_thin});
  const std::string wide = writer.reads(step.wide, type), thin = writer.reads(step.thin, type);
  const bool biased = step.bias.place != Slot::Place::none;
  const std::string bias = biased ? writer.reads(step.bias, type) : "";
  const std::string y = writer.writes(step.y, type);
  writer.begin_team(step.wide_count, shape.depth, step.team, true);
  for (int k = 0; k < thin_count; ++k) writer.line("float total" + std::to_string(k) + " = 0.0f;");
  writer.open_row(shape.depth);
  writer.line("const float factor = " +
              widened(step.element,
                      wide + "[" + writer.sum({"row", "i"}, std::array{shape.wide_step, shape.wide_depth}) + "]") +
              ";");
  const auto fixed = [&](int k, std::int64_t stride) { return writer.number(k * stride); };
  for (int k = 0; k < thin_count; ++k)
    writer.line("total" + std::to_string(k) + " += factor * " +
                widened(step.element, thin + "[" + fixed(k, shape.thin_step) + " + " +
                                          writer.sum({"i"}, std::array{shape.thin_depth}) + "]") +
                ";");
  writer.close();
  for (int k = 0; k < thin_count; ++k) {
    const std::string total = "total" + std::to_string(k);
    writer.line(total + " = " + writer.team_sum(total) + ";");
  }
  writer.open("if (" + writer.leads() + ")");
  for (int k = 0; k < thin_count; ++k) {
    const std::string total = "total" + std::to_string(k);
    if (biased)
      writer.line(total + " += " +
                  widened(step.element, bias + "[" + writer.sum({"row"}, std::array{shape.bias_wide}) + " + " +
                                            fixed(k, shape.bias_thin) + "]") +
                  ";");
    writer.line(y + "[" + writer.sum({"row"}, std::array{shape.y_wide}) + " + " + fixed(k, shape.y_thin) +
                "] = " + narrowed(step.element, text_of(shape.function, total)) + ";");
  }
  writer.close();
  text.take(writer);
}

}  // namespace taso::cuda
