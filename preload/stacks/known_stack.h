// preload/stacks/known_stack.h
//
// KnownStack: the digest of the calling thread's stack, computed from what has changed since the
// thread's last one. If a stack with this digest has been recorded, nothing else is needed. Only a
// new stack is composed frame by frame (preload/stacks/stack_builder.h).
//
//   native frames   preload/stacks/unwind/known_walks.h       one or two comparisons per frame
//   Python frames   preload/stacks/python/last_python_walk.h  a few loads
//   their order     for each run of Python frames, the native frame that contains its marker
//
// Only usual stacks are known in this way: complete ones of at most session::kMaxStackDepth frames,
// none of which a signal has interrupted or belongs to a greenlet; in which every run of Python
// frames has its native frame. For others the functions return false, and StackBuilder decides.
// For the same stack both yield the same digest (preload/stacks/python/testing/oracle.py).
//
// Thread safety: all functions may be called from any thread and signal handler. The memory of a
// known walks may be shared by threads; one that finds it in use gets false.

#ifndef GMT_PRELOAD_STACKS_KNOWN_STACK_H_
#define GMT_PRELOAD_STACKS_KNOWN_STACK_H_

#include <stdint.h>

#include "preload/stacks/python/interpreter.h"
#include "session/stack_digest.h"

namespace gmt::preload {

struct KnownStack {
  session::StackSum sum;
  uint32_t depth = 0;
  uint16_t flags = 0;

  session::ContentHash Hash(uint32_t generation) const {
    return sum.Hash(depth, flags, generation);
  }
};

// Native frames, and the interpreter's if that is on. Leaves out this library's innermost frames.
bool FollowStack(const Interpreter& python, KnownStack* stack);
// Python frames only. Must not be called where a signal may have interrupted the interpreter.
// Returns false also if there are none.
bool FollowPythonStack(const Interpreter& python, KnownStack* stack);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_KNOWN_STACK_H_
