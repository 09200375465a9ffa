// preload/base/memory.h
//
// Reads memory by its address, and checks beforehand whether it is readable.
//
// Thread safety: any thread, signal handlers.

#ifndef GMT_PRELOAD_BASE_MEMORY_H_
#define GMT_PRELOAD_BASE_MEMORY_H_

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gmt::preload {

template <typename T>
T Load(uint64_t address) {
  T value;
  memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kAddressLimit = uint64_t{1} << 47;  // of user space

// Returns whether the page of that address can be read. Makes one system call; preserves errno.
//
// The kernel copies the signal set that rt_sigprocmask is given before it checks how to apply it.
// With an invalid `how`, it changes nothing and fails with EINVAL if the bytes were readable and
// with EFAULT otherwise. Unlike process_vm_readv on the own process, no sandbox forbids this.
[[gnu::noinline]] inline bool IsReadable(uint64_t address) {
  if (address < kPage || address >= kAddressLimit) return false;
  constexpr int kNoSuchWay = 0x7fffffff;
  const int saved = errno;
  syscall(SYS_rt_sigprocmask, kNoSuchWay, address & ~(kPage - 1), nullptr, sizeof(uint64_t));
  const bool readable = errno == EINVAL;
  errno = saved;
  return readable;
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_MEMORY_H_
