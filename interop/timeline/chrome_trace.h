// interop/timeline/chrome_trace.h
//
// A timeline as a Chrome trace (JSON), for ui.perfetto.dev and chrome://tracing, on the clock of
// PyTorch's profiler: the events of both files can be put into one.
//
//   time of an event in ns since 1970 = baseTimeNanoseconds + ts * 1000
//
// The profiler (libkineto) counts from the beginning of a period of three mean months since 1970:
// files of the same period have the same base.
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_TIMELINE_CHROME_TRACE_H_
#define GMT_INTEROP_TIMELINE_CHROME_TRACE_H_

#include <cstdint>
#include <ostream>

#include "analysis/examination/examination.h"
#include "interop/timeline/timeline.h"

namespace gmt::interop {

int64_t KinetoBaseTime(int64_t unix_ns);

// The file is ASCII.
void WriteChromeTrace(const analysis::Examination& examination, const Timeline& timeline,
                      std::ostream& out);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TIMELINE_CHROME_TRACE_H_
