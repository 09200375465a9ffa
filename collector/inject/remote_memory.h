// collector/inject/remote_memory.h
//
// RemoteMemory: the memory of another process, through /proc/PID/mem. Like a debugger, it can also
// write to write-protected private pages; the kernel then gives the process a private copy.
//
// The descriptor belongs to the program that ran when it was opened. After an exec, reads and
// writes fail instead of reaching the new program.
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

  // Return whether everything was read or written.
  bool Read(uint64_t address, void* out, size_t size) const;
  bool Write(uint64_t address, const void* data, size_t size) const;
  template <typename T>
  bool Read(uint64_t address, T* value) const {
    return Read(address, value, sizeof(T));
  }
  // Returns the text up to a zero byte, at most `max` bytes, as far as it can be read.
  std::string ReadText(uint64_t address, size_t max) const;

 private:
  explicit RemoteMemory(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_REMOTE_MEMORY_H_
