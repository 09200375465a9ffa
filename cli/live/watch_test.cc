#include "cli/live/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "format/units.h"

namespace gmt::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kMiB = 1 << 20;

class WatchTextTest : public ::testing::Test {
 protected:
  static gmt::LeakAnswer Answer(uint64_t cycles) {
    gmt::LeakAnswer answer;
    answer.mutable_cycles()->set_count(cycles);
    answer.mutable_cycles()->set_clear(true);
    answer.set_cycles_for_likely(100);
    answer.set_cycles_for_leak(200);
    answer.set_text("too early to tell");
    return answer;
  }
  static gmt::LeakAnswer Leak(uint64_t cycles) {
    gmt::LeakAnswer answer = Answer(cycles);
    answer.set_verdict(gmt::LeakAnswer::LEAK);
    answer.set_text("leak: 11.6 MiB per step on GPU 0 at server.py:88, 2.4 GiB so far");
    gmt::LeakSuspect* suspect = answer.add_suspects();
    suspect->set_id("leak/1");
    suspect->set_tier("leak");
    suspect->set_eta_ns(3 * 3600 * kSecond);
    return answer;
  }

  WatchTextTest() {
    options_.pid = 41210;
    options_.recording = "run.gmt";
  }

  WatchOptions options_;
};

TEST_F(WatchTextTest, FirstLineIsTheMemoryFromBeforeAttach) {
  gmt::LeakAnswer answer = Answer(3);
  gmt::LeakBefore* blocks = answer.add_before();
  blocks->set_heap("pytorch");
  blocks->set_bytes(3 * kMiB);
  blocks->set_blocks(3412);
  answer.add_before()->set_bytes(kMiB);
  WatchText text(options_);
  EXPECT_THAT(
      text.OnAnswer(answer, kSecond),
      StartsWith("before attach: 3.00 MiB in PyTorch's blocks (3,412 blocks), 1.00 MiB in other "
                 "memory of the device\n"));
  EXPECT_THAT(text.OnAnswer(answer, 2 * kSecond), IsEmpty());
}

TEST_F(WatchTextTest, WithoutATerminalALinePerMinuteAndOnChanges) {
  WatchText text(options_);
  EXPECT_THAT(text.OnAnswer(Answer(1), kSecond), HasSubstr("a verdict needs 100"));
  EXPECT_THAT(text.OnAnswer(Answer(2), 2 * kSecond), IsEmpty());
  EXPECT_THAT(text.OnAnswer(Answer(60), 61 * kSecond), HasSubstr("60 steps watched"));
  EXPECT_THAT(text.OnAnswer(Answer(61), 62 * kSecond), IsEmpty());
  const std::string leak = text.OnAnswer(Leak(200), 63 * kSecond);
  EXPECT_THAT(leak, HasSubstr("leak: 11.6 MiB per step on GPU 0 at server.py:88"));
  EXPECT_THAT(leak, HasSubstr("GPU 0 is full in about 3 h"));
  EXPECT_THAT(text.AtEnd(64 * kSecond), IsEmpty());
}

TEST_F(WatchTextTest, OnATerminalTheLineIsRewritten) {
  options_.terminal.is_terminal = true;
  WatchText text(options_);
  EXPECT_THAT(text.OnAnswer(Answer(1), kSecond), EndsWith("\n"));
  EXPECT_THAT(text.OnAnswer(Answer(2), 2 * kSecond), Not(EndsWith("\n")));
  EXPECT_THAT(text.OnAnswer(Answer(3), 3 * kSecond), StartsWith("\r"));
}

TEST_F(WatchTextTest, PrintsWhatIsMissingIfTooEarly) {
  WatchText text(options_);
  text.OnAnswer(Answer(40), 600 * kSecond);
  const std::string end = text.AtEnd(600 * kSecond);
  EXPECT_THAT(end, HasSubstr("40 of 100 steps: about 15 m"));
  EXPECT_THAT(end, HasSubstr("run: gpumemtrace attach 41210 --watch 27m"));
}

TEST_F(WatchTextTest, ReportsThatNoStepsWereFound) {
  WatchText text(options_);
  text.OnAnswer(Answer(0), 600 * kSecond);
  EXPECT_THAT(text.AtEnd(600 * kSecond), HasSubstr("No steps were found"));
}

TEST_F(WatchTextTest, JsonIsOneObjectPerLine) {
  options_.json = true;
  WatchText text(options_);
  const std::string line = text.OnAnswer(Leak(200), kSecond);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto answer = nlohmann::json::parse(line);
  EXPECT_EQ(answer["schema"], "gpumemtrace.watch/1");
  EXPECT_EQ(answer["verdict"], "leak");
  EXPECT_EQ(answer["cycles"]["count"], 200);
  EXPECT_EQ(answer["suspects"][0]["id"], "leak/1");
}

TEST_F(WatchTextTest, EndsWithTheProgramOrAfterItsTime) {
  options_.json = true;
  control::Reply reply;
  *reply.mutable_leaks() = Answer(1);
  int asked = 0;
  options_.stopped = [&] { return ++asked == 3; };
  const auto serve = [&](const std::function<bool(const control::Reply&)>& take) {
    while (take(reply)) {
    }
    return absl::OkStatus();
  };
  EXPECT_TRUE(Watch(options_, serve).ok());
  EXPECT_EQ(asked, 3);
  const auto gone = [](const auto&) { return absl::UnavailableError("the recording ended"); };
  EXPECT_TRUE(Watch(options_, gone).ok());
}

TEST_F(WatchTextTest, LinesOfSeveralProcessesHaveLabels) {
  EXPECT_EQ(WithLabel("", "a\nb\n"), "a\nb\n");
  EXPECT_EQ(WithLabel("4711 rank 1", "a\nb\n"), "4711 rank 1: a\n4711 rank 1: b\n");
  EXPECT_EQ(WithLabel("4711", "a\nb"), "4711: a\n4711: b");
  EXPECT_EQ(WithLabel("4711", ""), "");
}

TEST_F(WatchTextTest, SeveralWatchesDoNotMixTheirLines) {
  control::Reply reply;
  *reply.mutable_leaks() = Leak(200);
  WatchOptions first = options_, second = options_;
  first.label = "1 rank 0", second.label = "2 rank 1";
  const auto watch = [&](WatchOptions& options) {
    int asked = 0;
    options.stopped = [&asked] { return ++asked == 20; };
    options.json = false;
    EXPECT_TRUE(Watch(options, [&](const std::function<bool(const control::Reply&)>& take) {
                  while (take(reply)) {
                  }
                  return absl::OkStatus();
                }).ok());
  };
  testing::internal::CaptureStdout();
  std::thread other([&] { watch(second); });
  watch(first);
  other.join();
  std::istringstream lines(testing::internal::GetCapturedStdout());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.starts_with("1 rank 0: [") || line.starts_with("2 rank 1: [")) << line;
    EXPECT_THAT(line, HasSubstr("leak: 11.6 MiB per step"));
  }
  EXPECT_EQ(count, 2);
}

TEST_F(WatchTextTest, RefusalOfTheCollectorIsTheError) {
  control::Reply reply;
  reply.set_error("leaks are not looked for in this recording");
  const auto serve = [&](const std::function<bool(const control::Reply&)>& take) {
    take(reply);
    return absl::OkStatus();
  };
  const auto watched = Watch(options_, serve);
  ASSERT_FALSE(watched.ok());
  EXPECT_THAT(std::string(watched.status().message()), HasSubstr("not looked for"));
}

}  // namespace
}  // namespace gmt::cli
