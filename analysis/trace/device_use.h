// analysis/trace/device_use.h
//
// DeviceUse: what a recording knows of a device's memory beside what the device says of it. Each
// sample (proto/gmt.proto, Sample) is compared with the driver memory that the process held at that
// event.
//
//   sample of nvml, 2 GiB of this process     recorded 1.6 GiB    0.4 GiB are contexts, code, libraries
//   sample of cudaMemGetInfo, 9 GiB used      recorded 1.6 GiB    the rest is that, and other processes
//
// Which of the two a number is, is said: NVML knows processes, the driver itself counts them all
// together. A sample is of a moment that lies around its event, so that single differences may be
// those of an allocation that was under way.
//
// Not counted as recorded, because it need not be on the device or is not this process's: managed
// memory, and what was imported. Counted, though no allocation of the driver was seen for it: a
// framework's blocks that lie in no memory that is known.
//
// Thread safety: pure functions. Cost: one walk over the trace's steps.

#ifndef GMT_ANALYSIS_TRACE_DEVICE_USE_H_
#define GMT_ANALYSIS_TRACE_DEVICE_USE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct DeviceUse {
  struct At {
    int64_t t_ns = 0;
    uint64_t recorded_bytes = 0;
    std::optional<uint64_t>
        process_bytes;  // of this process, where the source tells processes apart
    std::optional<uint64_t> others_bytes;  // of those that it tells apart
    uint64_t used_bytes = 0, total_bytes = 0;  // total 0: the source says only what is free
    std::optional<uint64_t> reserved_bytes, free_bytes;

    // What is held and not recorded: of this process where that is told, else of all.
    int64_t unrecorded() const {
      return static_cast<int64_t>(process_bytes.value_or(used_bytes)) -
             static_cast<int64_t>(recorded_bytes);
    }
  };
  int32_t device = 0;
  std::string source;
  uint64_t samples = 0;
  At last;
  At fullest;  // the one with most bytes used, the first of them
};

// Whether the row's bytes are part of what the driver says of the row's device.
bool IsInDriverFigure(const Rows& rows, RowId row);

// What IsInDriverFigure and held at the place of each of trace.samples, on that sample's device.
std::vector<uint64_t> RecordedAtSamples(const Trace& trace);

// By device and source, of those that have samples.
std::vector<DeviceUse> FindDeviceUse(const Trace& trace);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_DEVICE_USE_H_
