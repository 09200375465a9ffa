#include "preload/record/early_streams.h"

#include <string.h>
#include <unistd.h>

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/record/driver_query.h"

namespace gmt::preload {
namespace {

struct EarlyStream {
  std::atomic<uint64_t> handle;  // 0: free; kClaimed: the rest is being written
  std::atomic<uint64_t> context;
  std::atomic<uint64_t> facts;  // device 0-7, flags 8-15, priority 16-31, api 32-47
};

constexpr uint64_t kClaimed = 1;  // CU_STREAM_LEGACY, which is never created

// State: TakeOver() checks the owner, and empties the list in a fork child.
constinit EarlyStream streams[kMaxEarlyStreams];
constinit std::atomic<uint32_t> used{0};   // entries from here on have never been used
constinit std::atomic<uint32_t> owner{0};  // the process to which the streams belong

bool BelongsToThisProcess() {
  return owner.load(std::memory_order_relaxed) == static_cast<uint32_t>(getpid());
}

// A fork child has none of its parent's streams. It is single-threaded at first.
void TakeOver() {
  if (BelongsToThisProcess()) return;
  for (EarlyStream& stream : streams) stream.handle.store(0, std::memory_order_relaxed);
  used.store(0, std::memory_order_relaxed);
  owner.store(static_cast<uint32_t>(getpid()), std::memory_order_relaxed);
}

EarlyStream* FindEntry(uint64_t handle) {
  const uint32_t count = used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < kMaxEarlyStreams; ++i) {
    if (streams[i].handle.load(std::memory_order_relaxed) == handle) return &streams[i];
  }
  return nullptr;
}

EarlyStream* ClaimEntry() {
  for (EarlyStream* entry; (entry = FindEntry(0)) != nullptr;) {
    uint64_t free = 0;
    if (entry->handle.compare_exchange_strong(free, kClaimed)) return entry;
  }
  if (used.load(std::memory_order_relaxed) >= kMaxEarlyStreams) return nullptr;
  const uint32_t index = used.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kMaxEarlyStreams) return nullptr;
  streams[index].handle.store(kClaimed, std::memory_order_relaxed);
  return &streams[index];
}

}  // namespace

void KeepEarlyStream(ApiId api, const Activity& what) {
  const KeepErrno keep;
  TakeOver();
  if (what.action == Action::kDestroy) {
    EarlyStream* entry = FindEntry(what.stream);
    if (entry != nullptr) entry->handle.store(0, std::memory_order_relaxed);
    return;
  }
  uint64_t handle = 0;
  memcpy(&handle, what.out.at, sizeof(handle));
  if (handle == 0) return;
  // The runtime's call is noted after the driver call that it made.
  EarlyStream* entry = FindEntry(handle);
  if (entry == nullptr) entry = ClaimEntry();
  if (entry == nullptr) return;
  entry->context.store(CurrentContext(), std::memory_order_relaxed);
  entry->facts.store(CurrentDevice() | uint64_t{what.flags} << 8 |
                         uint64_t{static_cast<uint16_t>(what.priority)} << 16 | uint64_t{api} << 32,
                     std::memory_order_relaxed);
  entry->handle.store(handle, std::memory_order_release);
}

void RecordEarlyStreams(Process* p) {
  if (!BelongsToThisProcess() || Process::Skips(session::kDriverHeap | session::kPytorchHeap))
    return;
  const uint32_t count = used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < kMaxEarlyStreams; ++i) {
    const uint64_t handle = streams[i].handle.load(std::memory_order_acquire);
    if (handle <= kClaimed) continue;
    const uint64_t facts = streams[i].facts.load(std::memory_order_relaxed);
    session::Record r;
    r.kind = Kind::kStream;
    r.action = Action::kCreate;
    r.stream = handle;
    r.thread = ThreadId(p->identity);
    r.device = static_cast<uint8_t>(facts);
    r.flags = static_cast<uint8_t>(facts >> 8);
    r.priority = static_cast<int16_t>(facts >> 16);
    r.api = static_cast<ApiId>(facts >> 32);
    r.time_ns = NowNs();
    const uint64_t context = streams[i].context.load(std::memory_order_relaxed);
    if (context != 0) r.context = EnterContext(p, context, r.device, r);
    CommitAlone(p, r);
  }
}

}  // namespace gmt::preload
