#include "session/live_level.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "session/populate.h"
#include "session/record.h"

namespace gmt::session {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kEntryHasLayout = uint64_t{1} << 56;  // in the word LiveEntry::place

uint64_t PackPlace(const LiveValue& live) {
  return (uint64_t{live.thread} & 0xffffff) | static_cast<uint64_t>(live.kind) << 24 |
         static_cast<uint64_t>(live.memory) << 32 | uint64_t{live.device} << 40 |
         uint64_t{live.context} << 48;
}

void UnpackPlace(uint64_t place, LiveValue* live) {
  live->thread = static_cast<uint32_t>(place & 0xffffff);
  live->kind = static_cast<Kind>(place >> 24 & 0xff);
  live->memory = static_cast<Memory>(place >> 32 & 0xff);
  live->device = static_cast<uint8_t>(place >> 40);
  live->context = static_cast<uint8_t>(place >> 48);
}

}  // namespace

uint64_t LiveLevel::Claim(uint64_t key) const {
  const uint64_t home = Hash(key);
  for (uint64_t g = 0; g < kGroups; ++g) {
    const uint64_t first = ((home + g) & group_mask_) * kGroupSize;
    for (uint64_t i = first; i < first + kGroupSize; ++i) {
      uint64_t seen = keys_[i].load(std::memory_order_relaxed);
      while (seen == kKeyEmpty || seen == kKeyErased) {
        if (keys_[i].compare_exchange_weak(seen, kKeyClaimed, std::memory_order_acquire)) return i;
      }
    }
  }
  return kFurther;
}

void LiveLevel::WriteEntry(uint64_t place, const LiveValue& live) const {
  LiveEntry& e = entries_[place];
  const uint64_t version =
      e.version.load(std::memory_order_relaxed) | 1;  // already odd if a writer was killed
  e.version.store(version, std::memory_order_relaxed);
  // Release stores: a reader that sees any of them also sees the odd version.
  e.ticket.store(live.ticket, std::memory_order_release);
  const SizeAndStream packed = PackLayout(live.memory, live.size, live.stream, live.layout);
  e.size.store(packed.size, std::memory_order_release);
  e.stream.store(packed.stream, std::memory_order_release);
  e.time_ns.store(live.time_ns, std::memory_order_release);
  e.stacks.store(uint64_t{live.stack} | uint64_t{live.forward_stack} << 32,
                 std::memory_order_release);
  e.place.store(PackPlace(live) | (packed.has_layout ? kEntryHasLayout : 0),
                std::memory_order_release);
  e.api.store(live.api | uint64_t{live.roles} << 48, std::memory_order_release);
  e.version.store(version + 1, std::memory_order_release);
}

bool LiveLevel::ReadEntry(uint64_t place, uint64_t key, LiveValue* live) const {
  const LiveEntry& e = entries_[place];
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint64_t version = e.version.load(std::memory_order_acquire);
    live->ticket = e.ticket.load(std::memory_order_acquire);
    live->size = e.size.load(std::memory_order_acquire);
    live->stream = e.stream.load(std::memory_order_acquire);
    live->time_ns = e.time_ns.load(std::memory_order_acquire);
    const uint64_t stacks = e.stacks.load(std::memory_order_acquire);
    const uint64_t at = e.place.load(std::memory_order_acquire);
    UnpackPlace(at, live);
    live->layout =
        (at & kEntryHasLayout) != 0 ? UnpackLayout(live->memory, &live->size, &live->stream) : 0;
    const uint64_t api = e.api.load(std::memory_order_acquire);
    live->api = static_cast<uint16_t>(api);
    live->roles = static_cast<uint16_t>(api >> 48);
    live->stack = static_cast<uint32_t>(stacks);
    live->forward_stack = static_cast<uint32_t>(stacks >> 32);
    if (keys_[place].load(std::memory_order_acquire) != key) return false;
    if (!(version & 1) && e.version.load(std::memory_order_relaxed) == version) return true;
  }
  return false;
}

// A section starts on its own page and extends to the end of its last page.
uint64_t LiveLevel::Bytes() const { return (count() * kStride + kPage - 1) / kPage * kPage; }

int LiveLevel::Back() const {
  const int saved = errno;
  int error = mprotect(keys_, Bytes(), PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
  errno = saved;
  if (error == 0) error = Populate(keys_, Bytes());
  return error;
}

void LiveLevel::Drop() const {
  const int saved = errno;
  madvise(keys_, Bytes(), MADV_REMOVE);
  errno = saved;
}

int LiveLevel::Empty() const {
  const int error = Back();
  if (error == 0) memset(static_cast<void*>(keys_), 0, Bytes());
  return error;
}

}  // namespace gmt::session
