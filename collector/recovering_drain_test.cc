#include "collector/recovering_drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "collector/output/output_file.h"
#include "collector/sessions/session_info.h"
#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

class RecoveringDrainTest : public ::testing::Test {
 protected:
  RecoveringDrainTest() {
    const SessionInfo info = ReadSessionInfo(target_.map());
    auto writer = format::RecordingWriter::Create(
        std::make_unique<OutputFile>([this](const char* bytes, size_t size) {
          bytes_.append(bytes, size);
          return static_cast<ssize_t>(size);
        }),
        MakeHeader(target_.map().header(), info), {});
    EXPECT_TRUE(writer.ok()) << writer.status();
    recorder_ = std::make_unique<Recorder>(target_.map(), info, nullptr, *std::move(writer));
    drain_ = std::make_unique<RecoveringDrain>(RecoveringDrain::Dependencies{
        target_.map(), &clock_, recorder_.get(), [this] { return is_cut_; },
        [this](const session::Record& record, uint64_t ticket) {
          recorder_->Add(record, ticket);
          delivered_.push_back(ticket);
        },
        [this] { return target_.now_ns; }});
  }
  // Lets the writer overtake the reader. What it allocates is freed again, but for `address`.
  void Lap(uint64_t address) {
    target_.Alloc(address, 7);
    for (uint64_t i = 0; i < drain_->capacity(); ++i) {
      target_.Alloc(0x9000, 1);
      target_.Free(0x9000);
    }
  }
  Recording Finish() {
    EXPECT_TRUE(recorder_->Finish().ok());
    return ReadBack(bytes_);
  }

  FakeTarget target_;
  FakeClock clock_;
  bool is_cut_ = false;
  std::string bytes_;
  std::vector<uint64_t> delivered_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<RecoveringDrain> drain_;
};

TEST_F(RecoveringDrainTest, DeliversRecordsInOrder) {
  for (uint64_t i = 0; i < 10; ++i) target_.Alloc(0x1000 + i, 1);
  EXPECT_FALSE(drain_->DrainSome(TargetState::kRunning));
  EXPECT_EQ(delivered_.size(), 10u);
  EXPECT_TRUE(std::is_sorted(delivered_.begin(), delivered_.end()));
  EXPECT_EQ(drain_->exactness().inexact_because, "");
}

TEST_F(RecoveringDrainTest, LiveSetIsExactAgainAfterALoss) {
  target_.Alloc(0x1000, 5);
  EXPECT_FALSE(drain_->DrainSome(TargetState::kRunning));
  target_.Free(0x1000);
  Lap(0x2000);
  while (drain_->DrainSome(TargetState::kRunning) || drain_->recovering()) {
  }
  EXPECT_EQ(drain_->exactness().inexact_because, "");
  EXPECT_TRUE(std::is_sorted(delivered_.begin(), delivered_.end()));
  const Recording recording = Finish();
  EXPECT_EQ(recording.gaps.size(), 1u);
  EXPECT_EQ(recording.LiveByEvents(), (std::map<uint64_t, uint64_t>{{0x2000, 7}}));
}

TEST_F(RecoveringDrainTest, LiveTableOfACutSessionIsNotUsed) {
  target_.Alloc(0x1000, 5);
  Lap(0x2000);
  is_cut_ = true;
  EXPECT_FALSE(drain_->DrainSome(TargetState::kRunning));
  EXPECT_FALSE(drain_->recovering());
  EXPECT_EQ(drain_->exactness().inexact_because, "the session was truncated while it was read");
  const Recording recording = Finish();
  EXPECT_EQ(recording.gaps.size(), 1u);
  EXPECT_EQ(recording.LiveByEvents().count(0x2000), 0u) << "its allocation was lost";
}

}  // namespace
}  // namespace gmt::collector
