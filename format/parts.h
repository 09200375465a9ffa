// format/parts.h
//
// The parts of a recording with bounded history (docs/long-runs.md). The newest part has the name
// of the recording; the older ones are next to it:
//
//   run.part-000003.gmt   run.part-000004.gmt   run.gmt      Header.part 3, 4, 5
//
// Each part can be read alone. Together they are read as one recording, back to the first missing
// one.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_PARTS_H_
#define GMT_FORMAT_PARTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"
#include "format/messages_fwd.h"

namespace gmt::format {

// Returns the path of part `number` of the recording at `path` after it is no longer the newest.
std::string PartPath(std::string_view path, uint32_t number);

// Returns the path of the recording of which `path` is an older part by its name; nullopt if it is
// not such a name.
std::optional<std::string> RecordingOfPart(std::string_view path);

// Returns whether `header` belongs to the part that follows the part with the header `before`.
bool IsNextPart(const Header& before, const Header& header);

// Returns the header at the start of a source, or an empty one if there is none.
Header FirstHeader(ByteSource* source);

// Opens the file at `path`, preceded by its older parts without a hole. Fails as OpenFile() does
// for `path` itself.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenWithParts(absl::string_view path);

// Returns `newest`, the source of the file at `path`, preceded by its older parts without a hole.
std::unique_ptr<ByteSource> WithOlderParts(std::unique_ptr<ByteSource> newest,
                                           absl::string_view path);

}  // namespace gmt::format

#endif  // GMT_FORMAT_PARTS_H_
