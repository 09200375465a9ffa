#include <gmock/gmock.h>

#include <random>

#include "absl/strings/str_join.h"
#include "cli/top/top_choice.h"
#include "cli/top/top_model.h"
#include "cli/top/top_screen.h"
#include "tests/seeds/seeds.h"

namespace gmt::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kGib = uint64_t{1} << 30;

control::HeapStatus* AddHeap(control::Top* top, const char* name, uint64_t live) {
  control::HeapStatus* heap = top->mutable_status()->add_heaps();
  heap->set_device(0);
  heap->set_heap(name);
  heap->set_live_bytes(live);
  heap->set_peak_bytes(live + kGib);
  return heap;
}

void AddSite(control::Top* top, const char* function, const char* file, uint32_t line,
             uint64_t bytes) {
  control::Site* site = top->add_sites();
  site->set_device(0);
  site->set_heap("pytorch");
  site->set_live_bytes(bytes);
  site->set_live_count(3);
  site->set_growth_bytes(-(1 << 20));
  site->set_growth_ns(30'000'000'000);
  control::Frame* inner = site->add_frames();
  inner->set_function("at::linear");
  inner->set_module("/x/libtorch_cpu.so");
  control::Frame* frame = site->add_frames();
  frame->set_function(function);
  frame->set_file(file);
  frame->set_line(line);
  frame->set_python(true);
}

control::Top Training() {
  control::Top top;
  AddHeap(&top, "driver", 40 * kGib);
  AddHeap(&top, "pytorch", 31 * kGib)->set_reserved_bytes(39 * kGib);
  control::DeviceStatus* device = top.mutable_status()->add_devices();
  device->set_name("NVIDIA H100");
  device->set_used_bytes(41 * kGib);
  device->set_total_bytes(80 * kGib);
  AddSite(&top, "forward", "/job/model.py", 88, 12 * kGib);
  AddSite(&top, "load", "/job/data.py", 7, 2 * kGib);
  return top;
}

class TopTest : public testing::Test {
 protected:
  TopTest() {
    model_.Add(4711, "python train.py");
    model_.Take(4711, Training());
  }
  std::string Draw(TopSize size = {}) {
    return absl::StrJoin(DrawTop(model_, choice_, size), "\n",
                         [](std::string* out, const TopLine& line) { *out += line.text; });
  }
  TopAction Press(int key) {
    const TopProcess* chosen = model_.FindOrFirst(choice_.pid);
    const size_t rows = chosen == nullptr ? 0 : SitesShown(*chosen, choice_.filter).size();
    return choice_.OnKey(key, 0, rows);
  }
  void Type(const std::string& text) {
    for (const char c : text) Press(c);
  }

  TopModel model_;
  TopChoice choice_;
};

TEST_F(TopTest, FirstLineHasTheTotalWithoutCountingBlocksTwice) {
  EXPECT_THAT(Draw(), testing::StartsWith("gpumemtrace top: 40.0 GiB in 1 process   by live"));
}

TEST_F(TopTest, HeapsDevicesAndStacksHaveTheirLines) {
  const std::string text = Draw();
  EXPECT_THAT(text, HasSubstr("pytorch  31.0 GiB  39.0 GiB  32.0 GiB"));
  EXPECT_THAT(text, HasSubstr("41.0 GiB of 80.0 GiB used by all (51 %)  [#####.....]"));
  EXPECT_THAT(text, HasSubstr("12.0 GiB        3    -2.00 MiB         0  forward (model.py:88)"));
}

TEST_F(TopTest, EveryScreenIsExactlyAsLargeAsTheTerminal) {
  for (int i = 0; i < 30; ++i)
    AddSite(const_cast<control::Top*>(&model_.processes()[0].last), "f", "a.py", 1, 9);
  ForEachSeed({1}, [&](uint32_t seed) {
    choice_ = TopChoice();
    std::mt19937 random(seed);
    for (int n = 0; n < 500; ++n) {
      const TopSize size = {20 + static_cast<int>(random() % 200),
                            3 + static_cast<int>(random() % 60)};
      const int keys[] = {'s',        'f',      '?',     '/',     'a', kKeyEnter,
                          kKeyEscape, kKeyDown, kKeyEnd, kKeyTab, 'm'};
      Press(keys[random() % std::size(keys)]);
      const std::vector<TopLine> lines = DrawTop(model_, choice_, size);
      ASSERT_EQ(lines.size(), static_cast<size_t>(size.rows));
      for (const TopLine& line : lines) {
        const auto characters = std::count_if(line.text.begin(), line.text.end(),
                                              [](unsigned char c) { return (c & 0xc0) != 0x80; });
        ASSERT_LE(characters, size.columns) << line.text;
      }
    }
  });
}

TEST_F(TopTest, ChosenStackStaysOnTheScreen) {
  for (uint32_t i = 0; i < 30; ++i)
    AddSite(const_cast<control::Top*>(&model_.processes()[0].last), "f", "deep.py", i, 9);
  Press(kKeyEnd);
  const std::vector<TopLine> lines = DrawTop(model_, choice_, {80, 24});
  const auto chosen = std::find_if(lines.begin(), lines.end(), [](const TopLine& line) {
    return line.style == TopLine::Style::kChosen;
  });
  ASSERT_NE(chosen, lines.end());
  EXPECT_THAT(chosen->text, HasSubstr("deep.py:29"));
}

TEST_F(TopTest, FilterShowsStacksWithTheTextInAnyCaseWhileItIsTyped) {
  Press('/');
  Type("DATA.PY");
  EXPECT_THAT(Draw(), HasSubstr("only stacks with: DATA.PY_"));
  EXPECT_THAT(Draw(), HasSubstr("load (data.py:7)"));
  EXPECT_THAT(Draw(), Not(HasSubstr("model.py")));
  Press(kKeyEnter);
  Press(kKeyEscape);
  EXPECT_THAT(Draw(), HasSubstr("model.py")) << "Escape shows all again";
}

TEST_F(TopTest, FilterWithoutMatchesIsReported) {
  choice_.filter = "nowhere";
  EXPECT_THAT(Draw(), HasSubstr("no stack has that text"));
}

TEST_F(TopTest, EnterShowsAllFramesOfTheChosenStack) {
  Press(kKeyDown);
  Press(kKeyEnter);
  EXPECT_THAT(Draw(), HasSubstr("    load (data.py:7)"));
  EXPECT_THAT(Draw(), Not(HasSubstr("model.py")));
}

TEST_F(TopTest, OrderKeyCyclesThroughTheOrders) {
  EXPECT_EQ(Press('s'), TopAction::kOrder);
  EXPECT_EQ(choice_.order, control::BY_GROWTH);
  Press('s');
  EXPECT_EQ(choice_.order, control::BY_RATE);
  Press('s');
  EXPECT_EQ(choice_.order, control::BY_LIVE);
}

TEST_F(TopTest, MarkNeedsANameAndEscapeCancelsIt) {
  Press('m');
  Type("epoch");
  Press(kKeyBackspace);
  EXPECT_EQ(Press(kKeyEnter), TopAction::kMark);
  EXPECT_EQ(choice_.typed, "epoc");
  Press('m');
  EXPECT_EQ(Press(kKeyEnter), TopAction::kNone) << "no name";
  Press('m');
  Type("x");
  EXPECT_EQ(Press(kKeyEscape), TopAction::kNone);
}

TEST_F(TopTest, NonAsciiCharactersAreErasedAsAWhole) {
  Press('/');
  Press(0xe9);    // é
  Press(0x4e16);  // a Chinese character
  EXPECT_EQ(choice_.filter, "\u00e9\u4e16");
  Press(kKeyBackspace);
  EXPECT_EQ(choice_.filter, "\u00e9");
  Press(kKeyBackspace);
  EXPECT_EQ(choice_.filter, "");
}

TEST_F(TopTest, LostProcessShowsWhyAndKeepsItsHeaps) {
  model_.Lose(4711, "its recording is complete: run.gmt");
  EXPECT_THAT(Draw(), HasSubstr("4711  its recording is complete: run.gmt"));
  EXPECT_THAT(Draw(), HasSubstr("31.0 GiB"));
}

TEST_F(TopTest, InexactLiveMemoryIsInTheLastLine) {
  control::Top top = Training();
  top.mutable_status()->set_inexact_because("the live table is full");
  model_.Take(4711, top);
  EXPECT_THAT(Draw(), testing::EndsWith("live memory is not exact: the live table is full"));
}

TEST_F(TopTest, WithoutProcessesItShowsHowToStartOne) {
  model_ = TopModel();
  EXPECT_THAT(Draw({120, 24}), HasSubstr("gpumemtrace run -- COMMAND"));
}

TEST_F(TopTest, OnceHasAllRowsAndNoFooter) {
  for (uint32_t i = 0; i < 50; ++i)
    AddSite(const_cast<control::Top*>(&model_.processes()[0].last), "f", "deep.py", i, 9);
  const std::string text = Draw({100, 0});
  EXPECT_THAT(text, HasSubstr("deep.py:49"));
  EXPECT_THAT(text, Not(HasSubstr("q quit")));
}

TEST_F(TopTest, ChosenProcessRemainsChosenWhenAnotherOneIsAddedBeforeIt) {
  choice_.pid = 4711;
  model_.Add(100, "python helper.py");
  EXPECT_THAT(Draw(), HasSubstr("STACK of 4711"));
  choice_.OnKey(kKeyTab, 100, 0);
  EXPECT_THAT(Draw(), HasSubstr("STACK of 100"));
}

TEST(SparklineTest, RisesFromTheMinimumToTheMaximum) {
  EXPECT_EQ(Sparkline({}, 8, true), "");
  EXPECT_EQ(Sparkline({5, 5}, 8, true), "▁▁");
  EXPECT_EQ(Sparkline({0, 50, 100}, 8, true), "▁▅█");
  EXPECT_EQ(Sparkline({0, 0, 50, 100}, 2, false), "_#") << "the newest are shown";
}

TEST(TopModelTest, SamplesAreBoundedAndProcessesInOrder) {
  TopModel model;
  model.Add(9, "b");
  model.Add(3, "a");
  EXPECT_EQ(model.processes()[0].pid, 3u);
  for (size_t i = 0; i < 2 * TopModel::kSamples; ++i) model.Take(3, Training());
  EXPECT_EQ(model.processes()[0].live.at({0, "pytorch"}).size(), TopModel::kSamples);
  model.Take(77, Training());
  EXPECT_EQ(model.processes().size(), 2u) << "a process that was not added";
}

}  // namespace
}  // namespace gmt::cli
