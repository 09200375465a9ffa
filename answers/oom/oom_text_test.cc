#include "answers/oom/oom_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/testing/event_script.h"
#include "answers/oom/oom_answer.h"
#include "format/units.h"

namespace gmt::answers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint64_t kTotal = 1024 * kMiB;
constexpr uint64_t kBlockAddress = 0x10000000;

class OomTextTest : public ::testing::Test {
 protected:
  std::string Text() { return OomAnswer(*Recorded()).Text(Terminal{}); }
  nlohmann::json Json() { return nlohmann::json::parse(OomAnswer(*Recorded()).Json()); }
  std::unique_ptr<Recording> Recorded() {
    return RecordingSoFar("run.gmt", script_.Build(), script_.definitions());
  }
  void DriverReports(uint64_t driver_free) {
    gmt::Sample& sample = script_.Sample(kTotal - driver_free, kTotal);
    sample.set_source("cudaMemGetInfo");
    sample.set_free_bytes(driver_free);
  }
  void GiveUp(uint64_t bytes, uint64_t driver_free) {
    script_.Failed(bytes).result = 2;
    script_.Failed(bytes).result = 2;
    DriverReports(driver_free);
    script_.FailedBlock(bytes, {"request", "main"});
  }
  // A device with nine blocks, each in a segment with free pieces around it.
  void Fragmented(uint64_t asked = 150 * kMiB) {
    DriverReports(kTotal);
    for (uint64_t i = 0; i < 9; ++i) {
      script_.Alloc(kBlockAddress + i * 200 * kMiB, 100 * kMiB);
      script_.Block(kBlockAddress + i * 200 * kMiB + 40 * kMiB, 10 * kMiB, {"metric", "main"});
    }
    GiveUp(asked, 124 * kMiB);
  }
  static void ExpectFits(const std::string& text) {
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 25) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
  analysis::EventScript script_;
};

TEST_F(OomTextTest, WithoutAHistoryFailuresAreUnknown) {
  EXPECT_THAT(Text(),
              StartsWith("Unknown whether memory ran out: the recording has no allocations\n"));
  EXPECT_EQ(Json()["verdict"], "unknown");
  script_.Free(kBlockAddress, kMiB);
  EXPECT_THAT(Text(), HasSubstr("no allocations, only what was held before\n"));
}

TEST_F(OomTextTest, WithoutAFailureItSaysSo) {
  script_.Alloc(kBlockAddress, kMiB);
  EXPECT_THAT(Text(), StartsWith("Did not run out of memory: no GPU allocation failed\n"));
  EXPECT_EQ(Json()["verdict"], "none");
  EXPECT_EQ(Json()["requested_bytes"], nullptr);
}

TEST_F(OomTextTest, WithMissingEventsItSaysThatAFailureMayBeAmongThem) {
  script_.Alloc(kBlockAddress, kMiB);
  script_.Gap(5);
  EXPECT_THAT(Text(), HasSubstr("no GPU allocation failed\nevents are missing: a failure may be "
                                "among them\nNext: "));
  EXPECT_EQ(Json()["confidence"], "low");
  EXPECT_EQ(Json()["findings"].size(), 1u);
}

TEST_F(OomTextTest, FreeDriverMemoryCountsIfTheRequestNeedsIt) {
  Fragmented(900 * kMiB);
  EXPECT_THAT(Text(), StartsWith("Out of memory (fragmentation): 934 MiB are free in total, "
                                 "largest piece "));
}

TEST_F(OomTextTest, SuccessfulRetriesAreReported) {
  script_.Alloc(kBlockAddress, 512 * kMiB);
  script_.Block(kBlockAddress, 512 * kMiB);
  script_.FreeBlock(kBlockAddress);
  script_.Failed(700 * kMiB).result = 2;
  script_.Free(kBlockAddress);
  script_.Alloc(kBlockAddress * 8, 700 * kMiB);
  script_.Block(kBlockAddress * 8, 700 * kMiB);
  EXPECT_THAT(Text(), StartsWith("Did not run out of memory: 1 retry at "));
}

TEST_F(OomTextTest, FragmentationHasFreePiecesPinsAndActions) {
  Fragmented();
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("Out of memory (fragmentation): 810 MiB are free, largest piece "
                               "50.0 MiB; 150 MiB requested\n"));
  EXPECT_THAT(text, HasSubstr("confidence high; GPU 0"));
  EXPECT_THAT(text, HasSubstr("request: request (request.py:10)"));
  EXPECT_THAT(text, HasSubstr("9 blocks of 90.0 MiB in total pin 810 MiB of it"));
  EXPECT_THAT(text, HasSubstr("expandable_segments:True"));
  EXPECT_THAT(text, HasSubstr("Next: gpumemtrace frag run.gmt --at oom"));
  ExpectFits(text);
}

TEST_F(OomTextTest, StepThatNeedsTooMuchIsComparedWithEarlierSteps) {
  DriverReports(kTotal);
  script_.Alloc(kBlockAddress, 700 * kMiB);
  script_.Block(kBlockAddress + 600 * kMiB, 50 * kMiB, {"make", "main"});
  for (uint64_t step = 0; step < 4; ++step) {
    script_.Mark("step", step);
    script_.Block(kBlockAddress, 100 * kMiB, {"forward", "main"});
    script_.Block(kBlockAddress + 100 * kMiB, 100 * kMiB, {"loss", "main"});
    script_.FreeBlock(kBlockAddress + 100 * kMiB);
    script_.FreeBlock(kBlockAddress);
  }
  script_.Mark("step", 4);
  script_.Failed(600 * kMiB).result = 2;
  script_.Failed(600 * kMiB).result = 2;
  DriverReports(124 * kMiB);
  script_.FailedBlock(600 * kMiB, {"forward", "main"});
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("Out of memory (capacity): this step needs about 1.22 GiB, "));
  EXPECT_THAT(text, HasSubstr("this step: about 1.22 GiB with 6 times the input (4 before it: up "
                              "to 250 MiB), 824 MiB available\n"));
  ExpectFits(text);
}

TEST_F(OomTextTest, LimitShowsWhatIsFree) {
  DriverReports(kTotal);
  script_.Alloc(kBlockAddress, 300 * kMiB);
  script_.Block(kBlockAddress, 300 * kMiB);
  DriverReports(724 * kMiB);
  script_.FailedBlock(100 * kMiB, {"request", "main"});
  EXPECT_THAT(Text(), StartsWith("Out of memory (a limit): "));
  EXPECT_THAT(Text(), HasSubstr("724 MiB"));
  EXPECT_THAT(Text(), HasSubstr("raise the limit"));
}

TEST_F(OomTextTest, DeviceOfUnknownSizeIsNotSaidToHaveNone) {
  gmt::Sample& sample = script_.Sample(700 * kMiB, 0);
  sample.set_source("nvml");
  const std::pair<uint64_t, uint64_t> uses[] = {{12, 0}, {77, 700 * kMiB}};
  for (const auto& [pid, bytes] : uses) {
    auto* process = sample.add_processes();
    process->set_pid(pid);
    process->set_bytes(bytes);
  }
  script_.pid = 12;
  script_.Alloc(kBlockAddress, 300 * kMiB);
  script_.Block(kBlockAddress, 300 * kMiB);
  script_.Failed(200 * kMiB).result = 2;
  script_.Failed(200 * kMiB).result = 2;
  script_.FailedBlock(200 * kMiB, {"request", "main"});
  EXPECT_THAT(Text(), StartsWith("Out of memory (other processes): other processes hold 700 MiB; "
                                 "200 MiB requested\n"));
}

TEST_F(OomTextTest, RequestOfALibraryIsComparedWithTheDriversFreeMemory) {
  DriverReports(kTotal);
  script_.Alloc(kBlockAddress, 900 * kMiB);
  script_.Block(kBlockAddress, 885 * kMiB);
  DriverReports(124 * kMiB);
  script_.Failed(130 * kMiB, {"cublasCreate_v2", "main"}).result = 2;
  EXPECT_THAT(
      Text(),
      StartsWith("Out of memory (capacity): the driver has 124 MiB free; 130 MiB requested\n"));
}

TEST_F(OomTextTest, CacheOfTheFrameworkIsNotForLibraries) {
  DriverReports(kTotal);
  script_.Alloc(kBlockAddress, 900 * kMiB);
  script_.Block(kBlockAddress, 500 * kMiB);
  DriverReports(124 * kMiB);
  script_.Failed(256 * kMiB, {"cublasCreate_v2", "main"}).result = 2;
  const std::string text = Text();
  EXPECT_THAT(
      text, StartsWith("Out of memory (private pools): a framework's cache holds 400 MiB that the "
                       "driver cannot use; 256 MiB requested\n"));
  EXPECT_THAT(text, Not(HasSubstr("elements")));
}

TEST_F(OomTextTest, RequestedTensorIsNamed) {
  DriverReports(kTotal);
  script_.Alloc(kBlockAddress, 900 * kMiB, {"load", "main"});
  DriverReports(124 * kMiB);
  script_.Tensor(script_.FailedBlock(256 * kMiB, {"request", "main"}), "float32",
                 "[1, 8192, 8192]");
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("request: request (request.py:10)   stack/3\n"
                              "         a float32 tensor of [1, 8192, 8192]\n"));
  EXPECT_EQ(Json()["dtype"], "float32");
  EXPECT_EQ(Json()["shape"], "[1, 8192, 8192]");
  ExpectFits(text);
}

TEST_F(OomTextTest, RowsOfTheDeviceAddUp) {
  Fragmented();
  const nlohmann::json json = Json();
  const auto& evidence = json["evidence"];
  int64_t sum = 0;
  for (const char* part : {"live", "free", "outside", "other_processes", "not_apart", "system",
                           "unexplained", "driver_free"}) {
    sum += evidence[std::string(part) + "_bytes"].get<int64_t>();
  }
  EXPECT_EQ(sum, evidence["total_bytes"].get<int64_t>());
  uint64_t split = 0;
  for (const auto& [name, bytes] : evidence["split"].items()) split += bytes.get<uint64_t>();
  EXPECT_EQ(evidence["free_bytes"], split);
  EXPECT_EQ(json["actions"][0]["enough"], true);
}

TEST_F(OomTextTest, DriverAloneHasNoSegments) {
  DriverReports(kTotal);
  script_.Alloc(kBlockAddress, 900 * kMiB, {"load", "main"});
  script_.Failed(300 * kMiB, {"load", "main"}).result = 2;
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("Out of memory (capacity): 900 MiB of 1.00 GiB are in use; 300 MiB "
                               "requested"));
  EXPECT_THAT(text, HasSubstr("allocated by this process"));
  ExpectFits(text);
}

}  // namespace
}  // namespace gmt::answers
