#include "format/tail_reader.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "format/definitions_builder.h"
#include "format/parts.h"
#include "format/testing/parts_fixture.h"
#include "format/testing/recording_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::format {
namespace {

class TailReaderTest : public RecordingFixture {
 protected:
  TailReaderTest() {
    char directory[] = "/tmp/gmt-tail-XXXXXX";
    directory_ = mkdtemp(directory);
  }
  ~TailReaderTest() override { std::filesystem::remove_all(directory_); }

  std::string Path() const { return directory_ + "/run.gmt"; }

  // Extends the file to the first `size` bytes of a recording.
  void Write(const std::string& bytes, size_t size) {
    const size_t has = std::filesystem::exists(Path()) ? std::filesystem::file_size(Path()) : 0;
    std::ofstream out(Path(), std::ios::binary | std::ios::app);
    out.write(bytes.data() + has, static_cast<std::streamsize>(size - has));
  }
  void Open() {
    auto tail = TailReader::Open(Path());
    ASSERT_TRUE(tail.ok()) << tail.status();
    tail_ = *std::move(tail);
    followed_ = {};
  }
  absl::Status ReadMore() { return tail_->ReadMore(followed_); }

  // Returns a recording of many small chunks with definitions, snapshots and names between them.
  std::string RandomRecording(std::mt19937& random) {
    bytes_.clear();
    now_ = 0;
    StartRecording();
    std::vector<uint64_t> held;
    for (int n = 0; n < 400; ++n) {
      if (!held.empty() && random() % 3 == 0) {
        const size_t at = random() % held.size();
        Add(Free(held[at]));
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        Event event = Alloc(0x1000 + 0x100 * static_cast<uint64_t>(n), 64 + random() % 1000);
        FrameInfo frame;
        frame.function = writer_->definitions().InternString("f" + std::to_string(random() % 40));
        DefinitionsBuilder& definitions = writer_->definitions();
        event.stack = definitions.InternStack(std::vector{definitions.InternFrame(frame)}, 0);
        Add(event);
        held.push_back(event.address);
      }
      if (random() % 7 == 0) Flush();
    }
    Finish();
    return bytes_;
  }

  void ExpectSameAs(const Collected& whole) {
    ASSERT_EQ(followed_.events.size(), whole.events.size());
    for (size_t i = 0; i < whole.events.size(); ++i) {
      ASSERT_EQ(followed_.events[i].kind, whole.events[i].kind) << i;
      ASSERT_EQ(followed_.events[i].t_ns, whole.events[i].t_ns) << i;
      ASSERT_EQ(followed_.events[i].address, whole.events[i].address) << i;
      ASSERT_EQ(followed_.events[i].size, whole.events[i].size) << i;
      ASSERT_EQ(followed_.events[i].stack, whole.events[i].stack) << i;
    }
    EXPECT_EQ(followed_.headers.size(), whole.headers.size());
    EXPECT_EQ(followed_.facts.size(), whole.facts.size());
    EXPECT_EQ(followed_.gaps.size(), whole.gaps.size());
    const Definitions& a = tail_->definitions();
    const Definitions& b = reader_->definitions();
    ASSERT_EQ(a.string_count(), b.string_count());
    ASSERT_EQ(a.stack_count(), b.stack_count());
    for (uint32_t id = 1; id <= a.string_count(); ++id) EXPECT_EQ(a.string(id), b.string(id));
    for (uint32_t id = 1; id <= a.stack_count(); ++id) EXPECT_EQ(a.stack(id), b.stack(id));
  }

  std::string directory_;
  std::unique_ptr<TailReader> tail_;
  Collected followed_;
};

TEST_F(TailReaderTest, FileThatGrowsRandomlyIsReadLikeTheFinalFile) {
  ForEachSeed(SeedsUpTo(20), [&](uint32_t seed) {
    std::mt19937 random(seed);
    const std::string bytes = RandomRecording(random);
    std::filesystem::remove(Path());
    Write(bytes, std::min<size_t>(bytes.size(), random() % 200));
    Open();
    for (size_t size = std::filesystem::file_size(Path()); size < bytes.size();) {
      size = std::min(bytes.size(), size + 1 + random() % (seed % 2 == 0 ? 60 : 4000));
      Write(bytes, size);
      ASSERT_TRUE(ReadMore().ok());
      ASSERT_LE(tail_->bytes_taken(), size);
      ASSERT_TRUE(size == bytes.size() || !tail_->complete());
    }
    EXPECT_TRUE(tail_->complete());
    EXPECT_TRUE(tail_->damage().empty());
    ExpectSameAs(Read(bytes));
  });
}

TEST_F(TailReaderTest, UnchangedFileDeliversNothing) {
  const std::string bytes = SmallRecording(3);
  Write(bytes, SizeAfterWrites(writes_.size() - 2));
  Open();
  ASSERT_TRUE(ReadMore().ok());
  const size_t events = followed_.events.size();
  EXPECT_GT(events, 0u);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ReadMore().ok());
  EXPECT_EQ(followed_.events.size(), events);
  EXPECT_EQ(followed_.headers.size(), 1u);
}

TEST_F(TailReaderTest, DamageIsSkippedWhenACompleteChunkFollows) {
  std::string bytes = SmallRecording(6);
  const size_t begin = SizeAfterWrites(3), end = SizeAfterWrites(4);
  bytes[(begin + end) / 2] ^= 0x55;
  Write(bytes, end);
  Open();
  ASSERT_TRUE(ReadMore().ok());
  EXPECT_TRUE(tail_->damage().empty()) << "it may be partially written";
  Write(bytes, bytes.size());
  ASSERT_TRUE(ReadMore().ok());
  EXPECT_FALSE(tail_->complete());
  const Collected whole = Read(bytes);
  ASSERT_EQ(tail_->damage().size(), reader_->damage().size());
  ExpectSameAs(whole);
}

TEST_F(TailReaderTest, TruncatedFileIsAnError) {
  const std::string bytes = SmallRecording(5);
  Write(bytes, bytes.size());
  Open();
  ASSERT_TRUE(ReadMore().ok());
  std::filesystem::resize_file(Path(), SizeAfterWrites(2));
  EXPECT_TRUE(absl::IsDataLoss(ReadMore())) << ReadMore();
}

TEST_F(TailReaderTest, MissingFileIsReportedAndReadAgainWhenItIsBack) {
  const std::string bytes = SmallRecording(5);
  Write(bytes, SizeAfterWrites(3));
  Open();
  ASSERT_TRUE(ReadMore().ok());
  std::filesystem::rename(Path(), Path() + ".away");
  EXPECT_TRUE(absl::IsNotFound(ReadMore())) << ReadMore();
  std::filesystem::rename(Path() + ".away", Path());
  Write(bytes, bytes.size());
  ASSERT_TRUE(ReadMore().ok());
  ExpectSameAs(Read(bytes));
}

TEST_F(TailReaderTest, AnotherRecordingWithTheSameNameIsAnError) {
  const std::string bytes = SmallRecording(5);
  Write(bytes, bytes.size());
  Open();
  ASSERT_TRUE(ReadMore().ok());
  std::filesystem::remove(Path());
  std::ofstream(Path(), std::ios::binary) << bytes;
  EXPECT_TRUE(absl::IsDataLoss(ReadMore())) << ReadMore();
}

class TailOfPartsTest : public TailReaderTest {
 protected:
  void Begin() {
    WriterOptions options;
    options.parts = true;
    auto writer = RecordingWriter::Create(NewFile(Path()), PartHeader(0), options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  // Like the collector: the next part does not get its final name before it can be read.
  void NextPart() {
    const std::string next = Path() + ".next";
    ASSERT_TRUE(writer_->BeginPart(NewFile(next), PartHeader(part_ + 1)).ok());
    std::filesystem::create_hard_link(Path(), PartPath(Path(), part_));
    std::filesystem::rename(next, Path());
    ++part_;
  }
  Collected ReadAll() {
    Collected all;
    auto reader = RecordingReader::Open(Path());
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
    EXPECT_TRUE(reader_->Read(all).ok());
    return all;
  }

  uint32_t part_ = 0;
};

TEST_F(TailOfPartsTest, PartsThatChangeBetweenReadsAreOneRecording) {
  ForEachSeed({1}, [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
    part_ = 0;
    now_ = 0;
    Begin();
    Open();
    for (uint64_t n = 0; n < 500; ++n) {
      Add(Alloc(0x1000 + 0x100 * n, 64));
      if (n > 20 && random() % 2 == 0) Add(Free(0x1000 + 0x100 * (n - 20)));
      if (random() % 10 == 0) Flush();
      if (random() % 25 == 0) NextPart();
      ASSERT_TRUE(random() % 20 != 0 || ReadMore().ok());
    }
    Finish();
    ASSERT_TRUE(ReadMore().ok());
    ASSERT_GT(part_, 3u);
    EXPECT_TRUE(tail_->complete());
    ExpectSameAs(ReadAll());
  });
}

TEST_F(TailOfPartsTest, OlderPartsAreReadFirst) {
  Begin();
  Add(Alloc(0x100, 8));
  NextPart();
  Add(Alloc(0x200, 8));
  Flush();
  Open();
  ASSERT_TRUE(ReadMore().ok());
  EXPECT_EQ(followed_.events.size(), 2u);
}

TEST_F(TailOfPartsTest, PartDeletedDuringReadingIsReadToItsEnd) {
  Begin();
  Add(Alloc(0x100, 8));
  Flush();
  Open();
  ASSERT_TRUE(ReadMore().ok());
  Add(Alloc(0x200, 8));
  NextPart();
  std::filesystem::remove(PartPath(Path(), 0));
  Add(Alloc(0x300, 8));
  Flush();
  ASSERT_TRUE(ReadMore().ok());
  EXPECT_EQ(followed_.events.size(), 3u);
}

TEST_F(TailOfPartsTest, MissedPartIsReported) {
  Begin();
  Add(Alloc(0x100, 8));
  Flush();
  Open();
  ASSERT_TRUE(ReadMore().ok());
  NextPart();
  Add(Alloc(0x200, 8));
  NextPart();
  std::filesystem::remove(PartPath(Path(), 1));
  EXPECT_TRUE(absl::IsDataLoss(ReadMore())) << ReadMore();
}

}  // namespace
}  // namespace gmt::format
