// write_generated_cases FILE PART PARTS: the texts of every PARTS-th case as one C++ file for the host, with a table of
// their kernels.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/file.h"
#include "support/hash.h"
#include "tests/runtime/generated_cases.h"

int main(int count, char** arguments) {
  namespace cuda = taso::cuda;
  namespace cases_of = taso::testing;
  if (count != 4) return 2;
  const auto part = static_cast<std::size_t>(std::atoi(arguments[2]));
  const auto parts = static_cast<std::size_t>(std::atoi(arguments[3]));
  std::string text = "#include \"tests/runtime/emulated_device.h\"\n\n", table;
  const std::vector<cases_of::GeneratedCase> cases = cases_of::GeneratedCases::all();
  const std::size_t small = cases_of::GeneratedCases::small(cases);
  for (std::size_t i = part; i < small; i += parts) {
    const cuda::GeneratedOffer offer = cuda::generate_source(cases[i].program);
    if (!offer.program) {
      std::fprintf(stderr, "%s: %s\n", cases[i].request.key().c_str(), offer.reason.c_str());
      return 1;
    }
    // Kernels have C linkage, where namespaces do not tell names apart.
    const std::string space = "case_" + std::to_string(i);
    std::string renamed, forgotten;
    for (const cuda::GeneratedStep& step : offer.program->steps)
      for (const cuda::GeneratedKernel& kernel : step.kernels) {
        renamed += "#define " + kernel.name + " " + space + "_" + kernel.name + "\n";
        forgotten += "#undef " + kernel.name + "\n";
        table += "    {" + std::to_string(i) + ", \"" + kernel.name + "\", \"" +
                 taso::hash_text(offer.program->source).to_string() + "\", &taso::testing::call_kernel<&" + space +
                 "::" + space + "_" + kernel.name + ">},\n";
      }
    text += renamed + "namespace " + space + " {\n" + offer.program->source + "}\n" + forgotten;
  }
  const std::string name = "emulated_kernels_" + std::to_string(part);
  text += "\nextern const taso::testing::EmulatedKernel " + name + "[] = {\n" + table +
          "};\nextern const std::size_t " + name + "_count = sizeof(" + name + ") / sizeof(" + name + "[0]);\n";
  if (const taso::Status written = taso::write_file_atomically(arguments[1], text); !written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}
