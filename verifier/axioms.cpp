#include <algorithm>
#include <filesystem>

#include "support/file.h"
#include "verifier/any_attributes.h"
#include "verifier/shape_facts.h"
#include "verifier/verify.h"

namespace taso {

namespace {

namespace fs = std::filesystem;

Expected<std::vector<Substitution>> load_file(const std::string& path, const OperatorCatalog& catalog) {
  TASO_ASSIGN(std::vector<Substitution> axioms, load_rules(path, catalog));
  const std::string record = shape_facts_file(path);
  std::error_code error;
  if (!fs::exists(record, error)) return axioms;
  TASO_ASSIGN(const std::string text, read_file(record));
  TASO_ASSIGN(const auto lines, read_shape_facts(text, record));
  for (Substitution& axiom : axioms) {
    const auto line = lines.find(axiom.name);
    if (line != lines.end()) axiom.facts = line->second;
  }
  return axioms;
}

}  // namespace

std::string shape_facts_file(const std::string& axioms) {
  return fs::path(axioms).replace_extension(".facts").string();
}

Expected<std::vector<Substitution>> load_axioms(const std::string& path, const OperatorCatalog& catalog) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return load_file(path, catalog);
  std::vector<std::string> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".axioms") files.push_back(it->path().string());
  if (error) return bad_input("cannot read folder: " + error.message(), {.file = path});
  std::sort(files.begin(), files.end());
  std::vector<Substitution> axioms;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> more, load_file(file, catalog));
    std::move(more.begin(), more.end(), std::back_inserter(axioms));
  }
  return axioms;
}

namespace {

PatternValue variable(std::uint32_t index) { return {true, index, 0}; }
PatternValue output(std::uint32_t node, std::uint32_t port = 0) { return {false, node, port}; }

}  // namespace

std::vector<Substitution> Verifier::declared_laws(const OperatorRegistry& registry) {
  std::vector<Substitution> laws;
  for (const std::string& name : registry.names()) {
    const OperatorDefinition& definition = *registry.find(name);
    const OperatorSignature& signature = *registry.signature(name);
    Substitution law;
    law.is_axiom = true;
    law.where = definition.where;
    if (definition.commutative) {
      Substitution commutative = law;
      commutative.name = name + ".commutative";
      commutative.tensor_variables = {"x", "y"};
      const auto attributes = any_attributes(signature, commutative);
      commutative.source = {{{name, {variable(0), variable(1)}, attributes}}, {output(0)}};
      commutative.target = {{{name, {variable(1), variable(0)}, attributes}}, {output(0)}};
      laws.push_back(std::move(commutative));
    }
    if (definition.associative) {
      Substitution associative = law;
      associative.name = name + ".associative";
      associative.tensor_variables = {"x", "y", "z"};
      const auto attributes = any_attributes(signature, associative);
      const PatternNode left{name, {variable(0), variable(1)}, attributes};
      const PatternNode right{name, {variable(1), variable(2)}, attributes};
      const bool variadic = definition.variadic();
      associative.source = {{left, {name, {output(0), variable(2)}, attributes}}, {output(1)}};
      if (variadic)
        associative.target = {{{name, {variable(0), variable(1), variable(2)}, attributes}}, {output(0)}};
      else
        associative.target = {{right, {name, {variable(0), output(0)}, attributes}}, {output(1)}};
      laws.push_back(associative);
      if (variadic) {
        associative.name += ".right";
        associative.source = {{right, {name, {variable(0), output(0)}, attributes}}, {output(1)}};
        laws.push_back(std::move(associative));
        // Normal forms have no concatenation of one tensor.
        Substitution one = law;
        one.name = name + ".associative.one";
        one.tensor_variables = {"x"};
        one.source = {{{name, {variable(0)}, any_attributes(signature, one)}}, {output(0)}};
        one.target = {{}, {variable(0)}};
        laws.push_back(std::move(one));
      }
    }
    if (definition.coassociative && definition.several_outputs()) {
      // split(x; [s0, s1, s2]) against splits in two steps, from the front and from the back.
      for (const bool front : {true, false}) {
        Substitution coassociative = law;
        coassociative.name = name + (front ? ".coassociative.front" : ".coassociative.back");
        coassociative.tensor_variables = {"x"};
        auto attributes = any_attributes(signature, coassociative);
        for (const char* size : {"s0", "s1", "s2"}) coassociative.attribute_variables.emplace_back(size);
        const auto first = static_cast<std::uint32_t>(coassociative.attribute_variables.size() - 3);
        std::vector<AttributeExpression> sizes(3);
        for (std::uint32_t i = 0; i < 3; ++i) {
          sizes[i].kind = AttributeExpression::Kind::variable;
          sizes[i].index = first + i;
        }
        auto with_sizes = [&](const std::vector<AttributeExpression>& operands) {
          auto result = attributes;
          for (auto& [attribute, expression] : result)
            if (attribute == definition.coassociative->sizes) {
              expression = {};
              expression.kind = AttributeExpression::Kind::list;
              expression.operands = operands;
            }
          return result;
        };
        AttributeExpression sum;
        sum.kind = AttributeExpression::Kind::add;
        sum.operands = front ? std::vector{sizes[1], sizes[2]} : std::vector{sizes[0], sizes[1]};
        coassociative.source = {{{name, {variable(0)}, with_sizes({sizes[0], sizes[1], sizes[2]})}},
                                {output(0, 0), output(0, 1), output(0, 2)}};
        if (front)
          coassociative.target = {{{name, {variable(0)}, with_sizes({sizes[0], sum})},
                                   {name, {output(0, 1)}, with_sizes({sizes[1], sizes[2]})}},
                                  {output(0, 0), output(1, 0), output(1, 1)}};
        else
          coassociative.target = {{{name, {variable(0)}, with_sizes({sum, sizes[2]})},
                                   {name, {output(0, 0)}, with_sizes({sizes[0], sizes[1]})}},
                                  {output(1, 0), output(1, 1), output(0, 1)}};
        laws.push_back(std::move(coassociative));
      }
      // Normal forms have no split into one piece.
      Substitution one = law;
      one.name = name + ".coassociative.one";
      one.tensor_variables = {"x"};
      auto attributes = any_attributes(signature, one);
      for (auto& [attribute, expression] : attributes) {
        if (attribute != definition.coassociative->sizes) continue;
        const AttributeExpression size = expression;
        one.attribute_variables[size.index] = "s0";
        expression = {};
        expression.kind = AttributeExpression::Kind::list;
        expression.operands = {size};
      }
      one.source = {{{name, {variable(0)}, std::move(attributes)}}, {output(0)}};
      one.target = {{}, {variable(0)}};
      laws.push_back(std::move(one));
    }
  }
  return laws;
}

}  // namespace taso
