#include "collector/sessions/session_drain.h"

#include <gtest/gtest.h>

#include "collector/testing/fake_target.h"

namespace gmt::collector {
namespace {

using Outcome = SessionDrain::Outcome;
using Loss = session::RingReader::Loss;

class SessionDrainTest : public ::testing::Test {
 protected:
  Outcome Next(TargetState state = TargetState::kRunning) {
    return drain_.Next(state, &record_, &ticket_, &lost_);
  }

  FakeTarget target_;
  FakeClock clock_;
  SessionDrain drain_{target_.map(), &clock_};
  session::Record record_;
  uint64_t ticket_ = 0;
  session::RingReader::Lost lost_ = {};
};

TEST_F(SessionDrainTest, RunningProcessIsWaitedFor) {
  clock_.now_ns = 1;
  target_.DieInTheMiddle();
  EXPECT_EQ(Next(), Outcome::kPending);
  clock_.now_ns += 100 * kSecond;
  EXPECT_EQ(Next(), Outcome::kPending);
}

TEST_F(SessionDrainTest, HoleIsGivenUpAfterASecondAndHalfALap) {
  clock_.now_ns = 1;
  target_.DieInTheMiddle();
  for (int i = 0; i < 600; ++i) target_.Alloc(0x1000, 1);
  EXPECT_EQ(Next(), Outcome::kPending);
  clock_.now_ns += kSecond;
  EXPECT_EQ(Next(), Outcome::kLost);
  EXPECT_EQ(lost_.why, Loss::kHole);
  EXPECT_EQ(Next(), Outcome::kRecord);
}

TEST_F(SessionDrainTest, HolesOfOneMomentAreGivenUpTogether) {
  clock_.now_ns = 1;
  for (int i = 0; i < 100; ++i) target_.DieInTheMiddle();
  for (int i = 0; i < 800; ++i) target_.Alloc(0x1000, 1);
  EXPECT_EQ(Next(), Outcome::kPending);
  clock_.now_ns += kSecond;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Next(), Outcome::kLost);
  EXPECT_EQ(Next(), Outcome::kRecord);
}

TEST_F(SessionDrainTest, NewHoleIsWaitedForAgain) {
  clock_.now_ns = 1;
  target_.DieInTheMiddle();
  for (int i = 0; i < 512; ++i) target_.Alloc(0x1000, 1);
  EXPECT_EQ(Next(), Outcome::kPending);
  clock_.now_ns += kSecond;
  EXPECT_EQ(Next(), Outcome::kLost);
  while (Next() == Outcome::kRecord) {
  }
  target_.DieInTheMiddle();
  for (int i = 0; i < 600; ++i) target_.Alloc(0x1000, 1);
  EXPECT_EQ(Next(), Outcome::kPending);
}

TEST_F(SessionDrainTest, DeadProcessIsNotWaitedFor) {
  target_.DieInTheMiddle();
  EXPECT_EQ(Next(TargetState::kDead), Outcome::kLost);
  EXPECT_EQ(Next(TargetState::kDead), Outcome::kEmpty);
  EXPECT_FALSE(drain_.TakeDisturbed());
}

TEST_F(SessionDrainTest, EndingProcessGetsAShortGracePeriod) {
  clock_.now_ns = 1;
  target_.DieInTheMiddle();
  EXPECT_EQ(Next(TargetState::kEnding), Outcome::kPending);
  clock_.now_ns += 100 * kMillisecond;
  EXPECT_EQ(Next(TargetState::kEnding), Outcome::kLost);
}

TEST_F(SessionDrainTest, LateCommitIsADisturbance) {
  clock_.now_ns = 1;
  const session::RingWriter ring = target_.map().ring_writer();
  const auto late = ring.Reserve();
  for (int i = 0; i < 600; ++i) target_.Alloc(0x1000, 1);
  Next();
  clock_.now_ns += kSecond;
  ASSERT_EQ(Next(), Outcome::kLost);
  EXPECT_FALSE(drain_.TakeDisturbed());
  session::Record record;
  record.kind = session::Kind::kAlloc;
  ring.Commit(late, session::Pack(record));
  EXPECT_TRUE(drain_.TakeDisturbed());
  EXPECT_FALSE(drain_.TakeDisturbed());
}

TEST_F(SessionDrainTest, AbandonedTicketIsADisturbance) {
  const session::RingWriter ring = target_.map().ring_writer();
  ring.Reserve();
  for (int i = 0; i < 1023; ++i) target_.Alloc(0x1000, 1);
  target_.Alloc(0x2000, 1);  // finds the slot of ticket 0 taken
  EXPECT_TRUE(drain_.TakeDisturbed());
  EXPECT_FALSE(drain_.TakeDisturbed());
}

}  // namespace
}  // namespace gmt::collector
