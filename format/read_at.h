// format/read_at.h
//
// Reading a stretch of an open file, as a ByteSource over one does.
//
// Thread safety: free function; any thread.

#ifndef GMT_FORMAT_READ_AT_H_
#define GMT_FORMAT_READ_AT_H_

#include <cstdint>
#include <string>

namespace gmt::format {

// Replaces `*out` by the `count` bytes from `offset` on, by fewer where the file, taken to be `size` bytes
// long, ends before, or where somebody has cut it. 0 or errno.
int ReadAt(int fd, uint64_t size, uint64_t offset, uint64_t count, std::string* out);

}  // namespace gmt::format

#endif  // GMT_FORMAT_READ_AT_H_
