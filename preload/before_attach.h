// preload/before_attach.h
//
// What was allocated before somebody attached, as far as others know: PyTorch's allocator tells its
// segments and blocks, the driver what is free. Told as allocations of the API "(before attach)",
// without a stack, at the time of the attach.
//
//   the call that begins the recording     the driver's totals; asks Python to call us (no thread, no
//                                          GIL, no waiting)
//   Python's main thread, between two      torch.cuda.memory_snapshot(), where torch.cuda has been
//   instructions, whenever that is         initialised; what a hook has seen meanwhile stays as it is
//
// Frees in other threads meanwhile are noted before they are carried out, so that what is told of a
// block that has just gone is taken back.
//
// Expandable segments are left out: what their parts are given back by is not told. Their blocks are
// not.
//
// Thread safety: all functions from any thread.

#ifndef GMT_PRELOAD_BEFORE_ATTACH_H_
#define GMT_PRELOAD_BEFORE_ATTACH_H_

#include <stdint.h>

#include <atomic>

#include "session/layout.h"

namespace gmt::preload {

struct Process;

// The name of session::kBeforeAttachApi.
inline constexpr char kBeforeAttachName[] = "(before attach)";

// Frees while Python is being asked. Part of Process; zero bytes: nobody asks.
class FreesMeanwhile {
 public:
  static constexpr uint32_t kRoom = 2048;

  // Before the live table is changed: who then finds nothing there has been seen here.
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

// At the beginning of what is recorded for an attach.
void TellWhatWasBefore(Process* p);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BEFORE_ATTACH_H_
