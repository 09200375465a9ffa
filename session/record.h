// session/record.h
//
// Record: one event as the traced process sees it, and its packing into the seven words of a ring
// slot (session/layout.h, Slot).

#ifndef GMT_SESSION_RECORD_H_
#define GMT_SESSION_RECORD_H_

#include <array>
#include <cstdint>

#include "session/layout.h"

namespace gmt::session {

struct Record {
  Kind kind = Kind::kNone;
  Space space = Space::kNone;
  Memory memory = Memory::kNone;
  uint8_t device = kNoDevice;
  uint8_t context = 0;  // number in the context table; 0: not known
  uint16_t api = 0;     // 12 bits; names stand in the session's info section
  uint16_t result = 0;  // 12 bits: a CUDA error code
  uint32_t thread = 0;  // tid, 24 bits
  uint32_t stack = 0;   // id in the stack table; 0: none
  uint32_t forward_stack = 0;
  uint64_t time_ns = 0;
  uint64_t value = 0;
  uint64_t size = 0;
  uint64_t stream = 0;
  uint64_t duration_ns = 0;      // 40 bits, saturating at 18 minutes; blocks have none
  uint64_t total_allocated = 0;  // blocks only, multiples of 512
  uint64_t total_reserved = 0;

  bool operator==(const Record&) const = default;
};

using Words = std::array<uint64_t, 7>;

inline constexpr uint64_t kMaxDuration = (uint64_t{1} << 40) - 1;
inline constexpr uint64_t kBlockGranularity = 512;
inline constexpr uint64_t kNoIndex = ~uint64_t{0};  // of a mark

inline Words Pack(const Record& r) {
  const bool block = r.memory == Memory::kBlock;
  const uint64_t upper = block ? r.total_reserved / kBlockGranularity
                               : (r.duration_ns < kMaxDuration ? r.duration_ns : kMaxDuration);
  const uint64_t tail = block ? (r.total_allocated / kBlockGranularity) << 32
                              : uint64_t{r.context} << 32 | (uint64_t{r.api} & 0xfff) << 40 |
                                    (uint64_t{r.result} & 0xfff) << 52;
  return {r.time_ns,
          r.value,
          r.size,
          r.stream,
          uint64_t{r.stack} | uint64_t{r.forward_stack} << 32,
          (uint64_t{r.thread} & 0xffffff) | upper << 24,
          static_cast<uint64_t>(r.kind) | static_cast<uint64_t>(r.space) << 8 |
              static_cast<uint64_t>(r.memory) << 16 | uint64_t{r.device} << 24 | tail};
}

// False, leaving *r unspecified, where the words hold a kind, space or memory that does not exist:
// the other side may have scribbled.
[[nodiscard]] inline bool Unpack(const Words& w, Record* r) {
  const uint64_t kind = w[6] & 0xff, space = w[6] >> 8 & 0xff, memory = w[6] >> 16 & 0xff;
  if (!IsKind(kind) || space > static_cast<uint64_t>(Space::kLast) ||
      memory > static_cast<uint64_t>(Memory::kLast)) {
    return false;
  }
  *r = Record();
  r->kind = static_cast<Kind>(kind);
  r->space = static_cast<Space>(space);
  r->memory = static_cast<Memory>(memory);
  r->device = static_cast<uint8_t>(w[6] >> 24);
  r->time_ns = w[0];
  r->value = w[1];
  r->size = w[2];
  r->stream = w[3];
  r->stack = static_cast<uint32_t>(w[4]);
  r->forward_stack = static_cast<uint32_t>(w[4] >> 32);
  r->thread = static_cast<uint32_t>(w[5] & 0xffffff);
  if (r->memory == Memory::kBlock) {
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
