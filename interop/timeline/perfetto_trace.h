// interop/timeline/perfetto_trace.h
//
// A timeline as a Perfetto trace: a process with a counter track for each curve, a thread track for
// each thread, and further tracks below the process. Each device has a heap profile, which shows
// what is held by stack at some moments (MakeStackHistories), in one layer as in other profiles.
// All times are of CLOCK_REALTIME, so that traces of several processes and machines can be opened
// together.
//
// Packets are written one by one: the file is never in memory.
//
// Thread safety: pure function.

#ifndef GMT_INTEROP_TIMELINE_PERFETTO_TRACE_H_
#define GMT_INTEROP_TIMELINE_PERFETTO_TRACE_H_

#include <ostream>

#include "analysis/examination/examination.h"
#include "interop/timeline/timeline.h"

namespace gmt::interop {

void WritePerfettoTrace(const analysis::Examination& examination, const Timeline& timeline,
                        std::ostream& out);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TIMELINE_PERFETTO_TRACE_H_
