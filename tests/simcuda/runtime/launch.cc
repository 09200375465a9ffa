// Kernels: their registration by nvcc's generated code before main, and launches.
//
// A fat binary becomes a driver library when one of its kernels or variables is first used:
// programs register tens of thousands of kernels and launch a few hundred.
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/simcuda/runtime/runtime.h"

namespace {

struct FatBinary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
};

struct Symbol {
  FatBinary* binary = nullptr;
  const char* name = nullptr;
  CUkernel kernel = nullptr;  // functions, once used
};

// Filled by static constructors of other libraries and used until the process ends, so it is never
// destroyed.
struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<const void*, Symbol> functions;
  std::unordered_map<const void*, Symbol> variables;
};

Registry& TheRegistry() {
  static Registry* registry = new Registry;
  return *registry;
}

CUresult Load(FatBinary& binary) {
  if (binary.library != nullptr) return CUDA_SUCCESS;
  return SIM_DRIVER(cuLibraryLoadData, 12000)(&binary.library, binary.image, nullptr, nullptr, 0,
                                              nullptr, nullptr, 0);
}

struct CallConfiguration {
  dim3 grid, block;
  size_t shared_memory;
  cudaStream_t stream;
};
thread_local CallConfiguration pending[8];  // launches nest only inside argument expressions
thread_local unsigned int pending_count = 0;

CUresult Launch(CUfunction function, dim3 grid, dim3 block, void** arguments, size_t shared_memory,
                cudaStream_t stream) {
  return SIM_DRIVER(cuLaunchKernel, 4000)(function, grid.x, grid.y, grid.z, block.x, block.y,
                                          block.z, static_cast<unsigned int>(shared_memory), stream,
                                          arguments, nullptr);
}

// The runtime passes a kernel where the driver expects a function, which the driver allows.
CUfunction FunctionOf(const void* host_function) {
  return reinterpret_cast<CUfunction>(sim::KernelOf(host_function));
}

}  // namespace

CUkernel sim::KernelOf(const void* host_function) {
  Registry& registry = TheRegistry();
  {
    std::shared_lock<std::shared_mutex> lock(registry.mutex);
    auto found = registry.functions.find(host_function);
    if (found == registry.functions.end()) return nullptr;
    if (found->second.kernel != nullptr) return found->second.kernel;
  }
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  auto found = registry.functions.find(host_function);
  if (found == registry.functions.end()) return nullptr;
  Symbol& symbol = found->second;
  if (symbol.kernel == nullptr && Load(*symbol.binary) == CUDA_SUCCESS) {
    SIM_DRIVER(cuLibraryGetKernel, 12000)(&symbol.kernel, symbol.binary->library, symbol.name);
  }
  return symbol.kernel;
}

CUresult sim::SymbolAddress(const void* symbol, CUdeviceptr* address) {
  Registry& registry = TheRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  auto found = registry.variables.find(symbol);
  if (found == registry.variables.end()) return CUDA_ERROR_NOT_FOUND;
  CUresult result = Load(*found->second.binary);
  if (result != CUDA_SUCCESS) return result;
  return SIM_DRIVER(cuLibraryGetGlobal, 12000)(address, nullptr, found->second.binary->library,
                                               found->second.name);
}

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new FatBinary{wrapper, nullptr});
}

void __cudaRegisterFatBinaryEnd(void**) {}

// Runs at process exit, in any order with destructors of code that uses the driver: does nothing.
void __cudaUnregisterFatBinary(void**) {}

char __cudaInitModule(void**) { return 0; }

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int,
                            uint3*, uint3*, dim3*, dim3*, int*) {
  Registry& registry = TheRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  registry.functions[host_function] = {reinterpret_cast<FatBinary*>(handle), name, nullptr};
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int, size_t,
                       int, int) {
  Registry& registry = TheRegistry();
  std::unique_lock<std::shared_mutex> lock(registry.mutex);
  registry.variables[host_variable] = {reinterpret_cast<FatBinary*>(handle), name, nullptr};
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory,
                                         CUstream_st* stream) {
  if (pending_count == std::size(pending)) return 1;
  pending[pending_count++] = {grid, block, shared_memory, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_memory,
                                       void* stream) {
  if (pending_count == 0) return sim::Remember(cudaErrorMissingConfiguration);
  const CallConfiguration& last = pending[--pending_count];
  *grid = last.grid;
  *block = last.block;
  *shared_memory = last.shared_memory;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  CUresult result = sim::EnsureContext();
  if (result != CUDA_SUCCESS) return sim::Remember(result);
  *kernel = sim::KernelOf(host_function);
  return *kernel != nullptr ? cudaSuccess : sim::Remember(cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_memory, cudaStream_t stream) {
  return sim::InContext([&] {
    return Launch(reinterpret_cast<CUfunction>(kernel), grid, block, arguments, shared_memory,
                  stream);
  });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_memory, cudaStream_t stream) {
  return sim::InContext(
      [&] { return Launch(FunctionOf(function), grid, block, arguments, shared_memory, stream); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  return sim::InContext([&] {
    return Launch(FunctionOf(function), config->gridDim, config->blockDim, arguments,
                  config->dynamicSmemBytes, config->stream);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared_memory,
                                        cudaStream_t stream) {
  return sim::InContext([&] {
    return SIM_DRIVER(cuLaunchCooperativeKernel, 9000)(
        FunctionOf(function), grid.x, grid.y, grid.z, block.x, block.y, block.z,
        static_cast<unsigned int>(shared_memory), stream, arguments);
  });
}

// Returns the driver's handle of a kernel, for the driver's own calls.
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (function == nullptr) return sim::Remember(cudaErrorInvalidValue);
  CUresult result = sim::EnsureContext();
  if (result != CUDA_SUCCESS) return sim::Remember(result);
  *function = FunctionOf(symbol);
  return *function != nullptr ? cudaSuccess : sim::Remember(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return sim::InContext([&] {
    CUfunction found = FunctionOf(function);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto get = [found](CUfunction_attribute attribute) {
      int value = 0;
      SIM_DRIVER(cuFuncGetAttribute, 2020)(&value, attribute, found);
      return value;
    };
    *attributes = {};
    attributes->sharedSizeBytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return sim::InContext([&] {
    return SIM_DRIVER(cuFuncSetAttribute, 9000)(
        FunctionOf(function), static_cast<CUfunction_attribute>(attribute), value);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size, size_t shared_memory) {
  return sim::InContext([&] {
    return SIM_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050)(
        blocks, FunctionOf(function), block_size, shared_memory);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, size_t shared_memory, unsigned int flags) {
  return sim::InContext([&] {
    return SIM_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000)(
        blocks, FunctionOf(function), block_size, shared_memory, flags);
  });
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return sim::InContext([&] {
    CUdeviceptr address = 0;
    CUresult result = sim::SymbolAddress(symbol, &address);
    *pointer = reinterpret_cast<void*>(address);
    return result;
  });
}
