// analysis/trace/device_use.h
//
// DeviceUse: compares what a recording knows of a device's memory with what the device reports.
// Each sample (proto/gmt.proto, Sample) is compared with the driver memory that the process held at
// that event.
//
//   sample of nvml, 2 GiB of this process     recorded 1.6 GiB    0.4 GiB are contexts, code, libraries
//   sample of cudaMemGetInfo, 9 GiB used      recorded 1.6 GiB    the rest is that, and other processes
//
// The source tells which of the two a number is: NVML distinguishes processes, the driver reports
// only their sum. A sample is taken at some moment near its event, so a single difference may be
// due to an allocation in progress.
//
// Not counted as recorded: managed memory, which need not be on the device, and imported memory,
// which is not this process's. Counted although no driver allocation was seen: a framework's blocks
// that lie in no known driver memory.
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
    // Bytes of this process, if the source distinguishes processes.
    std::optional<uint64_t> process_bytes;
    std::optional<uint64_t> others_bytes;      // of the other processes that it lists
    uint64_t used_bytes = 0, total_bytes = 0;  // total 0: the source reports only free memory
    std::optional<uint64_t> reserved_bytes, free_bytes;

    // Memory in use that is not recorded: this process's if known, otherwise that of all processes.
    int64_t unrecorded() const {
      return static_cast<int64_t>(process_bytes.value_or(used_bytes)) -
             static_cast<int64_t>(recorded_bytes);
    }
  };
  int32_t device = 0;
  std::string source;
  uint64_t samples = 0;
  At last;
  At fullest;  // the sample with the most used bytes; of equal ones the first
};

// Whether the row's bytes are part of the driver's figure for the row's device.
bool IsInDriverFigure(const Rows& rows, RowId row);

// Returns for each of trace.samples the IsInDriverFigure() bytes held at its event on its device.
std::vector<uint64_t> RecordedAtSamples(const Trace& trace);

// Sorted by device and source; omits those without samples.
std::vector<DeviceUse> FindDeviceUse(const Trace& trace);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_DEVICE_USE_H_
