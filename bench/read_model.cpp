#include "bench/read_model.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <map>

#include "examples/models/models.h"

namespace taso {

Expected<Model> read_model(const std::string& text, const OperatorRegistry& registry) {
  const ImportOptions import{.input_shapes = {}, .symbol_sizes = {}, .absent_weights = true};
  std::size_t end = text.find(':');
  const examples::ExampleModel* const example = examples::find_example_model(text.substr(0, end));
  if (example == nullptr) return Model::load(text, registry, import);
  examples::ModelOptions options;
  options.without_weights = true;
  const std::map<std::string, std::int64_t*, std::less<>> known = {{"batch", &options.batch},
                                                                   {"depth", &options.depth},
                                                                   {"extent", &options.extent},
                                                                   {"narrower", &options.narrower},
                                                                   {"wider", &options.wider}};
  while (end != std::string::npos) {
    const std::size_t begin = end + 1;
    end = text.find(':', begin);
    const std::string option = text.substr(begin, end == std::string::npos ? end : end - begin);
    const std::size_t equals = option.find('=');
    const auto place = known.find(option.substr(0, equals));
    if (place == known.end() || equals == std::string::npos)
      return Error{ErrorCode::usage, fmt::format("{}: '{}' is no option of example models", text, option), {}};
    std::from_chars(option.data() + equals + 1, option.data() + option.size(), *place->second);
  }
  return Model::parse(example->build(options).serialize(), text, registry, import);
}

}  // namespace taso
