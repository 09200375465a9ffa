// preload/stacks/python/interpreter.h
//
// Interpreter: this process's CPython and the location of its frames. It is looked up when a
// session starts, and again while there is none (a C++ program may embed Python late). Nothing is
// trusted: the first walk of each thread reads carefully and checks what it sees, and the first
// walk that holds the GIL is compared with the results of the public functions. Any mismatch
// disables Python frames in this process, with the reason in status(); native frames remain.
//
// All-zero bytes are an interpreter that has not been looked up yet.
//
// Thread safety: all functions may be called from any thread. Find() takes the loader's lock. The
// others take no lock and allocate nothing; except CompareOnce(), they may be called in signal
// handlers.

#ifndef GMT_PRELOAD_STACKS_PYTHON_INTERPRETER_H_
#define GMT_PRELOAD_STACKS_PYTHON_INTERPRETER_H_

#include <pthread.h>
#include <stdint.h>

#include <atomic>

#include "preload/stacks/python/eval_function.h"
#include "preload/stacks/python/layouts.h"

namespace gmt::preload {

// CPython's functions and objects that are used, with the types of its headers. Those after the
// blank line are needed only for the comparison. nullptr if the version lacks one.
struct PythonApi {
  void* (*current_thread)();     // PyGILState_GetThisThreadState
  void* (*gil_holder)();         // PyThreadState_GetUnchecked, _PyThreadState_UncheckedGet
  int (*is_finalizing)();        // Py_IsFinalizing, _Py_IsFinalizing
  void* (*first_interpreter)();  // PyInterpreterState_Head
  void* (*next_interpreter)(void* interpreter);  // PyInterpreterState_Next
  uint64_t code_type, text_type, bytes_type;     // PyCode_Type, PyUnicode_Type, PyBytes_Type

  void* (*innermost_frame)(void* thread);                           // PyThreadState_GetFrame
  void* (*frame_back)(void* frame);                                 // PyFrame_GetBack
  void* (*frame_code)(void* frame);                                 // PyFrame_GetCode
  int (*frame_instruction)(void* frame);                            // PyFrame_GetLasti
  void (*release)(void* object);                                    // Py_DecRef
  int (*disable_gc)();                                              // PyGC_Disable
  int (*enable_gc)();                                               // PyGC_Enable
  void (*take_error)(void** type, void** value, void** traceback);  // PyErr_Fetch
  void (*put_error)(void* type, void* value, void* traceback);      // PyErr_Restore
};

class LastPythonWalk;
class PythonWalk;

class Interpreter {
 public:
  constexpr Interpreter() = default;
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Looks for an interpreter. Called at the start, and whenever more libraries have been loaded.
  // Does nothing if one was found.
  void Find();

  bool on() const { return state_.load(std::memory_order_acquire) == kOn; }
  // Returns "on", "no Python in this process", or why its frames are left out. The text stays
  // valid.
  const char* status() const;
  // Returns "3.11.7", for example; empty if there is none.
  const char* version() const { return version_; }

  // Returns whether the instruction lies in the interpreter's own text. A signal may interrupt that
  // code while it is half done with a frame, so Python frames are left out of such a stack.
  bool OwnsAddress(uint64_t pc) const { return text().Holds(pc); }
  struct OwnText {
    uint64_t start, bytes;  // empty unless the interpreter is on
    bool Holds(uint64_t pc) const { return pc - start < bytes; }
  };
  OwnText text() const { return {text_start_, on() ? text_bytes_ : 0}; }

  // Compares this thread's frames with the results of the public functions, if it holds the GIL and
  // no thread has done so yet. Returns false if they differ; Python frames are then disabled. Calls
  // into the interpreter, so it must not be called where a signal has interrupted other code.
  bool CompareOnce() const {
    return compared_.load(std::memory_order_relaxed) || !on() || Compare();
  }

  // For PythonWalk and code objects.
  const Layout& layout() const { return layout_; }
  const PythonApi& api() const { return api_; }
  // The calling thread's PyThreadState whose frames may be walked now, or 0.
  struct Thread {
    uint64_t state;
    bool unreadable;  // there is one, but its frames cannot be read
  };
  Thread CurrentThread() const {
    return state_.load(std::memory_order_acquire) == kNone ? Thread{} : FindThread();
  }
  // Returns whether the instruction lies in the function that runs frames. For 3.8 to 3.10.
  bool IsEval(uint64_t pc) const { return eval_.Holds(pc); }

  // Fills a walk's batch of frames (preload/stacks/python/python_walk.h).
  using LoadFrames = void (*)(PythonWalk* walk);
  LoadFrames load() const { return load_; }
  // Updates a last walk (preload/stacks/python/last_python_walk.h).
  using FollowFrames = bool (*)(LastPythonWalk* last, const Interpreter& python, uint64_t thread);
  FollowFrames follow() const { return follow_; }
  // Differs for any two lookups of interpreters.
  uint32_t identity() const { return identity_; }

  // For tests: sets the layout that walks use from now on, right or wrong.
  void UseLayout(const Layout& layout);

 private:
  enum State : uint32_t { kNone = 0, kOn, kOff };

  const char* Examine(void* library);
  void TurnOff(const char* reason) const;
  bool Compare() const;
  Thread FindThread() const;
  uint64_t ThreadOfSubinterpreter(uint64_t thread, uint64_t holder) const;
  bool CheckThread(uint64_t thread) const;
  const char* CheckFrames(uint64_t thread) const;

  Layout layout_ = {};
  PythonApi api_ = {};
  LoadFrames load_ = nullptr;
  FollowFrames follow_ = nullptr;
  uint64_t text_start_ = 0, text_bytes_ = 0;
  EvalFunction eval_;
  int minor_ = 0;
  uint32_t identity_ = 0;  // of this lookup; threads that have been checked store it
  mutable std::atomic<uint32_t> state_{kNone};
  mutable std::atomic<const char*> reason_{nullptr};
  mutable std::atomic<bool> compared_{false};
  mutable std::atomic<bool> thread_ident_seen_{false};  // a thread's thread_ident has matched
  std::atomic<bool> looking_{false};
  char version_[16] = {};
  char refusal_[96] = {};
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_INTERPRETER_H_
