// The standard's operator tests (onnx/backend/test/data/node, in Debian the package libonnx-testdata) through the whole
// of taso: import, optimization, export, execution.
//
//   operator_tests FOLDER [--plant-fault] [--carried FILE] [--list] [NAME...]
//
// FOLDER holds a folder NAME for each test: model.onnx, test_data_set_0/input_*.pb, output_*.pb. With --plant-fault the
// recorded outputs are taken for one larger than they are: each test that is right must then be found wrong. With
// --carried the tests that are right in no variant must be those that FILE lists (read_reasons), and no others. --list
// prints each of them with what is carried and why.
// Each model is taken in several variants: as published, where all parameters are graph inputs; with every input but
// the first made an initializer, as models have parameters; with all inputs made initializers, so that everything is
// folded; with the first of several outputs only. A variant ends in one of
//   right    no opaque node: the graph as imported, the optimized graph, the written file and the file with every node
//            lowered anew compute the recorded outputs;
//   opaque   some node is carried: it stands in the written file as it was, and what lies between carried
//            nodes computes the same;
//   refused  an error of code bad_input in one line;
// or it is wrong. In all variants the written file must pass onnx's checker, and keep inputs and outputs; where nothing
// was to be done, its bytes. The models are valid, so a refusal is a fault as well: it makes the test fail like a wrong
// number does.
//
// Exit code: 0, 1 if something is wrong or refused, 2 for wrong usage, 77 without the folder.
#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "graph/reals.h"
#include "onnx_io/model.h"
#include "onnx_io/tensor_file.h"
#include "operators/registry.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/optimize.h"
#include "optimizer/runtime_target.h"
#include "runtime/executor.h"

namespace taso {
namespace {

/// As onnx's own backend tests compare.
constexpr double relative_tolerance = 1e-3, absolute_tolerance = 1e-6;

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

enum class Verdict { right, opaque, refused, wrong };

struct Outcome {
  Verdict verdict = Verdict::wrong;
  std::string reason;  // Why it is refused or wrong; which operator is carried, and why.
};

Outcome wrong(std::string reason) { return {Verdict::wrong, std::move(reason)}; }

/// The recorded tensors of a test: input_0.pb, ... (or output_0.pb). Nothing where one is no tensor.
std::vector<std::string> recorded_files(const std::string& folder, const std::string& kind) {
  std::vector<std::string> files;
  for (int i = 0;; ++i) {
    const std::string path = folder + "/test_data_set_0/" + kind + "_" + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(path)) return files;
    files.push_back(path);
  }
}

/// Of results in a type: what is computed in it may be a few roundings away.
double tolerance_of(ElementType type) {
  constexpr double bf16_steps = 4.0 / 256, f16_steps = 4.0 / 2048;
  return type == ElementType::bf16 ? bf16_steps : type == ElementType::f16 ? f16_steps : relative_tolerance;
}

/// What is recorded, where it is bf16 that numpy had no type for: its bits.
std::vector<double> numbers_of(const ConstantData& recorded, const TensorType& as) {
  if (recorded.type().element != ElementType::u16 || as.element != ElementType::bf16)
    return HostTensor::of_constant(recorded).to_doubles();
  const std::span<const std::byte> bits = recorded.dense_bytes();
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < as.elements(); ++i)
    numbers.push_back(load_real(bits.data(), as.element, static_cast<std::size_t>(i)));
  return numbers;
}

/// What is recorded of an input, where it is bf16 that numpy had no type for: the tensor that the bits are.
std::shared_ptr<const ConstantData> recorded_as(const std::shared_ptr<const ConstantData>& recorded,
                                                const onnx::ValueInfoProto& input) {
  if (recorded->type().element != ElementType::u16 ||
      input.type().tensor_type().elem_type() != onnx::TensorProto::BFLOAT16)
    return recorded;
  TensorType type = recorded->type();
  type.element = ElementType::bf16;
  const std::span<const std::byte> bits = recorded->dense_bytes();
  return ConstantData::own(std::move(type), {bits.begin(), bits.end()});
}

/// What is different, or nothing.
std::optional<std::string> difference(const HostTensor& actual, const ConstantData& expected, double fault) {
  const bool is_bits =
      actual.type().element == ElementType::bf16 && expected.type().element == ElementType::u16 && expected.is_dense();
  if (!(actual.type() == expected.type()) && !(is_bits && actual.type().shape == expected.type().shape))
    return "is " + to_string(actual.type()) + ", recorded is " + to_string(expected.type());
  const std::vector<double> left = actual.to_doubles();
  std::vector<double> right = numbers_of(expected, actual.type());
  const double relative = tolerance_of(actual.type().element);
  for (double& value : right) value += fault;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const bool same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i])) ||
                      std::abs(left[i] - right[i]) <= absolute_tolerance + relative * std::abs(right[i]);
    if (!same)
      return "element " + std::to_string(i) + " is " + std::to_string(left[i]) + ", recorded is " +
             std::to_string(right[i]);
  }
  return std::nullopt;
}

bool is_static(const onnx::ValueInfoProto& info) {
  if (!info.type().tensor_type().has_shape()) return false;
  const auto& extents = info.type().tensor_type().shape().dim();
  return std::all_of(extents.begin(), extents.end(), [](const auto& extent) { return extent.has_dim_value(); });
}

using NodesByOutput = std::map<std::string, const onnx::NodeProto*>;

/// The nodes of a graph by the names that they define.
NodesByOutput nodes_by_output(const onnx::GraphProto& graph) {
  NodesByOutput nodes;
  for (const onnx::NodeProto& node : graph.node())
    for (const std::string& name : node.output())
      if (!name.empty()) nodes[name] = &node;
  return nodes;
}

/// The same message with its fields in the order of their numbers.
std::string canonical(const std::string& bytes) {
  onnx::ModelProto model;
  return model.ParseFromString(bytes) ? model.SerializeAsString() : std::string();
}

/// Names of nodes that are carried.
std::set<std::string> opaque_names(const Graph& graph) {
  std::set<std::string> names;
  for (const NodeId id : graph.topological_order())
    if (graph.node(id).kind == NodeKind::opaque) names.insert(graph.node(id).name);
  return names;
}

class Tests {
 public:
  /// `fault` is added to every recorded output.
  Tests(const OperatorRegistry& registry, std::vector<Substitution> rules, double fault)
      : registry_(registry),
        fault_(fault),
        rules_(std::move(rules), registry),
        library_(registry),
        target_(library_, {.threads = 1, .counting = true, .cancelled = {}}),
        database_(CostDatabase::in_memory(target_.identity())),
        measured_(target_, database_, false),
        cost_(make_cost_model(parse_cost_formula("launches").value(), measured_)),
        scratch_(std::filesystem::temp_directory_path() / ("operator_tests_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(scratch_);
  }
  ~Tests() { std::filesystem::remove_all(scratch_); }

  /// One variant: `bytes` is the model, whose inputs are `inputs` in this order.
  Outcome run(const std::string& bytes, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs) {
    onnx::ModelProto original;
    if (!original.ParseFromString(bytes)) return wrong("the test's model cannot be parsed");
    std::vector<std::shared_ptr<const ConstantData>> given;
    ImportOptions import;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      given.emplace_back();
      const int place = static_cast<int>(i);
      if (place >= original.graph().input_size() || !original.graph().input(place).type().has_tensor_type()) continue;
      onnx::TensorProto recorded;
      if (!recorded.ParseFromString(read_bytes(inputs[i]))) return wrong(inputs[i] + " cannot be parsed");
      if (!is_static(original.graph().input(place)))
        import.input_shapes.emplace(original.graph().input(place).name(),
                                    Shape(recorded.dims().begin(), recorded.dims().end()));
      // Strings are for operators that are carried.
      const auto tensor = load_tensor(inputs[i]);
      if (tensor) given.back() = recorded_as(*tensor, original.graph().input(place));
    }
    const auto model = Model::parse(bytes, "model.onnx", registry_, import);
    if (!model) return refused(model.error());
    for (const IllTypedNode& node : model->ill_typed_nodes()) return wrong(node.node + " is ill-typed: " + node.reason);
    const auto result = optimize(model->graph(), rules_, library_, measured_, *cost_, {});
    if (!result) return wrong("optimize: " + result.error().to_string());

    const std::string file = scratch_ / "out.onnx", again = scratch_ / "anew.onnx";
    const auto saved = model->save(result->graph, file);
    if (!saved) return wrong("save: " + saved.error().to_string());
    SaveOptions anew;
    anew.verbatim = false;
    if (const auto lowered = model->save(result->graph, again, anew); !lowered)
      return wrong("save anew: " + lowered.error().to_string());
    const std::string written = read_bytes(file);
    for (const std::string& each : {written, read_bytes(again)})
      if (const auto fault = compare_models(original, each, *model, result->graph)) return wrong(*fault);
    const bool untouched = result->applications.empty() && import.input_shapes.empty() &&
                           saved->nodes == saved->verbatim_nodes && saved->nodes == original.graph().node_size();
    if (untouched && canonical(written) != canonical(bytes))
      return wrong("nothing was to be done, but the file differs");

    if (const std::vector<CarriedNode> carried = model->carried_nodes(); !carried.empty()) {
      std::map<std::string, std::string> first;  // of each operator
      for (const CarriedNode& node : carried) first.emplace(node.op, node.reason);
      std::string reason;
      for (const auto& [op, why] : first) reason += (reason.empty() ? "" : "; ") + op + ": " + why;
      for (const std::string& path : {file, again}) {
        const auto reread = Model::load(path, registry_, import);
        if (!reread) return wrong("written, but not read: " + reread.error().to_string());
        // What was computed is constant now, and more may be computed of it; a node that an Identity gave the name of a
        // graph output has that name. Then parts do not correspond.
        if (opaque_names(reread->graph()) != opaque_names(model->graph())) continue;
        const auto checked = check(model->graph(), reread->graph(), library_, {});
        if (!checked) return wrong("the parts between carried nodes: " + checked.error().to_string());
        if (!checked->passed) return wrong("the parts between carried nodes differ: " + checked->summary());
      }
      return {Verdict::opaque, reason};
    }
    if (const auto fault = execute(model->graph(), given, outputs)) return wrong("as imported: " + *fault);
    if (const auto fault = execute(result->graph, given, outputs)) return wrong("optimized: " + *fault);
    for (const std::string& path : {file, again}) {
      const auto reread = Model::load(path, registry_, {});
      if (!reread) return wrong("written, but not read: " + reread.error().to_string());
      if (const std::vector<CarriedNode> carried = reread->carried_nodes(); !carried.empty())
        return wrong("written, but carried when read: " + carried[0].op + ": " + carried[0].reason);
      if (const auto fault = execute(reread->graph(), given, outputs))
        return wrong((path == file ? "written: " : "written anew: ") + *fault);
    }
    return {Verdict::right, ""};
  }

 private:
  static Outcome refused(const Error& error) {
    const std::string text = error.to_string();
    if (error.code != ErrorCode::bad_input || text.find('\n') != std::string::npos)
      return wrong("refused, but not as bad input in one line: " + text);
    return {Verdict::refused, text};
  }

  /// What onnx's checker says of a written file whose original it accepts, if it knows the operator set.
  static std::optional<std::string> checker_refuses(const onnx::ModelProto& original, const onnx::ModelProto& result) {
    const int known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at(onnx::ONNX_DOMAIN).second;
    for (const onnx::OperatorSetIdProto& set : original.opset_import())
      if (set.domain().empty() && set.version() > known) return std::nullopt;
    try {
      onnx::checker::check_model(result);
    } catch (const std::exception& fault) {
      try {
        onnx::checker::check_model(original);
        return std::string("onnx's checker refuses the written file: ") + fault.what();
      } catch (const std::exception&) {
      }
    }
    return std::nullopt;
  }

  /// The node that defines what a node of the original does: under the same name, or under that of another one for it:
  /// an Identity, or a cast to the type that is there.
  static const onnx::NodeProto* counterpart(const onnx::NodeProto& node, const std::string& name,
                                            const onnx::GraphProto& original, const NodesByOutput& nodes) {
    if (const auto place = nodes.find(name); place != nodes.end()) return place->second;
    for (const onnx::NodeProto& other : original.node()) {
      const bool names = other.op_type() == "Identity" || other.op_type() == "Cast" || other.op_type() == "CastLike";
      if (!names || other.input(0) != name) continue;
      const auto place = nodes.find(other.output(0));
      if (place != nodes.end() && place->second->op_type() == node.op_type()) return place->second;
    }
    return nullptr;
  }

  /// What the written file lacks of the original.
  std::optional<std::string> compare_models(const onnx::ModelProto& original, const std::string& written,
                                            const Model& model, const Graph& graph) const {
    onnx::ModelProto result;
    if (!result.ParseFromString(written)) return "the written file cannot be parsed";
    if (const auto fault = checker_refuses(original, result)) return fault;
    auto declared = [](const auto& infos) {
      std::vector<std::pair<std::string, int>> names;
      for (const auto& info : infos) names.emplace_back(info.name(), info.type().value_case());
      return names;
    };
    if (declared(original.graph().input()) != declared(result.graph().input())) return "graph inputs differ";
    if (declared(original.graph().output()) != declared(result.graph().output())) return "graph outputs differ";
    const auto originals = nodes_by_output(original.graph()), nodes = nodes_by_output(result.graph());
    std::set<const onnx::NodeProto*> carried;
    for (NodeId id = 0; id < graph.id_bound(); ++id)
      if (graph.contains(id) && graph.node(id).kind == NodeKind::opaque && graph.node(id).origin >= 0)
        carried.insert(&original.graph().node(graph.node(id).origin));
    for (const onnx::NodeProto& node : original.graph().node()) {
      if (!carried.contains(&node)) continue;
      const auto named =
          std::find_if(node.output().begin(), node.output().end(), [](const auto& o) { return !o.empty(); });
      if (named == node.output().end()) continue;
      const onnx::NodeProto* const place = counterpart(node, *named, original.graph(), nodes);
      if (place == nullptr) return node.op_type() + " that defines " + *named + " is dropped";
      onnx::NodeProto kept = *place;
      const auto first = std::distance(node.output().begin(), named);
      kept.set_output(static_cast<int>(first), *named);
      if (kept.input_size() != node.input_size())
        return node.op_type() + " that defines " + *named + " has other inputs";
      for (int i = 0; i < node.input_size(); ++i) {
        // What a node makes that is not carried may have another name; its value is compared below.
        const auto maker = originals.find(node.input(i));
        if (kept.input(i).empty() == node.input(i).empty() && maker != originals.end() &&
            !carried.contains(maker->second))
          kept.set_input(i, node.input(i));
      }
      if (kept.SerializeAsString() != node.SerializeAsString())
        return node.op_type() + " that defines " + *named + " is changed";
    }
    const std::size_t expected = model.carried_nodes().size();
    if (carried.size() != expected)
      return std::to_string(expected) + " nodes were carried, " + std::to_string(carried.size()) + " are left";
    return std::nullopt;
  }

  /// What the graph computes otherwise than recorded.
  std::optional<std::string> execute(const Graph& graph, const std::vector<std::shared_ptr<const ConstantData>>& given,
                                     const std::vector<std::string>& outputs) {
    auto executor = Executor::create(graph, library_);
    if (!executor) return executor.error().to_string();
    std::vector<HostTensor> inputs;
    for (std::size_t i = 0; i < executor->input_types().size(); ++i) {
      if (i >= given.size() || !given[i]) return "input " + std::to_string(i) + " is not recorded";
      inputs.push_back(HostTensor::of_constant(*given[i]));
    }
    const auto actual = executor->run(inputs);
    if (!actual) return actual.error().to_string();
    if (actual->size() != outputs.size())
      return "there are " + std::to_string(actual->size()) + " outputs, recorded are " + std::to_string(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto expected = load_tensor(outputs[i]);
      if (!expected) return expected.error().to_string();
      if (const auto found = difference((*actual)[i], **expected, fault_))
        return "output " + std::to_string(i) + " " + *found;
    }
    return std::nullopt;
  }

  const OperatorRegistry& registry_;
  double fault_;
  RuleIndex rules_;
  KernelLibrary library_;
  RuntimeTarget target_;
  CostDatabase database_;
  MeasuredCosts measured_;
  std::unique_ptr<CostModel> cost_;
  std::filesystem::path scratch_;
};

/// The model with its inputs from number `first` on as initializers; nothing if that changes nothing, or one is no
/// tensor.
std::optional<std::string> with_constants(const std::string& bytes, const std::vector<std::string>& inputs,
                                          std::size_t first) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || inputs.size() <= first) return std::nullopt;
  onnx::GraphProto& graph = *model.mutable_graph();
  if (graph.input_size() != static_cast<int>(inputs.size())) return std::nullopt;
  for (std::size_t i = first; i < inputs.size(); ++i) {
    const onnx::ValueInfoProto& input = graph.input(static_cast<int>(i));
    onnx::TensorProto tensor;
    if (!input.type().has_tensor_type() || !tensor.ParseFromString(read_bytes(inputs[i]))) return std::nullopt;
    tensor.set_name(input.name());
    // numpy has no bfloat16: the bits are recorded as integers.
    if (input.type().tensor_type().elem_type() == onnx::TensorProto::BFLOAT16)
      tensor.set_data_type(onnx::TensorProto::BFLOAT16);
    *graph.add_initializer() = std::move(tensor);
  }
  while (graph.input_size() > static_cast<int>(first)) graph.mutable_input()->RemoveLast();
  model.set_ir_version(std::max<std::int64_t>(model.ir_version(), 4));
  return model.SerializeAsString();
}

/// The model without its outputs but the first, such as statistics, masks and indices; nothing if there is but one.
std::optional<std::string> with_first_output(const std::string& bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes) || model.graph().output_size() < 2) return std::nullopt;
  while (model.graph().output_size() > 1) model.mutable_graph()->mutable_output()->RemoveLast();
  return model.SerializeAsString();
}

/// A class of tests that are carried: why, and which, as names in which * stands for any characters.
struct Reason {
  std::string text;
  std::vector<std::string> patterns;
  std::vector<int> matched;  ///< Per pattern: the tests of this run.
};

/// A file of lines "reason: TEXT", each followed by lines of patterns; empty lines and # lines mean nothing.
std::optional<std::vector<Reason>> read_reasons(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::vector<Reason> reasons;
  constexpr std::string_view head = "reason: ";
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with(head)) {
      reasons.push_back({line.substr(head.size()), {}, {}});
      continue;
    }
    if (reasons.empty()) return std::nullopt;
    std::istringstream words(line);
    for (std::string pattern; words >> pattern;) {
      reasons.back().patterns.push_back(pattern);
      reasons.back().matched.push_back(0);
    }
  }
  return reasons;
}

/// Whether `name` is what `pattern` says, in which * stands for any characters.
bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') return !name.empty() && name[0] == pattern[0] && fits(pattern.substr(1), name.substr(1));
  for (std::size_t i = 0; i <= name.size(); ++i)
    if (fits(pattern.substr(1), name.substr(i))) return true;
  return false;
}

/// Notes a test in the list of those that are carried; what is wrong with the list, or nothing.
std::string note(std::vector<Reason>& reasons, const std::string& name, bool right) {
  std::string first;
  for (Reason& reason : reasons) {
    for (std::size_t i = 0; i < reason.patterns.size(); ++i) {
      if (!fits(reason.patterns[i], name)) continue;
      if (right) return "is right, but listed as carried by " + reason.patterns[i];
      if (!first.empty()) return "is listed twice, by " + first + " and " + reason.patterns[i];
      first = reason.patterns[i];
      ++reason.matched[i];
    }
  }
  return right || !first.empty() ? "" : "is carried, but not listed";
}

/// How many tests are carried for each reason; whether each pattern has one.
bool report(const std::vector<Reason>& reasons) {
  bool complete = true;
  for (const Reason& reason : reasons) {
    int tests = 0;
    for (std::size_t i = 0; i < reason.patterns.size(); ++i) {
      tests += reason.matched[i];
      if (reason.matched[i] > 0) continue;
      std::printf("%s is listed as carried, but there is no such test\n", reason.patterns[i].c_str());
      complete = false;
    }
    std::printf("%4d carried: %s\n", tests, reason.text.c_str());
  }
  return complete;
}

/// Takes "OPTION VALUE" out of the arguments.
std::optional<std::string> take_option(std::vector<std::string>& arguments, const std::string& option) {
  const auto place = std::find(arguments.begin(), arguments.end(), option);
  if (place == arguments.end() || place + 1 == arguments.end()) return std::nullopt;
  std::string value = *(place + 1);
  arguments.erase(place, place + 2);
  return value;
}

int run(int argc, char** argv) {
  std::vector<std::string> names(argv + std::min(argc, 2), argv + argc);
  const bool plant_fault = std::erase(names, "--plant-fault") > 0, list = std::erase(names, "--list") > 0;
  const std::optional<std::string> list_of_carried = take_option(names, "--carried");
  if (argc < 2 || (!names.empty() && names[0].starts_with("-"))) {
    std::fprintf(stderr, "usage: operator_tests FOLDER [--plant-fault] [--carried FILE] [--list] [NAME...]\n");
    return 2;
  }
  std::optional<std::vector<Reason>> reasons;
  if (list_of_carried) {
    reasons = read_reasons(*list_of_carried);
    if (!reasons) return std::fprintf(stderr, "%s is no list of reasons\n", list_of_carried->c_str()), 2;
  }
  const std::filesystem::path folder = argv[1];
  if (!std::filesystem::is_directory(folder)) {
    std::printf(
        "SKIP: there is no folder %s; scripts/setup installs libonnx-testdata, with --oracles also what onnx's package "
        "has\n",
        argv[1]);
    return 77;
  }
  const bool chosen = !names.empty();
  if (!chosen)
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (std::filesystem::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());

  const auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  if (!registry) return std::fprintf(stderr, "%s\n", registry.error().to_string().c_str()), 1;
  auto rules = load_rules(TASO_SOURCE_DIR "/specs/rules/default.rules", *registry);
  if (!rules) return std::fprintf(stderr, "%s\n", rules.error().to_string().c_str()), 1;
  Tests tests(*registry, std::move(*rules), plant_fault ? 1 : 0);

  bool failed = names.empty();
  std::map<std::string, std::map<Verdict, int>> counts;
  std::map<std::string, int> carried;  // Reasons, of the variant with parameters.
  for (const std::string& name : names) {
    const std::string path = folder / name;
    const std::string published = read_bytes(path + "/model.onnx");
    const std::vector<std::string> inputs = recorded_files(path, "input"), outputs = recorded_files(path, "output");
    struct Variant {
      const char* name;
      std::optional<std::string> bytes;
      std::size_t inputs;
    };
    const std::vector<Variant> variants = {
        {"as published", published, inputs.size()},
        {"parameters constant", inputs.size() < 2 ? std::nullopt : with_constants(published, inputs, 1), 1},
        {"all constant", with_constants(published, inputs, 0), 0},
        {"first output", with_first_output(published), inputs.size()}};
    Verdict best = Verdict::wrong, best_computed = Verdict::wrong;
    std::string obstacle;
    for (const Variant& variant : variants) {
      if (!variant.bytes) continue;
      const auto fed =
          std::vector<std::string>(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(variant.inputs));
      // Said before: a crash should be found out about.
      if (chosen) std::printf("%s, %s: ", name.c_str(), variant.name), std::fflush(stdout);
      const bool one = variant.name == std::string_view("first output");
      const Outcome outcome = tests.run(*variant.bytes, fed, one ? std::vector{outputs[0]} : outputs);
      ++counts[variant.name][outcome.verdict];
      best = std::min(best, outcome.verdict);
      if (variant.inputs > 0 || inputs.empty()) best_computed = std::min(best_computed, outcome.verdict);
      if (outcome.verdict == Verdict::opaque) obstacle = outcome.reason;
      const bool bad = outcome.verdict == Verdict::wrong || outcome.verdict == Verdict::refused;
      const char* verdict = outcome.verdict == Verdict::right    ? "right"
                            : outcome.verdict == Verdict::opaque ? "opaque"
                            : outcome.verdict == Verdict::wrong  ? "WRONG"
                                                                 : "REFUSED";
      if (chosen)
        std::printf("%s %s\n", verdict, outcome.reason.c_str());
      else if (bad)
        std::printf("%s, %s: %s %s\n", name.c_str(), variant.name, verdict, outcome.reason.c_str());
      failed = failed || bad;
      if (outcome.verdict == Verdict::opaque && variant.inputs < 2) ++carried[outcome.reason];
    }
    ++counts["best variant"][best];
    ++counts["best variant with an input"][best_computed];
    if (list && best != Verdict::right) std::printf("%s: %s\n", name.c_str(), obstacle.c_str());
    if (!reasons) continue;
    if (const std::string fault = note(*reasons, name, best == Verdict::right); !fault.empty()) {
      std::printf("%s %s: %s\n", name.c_str(), fault.c_str(), obstacle.c_str());
      failed = true;
    }
  }
  if (reasons && !chosen) failed = !report(*reasons) || failed;
  if (!chosen && !reasons)
    for (const auto& [reason, count] : carried) std::printf("carried: %d x %s\n", count, reason.c_str());
  for (auto& [variant, verdicts] : counts)
    std::printf("%s: %d right, %d opaque, %d refused, %d wrong\n", variant.c_str(), verdicts[Verdict::right],
                verdicts[Verdict::opaque], verdicts[Verdict::refused], verdicts[Verdict::wrong]);
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) { return taso::run(argc, argv); }
