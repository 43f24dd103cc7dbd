// Any text given as a certificate is refused, or is printed as text that says the same; and whatever it says about
// models of ours, the checker repeats it, or says in one line what does not hold.
//
// Bytes alone would hardly get beyond the parser, so an input is changed as JSON: a number, a text or a place in a list
// or an object becomes another one, goes or is there twice, or comes from another part of it. Sizes and hashes of
// the files are taken to be those of the model that an input names, or of the first one.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "certificate/replay.h"
#include "support/random.h"
#include "tests/fuzz/certified_models.h"
#include "tests/support/shipped.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace taso;
using nlohmann::ordered_json;

/// The models, in a folder that is removed at the end.
class Files {
 public:
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "taso_fuzz_XXXXXX").string();
    TASO_CHECK(mkdtemp(name.data()) != nullptr, "no folder for the models");
    folder_ = name;
    models_ = test::write_certified_models(name);
  }
  ~Files() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  /// The model that a certificate is about, or is taken to be about.
  [[nodiscard]] const test::CertifiedModel& model(const Certificate& certificate) const {
    for (const test::CertifiedModel& model : models_)
      if (certificate.original.name == model.certificate.original.name) return model;
    return models_.front();
  }

 private:
  std::filesystem::path folder_;
  std::vector<test::CertifiedModel> models_;
};

const Files& files() {
  static const Files made;
  return made;
}

/// All values of a document, containers before what is in them.
void collect(ordered_json& value, std::vector<ordered_json*>& values) {
  values.push_back(&value);
  if (value.is_structured())
    for (ordered_json& element : value) collect(element, values);
}

void change_text(ordered_json& value) {
  std::string text = value.get<std::string>();
  const std::size_t size = text.size(), room = size + 16;
  text.resize(room);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, room));
  value = text;
}

void change_list(ordered_json& list, Random& random) {
  if (list.empty()) return;
  const auto at = static_cast<ordered_json::difference_type>(random.below(list.size()));
  const auto other = static_cast<ordered_json::difference_type>(random.below(list.size()));
  switch (random.below(3)) {
    case 0:
      list.erase(list.begin() + at);
      break;
    case 1: {
      const ordered_json twice = list[static_cast<std::size_t>(at)];
      list.insert(list.begin() + other, twice);
      break;
    }
    default:
      std::swap(list[static_cast<std::size_t>(at)], list[static_cast<std::size_t>(other)]);
  }
}

void change(ordered_json& document, Random& random) {
  std::vector<ordered_json*> values;
  collect(document, values);
  ordered_json& value = *values[random.below(values.size())];
  if (random.below(8) == 0) {
    const ordered_json other = *values[random.below(values.size())];
    value = other;
    return;
  }
  if (value.is_number_integer()) {
    static constexpr std::int64_t far[] = {-1, 0, 1, 2, 3, 4, 1000, INT32_MAX, INT64_MAX, INT64_MIN};
    const bool near = random.below(2) == 0;
    const auto number = value.get<std::int64_t>();
    value = near && number > -1000000 && number < 1000000 ? number + static_cast<std::int64_t>(random.below(7)) - 3
                                                          : far[random.below(std::size(far))];
  } else if (value.is_string()) {
    change_text(value);
  } else if (value.is_array()) {
    change_list(value, random);
  } else if (value.is_object() && !value.empty()) {
    value.erase(std::next(value.begin(), static_cast<ordered_json::difference_type>(random.below(value.size()))));
  } else {
    value = static_cast<std::int64_t>(random.below(9));
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  Random random(seed);
  ordered_json document = ordered_json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || random.below(20) == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) change(document, random);
  const std::string text = document.dump(1, ' ', false, ordered_json::error_handler_t::replace);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Expected<Certificate> read = parse_certificate({reinterpret_cast<const char*>(data), size}, "fuzz");
  const auto refused_well = [](const Error& error) {
    TASO_CHECK(error.code == ErrorCode::bad_input || error.code == ErrorCode::not_proved,
               "neither the file's fault nor a statement: " + error.to_string());
    TASO_CHECK(error.message.find('\n') == std::string::npos, "more than one line: " + error.message);
  };
  if (!read) {
    refused_well(read.error());
    return 0;
  }
  const std::string text = to_json(*read);
  const Expected<Certificate> again = parse_certificate(text, "printed");
  TASO_CHECK(again.ok(), again.ok() ? "" : again.error().to_string() + "\n" + text);
  TASO_CHECK(to_json(*again) == text, "prints differently: " + text);

  const test::CertifiedModel& model = files().model(*read);
  read->original = model.certificate.original;
  read->optimized = model.certificate.optimized;
  read->external_data.reset();
  const Expected<Replay> repeated =
      replay(*read, files() / (model.name + ".onnx"), files() / (model.name + ".optimized.onnx"), test::registry(),
             files() / "repeated");
  if (!repeated) refused_well(repeated.error());
  return 0;
}
