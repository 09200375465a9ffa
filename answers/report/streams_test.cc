#include "answers/report/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analysis/report/report.h"
#include "analysis/testing/event_script.h"
#include "answers/report/report_text.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kStream = 0xa000, kOther = 0xb000, kPlace = 0x10000000;

class ReportStreamsTest : public ::testing::Test {
 protected:
  analysis::Report Report() {
    const analysis::Trace trace = script_.Build();
    return analysis::MakeReport(analysis::Examination(trace, script_.definitions()), {}).value();
  }
  std::string Text() { return ReportText(Report(), {}, 10, FramesShown::kFolded, Terminal{}); }
  nlohmann::ordered_json Json() {
    return nlohmann::ordered_json::parse(ReportJson(Report(), {"a.gmt"}, 10));
  }
  // 4 MiB, freed at 3 ms, known to be done at 5 ms.
  void HoldForTwoMilliseconds() {
    script_.NewStream(kStream);
    script_.NameStream(kStream, "copy");
    script_.AllocAsync(kPlace, 4 * kMiB, kStream, {"load", "train"});
    script_.FreeAsync(kPlace, kStream);
    script_.AllocAsync(2 * kPlace, 2 * kMiB, kStream, {"load", "train"});
    script_.SyncStream(kStream);
  }
  void CuptiSaw(uint64_t address, uint64_t size, int64_t t_ms) {
    script_.Witness("alloc", address, size).t_ns = t_ms * analysis::EventScript::kStep_ns;
  }

  analysis::EventScript script_;
};

TEST_F(ReportStreamsTest, NoSectionIfNothingIsRelevant) {
  script_.Alloc(kPlace, 512);
  script_.SyncDevice();
  EXPECT_THAT(Text(), Not(HasSubstr("Streams")));
  EXPECT_TRUE(Json()["cross_check"].is_null());
  EXPECT_THAT(Json()["streams"]["held"], IsEmpty());
}

TEST_F(ReportStreamsTest, FirstLineHasWhatPendingWorkHeld) {
  HoldForTwoMilliseconds();
  EXPECT_THAT(Text(), HasSubstr("\nStreams\n"
                                "GPU 0: pending work held 1 freed piece of driver (4.00 MiB) for "
                                "2.00 ms on average, 2.00 ms at most; 8.00 MiB ms, up to 4.00 MiB "
                                "at a time (at 4.00 ms)\n"
                                "  without it the peak of driver would be 4.00 MiB instead of "
                                "6.00 MiB\n"));
}

TEST_F(ReportStreamsTest, RowsNameStackAndStream) {
  HoldForTwoMilliseconds();
  EXPECT_THAT(Text(), HasSubstr("8.00 MiB ms       1 driver  load (load.py:10)   stack/"));
  EXPECT_THAT(Text(), HasSubstr(", stream 0xa000 \"copy\"\n"));
}

TEST_F(ReportStreamsTest, JsonHasWhatPendingWorkHeld) {
  HoldForTwoMilliseconds();
  const auto streams = Json()["streams"];
  const auto& heap = streams["held"][0];
  EXPECT_EQ(heap["heap"], "driver");
  EXPECT_EQ(heap["frees"], 1);
  EXPECT_EQ(heap["bytes"], 4 * kMiB);
  EXPECT_DOUBLE_EQ(heap["byte_seconds"], 4.0 * kMiB * 0.002);
  EXPECT_EQ(heap["longest_ns"], 2'000'000);
  EXPECT_EQ(heap["peak_live_bytes"], 4 * kMiB);
  EXPECT_EQ(heap["peak_occupied_bytes"], 6 * kMiB);
  EXPECT_EQ(streams["held_rows"][0]["stream"], kStream);
  EXPECT_EQ(streams["streams"][0]["name"], "copy");
  EXPECT_EQ(streams["streams"][0]["priority"], 0);
  EXPECT_EQ(streams["streams"][0]["blocking"], false);
  EXPECT_EQ(streams["streams"][0]["syncs"], 1);
}

TEST_F(ReportStreamsTest, FreesWithoutProofAreUnknown) {
  script_.AllocAsync(kPlace, kMiB, kStream);
  script_.FreeAsync(kPlace, kStream);
  EXPECT_THAT(Text(),
              HasSubstr("GPU 0: it is unknown how long pending work held 1 freed piece of driver "
                        "(1.00 MiB)\n"));
}

TEST_F(ReportStreamsTest, FreeMemoryOfASideStreamIsPrinted) {
  const auto block = [&](uint64_t address, uint64_t stream) {
    format::Event& event = script_.Block(address, kMiB);
    event.present |= format::kHasStream;
    event.stream = stream;
  };
  script_.Alloc(kPlace, 20 * kMiB);
  block(kPlace, 0);
  script_.Alloc(2 * kPlace, 10 * kMiB);
  block(2 * kPlace, kOther);
  EXPECT_THAT(Text(), HasSubstr("GPU 0: 9.00 MiB of 10.0 MiB reserved for stream 0xb000 is free "
                                "but unusable by other streams\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("reserved for stream 0x0")));
}

TEST_F(ReportStreamsTest, RelevantHostTimeIsPrintedByPlace) {
  format::Event& sync = script_.Took(script_.SyncStream(kStream, {"step", "train"}), 900'000);
  script_.Api(sync, "cudaStreamSynchronize");
  script_.Alloc(kPlace, 512);
  EXPECT_THAT(Text(), HasSubstr("the host waited 900 us in 1 synchronisation\n"));
  EXPECT_THAT(Text(), HasSubstr("900 us       1 cudaStreamSynchronize at step (step.py:10)\n"));
}

TEST_F(ReportStreamsTest, CallsWithoutStacksHaveNoPlace) {
  script_.Api(script_.Took(script_.Alloc(kPlace, 512), 900'000), "cudaMalloc");
  EXPECT_THAT(Text(), HasSubstr("900 us       1 cudaMalloc, without stacks\n"));
}

TEST_F(ReportStreamsTest, IrrelevantHostTimeIsNotPrinted) {
  script_.Took(script_.SyncStream(kStream), 900);
  script_.Alloc(kPlace, 512);
  EXPECT_THAT(Text(), Not(HasSubstr("the host waited")));
  EXPECT_EQ(Json()["streams"]["host"][0]["total_ns"], 900);
}

TEST_F(ReportStreamsTest, AllocationCallsIncludeTheirWaitingTime) {
  format::Event& inner = script_.Took(script_.SyncDevice(), 400'000);
  inner.flags = format::kInsideCall;
  inner.present |= format::kHasFlags;
  script_.Api(script_.Took(script_.Alloc(kPlace, 512, {"load"}), 1'500'000), "cudaMalloc");
  EXPECT_THAT(Text(), HasSubstr("the driver's allocation calls took 1.50 ms (1 call); 400 us of it "
                                "waiting for the device, 1 time\n"));
}

TEST_F(ReportStreamsTest, AgreementWithCuptiIsPrinted) {
  script_.Alloc(kPlace, 512, {"load"});
  CuptiSaw(kPlace, 512, 1);
  EXPECT_THAT(Text(), HasSubstr("CUPTI saw the same 1 allocation and 0 frees\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("Not known")));
}

TEST_F(ReportStreamsTest, EventsSeenOnlyByCuptiAreDoubts) {
  script_.Alloc(kPlace, 512);
  CuptiSaw(kPlace, 512, 1);
  CuptiSaw(2 * kPlace, kMiB, 2);
  EXPECT_THAT(CrossCheckDoubts(Report().streams.cross_check),
              ElementsAre("1 allocation or free seen only by CUPTI: memory may be missing here",
                          "only CUPTI saw: allocation of 1.00 MiB at 0x20000000, 2.00 ms"));
  const auto check = Json()["cross_check"];
  EXPECT_EQ(check["only_cupti"], 1);
  EXPECT_EQ(check["first"][0]["seen_by"], "cupti");
  EXPECT_EQ(check["first"][0]["size"], kMiB);
}

}  // namespace
}  // namespace gmt::answers
