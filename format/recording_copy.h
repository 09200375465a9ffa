// format/recording_copy.h
//
// Copies a recording and adds information found later (names of frames) or removes private
// information. Every other chunk is copied byte for byte. Additions follow the last chunk of each
// file segment, before its index. The parts of a recording in parts (format/parts.h) become one
// file.
//
// Thread safety: pure function.

#ifndef GMT_FORMAT_RECORDING_COPY_H_
#define GMT_FORMAT_RECORDING_COPY_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"
#include "format/definitions.h"
#include "format/messages_fwd.h"
#include "format/recording_writer.h"
#include "format/strip.h"

namespace gmt::format {

// Returns the chunks of definitions or symbols to add to a segment, with the ids of that segment.
// `definitions`: of the file so far; its base() is that of the segment.
using Additions =
    std::function<absl::StatusOr<std::vector<gmt::Body>>(const Definitions& definitions)>;

// Fail if the recording is cut or damaged; the message contains `path` and the repair command.
absl::Status CopyRecording(ByteSource& source, absl::string_view path, std::unique_ptr<Sink> sink,
                           const Additions& additions);
absl::Status CopyStripped(ByteSource& source, absl::string_view path, std::unique_ptr<Sink> sink,
                          const Strip& strip);

}  // namespace gmt::format

#endif  // GMT_FORMAT_RECORDING_COPY_H_
