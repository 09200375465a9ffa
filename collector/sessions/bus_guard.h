// collector/sessions/bus_guard.h
//
// BusGuard: protects the collector from files that are truncated while they are mapped. Reading a
// missing page raises SIGBUS, which would end the collector and lose everything that it has not
// written yet. With the guard installed, the missing page reads as zeros, which every reader here
// takes for "nothing written". MissingPages() reports that it happened.
//
// The guard covers every mapping of the process, including the ELF files used to look up names.
//
// Thread safety: any thread may fault and call MissingPages() at any time. The handler is per
// process; call Install() once.

#ifndef GMT_COLLECTOR_SESSIONS_BUS_GUARD_H_
#define GMT_COLLECTOR_SESSIONS_BUS_GUARD_H_

#include <cstddef>
#include <cstdint>

namespace gmt::collector {

class BusGuard {
 public:
  // Replaces the process's SIGBUS handler. A fault that is not caused by a missing page of a file
  // still ends the process.
  static void Install();

  // Returns how many pages in [start, start + size) were missing when they were read.
  static uint64_t MissingPages(const void* start, size_t size);
  // Forgets the missing pages of a range. Call before unmapping it, because other data may be
  // mapped there later.
  static void Forget(const void* start, size_t size);
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_BUS_GUARD_H_
