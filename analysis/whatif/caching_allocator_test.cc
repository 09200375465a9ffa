#include "analysis/whatif/caching_allocator.h"

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

AllocatorSettings With(std::string_view text) {
  AllocatorSettings settings;
  EXPECT_TRUE(settings.Change(text).ok()) << text;
  return settings;
}

class CachingAllocatorTest : public ::testing::Test {
 protected:
  void Use(std::string_view settings, uint64_t capacity = AllocatorSettings::kUnlimited,
           uint64_t device = 24 * kGiB) {
    allocator_.emplace(With(settings), device, capacity);
  }
  void SetUp() override { Use(""); }

  // The sizes in MiB of the driver's calls since the last question, negative if released.
  std::vector<double> Calls() {
    std::vector<double> calls;
    for (const auto& call : allocator_->calls()) {
      const double mib = static_cast<double>(call.bytes) / static_cast<double>(kMiB);
      calls.push_back(call.is_release ? -mib : mib);
    }
    allocator_->ForgetCalls();
    return calls;
  }
  bool Allocate(uint32_t allocation, uint64_t bytes, uint32_t stream = 0, uint32_t pool = 0) {
    return allocator_->Allocate(allocation, bytes, {stream, pool});
  }

  std::optional<CachingAllocator> allocator_;
};

TEST_F(CachingAllocatorTest, SmallRequestsShareASegmentOf2MiB) {
  for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(Allocate(i, 512 << 10));
  EXPECT_THAT(Calls(), ElementsAre(2));
  EXPECT_TRUE(Allocate(4, 1));
  EXPECT_THAT(Calls(), ElementsAre(2));
}

TEST_F(CachingAllocatorTest, LargeRequestsBelow10MiBShareASegmentOf20MiB) {
  EXPECT_TRUE(Allocate(0, 9 * kMiB));
  EXPECT_TRUE(Allocate(1, 9 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(20));
  EXPECT_TRUE(Allocate(2, 10 * kMiB + 1));
  EXPECT_THAT(Calls(), ElementsAre(12));
}

TEST_F(CachingAllocatorTest, RestOfALargeBlockIsKeptOnlyAbove1MiB) {
  EXPECT_TRUE(Allocate(0, 19 * kMiB));  // a segment of 20 MiB; no rest
  EXPECT_EQ(allocator_->allocated(), 20 * kMiB);
  EXPECT_TRUE(Allocate(1, 9 * kMiB));  // 11 MiB are left
  EXPECT_EQ(allocator_->allocated(), 29 * kMiB);
}

TEST_F(CachingAllocatorTest, SmallestFreeBlockThatFitsIsUsed) {
  EXPECT_TRUE(Allocate(0, 100 * kMiB));
  EXPECT_TRUE(Allocate(1, 40 * kMiB));
  allocator_->Free(0);
  allocator_->Free(1);
  Calls();
  EXPECT_TRUE(Allocate(2, 30 * kMiB));
  EXPECT_TRUE(Allocate(3, 100 * kMiB));  // the large block is still whole
  EXPECT_THAT(Calls(), ElementsAre());
}

TEST_F(CachingAllocatorTest, AdjacentFreeBlocksAreMerged) {
  for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(Allocate(i, 5 * kMiB));
  for (uint32_t i : {1u, 3u, 0u, 2u}) allocator_->Free(i);
  Calls();
  EXPECT_TRUE(Allocate(4, 20 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre());
}

TEST_F(CachingAllocatorTest, FreeMemoryOfAnotherStreamOrPoolIsNotUsed) {
  EXPECT_TRUE(Allocate(0, 20 * kMiB, 0));
  allocator_->Free(0);
  Calls();
  EXPECT_TRUE(Allocate(1, 20 * kMiB, 1));
  EXPECT_THAT(Calls(), ElementsAre(20));
  EXPECT_TRUE(Allocate(2, 20 * kMiB, 0, 1));
  EXPECT_THAT(Calls(), ElementsAre(20));
}

TEST_F(CachingAllocatorTest, BlockThatOtherStreamsUseIsFreeWhenTheyAreDone) {
  EXPECT_TRUE(Allocate(0, 20 * kMiB));
  allocator_->FreeWhenAwaited(0);
  EXPECT_EQ(allocator_->allocated(), 0u);
  Calls();
  EXPECT_TRUE(Allocate(1, 20 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(20));
  allocator_->Complete(0);
  EXPECT_TRUE(Allocate(2, 20 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre());
}

TEST_F(CachingAllocatorTest, FullDeviceReleasesTheCacheAndRetries) {
  Use("", 100 * kMiB);
  EXPECT_TRUE(Allocate(0, 60 * kMiB));
  allocator_->Free(0);
  EXPECT_TRUE(Allocate(1, 80 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(60, -60, 80));
  EXPECT_EQ(allocator_->retries(), 1u);
  EXPECT_FALSE(Allocate(2, 30 * kMiB));
  EXPECT_EQ(allocator_->failures(), 1u);
  allocator_->SetOutside(0);
  EXPECT_TRUE(Allocate(3, 20 * kMiB));
  allocator_->Free(2);  // failed: nothing to free
}

TEST_F(CachingAllocatorTest, EmptyCacheKeepsSegmentsWithBlocks) {
  EXPECT_TRUE(Allocate(0, 5 * kMiB));
  EXPECT_TRUE(Allocate(1, 30 * kMiB));
  EXPECT_TRUE(Allocate(2, 40 * kMiB));
  allocator_->Free(1);
  allocator_->FreeWhenAwaited(2);
  Calls();
  allocator_->EmptyCache();
  EXPECT_THAT(Calls(), testing::UnorderedElementsAre(-30, -40));
  EXPECT_EQ(allocator_->reserved(), 20 * kMiB);
  allocator_->Complete(2);  // already free
}

// The figures are of PyTorch 2.6 itself.
TEST_F(CachingAllocatorTest, ExpandableSegmentsGrowAndShrinkByPages) {
  Use("expandable_segments:True");
  EXPECT_TRUE(Allocate(0, 30 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(20, 20));
  EXPECT_TRUE(Allocate(1, 50 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(20, 20));
  allocator_->Free(0);
  allocator_->EmptyCache();
  EXPECT_THAT(Calls(), ElementsAre(-20));
  EXPECT_TRUE(Allocate(2, 20 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(20));
}

TEST_F(CachingAllocatorTest, ExpandableSegmentFillsItsHoles) {
  Use("expandable_segments:True", 200 * kMiB);
  for (uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(Allocate(i, 20 * kMiB));
  for (uint32_t i = 0; i < 10; i += 2) allocator_->Free(i);
  EXPECT_TRUE(Allocate(10, 100 * kMiB));  // the pages of the holes, at other addresses
  EXPECT_EQ(allocator_->retries(), 1u);
  EXPECT_EQ(allocator_->reserved(), 200 * kMiB);
}

TEST_F(CachingAllocatorTest, BlocksAboveTheSplitLimitAreNotSplit) {
  Use("max_split_size_mb:64");
  EXPECT_TRUE(Allocate(0, 100 * kMiB));
  allocator_->Free(0);
  Calls();
  EXPECT_TRUE(Allocate(1, 40 * kMiB));  // may not use the block of 100 MiB
  EXPECT_THAT(Calls(), ElementsAre(40));
  EXPECT_TRUE(Allocate(2, 90 * kMiB));  // may: less than 20 MiB are wasted
  EXPECT_THAT(Calls(), ElementsAre());
  EXPECT_EQ(allocator_->allocated(), 140 * kMiB);
}

TEST_F(CachingAllocatorTest, PartOfASegmentIsNotReleasedForAnOversizeRequest) {
  Use("max_split_size_mb:32", 110 * kMiB);
  allocator_->AddSegment({0, 0}, false, false, {{30 * kMiB, 7u}, {70 * kMiB, std::nullopt}});
  EXPECT_FALSE(Allocate(0, 40 * kMiB));
  EXPECT_EQ(allocator_->reserved(), 100 * kMiB);

  Use("large_segment_size_mb:128,max_split_size_mb:32", 160 * kMiB);
  EXPECT_TRUE(Allocate(0, 5 * kMiB));
  EXPECT_FALSE(Allocate(1, 5 * kMiB));  // what is left may not be split
  EXPECT_EQ(allocator_->reserved(), 128 * kMiB);
}

TEST_F(CachingAllocatorTest, OversizeRequestReleasesWholeSegmentsBehindPartsOfOthers) {
  const std::vector<CachingAllocator::Piece> split = {{30 * kMiB, 7u}, {70 * kMiB, std::nullopt}};
  Use("max_split_size_mb:32", 190 * kMiB);
  allocator_->AddSegment({0, 0}, false, false, split);
  allocator_->AddSegment({0, 0}, false, false, {{80 * kMiB, std::nullopt}});
  EXPECT_TRUE(Allocate(0, 40 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(-80, 40));
  EXPECT_EQ(allocator_->retries(), 0u);

  Use("max_split_size_mb:32", 180 * kMiB);
  allocator_->AddSegment({0, 0}, false, false, split);
  for (uint64_t mib : {36, 34})
    allocator_->AddSegment({0, 0}, false, false, {{mib * kMiB, std::nullopt}});
  EXPECT_TRUE(Allocate(0, 48 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(-36, -34, 48));
  EXPECT_EQ(allocator_->retries(), 0u);
}

TEST_F(CachingAllocatorTest, FractionLimitsWhatIsReserved) {
  Use("per_process_memory_fraction:0.5", AllocatorSettings::kUnlimited, 200 * kMiB);
  EXPECT_TRUE(Allocate(0, 80 * kMiB));
  EXPECT_FALSE(Allocate(1, 30 * kMiB));
}

TEST_F(CachingAllocatorTest, GarbageCollectionReleasesWhatIsUnusedLongest) {
  Use("per_process_memory_fraction:0.5,garbage_collection_threshold:0.6",
      AllocatorSettings::kUnlimited, 200 * kMiB);
  EXPECT_TRUE(Allocate(0, 40 * kMiB));
  allocator_->Free(0);
  for (uint32_t i = 1; i < 9; ++i) {
    EXPECT_TRUE(Allocate(i, 1 * kMiB, 1));
    allocator_->Free(i);
  }
  EXPECT_TRUE(Allocate(9, 30 * kMiB, 1));
  allocator_->Free(9);
  Calls();
  EXPECT_TRUE(Allocate(10, 24 * kMiB, 2));  // above 60 MiB: the block of 40 MiB is the oldest
  EXPECT_THAT(Calls(), ElementsAre(-40, 24));
}

TEST_F(CachingAllocatorTest, SegmentsFromBeforeAreUsed) {
  allocator_->AddSegment({0, 0}, false, false,
                         {{10 * kMiB, 7u}, {30 * kMiB, std::nullopt}, {8 * kMiB, 8u, true}});
  EXPECT_EQ(allocator_->reserved(), 48 * kMiB);
  EXPECT_EQ(allocator_->allocated(), 10 * kMiB);
  EXPECT_TRUE(Allocate(1, 30 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre());
  allocator_->Free(1);
  allocator_->Complete(8);
  EXPECT_TRUE(Allocate(2, 38 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre());
}

TEST_F(CachingAllocatorTest, ExpandableSegmentFromBeforeGrows) {
  Use("expandable_segments:True");
  allocator_->AddSegment({0, 0}, false, true, {{30 * kMiB, 7u}, {30 * kMiB, std::nullopt}});
  EXPECT_TRUE(Allocate(0, 50 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(20));
  EXPECT_EQ(allocator_->reserved(), 80 * kMiB);

  Use("");  // nothing maps pages: a segment of its own
  allocator_->AddSegment({0, 0}, false, true, {{30 * kMiB, 7u}, {30 * kMiB, std::nullopt}});
  EXPECT_TRUE(Allocate(0, 50 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre(50));
}

TEST_F(CachingAllocatorTest, AmongEqualFreeBlocksTheRecordedAddressesOfSegmentsDecide) {
  const CachingAllocator::SegmentAddresses descending = {{20 * kMiB, {2 * kGiB, 1 * kGiB}}};
  for (const bool is_descending : {false, true}) {
    Use("");
    if (is_descending) allocator_->SetAddresses(descending);
    for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(Allocate(i, 9 * kMiB));
    EXPECT_THAT(Calls(), ElementsAre(20, 20));
    allocator_->Free(0);
    allocator_->Free(2);
    EXPECT_TRUE(Allocate(4, 9 * kMiB));
    allocator_->Free(1);  // this empties the first segment if block 4 is in the second one
    EXPECT_TRUE(Allocate(5, 15 * kMiB));
    EXPECT_EQ(Calls().size(), is_descending ? 0 : 1);
  }
}

TEST_F(CachingAllocatorTest, FurtherSegmentsAreAboveTheRecordedOnes) {
  const CachingAllocator::SegmentAddresses high = {{20 * kMiB, {uint64_t{1} << 50}}};
  allocator_->SetAddresses(high);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(Allocate(i, 9 * kMiB));
  allocator_->Free(0);
  allocator_->Free(2);
  EXPECT_TRUE(Allocate(4, 9 * kMiB));
  allocator_->Free(3);  // empties the second segment
  Calls();
  EXPECT_TRUE(Allocate(5, 15 * kMiB));
  EXPECT_THAT(Calls(), ElementsAre());
}

// Under any settings: what is allocated never exceeds what is reserved, a failed request changes
// nothing, and after everything is freed the cache can be emptied to nothing.
TEST_F(CachingAllocatorTest, RandomRequestsLeaveNothingBehind) {
  for (const char* settings :
       {"", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4",
        "large_segment_size_mb:80,max_split_size_mb:32",
        "large_segment_size_mb:40,expandable_segments:True",
        "per_process_memory_fraction:0.9,garbage_collection_threshold:0.5",
        "max_split_size_mb:32,per_process_memory_fraction:0.9,garbage_collection_threshold:0.5"}) {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(std::string(settings) + ", seed " + std::to_string(seed));
      Use(settings, kGiB, kGiB);
      std::mt19937 random(seed);
      std::map<uint32_t, uint64_t> live = {{2000, 30 * kMiB}};
      std::vector<uint32_t> awaited = {2001};
      uint64_t requested = live[2000];
      // From before the first request, under other settings; whole pages of 20, 40 and 80 MiB.
      allocator_->AddSegment({0, 0}, false, seed % 2 == 0,
                             {{30 * kMiB, 2000u},
                              {98 * kMiB, std::nullopt},
                              {3 * kMiB, 2001u, true},
                              {189 * kMiB, std::nullopt}});
      for (uint32_t i = 0; i < 2000; ++i) {
        const uint32_t choice = random() % 100;
        if (choice < 55) {
          const uint64_t bytes =
              1 + (random() % 3 == 0 ? random() % (80 * kMiB) : random() % (2 * kMiB));
          const uint64_t before = allocator_->allocated();
          if (Allocate(i, bytes, random() % 2)) {
            live[i] = bytes;
            requested += bytes;
          } else {
            EXPECT_EQ(allocator_->allocated(), before);
          }
        } else if (choice < 98 && !live.empty()) {
          auto it = std::next(live.begin(), random() % live.size());
          requested -= it->second;
          if (choice < 65) {
            allocator_->FreeWhenAwaited(it->first);
            awaited.push_back(it->first);
          } else {
            allocator_->Free(it->first);
          }
          live.erase(it);
        } else if (choice == 98) {
          for (uint32_t allocation : awaited) allocator_->Complete(allocation);
          awaited.clear();
        } else if (choice == 99) {
          allocator_->EmptyCache();
        }
        ASSERT_LE(requested, allocator_->allocated());
        ASSERT_LE(allocator_->allocated(), allocator_->reserved());
        ASSERT_LE(allocator_->reserved(), kGiB);
      }
      for (const auto& [allocation, bytes] : live) allocator_->Free(allocation);
      EXPECT_EQ(allocator_->allocated(), 0u);
      allocator_->EmptyCache();
      EXPECT_EQ(allocator_->reserved(), 0u);
    }
  }
}

TEST(AllocatorSettingsTest, SizesAreRoundedAsPyTorchDoes) {
  AllocatorSettings settings;
  EXPECT_EQ(settings.BlockBytes(1), 512u);
  EXPECT_EQ(settings.BlockBytes(513), 1024u);
  EXPECT_EQ(settings.BlockBytes(3 * kMiB + 1), 3 * kMiB + 512);
  settings = With("roundup_power2_divisions:4");
  EXPECT_EQ(settings.BlockBytes(1200), 1536u);  // too small to be divided
  EXPECT_EQ(settings.BlockBytes(5 * kMiB + 1), 6 * kMiB);
  EXPECT_EQ(settings.BlockBytes(8 * kMiB), 8 * kMiB);
  settings = With("roundup_power2_divisions:[4:2,8:8,>:1]");
  EXPECT_EQ(settings.BlockBytes(5 * kMiB), 6 * kMiB);
  EXPECT_EQ(settings.BlockBytes(3 * kMiB), 3 * kMiB);
  EXPECT_EQ(settings.BlockBytes(9 * kMiB + 1), 10 * kMiB);
  EXPECT_EQ(settings.BlockBytes(17 * kMiB + 1), 17 * kMiB + 512);
}

// The values are those of PyTorch 2.9, 2.10 and 2.11.
TEST(AllocatorSettingsTest, LastDivisionsBeginBehindTheLastListedSizeSince210) {
  constexpr char kText[] = "[256:1,512:2,>:8]";
  for (const std::optional<TorchVersion> torch :
       {std::optional<TorchVersion>(), std::optional(TorchVersion{2, 9}),
        std::optional(TorchVersion{2, 10}), std::optional(TorchVersion{2, 11})}) {
    const bool is_older = torch == TorchVersion{2, 9};
    RoundupDivisions divisions;
    ASSERT_TRUE(ReadRoundupDivisions(kText, torch, &divisions));
    EXPECT_THAT(divisions,
                ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, is_older ? 8 : 2, 8, 8, 8, 8, 8, 8));
    AllocatorSettings settings;
    ASSERT_TRUE(settings.Change("roundup_power2_divisions:" + std::string(kText), torch).ok());
    EXPECT_EQ(settings.roundup_divisions, divisions);
  }
  RoundupDivisions divisions = {4};
  for (const char* text : {"", "3", "[", "[]", "[3:1]", "[1:2:4]", "[>]", "[1:-2]"}) {
    EXPECT_FALSE(ReadRoundupDivisions(text, {}, &divisions)) << text;
    EXPECT_EQ(divisions, RoundupDivisions{4}) << text;
  }
}

TEST(AllocatorSettingsTest, TextIsReadAsTheSameSettings) {
  EXPECT_EQ(AllocatorSettings().Text(), "");
  EXPECT_EQ(With("max_split_size_mb:128,expandable_segments:True").Text(),
            "expandable_segments:True,max_split_size_mb:128");
  for (const char* text :
       {"roundup_power2_divisions:8", "roundup_power2_divisions:[256:1,512:2,>:4]",
        "large_segment_size_mb:64,max_non_split_rounding_mb:40",
        "garbage_collection_threshold:0.65,per_process_memory_fraction:0.9"}) {
    EXPECT_EQ(With(With(text).Text()), With(text)) << text;
  }
}

TEST(AllocatorSettingsTest, OptionsCameWithReleases) {
  EXPECT_EQ(ParseTorchVersion("2.11.0+cu130"), (TorchVersion{2, 11}));
  EXPECT_EQ(ParseTorchVersion("2.6"), (TorchVersion{2, 6}));
  for (const char* text : {"", "2", "2.", ".6", "v2.6", "two.six", "99999999999.1"})
    EXPECT_EQ(ParseTorchVersion(text), std::nullopt) << text;
  EXPECT_LT((TorchVersion{2, 9}), (TorchVersion{2, 10}));
  EXPECT_EQ(FirstWithOption("expandable_segments"), std::nullopt);
  EXPECT_EQ(FirstWithOption("large_segment_size_mb"), (TorchVersion{2, 11}));
}

// Tried with PyTorch 2.9, 2.10 and 2.11.
TEST(AllocatorSettingsTest, OneVariableConfiguresTheAllocator) {
  const NamedText of_cuda{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"};
  const NamedText empty{"PYTORCH_CUDA_ALLOC_CONF", ""};
  const NamedText common{"PYTORCH_ALLOC_CONF", "expandable_segments:True"};
  const auto text = [](const std::vector<NamedText>& settings, std::optional<TorchVersion> torch) {
    const NamedText* variable = AllocatorVariable(settings, torch);
    return variable == nullptr ? "none" : variable->text;
  };
  for (const std::optional<TorchVersion> torch :
       {std::optional<TorchVersion>(), std::optional(TorchVersion{2, 10})}) {
    EXPECT_EQ(text({common, of_cuda}, torch), of_cuda.text);
    EXPECT_EQ(text({common, empty}, torch), "");
    EXPECT_EQ(text({common}, torch), common.text);
    EXPECT_EQ(text({}, torch), "none");
  }
  EXPECT_EQ(text({common, of_cuda}, TorchVersion{2, 9}), of_cuda.text);
  EXPECT_EQ(text({common}, TorchVersion{2, 9}), "none");
  EXPECT_EQ(TorchVersionOf({{"cuda", "13.0"}, {"torch", "2.9.1+cu128"}}), (TorchVersion{2, 9}));
  EXPECT_EQ(TorchVersionOf({}), std::nullopt);
}

// Tried with PyTorch 2.11.
TEST(AllocatorSettingsTest, LimitsOfValuesAreThoseOfPyTorch) {
  EXPECT_EQ(With("max_split_size_mb:20").max_split_bytes, 20 * kMiB);
  EXPECT_EQ(With("max_non_split_rounding_mb:20"), AllocatorSettings());
  EXPECT_EQ(With("large_segment_size_mb:11").large_segment_bytes, 11 * kMiB);
  EXPECT_EQ(With("garbage_collection_threshold:0.99").gc_threshold, 0.99);
  EXPECT_EQ(With("per_process_memory_fraction:1.0"), AllocatorSettings());
}

TEST(AllocatorSettingsTest, RefusesWhatPyTorchRefuses) {
  for (const char* text :
       {"expandable_segments", "expandable_segments:true", "max_split_size_mb:19",
        "max_non_split_rounding_mb:19", "large_segment_size_mb:10",
        "garbage_collection_threshold:1.0", "garbage_collection_threshold:0",
        "max_split_size_mb:many", "no_such_option:1", "per_process_memory_fraction:1.5",
        "roundup_power2_divisions:3", "roundup_power2_divisions:[256:1,512:3]",
        "backend:cudaMallocAsync"}) {
    AllocatorSettings settings;
    EXPECT_FALSE(settings.Change(text).ok()) << text;
    EXPECT_EQ(settings, AllocatorSettings()) << text;
  }
}

}  // namespace
}  // namespace gmt::analysis
