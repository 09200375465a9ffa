#include "collector/output/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collector/output/output_file.h"
#include "collector/testing/fake_target.h"
#include "format/chunk_codec.h"
#include "format/live_columns.h"

namespace gmt::collector {
namespace {

using session::Kind;
using session::Record;
using ::testing::ElementsAre;

// As a collector writes it: with the slots of the live model.
class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() : info_(ReadSessionInfo(target_.map())) {
    format::WriterOptions how;
    how.parts = how.slots = true;
    auto writer = format::RecordingWriter::Create(Sink(), Header(), how);
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = writer->get();
    recorder_ = std::make_unique<Recorder>(target_.map(), info_, nullptr, *std::move(writer));
  }

  std::unique_ptr<format::Sink> Sink() {
    return std::make_unique<OutputFile>([this](const char* bytes, size_t size) {
      bytes_.append(bytes, size);
      return static_cast<ssize_t>(size);
    });
  }
  gmt::Header Header() const { return MakeHeader(target_.map().header(), info_); }

  Record Make(Kind kind, uint64_t address, uint64_t size = 0) {
    Record record;
    record.kind = kind;
    record.space = session::Space::kDevice;
    record.memory = session::Memory::kDevice;
    record.time_ns = target_.now_ns += 1000;
    record.value = address;
    record.size = size;
    return record;
  }
  void Alloc(uint64_t address, uint8_t context = 1) {
    Record record = Make(Kind::kAlloc, address, 512);
    record.context = context;
    record.device = 1;
    Add(record);
  }
  void Reset(uint8_t context) {
    Record reset = Make(Kind::kContextReset, 0);
    reset.space = session::Space::kNone;
    reset.context = context;
    Add(reset);
  }
  void Add(const Record& record) { recorder_->Add(record, ++ticket_); }

  // Ends the recording. Returns the addresses of the allocations that the writer still keeps,
  // because later events may refer to them.
  std::vector<uint64_t> Finish() {
    EXPECT_TRUE(writer_->Add(gmt::Checkpoint()).ok());
    EXPECT_TRUE(recorder_->Finish().ok());
    read_ = ReadBack(bytes_);
    EXPECT_TRUE(read_.status.ok()) << read_.status;
    gmt::File file;
    EXPECT_TRUE(file.ParseFromString(bytes_));
    gmt::Body body;
    for (const gmt::Chunk& chunk : file.chunk()) {
      if (chunk.kind() != gmt::Chunk::CHECKPOINT) continue;
      EXPECT_TRUE(format::UnpackBody(chunk, &body).ok());
    }
    const auto kept = format::DecodeLive(body.checkpoint().acquired());
    std::vector<uint64_t> addresses;
    for (const format::Event& event : *kept) addresses.push_back(event.address);
    return addresses;
  }

  FakeTarget target_;
  const SessionInfo info_;
  std::string bytes_;
  format::RecordingWriter* writer_;  // belongs to recorder_
  std::unique_ptr<Recorder> recorder_;
  uint64_t ticket_ = 0;
  Recording read_;
};

TEST_F(RecorderTest, AllocationWhoseFreeWasLostIsForgotten) {
  Alloc(0x1000);
  Alloc(0x2000);
  const Place place = {session::Space::kDevice, 0x1000};
  Corrections corrections;
  corrections.ended.emplace_back(place, *recorder_->live().Find(place));
  recorder_->AddCorrections(corrections, target_.now_ns);
  Record done = Make(Kind::kFreeDone, 0x1000, 512);
  done.device = 1;
  Add(done);
  EXPECT_THAT(Finish(), ElementsAre(0x2000));
  ASSERT_EQ(read_.events.size(), 4u);
  EXPECT_EQ(read_.events[2].kind, gmt::FREE);
  EXPECT_EQ(read_.events[2].size, 512u);
  EXPECT_EQ(read_.events[3].kind, gmt::FREE_DONE);
  EXPECT_EQ(read_.events[3].address, 0x1000u);
  EXPECT_EQ(read_.events[3].device, 1u);
  EXPECT_EQ(read_.events[3].size, 512u);
}

TEST_F(RecorderTest, AllocationWhoseFreeHadNoResultIsForgottenWhenItsPlaceIsFreedAgain) {
  for (int i = 0; i < 2; ++i) {
    Alloc(0x1000);
    Add(Make(Kind::kFree, 0x1000));
  }
  Alloc(0x2000);
  EXPECT_THAT(Finish(), ElementsAre(0x1000, 0x2000));
}

TEST_F(RecorderTest, ResultOfAFreeHasWhatOnlyTheAllocationSays) {
  Alloc(0x1000);
  Alloc(0x2000);
  Add(Make(Kind::kFree, 0x1000));
  Add(Make(Kind::kFreeDone, 0x1000));
  EXPECT_THAT(Finish(), ElementsAre(0x2000));
  ASSERT_EQ(read_.events.size(), 4u);
  const format::Event& done = read_.events[3];
  EXPECT_EQ(done.kind, gmt::FREE_DONE);
  EXPECT_TRUE(done.has(format::kHasDevice));
  EXPECT_EQ(done.device, 1u);
  EXPECT_EQ(done.context, 1u);
  EXPECT_EQ(done.size, 512u);
}

TEST_F(RecorderTest, ResetOfAContextForgetsItsAllocationsOnly) {
  Alloc(0x1000, /*context=*/1);
  Alloc(0x2000, /*context=*/2);
  Reset(/*context=*/1);
  EXPECT_THAT(Finish(), ElementsAre(0x2000));
}

TEST_F(RecorderTest, ResetOfAContextDoesNotForgetWhatANewPartHasInTheSameSlot) {
  Alloc(0x1000, /*context=*/1);
  ASSERT_NE(recorder_->BeginPart(Sink(), Header(), {}, {}, {}), nullptr);
  Alloc(0x2000, /*context=*/2);
  Reset(/*context=*/1);
  EXPECT_THAT(Finish(), ElementsAre(0x2000));
}

}  // namespace
}  // namespace gmt::collector
