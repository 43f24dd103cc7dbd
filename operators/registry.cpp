#include "operators/registry.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>

#include "operators/checker.h"
#include "operators/compose.h"
#include "operators/function_laws.h"
#include "operators/functions.h"
#include "operators/instance.h"
#include "operators/instantiate.h"
#include "operators/lowered_body.h"
#include "operators/machine_functions.h"
#include "operators/node_maps.h"
#include "operators/parser.h"
#include "operators/unparse.h"
#include "support/file.h"
#include "support/hash.h"

namespace taso {
namespace {

std::string where_text(const SourceLocation& where) { return where.file + ":" + std::to_string(where.line); }

OperatorSignature signature_of(const OperatorDefinition& definition) {
  OperatorSignature signature;
  signature.min_inputs = definition.inputs.size();
  signature.max_inputs = definition.variadic() ? OperatorSignature::unlimited : definition.inputs.size();
  for (const AttributeSpec& spec : definition.attributes)
    signature.attributes.push_back({spec.name, spec.kind, spec.default_value});
  const std::vector<AxisSpec>& axes = definition.output.axes;
  if (definition.inputs.empty() && definition.equations.size() == 1 && axes.size() == 1 &&
      axes[0].kind == AxisSpec::Kind::rest) {
    const AttributeSpec* const shape = definition.find_attribute(axes[0].factors[0].name);
    const AttributeSpec* const value = definition.find_attribute(definition.equations[0].value.name);
    const bool fills = shape != nullptr && value != nullptr && definition.attributes.size() == 2 &&
                       axes[0].factors[0].kind == Expression::Kind::name && shape->kind == AttributeKind::integers &&
                       definition.equations[0].value.kind == Expression::Kind::name &&
                       value->kind == AttributeKind::real;
    if (fills) {
      signature.fill_shape = shape->name;
      signature.fill_value = value->name;
    }
  }
  signature.copies =
      definition.inputs.size() == 1 && !definition.variadic() && definition.inputs[0].domain == ElementDomain::real &&
      std::all_of(definition.equations.begin(), definition.equations.end(), [&](const Equation& equation) {
        const Expression& value = equation.value;
        return equation.target == "out" && value.kind == Expression::Kind::read &&
               value.name == definition.inputs[0].name && value.fallback == nullptr;
      });
  return signature;
}

bool applies(const Application& application, const std::string& op) {
  return application.op == op ||
         std::any_of(application.operands.begin(), application.operands.end(),
                     [&](const Application::Operand& operand) {
                       return operand.application != nullptr && applies(*operand.application, op);
                     });
}
bool applies(const OperatorDefinition& definition, const std::string& op) {
  return !op.empty() && std::any_of(definition.applications.begin(), definition.applications.end(),
                                    [&](const Application& application) { return applies(application, op); });
}

template <class Map, class Definition>
Status insert_new(Map& map, Definition definition, const std::string& what) {
  const auto found = map.find(definition.name);
  if (found != map.end())
    return bad_input(what + " '" + definition.name + "' is already defined at " + where_text(found->second.where),
                     definition.where);
  std::string name = definition.name;
  map.emplace(std::move(name), std::move(definition));
  return {};
}

}  // namespace

const char* to_string(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::integer:
      return "an integer";
    case AttributeKind::real:
      return "a real";
    case AttributeKind::integers:
      return "a list of integers";
    case AttributeKind::symbol:
      return "the name of a function";
  }
  return "?";
}

bool Expression::speaks_of_reals() const {
  return sort == Sort::real ||
         std::any_of(operands.begin(), operands.end(), [](const Expression& e) { return e.speaks_of_reals(); });
}

std::optional<double> Expression::number() const {
  if (kind == Kind::integer) return static_cast<double>(integer);
  if (kind == Kind::real) return real;
  if (kind != Kind::negate) return std::nullopt;
  const std::optional<double> positive = operands[0].kind == Kind::negate ? std::nullopt : operands[0].number();
  return positive ? std::optional(-*positive) : std::nullopt;
}

bool FunctionLaw::is_special_case() const {
  if (left.kind != Expression::Kind::call || !conditions.empty()) return false;
  std::size_t numbers = 0, names = 0;
  for (const Expression& argument : left.operands) {
    numbers += argument.number() ? 1 : 0;
    names += argument.kind == Expression::Kind::name ? 1 : 0;
  }
  return numbers > 0 && numbers + names == left.operands.size() && names == variables.size();
}

const AttributeSpec* OperatorDefinition::find_attribute(std::string_view attribute) const {
  for (const AttributeSpec& spec : attributes)
    if (spec.name == attribute) return &spec;
  return nullptr;
}

ElementDomain OperatorDefinition::domain_of(std::size_t i) const {
  const ElementDomain domain = inputs[variadic() ? 0 : i].domain;
  return moves && domain == ElementDomain::real ? ElementDomain::any : domain;
}

bool OperatorDefinition::takes(std::size_t i, ElementType type) const {
  const ElementDomain domain = domain_of(i);
  if (domain == ElementDomain::integer && over_reals) return type == ElementType::i32 || type == ElementType::i64;
  return is_of(type, domain);
}

const IntermediateSpec* OperatorDefinition::find_intermediate(std::string_view intermediate) const {
  for (const IntermediateSpec& spec : intermediates)
    if (spec.name == intermediate) return &spec;
  return nullptr;
}

Status OperatorRegistry::add(const std::vector<std::pair<std::string, std::string>>& texts, Trials trials) {
  std::vector<OperatorDefinition> added;
  std::set<std::string> added_functions;
  for (const auto& [text, file] : texts) {
    TASO_ASSIGN(ParsedSpecification parsed, parse_specification(text, file));
    for (FunctionDefinition& function : parsed.functions) {
      function.key = hash_text(function.name).low;
      if (!function.definition)
        TASO_RETURN_IF_ERROR(function.is_real() ? bind_real_function(function) : bind_machine_function(function));
      added_functions.insert(function.name);
      TASO_RETURN_IF_ERROR(insert_new(functions_, std::move(function), "function"));
    }
    for (SizeFunction& function : parsed.size_functions)
      TASO_RETURN_IF_ERROR(insert_new(size_functions_, std::move(function), "size function"));
    for (OperatorDefinition& definition : parsed.operators) added.push_back(std::move(definition));
  }
  TASO_RETURN_IF_ERROR(check_functions(functions_, size_functions_));
  if (trials == Trials::made) TASO_RETURN_IF_ERROR(check_function_facts(functions_, added_functions));
  // Composed, checked and inserted after those that it applies.
  std::vector<const OperatorDefinition*> open;
  const std::function<Status(OperatorDefinition&)> insert = [&](OperatorDefinition& definition) -> Status {
    if (definition.name.empty()) return {};  // done before, as others apply it
    if (std::find(open.begin(), open.end(), &definition) != open.end())
      return bad_input("operator '" + definition.name + "' is defined by itself", definition.where);
    open.push_back(&definition);
    for (OperatorDefinition& other : added)
      if (applies(definition, other.name)) TASO_RETURN_IF_ERROR(insert(other));
    open.pop_back();
    TASO_RETURN_IF_ERROR(compose(definition, [&](std::string_view name) { return find(name); }));
    TASO_RETURN_IF_ERROR(check_operator(definition, {functions_, size_functions_}));
    definition.signature = signature_of(definition);
    TASO_RETURN_IF_ERROR(insert_new(operators_, std::move(definition), "operator"));
    definition.name.clear();
    return {};
  };
  for (OperatorDefinition& definition : added) TASO_RETURN_IF_ERROR(insert(definition));
  return {};
}

namespace {

/// (text, path) of the files of a folder with an extension, in name order.
Expected<std::vector<std::pair<std::string, std::string>>> texts_in(const std::string& folder,
                                                                    const std::string& extension,
                                                                    const std::string& what) {
  std::vector<std::string> paths;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (entry->path().extension() == extension) paths.push_back(entry->path().string());
  if (error) return bad_input("cannot read the folder of " + what + "s: " + error.message(), {folder, 0, 0});
  if (paths.empty()) return bad_input("no " + what + " (*" + extension + ") in this folder", {folder, 0, 0});
  std::sort(paths.begin(), paths.end());
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::string& path : paths) {
    TASO_ASSIGN(std::string text, read_file(path));
    texts.emplace_back(std::move(text), path);
  }
  return texts;
}

}  // namespace

Expected<OperatorRegistry> OperatorRegistry::load(const std::string& folder, const OperatorRegistry* base) {
  TASO_ASSIGN(const auto texts, texts_in(folder, ".op", "operator specification"));
  OperatorRegistry registry = base == nullptr ? OperatorRegistry() : *base;
  TASO_RETURN_IF_ERROR(registry.add(texts, Trials::made));
  const std::filesystem::path itself = std::filesystem::path(folder).lexically_normal();
  const std::filesystem::path beside =
      itself.has_filename() ? itself.parent_path() : itself.parent_path().parent_path();
  const std::string maps = (beside / "onnx").string();
  std::error_code error;
  return std::filesystem::is_directory(maps, error) ? load_maps(maps, registry) : registry;
}

Expected<OperatorRegistry> OperatorRegistry::load_maps(const std::string& folder, const OperatorRegistry& base) {
  TASO_ASSIGN(const auto texts, texts_in(folder, ".map", "map"));
  OperatorRegistry registry = base;
  // The registry's own while they grow: of many operators no copy is made for each file.
  const auto maps = std::make_shared<NodeMaps>(base.node_maps());
  registry.node_maps_ = maps;
  // The first file is tried first.
  for (auto entry = texts.rbegin(); entry != texts.rend(); ++entry) {
    TASO_ASSIGN(NodeMapFile mapped, parse_node_maps(entry->first, entry->second, registry));
    maps->put_first(std::move(mapped));
  }
  return registry;
}

Expected<OperatorRegistry> OperatorRegistry::parse_maps(std::string_view text, const std::string& file,
                                                        const OperatorRegistry& base) {
  TASO_ASSIGN(NodeMapFile mapped, parse_node_maps(text, file, base));
  auto maps = std::make_shared<NodeMaps>(base.node_maps());
  maps->put_first(std::move(mapped));
  OperatorRegistry registry = base;
  registry.node_maps_ = std::move(maps);
  return registry;
}

const NodeMaps& OperatorRegistry::node_maps() const {
  static const NodeMaps none;
  return node_maps_ == nullptr ? none : *node_maps_;
}

Expected<OperatorRegistry> OperatorRegistry::parse(std::string_view text, const std::string& file,
                                                   const OperatorRegistry* base, Trials trials) {
  OperatorRegistry registry = base == nullptr ? OperatorRegistry() : *base;
  TASO_RETURN_IF_ERROR(registry.add({{std::string(text), file}}, trials));
  return registry;
}

const OperatorDefinition* OperatorRegistry::find(std::string_view op) const {
  const auto found = operators_.find(op);
  return found == operators_.end() ? nullptr : &found->second;
}

std::vector<std::string> OperatorRegistry::names() const {
  std::vector<std::string> result;
  for (const auto& [name, definition] : operators_) result.push_back(name);
  return result;
}

const FunctionDefinition* OperatorRegistry::find_function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

const OperatorSignature* OperatorRegistry::signature(std::string_view op) const {
  const OperatorDefinition* definition = find(op);
  return definition == nullptr ? nullptr : &definition->signature;
}

bool OperatorRegistry::defines(std::string_view op) const { return find(op) != nullptr; }

Expected<Attributes> OperatorRegistry::complete(std::string_view op, const Attributes& attributes) const {
  const OperatorDefinition* definition = find(op);
  if (definition == nullptr) return bad_input("unknown operator '" + std::string(op) + "'");
  for (const auto& [name, value] : attributes.entries()) {
    if (definition->find_attribute(name) != nullptr) continue;
    std::string known;
    for (const AttributeSpec& spec : definition->attributes) known += (known.empty() ? "" : ", ") + spec.name;
    return bad_input(definition->name + " has no attribute '" + name + "'; it has " + (known.empty() ? "none" : known));
  }
  Attributes result;
  for (const AttributeSpec& spec : definition->attributes) {
    const AttributeValue* given = attributes.find(spec.name);
    if (given == nullptr) {
      if (!spec.default_value)
        return bad_input(definition->name + " needs attribute '" + spec.name + "', " + to_string(spec.kind));
      result.set(spec.name, *spec.default_value);
      continue;
    }
    AttributeValue value = *given;
    if (spec.kind == AttributeKind::real && std::holds_alternative<std::int64_t>(value))
      value = static_cast<double>(std::get<std::int64_t>(value));
    if (value.index() != static_cast<std::size_t>(spec.kind))
      return bad_input(definition->name + " attribute '" + spec.name + "' is " + to_string(value) + ", expected " +
                       to_string(spec.kind));
    if (spec.element_type) {
      const std::string& name = std::get<SymbolValue>(value).name;
      const std::optional<ElementType> type = element_type_named(name);
      if (!type || !is_of(*type, ElementDomain::any))
        return bad_input(definition->name + " attribute '" + spec.name + "' is '" + name +
                         "', expected an element type such as f32, i64 or bool");
    } else if (spec.kind == AttributeKind::symbol) {
      const std::string& name = std::get<SymbolValue>(value).name;
      const FunctionDefinition* function = find_function(name);
      if (function == nullptr || function->arity != 1 || !function->is_real())
        return bad_input(definition->name + " attribute '" + spec.name + "' is '" + name +
                         "', expected a declared function of one parameter");
    }
    if (spec.kind == AttributeKind::integers && spec.length && spec.length->kind == Expression::Kind::integer) {
      const auto length = static_cast<std::int64_t>(std::get<std::vector<std::int64_t>>(value).size());
      if (length != spec.length->integer)
        return bad_input(definition->name + " attribute '" + spec.name + "' is " + to_string(value) + ", expected " +
                         std::to_string(spec.length->integer) + " elements");
    }
    result.set(spec.name, std::move(value));
  }
  return result;
}

Expected<std::vector<TensorType>> OperatorRegistry::infer(std::string_view op, const Attributes& attributes,
                                                          std::span<const TensorType> inputs) const {
  const OperatorDefinition* definition = find(op);
  if (definition == nullptr) return bad_input("unknown operator '" + std::string(op) + "'");
  TASO_ASSIGN(Instantiation instantiation, instantiate(*this, *definition, attributes, inputs));
  return output_types(*definition, attributes, inputs, std::move(instantiation.outputs));
}

bool OperatorRegistry::accepts(std::string_view op, const Attributes& attributes,
                               std::span<const TensorType> inputs) const {
  const OperatorDefinition* definition = find(op);
  return definition != nullptr && instantiate(*this, *definition, attributes, inputs, Reasons::none).ok();
}

std::vector<bool> OperatorRegistry::accepted(std::string_view op, const Attributes& attributes,
                                             std::span<const TensorType> inputs, const std::string& name,
                                             std::span<const AttributeValue> values) const {
  const OperatorDefinition* definition = find(op);
  if (definition == nullptr) return std::vector<bool>(values.size(), false);
  return instantiable(*this, *definition, attributes, inputs, name, values);
}

std::vector<TensorType> output_types(const OperatorDefinition& definition, const Attributes& attributes,
                                     std::span<const TensorType> inputs, std::vector<Shape> shapes) {
  const OutputSpec& output = definition.output;
  const ElementDomain domain =
      definition.moves && output.domain == ElementDomain::real ? ElementDomain::any : output.domain;
  ElementType element = ElementType::f32;
  if (!output.type.empty()) {
    element = element_type_named(attributes.symbol(output.type)).value_or(ElementType::other);
  } else if (domain == ElementDomain::boolean) {
    element = ElementType::boolean;
  } else {
    if (domain == ElementDomain::integer) element = ElementType::i64;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (definition.domain_of(i) == domain) {
        element = inputs[i].element;
        break;
      }
  }
  std::vector<TensorType> types;
  types.reserve(shapes.size());
  for (Shape& shape : shapes) types.push_back({element, std::move(shape), true});
  return types;
}

std::string OperatorRegistry::typing_text(std::string_view op) const {
  const OperatorDefinition* definition = find(op);
  if (definition == nullptr) return "";
  std::string text = taso::typing_text(*definition);
  // With the size functions that it uses, and those that these use.
  std::set<std::string_view> told;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [name, function] : size_functions_) {
      if (told.contains(name) || text.find(name + "(") == std::string::npos) continue;
      told.insert(name);
      text += name + "(";
      for (const std::string& parameter : function.parameters) text += parameter + ", ";
      text += ") = " + to_text(function.definition) + "\n";
      more = true;
    }
  }
  return text;
}

std::size_t OperatorRegistry::output_count(std::string_view op, const Attributes& attributes) const {
  const OperatorDefinition* definition = find(op);
  if (definition == nullptr || !definition->output.count) return 1;
  IntegerScope scope;
  for (const AttributeSpec& spec : definition->attributes) {
    const AttributeValue* value = attributes.find(spec.name);
    // What is not there matters only where the number of outputs follows from it.
    if (value == nullptr || value->index() != static_cast<std::size_t>(spec.kind)) continue;
    if (const auto* integer = std::get_if<std::int64_t>(value)) scope.bind(spec.name, IntegerValue::of(*integer));
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(value))
      scope.bind(spec.name, IntegerValue::of(Sizes(list->begin(), list->end())));
  }
  IntegerEvaluator evaluator(size_functions_, scope, attributes);
  const std::int64_t count = evaluator.integer(*definition->output.count);
  return evaluator.status() && count > 0 ? static_cast<std::size_t>(count) : 0;
}

bool OperatorRegistry::is_commutative(std::string_view op) const {
  const OperatorDefinition* definition = find(op);
  return definition != nullptr && definition->commutative;
}
bool OperatorRegistry::is_associative(std::string_view op) const {
  const OperatorDefinition* definition = find(op);
  return definition != nullptr && definition->associative;
}
const PieceAttributes* OperatorRegistry::pieces(std::string_view op) const {
  const OperatorDefinition* definition = find(op);
  return definition != nullptr && definition->coassociative ? &*definition->coassociative : nullptr;
}
bool OperatorRegistry::is_function(std::string_view name) const {
  const FunctionDefinition* function = find_function(name);
  return function != nullptr && function->arity == 1 && function->is_real();
}
namespace {

bool is_total(const OperatorRegistry& registry, const FunctionDefinition& function);

// Whether an expression of a function's definition has a value for all values of its parameters.
bool is_total(const OperatorRegistry& registry, const Expression& e) {
  if (e.kind == Expression::Kind::divide && (e.operands[1].kind != Expression::Kind::real || e.operands[1].real == 0))
    return false;
  if (e.kind == Expression::Kind::call && e.name != "max" && e.name != "min") {
    const FunctionDefinition* called = registry.find_function(e.name);
    if (called == nullptr || !is_total(registry, *called)) return false;
  }
  return std::all_of(e.operands.begin(), e.operands.end(),
                     [&](const Expression& operand) { return is_total(registry, operand); });
}

bool is_total(const OperatorRegistry& registry, const FunctionDefinition& function) {
  return function.domain == ArgumentDomain::all && (!function.definition || is_total(registry, *function.definition));
}

}  // namespace

bool OperatorRegistry::is_total_function(std::string_view name) const {
  const FunctionDefinition* function = find_function(name);
  return function != nullptr && function->arity == 1 && function->is_real() && is_total(*this, *function);
}

std::vector<std::int64_t> OperatorRegistry::index_bounds(std::string_view op, const Attributes& attributes,
                                                         std::span<const TensorType> inputs) const {
  const Expected<OperatorInstance> instance = OperatorInstance::create(*this, op, attributes, inputs);
  if (!instance) return {};
  std::vector<std::int64_t> bounds(inputs.size(), 0);
  for (const LoweredStage& stage : instance->body().stages)
    for (const LoweredAccess& access : stage.accesses)
      for (const LoweredAccess::Indirect& index : access.indirect) {
        std::int64_t& bound = bounds[index.buffer];
        bound = bound == 0 ? index.extent : std::min(bound, index.extent);
      }
  return bounds;
}

Expected<Work> OperatorRegistry::work(std::string_view op, const Attributes& attributes,
                                      std::span<const TensorType> inputs) const {
  TASO_ASSIGN(const OperatorInstance instance, OperatorInstance::create(*this, op, attributes, inputs));
  return instance.work();
}

}  // namespace taso
