// preload/process/attach_gate.h
//
// AttachGate: what a process needs so that clients can attach to it and detach from it while it
// runs. Part of Process (preload/process/process.h); all-zero bytes are a closed gate.
//
// Attach and detach are requested through one word of the session (session/layout.h,
// attach_wanted), which each hooked call checks. The call that finds it changed begins or ends the
// recording (preload/lifecycle/attach.h). Before it ends the recording, it must know that no thread
// still writes to the session, because the session's memory is released and its tables begin empty
// the next time. Therefore each writer counts itself in while it writes
// (preload/process/write_guard.h), in one of a few counters chosen by thread, so that threads do
// not share a cache line.
//
//   writer                             thread that ends the recording
//   count in                           status: not recording
//   status still recording? write      wait until all counters are 0
//   count out
//
// Each side first writes its own word and then reads the other's (sequentially consistent), so that
// at least one of them sees the other.
//
// Thread safety: all methods may be called from any thread and from signal handlers.

#ifndef GMT_PRELOAD_PROCESS_ATTACH_GATE_H_
#define GMT_PRELOAD_PROCESS_ATTACH_GATE_H_

#include <stdint.h>

#include <atomic>

#include "session/layout.h"
#include "session/options.h"

namespace gmt::preload {

struct AttachGate {
  struct alignas(64) WriterCounter {
    std::atomic<uint32_t> writers;
  };
  static constexpr uint32_t kWriterCounters = 32;

  // attach_wanted of the session; &closed if the process has no attach gate.
  const std::atomic<uint32_t>* wanted;
  std::atomic<uint32_t> closed;  // always 0
  // The value of *wanted that has last been acted upon.
  std::atomic<uint32_t> seen;
  bool is_open;              // constant once the process has begun
  session::Options options;  // of the process itself, without those of an attach
  uint64_t arena_words;      // initial size of the session's arena
  WriterCounter writer_counters[kWriterCounters];

  void Close() { wanted = &closed; }
  void Open(session::Control* control) {
    wanted = &control->attach_wanted;
    is_open = true;
  }
  bool HasPendingRequest() const {
    return wanted->load(std::memory_order_relaxed) != seen.load(std::memory_order_relaxed);
  }

  std::atomic<uint32_t>* CounterFor(const void* thread) {
    const auto address = reinterpret_cast<uint64_t>(thread);
    return &writer_counters[(address >> 6) * 0x9e3779b97f4a7c15 >> 59].writers;
  }
  static_assert(kWriterCounters == 1 << (64 - 59));

  bool HasWriters() const {
    for (const WriterCounter& place : writer_counters) {
      if (place.writers.load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_PROCESS_ATTACH_GATE_H_
