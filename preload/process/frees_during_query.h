// preload/process/frees_during_query.h
//
// FreesDuringQuery: the frees that other threads make while PyTorch is asked for its blocks at an
// attach (preload/lifecycle/before_attach.h). With this list, a block that PyTorch reported but
// that was freed before it reached the live table is removed again. Part of Process. All-zero
// bytes: no query is running.
//
// Thread safety: Note() from any thread; the others from the thread that asks.

#ifndef GMT_PRELOAD_PROCESS_FREES_DURING_QUERY_H_
#define GMT_PRELOAD_PROCESS_FREES_DURING_QUERY_H_

#include <stdint.h>

#include <atomic>

#include "session/layout.h"

namespace gmt::preload {

class FreesDuringQuery {
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

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PROCESS_FREES_DURING_QUERY_H_
