// collector/inject/remote_memory.h
//
// RemoteMemory: the memory of another process, by /proc/PID/mem. Writes reach write-protected
// private pages too (the kernel then gives the process a copy of its own), as a debugger's do.
//
// Held open it belongs to the program that the process was when it was opened: after an exec reads
// and writes fail instead of reaching the next program.
//
// Thread safety: const; any thread.

#ifndef GMT_COLLECTOR_INJECT_REMOTE_MEMORY_H_
#define GMT_COLLECTOR_INJECT_REMOTE_MEMORY_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::inject {

class RemoteMemory {
 public:
  static absl::StatusOr<RemoteMemory> Open(pid_t pid);
  RemoteMemory(RemoteMemory&& other) noexcept;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;
  ~RemoteMemory();

  // Whether all of it could be read, written.
  bool Read(uint64_t address, void* out, size_t size) const;
  bool Write(uint64_t address, const void* data, size_t size) const;
  template <typename T>
  bool Read(uint64_t address, T* value) const {
    return Read(address, value, sizeof(T));
  }
  // Up to a zero, at most `max` bytes; what can be read of it.
  std::string ReadText(uint64_t address, size_t max) const;

 private:
  explicit RemoteMemory(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_REMOTE_MEMORY_H_
