// collector/oom_watch.h
//
// OomWatch: which failed allocations deserve a snapshot. Frameworks answer one lack of memory with
// several failing calls, and programs that probe for the largest batch fail on purpose: at most one
// snapshot in 100 ms and 16 in a file.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OOM_WATCH_H_
#define GMT_COLLECTOR_OOM_WATCH_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "collector/clock.h"
#include "session/record.h"

namespace gmt::collector {

inline constexpr uint16_t kCudaOutOfMemory =
    2;  // cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY

class OomWatch {
 public:
  // The name of the snapshot to take behind this event; empty: none.
  std::string SnapshotFor(const session::Record& record) {
    constexpr int kMaxSnapshots = 16;
    constexpr uint64_t kDistance = 100 * kMillisecond;
    const bool out_of_memory = record.kind == session::Kind::kAllocFailed &&
                               record.result == kCudaOutOfMemory &&
                               record.memory != session::Memory::kBlock;
    if (!out_of_memory || taken_ == kMaxSnapshots) return "";
    if (taken_ > 0 && record.time_ns < last_ns_ + kDistance) return "";
    last_ns_ = record.time_ns;
    return absl::StrCat("oom-", ++taken_);
  }

 private:
  int taken_ = 0;
  uint64_t last_ns_ = 0;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OOM_WATCH_H_
