#include "interop/rmm_log/rmm_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "format/testing/recording_fixture.h"

namespace gmt::interop {
namespace {

using format::Event;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kFirstLine[] = "Thread,Time,Action,Pointer,Size,Stream\n";

class RmmLogTest : public testing::Test {
 protected:
  // Reads a log with these lines after the first one. Sets status_, notes_ and is_whole_.
  std::vector<Event> Read(const std::string& lines) {
    format::DefinitionsBuilder definitions;
    format::Collected read;
    notes_.clear();
    is_whole_ = true;
    status_ = ReadRmmLog(*format::BytesInMemory(kFirstLine + lines), "log.csv", definitions, read,
                         &notes_, &is_whole_);
    return read.events;
  }
  std::string ProblemOf(const std::string& lines) {
    Read(lines);
    return std::string(status_.message());
  }
  std::vector<int64_t> Times(const std::string& lines) {
    std::vector<int64_t> times;
    for (const Event& event : Read(lines)) times.push_back(event.t_ns);
    return times;
  }

  absl::Status status_;
  Notes notes_;
  bool is_whole_ = true;
};

TEST_F(RmmLogTest, EachActionIsAnEvent) {
  const auto events = Read(
      "812,15:47:02.841961,allocate,0x10012400000,1048576,0x2\n"
      "812,15:47:02.841977,free,0x10012400000,1048576,0x2\n"
      "813,15:47:03.000000,allocate failure,(nil),1099511627776,0\n");
  ASSERT_TRUE(status_.ok()) << status_;
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_THAT(events[0], AllOf(Field(&Event::kind, ALLOC), Field(&Event::address, 0x10012400000u),
                               Field(&Event::size, 1048576u), Field(&Event::stream, 2u),
                               Field(&Event::thread, 812u), Field(&Event::memory, BLOCK)));
  EXPECT_THAT(events[1], AllOf(Field(&Event::kind, FREE), Field(&Event::address, 0x10012400000u),
                               Field(&Event::t_ns, 16'000)));
  EXPECT_THAT(events[2],
              AllOf(Field(&Event::kind, ALLOC_FAILED), Field(&Event::size, 1099511627776u),
                    Field(&Event::t_ns, 158'039'000)));
  EXPECT_FALSE(events[0].has(format::kHasDevice));  // the log does not have it
  EXPECT_FALSE(events[2].has(format::kHasAddress));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(RmmLogTest, TimesOfOlderReleasesAreRead) {
  EXPECT_THAT(Times("1,15:47:02:000001,allocate,0x1,8,0\n1,15:47:03:000001,free,0x1,8,0\n"),
              ElementsAre(0, 1'000'000'000));
}

TEST_F(RmmLogTest, TimesGoOnAfterMidnight) {
  EXPECT_THAT(Times("1,23:59:59.999999,allocate,0x1,8,0\n2,00:00:00.000001,allocate,0x2,8,0\n"
                    "1,23:59:59.999998,free,0x1,8,0\n2,00:00:00.000003,free,0x2,8,0\n"),
              ElementsAre(0, 2'000, -1'000, 4'000));
}

TEST_F(RmmLogTest, LastLineWithoutAnEndIsLeftOut) {
  // Its size may lack digits.
  EXPECT_THAT(Read("1,15:47:02.841961,allocate,0x1,8,0\n1,15:47:02.841961,allocate,0x2,80,0"),
              SizeIs(1));
  EXPECT_TRUE(status_.ok());
  EXPECT_FALSE(is_whole_);
  EXPECT_THAT(notes_, ElementsAre("log.csv: line 3 is incomplete and was left out"));
}

TEST_F(RmmLogTest, LogWithoutEventsIsEmpty) {
  EXPECT_THAT(Read(""), IsEmpty());
  EXPECT_TRUE(status_.ok());
  EXPECT_TRUE(is_whole_);
}

TEST_F(RmmLogTest, CarriageReturnsAreSkipped) {
  EXPECT_THAT(Read("1,15:47:02.841961,allocate,0x1,8,0\r\n"), SizeIs(1));
  EXPECT_TRUE(LooksLikeRmmLog("Thread,Time,Action,Pointer,Size,Stream\r\n"));
}

TEST_F(RmmLogTest, ManyEventsArriveInOrder) {
  std::string lines;
  for (int i = 0; i < 70'000; ++i)
    lines += "1,15:47:02.841961,allocate,0x" + std::to_string(i) + ",8,0\n";
  const auto events = Read(lines);
  ASSERT_THAT(events, SizeIs(70'000));
  EXPECT_EQ(events[69'999].address, 0x69999u);
}

TEST_F(RmmLogTest, ErrorSaysWhichLineAndWhatIsWrong) {
  const std::string good = "1,15:47:02.841961,allocate,0x1,8,0\n";
  const struct {
    std::string line, what;
  } cases[] = {
      {"hello", "does not have six columns"},
      {"1,15:47:02.841961,allocate,0x1,8,0,9", "does not have six columns"},
      {"x,15:47:02.841961,allocate,0x1,8,0", "has no number in the column Thread"},
      {"1,1634567890.123456,allocate,0x1,8,0", "has no time of day in the column Time"},
      {"1,24:47:02.841961,allocate,0x1,8,0", "has no time of day"},
      {"1,15:47:02.84196x,allocate,0x1,8,0", "has no time of day"},
      {"1,15:47:02.841961,deallocate,0x1,8,0", "has neither allocate, free nor allocate failure"},
      {"1,15:47:02.841961,free,here,8,0", "has no address in the column Pointer or Stream"},
      {"1,15:47:02.841961,free,0x10000000000000000,8,0", "has no address"},
      {"1,15:47:02.841961,free,0x1,-8,0", "has no number in the column Size"},
      {"1,15:47:02.841961,free,0x1,99999999999999999999,0", "has no number in the column Size"},
  };
  for (const auto& [line, what] : cases)
    EXPECT_THAT(ProblemOf(good + line + "\n"), HasSubstr("log.csv: line 3 " + what)) << line;
}

TEST_F(RmmLogTest, OnlyTheFirstLineIsRecognised) {
  EXPECT_TRUE(LooksLikeRmmLog(kFirstLine));
  EXPECT_TRUE(LooksLikeRmmLog("Thread,Time,Action,Pointer,Size,Stream"));
  EXPECT_FALSE(LooksLikeRmmLog(""));
  EXPECT_FALSE(LooksLikeRmmLog("Thread,Time,Action,Pointer,Size,Stream,Device\n"));
  EXPECT_FALSE(LooksLikeRmmLog("\nThread,Time,Action,Pointer,Size,Stream\n"));
}

TEST_F(RmmLogTest, EveryTruncationIsReadUpToItsLastWholeLine) {
  const std::string lines =
      "812,15:47:02.841961,allocate,0x10012400000,1048576,0\n"
      "812,15:47:02.841977,free,0x10012400000,1048576,0\n";
  for (size_t cut = 0; cut < lines.size(); ++cut) {
    const std::string rest = lines.substr(0, cut);
    const auto whole = static_cast<size_t>(std::count(rest.begin(), rest.end(), '\n'));
    EXPECT_THAT(Read(rest), SizeIs(whole)) << "cut at " << cut;
    EXPECT_TRUE(status_.ok()) << status_;
    EXPECT_EQ(is_whole_, rest.empty() || rest.back() == '\n');
  }
}

TEST_F(RmmLogTest, EveryFlippedByteIsAnErrorOrAnEvent) {
  const std::string line = "812,15:47:02.841961,allocate,0x10012400000,1048576,0\n";
  for (size_t at = 0; at < line.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string flipped = line;
      flipped[at] = static_cast<char>(byte);
      const auto events = Read(flipped);
      EXPECT_TRUE(!status_.ok() || !is_whole_ || events.size() == 1) << flipped;
    }
  }
}

}  // namespace
}  // namespace gmt::interop
