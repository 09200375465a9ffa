// session/record.h
//
// Record: one event as seen by the traced process, and its packing into the seven words of a ring
// slot (session/layout.h, Slot).

#ifndef GMT_SESSION_RECORD_H_
#define GMT_SESSION_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "session/vocabulary.h"

namespace gmt::session {

struct Record {
  Kind kind = Kind::kNone;
  Space space = Space::kNone;
  Memory memory = Memory::kNone;
  uint8_t device = kNoDevice;
  uint8_t context = 0;            // number in the context table; 0: unknown
  uint16_t api = 0;               // 12 bits; the session's info section has the names
  uint16_t result = 0;            // 12 bits: a CUDA error code
  uint32_t thread = 0;            // tid, 24 bits
  uint32_t stack = 0;             // id in the stack table; 0: none
  uint32_t forward_stack = 0;     // blocks only
  Action action = Action::kNone;  // activities only
  uint8_t flags = 0;              // of ActivityFlags; activities only
  int16_t priority = 0;           // of a stream; for a device: 10 x its compute capability
  uint32_t color = 0;             // ARGB; notes only
  uint64_t time_ns = 0;
  uint64_t value = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint64_t duration_ns = 0;      // 40 bits, saturating at 18 minutes; blocks have none
  uint64_t total_allocated = 0;  // blocks only, multiples of 512
  uint64_t total_reserved = 0;
  uint32_t layout = 0;  // id of the TensorLayout for which memory was allocated; 0: unknown

  bool operator==(const Record&) const = default;
};

using Words = std::array<uint64_t, 7>;

inline constexpr uint64_t kMaxDuration = (uint64_t{1} << 40) - 1;
inline constexpr uint64_t kBlockGranularity = 512;
inline constexpr uint64_t kNoIndex = ~uint64_t{0};  // of a mark
inline constexpr uint64_t kHasLayout = 1 << 15;     // in the last word

// Size and stream of memory, packed with the id of its tensor's layout (session/layout.h, Slot).
struct SizeAndStream {
  uint64_t size, stream;
  bool has_layout;
};

// Returns the unit in bytes of sizes that are packed with a layout: the driver's memory may have
// any size.
inline uint64_t PackedUnit(Memory memory) {
  return memory == Memory::kBlock ? kBlockGranularity : 1;
}

inline SizeAndStream PackLayout(Memory memory, uint64_t size, uint64_t stream, uint32_t layout) {
  const uint64_t unit = PackedUnit(memory);
  const bool fits = size % unit == 0 && (size / unit) >> 40 == 0 && stream >> 56 == 0;
  if (layout == 0 || !fits) return {size, stream, false};
  return {size / unit | uint64_t{layout} << 40, stream | uint64_t{layout >> 24} << 56, true};
}

// Reverses PackLayout(): restores *size and *stream and returns the id.
inline uint32_t UnpackLayout(Memory memory, uint64_t* size, uint64_t* stream) {
  const auto layout = static_cast<uint32_t>(*size >> 40 | *stream >> 56 << 24);
  *size = (*size & ((uint64_t{1} << 40) - 1)) * PackedUnit(memory);
  *stream &= (uint64_t{1} << 56) - 1;
  return layout;
}

// Returns the word that recordings and event logs use for an action.
inline const char* ActionName(Action action) {
  constexpr const char* kNames[] = {"",
                                    "create",
                                    "destroy",
                                    "name",
                                    "import",
                                    "trim",
                                    "stream",
                                    "event",
                                    "device",
                                    "instantiate",
                                    "launch",
                                    "begin_capture",
                                    "end_capture",
                                    "load",
                                    "unload",
                                    "host_to_device",
                                    "device_to_host",
                                    "device_to_device",
                                    "host_to_host",
                                    "peer",
                                    "array",
                                    "memset",
                                    "alloc",
                                    "free",
                                    "pool_create",
                                    "pool_destroy",
                                    "pool_trim"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(Action::kLast) + 1);
  return kNames[static_cast<size_t>(action)];
}

// Returns the upper half of the word whose lower half is the stack.
inline uint32_t BesideStack(const Record& r) {
  if (r.memory == Memory::kBlock) return r.forward_stack;
  if (IsActivity(r.kind)) return r.flags | uint32_t{static_cast<uint16_t>(r.priority)} << 16;
  return IsNote(r.kind) ? r.color : 0;
}

// Inlined so that fields which a kind of record does not use cost nothing.
[[gnu::always_inline]] inline Words Pack(const Record& r) {
  const bool block = r.memory == Memory::kBlock;
  const uint64_t place =
      IsActivity(r.kind) ? static_cast<uint64_t>(r.action) : static_cast<uint64_t>(r.space);
  const uint64_t upper = block ? r.total_reserved / kBlockGranularity
                               : (r.duration_ns < kMaxDuration ? r.duration_ns : kMaxDuration);
  const uint64_t tail = block ? (r.total_allocated / kBlockGranularity) << 32
                              : uint64_t{r.context} << 32 | (uint64_t{r.api} & 0xfff) << 40 |
                                    (uint64_t{r.result} & 0xfff) << 52;
  const SizeAndStream packed = PackLayout(r.memory, r.size, r.stream, r.layout);
  return {r.time_ns,
          r.value,
          packed.size,
          packed.stream,
          uint64_t{r.stack} | uint64_t{BesideStack(r)} << 32,
          (uint64_t{r.thread} & 0xffffff) | upper << 24,
          static_cast<uint64_t>(r.kind) | place << 8 | (packed.has_layout ? kHasLayout : 0) |
              static_cast<uint64_t>(r.memory) << 16 | uint64_t{r.device} << 24 | tail};
}

// Returns false, leaving *r unspecified, if the words contain an invalid kind, space, action or
// memory, which happens if the other side corrupted them.
[[nodiscard]] inline bool Unpack(const Words& w, Record* r) {
  const uint64_t kind = w[6] & 0xff, memory = w[6] >> 16 & 0xff;
  const bool has_layout = (w[6] & kHasLayout) != 0;
  const uint64_t place = (w[6] & ~kHasLayout) >> 8 & 0xff;
  if (!IsKind(kind) || memory > static_cast<uint64_t>(Memory::kLast)) return false;
  static constexpr Record kEmpty;
  *r = kEmpty;
  r->kind = static_cast<Kind>(kind);
  const uint32_t beside_stack = static_cast<uint32_t>(w[4] >> 32);
  if (IsActivity(r->kind)) {
    if (place > static_cast<uint64_t>(Action::kLast)) return false;
    r->action = static_cast<Action>(place);
    r->flags = static_cast<uint8_t>(beside_stack);
    r->priority = static_cast<int16_t>(beside_stack >> 16);
  } else {
    if (place > static_cast<uint64_t>(Space::kLast)) return false;
    r->space = static_cast<Space>(place);
    if (IsNote(r->kind)) r->color = beside_stack;
  }
  r->memory = static_cast<Memory>(memory);
  r->device = static_cast<uint8_t>(w[6] >> 24);
  r->time_ns = w[0];
  r->value = w[1];
  r->size = w[2];
  r->stream = w[3];
  r->stack = static_cast<uint32_t>(w[4]);
  r->thread = static_cast<uint32_t>(w[5] & 0xffffff);
  if (has_layout) r->layout = UnpackLayout(r->memory, &r->size, &r->stream);
  if (r->memory == Memory::kBlock) {
    r->forward_stack = beside_stack;
    r->total_reserved = (w[5] >> 24) * kBlockGranularity;
    r->total_allocated = (w[6] >> 32) * kBlockGranularity;
  } else {
    r->duration_ns = w[5] >> 24;
    r->context = static_cast<uint8_t>(w[6] >> 32);
    r->api = static_cast<uint16_t>(w[6] >> 40 & 0xfff);
    r->result = static_cast<uint16_t>(w[6] >> 52);
  }
  return true;
}

}  // namespace gmt::session

#endif  // GMT_SESSION_RECORD_H_
