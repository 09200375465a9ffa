#include "analysis/diff/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A recording and its examination.
class Recording {
 public:
  EventScript script;

  const Examination& examination() {
    if (!examination_) {
      trace_ = script.Build();
      if (change_) change_(trace_);
      examination_ = std::make_unique<Examination>(trace_, script.definitions());
      categories_ = std::make_unique<Categories>(Categorize(*examination_));
    }
    return *examination_;
  }
  const Categories& categories() {
    examination();
    return *categories_;
  }
  void Change(std::function<void(Trace&)> change) { change_ = std::move(change); }

 private:
  Trace trace_;
  std::function<void(Trace&)> change_;
  std::unique_ptr<Examination> examination_;
  std::unique_ptr<Categories> categories_;
};

absl::StatusOr<Comparison> TryCompare(Recording& base, Recording& changed,
                                      DiffOptions options = {}) {
  return Compare(base.examination(), base.categories(), changed.examination(), changed.categories(),
                 options);
}

void ExpectSums(const Diff& diff) {
  uint64_t delta = 0, base = diff.unchanged_bytes, changed = diff.unchanged_bytes;
  for (const DiffRow& row : diff.rows) {
    delta += static_cast<uint64_t>(row.delta_bytes());
    base += row.base_bytes;
    changed += row.new_bytes;
    EXPECT_TRUE(row.base_bytes != row.new_bytes || row.base_count != row.new_count);
  }
  EXPECT_EQ(static_cast<int64_t>(delta), diff.delta_bytes());
  EXPECT_EQ(base, diff.base_bytes);
  EXPECT_EQ(changed, diff.new_bytes);
}

Comparison CompareAll(Recording& base, Recording& changed, DiffOptions options = {}) {
  const auto comparison = TryCompare(base, changed, options);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  for (const Diff& diff : comparison->devices) ExpectSums(diff);
  return *comparison;
}

Diff CompareOne(Recording& base, Recording& changed, DiffOptions options = {}) {
  const Comparison comparison = CompareAll(base, changed, options);
  EXPECT_THAT(comparison.devices, SizeIs(1));
  return comparison.devices.front();
}

// Runs a training loop with kept memory, and memory that each step allocates and frees.
void Train(EventScript& script, int steps, uint64_t activation_mib,
           const std::string& site = "forward") {
  script.Alloc(0x100000000, 1000 * kMiB, {"segment"});
  script.Block(0x100000000, 100 * kMiB, {"build", "main"});
  for (int i = 1; i <= steps; ++i) {
    script.Mark("step", static_cast<uint64_t>(i));
    script.Block(0x110000000, activation_mib * kMiB, {site, "main"});
    script.FreeBlock(0x110000000);
  }
  script.Mark("step", static_cast<uint64_t>(steps) + 1);
}

TEST(DiffTest, SameRecordingHasNoRows) {
  Recording a;
  Train(a.script, 5, 40);
  const Diff diff = CompareOne(a, a);
  EXPECT_THAT(diff.rows, IsEmpty());
  EXPECT_EQ(diff.delta_bytes(), 0);
  EXPECT_EQ(diff.base_bytes, 140u * kMiB);
  EXPECT_EQ(diff.unchanged_stacks, 2u);
}

TEST(DiffTest, StepInWhichEitherHoldsMostIsCompared) {
  Recording a, b;
  Train(a.script, 8, 40);
  Train(b.script, 8, 55);
  const Diff diff = CompareOne(a, b);
  EXPECT_EQ(diff.aligned_on, "step 3");
  EXPECT_EQ(diff.delta_bytes(), 15 * kMiB);
  ASSERT_THAT(diff.rows, SizeIs(1));
  EXPECT_EQ(diff.rows[0].frames[0].function, "forward");
  EXPECT_EQ(diff.rows[0].base_bytes, 40u * kMiB);
  EXPECT_EQ(diff.base_reserved_bytes, 1000u * kMiB);
  EXPECT_EQ(diff.peak_delta_bytes(), 15 * kMiB);
}

TEST(DiffTest, WarmUpStepsAreNotCompared) {
  Recording a, b;
  Train(a.script, 2, 40);
  Train(b.script, 2, 40);
  EXPECT_EQ(CompareOne(a, b).aligned_on, "the peaks");
}

TEST(DiffTest, WithoutALoopTheAllocatedPeaksAreCompared) {
  Recording a, b;
  for (Recording* recording : {&a, &b}) {
    recording->script.Alloc(0x100000000, 100 * kMiB, {"segment"});
    recording->script.Block(0x100000000, 90 * kMiB, {"load"});
    recording->script.FreeBlock(0x100000000);
    // Here more is kept and less is allocated.
    recording->script.Alloc(0x200000000, 100 * kMiB, {"segment"});
    recording->script.Block(0x200000000, 20 * kMiB, {"forward"});
  }
  b.script.Block(0x210000000, kMiB, {"more"});
  const Diff diff = CompareOne(a, b);
  EXPECT_EQ(diff.aligned_on, "the peaks");
  EXPECT_EQ(diff.base_bytes, 90u * kMiB);
  EXPECT_EQ(diff.base_reserved_bytes, 100u * kMiB);
  EXPECT_EQ(diff.delta_bytes(), 0);
}

TEST(DiffTest, MomentCanBeSpecified) {
  Recording a, b;
  Train(a.script, 5, 40);
  Train(b.script, 5, 55);
  const Diff diff = CompareOne(a, b, {ParseAt("end").value(), {}});
  EXPECT_EQ(diff.aligned_on, "end");
  EXPECT_EQ(diff.delta_bytes(), 0);
  EXPECT_EQ(CompareOne(a, b, {ParseAt("step:4").value(), {}}).aligned_on, "step:4");
}

TEST(DiffTest, ErrorNamesTheRecordingThatLacksTheMoment) {
  Recording a, b;
  Train(a.script, 5, 40);
  Train(b.script, 3, 40);
  const auto comparison = TryCompare(a, b, {ParseAt("step:5").value(), {}});
  EXPECT_EQ(comparison.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(comparison.status().message(), HasSubstr("new: there is no step 5"));
}

TEST(DiffTest, NewAndGoneStacksAreCounted) {
  Recording a, b;
  a.script.Alloc(0x1000000, 3 * kMiB, {"old"});
  a.script.Alloc(0x9000000, kMiB, {"both"});
  b.script.Alloc(0x1000000, 5 * kMiB, {"young"});
  b.script.Alloc(0x9000000, kMiB, {"both"});
  const Diff diff = CompareOne(a, b);
  EXPECT_EQ(diff.new_stacks, 1u);
  EXPECT_EQ(diff.gone_stacks, 1u);
  ASSERT_THAT(diff.rows, SizeIs(2));
  EXPECT_EQ(diff.rows[0].delta_bytes(), 5 * kMiB);
  EXPECT_EQ(diff.rows[0].base_id, "");
  EXPECT_EQ(diff.rows[1].delta_bytes(), -3 * kMiB);
  EXPECT_EQ(diff.rows[1].new_id, "");
}

TEST(DiffTest, OnlyGpuOfOneRankIsComparedWithTheOnlyGpuOfAnother) {
  Recording a, b;
  a.script.Alloc(0x1000000, 3 * kMiB, {"load"});
  b.script.Alloc(0x1000000, 4 * kMiB, {"load"}).device = 1;
  const Diff diff = CompareOne(a, b);
  EXPECT_EQ(diff.base_device, 0);
  EXPECT_EQ(diff.device, 1);
  EXPECT_EQ(diff.delta_bytes(), kMiB);
  EXPECT_EQ(CompareOne(a, b, {{}, 0}).delta_bytes(), kMiB);
}

TEST(DiffTest, DeviceOfOnlyOneRecordingIsAllNew) {
  Recording a, b;
  a.script.Alloc(0x1000000, 3 * kMiB, {"load"});
  b.script.Alloc(0x1000000, 3 * kMiB, {"load"});
  b.script.Alloc(0x9000000, 4 * kMiB, {"load"}).device = 1;
  const Comparison comparison = CompareAll(a, b);
  ASSERT_THAT(comparison.devices, SizeIs(2));
  EXPECT_EQ(comparison.devices[1].base_bytes, 0u);
  EXPECT_EQ(comparison.devices[1].delta_bytes(), 4 * kMiB);
}

TEST(DiffTest, HostMemoryIsASeparateDevice) {
  Recording a, b;
  a.script.Pinned(0x1000000, 3 * kMiB, {"loader"});
  b.script.Pinned(0x1000000, 5 * kMiB, {"loader"});
  const Diff diff = CompareOne(a, b);
  EXPECT_EQ(diff.device, kHostDevice);
  EXPECT_EQ(diff.delta_bytes(), 2 * kMiB);
}

TEST(DiffTest, DeviceInNeitherIsNotFound) {
  Recording a;
  a.script.Alloc(0x1000000, 3 * kMiB, {"load"});
  const auto comparison = TryCompare(a, a, {{}, 7});
  EXPECT_EQ(comparison.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(comparison.status().message(), HasSubstr("GPU 7; they have: 0"));
}

TEST(DiffTest, EmptyRecordingsHaveNothingToCompare) {
  Recording a, b;
  EXPECT_THAT(CompareAll(a, b).devices, IsEmpty());
}

TEST(DiffTest, OtherDifferencesAreListed) {
  const auto set = [](std::vector<NamedText>& settings, const char* name, const char* value) {
    settings.push_back({name, value});
  };
  Recording a, b;
  a.Change([&](Trace& trace) {
    trace.argv = {"python", "train.py", "--batch", "16", "--seed", "1"};
    set(trace.libraries, "torch", "2.6.0");
    set(trace.settings, "CUDA_VISIBLE_DEVICES", "0");
    trace.rank = 0;
  });
  b.Change([&](Trace& trace) {
    trace.argv = {"python", "train.py", "--batch", "32", "--seed", "1"};
    set(trace.libraries, "torch", "2.7.0");
    set(trace.settings, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
    set(trace.settings, "CUDA_VISIBLE_DEVICES", "0");
    trace.rank = 3;
  });
  EXPECT_THAT(CompareAll(a, b).differences,
              ElementsAre("Changed: command --batch 16 -> --batch 32",
                          "Added: PYTORCH_CUDA_ALLOC_CONF expandable_segments:True",
                          "Changed: torch 2.6.0 -> 2.7.0", "Changed: rank 0 -> 3"));
  EXPECT_THAT(CompareAll(a, a).differences, IsEmpty());
}

TEST(DiffTest, OptionOfOneCommandOnlyIsAddedOrRemoved) {
  Recording plain, checkpointed;
  plain.Change([](Trace& trace) { trace.argv = {"python", "train.py"}; });
  checkpointed.Change([](Trace& trace) { trace.argv = {"python", "train.py", "--checkpoint"}; });
  EXPECT_THAT(CompareAll(plain, checkpointed).differences, ElementsAre("Added: --checkpoint"));
  EXPECT_THAT(CompareAll(checkpointed, plain).differences, ElementsAre("Removed: --checkpoint"));
}

void Scribble(EventScript& script, uint32_t seed) {
  std::mt19937_64 random(seed);
  const bool hostile = seed % 4 == 0;
  for (int i = 0; i < 80; ++i) {
    const uint64_t address = (1 + random() % 20) << 26;
    const uint64_t size = hostile && random() % 9 == 0 ? random() : (1 + random() % 48) * kMiB;
    const EventScript::Functions stack = {"f" + std::to_string(random() % 6),
                                          "g" + std::to_string(random() % 3)};
    const auto device = static_cast<uint32_t>(random() % 2);
    switch (random() % 7) {
      case 0:
        script.Alloc(address, size, stack).device = device;
        break;
      case 1:
        script.Free(address).device = device;
        break;
      case 2:
      case 3:
        script.Block(address + random() % 16 * kMiB, size, stack).device = device;
        break;
      case 4:
        script.FreeBlock(address + random() % 16 * kMiB).device = device;
        break;
      case 5:
        script.Pinned(address, size, stack);
        break;
      default:
        script.Mark("step", random() % 5);
    }
  }
}

TEST(DiffTest, RowsAddUpAndSwappingSidesNegatesOnAnyRecordings) {
  ForEachSeed(SeedsUpTo(150), [](uint32_t seed) {
    Recording a, b;
    Scribble(a.script, seed);
    Scribble(b.script, seed + 1000);
    for (const Diff& diff : CompareAll(a, a).devices) EXPECT_THAT(diff.rows, IsEmpty());
    const Comparison there = CompareAll(a, b), back = CompareAll(b, a);
    ASSERT_EQ(there.devices.size(), back.devices.size());
    for (size_t i = 0; i < there.devices.size(); ++i) {
      const Diff &x = there.devices[i], &y = back.devices[i];
      EXPECT_EQ(x.base_bytes, y.new_bytes);
      EXPECT_EQ(x.new_stacks, y.gone_stacks);
      EXPECT_EQ(x.moved_stacks, y.moved_stacks);
      ASSERT_EQ(x.rows.size(), y.rows.size());
      std::multiset<std::tuple<std::string, std::string, uint64_t, uint64_t>> forth, reverse;
      for (const DiffRow& row : x.rows) {
        forth.emplace(row.base_id, row.new_id, row.base_bytes, row.new_bytes);
      }
      for (const DiffRow& row : y.rows) {
        reverse.emplace(row.new_id, row.base_id, row.new_bytes, row.base_bytes);
      }
      EXPECT_EQ(forth, reverse);
    }
  });
}

}  // namespace
}  // namespace gmt::analysis
