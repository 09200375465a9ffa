// format/recording_copy.h
//
// A copy of a recording with something added at its end, for what is learnt later: names of frames;
// or without what is private. Every other chunk of the original stands in the copy byte for byte; what
// is added stands behind the last one of each file segment, before its index. Of a recording in parts
// (format/parts.h) all that lie there become one file.
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
#include "format/definitions.h"
#include "format/messages_fwd.h"
#include "format/recording_writer.h"
#include "format/strip.h"

namespace gmt::format {

// What to add to a segment, a chunk of definitions or symbols each, with ids as they are in that
// segment. `definitions`: of the file so far; its base() is where the segment begins.
using Additions =
    std::function<absl::StatusOr<std::vector<gmt::Body>>(const Definitions& definitions)>;

// Fails, with the command that mends it, where the recording at `path` is cut or damaged.
absl::Status CopyRecording(absl::string_view path, std::unique_ptr<Sink> sink,
                           const Additions& additions);
absl::Status CopyStripped(absl::string_view path, std::unique_ptr<Sink> sink, const Strip& strip);

}  // namespace gmt::format

#endif  // GMT_FORMAT_RECORDING_COPY_H_
