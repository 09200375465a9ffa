#include "session/options.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::session {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OptionsTest : public testing::Test {
 protected:
  void Parse(std::string_view text) {
    errors_.clear();
    ParseOptions(
        text, &options_,
        [](void* self, const OptionError& e) {
          static_cast<OptionsTest*>(self)->errors_.push_back(std::string(e.pair) + ": " + e.why);
        },
        this);
  }

  Options options_;
  std::vector<std::string> errors_;
};

TEST_F(OptionsTest, EmptyTextKeepsTheDefaults) {
  Parse("");
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_STREQ(options_.output, "gpumemtrace.%h.%p.gmt");
  EXPECT_TRUE(options_.follow_fork);
}

TEST_F(OptionsTest, PairsAndFlagsAreTakenInOrder) {
  Parse("output=/tmp/a.gmt,quiet,ring=1MiB,exit_wait=250ms,follow_fork=off");
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_STREQ(options_.output, "/tmp/a.gmt");
  EXPECT_TRUE(options_.quiet);
  EXPECT_EQ(options_.ring_bytes, 1u << 20);
  EXPECT_EQ(options_.exit_wait_ns, 250000000u);
  EXPECT_FALSE(options_.follow_fork);
}

TEST_F(OptionsTest, ListItemsAreSeparatedByPlus) {
  Parse("heap=driver+host,snapshot=oom");
  EXPECT_EQ(options_.heaps, kDriverHeap | kHostHeap);
  EXPECT_TRUE(options_.snapshot_at_oom);
  EXPECT_FALSE(options_.snapshot_at_exit);
}

TEST_F(OptionsTest, WhatToStripIsAList) {
  Parse("strip=paths");
  EXPECT_TRUE(options_.strip_paths);
  EXPECT_FALSE(options_.strip_args);
  Parse("strip=args+paths");
  EXPECT_TRUE(options_.strip_args);
  Parse("strip=host");
  EXPECT_THAT(errors_, ElementsAre("strip=host: not one of paths, args"));
}

TEST_F(OptionsTest, UnknownOptionIsReportedAndTheOthersApply) {
  Parse("colour=red,quiet");
  EXPECT_THAT(errors_, ElementsAre("colour=red: unknown option"));
  EXPECT_TRUE(options_.quiet);
}

TEST_F(OptionsTest, HistoryIsBoundedBySizeAgeAndNumberOfFiles) {
  EXPECT_EQ(options_.max_bytes + options_.max_ns + options_.parts, 0u);
  Parse("max_size=1GiB,max_time=24h,rotate=4");
  EXPECT_EQ(options_.max_bytes, uint64_t{1} << 30);
  EXPECT_EQ(options_.max_ns, 86400000000000u);
  EXPECT_EQ(options_.parts, 4u);
  Parse("max_size=1MiB,max_time=10ms,rotate=1,rotate=1001");
  EXPECT_THAT(errors_, ElementsAre("max_size=1MiB: not a size of at least 16MiB",
                                   "max_time=10ms: not a time of at least 1s, such as 24h",
                                   "rotate=1: not a number from 2 to 1000",
                                   "rotate=1001: not a number from 2 to 1000"));
}

TEST_F(OptionsTest, SnapshotsAreTakenByTimeAndByGrowth) {
  Parse("snapshot=every:10m+growth:1GiB");
  EXPECT_EQ(options_.snapshot_every_ns, 600'000'000'000u);
  EXPECT_EQ(options_.snapshot_growth_bytes, 1u << 30);
  EXPECT_FALSE(options_.snapshot_at_oom);
  EXPECT_FALSE(options_.snapshot_at_exit);
  Parse("snapshot=mark:epoch+oom");
  EXPECT_TRUE(options_.snapshot_at_marks);
  EXPECT_STREQ(options_.snapshot_mark, "epoch");
  Parse("snapshot=mark");
  EXPECT_TRUE(options_.snapshot_at_marks);
  EXPECT_STREQ(options_.snapshot_mark, "");
  Parse("snapshot=oom+exit");
  EXPECT_FALSE(options_.snapshot_at_marks);
  EXPECT_EQ(options_.snapshot_every_ns, 0u);
  EXPECT_TRUE(options_.snapshot_at_oom);
}

TEST_F(OptionsTest, TooFrequentSnapshotsAreRejected) {
  Parse("snapshot=every:1ms,snapshot=growth:1KiB,snapshot=oom:1,snapshot=every");
  EXPECT_THAT(errors_, testing::SizeIs(4));
  EXPECT_EQ(options_.snapshot_every_ns, 0u);
}

TEST_F(OptionsTest, ListenAddressIsNotValidated) {
  Parse("listen=127.0.0.1:9400");
  EXPECT_STREQ(options_.listen, "127.0.0.1:9400");
  Parse("listen=" + std::string(300, 'x'));
  EXPECT_THAT(errors_,
              ElementsAre("listen=" + std::string(300, 'x') + ": the address is too long"));
}

TEST_F(OptionsTest, CuptiIsOneOfThree) {
  EXPECT_EQ(options_.cupti, Cupti::kAuto);
  Parse("cupti=full");
  EXPECT_EQ(options_.cupti, Cupti::kFull);
  Parse("cupti=off");
  EXPECT_EQ(options_.cupti, Cupti::kOff);
  Parse("cupti=yes");
  EXPECT_EQ(options_.cupti, Cupti::kOff);
  EXPECT_THAT(errors_, ElementsAre("cupti=yes: not one of auto, full, off"));
}

TEST_F(OptionsTest, StacksSelectTheUnwinder) {
  Parse("stacks=native:libgcc");
  EXPECT_EQ(options_.native_stacks, Unwinder::kLibgcc);
  EXPECT_FALSE(options_.python_stacks);
  Parse("stacks=python");
  EXPECT_EQ(options_.native_stacks, Unwinder::kNone);
  EXPECT_TRUE(options_.python_stacks);
  Parse("stacks=native+python");
  EXPECT_EQ(options_.native_stacks, Unwinder::kBest);
  EXPECT_TRUE(options_.python_stacks);
  Parse("stacks=native:libgcc+python");
  EXPECT_TRUE(options_.python_stacks);
  Parse("stacks=none");
  EXPECT_FALSE(options_.python_stacks);
  Parse("stacks=native:libunwind+python");
  EXPECT_EQ(options_.native_stacks, Unwinder::kNone);
  EXPECT_EQ(errors_.size(), 1u);
  errors_.clear();
  EXPECT_EQ(options_.native_stacks, Unwinder::kNone);
  Parse("stacks=perl");
  EXPECT_EQ(errors_.size(), 1u);
}

TEST_F(OptionsTest, RingMustBeAPowerOfTwo) {
  Parse("ring=3MiB");
  EXPECT_EQ(errors_.size(), 1u);
  EXPECT_EQ(options_.ring_bytes, 16u << 20);
}

TEST_F(OptionsTest, PathThatDoesNotFitIsRejected) {
  Parse("output=" + std::string(2000, 'x'));
  EXPECT_EQ(errors_.size(), 1u);
}

TEST(ParseSizeTest, KnowsBinaryUnits) {
  uint64_t bytes;
  EXPECT_TRUE(ParseSize("4096", &bytes));
  EXPECT_EQ(bytes, 4096u);
  EXPECT_TRUE(ParseSize("2GiB", &bytes));
  EXPECT_EQ(bytes, uint64_t{2} << 30);
  EXPECT_FALSE(ParseSize("", &bytes));
  EXPECT_FALSE(ParseSize("2 GB", &bytes));
  EXPECT_FALSE(ParseSize("99999999999999999999", &bytes));
  EXPECT_FALSE(ParseSize("99999999999TiB", &bytes));
}

TEST(ParseDurationTest, KnowsUnits) {
  uint64_t ns;
  EXPECT_TRUE(ParseDuration("10m", &ns));
  EXPECT_EQ(ns, 600000000000u);
  EXPECT_FALSE(ParseDuration("10", &ns));
}

}  // namespace
}  // namespace gmt::session
