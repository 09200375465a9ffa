// preload/stacks/unwind/stack_range.h
//
// StackRange: the part of a thread's stack that is known to be readable, so that a walk which wrong
// tables have led astray ends, and not the program.
//
// A page is asked for once: the kernel copies eight bytes of it for a system call that is refused
// in any case, and says whether it could. That is a few hundred nanoseconds for each page of stack
// that a thread has not been seen on before, and nothing afterwards: the range is remembered for
// the thread, and grows with it. A walk that begins outside of it (on the stack of a coroutine or
// of a signal handler) begins a new one.
//
// A remembered range outlives the stack it was found on. That is right as long as frames lie on the
// stack that the walk began on. Where that is a guess, because code without tables says nothing, the
// part that the guess is about is asked for anew (ForgetAbove).
//
// Thread safety: a range belongs to its thread; signal handlers may come in between.

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
  // Makes the word at `address` part of it. False where it cannot be read, or is too far away to
  // belong to a frame.
  bool Reach(uint64_t address);
  // Leaves of it what ends with the page of `address`, which is part of it.
  void ForgetAbove(uint64_t address);

  // The calling thread's range, or a new one, with `sp` in it; empty where that cannot be read.
  static StackRange Around(uint64_t sp) {
    StackRange known;
    known.low = remembered.low;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    known.high = remembered.high;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // A handler that has come in between has left another range, or a larger one.
    if (known.Holds(sp) && known.low == remembered.low) [[likely]]
      return known;
    return Begin(sp);
  }
  void Remember() const;

 private:
  static constexpr uint64_t kBeingWritten = ~uint64_t{0};  // in `low`: then it holds nothing
  static StackRange Begin(uint64_t sp);
  // Zero at first, and never destroyed.
  static thread_local constinit StackRange remembered;
};

// A word of memory that is known to be readable. In assembly, because it may lie between the
// variables of any function, where sanitizers and optimisers expect nobody.
inline uint64_t LoadWord(uint64_t address) {
  uint64_t value;
  asm volatile("movq %1, %0" : "=r"(value) : "m"(*reinterpret_cast<const uint64_t*>(address)));
  return value;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
#endif  // GMT_PRELOAD_STACKS_UNWIND_STACK_RANGE_H_
