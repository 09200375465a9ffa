#include "preload/nvtx/memory.h"

#include "preload/nvtx/record_nvtx.h"
#include "preload/nvtx/regions.h"
#include "preload/record/record_event.h"

namespace gmt::preload {
namespace {

// The functions that are handled, by NVTX3EXT_CBID_*.
#define GMT_MEMORY_FUNCTIONS(define)                                                             \
  define(HeapRegister, nvtxMemHeapHandle_t, (nvtxDomainHandle_t, nvtxMemHeapDesc_t const*))      \
      define(HeapUnregister, void, (nvtxDomainHandle_t, nvtxMemHeapHandle_t))                    \
          define(HeapReset, void, (nvtxDomainHandle_t, nvtxMemHeapHandle_t)) define(             \
              RegionsRegister, void, (nvtxDomainHandle_t, nvtxMemRegionsRegisterBatch_t const*)) \
              define(RegionsResize, void,                                                        \
                     (nvtxDomainHandle_t, nvtxMemRegionsResizeBatch_t const*))                   \
                  define(RegionsUnregister, void,                                                \
                         (nvtxDomainHandle_t, nvtxMemRegionsUnregisterBatch_t const*))           \
                      define(RegionsName, void,                                                  \
                             (nvtxDomainHandle_t, nvtxMemRegionsNameBatch_t const*))

constexpr size_t kSlots = NVTX3EXT_CBID_nvtxMemRegionsName + 1;

// Cache: the other tool's functions.
constinit std::atomic<intptr_t> next[kSlots] = {};

#define GMT_DECLARE(function, Result, parameters)                               \
  using Type##function = Result(*) parameters;                                  \
  Result function parameters;                                                   \
  inline Type##function Next##function() {                                      \
    return reinterpret_cast<Type##function>(                                    \
        next[NVTX3EXT_CBID_nvtxMem##function].load(std::memory_order_relaxed)); \
  }
GMT_MEMORY_FUNCTIONS(GMT_DECLARE)
#undef GMT_DECLARE

uint64_t Number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// A batch's elements, spaced as in the program's version of NVTX.
template <typename Element>
class Elements {
 public:
  Elements(const void* first, size_t count, size_t size)
      : at_(static_cast<const char*>(first)),
        count_(first == nullptr || size < sizeof(Element) ? 0 : count),
        size_(size) {}

  size_t count() const { return count_; }
  const Element& operator[](size_t i) const {
    return *reinterpret_cast<const Element*>(at_ + i * size_);
  }

 private:
  const char* at_;
  size_t count_, size_;
};

using Ranges = Elements<nvtxMemVirtualRangeDesc_t>;

template <typename Batch>
bool IsKnown(const Batch* batch) {
  return batch != nullptr && batch->structSize >= sizeof(Batch);
}

// ---- Heaps --------------------------------------------------------------------------------------

nvtxMemHeapHandle_t HeapRegister(nvtxDomainHandle_t d, nvtxMemHeapDesc_t const* desc) {
  const auto other = NextHeapRegister();
  nvtxMemHeapHandle_t handle = other != nullptr ? other(d, desc) : nullptr;
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr || !IsKnown(desc)) return handle;
  const KeepErrno keep;
  nvtxMemVirtualRangeDesc_t range = {};
  if (desc->type == NVTX_MEM_TYPE_VIRTUAL_ADDRESS && desc->typeSpecificDesc != nullptr &&
      desc->typeSpecificDescSize >= sizeof(range)) {
    range = *static_cast<const nvtxMemVirtualRangeDesc_t*>(desc->typeSpecificDesc);
  }
  // The handle of memory with addresses is its address; for other memory it is arbitrary.
  if (handle == nullptr) handle = static_cast<nvtxMemHeapHandle_t>(const_cast<void*>(range.ptr));
  if (handle == nullptr) handle = reinterpret_cast<nvtxMemHeapHandle_t>(tables->heaps.NewHandle());
  const NvtxMessage message(static_cast<int32_t>(desc->messageType), desc->message);
  NvtxName* name =
      message.registered() != nullptr ? message.registered() : tables->names.Enter(message.text());
  NvtxHeap* heap = tables->heaps.Add(Number(handle), Number(range.ptr), range.size, name,
                                     NvtxTables::DomainOf(d));
  const WriteGuard p = IfRecordingNvtx();
  if (p == nullptr) return handle;
  if (heap != nullptr) {
    RecordHeap(p, heap);
  } else {
    p->Count(session::kActivitiesDropped);
  }
  return handle;
}

// Ends all regions in a heap or, for NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE, those that are in no other
// heap.
void EndRegionsOf(NvtxTables* tables, Process* p, nvtxMemHeapHandle_t handle, NvtxHeap* heap) {
  if (handle == NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE) {
    EndRegionsWhere(p, [tables](uint64_t address) { return !tables->heaps.Contain(address); });
  } else if (heap != nullptr) {
    EndRegionsWhere(p, [heap](uint64_t address) { return heap->Contains(address); });
  }
}

void EndHeap(nvtxMemHeapHandle_t handle, bool for_good) {
  NvtxTables* tables = NvtxTables::IfMapped();
  if (tables == nullptr) return;
  const KeepErrno keep;
  NvtxHeap* heap = tables->heaps.Find(Number(handle));
  if (const WriteGuard p = IfRecordingNvtx(); p != nullptr) {
    EndRegionsOf(tables, p, handle, heap);
    if (heap != nullptr && for_good) RecordEndOfHeap(p, *heap);
  }
  if (heap != nullptr && for_good) NvtxHeaps::Remove(heap);
}

void HeapUnregister(nvtxDomainHandle_t d, nvtxMemHeapHandle_t heap) {
  if (heap != NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE) EndHeap(heap, true);
  if (const auto other = NextHeapUnregister()) other(d, heap);
}

void HeapReset(nvtxDomainHandle_t d, nvtxMemHeapHandle_t heap) {
  EndHeap(heap, false);
  if (const auto other = NextHeapReset()) other(d, heap);
}

// ---- Regions -----------------------------------------------------------------------------------

// Returns a region's address: its handle, unless another tool has assigned a different one.
uint64_t AddressOf(uint32_t type, nvtxMemRegionRef_t region) {
  uint64_t address = Number(region.pointer);
  if (type != NVTX_MEM_REGION_REF_TYPE_HANDLE) return address;
  if (NvtxTables* tables = NvtxTables::IfMapped(); tables != nullptr)
    tables->regions.Find(Number(region.handle), &address);
  return address;
}

// Fills the program's array of handles, unless the other tool has filled it.
void KeepHandles(const Ranges& ranges, nvtxMemRegionHandle_t* handles, bool filled) {
  NvtxTables* tables = NvtxTables::IfMapped();
  for (size_t i = 0; handles != nullptr && i < ranges.count(); ++i) {
    if (!filled) {
      handles[i] = static_cast<nvtxMemRegionHandle_t>(const_cast<void*>(ranges[i].ptr));
    } else if (tables != nullptr && handles[i] != ranges[i].ptr) {
      tables->regions.Put(Number(handles[i]), Number(ranges[i].ptr));
    }
  }
}

void RegionsRegister(nvtxDomainHandle_t d, nvtxMemRegionsRegisterBatch_t const* batch) {
  const auto other = NextRegionsRegister();
  if (other != nullptr) other(d, batch);
  if (!IsKnown(batch) || batch->regionType != NVTX_MEM_TYPE_VIRTUAL_ADDRESS) return;
  const KeepErrno keep;
  const Ranges ranges(batch->regionDescElements, batch->regionCount, batch->regionDescElementSize);
  KeepHandles(ranges, batch->regionHandleElementsOut, other != nullptr);
  const WriteGuard p = IfRecordingNvtx();
  if (p == nullptr) return;
  for (size_t i = 0; i < ranges.count(); ++i)
    BeginRegion(p, Number(ranges[i].ptr), ranges[i].size, 0);
}

void RegionsResize(nvtxDomainHandle_t d, nvtxMemRegionsResizeBatch_t const* batch) {
  if (const auto other = NextRegionsResize()) other(d, batch);
  if (!IsKnown(batch) || batch->regionType != NVTX_MEM_TYPE_VIRTUAL_ADDRESS) return;
  const WriteGuard p = IfRecordingNvtx();
  if (p == nullptr) return;
  const KeepErrno keep;
  const Ranges ranges(batch->regionDescElements, batch->regionDescCount,
                      batch->regionDescElementSize);
  for (size_t i = 0; i < ranges.count(); ++i)
    ResizeRegion(p, Number(ranges[i].ptr), ranges[i].size);
}

void RegionsUnregister(nvtxDomainHandle_t d, nvtxMemRegionsUnregisterBatch_t const* batch) {
  if (IsKnown(batch)) {
    const KeepErrno keep;
    const WriteGuard p = IfRecordingNvtx();
    const Elements<nvtxMemRegionRef_t> refs(batch->refElements, batch->refCount,
                                            batch->refElementSize);
    for (size_t i = 0; p != nullptr && i < refs.count(); ++i)
      EndRegion(p, AddressOf(batch->refType, refs[i]));
    uint64_t address;
    NvtxTables* tables = NvtxTables::IfMapped();
    for (size_t i = 0; tables != nullptr && i < refs.count(); ++i) {
      if (batch->refType == NVTX_MEM_REGION_REF_TYPE_HANDLE)
        tables->regions.Take(Number(refs[i].handle), &address);
    }
  }
  if (const auto other = NextRegionsUnregister()) other(d, batch);
}

void RegionsName(nvtxDomainHandle_t d, nvtxMemRegionsNameBatch_t const* batch) {
  if (const auto other = NextRegionsName()) other(d, batch);
  const WriteGuard p = IfRecordingNvtx();
  if (p == nullptr || !IsKnown(batch)) return;
  const KeepErrno keep;
  const Elements<nvtxMemRegionNameDesc_t> names(batch->regionElements, batch->regionCount,
                                                batch->regionElementSize);
  for (size_t i = 0; i < names.count(); ++i) {
    const NvtxMessage message(static_cast<int32_t>(names[i].nameType), names[i].name);
    NameRegion(p, AddressOf(names[i].regionRefType, names[i].region), TextId(p, message));
  }
}

struct Slot {
  size_t number;
  intptr_t function;
};
const Slot kTaken[] = {
#define GMT_SLOT(function, ...) \
  {NVTX3EXT_CBID_nvtxMem##function, reinterpret_cast<intptr_t>(function)},
    GMT_MEMORY_FUNCTIONS(GMT_SLOT)
#undef GMT_SLOT
};

// Minor versions differ only in additions.
constexpr int Major(uint16_t compat) { return compat >> 8; }

}  // namespace

bool IsMemoryExtension(const nvtxExtModuleInfo_t& module) {
  return module.moduleId == NVTX_EXT_MODULEID_MEM &&
         Major(module.compatId) == Major(NVTX_EXT_COMPATID_MEM) && module.segmentsCount > 0 &&
         module.segments != nullptr && module.segments[0].functionSlots != nullptr &&
         module.segments[0].slotCount >= kSlots;
}

void TakeMemoryExtension(const nvtxExtModuleInfo_t& module) {
  intptr_t* slots = module.segments[0].functionSlots;
  for (const Slot& slot : kTaken) {
    const intptr_t other = slots[slot.number];
    intptr_t known = 0;
    const bool taken = other == 0 || other == slot.function ||
                       next[slot.number].compare_exchange_strong(known, other) || known == other;
    if (!taken) return;
  }
  for (const Slot& slot : kTaken) slots[slot.number] = slot.function;
}

}  // namespace gmt::preload
