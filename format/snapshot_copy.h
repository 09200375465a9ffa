// format/snapshot_copy.h
//
// Copies one snapshot of a recording to a recording of its own: its header, definitions, names and
// facts, and that snapshot, chunk by chunk. A snapshot delta becomes a complete snapshot. The
// source may be growing or cut; all its intact chunks are searched.
//
// Thread safety: pure function.

#ifndef GMT_FORMAT_SNAPSHOT_COPY_H_
#define GMT_FORMAT_SNAPSHOT_COPY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "format/recording_writer.h"

namespace gmt::format {

// Returns NOT_FOUND if the recording at `path` has no snapshot of that name.
absl::Status CopySnapshot(absl::string_view path, const std::string& name,
                          std::unique_ptr<Sink> sink);

}  // namespace gmt::format

#endif  // GMT_FORMAT_SNAPSHOT_COPY_H_
