// format/frame_stream.h
//
// FrameStream: the frames of a recording front to back, whatever state the file is in.
//
// A frame that does not check is damage where something whole follows it (the stream goes on there,
// found by sync word), and a cut where nothing does and it could be the beginning of a frame: the
// writer died, or is still writing. Of a source that grows nothing behind the last whole frame is
// judged: it is looked at again with what has come behind it.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_FRAME_STREAM_H_
#define GMT_FORMAT_FRAME_STREAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "format/byte_source.h"
#include "format/framing.h"

namespace gmt::format {

struct FrameRecord {
  enum class Kind { kMagic, kHeader, kChunk, kIndex, kFooter, kDamage, kEnd };
  Kind kind = Kind::kEnd;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  std::string_view
      body;  // of header, chunk, index: the message but its checksum; valid until Next()
  uint64_t index_offset = 0;  // of a footer
  const char* what = "";      // of damage: "CRC32C", "length", "tag", "magic", "footer"
};

// Whether more may come behind what a source has now.
enum class Tail { kFinal, kGrows };

class FrameStream {
 public:
  // `source` must outlive the stream.
  explicit FrameStream(ByteSource* source, Tail tail = Tail::kFinal)
      : source_(source), tail_(tail) {}

  // Fails only where reading fails. kEnd comes last: its offset is where whole records end, its
  // bytes what is behind them (0, or a torn tail). Of a source that grows it comes as often as it is
  // asked for at that place, and goes on there.
  absl::StatusOr<FrameRecord> Next();

 private:
  struct Attempt {
    FrameRecord record;       // of a whole record; else kind is kDamage
    bool may_be_cut = false;  // it ends where the file ends
  };
  absl::StatusOr<Attempt> TryAt(uint64_t offset);
  absl::StatusOr<Attempt> TryFrame(uint64_t offset, const FramePrefix& prefix);
  absl::StatusOr<std::optional<uint64_t>> FindWholeAfter(uint64_t offset);
  absl::StatusOr<std::optional<uint64_t>> WholeAround(uint64_t sync_offset, uint64_t not_before);
  absl::StatusOr<bool> OnlyZerosFrom(uint64_t offset);

  ByteSource* const source_;
  const Tail tail_;
  uint64_t position_ = 0;
  std::string frame_;   // holds the record's body
  std::string window_;  // of searches
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_FRAME_STREAM_H_
