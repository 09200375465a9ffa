// collector/inject/thread_search.h
//
// Finds a thread of a process at a moment when it may be given a call (safe_point.h).
//
// Threads that wait are looked at first, since they are disturbed least and are safe most often;
// busy ones again and again, at moments that differ. Each is stopped for some microseconds and goes on as if nothing had
// been.
//
// Thread safety: one thread.

#ifndef GMT_COLLECTOR_INJECT_THREAD_SEARCH_H_
#define GMT_COLLECTOR_INJECT_THREAD_SEARCH_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "collector/inject/inject.h"
#include "collector/inject/registers.h"
#include "collector/inject/remote_image.h"
#include "collector/inject/remote_memory.h"
#include "collector/inject/traced_thread.h"

namespace gmt::inject {

struct FoundThread {
  std::unique_ptr<TracedThread> thread;  // stopped
  Registers registers;
  MemoryMap map;  // as it is while the thread is stopped
  int tries = 0;
  // Those that did not stop when they were asked to. They will, and must be let go then.
  std::vector<std::unique_ptr<TracedThread>> unstopped;

  void LetGoOfUnstopped();
};

// DEADLINE_EXCEEDED where none was safe within `patience`; PERMISSION_DENIED; NOT_FOUND where the
// process is gone.
absl::StatusOr<FoundThread> FindSafeThread(pid_t pid, const RemoteMemory& memory,
                                           const RemoteImage& libc,
                                           std::chrono::milliseconds patience,
                                           const std::function<void(Stage)>& on_stage);

// What a thread is doing, for messages: "running", "sleeping in system call 7".
std::string WhatThreadDoes(pid_t pid, pid_t thread);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_THREAD_SEARCH_H_
