// format/snapshot_copy.h
//
// A recording with one snapshot of another one and nothing else: its header, definitions, names and
// facts, and that snapshot, chunk for chunk, whole where it was a delta. The other one may be growing still, or be cut: what is
// whole in it is looked through.
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

// NOT_FOUND where the recording at `path` has no snapshot of that name.
absl::Status CopySnapshot(absl::string_view path, const std::string& name,
                          std::unique_ptr<Sink> sink);

}  // namespace gmt::format

#endif  // GMT_FORMAT_SNAPSHOT_COPY_H_
