#include "format/read_at.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gmt::format {

int ReadAt(int fd, uint64_t size, uint64_t offset, uint64_t count, std::string* out) {
  out->resize(offset < size ? std::min(count, size - offset) : 0);
  size_t done = 0;
  while (done < out->size()) {
    const ssize_t got =
        pread(fd, out->data() + done, out->size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;  // the file was truncated
    done += static_cast<size_t>(got);
  }
  out->resize(done);
  return 0;
}

}  // namespace gmt::format
