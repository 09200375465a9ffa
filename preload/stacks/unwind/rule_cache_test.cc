#include "preload/stacks/unwind/rule_cache.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "preload/stacks/unwind/loaded_module.h"
#include "tests/seeds/seeds.h"

namespace gmt::preload {
namespace {

// In these tests, the rule stored for an address is derived from the address and the epoch, so that
// every result can be checked.
Rule RuleFor(uint64_t behind, uint64_t epoch) {
  const uint64_t number = (behind ^ epoch) * 0xbf58476d1ce4e5b9;
  return Rule::At(Rule::kPlain, (number & 1) != 0, static_cast<int64_t>(number >> 8 & 0xffff) * 8,
                  0)
      .WithBpAtCfa(-static_cast<int64_t>(number >> 32 & 0xff) * 8);
}

TEST(RuleCacheTest, RemembersRules) {
  const uint64_t epoch = RuleCache::Epoch();
  const Rule rule = RuleFor(0x7f0012345678, epoch);
  RuleCache::Remember(0x7f0012345678, epoch, rule);
  EXPECT_EQ(RuleCache::Recall(0x7f0012345678, epoch), rule);
  EXPECT_EQ(RuleCache::Find(0x7f0012345678, epoch), rule);
  EXPECT_EQ(RuleCache::Recall(0x7f0012345679, epoch).bits(), 0u);
}

TEST(RuleCacheTest, KeepsFourAddressesOfOneHome) {
  RulesChanged();
  const uint64_t epoch = RuleCache::Epoch();
  std::vector<uint64_t> same_home;
  for (uint64_t i = 0; i < 4; ++i) {  // differ only in bits that Home() folds together
    same_home.push_back(0x100000 ^ i << 32 ^ i << 17 ^ i << 2);
  }
  for (uint64_t address : same_home) RuleCache::Remember(address, epoch, RuleFor(address, epoch));
  for (uint64_t address : same_home) {
    EXPECT_EQ(RuleCache::Recall(address, epoch), RuleFor(address, epoch));
  }
}

TEST(RuleCacheTest, NewEpochForgetsEverything) {
  const uint64_t epoch = RuleCache::Epoch();
  for (uint64_t a = 0x5000; a < 0x6000; ++a) RuleCache::Remember(a, epoch, RuleFor(a, epoch));
  RulesChanged();
  EXPECT_NE(RuleCache::Epoch(), epoch);
  for (uint64_t a = 0x5000; a < 0x6000; ++a) {
    EXPECT_EQ(RuleCache::Recall(a, RuleCache::Epoch()).bits(), 0u);
  }
}

TEST(RuleCacheTest, UnfoundedDoubtForgetsNothing) {
  const uint64_t epoch = RuleCache::Epoch();
  RuleCache::Remember(0x777000, epoch, RuleFor(0x777000, epoch));
  {
    RulesInDoubt doubt;
    EXPECT_EQ(RuleCache::Recall(0x777000, RuleCache::Epoch()).bits(), 0u);
    doubt.NothingWasUnloaded();
  }
  EXPECT_EQ(RuleCache::Epoch(), epoch);
  EXPECT_EQ(RuleCache::Recall(0x777000, epoch), RuleFor(0x777000, epoch));
}

TEST(RuleCacheTest, ConfirmedDoubtForgetsEverything) {
  const uint64_t epoch = RuleCache::Epoch();
  RuleCache::Remember(0x777000, epoch, RuleFor(0x777000, epoch));
  { RulesInDoubt doubt; }
  EXPECT_EQ(RuleCache::Recall(0x777000, RuleCache::Epoch()).bits(), 0u);
}

TEST(RuleCacheTest, OverlappingDoubtsForgetEverything) {
  const uint64_t epoch = RuleCache::Epoch();
  auto first = std::make_unique<RulesInDoubt>();
  auto second = std::make_unique<RulesInDoubt>();
  first->NothingWasUnloaded();
  first.reset();
  second->NothingWasUnloaded();
  second.reset();
  EXPECT_NE(RuleCache::Epoch(), epoch);
}

TEST(RuleCacheTest, RulesFoundDuringADoubtAreNotKept) {
  const auto here = reinterpret_cast<uint64_t>(&RuleFor) + 1;
  PrepareModules();
  RulesChanged();
  {
    RulesInDoubt doubt;
    EXPECT_NE(RuleCache::Find(here, RuleCache::Epoch()).shape(), Rule::kNowhere);
    EXPECT_EQ(RuleCache::Recall(here, RuleCache::Epoch()).bits(), 0u);
  }
  RuleCache::Find(here, RuleCache::Epoch());
  EXPECT_NE(RuleCache::Recall(here, RuleCache::Epoch()).bits(), 0u);
}

TEST(RuleCacheTest, ForkChildDropsTheDoubtsOfOtherThreads) {
  const auto here = reinterpret_cast<uint64_t>(&RuleFor) + 1;
  PrepareModules();
  RulesInDoubt doubt;
  const pid_t child = fork();
  if (child == 0) {
    PrepareModules();
    RuleCache::Find(here, RuleCache::Epoch());
    _exit(RuleCache::Recall(here, RuleCache::Epoch()).bits() != 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Threads read and write the same few lines of the table while epochs change. Every result must be
// the rule stored for that very address in that very epoch.
TEST(RuleCacheTest, TornEntriesReadAsMisses) {
  ForEachSeed({1}, [](uint32_t seed) {
    constexpr int kThreads = 4, kRounds = 200000;
    std::atomic<uint64_t> wrong{0}, right{0}, nothing{0};
    const auto work = [&](unsigned number) {
      std::mt19937_64 random(seed + number);
      for (int i = 0; i < kRounds; ++i) {
        const uint64_t epoch = RuleCache::Epoch();
        // 4096 addresses in 64 slots: constant evictions.
        const uint64_t address = 0x7f0000000000 + (random() & 63) + ((random() & 63) << 33);
        if (random() % 4 == 0) {
          RuleCache::Remember(address, epoch, RuleFor(address, epoch));
        } else {
          const Rule rule = RuleCache::Recall(address, epoch);
          auto& count = rule.bits() == 0                  ? nothing
                        : rule == RuleFor(address, epoch) ? right
                                                          : wrong;
          count.fetch_add(1, std::memory_order_relaxed);
        }
        if (number == 0 && i % 1000 == 0) RulesChanged();
      }
    };
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < kThreads; ++n) threads.emplace_back(work, n);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_GT(right.load(), 1000u);
    EXPECT_GT(nothing.load(), 1000u);
  });
}

TEST(RuleTest, PreservesItsNumbers) {
  ForEachSeed({1}, [](uint32_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 10000; ++i) {
      const auto offset = static_cast<int64_t>(random() << 40) >> 40;
      const auto addend = static_cast<int64_t>(random() << 48) >> 48;
      const auto saved = static_cast<int64_t>(random() << 48) >> 48;
      const bool from_bp = (random() & 1) != 0;
      const Rule rule = Rule::At(Rule::kLoaded, from_bp, offset, addend).WithBpAtBp(saved);
      EXPECT_EQ(rule.shape(), Rule::kLoaded);
      EXPECT_EQ(rule.offset(), offset);
      EXPECT_EQ(rule.addend(), addend);
      EXPECT_EQ(rule.saved_at(), saved);
      EXPECT_EQ(rule.from_bp(), from_bp);
      EXPECT_TRUE(rule.bp_at_bp());
      EXPECT_FALSE(rule.bp_at_cfa());
      EXPECT_FALSE(rule.IsSimple());
    }
  });
}

TEST(RuleTest, NumbersThatDoNotFitMakeASlowRule) {
  EXPECT_EQ(Rule::At(Rule::kPlain, false, 1 << 23, 0).shape(), Rule::kSlow);
  EXPECT_EQ(Rule::At(Rule::kPlain, false, (1 << 23) - 1, 0).shape(), Rule::kPlain);
  EXPECT_EQ(Rule::At(Rule::kLoaded, false, 0, 1 << 15).shape(), Rule::kSlow);
  EXPECT_EQ(Rule::At(Rule::kPlain, false, 8, 0).WithBpAtCfa(-(1 << 15) - 1).shape(), Rule::kSlow);
}

}  // namespace
}  // namespace gmt::preload
