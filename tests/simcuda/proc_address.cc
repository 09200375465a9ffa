// cuGetProcAddress in both ABIs: 4 arguments (CUDA 11.3) and 5 (CUDA 12, exported with the suffix
// _v2).
//
// Returns the newest form of a function that the caller's CUDA version knows; "cuGetProcAddress"
// itself follows the same rule. The addresses in the table are those of the exported symbols.
// Linked with -Bsymbolic they are this library's own; otherwise the dynamic linker resolves them,
// and another library that exports the same name takes precedence.
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "tests/simcuda/export_table.h"
#include "tests/simcuda/simulator.h"

#undef cuGetProcAddress
extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress(const char* name,
                                                                            void** function,
                                                                            int version,
                                                                            cuuint64_t flags);

namespace {

struct Entry {
  const char* name;
  int since;  // CUDA version * 1000 + 10 * minor
  void* function;
  void* per_thread;  // the form for CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
};

template <typename Function>
void* Address(Function* function) {
  return reinterpret_cast<void*>(function);
}

#define SIM_ENTRY(name, since, symbol) {#name, since, Address(symbol), Address(symbol)},
#define SIM_STREAM_ENTRY(name, since, symbol, per_thread) \
  {#name, since, Address(symbol), Address(per_thread)},
const Entry kEntries[] = {
#include "tests/simcuda/driver/functions.inc"
    SIM_ENTRY(cuGetExportTable, 3000, cuGetExportTable)
        SIM_ENTRY(cuGetProcAddress, 11030, cuGetProcAddress)
            SIM_ENTRY(cuGetProcAddress, 12000, cuGetProcAddress_v2)};
#undef SIM_ENTRY
#undef SIM_STREAM_ENTRY

CUdriverProcAddressQueryResult Resolve(const char* name, void** function, int version,
                                       cuuint64_t flags) {
  const Entry* best = nullptr;
  bool known = false;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, name) != 0) continue;
    known = true;
    if (entry.since <= version && (best == nullptr || entry.since > best->since)) best = &entry;
  }
  *function = nullptr;
  if (best == nullptr) {
    return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                 : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  *function = per_thread ? best->per_thread : best->function;
  return CU_GET_PROC_ADDRESS_SUCCESS;
}

CUresult MemoryUseOf(int ordinal, sim::MemoryUse* use) {
  return sim::Call(__func__, sim::CallGroup::kOther, [&](sim::Simulator& simulator) {
    sim::Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    sim::Budget& budget = device->budget();
    *use = {budget.total(), budget.used(), budget.foreign()};
    return CUDA_SUCCESS;
  });
}

CUresult ProcessesOn(int ordinal, sim::ProcessUse* list, unsigned int room, unsigned int* count) {
  return sim::Call(__func__, sim::CallGroup::kOther, [&](sim::Simulator& simulator) {
    sim::Device* device = simulator.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *count = 0;
    auto add = [&](int pid, uint64_t bytes) {
      if (*count < room) list[*count] = {pid, bytes};
      ++*count;
    };
    add(getpid(), device->budget().used());
    if (simulator.shared() != nullptr) {
      for (auto& [pid, bytes] : simulator.shared()->Others(device->physical())) add(pid, bytes);
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult result = Resolve(name, function, version, flags);
  if (status != nullptr) *status = result;
  return result == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Resolve(name, function, version, flags) == CU_GET_PROC_ADDRESS_SUCCESS
             ? CUDA_SUCCESS
             : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  static const sim::ExportTable kTable = {&MemoryUseOf, &ProcessesOn, &sim::kToolTable};
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (std::memcmp(id, &sim::kExportTableId, sizeof(*id)) != 0) return CUDA_ERROR_NOT_FOUND;
  *table = &kTable;
  return CUDA_SUCCESS;
}
