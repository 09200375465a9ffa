#include "tests/simcuda/driver/entry.h"

#include <dlfcn.h>

namespace sim {
namespace {

using GetProcAddress = decltype(&cuGetProcAddress_v2);

// Functions that the real runtime looks up at initialisation, each for both kinds of default
// stream.
constexpr struct {
  const char* name;
  int version;
} kStreamFunctions[] = {{"cuMemAllocAsync", 11020},
                        {"cuMemAllocFromPoolAsync", 11020},
                        {"cuMemFreeAsync", 11020},
                        {"cuMemcpyAsync", 4000},
                        {"cuGraphLaunch", 10000}};

// What the real runtime does first: a probe with an empty name, then a look-up of cuGetProcAddress
// itself, once for each ABI. The result of the second is used from then on.
GetProcAddress Load() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return nullptr;
  auto first = reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  if (first == nullptr) return nullptr;
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  first("", &function, 0, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  first("cuGetProcAddress", &function, 11030, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  CUresult result =
      first("cuGetProcAddress", &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
  if (result != CUDA_SUCCESS) return nullptr;
  auto entry = reinterpret_cast<GetProcAddress>(function);
  for (auto& [name, version] : kStreamFunctions) {
    entry(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    entry(name, &function, version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
  }
  return entry;
}

GetProcAddress Entry() {
  static const GetProcAddress entry = Load();
  return entry;
}

}  // namespace

bool DriverIsLoaded() { return Entry() != nullptr; }

void* DriverAddress(const char* name, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status) {
  CUdriverProcAddressQueryResult ignored;
  if (status == nullptr) status = &ignored;
  *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (Entry() == nullptr) return nullptr;
  void* function = nullptr;
  CUresult result = Entry()(name, &function, version, flags, status);
  return result == CUDA_SUCCESS ? function : nullptr;
}

}  // namespace sim
