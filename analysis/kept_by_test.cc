#include "analysis/kept_by.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/event.h"

namespace gmt::analysis {
namespace {

using format::kRoleGradient;
using format::kRoleParameter;
using format::kRoleSaved;

Trace WithChanges(std::vector<RoleChange> changes) {
  Trace trace;
  trace.role_changes = std::move(changes);
  return trace;
}

TEST(KeptByTest, LastNodeThatSavedItAndTheirNumberAreKnown) {
  const Trace trace = WithChanges({{0, 1, kRoleSaved, 10, 100}, {0, 3, kRoleSaved, 11, 101}});
  const Keepers early = KeptBy(trace, 2).Of(0), late = KeptBy(trace, 3).Of(0);
  EXPECT_EQ(early.node, 100u);
  EXPECT_EQ(early.nodes, 1u);
  EXPECT_EQ(late.node, 101u);
  EXPECT_EQ(late.stack, 11u);
  EXPECT_EQ(late.nodes, 2u);
}

TEST(KeptByTest, WhatIsReleasedIsHeldByTheProgramAlone) {
  const Trace trace = WithChanges({{0, 1, kRoleSaved, 10, 100}, {0, 2, 0, 0, 0}});
  const KeptBy kept(trace, 5);
  EXPECT_TRUE(kept.is_known());
  EXPECT_EQ(kept.Of(0).roles, 0u);
  EXPECT_EQ(kept.Of(0).nodes, 0u);
  EXPECT_EQ(kept.Of(7).roles, 0u) << "nothing was said of it";
}

TEST(KeptByTest, NothingIsKnownOfARecordingWithoutRoles) {
  EXPECT_FALSE(KeptBy(Trace(), 5).is_known());
}

TEST(KeptSumsTest, MemoryOfOneKeeperIsOneSumAndMostBytesComeFirst) {
  KeptSums sums;
  sums.Add({kRoleParameter, 0, 0, 0}, 100);
  sums.Add({kRoleSaved, 1, 2, 1}, 500);
  sums.Add({kRoleSaved, 1, 2, 3}, 500);
  sums.Add({kRoleSaved, 1, 3, 1}, 10);
  sums.Add({kRoleGradient | kRoleSaved, 1, 2, 1}, 7);
  const std::vector<KeptMemory> sorted = sums.Sorted();
  ASSERT_EQ(sorted.size(), 4u);
  EXPECT_EQ(sorted[0].bytes, 1000u);
  EXPECT_EQ(sorted[0].count, 2u);
  EXPECT_EQ(sorted[0].keepers.nodes, 3u);
  EXPECT_EQ(sorted[1].keepers.roles, uint32_t{kRoleParameter});
}

}  // namespace
}  // namespace gmt::analysis
