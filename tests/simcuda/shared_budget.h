// SharedBudget: what each process has taken of each device's memory, in one file that all processes
// with the same SIMCUDA_SHARED map.
//
// Every process has a row of the file and holds a file lock on the byte of that row's number. The
// kernel drops the lock when the process ends, however it ends: a row without a lock is that of a
// dead process, counts nothing and is given to the next process that comes. Another such lock
// guards the rows while one process looks at those of all and changes its own; it, too, ends with
// its holder, and what a process changes at once is one word of its own row, so nothing is ever
// left half done.
//
// Thread safety: callers hold the simulator's lock. Processes: any number up to kMostProcesses.
#ifndef TESTS_SIMCUDA_SHARED_BUDGET_H_
#define TESTS_SIMCUDA_SHARED_BUDGET_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simcuda/settings.h"

namespace sim {

class SharedBudget {
 public:
  static constexpr int kMostProcesses = 1024;

  struct Holder {
    pid_t pid;
    uint64_t bytes;
  };

  // Opens the file at `path` or makes it. A file that cannot be used is reported on standard error,
  // and then this process counts for itself only.
  explicit SharedBudget(const std::string& path);
  ~SharedBudget();
  SharedBudget(const SharedBudget&) = delete;

  // Takes `bytes` of a device of which all processes together may hold `limit`, or nothing.
  bool Take(int device, uint64_t bytes, uint64_t limit);
  void Return(int device, uint64_t bytes);

  // The other processes that live and hold memory of the device.
  std::vector<Holder> Others(int device) const;
  uint64_t HeldByOthers(int device) const;

  // The processes that live and hold memory of the device, for one that takes no part in the sharing.
  // The file stays open: were it closed, a row that this process has would lose its lock.
  static std::vector<Holder> HoldersIn(const std::string& path, int device);

 private:
  struct Row {
    pid_t pid;
    uint64_t used[Settings::kMaxDevices];
  };

  bool Lock(int type, off_t byte, bool wait) const;
  static bool IsAlive(int file, int row);
  bool TakeRow();

  int file_ = -1;
  Row* rows_ = nullptr;
  int row_ = -1;  // this process's own; -1: nothing is shared
  Row alone_{};
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_SHARED_BUDGET_H_
