// interop/timeline/heap_dumps.h
//
// The heap profile of a device in a Perfetto trace: what is held by stack, at several moments. Each
// device has a packet sequence of its own, because readers take the differences of the dumps of a
// sequence by stack, whatever the heap.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TIMELINE_HEAP_DUMPS_H_
#define GMT_INTEROP_TIMELINE_HEAP_DUMPS_H_

#include <cstdint>
#include <set>
#include <string>

#include "analysis/examination/examination.h"
#include "interop/profile/stack_profile.h"
#include "interop/timeline/perfetto_file.h"

namespace gmt::interop {

// `sequence` has no other packets. `times` are those of all dumps so far, in nanoseconds since the
// start of the recording: readers confuse heaps that are dumped at the same time, so a dump may be
// some nanoseconds late.
void WriteHeapDumps(const analysis::Examination& examination, const StackHistory& history,
                    uint32_t sequence, std::set<int64_t>* times, PerfettoFile* file);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TIMELINE_HEAP_DUMPS_H_
