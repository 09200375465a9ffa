// format/byte_source.h
//
// ByteSource: random access to the bytes of a recording in a file or in memory.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_BYTE_SOURCE_H_
#define GMT_FORMAT_BYTE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmt::format {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Returns the size when the source was opened. A file may grow after that.
  virtual uint64_t size() const = 0;
  // Replaces `*out` by `count` bytes from `offset`, or fewer at the end.
  virtual absl::Status Read(uint64_t offset, uint64_t count, std::string* out) = 0;
};

// Opens a file. An error message contains the path. A file that is not regular (a pipe) is read
// completely at once.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(absl::string_view path);

std::unique_ptr<ByteSource> BytesInMemory(std::string bytes);

}  // namespace gmt::format

#endif  // GMT_FORMAT_BYTE_SOURCE_H_
