// collector/events/oom_watch.h
//
// OomWatch: which failed allocations are a lack of memory, and which of those deserve a snapshot.
// The driver's refusal of what PyTorch's caching allocator asks for is not yet one: the allocator
// gives back what it has to spare and asks again, and says so where that does not help.
//
// Programs that look for the largest batch fail on purpose, again and again: the first three are
// kept in full, the others counted as what they are, events. Who is refused and tries again at once
// is refused the same.
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
  // The name of the snapshot to take behind this event, which is a lack of memory; empty: none.
  // `may_be_retried`: the driver refused a caching allocator that will report what comes of it.
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
