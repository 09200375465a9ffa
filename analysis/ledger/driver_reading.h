// analysis/ledger/driver_reading.h
//
// DriverReading: what the driver said of a device nearest to a moment, and how much of what nobody
// recorded was there all along.
//
//   reading            1      2      3      4      5
//   says             510    610    655    660    910   MiB of this process
//   recorded          10    100    100    100    200
//   unrecorded       500    510    555    560    710
//   modules loaded           10     50
//   standing         500 .. 560: contexts and code            the other 150 of reading 5: unexplained
//
// Readings are of a moment around their place among the events: one may be taken in the middle of a
// call. So the standing part is the middle of three readings, which are the first ones, or where the
// program has a loop, the first ones behind its second step: by then libraries have loaded their
// code.
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
  DeviceSample sample;          // its used_bytes is filled in where only what is free was told
  uint64_t recorded_bytes = 0;  // at its place among the events
  // Of this process, or, where the sample does not tell processes apart, of all.
  uint64_t unrecorded_bytes = 0;
  uint64_t standing_bytes = 0;  // of those
  uint64_t cupti_bytes = 0;     // of neither: what CUPTI took by its own settings
};

// Of NVML where it has any, else of whoever told. nullopt: nobody told.
std::optional<DriverReading> ReadingNear(const Examination& examination, int32_t device,
                                         const Instant& at);

// What CUPTI takes on a device at a moment, as the recording tells it.
uint64_t CuptiBytesAt(const Trace& trace, int32_t device, Step step, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEDGER_DRIVER_READING_H_
