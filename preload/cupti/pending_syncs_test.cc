#include "preload/cupti/pending_syncs.h"

#include <memory>

#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

using session::Action;

class PendingSyncsTest : public testing::Test {
 protected:
  static session::Record Sync(Action action, uint64_t stream, uint64_t end_ns, uint32_t thread) {
    session::Record r;
    r.kind = session::Kind::kSync;
    r.action = action;
    r.stream = stream;
    r.time_ns = end_ns;
    r.thread = thread;
    return r;
  }
  // Returns the thread of the entry taken; 0: none.
  uint32_t Take(Action action, uint64_t stream, uint64_t end_ns) {
    session::Record r;
    return syncs_->Take(action, stream, end_ns, &r) ? r.thread : 0;
  }

  const std::unique_ptr<PendingSyncs> syncs_ = std::make_unique<PendingSyncs>();
};

TEST_F(PendingSyncsTest, RecordWithoutACallbackMatchesNothing) {
  EXPECT_EQ(Take(Action::kStream, 0x10, 1000), 0u);
}

TEST_F(PendingSyncsTest, RecordMatchesTheCallbackAtItsEnd) {
  syncs_->Add(Sync(Action::kStream, 0x10, 1000000000, 1));
  EXPECT_EQ(Take(Action::kStream, 0x10, 1000000000 - 2000), 1u);
  EXPECT_EQ(Take(Action::kStream, 0x10, 1000000000 - 2000), 0u) << "taken twice";
}

TEST_F(PendingSyncsTest, WaitsForOtherObjectsAreNotTaken) {
  syncs_->Add(Sync(Action::kStream, 0x10, 1000, 1));
  EXPECT_EQ(Take(Action::kStream, 0x20, 1000), 0u);
  EXPECT_EQ(Take(Action::kDevice, 0, 1000), 0u);
}

TEST_F(PendingSyncsTest, WaitThatEndedAtAnotherTimeIsNotTaken) {
  syncs_->Add(Sync(Action::kStream, 0x10, 1000000000, 1));
  EXPECT_EQ(Take(Action::kStream, 0x10, 1000000000 + 2 * PendingSyncs::kToleranceNs), 0u);
}

TEST_F(PendingSyncsTest, TakesTheNearestOfSeveral) {
  syncs_->Add(Sync(Action::kStream, 0x10, 1000000, 1));
  syncs_->Add(Sync(Action::kStream, 0x10, 1100000, 2));
  syncs_->Add(Sync(Action::kStream, 0x10, 1200000, 3));
  EXPECT_EQ(Take(Action::kStream, 0x10, 1090000), 2u);
  EXPECT_EQ(Take(Action::kStream, 0x10, 1190000), 3u);
  EXPECT_EQ(Take(Action::kStream, 0x10, 990000), 1u);
}

TEST_F(PendingSyncsTest, CallbackWithoutARecordIsFoundByItsAge) {
  syncs_->Add(Sync(Action::kStream, 0x10, 1000, 1));
  syncs_->Add(Sync(Action::kStream, 0x10, 3000, 2));
  session::Record r;
  ASSERT_TRUE(syncs_->TakeOlder(2000, &r));
  EXPECT_EQ(r.thread, 1u);
  EXPECT_FALSE(syncs_->TakeOlder(2000, &r));
}

TEST_F(PendingSyncsTest, FullTableRefusesMore) {
  uint32_t added = 0;
  while (added < 2 * PendingSyncs::kCapacity && syncs_->Add(Sync(Action::kDevice, 0, 1000, 1)))
    ++added;
  EXPECT_EQ(added, PendingSyncs::kCapacity);
  session::Record r;
  ASSERT_TRUE(syncs_->TakeOlder(~uint64_t{0}, &r));
  for (uint32_t i = 0; i < PendingSyncs::kCapacity; ++i)
    syncs_->Add(Sync(Action::kDevice, 0, 1000, 1));
  while (syncs_->TakeOlder(~uint64_t{0}, &r)) --added;
  EXPECT_EQ(added, 0u);
}

}  // namespace
}  // namespace gmt::preload
