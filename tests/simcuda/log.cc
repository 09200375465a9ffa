#include "tests/simcuda/log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tests/simcuda/clock.h"

namespace sim {

void Log::Open(pid_t pid) {
  std::string path = pattern_;
  for (size_t at; (at = path.find("%p")) != std::string::npos;) {
    path.replace(at, 2, std::to_string(pid));
  }
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  pid_ = pid;
  if (descriptor_ < 0) {
    std::fprintf(stderr, "simcuda: cannot write the log SIMCUDA_LOG=%s: %s\n", path.c_str(),
                 std::strerror(errno));
    pattern_.clear();
  }
}

void Log::Write(const char* call, const Record& record, int result) {
  if (!enabled()) return;
  pid_t pid = getpid();
  if (pid != pid_) Open(pid);
  char done[40] = "";
  if (with_done_) {
    std::snprintf(done, sizeof(done), ",\"done_ns\":%llu",
                  static_cast<unsigned long long>(record.done_ns));
  }
  char line[512];
  int length = std::snprintf(
      line, sizeof(line),
      "{\"seq\":%llu,\"t_ns\":%llu,\"pid\":%d,\"thread\":%ld,\"call\":\"%s\",\"address\":%llu,"
      "\"size\":%llu,\"handle\":%llu,\"stream\":%llu,\"device\":%d,\"result\":%d%s}\n",
      static_cast<unsigned long long>(next_seq_++), static_cast<unsigned long long>(Now()), pid,
      syscall(SYS_gettid), call, static_cast<unsigned long long>(record.address),
      static_cast<unsigned long long>(record.size), static_cast<unsigned long long>(record.handle),
      static_cast<unsigned long long>(record.stream), record.device, result, done);
  if (descriptor_ >= 0 && write(descriptor_, line, length) != length) {
    std::fprintf(stderr, "simcuda: the log is incomplete: %s\n", std::strerror(errno));
  }
}

}  // namespace sim
