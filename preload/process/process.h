// preload/process/process.h
//
// Process: the recording state of this process. It is created at the first GPU call that allocates,
// reserves, maps or registers memory. Before that there is no thread, no file, no descriptor and no
// touched page.
//
//   idle --first call--> starting --> recording                         until the process ends
//                                 --> dormant <---> recording           while a client is attached
//                                 --> off                               (preload/lifecycle/attach.h)
//
// The state lives in its own pages, which the kernel zeroes in a fork child (MADV_WIPEONFORK). The
// session's mappings are left out of the child's memory (MADV_DONTFORK). A child therefore finds
// itself idle, at no cost to hooks, and creates its own session at its own first GPU call.
//
// A hook first loads one word: the set of recorded heaps or, in a dormant process, the session's
// word by which a client requests an attach. `fast_path_word` points to the one in use. A call that
// is not recorded costs these two loads and a jump to the real function.
//
// Thread safety: all functions may be called from any thread. Concurrent first callers wait up to
// two seconds for the session; later calls that still precede it pass through and are counted.

#ifndef GMT_PRELOAD_PROCESS_PROCESS_H_
#define GMT_PRELOAD_PROCESS_PROCESS_H_

#include <stdint.h>

#include "preload/nvtx/state/nvtx_state.h"
#include "preload/process/attach_gate.h"
#include "preload/process/frees_during_query.h"
#include "preload/stacks/python/interpreter.h"
#include "preload/stacks/stack_capture.h"
#include "preload/torch/state/torch_state.h"
#include "session/options.h"
#include "session/session_map.h"

namespace gmt::preload {

// All-zero bytes are an idle process: a fresh page, or one that a fork has zeroed.
struct Process {
  // kSwitching: a thread is beginning or ending the recording of an attach. kEnding: the recording
  // ends as soon as its remaining writers have left.
  enum Status : uint32_t {
    kIdle = 0,
    kStarting = 1,
    kRecording = 2,
    kOff = 3,
    kDormant = 4,
    kSwitching = 5,
    kEnding = 6,
  };

  std::atomic<uint32_t> status;
  // The heaps whose calls must leave the fast path, as bits of session::Heaps, plus
  // session::kAttachRequested if calls must also check for a detach request.
  std::atomic<uint32_t> fast_path_heaps;
  // &fast_path_heaps; while dormant, the session's attach_wanted, which is 0 or includes
  // session::kAttachRequested. nullptr while idle.
  std::atomic<const std::atomic<uint32_t>*> fast_path_word;
  std::atomic<uint32_t> starter;  // tid of the thread that starts the session
  // Identifies this recording: changes with the process and with each attach. Cached data of
  // another recording (the parent's tid, ids of another session's tables) is recognized by it. It
  // has the pid and the lowest 10 bits of the attach's number, so it repeats after 1,024 attaches.
  uint32_t identity;
  AttachGate attach_gate;

  session::SessionMap map;
  session::RingWriter ring;
  session::LiveTable live;
  session::StackTable stacks;
  session::InFlightTable in_flight;
  session::ContextTable contexts;
  session::Options options;
  StackCapture capture;
  Interpreter python;                      // not initialized if Python frames are disabled
  std::atomic<const char*> python_source;  // its last reported status
  TorchState torch;
  std::atomic<uint64_t> known_devices[4];  // a bit per device number
  NvtxState nvtx;
  FreesDuringQuery frees_during_query;
  std::atomic<uint32_t> last_range;  // number of the last range begun
  uint32_t first_range;              // value of last_range when this recording began
  bool records_roles;  // what PyTorch's tensors are for; does not change during a recording
  bool collector_started;

  void Count(session::Counter counter) const {
    map.control().counters[counter].fetch_add(1, std::memory_order_relaxed);
  }

  // Same, but may be called before a session exists: the count is then kept until there is one.
  static void CountOrDefer(session::Counter counter);
  // Adds what CountOrDefer() has kept to the session's counters. REQUIRES: there is a session.
  void FlushDeferredCounts() const;

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
  // Returns true if a call that concerns `heaps` can pass through without further checks: recording
  // is off or excludes these heaps, and no attach or detach is pending.
  __attribute__((always_inline)) static bool Skips(uint32_t heaps) {
    const std::atomic<uint32_t>* word = Here()->fast_path_word.load(std::memory_order_acquire);
    if (word == nullptr) return false;
    const uint32_t fast_path_heaps = word->load(std::memory_order_relaxed);
    if ((fast_path_heaps & (heaps | session::kAttachRequested)) == 0) [[likely]]
      return true;
    return (fast_path_heaps & session::kAttachRequested) != 0 && SkipsIfAttachable(heaps);
  }
  // REQUIRES: `options` are those of the recording that begins.
  void WatchHeaps(uint32_t heaps) {
    records_roles = options.roles && (heaps & session::kPytorchHeap) != 0;
    fast_path_heaps.store(attach_gate.is_open ? heaps | session::kAttachRequested : heaps);
    fast_path_word.store(&fast_path_heaps);
  }
  void WatchAttachGate() {
    fast_path_heaps.store(0);
    fast_path_word.store(attach_gate.wanted);
  }

  // Returns the process's state if it is being recorded, otherwise nullptr. One load.
  static Process* IfRecording() { return If(kRecording); }

  // Returns the process's state if it is waiting for an attach, otherwise nullptr.
  static Process* IfDormant() { return If(kDormant); }

  // Same as IfRecording(), for hooked GPU calls: also carries out a pending attach or detach
  // request.
  static Process* IfRecordingCalls() {
    Process* p = Here();
    const uint32_t seen = p->status.load(std::memory_order_acquire);
    const bool has_begun = seen == kRecording || seen == kDormant || seen == kEnding;
    if (has_begun && p->attach_gate.HasPendingRequest()) [[unlikely]]
      return SwitchRecording(p);
    return seen == kRecording ? p : nullptr;
  }

  // Same, and starts recording if no thread has tried yet.
  static Process* StartRecording() {
    Process* p = IfRecordingCalls();
    return p != nullptr ? p : StartOrWait();
  }

  // Returns the process's state if clients can attach to it, whether or not one is attached;
  // otherwise nullptr.
  static Process* IfAttachable() {
    return HasBegun() && Here()->attach_gate.is_open ? Here() : nullptr;
  }

  static bool HasBegun() { return Here()->status.load(std::memory_order_acquire) > kStarting; }
  // Makes the process attachable unless recording has begun. Called on behalf of an attaching
  // client. Returns nullptr if no session can be created; StartSession() has then reported why.
  static Process* MakeAttachable();

  // Resets what is new with each recording. REQUIRES: no thread is recording.
  void ResetForRecording(uint32_t attach);
  // Writes the initial events of the recording with that identity; does nothing if it is over.
  void RecordInitialEvents(uint32_t recording);

 private:
  static Process* StartOrWait();
  static Process* Start(Process* p);
  static Process* SwitchRecording(Process* p);
  static bool SkipsIfAttachable(uint32_t heaps);
  static void WipeInForkChild();

  static Process* Here() { return reinterpret_cast<Process*>(pages_); }
  static Process* If(Status status) {
    return Here()->status.load(std::memory_order_acquire) == status ? Here() : nullptr;
  }

  static constinit char pages_[];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PROCESS_PROCESS_H_
