#include "collector/inject/running_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace gmt::inject {

// An open file of mappings belongs to the memory that the process had when it was opened.
RunningProgram::RunningProgram(pid_t pid)
    : maps_(open(absl::StrCat("/proc/", pid, "/maps").c_str(), O_RDONLY | O_CLOEXEC)) {}

RunningProgram::~RunningProgram() {
  if (maps_ >= 0) close(maps_);
}

bool RunningProgram::IsGone() const {
  if (maps_ < 0) return false;
  char first;
  const ssize_t n = pread(maps_, &first, 1, 0);
  return n == 0 || (n < 0 && errno == ESRCH);
}

}  // namespace gmt::inject
