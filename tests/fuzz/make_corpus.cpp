// Writes what fuzzers start from: FOLDER/fuzz_model gets small examples and every malformed model of tests/acceptance,
// FOLDER/fuzz_certificate certificates.
#include <cstdio>
#include <filesystem>

#include "examples/models/models.h"
#include "support/file.h"
#include "tests/acceptance/malformed.h"
#include "tests/fuzz/certified_models.h"

int main(int argc, char** argv) {
  using namespace taso;
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  const auto write = [&](const std::string& name, const std::string& bytes) {
    const Status status = write_file_atomically(folder + "/" + name, bytes);
    if (!status) std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
    return status.ok();
  };
  bool good = true;
  for (const auto& model : acceptance::malformed_models())
    if (model.bytes.size() < 100'000) good = write("fuzz_model/" + model.name, model.bytes) && good;
  for (const examples::ExampleModel& example : examples::example_models()) {
    const std::string bytes = example.build(example.small).serialize();
    if (bytes.size() < 100'000) good = write("fuzz_model/" + std::string(example.name), bytes) && good;
  }
  const std::string certified = folder + "/certified";
  std::filesystem::create_directories(certified);
  for (const test::CertifiedModel& model : test::write_certified_models(certified))
    good = write("fuzz_certificate/" + model.name, to_json(model.certificate)) && good;
  return good ? 0 : 1;
}
