// The truth log: the calls of the driver, one JSON line per memory call, in the order in which the
// simulator carried them out. Tests compare a profiler's recording with it.
//
//   {"seq":7,"t_ns":81234567,"pid":12,"thread":12,"call":"cuMemAlloc_v2","address":52776558133248,
//    "size":2097152,"handle":0,"stream":0,"device":0,"result":0}
//
// All keys are always present; a key that does not apply to a call is 0. A line is one write(2) on
// an O_APPEND descriptor, so a process killed at any moment leaves only complete lines.
//
// Thread safety: callers hold the simulator's lock.
#ifndef TESTS_SIMCUDA_LOG_H_
#define TESTS_SIMCUDA_LOG_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace sim {

// The arguments and results of one memory call; unused fields are 0.
struct Record {
  uint64_t address = 0;
  uint64_t size = 0;    // bytes requested; for a free, those requested by the allocation
  uint64_t handle = 0;  // physical memory, pool or graph
  uint64_t stream = 0;
  int device = 0;
  uint64_t done_ns = 0;  // when the device completes it; logged only with SIMCUDA_LOG_STREAMS
};

class Log {
 public:
  // `pattern`: a path in which %p is replaced by the process id; empty: nothing is written.
  // `with_done`: lines have done_ns too.
  explicit Log(std::string pattern, bool with_done = false)
      : pattern_(std::move(pattern)), with_done_(with_done) {}

  bool enabled() const { return !pattern_.empty(); }
  void Write(const char* call, const Record& record, int result);

 private:
  void Open(pid_t pid);

  std::string pattern_;
  bool with_done_ = false;
  int descriptor_ = -1;
  pid_t pid_ = 0;  // the process that opened the descriptor; a fork child opens its own
  uint64_t next_seq_ = 0;
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_LOG_H_
