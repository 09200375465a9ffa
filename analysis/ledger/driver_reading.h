// analysis/ledger/driver_reading.h
//
// DriverReading: the driver's reading of a device nearest to a moment, and how much of the
// unrecorded memory was there all along.
//
//   reading            1      2      3      4      5
//   driver           510    610    655    660    910   MiB of this process
//   recorded          10    100    100    100    200
//   unrecorded       500    510    555    560    710
//   modules loaded           10     50
//   standing         500 .. 560: contexts and code            the other 150 of reading 5: unexplained
//
// A reading may be taken in the middle of a call. So the standing part is the median of three
// readings. These are the first ones, or, if the program has a loop, the first ones after its
// second step, when libraries have loaded their code.
//
// Thread safety: pure functions. Cost: one walk over the trace's steps.

#ifndef GMT_ANALYSIS_LEDGER_DRIVER_READING_H_
#define GMT_ANALYSIS_LEDGER_DRIVER_READING_H_

#include <cstdint>
#include <optional>

#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct DriverReading {
  DeviceSample sample;          // used_bytes is computed if only free memory was reported
  uint64_t recorded_bytes = 0;  // at its position among the events
  // Memory of this process, or of all if the sample does not distinguish processes.
  uint64_t unrecorded_bytes = 0;
  uint64_t standing_bytes = 0;  // part of unrecorded_bytes
  uint64_t cupti_bytes = 0;     // in neither of these: what CUPTI takes because of its settings
};

// From NVML if it has readings, otherwise from any source. nullopt if there is none.
std::optional<DriverReading> ReadingNear(const Examination& examination, int32_t device,
                                         const Instant& at);

// The memory that CUPTI takes on a device at a moment, according to the recording.
uint64_t CuptiBytesAt(const Trace& trace, int32_t device, Step step, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEDGER_DRIVER_READING_H_
