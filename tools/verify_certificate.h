/// taso-verify --certificate: repeats an optimization from its certificate and hands the rules on to be proved.
#pragma once

#include <string>

#include "certificate/replay.h"
#include "tools/common.h"
#include "tools/files.h"
#include "tools/verify_inputs.h"

namespace taso::tools {

struct CertificateArguments {
  std::string certificate;          ///< out.taso.json; empty: none is checked.
  std::string original, optimized;  ///< Models; empty: those that it names, in its folder.
  std::string plan;                 ///< For several devices; empty: the one that it names, if it is in its folder.
};

/// Claims the models that a certificate names, with their external data. What is wrong with it replay_certificate says.
[[nodiscard]] Status claim_models(FileClaims& claims, const CertificateArguments& arguments);

/// Reads the certificate and repeats it; its rules become tasks of `inputs`, in its order. Errors: see replay(), and
/// not_proved where the plan is there and not the one that the certificate names.
[[nodiscard]] Expected<Replay> replay_certificate(const CertificateArguments& arguments, VerifyInputs& inputs);

/// Repeats it once more with rules as they were proved, in place of those of the same names: conditions that a proof
/// needs and the certificate's rule does not have must hold at every place.
[[nodiscard]] Status replay_under_conditions(const CertificateArguments& arguments,
                                             const std::vector<Substitution>& proved, const OperatorRegistry& registry);

/// "FILE: 12 rules applied 57 times lead from model.onnx to out.onnx, byte for byte": for people.
[[nodiscard]] std::string certificate_text(const Replay& replay, const CertificateArguments& arguments);

}  // namespace taso::tools
