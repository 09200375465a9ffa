// format/parts.h
//
// The parts of a recording whose history is bounded (docs/long-runs.md). The newest part has the
// recording's name; the older ones lie beside it:
//
//   run.part-000003.gmt   run.part-000004.gmt   run.gmt      Header.part 3, 4, 5
//
// Each can be read alone. Together they are read as one recording, up to the first that is missing.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_PARTS_H_
#define GMT_FORMAT_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"
#include "format/messages_fwd.h"

namespace gmt::format {

// Where part `number` of the recording at `path` lies once it is no longer the newest.
std::string PartPath(std::string_view path, uint32_t number);

// Whether `header` is that of the part behind the one that `before` begins.
bool IsNextPart(const Header& before, const Header& header);

// The header that a source begins with; empty where it does not.
Header FirstHeader(ByteSource* source);

// The file at `path`, behind those of its older parts that lie beside it without a hole. Fails as
// OpenFile() does for `path` itself.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenWithParts(absl::string_view path);

}  // namespace gmt::format

#endif  // GMT_FORMAT_PARTS_H_
