// preload/base/thread_state.h
//
// What the shim keeps per thread: initial-exec TLS of a few bytes, zero at first, with no
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

// The id of a stack that a thread recorded, which those of a parent process do not have.
struct LastStack {
  uint32_t process, id;

  uint32_t Of(uint32_t process_identity) const { return process == process_identity ? id : 0; }
  void Set(uint32_t process_identity, uint32_t stack) {
    process = process_identity;
    id = stack;
  }
};

struct ThreadState {
  uint16_t depth;    // of hooked calls: what runs inside one is part of that one's event
  uint16_t call;     // session::Kind of the outermost one's event; 0 where it has none of its own
  uint32_t tid : 22;    // 0: not asked yet
  uint32_t torch : 10;  // its place among those that use PyTorch (preload/torch/state/torch_thread.h)
  uint32_t process;  // identity of the process in which it was asked (Process::identity)
  uint32_t push_stack;  // number of its ranges of NVTX (preload/nvtx/push_stacks.h); 0: none
  LastStack last_stack;
  LastStack last_forward_stack;  // of the interpreter's frames alone
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

// Marks this thread as being inside a hooked call, of an event of that kind.
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
