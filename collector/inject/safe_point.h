// collector/inject/safe_point.h
//
// Decides whether a stopped thread may execute a call of the loader.
//
// A thread inside an allocator or the loader holds their locks. A dlopen call on it would deadlock,
// or find their data half changed. A thread is therefore suitable only if
//
//   - it executes code outside libc, the loader and allocators, or waits in one of the system calls
//     in which threads usually wait; and
//   - no function on its stack belongs to the loader, an allocator, the driver or CUPTI, or is a
//     libc function that holds such locks. Its stack is unwound to check this; if it waits for a
//     lock, it must have been unwound completely; and
//   - its stack is a thread's own and has room. Stacks that language runtimes allocate piece by
//     piece (goroutines, fibers) do not qualify.
//
// Thread safety: one thread.

#ifndef GMT_COLLECTOR_INJECT_SAFE_POINT_H_
#define GMT_COLLECTOR_INJECT_SAFE_POINT_H_

#include <sys/types.h>

#include <string>

#include "collector/inject/memory_map.h"
#include "collector/inject/own_allocators.h"
#include "collector/inject/registers.h"
#include "collector/inject/remote_image.h"

namespace gmt::inject {

// Free stack bytes that a thread must have, for our data and for the loader.
inline constexpr uint64_t kStackRoom = 128 << 10;

struct SafePoint {
  bool safe = false;
  std::string why_not;  // what the thread was doing instead
};

// Checks registers and mappings only.
SafePoint CheckRegisters(const Registers& registers, const MemoryMap& map);
// Checks the functions on the stopped thread's stack. `libc` and `allocators` are the process's.
SafePoint CheckFrames(pid_t pid, pid_t thread, const Registers& registers, const MemoryMap& map,
                      const RemoteImage& libc, const OwnAllocators& allocators);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_SAFE_POINT_H_
