// collector/sessions/bus_guard.h
//
// BusGuard: reading a file that somebody cuts while it is mapped. The kernel answers with SIGBUS,
// which would end the collector and with it everything it has not written yet. Under the guard the
// missing page reads as zeros instead, which every reader here takes for "nothing written", and
// whoever asks is told that it happened.
//
// It covers every mapping of the process, so also the ELF files that names are looked up in.
//
// Thread safety: any thread may fault and ask at any time. The handler belongs to the process;
// Install() once.

#ifndef GMT_COLLECTOR_SESSIONS_BUS_GUARD_H_
#define GMT_COLLECTOR_SESSIONS_BUS_GUARD_H_

#include <cstddef>
#include <cstdint>

namespace gmt::collector {

class BusGuard {
 public:
  // Replaces the process's handler of SIGBUS. Faults that are not a missing page of a file end the
  // process as ever.
  static void Install();

  // How many pages in [start, start + size) were missing when they were read.
  static uint64_t MissingPages(const void* start, size_t size);
  // Before the memory is given back: what is mapped there next is none of it.
  static void Forget(const void* start, size_t size);
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_BUS_GUARD_H_
