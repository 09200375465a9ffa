// preload/stacks/greenlets.h
//
// Where the code of greenlets lies: Python's package `greenlet`, on which gevent and others stand.
//
// A greenlet begins somewhere on the thread's stack, and later runs there again while the part
// further out has become somebody else's: its first function would "return" into what happens to be
// in memory. So a native walk out of a greenlet must end at the greenlet's own code, which says
// nothing of that in its tables.
//
// Thread safety: all functions from any thread and signal handler.

#ifndef GMT_PRELOAD_STACKS_GREENLETS_H_
#define GMT_PRELOAD_STACKS_GREENLETS_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/unwind/loaded_module.h"

namespace gmt::preload {

class Greenlets {
 public:
  // Notes the module if it is greenlet's, by its file's name. True when that is news.
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
