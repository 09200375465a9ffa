// preload/base/keep_errno.h
//
// KeepErrno: restores errno at the end of a scope, so that a hook leaves the value that the traced
// program would have seen without it.
//
// Thread safety: errno is the calling thread's own.

#ifndef GMT_PRELOAD_BASE_KEEP_ERRNO_H_
#define GMT_PRELOAD_BASE_KEEP_ERRNO_H_

#include <errno.h>

namespace gmt::preload {

class KeepErrno {
 public:
  KeepErrno() : errno_(errno) {}
  ~KeepErrno() { errno = errno_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int errno_;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_KEEP_ERRNO_H_
