#include "tools/verify_certificate.h"

#include <fmt/format.h>
#include <stdlib.h>  // mkdtemp is POSIX

#include <filesystem>
#include <utility>

#include "certificate/symbolic_model.h"
#include "onnx_io/external_files.h"
#include "support/file.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

/// A new folder that is removed with what is in it.
class TemporaryFolder {
 public:
  static Expected<TemporaryFolder> make() {
    std::error_code error;
    std::string path = (fs::temp_directory_path(error) / "taso-XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr) return bad_input("cannot make a temporary folder", {.file = path});
    return TemporaryFolder(std::move(path));
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The models that the arguments name, or the certificate in its folder.
struct Models {
  std::string original, optimized;
};

Models models_of(const Certificate& certificate, const CertificateArguments& arguments) {
  const fs::path folder = fs::path(arguments.certificate).parent_path();
  const auto beside = [&](const std::string& given, const FileIdentity& named) {
    return given.empty() ? (folder / named.name).string() : given;
  };
  return {beside(arguments.original, certificate.original), beside(arguments.optimized, certificate.optimized)};
}

/// The plan for several devices that a certificate names; empty if it names none, or it is not there.
std::string plan_of(const Certificate& certificate, const CertificateArguments& arguments) {
  if (!certificate.plan || !arguments.plan.empty()) return certificate.plan ? arguments.plan : "";
  const fs::path beside = fs::path(arguments.certificate).parent_path() / certificate.plan->name;
  std::error_code error;
  return fs::exists(beside, error) ? beside.string() : "";
}

Status check_plan(const Certificate& certificate, const CertificateArguments& arguments) {
  const std::string plan = plan_of(certificate, arguments);
  if (plan.empty()) return {};
  TASO_ASSIGN(const FileIdentity found, identify_file(plan));
  const FileIdentity& named = *certificate.plan;
  if (found.bytes == named.bytes && found.hash == named.hash) return {};
  return Error{ErrorCode::not_proved,
               fmt::format("not the plan that the certificate names ({} bytes, hash {}; here are {}, {})", named.bytes,
                           named.hash.to_string(), found.bytes, found.hash.to_string()),
               {.file = plan}};
}

}  // namespace

Status claim_models(FileClaims& claims, const CertificateArguments& arguments) {
  if (arguments.certificate.empty()) return {};
  const auto text = read_file(arguments.certificate);
  const auto certificate = text ? parse_certificate(*text, arguments.certificate) : text.error();
  if (!certificate) return {};
  const Models models = models_of(*certificate, arguments);
  for (const auto& [what, model] :
       {std::pair("the original model", models.original), {"the optimized model", models.optimized}}) {
    TASO_RETURN_IF_ERROR(claims.reads(what, model));
    for (const std::string& file : external_data_of_model(model))
      TASO_RETURN_IF_ERROR(claims.reads(std::string("external data of ") + what, file));
  }
  const std::string plan = plan_of(*certificate, arguments);
  return plan.empty() ? Status() : claims.reads("the plan that the certificate names", plan);
}

Expected<Replay> replay_certificate(const CertificateArguments& arguments, VerifyInputs& inputs) {
  const std::string& path = arguments.certificate;
  TASO_ASSIGN(const std::string text, read_file(path));
  TASO_ASSIGN(const Certificate certificate, parse_certificate(text, path));
  const Models models = models_of(certificate, arguments);
  if (std::error_code error; arguments.original.empty() && !fs::exists(models.original, error))
    return bad_input("the original model is not there; name it by --original", {.file = models.original});
  TASO_RETURN_IF_ERROR(check_plan(certificate, arguments));
  TASO_ASSIGN(const TemporaryFolder temporary, TemporaryFolder::make());
  TASO_ASSIGN(Replay result, replay(certificate, models.original, models.optimized, inputs.registry, temporary.path()));
  for (const Substitution& rule : result.rules) {
    VerifyTask task;
    task.rule = rule;
    task.rule.where = {path, 0, 0};
    task.rule.expect.reset();
    inputs.tasks.push_back(std::move(task));
  }
  return result;
}

Status replay_under_conditions(const CertificateArguments& arguments, const std::vector<Substitution>& proved,
                               const OperatorRegistry& registry) {
  if (proved.empty()) return {};
  TASO_ASSIGN(const std::string text, read_file(arguments.certificate));
  TASO_ASSIGN(Certificate certificate, parse_certificate(text, arguments.certificate));
  const Models models = models_of(certificate, arguments);
  for (std::string& rule : certificate.rules) {
    TASO_ASSIGN(const std::vector<Substitution> parsed, parse_rules(rule, arguments.certificate, registry));
    for (const Substitution& stored : proved)
      if (parsed.size() == 1 && parsed[0].name == stored.name) rule = to_string(stored, registry);
  }
  TASO_ASSIGN(const TemporaryFolder temporary, TemporaryFolder::make());
  const Expected<Replay> again = replay(certificate, models.original, models.optimized, registry, temporary.path());
  return again ? Status() : Status(again.error());
}

std::string certificate_text(const Replay& replay, const CertificateArguments& arguments) {
  std::size_t steps = 0;
  for (const auto& [rule, uses] : replay.uses) steps += uses;
  std::string sizes;
  if (replay.symbols) {
    const std::string ranges = to_string(*replay.symbols);
    sizes = ranges.empty() ? ", for all sizes of its symbolic extents" : ", for " + ranges;
  }
  std::string domains;
  for (const std::string& domain : replay.allowed_domains) domains += (domains.empty() ? "" : ", ") + domain;
  if (!domains.empty()) domains = "; its runtime must have the operators of " + domains;
  return fmt::format("{}: {} applications of {} rules repeated; they lead to the optimized model, byte for byte{}{}\n",
                     arguments.certificate, steps, replay.rules.size(), sizes, domains);
}

}  // namespace taso::tools
