// Tests what the writer counts and leaves out. tests/e2e/memory_viz checks that real readers accept
// the file.

#include "interop/torch/torch_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::interop {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kReserved = uint64_t{1} << 40;

class TorchSnapshotTest : public ::testing::Test {
 protected:
  TorchSnapshotSummary Write() {
    analysis::Trace trace = script_.Build();
    trace.settings = settings_;
    trace.libraries = libraries_;
    std::ostringstream out;
    const StackFrames frames = [&](uint32_t stack) {
      return analysis::DescribeStack(script_.definitions(), stack);
    };
    const TorchSnapshotSummary summary =
        WriteTorchSnapshot(trace, script_.definitions(), frames, selection_, out);
    bytes_ = out.str();
    return summary;
  }

  analysis::EventScript script_;
  std::vector<analysis::NamedText> settings_, libraries_;
  TorchSelection selection_;
  std::string bytes_;
};

TEST_F(TorchSnapshotTest, RawAllocationIsASegmentWithOneBlock) {
  script_.Alloc(kReserved, kMiB, {"load"});
  TorchSnapshotSummary summary = Write();
  EXPECT_EQ(summary.events, 2u);  // segment_alloc, alloc
  EXPECT_EQ(summary.segments, 1u);
  EXPECT_EQ(summary.blocks, 1u);
  script_.Free(kReserved);
  summary = Write();
  EXPECT_EQ(summary.events, 5u);  // and free_requested, free_completed, segment_free
  EXPECT_EQ(summary.segments, 0u);
}

TEST_F(TorchSnapshotTest, SettingsAreThoseThatTheReleaseRead) {
  script_.Block(kReserved, kMiB);
  settings_ = {{"PYTORCH_ALLOC_CONF", "max_split_size_mb:77"}};
  libraries_ = {{"torch", "2.10.0"}};
  Write();
  EXPECT_THAT(bytes_, HasSubstr("max_split_size_mb:77"));
  libraries_ = {{"torch", "2.9.1"}};
  Write();
  EXPECT_THAT(bytes_, Not(HasSubstr("max_split_size_mb:77")));
}

TEST_F(TorchSnapshotTest, ExpandableSegmentsAreMappedAndUnmapped) {
  script_.Create(7, 2 * kMiB);
  script_.Map(kReserved, 2 * kMiB, 7);
  script_.Block(kReserved, kMiB);
  script_.FreeBlock(kReserved);
  script_.Unmap(kReserved, 2 * kMiB);
  script_.Release(7);
  EXPECT_EQ(Write().events, 5u);  // map, alloc, free_requested, free_completed, unmap
  EXPECT_THAT(bytes_, HasSubstr("segment_unmap"));
}

TEST_F(TorchSnapshotTest, FailedAllocationIsAnOomEvent) {
  script_.Failed(kMiB, {"forward"});
  EXPECT_EQ(Write().events, 1u);
  EXPECT_THAT(bytes_, HasSubstr("device_free"));
}

TEST_F(TorchSnapshotTest, CountsWhatTheFormatCannotRepresent) {
  script_.Pinned(0x1000, 512);
  script_.Create(7, 2 * kMiB);
  script_.Create(8, 2 * kMiB);
  script_.Map(kReserved, 2 * kMiB, 8);
  const TorchSnapshotSummary summary = Write();
  EXPECT_EQ(summary.host_bytes_left_out, 512u);
  EXPECT_EQ(summary.unmapped_bytes_left_out, 2 * kMiB);
}

TEST_F(TorchSnapshotTest, FramesOfStacksAreWrittenOnce) {
  for (uint64_t i = 0; i < 1000; ++i) script_.Alloc(kReserved + i * kMiB, kMiB, {"load", "main"});
  Write();
  const size_t first = bytes_.find("/src/main.py");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(bytes_.find("/src/main.py", first + 1), std::string::npos);
  EXPECT_LT(bytes_.size() / 3000, 120u) << "bytes per event and block";
}

TEST_F(TorchSnapshotTest, MetadataOfABlockDescribesItsTensor) {
  format::Event& block = script_.Block(kReserved, kMiB);
  block.dtype = script_.builder().InternString("float32");
  block.shape = script_.builder().InternString("[500, 500]");
  format::Event role = block;
  role.kind = ROLE;
  for (const uint32_t roles : {format::kRoleSaved, format::kRoleParameter}) {
    role.roles = roles;
    script_.events().push_back(role);
  }
  Write();
  EXPECT_THAT(bytes_, HasSubstr("float32 [500, 500] parameter saved"));
}

TEST_F(TorchSnapshotTest, NameGivenByTheProgramIsTheMetadata) {
  format::Event& block = script_.Block(kReserved, kMiB);
  block.dtype = script_.builder().InternString("float32");
  block.name = script_.builder().InternString("weights");
  Write();
  EXPECT_THAT(bytes_, HasSubstr("weights"));
  EXPECT_THAT(bytes_, Not(HasSubstr("float32")));
}

TEST_F(TorchSnapshotTest, RequestedBytesOfABlockAreWritten) {
  format::Event& block = script_.Block(kReserved, kMiB);
  block.present |= format::kHasRequested;
  block.requested = 0x0ABCDE;
  Write();
  // The trace entry, the segment and its block have it.
  const std::string number("J\xDE\xBC\x0A\0", 5);
  int found = 0;
  for (size_t at = bytes_.find(number); at != std::string::npos; at = bytes_.find(number, at + 1))
    ++found;
  EXPECT_EQ(found, 3);
}

TEST_F(TorchSnapshotTest, EmptyRecordingIsAnEmptySnapshot) {
  const TorchSnapshotSummary summary = Write();
  EXPECT_EQ(summary.events + summary.segments, 0u);
  EXPECT_EQ(bytes_.back(), '.');
}

}  // namespace
}  // namespace gmt::interop
