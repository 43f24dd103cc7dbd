// Elements that are no reals, or of several types. An integer on its way is the 64 bits that hold it.
#include "runtime/cuda/source_steps.h"

namespace taso::cuda {
namespace {

const char* type_of_word(WordType type) {
  switch (type) {
    case WordType::boolean:
    case WordType::u8:
      return "unsigned char";
    case WordType::i8:
      return "signed char";
    case WordType::i16:
      return "short";
    case WordType::i32:
      return "int";
    case WordType::i64:
      return "long long";
    case WordType::u16:
      return "unsigned short";
    case WordType::u32:
      return "unsigned int";
    case WordType::u64:
      return "unsigned long long";
    case WordType::f16:
      return "Half";
    case WordType::bf16:
      return "BFloat16";
    case WordType::f32:
      return "float";
  }
  return "";
}
const char* type_of_register(WordType type) { return is_real_word(type) ? "float" : "unsigned long long"; }

std::string loaded_word(WordType type, const std::string& element) {
  switch (type) {
    case WordType::boolean:
      return "(" + element + " != 0 ? 1ull : 0ull)";
    case WordType::i8:
    case WordType::i16:
    case WordType::i32:
    case WordType::i64:
      return "(unsigned long long)(long long)" + element;
    case WordType::u8:
    case WordType::u16:
    case WordType::u32:
    case WordType::u64:
      return "(unsigned long long)" + element;
    case WordType::f16:
      return widened(ElementType::f16, element);
    case WordType::bf16:
      return widened(ElementType::bf16, element);
    case WordType::f32:
      return element;
  }
  return element;
}
std::string stored_word(WordType type, const std::string& value) {
  if (type == WordType::f16) return narrowed(ElementType::f16, value);
  if (type == WordType::bf16) return narrowed(ElementType::bf16, value);
  if (type == WordType::f32) return value;
  return std::string("(") + type_of_word(type) + ")(" + value + ")";
}

std::string converted(WordType from, WordType to) {
  const bool real = is_real_word(from);
  if (to == WordType::boolean) return real ? "p != 0.0f ? 1ull : 0ull" : "p != 0 ? 1ull : 0ull";
  if (is_real_word(to)) return real ? "p" : from == WordType::u64 ? "(float)p" : "(float)(long long)p";
  if (!real) return "p";
  if (to == WordType::u64) return "whole_unsigned(p)";
  return to == WordType::i64 || to == WordType::u32 ? "whole_in_64(p)" : "whole_in_32(p)";
}

/// What a function makes of the registers p and q.
std::string word_text(WordFunction function, WordType operands, WordType result) {
  const bool is_signed = !is_real_word(operands) && operands != WordType::u64;
  const std::string p = is_signed ? "(long long)p" : "p", q = is_signed ? "(long long)q" : "q";
  const auto truth = [](const std::string& condition) { return condition + " ? 1ull : 0ull"; };
  switch (function) {
    case WordFunction::convert:
      return converted(operands, result);
    case WordFunction::select:
      return "";
    case WordFunction::less:
      return truth(p + " < " + q);
    case WordFunction::less_equal:
      return truth(p + " <= " + q);
    case WordFunction::equal:
      return truth("p == q");
    case WordFunction::is_nan:
      return truth("p != p");
    case WordFunction::add:
      return "p + q";
    case WordFunction::sub:
      return "p - q";
    case WordFunction::mul:
      return "p * q";
    case WordFunction::minimum:
      return q + " < " + p + " ? q : p";
    case WordFunction::maximum:
      return p + " < " + q + " ? q : p";
    case WordFunction::negate:
      return "0ull - p";
    case WordFunction::absolute:
      return is_signed ? "(long long)p < 0 ? 0ull - p : p" : "p";
    case WordFunction::bit_and:
      return "p & q";
    case WordFunction::bit_or:
      return "p | q";
    case WordFunction::bit_xor:
      return "p ^ q";
    case WordFunction::bit_not:
      return "~p";
    case WordFunction::logical_not:
      return "p ^ 1ull";
  }
  return "";
}

}  // namespace

void write_step(SourceText& text, const WordsStep& step) {
  const Words& of = step.shape;
  if (of.walk.elements == 0) return;
  KernelWriter writer = text.kernel();
  writer.span_over(of.walk);
  const bool selects = of.function == WordFunction::select;
  const Slot* slots[3] = {&step.a, &step.b, &step.c};
  std::string names[3];
  for (int k = 0; k < 3; ++k)
    if (slots[k]->place != Slot::Place::none)
      names[k] = writer.reads(*slots[k], selects && k == 0 ? "unsigned char" : type_of_word(of.operands));
  const std::string y = writer.writes(step.y, type_of_word(of.result));
  writer.begin_each(of.walk.elements);
  const auto coordinates = writer.coordinates("c", "i", extents_of(of.walk));
  const auto element = [&](int k) { return names[k] + "[" + writer.sum(coordinates, of.walk, k + 1) + "]"; };
  const std::string type = std::string("const ") + type_of_register(of.operands);
  if (selects) {
    writer.line(type + " z = " + element(0) + " != 0 ? " + loaded_word(of.operands, element(1)) + " : " +
                loaded_word(of.operands, element(2)) + ";");
  } else {
    writer.line(type + " p = " + loaded_word(of.operands, element(0)) + ";");
    if (!names[1].empty()) writer.line(type + " q = " + loaded_word(of.operands, element(1)) + ";");
    writer.line(std::string("const ") + type_of_register(of.result) +
                " z = " + word_text(of.function, of.operands, of.result) + ";");
  }
  writer.line(y + "[" + writer.sum(coordinates, of.walk, 0) + "] = " + stored_word(of.result, "z") + ";");
  text.take(writer);
}

}  // namespace taso::cuda
