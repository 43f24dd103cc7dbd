#include "tests/attack/specification_mutator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>

#include "graph/attributes.h"
#include "tests/attack/common.h"

namespace taso::testing {
namespace {

using Definition = SpecificationPool::Definition;

constexpr std::array<const char*, 8> facts = {"zero_at_zero", "monotone",    "idempotent",     "positive",
                                              "nonnegative",  "on_positive", "on_nonnegative", "on_nonzero"};
// Bodies, each with what is true of it.
constexpr std::array<std::pair<const char*, const char*>, 18> bodies = {{
    {"x", "zero_at_zero, monotone, idempotent"},
    {"2 * x", "zero_at_zero, monotone"},
    {"max(x, 0)", "zero_at_zero, monotone, idempotent, nonnegative"},
    {"min(x, 1)", "zero_at_zero, monotone, idempotent"},
    {"max(0, min(1, x))", "zero_at_zero, monotone, idempotent, nonnegative"},
    {"x * x", "zero_at_zero, nonnegative"},
    {"x * x + 1", "positive"},
    {"exp(x)", "monotone, positive"},
    {"exp(x) + x", "monotone"},
    {"1 / (1 + exp(-x))", "monotone, positive"},
    {"log(x)", "monotone, on_positive"},
    {"sqrt(x)", "zero_at_zero, monotone, nonnegative, on_nonnegative"},
    {"1 / x", "on_nonzero"},
    {"1 / sqrt(x)", "on_positive, positive"},
    {"abs(x)", "zero_at_zero, idempotent, nonnegative"},
    {"x + abs(x)", "zero_at_zero, monotone, nonnegative"},
    {"floor(x)", "zero_at_zero, monotone, idempotent"},
    {"x * abs(x)", "zero_at_zero, monotone"},
}};
constexpr std::array<const char*, 12> law_forms = {"F(-x) = -F(x)",
                                                   "F(-x) = F(x)",
                                                   "F(x * y) = F(x) * F(y)",
                                                   "F(x + y) = F(x) + F(y)",
                                                   "F(x) = x where x >= 0",
                                                   "F(x) * F(x) = x * x",
                                                   "F(1 / x) = 1 / F(x)",
                                                   "F(x) = 0 where x <= 0",
                                                   "F(x) = 1 where x > 0",
                                                   "F(0) = 0",
                                                   "F(x * y) = x * F(y) where x > 0",
                                                   "F(x + y) = F(x) * F(y)"};
constexpr std::array<const char*, 14> unary = {"abs",  "erf", "exp",   "log",  "relu",  "sigmoid", "sqrt",
                                               "tanh", "sin", "floor", "ceil", "round", "sign",    "cosh"};

std::string text_of(double number) {
  std::string text = to_string(AttributeValue(number));
  return number < 0 ? "(" + text + ")" : text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) words.insert(text.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

class Changes {
 public:
  explicit Changes(Random& random) : random_(random) {}

  std::vector<double> places;

  bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[random_.below(list.size())];
  }

  // A number at which nobody looks by chance.
  double place() {
    static constexpr std::array<double, 14> numbers = {37.25, 0.405,   12.5, 3.7,  -37.25, -0.405,  1e6,
                                                       -1e6,  1234.56, 1e12, 77.0, -2.5,   -12.125, 6.5};
    return chance(50) ? one_of(numbers) : (chance(50) ? -1 : 1) * std::round(4000 * random_.uniform()) / 32;
  }

  // A term that is 0 but at some place, in which `v` is the variable; `w` another one, or empty.
  std::string bump(const std::string& v, const std::string& w) {
    const double p = place(), width = one_of(std::array<double, 4>{0.005, 0.25, 0.0001, 1});
    std::string x = v;
    places.push_back(p);
    if (!w.empty() && chance(60)) {
      switch (random_.below(4)) {
        case 0:
          return "max(0, " + v + " - " + w + ")";  // x > y
        case 1:
          x = "(" + v + " - " + w + ")";
          break;
        case 2:
          x = "(" + v + " + " + w + ")";
          break;
        default:
          x = "(" + v + " * " + w + ")";
      }
    }
    const auto number = [](double value) { return text_of(value); };
    switch (random_.below(12)) {
      case 0:
        return "max(0, " + number(width) + " - abs(" + x + " - " + number(p) + "))";
      case 1: {  // no number is the place
        const double factor = one_of(std::array<double, 3>{2, 8, 0.5});
        return "max(0, " + number(width) + " - abs(" + number(factor) + " * " + x + " - " + number(factor * p) + "))";
      }
      case 2:
        return "relu(" + number(width * width) + " - (" + x + " - " + number(p) + ") * (" + x + " - " + number(p) +
               "))";
      case 3: {  // the same, multiplied out
        const double q = std::round(8 * std::fmod(p, 64)) / 8;
        places.push_back(q);
        return "max(0, " + number(0.0625 - q * q) + " + " + number(2 * q) + " * " + x + " - " + x + " * " + x + ")";
      }
      case 4:
        return "max(0, " + x + " - " + number(std::fabs(p)) + ")";  // from there on
      case 5:
        return "max(0, " + number(-std::fabs(p)) + " - " + x + ")";
      case 6:
        return "max(0, min(" + x + " - " + number(p) + ", " + number(p + width) + " - " + x + "))";
      case 7:
        places.insert(places.end(), {1e-9, 1e-12});
        return "max(0, 0.000000001 - abs(" + x + "))";  // tiny numbers
      case 8:
        places.insert(places.end(), {-0.5, -2.5, -7.25});
        return "(" + x + " - floor(" + x + ")) * relu(-" + x + ")";  // negative numbers that are not whole
      case 9:
        places.push_back(std::fabs(p) * 1000);
        return "max(0, abs(" + x + ") - " + number(1000 * std::fabs(p)) + ")";
      case 10: {
        const double q = 0.25 + std::fmod(std::fabs(p), 8);
        places.push_back(q);
        return "max(0, 0.01 - abs(exp(" + x + ") - " + number(std::exp(q)) + "))";
      }
      default:
        return "max(0, floor(" + x + " / " + number(std::fabs(p)) + ")) * max(0, 1 - " + x + " / " +
               number(1.01 * std::fabs(p)) + ")";
    }
  }

  // A bump that is added, taken away, or a factor.
  std::string spoiled(const std::string& e, const std::vector<std::string>& variables) {
    if (variables.empty()) return "(" + e + ") + 1";
    const std::string v = one_of(variables);
    const std::string w = variables.size() < 2 ? "" : v == variables[0] ? variables[1] : variables[0];
    const std::string term = bump(v, w);
    switch (random_.below(5)) {
      case 0:
        return "(" + e + ") * (1 + " + term + ")";
      case 1:
        return e + " - " + text_of(one_of(std::array<double, 3>{3, 1000, 0.01})) + " * (" + term + ")";
      case 2:
        return e + " - (" + term + ")";
      default:
        return e + " + " + term;
    }
  }

  // Another number, operator or name somewhere in a line.
  void change_token(std::string& line, std::size_t from) {
    struct Token {
      std::size_t begin, length;
    };
    std::vector<Token> tokens;
    for (std::size_t i = from; i < line.size();) {
      std::size_t end = i + 1;
      if (is_word(line[i]))
        while (end < line.size() && (is_word(line[end]) || line[end] == '.')) ++end;
      if (line[i] != ' ' && line[i] != '"') tokens.push_back({i, end - i});
      i = end;
    }
    if (tokens.empty()) return;
    const auto [begin, length] = one_of(tokens);
    const std::string token = line.substr(begin, length);
    std::string instead = token;
    static const std::vector<std::string> operators = {"+", "-", "*", "/"};
    if (std::isdigit(static_cast<unsigned char>(token[0])) != 0) {
      static const std::vector<std::string> numbers = {"0", "1", "2", "3", "0.5", "1.5", "-1", "0.0001", "50", "57"};
      instead = chance(50) ? one_of(numbers) : text_of(std::strtod(token.c_str(), nullptr) * (1 + 1e-3));
    } else if (std::find(operators.begin(), operators.end(), token) != operators.end()) {
      instead = one_of(operators);
    } else if (token == "max" || token == "min") {
      instead = token == "max" ? "min" : "max";
    } else if (token == "<" || token == ">") {
      instead = token == "<" ? ">" : "<";
    } else if (std::find(unary.begin(), unary.end(), token) != unary.end()) {
      instead = one_of(unary);
    } else if (is_word(token[0])) {
      const Token other = one_of(tokens);
      if (is_word(line[other.begin])) instead = line.substr(other.begin, other.length);
    }
    line.replace(begin, length, instead);
  }

  void change_function(Definition& definition) {
    std::string& head = definition.lines[0];
    const std::size_t equals = head.find(" = "),
                      colon = head.rfind(" : ") != std::string::npos ? head.rfind(" : ") : head.rfind("): ");
    const std::vector<std::string> parameters =
        head.find(", y)") != std::string::npos ? std::vector<std::string>{"x", "y"} : std::vector<std::string>{"x"};
    const std::uint64_t kind = random_.below(10);
    if (kind <= 2) {
      change_facts(head, colon);
    } else if (equals != std::string::npos && kind <= 6) {
      const std::size_t end = colon == std::string::npos ? head.size() : colon;
      const std::string body = head.substr(equals + 3, end - equals - 3);
      if (chance(75))
        head.replace(equals + 3, end - equals - 3, spoiled(body, parameters));
      else
        change_token(head, equals + 3);
    } else if (equals == std::string::npos) {
      change_law(definition);
    } else {
      change_token(head, head.find(')'));
    }
  }

  void change_facts(std::string& head, std::size_t colon) {
    if (colon == std::string::npos) {
      head += head.find(" = ") != std::string::npos ? " : " : ": ";
      head += one_of(facts);
      return;
    }
    const std::size_t begin = head.find(':', colon) + 2;
    std::vector<std::string> list;
    std::stringstream stream(head.substr(begin));
    for (std::string fact; std::getline(stream, fact, ',');) list.push_back(fact.substr(fact.find_first_not_of(' ')));
    switch (random_.below(3)) {
      case 0:
        list.emplace_back(one_of(facts));
        break;
      case 1:
        list[random_.below(list.size())] = one_of(facts);
        break;
      default:
        if (list.size() > 1) list.erase(list.begin() + static_cast<std::ptrdiff_t>(random_.below(list.size())));
    }
    head.erase(begin);
    for (std::size_t i = 0; i < list.size(); ++i) head += (i == 0 ? "" : ", ") + list[i];
  }

  void change_law(Definition& definition) {
    std::vector<std::size_t> laws;
    for (std::size_t i = 1; i < definition.lines.size(); ++i)
      if (definition.lines[i].find("law ") != std::string::npos) laws.push_back(i);
    if (laws.empty() || chance(15)) {
      std::string law = one_of(law_forms);
      for (std::size_t at; (at = law.find('F')) != std::string::npos;) law.replace(at, 1, definition.name);
      definition.lines.push_back("  law " + law);
      return;
    }
    std::string& line = definition.lines[one_of(laws)];
    const std::size_t equals = line.find(" = "), where = line.find(" where ");
    std::vector<std::string> variables;
    for (const std::string& word : words_of(line.substr(0, equals)))
      if (word == "x" || word == "y") variables.push_back(word);
    switch (random_.below(8)) {
      case 0:
        if (where != std::string::npos) line.erase(where);
        break;
      case 1: {
        static const std::vector<std::string> relations = {" > 0", " >= 0", " < 0", " <= 0", " != 0"};
        if (variables.empty()) break;
        if (where != std::string::npos) line.erase(where);
        line += " where " + one_of(variables) + one_of(relations);
        break;
      }
      case 2:
        change_token(line, 6);
        break;
      case 3:
        change_token(line, equals);
        break;
      default: {
        const std::size_t end = where == std::string::npos ? line.size() : where;
        line.replace(equals + 3, end - equals - 3, spoiled(line.substr(equals + 3, end - equals - 3), variables));
      }
    }
  }

  // A function of a body with what is true of it, until it is changed.
  Definition new_function() {
    const auto& [body, true_facts] = one_of(bodies);
    return {"made", {"function made(x) = " + std::string(body) + " : " + true_facts}};
  }

  void change_operator(Definition& definition) {
    std::vector<std::size_t> equations, requirements;
    for (std::size_t i = 1; i < definition.lines.size(); ++i) {
      if (definition.lines[i].find(" out") != std::string::npos) equations.push_back(i);
      if (definition.lines[i].find(" require ") != std::string::npos) requirements.push_back(i);
    }
    switch (random_.below(8)) {
      case 0: {
        static const std::vector<std::string> laws = {"commutative", "associative", "coassociative(axis, sizes)",
                                                      "coassociative(sizes)"};
        definition.lines.insert(definition.lines.begin() + 1, "  law " + one_of(laws));
        break;
      }
      case 1:
        if (!requirements.empty()) {
          if (chance(50))
            definition.lines.erase(definition.lines.begin() + static_cast<std::ptrdiff_t>(one_of(requirements)));
          else
            change_token(definition.lines[one_of(requirements)], 10);
        }
        break;
      case 2:
        change_token(definition.lines[0], definition.lines[0].find('('));
        break;
      case 3:
        change_token(definition.lines[random_.below(definition.lines.size())], 0);
        break;
      case 5: {  // What stays when it is done twice, or not.
        if (equations.empty()) break;
        std::string& line = definition.lines[one_of(equations)];
        const std::size_t equals = line.find(" = "), where = std::min(line.find(" where "), line.size());
        line = line.substr(0, equals + 3) + one_of(unary) + "(" + line.substr(equals + 3, where - equals - 3) + ")" +
               line.substr(where);
        break;
      }
      case 4:
        if (!equations.empty())
          change_token(definition.lines[one_of(equations)], definition.lines[one_of(equations)].find('='));
        break;
      default: {
        if (equations.empty()) break;
        std::string& line = definition.lines[one_of(equations)];
        std::vector<std::string> reads;
        for (const std::string name : {"x", "y"})
          if (const std::size_t at = line.find(name + "[", line.find('=')); at != std::string::npos)
            reads.push_back(line.substr(at, line.find(']', at) + 1 - at));
        const std::size_t equals = line.find(" = ");
        if (!reads.empty() && line.find(" where ") == std::string::npos)
          line = line.substr(0, equals + 3) + spoiled("(" + line.substr(equals + 3) + ")", reads);
      }
    }
  }

 private:
  Random& random_;
};

}  // namespace

std::string Definition::text() const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string SpecificationMutant::text() const {
  std::string text;
  for (const Definition& part : parts) text += part.text();
  return text;
}

void SpecificationPool::add(const std::string& text) {
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    const bool begins =
        line.rfind("function ", 0) == 0 || line.rfind("operator ", 0) == 0 || line.rfind("size ", 0) == 0;
    if (begins) {
      const std::size_t name = line.find(' ') + 1;
      definitions.push_back({line.substr(name, line.find('(') - name), {}});
    }
    if (!definitions.empty()) definitions.back().lines.push_back(line);
  }
}

const Definition* SpecificationPool::find(const std::string& name) const {
  for (const Definition& definition : definitions)
    if (definition.name == name) return &definition;
  return nullptr;
}

std::vector<Definition> SpecificationPool::with_what_it_needs(const Definition& changed) const {
  std::map<std::string, Definition> needed = {{changed.name, changed}};
  std::vector<std::string> open = {changed.text()};
  while (!open.empty()) {
    const std::string text = open.back();
    open.pop_back();
    for (const std::string& word : words_of(text)) {
      const Definition* const definition = find(word);
      if (definition == nullptr || !needed.emplace(word, *definition).second) continue;
      open.push_back(definition->text());
    }
  }
  std::vector<Definition> result;
  for (const Definition& definition : definitions)
    if (definition.name != changed.name && needed.contains(definition.name)) result.push_back(definition);
  result.push_back(changed);
  return result;
}

SpecificationMutant SpecificationMutator::function(std::uint64_t seed, std::uint64_t number) const {
  Random random(seed, "function " + std::to_string(number));
  Changes changes(random);
  Definition changed = changes.chance(35) ? changes.new_function() : changes.one_of(functions_.definitions);
  for (std::uint64_t n = 1 + random.below(2); n > 0; --n) changes.change_function(changed);
  return {changed.name, functions_.with_what_it_needs(changed), changes.places};
}

SpecificationMutant SpecificationMutator::operator_(std::uint64_t seed, std::uint64_t number) const {
  Random random(seed, "operator " + std::to_string(number));
  Changes changes(random);
  Definition changed = changes.one_of(operators_.definitions);
  for (std::uint64_t n = 1 + random.below(2); n > 0; --n) changes.change_operator(changed);
  return {changed.name, functions_.with_what_it_needs(changed), changes.places};
}

std::string SpecificationMutator::bytes(std::uint64_t seed, std::uint64_t number) const {
  Random random(seed, "bytes " + std::to_string(number));
  Changes changes(random);
  SpecificationMutant mutant = changes.chance(50) ? function(seed, number) : operator_(seed, number);
  std::string text = mutant.text();
  for (std::uint64_t n = 1 + random.below(3); n > 0; --n) change_bytes(text, random);
  return text;
}

}  // namespace taso::testing
