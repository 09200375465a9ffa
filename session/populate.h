// session/populate.h
//
// Memory behind pages of the session's file, taken before anybody writes there: a plain write could
// end the traced process (SIGBUS) where the file system is full.
//
// Thread safety: from any thread and from signal handlers; threads that ask for the same pages at
// once do the same. errno stays as it was.

#ifndef GMT_SESSION_POPULATE_H_
#define GMT_SESSION_POPULATE_H_

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

namespace gmt::session {

// 0, or errno: EFAULT where the file system is full, EINVAL before Linux 5.14, and then a part of the
// pages may have memory. REQUIRES: whole pages of a shared mapping that may be written to.
inline int Populate(void* pages, uint64_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE; unknown to older headers
  const int saved = errno;
  const int error = madvise(pages, bytes, kPopulateWrite) == 0 ? 0 : errno;
  errno = saved;
  return error;
}

}  // namespace gmt::session

#endif  // GMT_SESSION_POPULATE_H_
