// collector/inject/safe_point.h
//
// Whether a stopped thread may be given a call of the loader.
//
// A thread that is inside an allocator or the loader holds their locks; a call of dlopen on it would
// wait for itself for ever, or find their data half changed. So a thread may be used where
//
//   - it runs code of neither libc, the loader nor an allocator, or waits in a system call of those that
//     threads wait in for long; and
//   - none of the functions that it is inside of belongs to the loader, an allocator, the driver or
//     CUPTI, or is one of libc's that hold such locks. They are found by unwinding its stack; for a thread that
//     waits for a lock all of it must have been unwound; and
//   - its stack is one of the program's own threads' and has room. Stacks that language runtimes
//     hand out piece by piece (goroutines, fibers) have not.
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

// Bytes of stack that a thread must have left: our data, and what the loader takes.
inline constexpr uint64_t kStackRoom = 128 << 10;

struct SafePoint {
  bool safe = false;
  std::string why_not;  // what the thread was doing
};

// By registers and mappings alone.
SafePoint CheckRegisters(const Registers& registers, const MemoryMap& map);
// By what the stopped thread is inside of. `libc` and `allocators` are the process's.
SafePoint CheckFrames(pid_t pid, pid_t thread, const Registers& registers, const MemoryMap& map,
                      const RemoteImage& libc, const OwnAllocators& allocators);

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_SAFE_POINT_H_
