// collector/events/oom_watch.h
//
// OomWatch: decides which failed allocations mean out of memory, and which of them get a snapshot.
// If the driver refuses a request of PyTorch's caching allocator, that is not yet an out of memory:
// the allocator frees its cached memory, tries again, and reports an error if that does not help.
//
// Programs that search for the largest batch size fail deliberately and repeatedly. Only the first
// three failures get a snapshot; the others are just events. Retries within 100 ms count as the
// same failure.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_EVENTS_OOM_WATCH_H_
#define GMT_COLLECTOR_EVENTS_OOM_WATCH_H_

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
  // Returns the name of the snapshot to take after this event, which is an out of memory; empty:
  // none. `may_be_retried`: the driver refused a caching allocator, which will report the final
  // outcome.
  std::string SnapshotFor(const session::Record& record, bool may_be_retried) {
    constexpr int kMaxSnapshots = 3;
    constexpr uint64_t kDistance = 100 * kMillisecond;
    const bool of_framework = record.memory == session::Memory::kBlock;
    const bool is_the_same = taken_ > 0 && record.time_ns < last_ns_ + kDistance &&
                             !(of_framework && last_of_framework_);
    if (is_the_same || taken_ == kMaxSnapshots || (may_be_retried && !of_framework)) return "";
    last_ns_ = record.time_ns;
    last_of_framework_ = of_framework;
    return absl::StrCat("oom-", ++taken_);
  }

  static bool IsOutOfMemory(const session::Record& record) {
    return record.kind == session::Kind::kAllocFailed &&
           (record.memory == session::Memory::kBlock || record.result == kCudaOutOfMemory);
  }

 private:
  int taken_ = 0;
  uint64_t last_ns_ = 0;
  bool last_of_framework_ = false;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_OOM_WATCH_H_
