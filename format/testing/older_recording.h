// format/testing/older_recording.h
//
// For tests: a recording as a writer wrote it that did not count the events of its chunks
// (format/event_counts.h).

#ifndef GMT_FORMAT_TESTING_OLDER_RECORDING_H_
#define GMT_FORMAT_TESTING_OLDER_RECORDING_H_

#include <gtest/gtest.h>

#include <string>

#include "format/byte_source.h"
#include "format/frame_stream.h"
#include "format/framing.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// REQUIRES: `bytes` has one segment and no damage. If its index is missing, so is that of the
// result.
inline std::string WithoutCounts(const std::string& bytes) {
  const auto source = BytesInMemory(bytes);
  FrameStream frames(source.get());
  std::string older(kFileMagic);
  gmt::Index index;
  for (;;) {
    const auto record = frames.Next();
    EXPECT_TRUE(record.ok()) << record.status();
    switch (record->kind) {
      case FrameRecord::Kind::kHeader:
        older += Frame(FrameTag::kHeader, record->body);
        break;
      case FrameRecord::Kind::kChunk: {
        Chunk chunk;
        EXPECT_TRUE(ParseBytes(record->body, &chunk));
        chunk.clear_counts();
        chunk.clear_crc32c();
        index.add_entry()->set_offset(older.size());
        older += Frame(FrameTag::kChunk, chunk.SerializeAsString());
        break;
      }
      case FrameRecord::Kind::kIndex: {
        index.set_sync(SyncWord(kIndexSync));
        const uint64_t offset = older.size();
        older += Frame(FrameTag::kIndex, index.SerializeAsString()) + Footer(offset);
        break;
      }
      case FrameRecord::Kind::kDamage:
        ADD_FAILURE() << record->what;
        return older;
      case FrameRecord::Kind::kEnd:
        return older;
      default:
        break;
    }
  }
}

}  // namespace gmt::format

#endif  // GMT_FORMAT_TESTING_OLDER_RECORDING_H_
