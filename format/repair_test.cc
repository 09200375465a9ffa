#include "format/repair.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "format/definitions_builder.h"
#include "format/testing/recording_fixture.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class RepairTest : public RecordingFixture {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  // Returns the repaired bytes of `broken`, or "" if nothing could be recovered.
  std::string Repair(const std::string& broken) {
    std::ofstream(path_, std::ios::binary) << broken;
    std::string mended;
    std::vector<size_t> writes;
    const absl::StatusOr<Repaired> result =
        RepairRecording(path_, std::make_unique<StringSink>(&mended, &writes));
    status_ = result.status();
    if (result.ok()) result_ = *result;
    return result.ok() ? mended : "";
  }

  // Repairs and reads. The result must be complete.
  Collected ReadMended(const std::string& broken) {
    const Collected read = Read(Repair(broken));
    EXPECT_TRUE(status_.ok()) << status_;
    EXPECT_TRUE(reader_->complete());
    EXPECT_THAT(reader_->damage(), IsEmpty());
    return read;
  }

  const std::string path_ =
      std::filesystem::temp_directory_path() / ("gmt_repair." + std::to_string(getpid()));
  absl::Status status_;
  Repaired result_;
};

TEST_F(RepairTest, CompleteFileIsUnchanged) {
  const std::string whole = SmallRecording(3);
  EXPECT_EQ(ReadMended(whole).events.size(), 6u);
  EXPECT_EQ(result_.chunks, 4u);
  EXPECT_EQ(result_.gaps, 0u);
  EXPECT_EQ(result_.bytes_lost, 0u);
}

TEST_F(RepairTest, CutFileGetsAnEnd) {
  const std::string whole = SmallRecording(3);
  EXPECT_THAT(ReadMended(whole.substr(0, SizeAfterWrites(4) + 10)).events, SizeIs(4));
  EXPECT_EQ(result_.bytes_lost, 10u);
}

TEST_F(RepairTest, DamagedChunkBecomesAGapEvent) {
  std::string bytes = SmallRecording(3);
  bytes[SizeAfterWrites(3) + 30] ^= 1;
  const Collected read = ReadMended(bytes);
  ASSERT_THAT(read.events, SizeIs(5));
  EXPECT_EQ(read.events[2].kind, GAP);
  EXPECT_EQ(read.gaps.at(0).reason(), "damage");
  EXPECT_EQ(result_.gaps, 1u);
}

TEST_F(RepairTest, FreesAfterTheGapStillFindTheirAllocations) {
  StartRecording();
  Add(Alloc(0x1000, 512));
  Flush();
  Add(Alloc(0x2000, 512));
  Flush();
  Add(Free(0x1000));
  Finish();
  bytes_[SizeAfterWrites(3) + 30] ^= 1;
  EXPECT_EQ(ReadMended(bytes_).events.at(2).address, 0x1000u);
}

TEST_F(RepairTest, LostHeaderIsReplaced) {
  std::string bytes = SmallRecording(2);
  bytes[20] ^= 1;
  EXPECT_THAT(ReadMended(bytes).headers, SizeIs(1));
}

TEST_F(RepairTest, JoinedFilesStayTwoSegments) {
  SmallRecording(1);
  const std::string cut = bytes_.substr(0, bytes_.size() - 7);
  bytes_.clear();
  const std::string second = SmallRecording(1);
  EXPECT_THAT(ReadMended(cut + second).headers, SizeIs(2));
}

TEST_F(RepairTest, EveryCutThatLeavesAChunkIsRepaired) {
  const std::string whole = SmallRecording(2);
  for (size_t cut = SizeAfterWrites(2); cut < whole.size(); ++cut) ReadMended(whole.substr(0, cut));
}

TEST_F(RepairTest, CompleteFileIsReportedAsComplete) {
  ReadMended(SmallRecording(3));
  EXPECT_TRUE(result_.was_whole());
  EXPECT_EQ(result_.segments, 1u);
}

TEST_F(RepairTest, LossIsDescribedWithItsPlaceAndTime) {
  std::string bytes = SmallRecording(3);
  bytes[SizeAfterWrites(3) + 30] ^= 1;
  ReadMended(bytes);
  ASSERT_THAT(result_.lost, SizeIs(1));
  const RepairLoss& loss = result_.lost[0];
  EXPECT_EQ(loss.offset, SizeAfterWrites(3));
  EXPECT_EQ(loss.bytes, SizeAfterWrites(4) - SizeAfterWrites(3));
  EXPECT_EQ(loss.what, "CRC32C");
  EXPECT_LE(loss.from_t_ns, loss.to_t_ns);
  EXPECT_EQ(result_.ends_made, 0u);
  EXPECT_FALSE(result_.was_whole());
}

TEST_F(RepairTest, MissingChunkIsAGapToo) {
  const std::string whole = SmallRecording(3);
  ReadMended(whole.substr(0, SizeAfterWrites(3)) + whole.substr(SizeAfterWrites(4)));
  ASSERT_THAT(result_.lost, SizeIs(1));
  EXPECT_EQ(result_.lost[0].what, "missing chunks");
  EXPECT_EQ(result_.lost[0].bytes, 0u);
}

TEST_F(RepairTest, LostFooterIsRebuiltAndNothingElseIsLost) {
  const std::string whole = SmallRecording(2);
  EXPECT_EQ(Repair(whole.substr(0, whole.size() - 19)), whole);
  EXPECT_EQ(result_.ends_made, 1u);
  EXPECT_EQ(result_.bytes_lost, 0u);
}

TEST_F(RepairTest, DamagedIndexIsRebuilt) {
  const std::string whole = SmallRecording(2);
  std::string bytes = whole;
  bytes[bytes.size() - 25] ^= 1;  // the footer has 19 bytes
  EXPECT_THAT(ReadMended(bytes).events, SizeIs(4));
  EXPECT_EQ(result_.ends_made, 1u);
}

TEST_F(RepairTest, GarbageAfterTheEndIsDroppedAndNotCountedAsLost) {
  const std::string whole = SmallRecording(2);
  EXPECT_EQ(Repair(whole + "some garbage that a tool appended"), whole);
  EXPECT_EQ(result_.bytes_behind, 33u);
  EXPECT_EQ(result_.bytes_lost, 0u);
  EXPECT_EQ(result_.gaps, 0u);
}

TEST_F(RepairTest, DamageBetweenTwoJoinedFilesBelongsToTheSecond) {
  SmallRecording(2);
  const std::string first = bytes_;
  bytes_.clear();
  std::string second = SmallRecording(1);
  second[2] ^= 1;
  second[25] ^= 1;  // magic and header
  ReadMended(first + second);
  EXPECT_EQ(result_.segments, 2u);
  EXPECT_EQ(result_.headers_made, 1u);
  ASSERT_THAT(result_.lost, SizeIs(1));
  EXPECT_EQ(result_.lost[0].offset, first.size());
}

TEST_F(RepairTest, EveryFlippedByteIsRepairedOrLeavesNothing) {
  const std::string whole = SmallRecording(2);
  for (size_t at = 0; at < whole.size(); ++at) {
    SCOPED_TRACE(at);
    std::string bytes = whole;
    bytes[at] ^= 0x10;
    ReadMended(bytes);
    EXPECT_FALSE(result_.was_whole());
  }
}

TEST_F(RepairTest, NothingToRecoverIsAnError) {
  EXPECT_EQ(Repair("no recording at all"), "");
  EXPECT_EQ(status_.code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace gmt::format
