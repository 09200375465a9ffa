// preload/before_attach.h
//
// Memory that was allocated before a client attached, as far as others know it: PyTorch's allocator
// reports its segments and blocks, the driver reports how much is free. Recorded as allocations of
// the API "(before attach)", without a stack, with the time of the attach.
//
//   the call that begins the recording   the driver's totals; asks Python to call back (no thread,
//                                        no GIL, no waiting)
//   Python's main thread, between two    torch.cuda.memory_snapshot() if torch.cuda is initialized;
//   instructions, at some later time     entries recorded by hooks meanwhile are left unchanged
//
// Frees that other threads make meanwhile are noted before they are carried out, so that a block
// that was reported but has just been freed is removed again.
//
// Expandable segments are left out because the calls that release their parts are not reported.
// Their blocks are recorded.
//
// Thread safety: all functions may be called from any thread.

#ifndef GMT_PRELOAD_BEFORE_ATTACH_H_
#define GMT_PRELOAD_BEFORE_ATTACH_H_

#include <stdint.h>

#include <atomic>

#include "session/layout.h"

namespace gmt::preload {

struct Process;

// The name of session::kBeforeAttachApi.
inline constexpr char kBeforeAttachName[] = "(before attach)";

// Frees made while Python is being asked. Part of Process. All-zero bytes: no query is running.
class FreesMeanwhile {
 public:
  static constexpr uint32_t kRoom = 2048;

  // Called before the live table changes: if the query then does not find the entry, it finds the
  // free here.
  void Note(session::Space space, uint64_t value) {
    if (!asking_.load(std::memory_order_acquire)) [[likely]]
      return;
    const uint32_t place = count_.fetch_add(1, std::memory_order_relaxed);
    if (place < kRoom)
      keys_[place].store(static_cast<uint64_t>(space) << 60 | value, std::memory_order_release);
  }

  void Begin() {
    count_.store(0, std::memory_order_relaxed);
    for (std::atomic<uint64_t>& key : keys_) key.store(0, std::memory_order_relaxed);
    asking_.store(true, std::memory_order_seq_cst);
  }
  void End() { asking_.store(false, std::memory_order_release); }

  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const std::atomic<uint64_t>& word : keys_) {
      const uint64_t key = word.load(std::memory_order_acquire);
      if (key != 0) visit(static_cast<session::Space>(key >> 60), key & session::kKeyValueMask);
    }
  }

 private:
  std::atomic<bool> asking_;
  std::atomic<uint32_t> count_;
  std::atomic<uint64_t> keys_[kRoom];
};

// Called when the recording of an attach begins.
void TellWhatWasBefore(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BEFORE_ATTACH_H_
