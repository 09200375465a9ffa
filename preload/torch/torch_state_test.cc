#include "preload/torch/state/torch_state.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

class TorchStateTest : public testing::Test {
 protected:
  const std::unique_ptr<TorchState> state_ = std::make_unique<TorchState>();  // all zero
};

TEST_F(TorchStateTest, ThreadBeginsEachRecordingWithoutWhatItNotedForTheLast) {
  TorchThread* const before = state_->threads.Here();
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(state_->threads.IfThere(), before);
  const int node = 0;
  KnownLayouts* const layouts = state_->layouts.Take();
  before->layouts = layouts;
  before->tensor_layout = 3;
  before->save_count = 1;
  before->node = &node;
  before->releases.Begin();
  const uint64_t released_ns = before->releases.Now();
  before->is_accumulating = true;

  state_->Forget();
  EXPECT_EQ(state_->threads.IfThere(), nullptr);
  TorchThread* const after = state_->threads.Here();
  ASSERT_EQ(after, before) << "the table has one slot for each thread";
  EXPECT_EQ(state_->threads.IfThere(), after);
  EXPECT_EQ(after->tensor_layout, 0u);
  EXPECT_EQ(after->save_count, 0u);
  EXPECT_EQ(after->node, nullptr);
  while (NowNs() == released_ns) continue;
  EXPECT_GT(after->releases.Now(), released_ns) << "the time of an earlier release";
  EXPECT_FALSE(after->is_accumulating);
  EXPECT_EQ(after->layouts, layouts) << "they are never returned to the pool";
}

TEST_F(TorchStateTest, SlotThatAnotherThreadHadInAnEarlierRecordingIsNotTaken) {
  TorchThread* here = nullptr;
  TorchThread* there = nullptr;
  here = state_->threads.Here();
  state_->Forget();
  std::thread([&] { there = state_->threads.Here(); }).join();
  ASSERT_NE(here, nullptr);
  ASSERT_NE(there, nullptr);
  EXPECT_NE(there, here);
  EXPECT_EQ(state_->threads.Here(), here);
}

}  // namespace
}  // namespace gmt::preload
