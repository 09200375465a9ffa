// preload/torch/state/torch_thread.h
//
// TorchThread: what is known of PyTorch on one thread. It is kept in a table of the process, not in
// thread-local storage: a library that is loaded late has 64 bytes of that for all it needs.
//
// Thread safety: a TorchThread belongs to its thread. TorchThreads: all methods from any thread, without a
// lock. Zero bytes are an empty table.

#ifndef GMT_PRELOAD_TORCH_STATE_TORCH_THREAD_H_
#define GMT_PRELOAD_TORCH_STATE_TORCH_THREAD_H_

#include <stdint.h>

#include <atomic>

#include "preload/base/clock.h"
#include "preload/base/thread_state.h"

namespace gmt::preload {

// The time at which a node releases what it saved. It releases all of it at once, when it has been
// evaluated or ends, so the clock is read once for each node. Outside of Begin() and End() it is read
// each time.
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
  std::atomic<uint64_t> owner;  // address of its thread_state; 0: nobody's
  // Text of the session: the layout of the tensor that memory is taken for just now; 0: none.
  uint32_t tensor_layout;
  uint32_t save_count, gradient_count;
  uint64_t tensor_block;  // what that tensor got
  uint64_t freed_block;   // the block that this thread gave back last
  LastStack node_stack;   // of the node of the autograd graph that was made last
  const void* node;       // the same; nullptr until it has an output
  // What it has saved until then, by the address of the memory: it has no class yet.
  uint64_t saves[8];
  ReleaseTime releases;
  const void* accumulating;  // the node whose AccumulateGrad::apply runs; nullptr: none
  uint64_t gradients[4];     // blocks that may become gradients in the node being evaluated
};

// Threads end unseen. A later one that has the storage of an earlier one has its place, too; so there are
// as many as run at a time.
class TorchThreads {
 public:
  // The calling thread's, if it has one already; else nullptr.
  TorchThread* IfThere() {
    TorchThread& t = threads_[thread_state.torch];
    return t.owner.load(std::memory_order_relaxed) == Self() ? &t : nullptr;
  }
  // The calling thread's; nullptr where there is no room for another one.
  TorchThread* Here() {
    TorchThread* t = IfThere();
    return t != nullptr ? t : Find();
  }

 private:
  static constexpr uint32_t kThreads = 1024, kProbes = 64;

  static uint64_t Self() { return reinterpret_cast<uint64_t>(&thread_state); }

  [[gnu::noinline]] TorchThread* Find() {
    const uint64_t self = Self();
    const auto home = static_cast<uint32_t>(self * 0x9e3779b97f4a7c15 >> 54);
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      const uint32_t place = (home + probe) % kThreads;
      uint64_t owner = 0;
      if (!threads_[place].owner.compare_exchange_strong(owner, self) && owner != self) continue;
      thread_state.torch = place & (kThreads - 1);
      return &threads_[place];
    }
    return nullptr;
  }

  TorchThread threads_[kThreads];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_TORCH_THREAD_H_
