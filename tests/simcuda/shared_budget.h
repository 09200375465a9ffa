// SharedBudget: the memory that each process has taken from each device, in one file that all
// processes with the same SIMCUDA_SHARED map.
//
// Every process has a row of the file and holds a file lock on the byte with that row's number. The
// kernel releases the lock when the process ends, however it ends: a row without a lock belongs to
// a dead process, does not count and is given to the next new process. Another such lock guards the
// rows while a process reads those of all and changes its own. It too is released with its holder,
// and each change writes one word of the process's own row, so no change is ever left half done.
//
// Thread safety: callers hold the simulator's lock. Processes: at most kMaxProcesses.
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
  static constexpr int kMaxProcesses = 1024;

  struct Holder {
    pid_t pid;
    uint64_t bytes;
  };

  // Opens or creates the file at `path`. If it cannot be used, that is reported on standard error,
  // and the process counts only for itself.
  explicit SharedBudget(const std::string& path);
  ~SharedBudget();
  SharedBudget(const SharedBudget&) = delete;

  // Takes all of `bytes` or nothing from a device of which all processes together may hold `limit`.
  bool Take(int device, uint64_t bytes, uint64_t limit);
  void Return(int device, uint64_t bytes);

  // Returns the other live processes that hold memory of the device.
  std::vector<Holder> Others(int device) const;
  uint64_t HeldByOthers(int device) const;

  // Returns the live processes that hold memory of the device, for a process that does not share
  // it. The file stays open, because closing it would release the lock of a row that this process
  // may have.
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
  int row_ = -1;  // this process's own row; -1: nothing is shared
  Row alone_{};
};

}  // namespace sim

#endif  // TESTS_SIMCUDA_SHARED_BUDGET_H_
