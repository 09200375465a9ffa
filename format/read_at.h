// format/read_at.h
//
// Reads a range of an open file, for implementations of ByteSource.
//
// Thread safety: free function, callable from any thread.

#ifndef GMT_FORMAT_READ_AT_H_
#define GMT_FORMAT_READ_AT_H_

#include <cstdint>
#include <string>

namespace gmt::format {

// Replaces `*out` by `count` bytes from `offset`, or by fewer if the file ends before. The file is
// taken to be `size` bytes long, but may have been truncated. Returns 0 or an errno value.
int ReadAt(int fd, uint64_t size, uint64_t offset, uint64_t count, std::string* out);

}  // namespace gmt::format

#endif  // GMT_FORMAT_READ_AT_H_
