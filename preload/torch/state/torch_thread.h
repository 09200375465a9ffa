// preload/torch/state/torch_thread.h
//
// TorchThread: PyTorch-related state of one thread. It is kept in a table of the process, not in
// thread-local storage, because a library that is loaded late has only 64 bytes of that.
//
// Thread safety: a TorchThread belongs to its thread. TorchThreads: all methods may be called from
// any thread; lock-free. All-zero bytes are an empty table.

#ifndef GMT_PRELOAD_TORCH_STATE_TORCH_THREAD_H_
#define GMT_PRELOAD_TORCH_STATE_TORCH_THREAD_H_

#include <stdint.h>

#include <atomic>

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"
#include "preload/torch/state/known_layouts.h"

namespace gmt::preload {

// The time at which a node releases what it saved. It releases everything at once, when it has been
// evaluated or destroyed, so the clock is read once per node. Outside Begin() and End() it is read
// at each call.
class ReleaseTime {
 public:
  void Begin() { time_ns_ = kOpen; }
  void End() { time_ns_ = kClosed; }
  uint64_t Now() {
    if (time_ns_ > kOpen) return time_ns_;
    const uint64_t now = NowNs();
    if (time_ns_ == kOpen) time_ns_ = now;
    return now;
  }

 private:
  static constexpr uint64_t kClosed = 0, kOpen = 1;
  uint64_t time_ns_;
};

struct TorchThread {
  // Address of its thread_state; 0: unowned. The lowest bit is set if the rest belongs to an
  // earlier recording.
  std::atomic<uint64_t> owner;
  // Text of the session: the layout of the tensor whose memory is being allocated; 0: none.
  uint32_t tensor_layout;
  uint32_t save_count;
  KnownLayouts* layouts;  // from KnownLayoutsPool; nullptr: none
  uint64_t tensor_bytes;  // size of the tensor whose memory is being allocated
  uint64_t tensor_block;  // the memory that it received
  uint64_t freed_block;   // the last block freed by this thread
  LastStack node_stack;   // of the autograd node created last
  const void* node;       // that node; nullptr until it has an output
  // Addresses of the memory that it has saved so far: they are recorded when its class is known.
  uint64_t saves[8];
  ReleaseTime releases;
  bool is_accumulating;  // until AccumulateGrad::apply has stored the gradient
  // The at::Tensor in which the leaf keeps it; nullptr: not known yet.
  const void* gradient;

  // Forgets what belongs to an earlier recording, except what shows by itself that it does.
  void Forget() {
    tensor_layout = 0;
    save_count = 0;
    node = nullptr;
    releases.End();
    is_accumulating = false;
  }
};

// Threads end without notice. A later thread that reuses an earlier one's storage also reuses its
// slot, so the table needs as many slots as threads run at a time.
class TorchThreads {
 public:
  // Forgets what belongs to the previous recording. Each thread clears its own state when it needs
  // it again; until then it has none.
  void Forget() {
    for (TorchThread& t : threads_) {
      if (t.owner.load(std::memory_order_relaxed) != 0) t.owner.fetch_or(kEarlier);
    }
  }
  // Returns the calling thread's state if it has one in this recording, otherwise nullptr.
  TorchThread* IfThere() {
    TorchThread& t = threads_[thread_state.torch];
    return t.owner.load(std::memory_order_relaxed) == Self() ? &t : nullptr;
  }
  // Returns the calling thread's state; nullptr if the table is full.
  TorchThread* Here() {
    TorchThread* t = IfThere();
    return t != nullptr ? t : Find();
  }

 private:
  static constexpr uint32_t kThreads = 1024, kProbes = 64;
  static constexpr uint64_t kEarlier = 1;  // in TorchThread::owner

  static uint64_t Self() { return reinterpret_cast<uint64_t>(&thread_state); }

  [[gnu::noinline]] TorchThread* Find() {
    const uint64_t self = Self();
    const auto home = static_cast<uint32_t>(self * 0x9e3779b97f4a7c15 >> 54);
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      const uint32_t place = (home + probe) % kThreads;
      uint64_t owner = 0;
      TorchThread& t = threads_[place];
      if (!t.owner.compare_exchange_strong(owner, self) && (owner & ~kEarlier) != self) continue;
      if ((owner & kEarlier) != 0) {
        t.Forget();
        t.owner.store(self);
      }
      thread_state.torch = place & (kThreads - 1);
      return &t;
    }
    return nullptr;
  }

  TorchThread threads_[kThreads];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_TORCH_THREAD_H_
