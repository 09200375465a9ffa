// interop/pickle/byte_stream.h
//
// ByteStream: the bytes of a file from front to back, decompressed if the file is gzip-compressed.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_PICKLE_BYTE_STREAM_H_
#define GMT_INTEROP_PICKLE_BYTE_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"

namespace gmt::interop {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Returns the next bytes, at most one MiB, or "" at the end. They are valid until the next call.
  virtual absl::StatusOr<absl::string_view> Next() = 0;
};

// `name` stands for the path in messages. Errors: those of the source, and a damaged file that
// begins like a gzip file.
std::unique_ptr<ByteStream> StreamOf(std::shared_ptr<format::ByteSource> source,
                                     absl::string_view name);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PICKLE_BYTE_STREAM_H_
