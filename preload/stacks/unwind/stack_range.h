// preload/stacks/unwind/stack_range.h
//
// StackRange: the part of a thread's stack that is known to be readable, so that a walk misled by
// wrong tables ends instead of crashing the program.
//
// Each page is checked once: the kernel copies eight bytes of it for a system call that fails in
// any case, and reports whether it could. This takes a few hundred nanoseconds for each stack page
// on which a thread has not been seen before, and nothing afterwards: the range is cached per
// thread, and grows with it. A walk that begins outside the range (on the stack of a coroutine or
// of a signal handler) begins a new one.
//
// A cached range may outlive the stack on which it was found. That is harmless if frames lie on the
// stack on which the walk began. If that is only a guess, because code without tables gives no
// information, the part concerned is checked again (ForgetAbove).
//
// Thread safety: a range belongs to its thread; signal handlers may interrupt it.

#ifndef GMT_PRELOAD_STACKS_UNWIND_STACK_RANGE_H_
#define GMT_PRELOAD_STACKS_UNWIND_STACK_RANGE_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/unwind/registers.h"

#if GMT_HAS_NATIVE_WALK

namespace gmt::preload {

struct StackRange {
  uint64_t low, high;  // [low, high)

  bool Holds(uint64_t address) const { return address >= low && address < high; }
  // Extends the range to include the word at `address`. Returns false if it cannot be read, or is
  // too far away to belong to a frame.
  bool Reach(uint64_t address);
  // Removes the part up to the end of the page of `address`, which is in the range.
  void ForgetAbove(uint64_t address);

  // Returns the calling thread's range, or a new one, that includes `sp`; empty if `sp` cannot be
  // read.
  static StackRange Around(uint64_t sp) {
    StackRange known;
    known.low = remembered.low;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    known.high = remembered.high;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // A handler that ran in between has left a different or larger range.
    if (known.Holds(sp) && known.low == remembered.low) [[likely]]
      return known;
    return Begin(sp);
  }
  void Remember() const;

 private:
  static constexpr uint64_t kBeingWritten = ~uint64_t{0};  // in `low`: the range then holds nothing
  static StackRange Begin(uint64_t sp);
  // Initially zero, and never destroyed.
  static thread_local constinit StackRange remembered;
};

// Loads a word of memory that is known to be readable. In assembly, because it may lie between the
// variables of any function, where sanitizers and optimizers expect no access.
inline uint64_t LoadWord(uint64_t address) {
  uint64_t value;
  asm volatile("movq %1, %0" : "=r"(value) : "m"(*reinterpret_cast<const uint64_t*>(address)));
  return value;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_STACK_RANGE_H_
