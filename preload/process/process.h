// preload/process/process.h
//
// Process: whether and where this process is being recorded. It exists from the first GPU call that
// allocates, reserves, maps or registers memory; before that there is no thread, no file, no
// descriptor and no allocated page.
//
//   idle --first call--> starting --> recording                         to the end, or
//                                 --> dormant <---> recording           while somebody has attached
//                                 --> off                               (preload/lifecycle/attach.h)
//
// Its state lives in pages of its own that the kernel empties in a fork child (MADV_WIPEONFORK), as it
// leaves the session out of the child's memory (MADV_DONTFORK). A child therefore finds itself not
// recording, at no cost for anybody's hooks, and starts a session of its own at its own first GPU call.
//
// What a hook looks at first is one word: heaps that are recorded, or, in a process that is dormant, the
// word of the session by which somebody attaches. `gate` says which of the two. A call that passes
// through costs these two loads, and a jump to the real function.
//
// Thread safety: all functions from any thread. Concurrent first callers wait up to two seconds
// for the session; what still comes before it is passed through and counted.

#ifndef GMT_PRELOAD_PROCESS_PROCESS_H_
#define GMT_PRELOAD_PROCESS_PROCESS_H_

#include <stdint.h>

#include "preload/nvtx/state/nvtx_state.h"
#include "preload/process/door.h"
#include "preload/process/frees_meanwhile.h"
#include "preload/stacks/python/interpreter.h"
#include "preload/stacks/stack_capture.h"
#include "preload/torch/state/torch_state.h"
#include "session/options.h"
#include "session/session_map.h"

namespace gmt::preload {

// Zero bytes are an idle process: a fresh page, or one that a fork has emptied.
struct Process {
  // kTurning: a thread is beginning or ending what is recorded for an attach. kEnding: the end has to
  // wait for writers.
  enum Status : uint32_t {
    kIdle = 0,
    kStarting = 1,
    kRecording = 2,
    kOff = 3,
    kDormant = 4,
    kTurning = 5,
    kEnding = 6,
  };

  std::atomic<uint32_t> status;
  // What calls need more than a glance, as bits of session::Heaps; and session::kAttachAsked, where
  // calls have to look whether somebody detaches.
  std::atomic<uint32_t> looked_at;
  // &looked_at; while dormant the door's word, which is 0 or has session::kAttachAsked in it. nullptr
  // while idle.
  std::atomic<const std::atomic<uint32_t>*> gate;
  std::atomic<uint32_t> starter;  // tid of the thread that starts the session
  // Of this recording: changes with the process and with each attach. Tells what threads and tables
  // remember of another one: the parent's tid, ids in another session's tables.
  uint32_t identity;
  Door door;

  session::SessionMap map;
  session::RingWriter ring;
  session::LiveTable live;
  session::StackTable stacks;
  session::InFlightTable in_flight;
  session::ContextTable contexts;
  session::Options options;
  StackCapture capture;
  Interpreter python;                      // stays unlooked-for where its frames are not wanted
  std::atomic<const char*> python_source;  // its status as it was last told
  TorchState torch;
  std::atomic<uint64_t> known_devices[4];  // by number, a bit each
  NvtxState nvtx;
  FreesMeanwhile frees_meanwhile;
  std::atomic<uint32_t> last_range;  // number of the last range that was begun
  uint32_t first_range;              // the last one when this recording began
  bool collector_started;

  void Count(session::Counter counter) const {
    map.control().counters[counter].fetch_add(1, std::memory_order_relaxed);
  }

  // The same for what may come before there is a session: kept until there is one.
  static void CountEver(session::Counter counter);
  // Adds what CountEver() has kept to the session's counters. REQUIRES: there is a session.
  void CountUncounted() const;

  bool WantsStacks() const {
    return options.python_stacks || options.native_stacks != session::Unwinder::kNone;
  }
  bool Records(session::Memory memory) const { return (options.heaps & HeapOf(memory)) != 0; }

  static constexpr uint32_t HeapOf(session::Memory memory) {
    if (memory == session::Memory::kBlock) return session::kPytorchHeap;
    if (memory == session::Memory::kRegion) return session::kNvtxHeap;
    const bool host = memory == session::Memory::kPinned || memory == session::Memory::kRegistered;
    return host ? session::kHostHeap : session::kDriverHeap;
  }
  // True where a call about these heaps surely needs no look: off, or none of them is recorded, and
  // nobody has attached or detached since.
  __attribute__((always_inline)) static bool Skips(uint32_t heaps) {
    const std::atomic<uint32_t>* word = Here()->gate.load(std::memory_order_acquire);
    if (word == nullptr) return false;
    const uint32_t looked_at = word->load(std::memory_order_relaxed);
    if ((looked_at & (heaps | session::kAttachAsked)) == 0) [[likely]]
      return true;
    return (looked_at & session::kAttachAsked) != 0 && SkipsBehindDoor(heaps);
  }
  void LookAt(uint32_t heaps) {
    looked_at.store(door.is_open ? heaps | session::kAttachAsked : heaps);
    gate.store(&looked_at);
  }
  void LookAtDoor() {
    looked_at.store(0);
    gate.store(door.wanted);
  }

  // The process's state if it is being recorded, else nullptr. One load.
  static Process* IfRecording() { return If(kRecording); }

  // The process's state if it waits to be attached to, else nullptr.
  static Process* IfDormant() { return If(kDormant); }

  // The same as IfRecording() at a hooked call of the GPU: there what is asked for by attach and detach is done.
  static Process* IfRecordingCalls() {
    Process* p = Here();
    const uint32_t seen = p->status.load(std::memory_order_acquire);
    const bool has_begun = seen == kRecording || seen == kDormant || seen == kEnding;
    if (has_begun && p->door.IsTurned()) [[unlikely]]
      return Turn(p);
    return seen == kRecording ? p : nullptr;
  }

  // The same, and starts recording if nobody has tried yet.
  static Process* StartRecording() {
    Process* p = IfRecordingCalls();
    return p != nullptr ? p : StartOrWait();
  }

  // The process's state if it can be attached to, whatever it is doing about that.
  static Process* IfDoorIsOpen() { return HasBegun() && Here()->door.is_open ? Here() : nullptr; }

  static bool HasBegun() { return Here()->status.load(std::memory_order_acquire) > kStarting; }
  // Has this process dormant, or finds it begun already: for who attaches to it. nullptr where there
  // will be nothing, for what StartSession has said.
  static Process* OpenDoor();

  // Fills in what is new with each recording. REQUIRES: nobody records.
  void BeginAnew(uint32_t attach);
  // What the first records of the recording with that identity tell; nothing once it is over.
  void TellFirst(uint32_t recording);

 private:
  static Process* StartOrWait();
  static Process* Start(Process* p);
  static Process* Turn(Process* p);
  static bool SkipsBehindDoor(uint32_t heaps);
  static void WipeInForkChild();

  static Process* Here() { return reinterpret_cast<Process*>(pages_); }
  static Process* If(Status status) {
    return Here()->status.load(std::memory_order_acquire) == status ? Here() : nullptr;
  }

  static constinit char pages_[];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PROCESS_PROCESS_H_
