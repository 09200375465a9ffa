#include "tests/simcuda/cupti/names.h"

#include <string_view>
#include <unordered_map>

namespace sim {
namespace {

struct Function {
  const char* name;
  uint32_t id;
};

// CMakeLists.txt writes the lists from cupti_driver_cbid.h and cupti_runtime_cbid.h.
#define SIM_FUNCTION(name, id) {#name, id},
constexpr Function kDriver[] = {
#include "cupti_driver_functions.inc"
};
constexpr Function kRuntime[] = {
#include "cupti_runtime_functions.inc"
};
#undef SIM_FUNCTION

using Index = std::unordered_map<std::string_view, uint32_t>;

// cudaMalloc_v3020 -> cudaMalloc
std::string_view WithoutVersion(std::string_view name) {
  size_t at = name.rfind("_v");
  bool version = at != std::string_view::npos && at + 5 < name.size();
  return version ? name.substr(0, at) : name;
}

template <size_t kCount>
const char* NameOf(const Function (&functions)[kCount], uint32_t id) {
  for (const Function& function : functions) {
    if (function.id == id) return function.name;
  }
  return nullptr;
}

uint32_t Find(const Index& index, const char* name) {
  auto found = index.find(name);
  return found == index.end() ? 0 : found->second;
}

}  // namespace

uint32_t DriverFunctionId(const char* name) {
  static const Index& index = *[] {
    auto made = new Index;
    for (const Function& function : kDriver) made->emplace(function.name, function.id);
    return made;
  }();
  return Find(index, name);
}

uint32_t RuntimeFunctionId(const char* name) {
  static const Index& index = *[] {
    auto made = new Index;
    for (const Function& function : kRuntime) {
      made->emplace(WithoutVersion(function.name), function.id);
    }
    return made;
  }();
  return Find(index, name);
}

const char* DriverFunctionName(uint32_t id) { return NameOf(kDriver, id); }
const char* RuntimeFunctionName(uint32_t id) { return NameOf(kRuntime, id); }

}  // namespace sim
