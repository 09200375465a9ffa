// format/byte_source.h
//
// ByteSource: the bytes of a recording, in a file or in memory, read at any offset.
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
  // As it was when the source was opened; a file may grow behind it.
  virtual uint64_t size() const = 0;
  // Replaces `*out` by the bytes from `offset` on: `count` of them, or fewer at the end.
  virtual absl::Status Read(uint64_t offset, uint64_t count, std::string* out) = 0;
};

// Fails with a message that names the path. What is no regular file (a pipe) is read to its end at
// once.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(absl::string_view path);

std::unique_ptr<ByteSource> BytesInMemory(std::string bytes);

}  // namespace gmt::format

#endif  // GMT_FORMAT_BYTE_SOURCE_H_
