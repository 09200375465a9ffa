// preload/stacks/greenlets.h
//
// Locates the code of greenlets: the Python package `greenlet`, on which gevent and others are
// built.
//
// A greenlet starts somewhere on the thread's stack and may later run there again after the outer
// part of the stack has been reused. Its first function would then "return" into unrelated memory.
// A native walk out of a greenlet must therefore end at the greenlet's own code, whose unwind
// tables do not say so.
//
// Thread safety: all functions may be called from any thread and from signal handlers.

#ifndef GMT_PRELOAD_STACKS_GREENLETS_H_
#define GMT_PRELOAD_STACKS_GREENLETS_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/unwind/loaded_module.h"

namespace gmt::preload {

class Greenlets {
 public:
  // Notes the module if its file name is greenlet's. Returns true if it was not known before.
  static bool Note(const LoadedModule& module);

  struct Text {
    uint64_t start, bytes;
    bool Holds(uint64_t pc) const { return pc - start < bytes; }
  };
  static Text text() {
    const uint64_t end = end_.load(std::memory_order_acquire);
    const uint64_t start = start_.load(std::memory_order_relaxed);
    return {start, end > start ? end - start : 0};
  }

 private:
  static constinit std::atomic<uint64_t> start_, end_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_GREENLETS_H_
