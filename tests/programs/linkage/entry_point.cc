// A program that asks the runtime for the driver's functions, as PyTorch's expandable segments do.
//
// Usage: entry_point [--by-version]
#include <dlfcn.h>

#include <cstring>

#include "tests/programs/linkage/call_sequences.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // tests the older function, too

int main(int argc, char** argv) {
  bool by_version = argc > 1 && std::strcmp(argv[1], "--by-version") == 0;
  Driver cuda;
  TruthLog truth;
  bool loaded = cuda.Load([&](const char* name, const char*, int version) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
    cudaError_t result =
        by_version
            ? cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &status)
            : cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &status);
    return result == cudaSuccess && status == cudaDriverEntryPointSuccess ? function : nullptr;
  });
  if (!loaded) return 2;
  RunCalls(cuda, truth);
  // Programs may compare these addresses.
  void *by_runtime = nullptr, *again = nullptr, *by_driver = nullptr;
  CUdriverProcAddressQueryResult found;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto ask = reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(driver, "cuGetProcAddress_v2"));
  truth.Check(ask("cuMemAlloc", &by_driver, 12000, 0, &found) == CUDA_SUCCESS,
              "the driver answers");
  for (void** answer : {&by_runtime, &again})
    cudaGetDriverEntryPoint("cuMemAlloc", answer, cudaEnableDefault, nullptr);
  truth.Check(by_runtime == by_driver && by_runtime == again, "one function has one address");
  return truth.Finish();
}
