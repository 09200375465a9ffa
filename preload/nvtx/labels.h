// preload/nvtx/labels.h
//
// NvtxLabels: names that the program gave to its streams, threads and devices before there was a
// session in which to record them. Bounded; names that do not fit are counted.
//
// Thread safety: all methods may be called from any thread; lock-free. All-zero bytes are no
// labels.

#ifndef GMT_PRELOAD_NVTX_LABELS_H_
#define GMT_PRELOAD_NVTX_LABELS_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

struct NvtxName;

enum class Labelled : uint32_t { kNothing, kStream, kThread, kDevice };

class NvtxLabels {
 public:
  void Keep(Labelled what, uint64_t number, NvtxName* name, uint32_t pid);

  // Calls visit(what, number, name) for each label that this process has kept, and removes all.
  template <typename Visit>
  void TakeAll(uint32_t pid, Visit visit) {
    for (Label& label : labels_) {
      uint32_t ready = kReady;
      if (!label.state.compare_exchange_strong(ready, kClaimed, std::memory_order_acquire))
        continue;
      const Label taken(label);
      label.state.store(kFree, std::memory_order_release);
      if (taken.pid == pid) visit(taken.what, taken.number, taken.name);
    }
  }

  uint64_t TakeRefused() { return refused_.exchange(0, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kFree = 0, kClaimed = 1, kReady = 2;

  struct Label {
    Label() = default;
    Label(const Label& other)
        : pid(other.pid), what(other.what), number(other.number), name(other.name) {}

    std::atomic<uint32_t> state{kFree};
    uint32_t pid;
    Labelled what;
    uint64_t number;
    NvtxName* name;
  };

  Label labels_[256];
  std::atomic<uint64_t> refused_;
};

inline void NvtxLabels::Keep(Labelled what, uint64_t number, NvtxName* name, uint32_t pid) {
  for (Label& label : labels_) {
    uint32_t free = kFree;
    if (!label.state.compare_exchange_strong(free, kClaimed, std::memory_order_acquire)) continue;
    label.pid = pid;
    label.what = what;
    label.number = number;
    label.name = name;
    return label.state.store(kReady, std::memory_order_release);
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_LABELS_H_
