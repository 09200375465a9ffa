#include "tests/simcuda/shared_budget.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sim {
namespace {

constexpr off_t kGuard = SharedBudget::kMaxProcesses;  // the byte whose lock guards all rows

struct flock ByteLock(int type, off_t byte) {
  struct flock lock = {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

}  // namespace

SharedBudget::SharedBudget(const std::string& path) {
  constexpr size_t kBytes = sizeof(Row) * kMaxProcesses;
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (file_ >= 0 && ftruncate(file_, kBytes) == 0) {
    memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  }
  if (memory != MAP_FAILED) rows_ = static_cast<Row*>(memory);
  if (rows_ != nullptr && TakeRow()) return;
  std::fprintf(stderr, "simcuda: no memory is shared through SIMCUDA_SHARED=%s: %s\n", path.c_str(),
               std::strerror(errno));
}

SharedBudget::~SharedBudget() {
  if (rows_ != nullptr) munmap(rows_, sizeof(Row) * kMaxProcesses);
  if (file_ >= 0) close(file_);  // and with it all locks
}

bool SharedBudget::Lock(int type, off_t byte, bool wait) const {
  struct flock lock = ByteLock(type, byte);
  int result;
  do {
    result = fcntl(file_, wait ? F_SETLKW : F_SETLK, &lock);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool SharedBudget::IsAlive(int file, int row) {
  struct flock lock = ByteLock(F_WRLCK, row);
  return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool SharedBudget::TakeRow() {
  if (!Lock(F_WRLCK, kGuard, true)) return false;
  for (int row = 0; row < kMaxProcesses && row_ < 0; ++row) {
    if (!Lock(F_WRLCK, row, false)) continue;
    rows_[row] = {};
    rows_[row].pid = getpid();
    row_ = row;
  }
  Lock(F_UNLCK, kGuard, false);
  if (row_ < 0) errno = ENOSPC;
  return row_ >= 0;
}

bool SharedBudget::Take(int device, uint64_t bytes, uint64_t limit) {
  Row& own = row_ < 0 ? alone_ : rows_[row_];
  if (row_ >= 0) Lock(F_WRLCK, kGuard, true);
  uint64_t held = own.used[device] + HeldByOthers(device);
  bool fits = held <= limit && bytes <= limit - held;
  if (fits) own.used[device] += bytes;
  if (row_ >= 0) Lock(F_UNLCK, kGuard, false);
  return fits;
}

void SharedBudget::Return(int device, uint64_t bytes) {
  Row& own = row_ < 0 ? alone_ : rows_[row_];
  own.used[device] -= bytes;  // one word of our own row, which no other process writes
}

std::vector<SharedBudget::Holder> SharedBudget::Others(int device) const {
  std::vector<Holder> others;
  for (int row = 0; row_ >= 0 && row < kMaxProcesses; ++row) {
    uint64_t bytes = rows_[row].used[device];
    if (row != row_ && bytes != 0 && IsAlive(file_, row)) others.push_back({rows_[row].pid, bytes});
  }
  return others;
}

std::vector<SharedBudget::Holder> SharedBudget::HoldersIn(const std::string& path, int device) {
  static int file = -1;
  static const Row* rows = nullptr;
  if (file < 0) file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about;
  constexpr size_t kBytes = sizeof(Row) * kMaxProcesses;
  if (rows == nullptr && file >= 0 && fstat(file, &about) == 0 &&
      static_cast<size_t>(about.st_size) >= kBytes) {
    void* memory = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) rows = static_cast<const Row*>(memory);
  }
  std::vector<Holder> holders;
  for (int row = 0; rows != nullptr && row < kMaxProcesses; ++row) {
    const uint64_t bytes = rows[row].used[device];
    if (bytes != 0 && IsAlive(file, row)) holders.push_back({rows[row].pid, bytes});
  }
  return holders;
}

uint64_t SharedBudget::HeldByOthers(int device) const {
  uint64_t bytes = 0;
  for (const Holder& holder : Others(device)) bytes += holder.bytes;
  return bytes;
}

}  // namespace sim
