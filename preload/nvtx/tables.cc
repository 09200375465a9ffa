#include "preload/nvtx/tables.h"

#include <sys/mman.h>

namespace gmt::preload {
namespace {

NvtxName* NameOf(NvtxTables* tables, decltype(NvtxTables::strings) NvtxTables::*others,
                 const void* handle) {
  if (tables == nullptr || handle == nullptr) return nullptr;
  if (tables->names.Contains(handle)) {
    return static_cast<NvtxName*>(const_cast<void*>(handle));
  }
  uint64_t name = 0;
  (tables->*others).Find(reinterpret_cast<uint64_t>(handle), &name);
  return reinterpret_cast<NvtxName*>(name);
}

}  // namespace

// Cache: handles that the program holds. Ids of texts are kept with the recording's identity.
constinit std::atomic<NvtxTables*> NvtxTables::mapped_{nullptr};

NvtxTables* NvtxTables::Map() {
  NvtxTables* tables = IfMapped();
  if (tables != nullptr) return tables;
  void* fresh = mmap(nullptr, sizeof(NvtxTables), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  if (mapped_.compare_exchange_strong(tables, static_cast<NvtxTables*>(fresh),
                                      std::memory_order_acq_rel)) {
    return static_cast<NvtxTables*>(fresh);
  }
  munmap(fresh, sizeof(NvtxTables));
  return tables;
}

NvtxName* NvtxTables::StringOf(const void* handle) {
  return NameOf(IfMapped(), &NvtxTables::strings, handle);
}
NvtxName* NvtxTables::DomainOf(const void* handle) {
  return NameOf(IfMapped(), &NvtxTables::domains, handle);
}

}  // namespace gmt::preload
