/// The certificate of an optimization: what was done to a model, step by step, in a form that a program can repeat
/// without trusting the one that did it.
///
/// A certificate names the original file and the optimized one, the rules that were used, as text, and every
/// application: which rule, at which nodes, for which values of its variables. Nodes are numbered as the importer
/// numbers them; normal form and application of a rule (graph/rewrite.h) number new ones, always in the same way.
///
/// JSON form (docs/certificates.md): an object with `format` ("taso-certificate"), `version` (2), `original` and
/// `optimized` (each `file`, `bytes`, `hash`), `external_data` (the same, or null), `input_shapes`, `symbols`, `bodies`
/// (only where there are any), `rules` and `steps`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/rewrite.h"
#include "graph/tensor_type.h"
#include "support/file_identity.h"
#include "support/status.h"
#include "verifier/symbolic_sizes.h"

namespace taso {

/// Ranges of symbolic extents, by name.
using SymbolRanges = std::map<std::string, SizeRange>;

/// One application of a rule.
struct CertificateStep {
  std::string rule;  ///< Name of one of the certificate's rules.
  Match match;
};

/// What was done in a subgraph of a node of control flow. A subgraph is a model (Model::body in onnx_io/model.h): its
/// nodes are numbered by themselves.
struct BodySteps {
  std::string node, attribute;    ///< As BodyPlace in onnx_io/model.h has them.
  std::vector<BodySteps> bodies;  ///< In subgraphs of its nodes, in order, before its own steps.
  std::vector<CertificateStep> steps;
};

struct Certificate {
  FileIdentity original, optimized;
  std::optional<FileIdentity> external_data;  ///< OUT.data, if weights were asked to go there.
  /// OUT.plan.json, if the result was planned for several devices. The plan is no part of what is certified: it has its
  /// own check (taso-verify --plan).
  std::optional<FileIdentity> plan;
  std::map<std::string, Shape> input_shapes;  ///< As given to the importer.
  /// Domains whose operators the result may have though the original has none: what maps allowed
  /// (operators/node_maps.h).
  std::vector<std::string> allowed_domains;
  /// The ranges of the model's symbolic extents for which the steps hold. Integers that differ with the sizes are not
  /// said in the steps' matches (certificate/occurrence.h). Nothing: symbolic extents, if any, were left as they are.
  std::optional<SymbolRanges> symbols;
  /// Subgraphs that are others in the optimized model, in order; done before `steps`. Usually empty.
  std::vector<BodySteps> bodies;
  std::vector<std::string> rules;      ///< The rules that the steps name, in the spelling of rule files.
  std::vector<CertificateStep> steps;  ///< In order, from the imported graph in normal form.
};

/// The JSON text; the same certificate gives the same bytes.
[[nodiscard]] std::string to_json(const Certificate& certificate);
/// bad_input, with what is wrong and where, if the text is not of the form above.
[[nodiscard]] Expected<Certificate> parse_certificate(std::string_view text, const std::string& file);

/// Where the certificate of a model goes: out.taso.json beside out.onnx.
[[nodiscard]] std::string certificate_path(const std::string& model);

}  // namespace taso
