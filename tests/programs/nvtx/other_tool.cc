// Another NVTX tool, like that of a profiler. It implements functions of the core tables and of the
// memory extension and returns its own handles. At exit it writes the number of calls of each
// function to the file that OTHER_TOOL_LOG names, one line each. With OTHER_TOOL_FORKS, it starts a
// process that calls NVTX while it is being loaded.

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

[[gnu::constructor]] void ForkWhileBeingLoaded() {
  if (std::getenv("OTHER_TOOL_FORKS") == nullptr) return;
  const pid_t child = fork();
  if (child == 0) {
    nvtxMarkA("mark of a fork child");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

std::map<std::string, int> calls;
std::mutex lock;
uintptr_t last_handle = 0x1000;

void Count(const char* name) {
  const std::lock_guard<std::mutex> hold(lock);
  ++calls[name];
}

template <typename Handle>
Handle NewHandle() {
  const std::lock_guard<std::mutex> hold(lock);
  return reinterpret_cast<Handle>(last_handle += 0x10);
}

// Counts a handle that this tool has not returned.
template <typename Handle>
void CheckHandle(Handle handle, const char* name) {
  const auto number = reinterpret_cast<uintptr_t>(handle);
  if (number != 0 && (number <= 0x1000 || number > last_handle))
    Count((std::string("unknown handle in ") + name).c_str());
}

void Message(const nvtxEventAttributes_t* a, const char* name) {
  Count(name);
  if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED) CheckHandle(a->message.registered, name);
}

void MarkEx(const nvtxEventAttributes_t* a) { Message(a, "MarkEx"); }
void MarkA(const char*) { Count("MarkA"); }
nvtxRangeId_t RangeStartA(const char*) {
  Count("RangeStartA");
  return 77;
}
void RangeEnd(nvtxRangeId_t id) { Count(id == 77 ? "RangeEnd 77" : "RangeEnd of another id"); }
int RangePushA(const char*) {
  Count("RangePushA");
  return 40;
}
int RangePop() {
  Count("RangePop");
  return 41;
}
void DomainMarkEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  CheckHandle(d, "DomainMarkEx");
  Message(a, "DomainMarkEx");
}
int DomainRangePushEx(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  CheckHandle(d, "DomainRangePushEx");
  Message(a, "DomainRangePushEx");
  return 0;
}
int DomainRangePop(nvtxDomainHandle_t d) {
  CheckHandle(d, "DomainRangePop");
  Count("DomainRangePop");
  return 0;
}
nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t d, const char*) {
  CheckHandle(d, "DomainRegisterStringA");
  Count("DomainRegisterStringA");
  return NewHandle<nvtxStringHandle_t>();
}
nvtxDomainHandle_t DomainCreateA(const char*) {
  Count("DomainCreateA");
  return NewHandle<nvtxDomainHandle_t>();
}
void NameCategoryA(uint32_t, const char*) { Count("NameCategoryA"); }
nvtxMemHeapHandle_t HeapRegister(nvtxDomainHandle_t d, nvtxMemHeapDesc_t const*) {
  CheckHandle(d, "HeapRegister");
  Count("HeapRegister");
  return NewHandle<nvtxMemHeapHandle_t>();
}
void HeapUnregister(nvtxDomainHandle_t, nvtxMemHeapHandle_t heap) {
  CheckHandle(heap, "HeapUnregister");
  Count("HeapUnregister");
}
void RegionsRegister(nvtxDomainHandle_t, nvtxMemRegionsRegisterBatch_t const* batch) {
  Count("RegionsRegister");
  for (size_t i = 0; batch->regionHandleElementsOut != nullptr && i < batch->regionCount; ++i)
    batch->regionHandleElementsOut[i] = NewHandle<nvtxMemRegionHandle_t>();
}
void RegionsUnregister(nvtxDomainHandle_t, nvtxMemRegionsUnregisterBatch_t const* batch) {
  Count("RegionsUnregister");
  for (size_t i = 0; i < batch->refCount; ++i) {
    if (batch->refType == NVTX_MEM_REGION_REF_TYPE_HANDLE)
      CheckHandle(batch->refElements[i].handle, "RegionsUnregister");
  }
}

struct AtExit {
  ~AtExit() {
    const char* path = std::getenv("OTHER_TOOL_LOG");
    FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    for (const auto& [name, count] : calls) std::fprintf(file, "%d %s\n", count, name.c_str());
    std::fclose(file);
  }
} at_exit;

template <typename Function>
void Take(NvtxFunctionTable table, int id, Function* function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get) {
  const auto* tables = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable core, core2;
  unsigned size;
  tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size);
  tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size);
  Take(core, NVTX_CBID_CORE_MarkEx, MarkEx);
  Take(core, NVTX_CBID_CORE_MarkA, MarkA);
  Take(core, NVTX_CBID_CORE_RangeStartA, RangeStartA);
  Take(core, NVTX_CBID_CORE_RangeEnd, RangeEnd);
  Take(core, NVTX_CBID_CORE_RangePushA, RangePushA);
  Take(core, NVTX_CBID_CORE_RangePop, RangePop);
  Take(core, NVTX_CBID_CORE_NameCategoryA, NameCategoryA);
  Take(core2, NVTX_CBID_CORE2_DomainMarkEx, DomainMarkEx);
  Take(core2, NVTX_CBID_CORE2_DomainRangePushEx, DomainRangePushEx);
  Take(core2, NVTX_CBID_CORE2_DomainRangePop, DomainRangePop);
  Take(core2, NVTX_CBID_CORE2_DomainRegisterStringA, DomainRegisterStringA);
  Take(core2, NVTX_CBID_CORE2_DomainCreateA, DomainCreateA);
  Count("InitializeInjectionNvtx2");
  return 1;
}

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  if (module->moduleId != NVTX_EXT_MODULEID_MEM) return 0;
  intptr_t* slots = module->segments[0].functionSlots;
  slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = reinterpret_cast<intptr_t>(HeapRegister);
  slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = reinterpret_cast<intptr_t>(HeapUnregister);
  slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = reinterpret_cast<intptr_t>(RegionsRegister);
  slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = reinterpret_cast<intptr_t>(RegionsUnregister);
  Count("InitializeInjectionNvtxExtension");
  return 1;
}
