// Malicious files: decompression bombs, false claims, and thousands of random mutations of a good
// file.

#include <gmock/gmock.h>
#include <zstd.h>

#include <random>

#include "format/chunk_codec.h"
#include "format/definitions_builder.h"
#include "format/event_encoder.h"
#include "format/framing.h"
#include "format/testing/random_events.h"
#include "format/testing/recording_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class HostileTest : public RecordingFixture {
 protected:
  // Returns a file whose only chunk is `chunk`, with a correct checksum.
  std::string FileWith(Chunk chunk) {
    chunk.set_sync(SyncWord(kChunkSync));
    return std::string(kFileMagic) + Frame(FrameTag::kHeader, "") +
           Frame(FrameTag::kChunk, chunk.SerializeAsString());
  }
  std::string WhatIsWrong(const Chunk& chunk) {
    Read(FileWith(chunk));
    return reader_->damage().empty() ? "" : reader_->damage()[0].what;
  }
  static std::string Compressed(const std::string& raw) {
    std::string packed(ZSTD_compressBound(raw.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 3));
    return packed;
  }
};

TEST_F(HostileTest, PayloadAboveTheChunkLimitIsRejected) {
  Chunk chunk;
  chunk.set_codec(Chunk::ZSTD);
  chunk.set_payload(Compressed(std::string(kMaxBodyBytes + 1, 'x')));
  chunk.set_raw_size(static_cast<uint32_t>(kMaxBodyBytes + 1));
  EXPECT_EQ(WhatIsWrong(chunk), "size");
}

TEST_F(HostileTest, PayloadLargerThanStatedIsRejected) {
  Chunk chunk;
  chunk.set_codec(Chunk::ZSTD);
  chunk.set_payload(Compressed(std::string(1 << 20, 'x')));
  chunk.set_raw_size(10);
  EXPECT_EQ(WhatIsWrong(chunk), "size");
}

TEST_F(HostileTest, PayloadThatIsNotZstdIsRejected) {
  Chunk chunk;
  chunk.set_codec(Chunk::ZSTD);
  chunk.set_payload("not a frame");
  chunk.set_raw_size(10);
  EXPECT_EQ(WhatIsWrong(chunk), "size");
}

TEST_F(HostileTest, PayloadThatIsNotABodyIsRejected) {
  Chunk chunk;
  chunk.set_codec(Chunk::ZSTD);
  chunk.set_payload(Compressed("\xFF\xFF\xFF\xFF"));
  chunk.set_raw_size(4);
  EXPECT_EQ(WhatIsWrong(chunk), "body");
}

TEST_F(HostileTest, UnknownCodecIsRejected) {
  Chunk chunk;
  chunk.set_codec(static_cast<Chunk::Codec>(9));
  EXPECT_EQ(WhatIsWrong(chunk), "codec");
}

TEST_F(HostileTest, UnknownKindOfChunkIsSkipped) {
  Chunk chunk;
  chunk.set_kind(static_cast<Chunk::Kind>(99));
  EXPECT_EQ(WhatIsWrong(chunk), "");
  EXPECT_THAT(reader_->damage(), IsEmpty());
}

TEST_F(HostileTest, LengthOfExabytesIsDamage) {
  std::string bytes = SmallRecording(1);
  bytes.insert(SizeAfterWrites(2), "\x1A\xFF\xFF\xFF\xFF\x7F");
  EXPECT_THAT(Read(bytes).events, SizeIs(3));
  EXPECT_EQ(reader_->damage().at(0).what, "length");
}

TEST_F(HostileTest, UnknownFieldOfTheFileIsDamage) {
  std::string bytes = SmallRecording(1);
  bytes.insert(SizeAfterWrites(2), std::string("\x3A\x03xyz", 5));
  EXPECT_THAT(Read(bytes).events, SizeIs(3));
  EXPECT_EQ(reader_->damage().at(0).what, "tag");
}

TEST_F(HostileTest, RepeatedSyncWordsDoNotHideTheNextChunk) {
  std::string bytes = SmallRecording(1);
  std::string noise;
  for (int n = 0; n < 1000; ++n) noise += "\x1A\x7F\x09GMTCHUNK";
  bytes.insert(SizeAfterWrites(2), noise);
  EXPECT_THAT(Read(bytes).events, SizeIs(3));
}

// A short version of what libFuzzer does, in every run.
TEST_F(HostileTest, ThousandsOfMutationsNeverCrash) {
  ForEachSeed({1}, [&](uint32_t seed) {
    bytes_.clear();
    now_ = 0;
    StartRecording();
    RandomEvents random_events(seed);
    EventBatch batch;
    for (int n = 0; n < 400; ++n) random_events.AddTo(&batch, 20);
    for (uint32_t id = 1; id <= 20; ++id) {
      writer_->definitions().InternString("name" + std::to_string(id));
      FrameInfo frame;
      frame.function = id;
      writer_->definitions().InternFrame(frame);
      writer_->definitions().InternStack({id}, 0);
    }
    ASSERT_TRUE(writer_->Add(batch).ok());
    Finish();

    std::mt19937_64 random(seed);
    for (int round = 0; round < 5000; ++round) {
      std::string bytes = bytes_;
      for (uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
        const size_t at = random() % bytes.size();
        if (random() % 4 == 0) {
          bytes.erase(at, random() % 64);
        } else {
          bytes[at] = static_cast<char>(random());
        }
        if (bytes.empty()) break;
      }
      Read(bytes);
    }
  });
}

// The same with correct checksums: the columns themselves are malicious.
TEST_F(HostileTest, ThousandsOfMutatedBodiesNeverCrash) {
  ForEachSeed({1}, [&](uint32_t seed) {
    RandomEvents random_events(seed);
    EventBatch batch;
    for (int n = 0; n < 100; ++n) random_events.AddTo(&batch, 20);
    gmt::Body body;
    AcquisitionHistory history;
    *body.mutable_events() = EncodeEvents(batch, 0, &history);
    body.mutable_definitions()->add_strings("x");
    body.mutable_definitions()->mutable_stacks()->set_count(3);
    body.mutable_definitions()->mutable_stacks()->add_parent(2);
    const std::string good = body.SerializeAsString();

    std::mt19937_64 random(seed);
    for (int round = 0; round < 5000; ++round) {
      std::string raw = good;
      for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
        raw[random() % raw.size()] = static_cast<char>(random());
      }
      Chunk chunk;
      chunk.set_codec(Chunk::ZSTD);
      chunk.set_payload(Compressed(raw));
      chunk.set_raw_size(static_cast<uint32_t>(raw.size()));
      const Collected read = Read(FileWith(chunk));
      for (const Event& event : read.events) reader_->definitions().StackFrames(event.stack);
    }
  });
}

}  // namespace
}  // namespace gmt::format
