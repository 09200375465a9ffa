// session/populate.h
//
// Allocates memory for pages of the session file before any thread writes to them. A plain write
// would end the traced process with SIGBUS if the file system is full.
//
// Thread safety: may be called from any thread and from signal handlers, also concurrently for the
// same pages. Preserves errno.

#ifndef GMT_SESSION_POPULATE_H_
#define GMT_SESSION_POPULATE_H_

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

namespace gmt::session {

// Returns 0 or an errno value: EFAULT if the file system is full, EINVAL before Linux 5.14. After
// an error a part of the pages may have memory. REQUIRES: whole pages of a writable shared
// mapping.
inline int Populate(void* pages, uint64_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE; unknown to older headers
  const int saved = errno;
  const int error = madvise(pages, bytes, kPopulateWrite) == 0 ? 0 : errno;
  errno = saved;
  return error;
}

}  // namespace gmt::session

#endif  // GMT_SESSION_POPULATE_H_
