// preload/hooks/call_words.h
//
// The vocabulary of preload/hooks/hook_table.inc: functions that describe what a call does from its
// parameters.

#ifndef GMT_PRELOAD_HOOKS_CALL_WORDS_H_
#define GMT_PRELOAD_HOOKS_CALL_WORDS_H_

#include <cuda.h>
#include <driver_types.h>
#include <stdint.h>

#include "preload/hooks/array_bytes.h"
#include "preload/record/call_event.h"

namespace gmt::preload {

// Returns the stream, with 0 replaced for callers that use per-thread default streams.
template <typename Stream>
uint64_t PerThread(Stream stream) {
  return stream == nullptr ? Number(CU_STREAM_PER_THREAD) : Number(stream);
}

// ---- Allocations --------------------------------------------------------------------------------

// Device memory of all kinds shares one space: cudaFree takes any of them.
inline Space SpaceOf(Memory memory) {
  switch (memory) {
    case Memory::kPinned:
      return Space::kPinned;
    case Memory::kArray:
    case Memory::kMipmapped:
      return Space::kArray;
    default:
      return Space::kDevice;
  }
}

template <typename Out>
Acquisition Allocates(Memory memory, const Out* out, uint64_t size) {
  return {.kind = Kind::kAlloc,
          .space = SpaceOf(memory),
          .memory = memory,
          .out = Output(out),
          .size = size};
}
template <typename Pointer>
Return Frees(Memory memory, Pointer ptr) {
  return {.kind = Kind::kFree, .space = SpaceOf(memory), .memory = memory, .value = Number(ptr)};
}

inline uint64_t Area(uint64_t width, uint64_t height) { return width * height; }
inline uint64_t Volume(cudaExtent extent, uint64_t element) {
  return extent.width * extent.height * extent.depth * element;
}

inline Acquisition Registers(void* ptr, size_t size) {
  return {.kind = Kind::kRegister,
          .space = Space::kPinned,
          .memory = Memory::kRegistered,
          .value = Number(ptr),
          .size = size};
}
inline Return Unregisters(void* ptr) {
  return {.kind = Kind::kUnregister,
          .space = Space::kPinned,
          .memory = Memory::kRegistered,
          .value = Number(ptr)};
}

// ---- Memory made by another process, graphics API or device -------------------------------------

template <typename Out>
Acquisition Imports(Space space, Memory memory, const Out* out, uint64_t size) {
  return {
      .kind = Kind::kImport, .space = space, .memory = memory, .out = Output(out), .size = size};
}
template <typename Handle>
Return Unimports(Memory memory, Handle handle) {
  return {.kind = Kind::kUnimport, .space = Space::kIpc, .memory = memory, .value = Number(handle)};
}
// A view of imported memory, freed like an allocation.
template <typename Out>
Acquisition MapsExternal(Space space, const Out* out, const void* memory, uint64_t size) {
  return {.kind = Kind::kMap,
          .space = space,
          .memory = Memory::kExternal,
          .out = Output(out),
          .size = size,
          .stream = Number(memory)};
}
template <typename Size>
Acquisition MapsGraphics(const void* resource, const Size* size) {
  return {.kind = Kind::kMap,
          .space = Space::kIpc,
          .memory = Memory::kGraphics,
          .value = Number(resource),
          .size_out = Output(size)};
}
template <typename Resource>
ReturnOfMany UnmapsGraphics(const Resource* resources, uint64_t count) {
  static_assert(sizeof(Resource) == sizeof(uint64_t));
  return {.kind = Kind::kUnmap,
          .space = Space::kIpc,
          .memory = Memory::kGraphics,
          .list = reinterpret_cast<const uint64_t*>(resources),
          .count = resources == nullptr ? 0 : count};
}

// ---- Virtual memory management ------------------------------------------------------------------
// Addresses are reserved, physical memory is created, and mappings join the two. Physical memory
// lives until it has been released and is no longer mapped.

inline Acquisition Reserves(const CUdeviceptr* out, size_t size) {
  return {.kind = Kind::kReserve,
          .space = Space::kReservation,
          .memory = Memory::kVmm,
          .out = Output(out),
          .size = size};
}
inline Return Unreserves(CUdeviceptr ptr) {
  return {
      .kind = Kind::kUnreserve, .space = Space::kReservation, .memory = Memory::kVmm, .value = ptr};
}
inline Acquisition Creates(const CUmemGenericAllocationHandle* out, size_t size,
                           const CUmemAllocationProp* prop) {
  const bool on_device = prop != nullptr && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return {.kind = Kind::kCreate,
          .space = Space::kPhysical,
          .memory = Memory::kVmm,
          .out = Output(out),
          .size = size,
          .device = on_device ? static_cast<uint8_t>(prop->location.id) : session::kNoDevice};
}
inline Acquisition CreatesMulticast(const CUmemGenericAllocationHandle* out, size_t size) {
  return {.kind = Kind::kCreate,
          .space = Space::kPhysical,
          .memory = Memory::kMulticast,
          .out = Output(out),
          .size = size};
}
inline Reference Retains(const CUmemGenericAllocationHandle* out) { return {Output(out)}; }
inline Return Releases(CUmemGenericAllocationHandle handle) {
  return {
      .kind = Kind::kRelease, .space = Space::kPhysical, .memory = Memory::kVmm, .value = handle};
}
inline Acquisition Maps(CUdeviceptr ptr, size_t size, CUmemGenericAllocationHandle handle) {
  return {.kind = Kind::kMap,
          .space = Space::kMapping,
          .memory = Memory::kVmm,
          .value = ptr,
          .size = size,
          .stream = handle};
}
inline ReturnOfMany Unmaps(CUdeviceptr ptr, size_t size) {
  return {.kind = Kind::kUnmap,
          .space = Space::kMapping,
          .memory = Memory::kVmm,
          .start = ptr,
          .size = size};
}

// ---- Nodes of graphs, pools ---------------------------------------------------------------------

template <typename Parameters>
uint64_t BytesOf(const Parameters* parameters) {
  return parameters == nullptr ? 0 : parameters->bytesize;
}
inline NodeAddition AddsNode(CUgraphNodeParams* parameters) { return {parameters}; }

template <typename Out>
Activity MakesPool(const Out* out) {
  return {.kind = Kind::kPool, .action = Action::kCreate, .out = Output(out)};
}
template <typename Out>
Activity ImportsPool(const Out* out) {
  return {.kind = Kind::kPool, .action = Action::kImport, .out = Output(out)};
}
template <typename Pool>
Activity DestroysPool(Pool pool) {
  return {.kind = Kind::kPool, .action = Action::kDestroy, .object = Number(pool)};
}
template <typename Pool>
Activity TrimsPool(Pool pool, uint64_t kept) {
  return {.kind = Kind::kPool, .action = Action::kTrim, .object = Number(pool), .amount = kept};
}

// ---- Streams and events -------------------------------------------------------------------------

template <typename Out>
Activity MakesStream(const Out* out, unsigned flags, int priority) {
  static_assert(CU_STREAM_NON_BLOCKING == cudaStreamNonBlocking);
  const int non_blocking = flags & CU_STREAM_NON_BLOCKING ? session::kNonBlocking : 0;
  return {.kind = Kind::kStream,
          .action = Action::kCreate,
          .out = Output(out),
          .flags = static_cast<uint8_t>(non_blocking),
          .priority = static_cast<int16_t>(priority)};
}
template <typename Stream>
Activity EndsStream(Stream stream) {
  return {.kind = Kind::kStream, .action = Action::kDestroy, .stream = Number(stream)};
}
template <typename Event, typename Stream>
Activity RecordsEvent(Event event, Stream stream, const void* caller) {
  return {.kind = Kind::kEventRecord,
          .object = Number(event),
          .stream = Number(stream),
          .timed = true,
          .caller = caller};
}
// The handle may be reused for another event, which then counts as never recorded.
template <typename Event>
Activity EndsEvent(Event event) {
  return {.kind = Kind::kEventRecord, .action = Action::kDestroy, .object = Number(event)};
}
// Succeeds if the event has completed.
template <typename Event>
Activity AsksForEvent(Event event, const void* caller) {
  return {.kind = Kind::kSync, .action = Action::kEvent, .object = Number(event), .caller = caller};
}
template <typename Event>
Activity AwaitsEvent(Event event, const void* caller) {
  return {.kind = Kind::kSync,
          .action = Action::kEvent,
          .object = Number(event),
          .waits = true,
          .caller = caller};
}
template <typename Stream, typename Event>
Activity MakesStreamWait(Stream stream, Event event) {
  return {
      .kind = Kind::kEventWait, .object = Number(event), .stream = Number(stream), .timed = true};
}
template <typename Stream>
Activity AsksForStream(Stream stream) {
  return {.kind = Kind::kSync, .action = Action::kStream, .stream = Number(stream)};
}
template <typename Stream>
Activity AwaitsStream(Stream stream) {
  return {.kind = Kind::kSync, .action = Action::kStream, .stream = Number(stream), .waits = true};
}
// `context`: 0 is the calling thread's.
inline Activity AwaitsDevice(uint64_t context = 0) {
  return {.kind = Kind::kSync, .action = Action::kDevice, .object = context, .waits = true};
}
// Work issued to a stream between these two calls is captured into a graph, not executed.
template <typename Stream>
Activity BeginsCapture(Stream stream) {
  return {.kind = Kind::kGraph, .action = Action::kBeginCapture, .stream = Number(stream)};
}
template <typename Stream, typename Graph>
Activity EndsCapture(Stream stream, const Graph* graph) {
  return {.kind = Kind::kGraph,
          .action = Action::kEndCapture,
          .out = Output(graph),
          .stream = Number(stream)};
}
template <typename Graph, typename Stream>
Activity LaunchesGraph(Graph graph, Stream stream) {
  return {.kind = Kind::kGraph,
          .action = Action::kLaunch,
          .object = Number(graph),
          .stream = Number(stream)};
}

// ---- Contexts, queries --------------------------------------------------------------------------

template <typename Bytes>
Measurement Measures(const Bytes* free, const Bytes* total) {
  return {Output(free), Output(total)};
}

inline ContextStart MakesContext(const CUcontext* out, CUdevice device) {
  return {Output(out), static_cast<uint8_t>(device)};
}
inline ContextEnd EndsContext(CUcontext context) {
  return {.which = ContextEnd::Which::kHandle, .context = Number(context)};
}
inline ContextEnd ResetsPrimary(CUdevice device) {
  return {.which = ContextEnd::Which::kPrimary, .device = device};
}
inline ContextEnd ReleasesPrimary(CUdevice device) {
  return {.which = ContextEnd::Which::kPrimary, .device = device, .if_last = true};
}
inline ContextEnd ResetsCurrentDevice() {
  return {.which = ContextEnd::Which::kPrimaryOfThisThread};
}

// Both CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM and cudaEnablePerThreadDefaultStream.
inline constexpr uint64_t kPerThreadQuery = 2;
inline HandingOut HandsOut(const char* name, void** function, unsigned version, uint64_t flags) {
  return {name, function, version, (flags & kPerThreadQuery) != 0};
}
// Callers of a _ptsz query get per-thread functions unless they request otherwise
// (cudaEnableLegacyStream: 1).
inline uint64_t PerThreadQuery(uint64_t flags) { return flags == 0 ? kPerThreadQuery : flags; }

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_HOOKS_CALL_WORDS_H_
