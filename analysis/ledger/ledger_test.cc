#include "analysis/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "analysis/fragmentation/fragmentation.h"
#include "analysis/testing/event_script.h"
#include "format/units.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kOurs = 12;

int64_t SumOf(const Ledger& ledger) {
  uint64_t sum = static_cast<uint64_t>(ledger.unexplained_bytes);
  for (const LedgerRow& row : ledger.rows) sum += row.bytes;
  return static_cast<int64_t>(sum);
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() { script_.pid = kOurs; }

  gmt::Sample& Nvml(uint64_t used_mib) {
    gmt::Sample& sample = script_.Sample(used_mib * kMiB, 1024 * kMiB);
    sample.set_source("nvml");
    return sample;
  }
  static void Holds(gmt::Sample& sample, uint64_t pid, uint64_t mib, const std::string& name = "") {
    auto* process = sample.add_processes();
    process->set_pid(pid);
    process->set_bytes(mib * kMiB);
    process->set_name(name);
  }
  gmt::Sample& Nvml(uint64_t used_mib, uint64_t ours_mib) {
    gmt::Sample& sample = Nvml(used_mib);
    Holds(sample, kOurs, ours_mib);
    return sample;
  }

  std::vector<Ledger> Ledgers(const std::string& at, std::optional<int32_t> device = {}) {
    trace_ = script_.Build();
    const Examination examination(trace_, script_.definitions());
    const auto ledgers = MakeLedgers(examination, {*ParseAt(at), device});
    EXPECT_TRUE(ledgers.ok()) << ledgers.status();
    for (const Ledger& ledger : *ledgers) {
      EXPECT_EQ(SumOf(ledger), static_cast<int64_t>(ledger.driver_used_bytes));
    }
    return *ledgers;
  }
  Ledger At(const std::string& at) {
    const std::vector<Ledger> ledgers = Ledgers(at);
    EXPECT_THAT(ledgers, SizeIs(1));
    return ledgers.front();
  }
  // In MiB; -1 if there is no such row.
  static int64_t MiBOf(const Ledger& ledger, const std::string& name) {
    for (const LedgerRow& row : ledger.rows) {
      if (row.name == name) return static_cast<int64_t>(row.bytes / kMiB);
    }
    return -1;
  }
  static std::vector<std::string> Names(const Ledger& ledger) {
    std::vector<std::string> names;
    for (const LedgerRow& row : ledger.rows) names.push_back(row.name);
    return names;
  }
  uint32_t NativeStack(const std::string& function, const std::string& module) {
    format::FrameInfo frame;
    frame.function = script_.builder().InternString(function);
    frame.module_name = script_.builder().InternString(module);
    frame.language = format::Language::kCxx;
    return script_.builder().InternStack({script_.builder().InternFrame(frame)}, 0);
  }

  EventScript script_;
  Trace trace_;
};

TEST_F(LedgerTest, ProcessIsItsBlocksItsCacheAndItsStandingMemory) {
  script_.Alloc(0x10000000, 20 * kMiB, {"segment"});
  script_.Block(0x10000000, 5 * kMiB, {"forward"});
  script_.Alloc(0x20000000, 40 * kMiB, {"segment"});
  script_.Block(0x20000000, 40 * kMiB, {"forward"});
  script_.FreeBlock(0x20000000);
  script_.Alloc(0x40000000, 7 * kMiB, {"knn_build"});
  gmt::Sample& sample = Nvml(600);
  Holds(sample, kOurs, 367);
  Holds(sample, 77, 200, "python");
  sample.set_reserved_bytes(30 * kMiB);
  const Ledger ledger = At("end");
  EXPECT_EQ(ledger.source, "nvml");
  EXPECT_EQ(ledger.driver_used_bytes, 600 * kMiB);
  EXPECT_THAT(Names(ledger), ElementsAre("live blocks", "cached", "holes", "contexts and modules",
                                         "other allocations", "process 77", "driver and firmware"));
  EXPECT_EQ(MiBOf(ledger, "live blocks"), 5);
  EXPECT_EQ(MiBOf(ledger, "cached"), 40);
  EXPECT_EQ(MiBOf(ledger, "holes"), 15);
  EXPECT_EQ(MiBOf(ledger, "other allocations"), 7);
  EXPECT_EQ(MiBOf(ledger, "contexts and modules"), 367 - 67);
  EXPECT_EQ(MiBOf(ledger, "process 77"), 200);
  EXPECT_EQ(ledger.unexplained_bytes, 3 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(ledger.unexplained_in_process, 0);
  EXPECT_EQ(ledger.process_bytes(), 367 * kMiB);
  EXPECT_TRUE(ledger.rows[1].releasable);
  EXPECT_FALSE(ledger.rows[2].releasable);
}

TEST_F(LedgerTest, ReadingOfAnotherMomentIsAdjustedByWhatWasRecordedSince) {
  script_.Alloc(0x10000000, 20 * kMiB);
  Nvml(320, 320);
  script_.Alloc(0x20000000, 50 * kMiB);
  const Ledger ledger = At("end");
  EXPECT_EQ(ledger.reading_used_bytes, 320 * kMiB);
  EXPECT_EQ(ledger.recorded_since, 50 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(ledger.driver_used_bytes, 370 * kMiB);
  EXPECT_EQ(MiBOf(ledger, "contexts and modules"), 300);
  EXPECT_EQ(ledger.unexplained_bytes, 0);
  EXPECT_EQ(At("event:0").driver_used_bytes, 300 * kMiB);
}

TEST_F(LedgerTest, NearestReadingCounts) {
  Nvml(100, 100);
  script_.Alloc(0x10000000, 20 * kMiB);
  Nvml(120, 120);
  script_.Alloc(0x20000000, 1 * kMiB);
  EXPECT_EQ(At("end").reading_t_ns, 3 * EventScript::kStep_ns);
  EXPECT_EQ(At("t:0").reading_t_ns, 1 * EventScript::kStep_ns);
}

TEST_F(LedgerTest, GrowthWithoutAnEventIsUnexplained) {
  script_.Alloc(0x10000000, 20 * kMiB);
  for (int i = 0; i < 3; ++i) Nvml(520, 520);
  Nvml(820, 820);
  const Ledger ledger = At("end");
  EXPECT_EQ(MiBOf(ledger, "contexts and modules"), 500);
  EXPECT_EQ(ledger.unexplained_bytes, 300 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(ledger.unexplained_in_process, 300 * static_cast<int64_t>(kMiB));
}

TEST_F(LedgerTest, OneReadingInTheMiddleOfACallDoesNotAffectStandingMemory) {
  script_.Alloc(0x10000000, 20 * kMiB);
  Nvml(320, 320);
  Nvml(900, 900);
  Nvml(320, 320);
  const Ledger ledger = At("end");
  EXPECT_EQ(MiBOf(ledger, "contexts and modules"), 300);
  EXPECT_EQ(ledger.unexplained_bytes, 0);
}

TEST_F(LedgerTest, ModulesLoadedLaterExplainLaterGrowth) {
  for (int i = 0; i < 3; ++i) Nvml(300, 300);
  script_.Module("load", 40 * kMiB);
  Nvml(350, 350);
  const Ledger ledger = At("end");
  EXPECT_EQ(MiBOf(ledger, "contexts and modules"), 340);
  EXPECT_EQ(ledger.unexplained_bytes, 10 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(ledger.rows[0].detail, "1 module");
}

TEST_F(LedgerTest, LimitsExplainLaterGrowth) {
  for (int i = 0; i < 3; ++i) Nvml(300, 300);
  script_.Limit("malloc_heap_size", 64 * kMiB);
  Nvml(364, 364);
  EXPECT_EQ(At("end").unexplained_bytes, 0);
}

TEST_F(LedgerTest, MoreRecordedThanReportedIsNegativeUnexplained) {
  script_.Alloc(0x10000000, 200 * kMiB);
  Nvml(150, 150);
  const Ledger ledger = At("end");
  EXPECT_EQ(ledger.unexplained_bytes, -50 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(MiBOf(ledger, "contexts and modules"), -1);
}

TEST_F(LedgerTest, LibrariesHaveSeparateRows) {
  script_.Alloc(0x10000000, 4 * kMiB).stack = NativeStack("ncclCommInitRank", "/x/libnccl.so.2");
  script_.Alloc(0x20000000, 6 * kMiB).stack = NativeStack("ncclAllReduce", "/x/libnccl.so.2");
  script_.Alloc(0x30000000, 2 * kMiB).stack = NativeStack("cublasCreate_v2", "/x/libcublas.so.13");
  script_.Alloc(0x40000000, 1 * kMiB, {"build", "main"});
  script_.Alloc(0x50000000, 3 * kMiB);
  const Ledger ledger = At("end");
  EXPECT_EQ(MiBOf(ledger, "NCCL"), 10);
  EXPECT_EQ(MiBOf(ledger, "cuBLAS"), 2);
  EXPECT_EQ(ledger.rows[0].detail, "ncclAllReduce");
  EXPECT_EQ(ledger.rows[0].count, 2u);
  EXPECT_THAT(Names(ledger),
              ElementsAre("NCCL", "other allocations", "cuBLAS", "other allocations"));
  EXPECT_EQ(ledger.rows[1].detail, "no stack was recorded");
  EXPECT_EQ(ledger.rows[3].detail, "build (build.py:10)");
}

TEST_F(LedgerTest, WithoutAReadingTheRowsAreTheTotal) {
  script_.Alloc(0x10000000, 20 * kMiB);
  const Ledger ledger = At("end");
  EXPECT_EQ(ledger.source, "");
  EXPECT_EQ(ledger.driver_used_bytes, 20 * kMiB);
  EXPECT_EQ(ledger.unexplained_bytes, 0);
}

TEST_F(LedgerTest, SourceWithOneTotalDoesNotDistinguishOurProcess) {
  script_.Alloc(0x10000000, 20 * kMiB);
  script_.Sample(420 * kMiB, 1024 * kMiB).set_source("cudaMemGetInfo");
  const Ledger ledger = At("end");
  ASSERT_EQ(MiBOf(ledger, "contexts and others"), 400);
  EXPECT_EQ(ledger.process_bytes(), 20 * kMiB);
  EXPECT_FALSE(ledger.reported_process_bytes.has_value());
}

TEST_F(LedgerTest, ListWithoutOurProcessSaysSo) {
  script_.Alloc(0x10000000, 20 * kMiB);
  Holds(Nvml(420), 77, 400);
  const Ledger ledger = At("end");
  EXPECT_EQ(MiBOf(ledger, "process 77"), -1);
  EXPECT_EQ(MiBOf(ledger, "contexts and others"), 400);
  EXPECT_THAT(ledger.rows[1].detail, HasSubstr("under no known pid"));
}

TEST_F(LedgerTest, ProcessWithoutAnAmountIsListedAndUnexplained) {
  gmt::Sample& sample = Nvml(420);
  Holds(sample, kOurs, 100);
  auto* other = sample.add_processes();
  other->set_pid(77);
  const Ledger ledger = At("end");
  EXPECT_EQ(MiBOf(ledger, "process 77"), 0);
  EXPECT_EQ(ledger.unexplained_bytes, 320 * static_cast<int64_t>(kMiB));
  EXPECT_EQ(ledger.unexplained_in_process, 0);
}

TEST_F(LedgerTest, FreeMemoryAloneIsEnoughIfTheDeviceIsKnown) {
  script_.Alloc(0x10000000, 20 * kMiB);
  gmt::Sample& sample = script_.Sample(0, 0);
  sample.clear_used_bytes();
  sample.clear_total_bytes();
  sample.set_free_bytes(1000 * kMiB);
  sample.set_source("cudaMemGetInfo");
  EXPECT_EQ(At("end").source, "");  // the total is unknown
  trace_ = script_.Build();
  trace_.devices.emplace_back().total_bytes = 1100 * kMiB;
  const Examination examination(trace_, script_.definitions());
  EXPECT_EQ(LedgerAfter(examination, 0, trace_.last_step()).driver_used_bytes, 100 * kMiB);
}

TEST_F(LedgerTest, ManagedMemoryIsSeparate) {
  script_.Alloc(0x10000000, 20 * kMiB).memory = MANAGED;
  Nvml(5, 5);
  const Ledger ledger = At("end");
  ASSERT_THAT(ledger.not_counted, SizeIs(1));
  EXPECT_EQ(ledger.not_counted[0].bytes, 20 * kMiB);
  EXPECT_EQ(ledger.unexplained_bytes, 0);
  EXPECT_THAT(Names(ledger), ElementsAre("contexts and modules"));
}

TEST_F(LedgerTest, CuptiIsARowIfItReportsItsMemory) {
  script_.Alloc(0x10000000, 20 * kMiB);
  script_.Source("cupti device memory", std::to_string(9 * kMiB) + " bytes in each context");
  Nvml(129, 129);
  const Ledger ledger = At("end");
  EXPECT_EQ(MiBOf(ledger, "CUPTI"), 9);
  EXPECT_EQ(MiBOf(ledger, "contexts and modules"), 100);
}

TEST_F(LedgerTest, DevicesHaveSeparateLedgers) {
  script_.Alloc(0x10000000, 20 * kMiB);
  script_.Alloc(0x20000000, 30 * kMiB).device = 1;
  Nvml(100, 100).set_device(1);
  EXPECT_THAT(Ledgers("end"), SizeIs(2));
  const std::vector<Ledger> second = Ledgers("end", 1);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(MiBOf(second[0], "contexts and modules"), 70);
}

TEST_F(LedgerTest, MissingDeviceIsNotFound) {
  script_.Alloc(0x10000000, 20 * kMiB);
  trace_ = script_.Build();
  const Examination examination(trace_, script_.definitions());
  const auto ledgers = MakeLedgers(examination, {analysis::At{}, 5});
  EXPECT_EQ(ledgers.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ledgers.status().message(), HasSubstr("no GPU 5; it has: 0"));
}

// Both answers share one number: a ledger's reserved rows equal the fragmentation.
TEST_F(LedgerTest, ReservedRowsAgreeWithFragmentation) {
  ForEachSeed(SeedsUpTo(60), [&](uint32_t seed) {
    std::mt19937_64 random(seed);
    script_ = EventScript();
    for (int i = 0; i < 60; ++i) {
      const uint64_t segment = (1 + random() % 5) << 28;
      const uint64_t block = segment + random() % 10 * 2 * kMiB;
      format::Event& event = random() % 3 == 0   ? script_.Alloc(segment, 20 * kMiB)
                             : random() % 2 == 0 ? script_.Block(block, 2 * kMiB)
                                                 : script_.FreeBlock(block);
      event.present |= format::kHasStream;
      event.stream = random() % 2;
    }
    trace_ = script_.Build();
    const Examination examination(trace_, script_.definitions());
    const Ledger ledger = LedgerAfter(examination, 0, trace_.last_step());
    const Fragmentation segments = FragmentationAfter(examination, 0, trace_.last_step());
    std::map<std::string, uint64_t> rows;
    for (const LedgerRow& row : ledger.rows) rows[row.name] = row.bytes;
    EXPECT_EQ(rows["live blocks"], segments.allocated_bytes);
    EXPECT_EQ(rows["cached"], segments.split.releasable);
    EXPECT_EQ(rows["holes"], segments.split.pinned + segments.split.stream);
    EXPECT_EQ(rows["awaiting streams"], segments.split.awaiting_stream);
    EXPECT_EQ(ledger.bytes_of(LedgerGroup::kReserved) - rows["blocks elsewhere"],
              segments.reserved_bytes);
  });
}

TEST_F(LedgerTest, EmptyRecordingHasNoLedger) { EXPECT_THAT(Ledgers("end"), IsEmpty()); }

// For any log, rows and the unexplained rest add up to the driver's figure.
TEST_F(LedgerTest, SumsHoldOnAnyRecording) {
  ForEachSeed(SeedsUpTo(200), [&](uint32_t seed) {
    std::mt19937_64 random(seed);
    script_ = EventScript();
    script_.pid = kOurs;
    const bool hostile = seed % 4 == 0;
    for (int i = 0; i < 60; ++i) {
      const uint64_t address = (1 + random() % 12) << 26;
      const uint64_t size = hostile && random() % 8 == 0 ? random() : (1 + random() % 48) * kMiB;
      const auto device = static_cast<uint32_t>(random() % 2);
      switch (random() % 7) {
        case 0:
        case 1:
          script_.Alloc(address, size, {"f" + std::to_string(random() % 5)}).device = device;
          break;
        case 2:
          script_.Free(address).device = device;
          break;
        case 3:
          script_.Block(address + random() % 16 * kMiB, size).device = device;
          break;
        case 4:
          script_.FreeBlock(address).device = device;
          break;
        case 5:
          script_.Create(random() % 6, size);
          script_.Map(address << 12, size, random() % 6);
          break;
        default: {
          gmt::Sample& sample = script_.Sample(size, random());
          sample.set_device(device);
          sample.set_source(random() % 2 == 0 ? "nvml" : "cudaMemGetInfo");
          if (random() % 2 == 0) Holds(sample, kOurs, random() % 4096);
          if (random() % 3 == 0) Holds(sample, 5, random() % 4096);
        }
      }
    }
    Ledgers("peak");
    Ledgers("end");
    Ledgers("event:7");
  });
}

}  // namespace
}  // namespace gmt::analysis
