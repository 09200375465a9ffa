// preload/base/thread_state.h
//
// Per-thread state of this library: a few bytes of initial-exec TLS, initially zero, without a
// destructor, so that hooks work in threads that are just starting or ending and when the library
// is loaded late.

#ifndef GMT_PRELOAD_BASE_THREAD_STATE_H_
#define GMT_PRELOAD_BASE_THREAD_STATE_H_

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/vocabulary.h"

namespace gmt::preload {

struct Scope;  // preload/base/scope.h

// The id of the last stack that a thread recorded; ignored if it belongs to a parent process.
struct LastStack {
  uint32_t process, id;

  uint32_t Of(uint32_t process_identity) const { return process == process_identity ? id : 0; }
  void Set(uint32_t process_identity, uint32_t stack) {
    process = process_identity;
    id = stack;
  }
};

struct ThreadState {
  uint16_t depth;  // nesting of hooked calls; nested calls are part of the outermost one's event
  uint16_t call;   // session::Kind of the outermost call's event; 0 if it has no event of its own
  uint32_t tid : 22;  // 0: not yet determined
  uint32_t
      torch : 10;    // its slot among threads that use PyTorch (preload/torch/state/torch_thread.h)
  uint32_t process;  // identity of the process that determined it (Process::identity)
  uint32_t push_stack;  // number of its NVTX range stack (preload/nvtx/push_stacks.h); 0: none
  uint32_t last_ns;     // lower half of the last time that it has read (preload/base/clock.h)
  // Interpreter::identity_ under which its Python frames were checked (preload/stacks/python).
  uint32_t checked_python;
  LastStack last_stack;
  LastStack last_forward_stack;  // of Python frames only
  Scope* scope;                  // the innermost hooked call that C++ exceptions may leave
};

extern thread_local constinit ThreadState thread_state;

inline uint32_t ThreadId(uint32_t process_identity) {
  ThreadState& t = thread_state;
  if (t.tid == 0 || t.process != process_identity) {
    t.tid = static_cast<uint32_t>(syscall(SYS_gettid)) & 0x3fffff;
    t.process = process_identity;
  }
  return t.tid;
}

// Marks this thread as being inside a hooked call whose event has that kind.
class Nesting {
 public:
  explicit Nesting(session::Kind call = session::Kind::kNone) {
    ThreadState& t = thread_state;
    if (t.depth++ == 0) t.call = static_cast<uint16_t>(call);
  }
  ~Nesting() { --thread_state.depth; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_THREAD_STATE_H_
