// preload/call_event.h
//
// What a hooked call does, in the words of preload/hook_table.inc: Acquisition for calls that make
// something live, Return for those that end it, RangeReturn for those that end everything in a
// range of addresses.

#ifndef GMT_PRELOAD_CALL_EVENT_H_
#define GMT_PRELOAD_CALL_EVENT_H_

#include <cuda.h>
#include <stdint.h>

#include "session/layout.h"

namespace gmt::preload {

using session::Kind;
using session::Memory;
using session::Space;

// A pointer, handle or stream as the number that identifies it.
template <typename T>
uint64_t Number(T value) {
  return (uint64_t)value;  // NOLINT: pointers and integers alike
}

struct Acquisition {
  Kind kind;
  Space space;
  Memory memory;
  const void* out = nullptr;  // where the call leaves the address or handle; nullptr: it is `value`
  uint64_t value = 0;
  uint64_t size = 0;
  uint64_t stream = 0;  // of a map: the physical handle
  uint8_t device = session::kNoDevice;

  template <typename Stream>
  Acquisition On(Stream on) const {
    Acquisition a = *this;
    a.stream = Number(on);
    return a;
  }
};

struct Return {
  Kind kind;
  Space space;
  Memory memory;  // of what is freed, where the live table does not know it
  uint64_t value = 0;
  uint64_t stream = 0;

  template <typename Stream>
  Return On(Stream on) const {
    Return r = *this;
    r.stream = Number(on);
    return r;
  }
};

struct RangeReturn {
  Kind kind;
  Space space;
  Memory memory;
  uint64_t start = 0;
  uint64_t size = 0;
};

// Device memory of all kinds shares one space: cudaFree takes any of them.
inline Space SpaceOf(Memory memory) {
  return memory == Memory::kPinned ? Space::kPinned : Space::kDevice;
}

template <typename Out>
Acquisition Allocates(Memory memory, const Out* out, size_t size) {
  static_assert(sizeof(Out) == sizeof(uint64_t));
  return {
      .kind = Kind::kAlloc, .space = SpaceOf(memory), .memory = memory, .out = out, .size = size};
}
template <typename Pointer>
Return Frees(Memory memory, Pointer ptr) {
  return {.kind = Kind::kFree, .space = SpaceOf(memory), .memory = memory, .value = Number(ptr)};
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

// Virtual memory management: addresses are reserved, physical memory is created, and mappings join
// the two. Physical memory lives until it is released and nothing maps it any more.
inline Acquisition Reserves(const CUdeviceptr* out, size_t size) {
  return {.kind = Kind::kReserve,
          .space = Space::kReservation,
          .memory = Memory::kVmm,
          .out = out,
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
          .out = out,
          .size = size,
          .device = on_device ? static_cast<uint8_t>(prop->location.id) : session::kNoDevice};
}
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
inline RangeReturn Unmaps(CUdeviceptr ptr, size_t size) {
  return {.kind = Kind::kUnmap,
          .space = Space::kMapping,
          .memory = Memory::kVmm,
          .start = ptr,
          .size = size};
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CALL_EVENT_H_
