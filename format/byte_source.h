// format/byte_source.h
//
// ByteSource: random access to the bytes of a recording in a file or in memory.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_BYTE_SOURCE_H_
#define GMT_FORMAT_BYTE_SOURCE_H_

#include <cstdint>
#include <functional>
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

// As much of a file as is needed to recognise its format.
constexpr uint64_t kFileHeadBytes = 1 << 20;

// The most that is read from a pipe, which is kept in memory.
constexpr uint64_t kMaxPipeBytes = 1 << 30;

// Gets the first kFileHeadBytes of a pipe, or all if it is shorter. An error ends the reading.
using HeadCheck = std::function<absl::Status(absl::string_view head)>;

// Opens a regular file, or reads a pipe to its end if `check` accepts its head. Error messages
// contain the path. INVALID_ARGUMENT for a folder, a device and a socket, which are not opened;
// RESOURCE_EXHAUSTED for a longer pipe; UNAVAILABLE if no program opens the pipe for writing within
// five seconds. Waits without limit for a writer that has opened it.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(absl::string_view path,
                                                     const HeadCheck& check = nullptr);

std::unique_ptr<ByteSource> BytesInMemory(std::string bytes);

}  // namespace gmt::format

#endif  // GMT_FORMAT_BYTE_SOURCE_H_
