// Programs that reach driver functions through the runtime ask it for pointers here (PyTorch's
// expandable segments do). What they get is our hook around the pointer that the runtime would have
// given them.

#include <cuda_runtime_api.h>

#include <atomic>

#include "preload/export.h"
#include "preload/hook.h"
#include "preload/real_function.h"

namespace gmt::preload {
namespace {

// The real function of one runtime; found at the first call.
template <typename Function>
Function RealQuery(const char* name, int slot, std::atomic<void*>* place) {
  void* real = place->load(std::memory_order_acquire);
  if (real == nullptr) {
    const KeepErrno keep;
    real = FindRuntimeFunction(name, kRuntimeNodes[slot]);
    place->store(real, std::memory_order_release);
  }
  return reinterpret_cast<Function>(real);
}

using Status = cudaDriverEntryPointQueryResult;
using Query = cudaError_t (*)(const char* symbol, void** function, unsigned long long flags,
                              Status* status);
using QueryByVersion = cudaError_t (*)(const char* symbol, void** function, unsigned version,
                                       unsigned long long flags, Status* status);

// A query without a version means the runtime's own.
constexpr unsigned kVersionOfSlot[] = {11080, 12090, 13990, 14990, 15990};

void HandOutHook(cudaError_t result, const char* symbol, unsigned version, void** function) {
  if (result == cudaSuccess && symbol != nullptr && function != nullptr) {
    *function = DriverHookFor(symbol, version, *function);
  }
}

cudaError_t GetEntryPoint(const char* name, int slot, std::atomic<void*>* place, const char* symbol,
                          void** function, unsigned long long flags, Status* status) {
  const auto real = RealQuery<Query>(name, slot, place);
  if (real == nullptr) return static_cast<cudaError_t>(kSymbolNotFound);
  const cudaError_t result = real(symbol, function, flags, status);
  HandOutHook(result, symbol, kVersionOfSlot[slot], function);
  return result;
}

cudaError_t GetEntryPointByVersion(const char* name, int slot, std::atomic<void*>* place,
                                   const char* symbol, void** function, unsigned version,
                                   unsigned long long flags, Status* status) {
  const auto real = RealQuery<QueryByVersion>(name, slot, place);
  if (real == nullptr) return static_cast<cudaError_t>(kSymbolNotFound);
  const cudaError_t result = real(symbol, function, version, flags, status);
  HandOutHook(result, symbol, version, function);
  return result;
}

}  // namespace
}  // namespace gmt::preload

#define GMT_EXPORT_QUERY(slot, suffix, node, name)                                           \
  GMT_EXPORT cudaError_t gmt_##name##_##suffix(const char* symbol, void** function,          \
                                               unsigned long long flags,                     \
                                               gmt::preload::Status* status) {               \
    static constinit std::atomic<void*> real{nullptr};                                       \
    return gmt::preload::GetEntryPoint(#name, slot, &real, symbol, function, flags, status); \
  }                                                                                          \
  GMT_VERSIONED(name, suffix, node)

#define GMT_EXPORT_QUERY_BY_VERSION(slot, suffix, node, name)                                  \
  GMT_EXPORT cudaError_t gmt_##name##_##suffix(const char* symbol, void** function,            \
                                               unsigned int version, unsigned long long flags, \
                                               gmt::preload::Status* status) {                 \
    static constinit std::atomic<void*> real{nullptr};                                         \
    return gmt::preload::GetEntryPointByVersion(#name, slot, &real, symbol, function, version, \
                                                flags, status);                                \
  }                                                                                            \
  GMT_VERSIONED(name, suffix, node)

GMT_FOR_EACH_RUNTIME(GMT_EXPORT_QUERY, cudaGetDriverEntryPoint)
GMT_FOR_EACH_RUNTIME(GMT_EXPORT_QUERY, cudaGetDriverEntryPoint_ptsz)
GMT_FOR_EACH_RUNTIME(GMT_EXPORT_QUERY_BY_VERSION, cudaGetDriverEntryPointByVersion)
GMT_FOR_EACH_RUNTIME(GMT_EXPORT_QUERY_BY_VERSION, cudaGetDriverEntryPointByVersion_ptsz)
