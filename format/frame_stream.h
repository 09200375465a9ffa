// format/frame_stream.h
//
// FrameStream: iterates over the frames of a recording front to back, whatever state the file is
// in.
//
// An invalid frame is damage if a valid record follows it; the stream continues at that record,
// which it finds by its sync word. It is a cut if no valid record follows and it could be the
// beginning of a frame: the writer died or is still writing. If the source grows, nothing after
// the last valid frame is judged; it is examined again together with later data.
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
      body;  // of header, chunk, index: the message without its checksum; valid until Next()
  uint64_t index_offset = 0;  // for a footer
  const char* what = "";      // for damage: "CRC32C", "length", "tag", "magic", "footer"
};

// Whether the source may get more data at its end.
enum class Tail { kFinal, kGrows };

class FrameStream {
 public:
  // `source` must outlive the stream.
  explicit FrameStream(ByteSource* source, Tail tail = Tail::kFinal)
      : source_(source), tail_(tail) {}

  // Fails only if reading fails. kEnd comes last: its offset is the end of the valid records, its
  // bytes are what follows them (0, or a torn tail). For a growing source, kEnd is returned
  // whenever the end is reached, and the next call continues there.
  absl::StatusOr<FrameRecord> Next();
  // Returns where the next frame begins.
  uint64_t position() const { return position_; }
  // Continues at `position`, where a frame begins.
  void SkipTo(uint64_t position) { position_ = position; }

 private:
  struct Attempt {
    FrameRecord record;       // a valid record, or one of kind kDamage
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
  std::string frame_;   // holds the body of the record
  std::string window_;  // for searches
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_FRAME_STREAM_H_
