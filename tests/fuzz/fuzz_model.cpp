// Any bytes given as a model are refused with an error, or give a valid graph that can be saved.
#include <cstdint>
#include <string>

#include "onnx_io/model.h"
#include "tests/support/shipped.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace taso;
  const auto model =
      Model::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz.onnx", test::registry());
  if (!model) {
    TASO_CHECK(model.error().code == ErrorCode::bad_input, "not the user's fault: " + model.error().to_string());
    TASO_CHECK(model.error().message.find('\n') == std::string::npos, "more than one line");
    return 0;
  }
  const Status valid = model->graph().validate();
  TASO_CHECK(valid.ok(), valid.ok() ? "" : valid.error().to_string());
  return 0;
}
