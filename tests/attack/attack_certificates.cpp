// The attack on certificates: certificates and files that are tampered with, and whether a wrong one is believed.
//
//   attack_certificates [--seed S] [--count N] [--without-rules] [--expect-falsehood] [--verbose]
//
// taso-opt makes a few models, one at a time; each mutant changes one to three things in what it wrote:
//
//   text       bytes of the certificate
//   structure  steps (left out, twice, exchanged, with another's rule or match), any number or name in steps,
//              ranges and shapes of inputs, and the texts of rules (numbers, conditions, variables)
//   optimized  bytes of the optimized model
//   original   bytes of the original model
//
// Sizes and hashes are made right again, so that only the replay stands between the mutant and its being believed.
// Where the steps can be taken and lead to another file, that file is put in the place of the optimized one: an
// attacker would do so. Rules that are not those that taso-opt used must be proved, as taso-verify --certificate does
// it; with --without-rules, a control that must find something, they need not. What is believed is judged: both models
// are evaluated from the definitions, at several sizes within the ranges. Mutant number i depends on the seed and i
// alone.
//
// Exit code: 0 nothing false is believed; 1 something is (with --expect-falsehood the other way round, and the attack
// ends with the first); 2 wrong command line or set-up, or what nobody tampered with is not believed.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "certificate/replay.h"
#include "onnx_io/builder.h"
#include "onnx_io/model.h"
#include "operators/evaluate.h"
#include "support/file.h"
#include "support/random.h"
#include "tests/attack/common.h"
#include "tests/support/shipped.h"
#include "verifier/verify.h"

namespace taso::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Tensor = RingTensor<double>;

struct Arguments {
  std::uint64_t seed = 1, count = 300;
  bool without_rules = false, expect_falsehood = false, verbose = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto number = [&] { return number_argument(option, ++i == argc ? "" : argv[i]); };
    if (option == "--seed")
      arguments.seed = number();
    else if (option == "--count")
      arguments.count = number();
    else if (option == "--without-rules")
      arguments.without_rules = true;
    else if (option == "--expect-falsehood")
      arguments.expect_falsehood = true;
    else if (option == "--verbose")
      arguments.verbose = true;
    else
      stop("unknown option " + option);
  }
  return arguments;
}

// --- Models: small ones, in which rules fuse, merge, fold and move, at fixed and at symbolic sizes. ---

std::vector<float> weights(std::size_t count, std::size_t& next) {
  std::vector<float> result(count);
  for (float& value : result) value = static_cast<float>(next++ * 7919 % 101) / 50 - 1;
  return result;
}

void build_products(const std::string& path) {
  ModelBuilder model(17, "products");
  model.add_input("x", {2, 4});
  std::size_t next = 0;
  for (const std::string name : {"q", "k"}) {
    model.add_initializer("w" + name, {4, 3}, weights(12, next));
    model.add_initializer("b" + name, {3}, weights(3, next));
    model.add_node("MatMul", {"x", "w" + name}, {"m" + name});
    model.add_node("Add", {"m" + name, "b" + name}, {"s" + name});
    model.add_node("Relu", {"s" + name}, {name});
    model.add_output(name, {2, 3});
  }
  must(model.save(path));
}

void build_convolution(const std::string& path) {
  ModelBuilder model(17, "convolution");
  std::size_t next = 3;
  model.add_symbolic_input("x", {"N", "2", "H", "5"});
  model.add_initializer("w", {2, 2, 3, 3}, weights(36, next));
  model.add_initializer("b", {2, 1, 1}, weights(2, next));
  model.add_node("Conv", {"x", "w"}, {"c"}, {{"pads", {1, 1, 1, 1}}});
  model.add_node("Add", {"c", "b"}, {"a"});
  model.add_node("Relu", {"a"}, {"r"});
  model.add_node("Relu", {"r"}, {"rr"});
  model.add_node("Transpose", {"rr"}, {"t"}, {{"perm", {0, 1, 3, 2}}});
  model.add_node("Transpose", {"t"}, {"u"}, {{"perm", {0, 1, 3, 2}}});
  model.add_node("Neg", {"u"}, {"n"});
  model.add_node("Neg", {"n"}, {"y"});
  model.add_symbolic_output("y", {"N", "2", "H", "5"});
  must(model.save(path));
}

void build_attention(const std::string& path) {
  ModelBuilder model(17, "attention");
  std::size_t next = 11;
  model.add_symbolic_input("x", {"N", "S", "4"});
  for (const std::string name : {"q", "k", "v"}) {
    model.add_initializer("w" + name, {4, 4}, weights(16, next));
    model.add_node("MatMul", {"x", "w" + name}, {name});
  }
  model.add_node("Transpose", {"k"}, {"kt"}, {{"perm", {0, 2, 1}}});
  model.add_node("MatMul", {"q", "kt"}, {"s"});
  model.add_initializer("scale", {1}, std::vector<float>{0.5F});
  model.add_node("Mul", {"s", "scale"}, {"d"});
  model.add_node("Softmax", {"d"}, {"p"}, {{"axis", -1}});
  model.add_node("MatMul", {"p", "v"}, {"o"});
  model.add_node("Relu", {"o"}, {"r"});
  model.add_node("Relu", {"r"}, {"y"});
  model.add_symbolic_output("y", {"N", "S", "4"});
  must(model.save(path));
}

// A window of 48 rows covers every image that has no more: the only step holds in its range and not beyond.
constexpr const char* pooling_rules = R"(
rule columns_as_window:
  neg(neg(reduce_max(x; axes=[-2]))) => max_pool2d(x; kernel=[48, 1], strides=[48, 1], pads=[0, 0, 47, 0])
)";

void build_pooling(const std::string& path) {
  ModelBuilder model(17, "pooling");
  model.add_symbolic_input("x", {"N", "2", "H", "3"});
  model.add_node("ReduceMax", {"x"}, {"m"}, {{"axes", {2}}});
  model.add_node("Neg", {"m"}, {"n"});
  model.add_node("Neg", {"n"}, {"y"});
  model.add_symbolic_output("y", {"N", "2", "1", "3"});
  must(model.save(path));
}

/// What taso-opt made of a model.
struct Subject {
  std::string name, original, optimized;  ///< Bytes of the files.
  std::string text;                       ///< The certificate.
  Certificate certificate;
};

Subject make_subject(const fs::path& folder, const std::string& name, void (*build)(const std::string&),
                     const std::string& options) {
  const std::string model = (folder / "m.onnx").string(), optimized = (folder / "o.onnx").string();
  build(model);
  const std::string command = fmt::format(
      "cd '{}' && XDG_CACHE_HOME=. '{}' --specs '{}/specs' m.onnx -o o.onnx --cost launches -q {} > log 2>&1",
      folder.string(), TASO_OPT, TASO_SOURCE_DIR, options);
  if (std::system(command.c_str()) != 0)
    stop(fmt::format("{}: taso-opt fails: {}", name, must(read_file((folder / "log").string()))));
  Subject subject{
      name, must(read_file(model)), must(read_file(optimized)), must(read_file((folder / "o.taso.json").string())), {}};
  subject.certificate = must(parse_certificate(subject.text, name));
  if (subject.certificate.steps.empty()) stop(name + ": taso-opt takes no step");
  return subject;
}

// --- Mutations ---

void collect_leaves(ordered_json& json, std::vector<ordered_json*>& leaves) {
  if (!json.is_structured()) {
    leaves.push_back(&json);
    return;
  }
  for (ordered_json& element : json) collect_leaves(element, leaves);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Words of a rule's text: numbers and names.
std::vector<std::pair<std::size_t, std::size_t>> words_of(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) words.emplace_back(i, end - i);
    i = end + 1;
  }
  return words;
}

/// What a rule's target says, or its conditions: a rule whose source is another has no place in the model.
void change_rule(std::string& text, Random& random) {
  const std::size_t line = text.find("\n  if ");
  if (line != std::string::npos && random.below(4) == 0) {
    text.erase(line, text.find('\n', line + 1) - line);
    return;
  }
  std::size_t begin = text.find("=>");
  if (begin == std::string::npos) return;
  begin += 2;
  std::size_t end = text.size();
  for (const char* clause : {"\n  if ", "\n  where ", "\n  proof ", "\n  class ", "\n  expect "})
    end = std::min(end, text.find(clause, begin));
  std::string target = text.substr(begin, end - begin);
  if (random.below(4) == 0) {
    static const std::vector<std::string> functions = {"neg", "relu", "abs", "exp"};
    target = " " + functions[random.below(functions.size())] + "(" + target + ")";
  } else {
    const auto words = words_of(target);
    if (words.empty()) return;
    const auto [place, length] = words[random.below(words.size())];
    if (std::isdigit(static_cast<unsigned char>(target[place])) != 0) {
      static const std::vector<std::string> numbers = {"0", "1", "2", "3", "-1", "4", "8", "50"};
      target.replace(place, length, numbers[random.below(numbers.size())]);
    } else {
      const auto [from, size] = words[random.below(words.size())];
      target.replace(place, length, std::string(target.substr(from, size)));
    }
  }
  text.replace(begin, end - begin, target);
}

void change_structure(ordered_json& json, Random& random) {
  ordered_json& steps = json["steps"];
  const auto step = [&]() -> ordered_json& { return steps[random.below(steps.size())]; };
  const std::uint64_t kind = random.below(12);
  if (kind >= 5 && kind <= 6) {
    ordered_json& rule = json["rules"][random.below(json["rules"].size())];
    std::string text = rule.get<std::string>();
    change_rule(text, random);
    rule = text;
    return;
  }
  if (kind == 7 && json["symbols"].is_object() && !json["symbols"].empty()) {
    std::vector<ordered_json*> ranges;
    for (ordered_json& range : json["symbols"]) ranges.push_back(&range);
    ordered_json& range = *ranges[random.below(ranges.size())];
    static const std::vector<ordered_json> others = {nullptr, {0, nullptr}, {1, nullptr}, {1, 1}, {2, 3}, {1, 64}};
    range = others[random.below(others.size())];
    return;
  }
  if (kind == 8) {
    static const std::vector<const char*> parts = {"symbols", "input_shapes"};
    const char* part = parts[random.below(parts.size())];
    json[part] = random.below(2) == 0 ? ordered_json(nullptr) : ordered_json::object();
    return;
  }
  if (steps.empty()) return;
  switch (kind) {
    case 0:
      steps.erase(random.below(steps.size()));
      return;
    case 1:
      steps.push_back(ordered_json(step()));
      return;
    case 2:
      std::swap(step(), step());
      return;
    case 3:
      step()["rule"] = ordered_json(step()["rule"]);
      return;
    case 4: {
      static const std::vector<const char*> parts = {"variables", "attributes", "nodes", "operand_begin", "port_begin"};
      const char* part = parts[random.below(parts.size())];
      step()[part] = ordered_json(step()[part]);
      return;
    }
    default:
      break;
  }
  std::vector<ordered_json*> leaves;
  collect_leaves(random.below(4) == 0 && !json["input_shapes"].empty() ? json["input_shapes"] : steps, leaves);
  if (leaves.empty()) return;
  ordered_json& leaf = *leaves[random.below(leaves.size())];
  if (leaf.is_number_integer()) {
    const std::int64_t value = leaf.get<std::int64_t>();
    switch (random.below(5)) {
      case 0:
        leaf = value + 1;
        return;
      case 1:
        leaf = value - 1;
        return;
      case 2:
        leaf = static_cast<std::int64_t>(random.below(24)) - 1;
        return;
      case 3:
        leaf = nullptr;
        return;
      default:
        leaf = ordered_json(*leaves[random.below(leaves.size())]);
        return;
    }
  }
  if (leaf.is_null())
    leaf = static_cast<std::int64_t>(random.below(8)) - 1;
  else
    leaf = ordered_json(*leaves[random.below(leaves.size())]);
}

// --- What is believed, and whether it is right ---

enum class Judgement { right, wrong, not_judged };

class Judge {
 public:
  /// Whether the optimized model computes what the original does; `why` says where not.
  Judgement judge(const Certificate& certificate, const std::string& original, const std::string& optimized,
                  Random& random, std::string& why) {
    ImportOptions import;
    import.input_shapes = certificate.input_shapes;
    const Expected<Model> model = Model::load(original, test::registry(), import);
    if (!model) return Judgement::not_judged;
    bool judged = false;
    for (int round = 0; round < 6; ++round) {
      ImportOptions at = import;
      for (const Symbol& symbol : model->symbols()) {
        SizeRange range;
        range.least = 1;
        if (certificate.symbols)
          if (const auto given = certificate.symbols->find(symbol.name); given != certificate.symbols->end())
            range = given->second;
        const std::int64_t least = std::max<std::int64_t>(range.least, 0);
        const std::int64_t most = std::min<std::int64_t>(most_of(range), least + 12);
        at.symbol_sizes[symbol.name] =
            round == 0   ? least
            : round == 1 ? most
            : round == 2 && symbol.axis > 0
                ? std::min(most_of(range), far_size)
                : least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
      }
      const Judgement one = judge_at(at, original, optimized, random, why);
      if (one == Judgement::wrong) {
        why += " at " + to_string(at.symbol_sizes);
        return one;
      }
      judged = judged || one == Judgement::right;
      if (model->symbols().empty()) break;
    }
    return judged ? Judgement::right : Judgement::not_judged;
  }

 private:
  // Beyond every number that a rule of a subject names.
  static constexpr std::int64_t far_size = 60;
  static std::int64_t most_of(const SizeRange& range) { return range.most.value_or(1 << 20); }

  static bool can_evaluate(const Graph& graph) {
    std::int64_t elements = 0;
    for (const NodeId id : graph.topological_order()) {
      const Node& node = graph.node(id);
      if (node.kind == NodeKind::opaque) return false;
      for (const TensorType& type : node.outputs) {
        std::int64_t volume = 1;
        for (const std::int64_t extent : type.shape) {
          if (extent > 4096) return false;
          volume *= std::max<std::int64_t>(extent, 1);
          if (volume > 100'000) return false;
        }
        elements += volume;
      }
    }
    return elements < 400'000;
  }

  Judgement judge_at(const ImportOptions& import, const std::string& original, const std::string& optimized,
                     Random& random, std::string& why) {
    const OperatorRegistry& registry = test::registry();
    const Expected<Model> before = Model::load(original, registry, import);
    if (!before || !can_evaluate(before->graph())) return Judgement::not_judged;
    ImportOptions same;
    const Expected<Model> declared = Model::load(optimized, registry, same);
    if (!declared) {
      why = "the optimized model cannot be read: " + declared.error().to_string();
      return Judgement::wrong;
    }
    for (const Symbol& symbol : declared->symbols())
      if (const auto size = import.symbol_sizes.find(symbol.name); size != import.symbol_sizes.end())
        same.symbol_sizes.insert(*size);
    const Expected<Model> after = Model::load(optimized, registry, same);
    if (!after) {
      why = "the optimized model cannot be read: " + after.error().to_string();
      return Judgement::wrong;
    }
    if (!can_evaluate(after->graph())) return Judgement::not_judged;
    std::vector<Tensor> inputs;
    for (const NodeId input : before->graph().inputs()) {
      const TensorType& type = before->graph().node(input).outputs.at(0);
      if (type.element != ElementType::f32) return Judgement::not_judged;
      Tensor tensor;
      tensor.shape = type.shape;
      std::int64_t volume = 1;
      for (const std::int64_t extent : type.shape) volume *= extent;
      for (std::int64_t i = 0; i < volume; ++i) tensor.elements.push_back(random.uniform() * 4 - 2);
      inputs.push_back(std::move(tensor));
    }
    DoubleRing ring;
    const auto expected = evaluate(before->graph(), registry, ring, inputs);
    if (!expected) return Judgement::not_judged;
    const auto found = evaluate(after->graph(), registry, ring, inputs);
    if (!found) {
      why = "the optimized model cannot be evaluated: " + found.error().to_string();
      return Judgement::wrong;
    }
    if (found->size() != expected->size()) {
      why = "another number of outputs";
      return Judgement::wrong;
    }
    for (std::size_t output = 0; output < expected->size(); ++output) {
      const Tensor &a = (*expected)[output], &b = (*found)[output];
      if (a.shape != b.shape) {
        why = fmt::format("output {} has another shape", output);
        return Judgement::wrong;
      }
      double scale = 1;
      for (const double value : a.elements)
        if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
      for (std::size_t i = 0; i < a.elements.size(); ++i)
        if (std::isfinite(a.elements[i]) && !(std::abs(a.elements[i] - b.elements[i]) <= 1e-4 * scale)) {
          why = fmt::format("output {} has {} where {} is right", output, b.elements[i], a.elements[i]);
          return Judgement::wrong;
        }
    }
    return Judgement::right;
  }
};

/// Rules that were proved, by their text: as taso-verify --certificate has them.
class Prover {
 public:
  Prover() : verifier_(test::registry(), {}, VerifierOptions{}) {}
  void believe(const std::string& text) { stored_[text] = text; }
  /// The rule with all conditions; nothing if it is not proved.
  std::optional<std::string> stored(const std::string& text) {
    const auto known = stored_.find(text);
    if (known != stored_.end()) return known->second;
    std::optional<std::string>& result = stored_[text];
    const auto rules = parse_rules(text, "a certificate", test::registry());
    if (!rules || rules->size() != 1) return result;
    const Verdict verdict = verifier_.verify((*rules)[0]);
    if (verdict.kind == VerdictKind::proved)
      result = to_string(stored_form((*rules)[0], verdict, test::registry()), test::registry());
    return result;
  }

 private:
  Verifier verifier_;
  std::map<std::string, std::optional<std::string>> stored_;
};

struct Counts {
  std::uint64_t mutants = 0, unreadable = 0, refused = 0, forged = 0, not_proved = 0, believed = 0, not_judged = 0,
                wrong = 0;
};

class Attack {
 public:
  Attack(const Arguments& arguments, fs::path folder) : arguments_(arguments), folder_(std::move(folder)) {
    fs::create_directories(folder_ / "repeated");
  }

  void add(Subject subject) {
    for (const std::string& rule : subject.certificate.rules) prover_.believe(rule);
    subjects_.push_back(std::move(subject));
  }

  int run() {
    // What is not tampered with is believed, and right; otherwise nothing below means anything.
    for (const Subject& subject : subjects_) {
      Random random(arguments_.seed, "honest");
      if (attempt(subject, subject.text, subject.original, subject.optimized, "honest", random) != Judgement::right)
        stop(subject.name + ": what taso-opt wrote is not believed");
    }
    counts_ = {};
    for (std::uint64_t i = 0; i < arguments_.count && !(arguments_.expect_falsehood && wrong() > 0); ++i) mutate(i);
    for (const auto& [kind, c] : counts_)
      std::printf(
          "%-9s %llu mutants: %llu unreadable, %llu refused, %llu with a rule that is not proved, %llu believed "
          "(%llu with a file of their own, %llu not judged), %llu of them wrong\n",
          kind.c_str(), static_cast<unsigned long long>(c.mutants), static_cast<unsigned long long>(c.unreadable),
          static_cast<unsigned long long>(c.refused), static_cast<unsigned long long>(c.not_proved),
          static_cast<unsigned long long>(c.believed), static_cast<unsigned long long>(c.forged),
          static_cast<unsigned long long>(c.not_judged), static_cast<unsigned long long>(c.wrong));
    return (wrong() == 0) != arguments_.expect_falsehood ? 0 : 1;
  }

 private:
  [[nodiscard]] std::uint64_t wrong() const {
    std::uint64_t sum = 0;
    for (const auto& [kind, c] : counts_) sum += c.wrong;
    return sum;
  }

  void mutate(std::uint64_t number) {
    Random random(arguments_.seed, "mutant " + std::to_string(number));
    const Subject& subject = subjects_[random.below(subjects_.size())];
    std::string text = subject.text, original = subject.original, optimized = subject.optimized;
    const std::uint64_t draw = random.below(20);
    const char* kind = draw < 4 ? "text" : draw < 14 ? "structure" : draw < 17 ? "optimized" : "original";
    ordered_json json;
    if (draw >= 4 && draw < 14) json = ordered_json::parse(subject.text);
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      if (draw < 4)
        change_bytes(text, random);
      else if (draw < 14)
        change_structure(json, random);
      else
        change_bytes(draw < 17 ? optimized : original, random);
    }
    if (!json.is_null()) text = json.dump();
    if (text == subject.text && original == subject.original && optimized == subject.optimized) return;
    Counts& counts = counts_[kind];
    ++counts.mutants;
    (void)attempt(subject, text, original, optimized, kind, random, number);
  }

  /// Believed and right, believed and wrong, or not judged: not believed, too.
  Judgement attempt(const Subject& subject, const std::string& text, const std::string& original,
                    const std::string& optimized, const std::string& kind, Random& random, std::uint64_t number = 0) {
    Counts& counts = counts_[kind];
    Expected<Certificate> certificate = parse_certificate(text, "c.taso.json");
    if (!certificate) {
      ++counts.unreadable;
      return Judgement::not_judged;
    }
    const std::string model = (folder_ / "m.onnx").string(), result = (folder_ / "o.onnx").string();
    must(write_file_atomically(model, original));
    must(write_file_atomically(result, optimized));
    const auto make_right = [](FileIdentity& identity, const std::string& path) {
      const std::string name = identity.name;
      identity = must(identify_file(path));
      identity.name = name;
    };
    certificate->external_data.reset();
    certificate->optimized.name = "o.onnx";
    make_right(certificate->original, model);
    make_right(certificate->optimized, result);
    const std::string repeated = (folder_ / "repeated").string();
    const auto repeat = [&] { return replay(*certificate, model, result, test::registry(), repeated); };
    Expected<Replay> outcome = repeat();
    bool forged = false;
    if (!outcome && optimized == subject.optimized &&
        outcome.error().message.find("the steps lead to another file") != std::string::npos) {
      must(write_file_atomically(result, must(read_file(repeated + "/o.onnx"))));
      make_right(certificate->optimized, result);
      outcome = repeat();
      forged = true;
    }
    if (!outcome) {
      ++counts.refused;
      return Judgement::not_judged;
    }
    if (!arguments_.without_rules) {
      bool changed = false;
      for (const Substitution& rule : outcome->rules) {
        const std::string said = to_string(rule, test::registry());
        const std::optional<std::string> stored = prover_.stored(said);
        if (!stored) {
          ++counts.not_proved;
          return Judgement::not_judged;
        }
        if (*stored == said) continue;
        for (std::string& other : certificate->rules) {
          const auto parsed = parse_rules(other, "a certificate", test::registry());
          if (parsed && parsed->size() == 1 && (*parsed)[0].name == rule.name) other = *stored;
        }
        changed = true;
      }
      if (changed && !repeat()) {
        ++counts.refused;
        return Judgement::not_judged;
      }
    }
    ++counts.believed;
    counts.forged += forged ? 1 : 0;
    std::string why;
    const Judgement judgement = judge_.judge(*certificate, model, result, random, why);
    counts.not_judged += judgement == Judgement::not_judged ? 1 : 0;
    if (judgement == Judgement::wrong) {
      ++counts.wrong;
      if (counts.wrong <= 3 || arguments_.verbose)
        std::printf("mutant %llu of %s (%s) is believed and wrong: %s\n%s\n", static_cast<unsigned long long>(number),
                    subject.name.c_str(), kind.c_str(), why.c_str(),
                    arguments_.verbose ? to_json(*certificate).c_str() : "");
    }
    return judgement;
  }

  Arguments arguments_;
  fs::path folder_;
  std::vector<Subject> subjects_;
  Prover prover_;
  Judge judge_;
  std::map<std::string, Counts> counts_;
};

int attack(const Arguments& arguments) {
  std::string pattern = (fs::temp_directory_path() / "taso-attack-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) stop("cannot make a temporary folder");
  const fs::path folder = pattern;
  Attack attack(arguments, folder);
  attack.add(make_subject(folder, "products", build_products, ""));
  attack.add(make_subject(folder, "convolution", build_convolution, "--range H=1:40"));
  attack.add(make_subject(folder, "attention", build_attention, ""));
  must(write_file_atomically((folder / "pooling.rules").string(), pooling_rules));
  attack.add(make_subject(folder, "pooling", build_pooling, "--rules pooling.rules --range H=1:48"));
  const int code = attack.run();
  std::error_code error;
  fs::remove_all(folder, error);
  return code;
}

}  // namespace
}  // namespace taso::testing

int main(int argc, char** argv) { return taso::testing::attack(taso::testing::parse(argc, argv)); }
