#include "tests/fuzz/certified_models.h"

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "certificate/occurrence.h"
#include "certificate/replay.h"
#include "certificate/symbolic_model.h"
#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "support/file.h"
#include "support/random.h"
#include "tests/onnx_io/onnx_text.h"
#include "tests/support/shipped.h"

namespace taso::test {
namespace {

struct Source {
  const char* name;
  const char* text;
};

constexpr Source sources[] = {{"fixed", R"(
g (float[1, 4, 6, 6] x, float[2, 4] u) => (float[1, 8, 6, 6] y, float[2, 6] z)
<float[4, 4, 3, 3] a, float[4, 4, 3, 3] b, float[4, 3] w, float[4, 3] v, float[4] c>
{
  p = Conv <pads = [1, 1, 1, 1]> (x, a, c)
  q = Conv <pads = [1, 1, 1, 1]> (x, b)
  r = Relu (p)
  s = Relu (q)
  y = Concat <axis = 1> (r, s)
  i = MatMul (u, w)
  j = MatMul (u, v)
  k = Add (i, j)
  l = Mul (k, i)
  z = Concat <axis = 1> (k, l)
}
)"},
                              {"symbolic", R"(
g (float[N, M, 4] x, float[M, 4] u) => (float[N, M, 6] y, float[A, B] z)
<float[4, 3] w, float[4, 3] v, int64[2] shape = {-1, 3}>
{
  p = MatMul (x, w)
  q = MatMul (x, v)
  r = Relu (p)
  s = Relu (q)
  y = Concat <axis = 2> (r, s)
  t = Transpose <perm = [1, 0, 2]> (p)
  i = MatMul (u, w)
  j = Add (i, p)
  z = Reshape (j, shape)
}
)"},
                              {"bodies", R"(
g (float[2, 4] x, bool c) => (float[2, 3] y)
<float[4, 3] w, float[4, 3] v>
{
  h = Relu (x)
  [choose] z = If (c) <
    then_branch = a () => (float[2, 3] s) {
      p = MatMul (h, w)
      q = MatMul (h, v)
      s = Add (p, q)
    },
    else_branch = b () => (float[2, 3] t) {
      t = MatMul (h, w)
    }
  >
  o = Neg (z)
  y = Add (o, z)
}
)"}};

void check(const Status& status) { TASO_CHECK(status.ok(), status.ok() ? "" : status.error().to_string()); }

/// Applications one after the other, each of any rule at any place.
class Walk {
 public:
  explicit Walk(std::vector<Substitution> rules) : rules_(std::move(rules), registry()) {}

  /// Up to `count` steps from a graph. `taken`: whether a step may follow those before, and as it is then written.
  template <class Taken>
  std::vector<CertificateStep> steps(Graph& graph, int count, const Taken& taken) {
    normalize(graph, registry());
    std::vector<CertificateStep> steps;
    for (int attempts = 0; attempts < 200 && std::ssize(steps) < count; ++attempts) {
      const auto matches = rules_.find_all(graph);
      if (matches.empty()) break;
      const auto& [number, match] = matches[random_.below(matches.size())];
      const Substitution& rule = rules_.rules()[number];
      Expected<Graph> next = apply(graph, rule, match, registry());
      if (!next) continue;
      steps.push_back({rule.name, match});
      if (!taken(steps)) {
        steps.pop_back();
        continue;
      }
      graph = *std::move(next);
    }
    return steps;
  }

  /// The texts of the rules that steps name.
  std::vector<std::string> texts(const std::vector<CertificateStep>& steps) const {
    std::set<std::string> names;
    for (const CertificateStep& step : steps) names.insert(step.rule);
    std::vector<std::string> texts;
    for (const Substitution& rule : rules_.rules())
      if (names.contains(rule.name)) texts.push_back(to_string(rule, registry()));
    return texts;
  }
  [[nodiscard]] const std::vector<Substitution>& rules() const { return rules_.rules(); }

 private:
  RuleIndex rules_;
  Random random_{1};
};

constexpr int max_steps = 6;

Certificate certify(const std::string& original, const std::string& optimized, Walk& walk) {
  Model model = value_of(Model::load(original, registry()));
  if (!model.symbols().empty()) {
    ImportOptions sizes;
    std::int64_t size = 5;
    for (const Symbol& symbol : model.symbols()) sizes.symbol_sizes[symbol.name] = size++;
    model = value_of(Model::load(original, registry(), sizes));
  }
  Certificate certificate;
  std::vector<CertificateStep> all;
  const auto any = [](const std::vector<CertificateStep>& /*steps*/) { return true; };
  for (const BodyPlace& place : model.bodies()) {
    const Model body = value_of(model.body(place));
    Graph graph = body.graph();
    BodySteps inside{place.node, place.attribute, {}, walk.steps(graph, max_steps, any)};
    auto changed = value_of(model.with_body(place, body, graph));
    if (!changed) continue;
    model = *std::move(changed);
    all.insert(all.end(), inside.steps.begin(), inside.steps.end());
    certificate.bodies.push_back(std::move(inside));
  }
  Graph graph = model.graph();
  if (model.symbols().empty()) {
    certificate.steps = walk.steps(graph, max_steps, any);
    value_of(model.save(graph, optimized));
  } else {
    const SymbolicModel symbolic = value_of(SymbolicModel::load(model, registry(), {}));
    certificate.symbols = symbolic.ranges();
    std::optional<SizedGraph> sized;
    std::map<std::string, std::size_t> uses;
    certificate.steps = walk.steps(graph, max_steps, [&](std::vector<CertificateStep>& steps) {
      forget_sizes(steps.back().match);
      Expected<SizedGraph> next = symbolic.repeat(walk.rules(), steps, uses);
      if (!next || !symbolic.can_save(*next)) return false;
      sized = *std::move(next);
      return true;
    });
    TASO_CHECK(sized.has_value(), "no rule applies at all sizes in " + original);
    value_of(symbolic.save(*sized, optimized, {}));
  }
  all.insert(all.end(), certificate.steps.begin(), certificate.steps.end());
  certificate.rules = walk.texts(all);
  certificate.original = value_of(identify_file(original));
  certificate.optimized = value_of(identify_file(optimized));
  return certificate;
}

}  // namespace

std::vector<CertifiedModel> write_certified_models(const std::string& folder) {
  Walk walk(value_of(load_rules(source_folder() + "/specs/rules/default.rules", registry())));
  std::vector<CertifiedModel> models;
  for (const auto& [name, text] : sources) {
    onnx::ModelProto file;
    file.set_ir_version(8);
    file.add_opset_import()->set_version(17);
    *file.mutable_graph() = value_of(parse_onnx_graph(text, name));
    const std::string original = folder + "/" + name + ".onnx", optimized = folder + "/" + name + ".optimized.onnx";
    check(write_file_atomically(original, file.SerializeAsString()));
    Certificate certificate = certify(original, optimized, walk);
    std::filesystem::create_directories(folder + "/repeated");
    const Expected<Replay> repeated = replay(certificate, original, optimized, registry(), folder + "/repeated");
    TASO_CHECK(repeated.ok(), repeated.ok() ? "" : repeated.error().to_string());
    models.push_back({name, std::move(certificate)});
  }
  return models;
}

}  // namespace taso::test
