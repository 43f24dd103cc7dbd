#include "runtime/cuda/compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace taso::cuda {
namespace {

Error no_compiler(std::string message) { return Error{ErrorCode::device_unavailable, std::move(message), {}}; }

/// The first line that names an error, else the first line.
std::string first_complaint(const std::string& log) {
  const std::size_t error = log.find("error");
  const std::size_t begin = error == std::string::npos ? 0 : log.rfind('\n', error) + 1;
  return log.substr(begin, log.find('\n', begin) - begin);
}

}  // namespace

// As in nvrtc.h, where results are an enum of which 0 is success, and programs a pointer to what is not told.
struct Nvrtc::Functions {
  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_string)(int result) = nullptr;
  int (*architecture_count)(int* count) = nullptr;
  int (*architectures)(int* all) = nullptr;
  int (*create)(void** program, const char* source, const char* name, int headers, const char* const* texts,
                const char* const* names) = nullptr;
  int (*destroy)(void** program) = nullptr;
  int (*compile)(void* program, int count, const char* const* options) = nullptr;
  int (*log_size)(void* program, std::size_t* size) = nullptr;
  int (*log)(void* program, char* text) = nullptr;
  int (*code_size)(void* program, std::size_t* size) = nullptr;
  int (*code)(void* program, char* bytes) = nullptr;
};

Expected<std::shared_ptr<const Nvrtc>> Nvrtc::open(const std::vector<std::string>& names) {
  Status first;
  for (const std::string& name : names) {
    std::shared_ptr<Nvrtc> compiler(new Nvrtc);
    const Status loaded = compiler->load(name);
    if (loaded) return std::shared_ptr<const Nvrtc>(std::move(compiler));
    if (first) first = loaded;
  }
  if (first) return no_compiler("NVRTC has no name");
  return first.error();
}

Status Nvrtc::load(const std::string& name) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
  if (library == nullptr) return no_compiler("NVRTC cannot be loaded: " + std::string(dlerror()));
  auto functions = std::make_shared<Functions>();
  const auto find = [&](auto& function, const char* symbol) -> Status {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) return no_compiler(name + " has no function " + symbol);
    return {};
  };
  TASO_RETURN_IF_ERROR(find(functions->version, "nvrtcVersion"));
  TASO_RETURN_IF_ERROR(find(functions->error_string, "nvrtcGetErrorString"));
  TASO_RETURN_IF_ERROR(find(functions->architecture_count, "nvrtcGetNumSupportedArchs"));
  TASO_RETURN_IF_ERROR(find(functions->architectures, "nvrtcGetSupportedArchs"));
  TASO_RETURN_IF_ERROR(find(functions->create, "nvrtcCreateProgram"));
  TASO_RETURN_IF_ERROR(find(functions->destroy, "nvrtcDestroyProgram"));
  TASO_RETURN_IF_ERROR(find(functions->compile, "nvrtcCompileProgram"));
  TASO_RETURN_IF_ERROR(find(functions->log_size, "nvrtcGetProgramLogSize"));
  TASO_RETURN_IF_ERROR(find(functions->log, "nvrtcGetProgramLog"));
  TASO_RETURN_IF_ERROR(find(functions->code_size, "nvrtcGetCUBINSize"));
  TASO_RETURN_IF_ERROR(find(functions->code, "nvrtcGetCUBIN"));
  int major = 0, minor = 0, count = 0;
  if (functions->version(&major, &minor) != 0) return no_compiler(name + " does not tell its version");
  if (functions->architecture_count(&count) != 0 || count <= 0)
    return no_compiler(name + " does not tell its architectures");
  architectures_.resize(static_cast<std::size_t>(count));
  if (functions->architectures(architectures_.data()) != 0)
    return no_compiler(name + " does not tell its architectures");
  std::sort(architectures_.begin(), architectures_.end());
  version_ = std::to_string(major) + "." + std::to_string(minor);
  functions_ = std::move(functions);
  return {};
}

std::vector<std::string> Nvrtc::options(int architecture) const {
  return {"--gpu-architecture=sm_" + std::to_string(architecture), "--std=c++17"};
}

Expected<CompiledSource> Nvrtc::compile(const std::string& source, int architecture) const {
  const Functions& nvrtc = *functions_;
  const auto check = [&](int result, const char* what) -> Status {
    if (result == 0) return {};
    return no_compiler(std::string(what) + ": " + nvrtc.error_string(result));
  };
  struct Program {
    const Functions& nvrtc;
    void* handle = nullptr;
    ~Program() {
      if (handle != nullptr) nvrtc.destroy(&handle);
    }
  } program{nvrtc};
  TASO_RETURN_IF_ERROR(check(nvrtc.create(&program.handle, source.c_str(), "generated.cu", 0, nullptr, nullptr),
                             "NVRTC takes no program"));
  const std::vector<std::string> texts = options(architecture);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const int compiled = nvrtc.compile(program.handle, static_cast<int>(pointers.size()), pointers.data());
  CompiledSource result;
  std::size_t size = 0;
  if (nvrtc.log_size(program.handle, &size) == 0 && size > 1) {
    result.log.resize(size);
    if (nvrtc.log(program.handle, result.log.data()) != 0) result.log.clear();
    result.log.resize(std::min(result.log.find('\0'), result.log.size()));
  }
  if (compiled != 0)
    return no_compiler("NVRTC cannot compile a generated kernel: " +
                       (result.log.empty() ? std::string(nvrtc.error_string(compiled)) : first_complaint(result.log)));
  TASO_RETURN_IF_ERROR(check(nvrtc.code_size(program.handle, &size), "NVRTC gives no machine code"));
  if (size == 0) return no_compiler("NVRTC gives no machine code");
  result.code.resize(size);
  TASO_RETURN_IF_ERROR(check(nvrtc.code(program.handle, result.code.data()), "NVRTC gives no machine code"));
  return result;
}

int architecture_for(int device, const std::vector<int>& known) {
  int best = 0;
  for (const int one : known)
    if (one / 10 == device / 10 && one <= device) best = std::max(best, one);
  return best;
}

std::vector<std::string> nvrtc_names(int cuda) { return {"libnvrtc.so." + std::to_string(cuda / 1000)}; }

}  // namespace taso::cuda
