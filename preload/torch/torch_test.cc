// Tests what is recorded of PyTorch, with fake libraries that call each other as PyTorch's do. The
// real ones are tested in tests/e2e/torch.

#include <memory>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "preload/testing/traced_program.h"
#include "preload/torch/state/forward_stacks.h"
#include "preload/torch/state/known_layouts.h"
#include "preload/torch/state/open_ranges.h"
#include "preload/torch/state/tensor_layout.h"
#include "preload/torch/state/tensor_memory.h"
#include "session/arena_reader.h"
#include "session/testing/session_fixture.h"
#include "tests/seeds/seeds.h"

namespace gmt::preload {
namespace {

using session::Kind;
using session::Memory;
using session::Record;
using session::Space;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

class TorchTest : public testing::Test {
 protected:
  LeftSession Train(const std::string& what, const std::string& options = "") {
    outcome_ = traced_.Run({GMT_TEST_PROGRAMS "/fake_training", GMT_FAKE_TORCH, what}, options);
    EXPECT_EQ(outcome_.exit_code, 0) << outcome_.out << outcome_.err;
    return traced_.ReadSession();
  }

  TracedProgram traced_;
  Outcome outcome_;
};

std::vector<Record> OfKind(const LeftSession& session, Kind kind) {
  std::vector<Record> found;
  for (const Record& r : session.records) {
    if (r.kind == kind) found.push_back(r);
  }
  return found;
}

TEST_F(TorchTest, BlocksAreRecordedAsTheAllocatorReportsThem) {
  const LeftSession session = Train("blocks");
  const auto allocs = OfKind(session, Kind::kAlloc);
  ASSERT_THAT(allocs, SizeIs(2)) << "host memory does not belong to the caching allocator";
  EXPECT_THAT(allocs, Each(Field(&Record::memory, Memory::kBlock)));
  EXPECT_THAT(allocs, Each(Field(&Record::space, Space::kBlock)));
  EXPECT_EQ(allocs[0].value, 0x7000'0000'0000u);
  EXPECT_EQ(allocs[0].size, 1024u);
  EXPECT_EQ(allocs[0].device, 1);
  EXPECT_EQ(allocs[0].total_allocated, 1024u);
  EXPECT_EQ(allocs[0].total_reserved, 2u << 20);
  EXPECT_NE(allocs[0].stack, 0u);
  EXPECT_EQ(allocs[1].total_allocated, 1536u);
  const auto frees = OfKind(session, Kind::kFree);
  ASSERT_THAT(frees, SizeIs(1));
  EXPECT_EQ(frees[0].value, allocs[0].value);
  EXPECT_EQ(frees[0].size, 1024u);
  EXPECT_EQ(frees[0].total_allocated, 512u);
  ASSERT_THAT(session.live, SizeIs(1));
  EXPECT_EQ(session.live[0].value, allocs[1].value);
}

TEST_F(TorchTest, BlockHasTheCurrentStream) {
  const auto allocs = OfKind(Train("blocks"), Kind::kAlloc);
  ASSERT_THAT(allocs, SizeIs(2));
  EXPECT_EQ(allocs[0].stream, 0u);
  EXPECT_EQ(allocs[1].stream, 0x3000u);
}

TEST_F(TorchTest, OutOfMemoryIsRecordedWithTheRequestedSize) {
  const auto failed = OfKind(Train("blocks"), Kind::kAllocFailed);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].memory, Memory::kBlock);
  EXPECT_EQ(failed[0].size, 1u << 30);
  EXPECT_EQ(failed[0].total_allocated, 512u);
  EXPECT_NE(failed[0].stack, 0u);
}

TEST_F(TorchTest, PytorchsOwnFunctionsAreStillCalled) {
  Train("blocks");
  EXPECT_EQ(outcome_.out, "5 reports, 1 lacks of memory\n");
  const Outcome plain =
      traced_.RunPlain({GMT_TEST_PROGRAMS "/fake_training", GMT_FAKE_TORCH, "blocks"});
  EXPECT_EQ(plain.out, outcome_.out);
}

TEST_F(TorchTest, BlocksAreLeftOutIfNotRequested) {
  EXPECT_THAT(Train("blocks", "heap=driver").records, IsEmpty());
  EXPECT_EQ(outcome_.out, "5 reports, 1 lacks of memory\n");
}

// ---- Roles of tensors ---------------------------------------------------------------------------

TEST_F(TorchTest, BlockHasTheLayoutOfItsTensor) {
  const LeftSession session = Train("roles");
  const auto allocs = OfKind(session, Kind::kAlloc);
  ASSERT_THAT(allocs, testing::Not(IsEmpty()));
  EXPECT_NE(allocs[0].layout, 0u);
  EXPECT_EQ(allocs[0].size, 512u);
  EXPECT_NE(allocs[1].layout, allocs[0].layout) << "a batch has a different layout than a weight";
}

TEST_F(TorchTest, RolesAreRecordedAsTheyChange) {
  const LeftSession session = Train("roles");
  const auto allocs = OfKind(session, Kind::kAlloc);
  std::vector<std::pair<uint64_t, uint64_t>> changes;  // address, roles
  for (const Record& r : OfKind(session, Kind::kRole)) changes.emplace_back(r.value, r.size);
  // The weight; in each step its batch, then a block allocated by the node, then the gradient.
  const uint64_t weight = allocs[0].value;
  std::vector<std::pair<uint64_t, uint64_t>> wanted = {
      {weight, session::kParameter}, {weight, session::kParameter | session::kExpectsGradient}};
  for (size_t step = 0; step < 3; ++step) {
    const uint64_t batch = allocs[1 + 3 * step].value, gradient = allocs[3 + 3 * step].value;
    wanted.emplace_back(batch, session::kSaved);
    wanted.emplace_back(batch, 0);
    if (step == 0) wanted.emplace_back(gradient, session::kGradient);
  }
  EXPECT_EQ(changes, wanted) << "a saved weight stays a parameter; a gradient that is added to an "
                                "earlier one is not recorded as a gradient";
}

TEST_F(TorchTest, NodeSavesAllItsTensorsAtOneTimeAndReleasesThemAtOneTime) {
  const auto roles = OfKind(Train("saves"), Kind::kRole);
  ASSERT_EQ(roles.size(), 12u) << "three nodes of two tensors";
  for (size_t i = 0; i < roles.size(); i += 2) {
    const uint64_t wanted = i % 4 == 0 ? uint64_t{session::kSaved} : 0;
    EXPECT_EQ(roles[i].size, wanted) << i;
    EXPECT_EQ(roles[i + 1].size, wanted) << i;
    EXPECT_NE(roles[i].value, roles[i + 1].value) << i;
    EXPECT_EQ(roles[i].time_ns, roles[i + 1].time_ns) << i;
    if (i > 0) {
      EXPECT_GE(roles[i].time_ns, roles[i - 1].time_ns) << i;
    }
  }
}

TEST_F(TorchTest, SavedBlockHasTheClassOfItsNodeAndTheStackOfTheForwardPass) {
  const LeftSession session = Train("roles");
  const auto roles = OfKind(session, Kind::kRole);
  ASSERT_GE(roles.size(), 4u);
  EXPECT_EQ(roles[0].stream, 0u) << "a parameter is saved by no node";
  EXPECT_NE(roles[2].stream, 0u);
  EXPECT_NE(roles[2].stack, 0u);
  EXPECT_EQ(roles[3].stream, 0u) << "released by no particular node";
}

TEST_F(TorchTest, TensorsAreNotRecordedIfNotRequested) {
  const LeftSession session = Train("roles", "roles=off");
  EXPECT_THAT(OfKind(session, Kind::kRole), IsEmpty());
  EXPECT_THAT(OfKind(session, Kind::kAlloc), Each(Field(&Record::layout, 0u)));
}

// ---- Where a tensor's memory is -----------------------------------------------------------------

// A TensorImpl that leads to its memory by two words, at other offsets than the fake PyTorch has.
class TensorMemoryTest : public testing::Test {
 protected:
  struct alignas(64) Object {
    uint64_t words[16] = {};
  };
  struct Tensor {
    Object tensor, storage;
  };
  static void Lead(Tensor* tensor, uint64_t address, size_t inner = 5) {
    tensor->tensor.words[3] = reinterpret_cast<uint64_t>(&tensor->storage);
    tensor->storage.words[inner] = address;
  }

  TensorMemory memory_{};
  Tensor first_, second_;
};

TEST_F(TensorMemoryTest, OffsetsAreLearntFromTheFirstTensor) {
  Lead(&first_, 0x700000001000);
  Lead(&second_, 0x700000002000);
  EXPECT_EQ(memory_.AddressOf(&first_), 0u) << "nothing is known yet";
  EXPECT_TRUE(memory_.See(&first_, 0x700000001000));
  EXPECT_TRUE(memory_.is_known());
  EXPECT_FALSE(memory_.See(&second_, 0x700000002000)) << "confirms them";
  EXPECT_EQ(memory_.AddressOf(&second_), 0x700000002000u);
  EXPECT_EQ(memory_.AddressOf(nullptr), 0u);
  second_.tensor.words[3] = 0;
  EXPECT_EQ(memory_.AddressOf(&second_), 0u) << "without storage, like a meta tensor";
}

TEST_F(TensorMemoryTest, TensorsThatDisagreeEndItForGood) {
  Lead(&first_, 0x700000001000);
  Lead(&second_, 0x700000002000, 6);
  memory_.See(&first_, 0x700000001000);
  EXPECT_TRUE(memory_.See(&second_, 0x700000002000));
  EXPECT_FALSE(memory_.is_known());
  EXPECT_EQ(memory_.AddressOf(&first_), 0u);
  EXPECT_FALSE(memory_.See(&first_, 0x700000001000));
  EXPECT_FALSE(memory_.is_known());
}

TEST_F(TensorMemoryTest, WordsThatAreNoPointersAreNotFollowed) {
  for (uint64_t& word : first_.tensor.words) word = 0x123456789008;
  EXPECT_TRUE(memory_.See(&first_, 0x700000001000)) << "it is settled that tensors cannot be read";
  EXPECT_FALSE(memory_.is_known());
}

// ---- Backward passes ----------------------------------------------------------------------------

size_t CommonEnd(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return n;
}

// Checks that each block of a backward pass belongs to the line of the model that allocated the
// same size.
void CheckForwardLines(const LeftSession& session, size_t first_known) {
  std::vector<size_t> forward, backward;  // indices into `records`
  for (size_t i = 0; i < session.records.size(); ++i) {
    const Record& r = session.records[i];
    if (r.kind != Kind::kAlloc || r.size == 12345) continue;
    (r.value < 0x700000000000 ? forward : backward).push_back(i);
  }
  ASSERT_EQ(forward.size(), 12u);
  ASSERT_EQ(backward.size(), 12u);
  for (size_t place : forward) EXPECT_EQ(session.records[place].forward_stack, 0u);
  for (size_t i = 0; i < backward.size(); ++i) {
    const Record& r = session.records[backward[i]];
    const std::vector<uint64_t>& line = session.forward_stacks[backward[i]];
    if (i < first_known) {
      EXPECT_EQ(r.forward_stack, 0u) << "the node layout is still being determined";
      continue;
    }
    for (size_t place : forward) {
      const bool is_own = session.records[place].size == r.size;
      const size_t common = CommonEnd(line, session.stacks[place]);
      // Except the innermost frames: the line's own calls of the two functions.
      EXPECT_EQ(common + 2 >= line.size(), is_own) << "line " << place << ", block " << i;
    }
  }
}

TEST_F(TorchTest, BlockOfABackwardPassHasTheStackOfItsForwardPass) {
  const LeftSession session = Train("backward");
  EXPECT_EQ(outcome_.out, "12 gradients\n25 reports, 0 lacks of memory\n");
  CheckForwardLines(session, 7);
}

TEST_F(TorchTest, NodesOfBothLayoutsAreRecognized) {
  setenv("FAKE_TORCH_NODES_ARE_SHORT", "1", 1);
  const LeftSession session = Train("backward");
  unsetenv("FAKE_TORCH_NODES_ARE_SHORT");
  CheckForwardLines(session, 7);
}

TEST_F(TorchTest, BackwardPassIsARange) {
  const LeftSession session = Train("backward");
  const auto begins = OfKind(session, Kind::kRangeBegin), ends = OfKind(session, Kind::kRangeEnd);
  ASSERT_THAT(begins, SizeIs(1));
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(begins[0].size, ends[0].size);
  EXPECT_EQ(begins[0].value, ends[0].value);
  EXPECT_NE(begins[0].stack, 0u);
}

TEST_F(TorchTest, ExceptionThatLeavesABackwardPassEndsIt) {
  const LeftSession session = Train("throwing");
  EXPECT_EQ(outcome_.out, "12 gradients\n-1 gradients\n43 reports, 0 lacks of memory\n");
  EXPECT_THAT(OfKind(session, Kind::kRangeBegin), SizeIs(2));
  const auto ends = OfKind(session, Kind::kRangeEnd);
  ASSERT_THAT(ends, SizeIs(2));
  const Record last = OfKind(session, Kind::kAlloc).back();
  ASSERT_EQ(last.size, 12345u);
  EXPECT_EQ(last.forward_stack, 0u) << "the backward pass was left by an exception";
  EXPECT_LT(ends[1].time_ns, last.time_ns);
}

TEST_F(TorchTest, OnlyUserRangesAreRecorded) {
  const LeftSession session = Train("ranges");
  const auto begins = OfKind(session, Kind::kRangeBegin), ends = OfKind(session, Kind::kRangeEnd);
  ASSERT_THAT(begins, SizeIs(1));
  ASSERT_THAT(ends, SizeIs(1)) << "an object may be ended twice";
  EXPECT_EQ(begins[0].size, ends[0].size);
  EXPECT_NE(begins[0].stack, 0u);
}

TEST_F(TorchTest, ConstructorOfAnOptimizerIsARange) {
  const LeftSession session = Train("optimizer");
  EXPECT_EQ(outcome_.out, "5 reports, 0 lacks of memory\n") << "PyTorch's own function is called";
  const auto begins = OfKind(session, Kind::kRangeBegin), ends = OfKind(session, Kind::kRangeEnd);
  ASSERT_THAT(begins, SizeIs(1)) << "of the other parts of PyTorch, nothing is recorded";
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_EQ(begins[0].size, ends[0].size);
  EXPECT_NE(begins[0].stack, 0u);
}

// ---- The underlying tables ----------------------------------------------------------------------

struct FakeNode {
  uint64_t words[8] = {};
};

FakeNode NodeAt(int number_place, int thread_place, uint64_t thread, uint64_t sequence) {
  FakeNode node;
  node.words[number_place / 8] = sequence;
  node.words[thread_place / 8] = thread;
  return node;
}

class ForwardStacksTest : public testing::Test {
 protected:
  ForwardStacks stacks_ = {};
};

TEST_F(ForwardStacksTest, NoStackIsFoundBeforeTheLayoutIsKnown) {
  stacks_.Remember(1, 10, 77);
  const FakeNode node = NodeAt(16, 40, 1, 10);
  EXPECT_EQ(stacks_.StackOf(&node), 0u);
}

TEST_F(ForwardStacksTest, EightConsecutiveNodesSettleTheLayout) {
  for (uint64_t n = 1; n <= 20; ++n) stacks_.Remember(1, n, static_cast<uint32_t>(100 + n));
  for (uint64_t n = 8; n > 0; --n) {
    EXPECT_FALSE(stacks_.is_known());
    const FakeNode node = NodeAt(16, 40, 1, n);
    EXPECT_EQ(stacks_.Learn(&node), n == 1);
  }
  const FakeNode node = NodeAt(16, 40, 1, 15);
  EXPECT_EQ(stacks_.StackOf(&node), 115u);
}

// The node also contains the same thread, and words that are numbers of other nodes.
TEST_F(ForwardStacksTest, OtherWordsOfANodeAreNotTakenForItsNumber) {
  for (uint64_t n = 0; n <= 64; ++n) stacks_.Remember(1, n, static_cast<uint32_t>(100 + n));
  for (uint64_t n = 48; n > 40; --n) {
    FakeNode node = NodeAt(24, 48, 1, n);
    node.words[1] = 2;            // a reference count
    node.words[2] = 3 + (n & 1);  // a word that changes
    node.words[4] = n - 20;       // its distance from the leaves
    stacks_.Learn(&node);
  }
  ASSERT_TRUE(stacks_.is_known());
  const FakeNode node = NodeAt(24, 48, 1, 33);
  EXPECT_EQ(stacks_.StackOf(&node), 133u);
}

TEST_F(ForwardStacksTest, LeavesWithoutANumberDoNotCount) {
  for (uint64_t n = 0; n <= 20; ++n) stacks_.Remember(3, n, 5);
  for (uint64_t n = 8; n > 0; --n) {
    EXPECT_FALSE(stacks_.is_known());
    const FakeNode leaf = NodeAt(24, 48, 3, ~uint64_t{0});  // 0 at all other places
    stacks_.Learn(&leaf);
    const FakeNode node = NodeAt(24, 48, 3, n);
    stacks_.Learn(&node);
  }
  EXPECT_TRUE(stacks_.is_known());
}

TEST_F(ForwardStacksTest, UnknownNodeRestartsTheCount) {
  for (uint64_t n = 1; n <= 20; ++n) stacks_.Remember(1, n, 5);
  for (uint64_t n = 20; n > 13; --n) {
    const FakeNode node = NodeAt(16, 40, 1, n);
    stacks_.Learn(&node);
  }
  const FakeNode unknown = NodeAt(16, 40, 1, 1000);
  stacks_.Learn(&unknown);
  const FakeNode node = NodeAt(16, 40, 1, 8);
  EXPECT_FALSE(stacks_.Learn(&node));
  EXPECT_FALSE(stacks_.is_known());
}

TEST_F(ForwardStacksTest, LearningStopsIfNoLayoutFits) {
  stacks_.Remember(1, 10, 77);
  const FakeNode node = NodeAt(16, 40, 2, 9);
  int settled = 0;
  for (int i = 0; i < 10000; ++i) settled += stacks_.Learn(&node) ? 1 : 0;
  EXPECT_EQ(settled, 1);
  EXPECT_FALSE(stacks_.is_known());
}

TEST_F(ForwardStacksTest, OverwrittenNumberFindsNothing) {
  for (uint64_t n = 1; n <= 8; ++n) {
    stacks_.Remember(1, n, 5);
    const FakeNode node = NodeAt(16, 40, 1, n);
    stacks_.Learn(&node);
  }
  ASSERT_TRUE(stacks_.is_known());
  stacks_.Remember(1, 100, 6);
  stacks_.Remember(1, 100 + (1 << 18), 7);
  const FakeNode old = NodeAt(16, 40, 1, 100), young = NodeAt(16, 40, 1, 100 + (1 << 18));
  EXPECT_EQ(stacks_.StackOf(&old), 0u);
  EXPECT_EQ(stacks_.StackOf(&young), 7u);
}

TEST(OpenRangesTest, ObjectCanBeRemovedOnce) {
  OpenRanges ranges = {};
  EXPECT_FALSE(ranges.Holds(0x1000));
  EXPECT_TRUE(ranges.Add(0x1000, 7));
  EXPECT_TRUE(ranges.Add(0x2000, 8));
  EXPECT_TRUE(ranges.Holds(0x1000));
  EXPECT_EQ(ranges.Remove(0x1000), 7u);
  EXPECT_EQ(ranges.Remove(0x1000), 0u);
  EXPECT_FALSE(ranges.Holds(0x1000));
  EXPECT_TRUE(ranges.Holds(0x2000));
  EXPECT_EQ(ranges.Remove(0x2000), 8u);
}

TEST(OpenRangesTest, FullSetAcceptsNoMore) {
  OpenRanges ranges = {};
  uint64_t taken = 0;
  while (ranges.Add(0x1000 + 16 * taken, taken + 1)) ++taken;
  EXPECT_GE(taken, 16u);
  EXPECT_EQ(ranges.Remove(0x1000), 1u);
  EXPECT_TRUE(ranges.Add(0x9000, 99));
}

// Returns what a session has about such a tensor; empty if the tensor has no bytes.
std::string Described(const TensorRequest& request) {
  session::TensorLayout layout;
  if (!DescribeTensor(request, &layout)) return "";
  return {reinterpret_cast<const char*>(&layout), sizeof(layout)};
}

TEST(KnownLayoutsTest, EachRequestHasItsOwnLayoutHoweverTheyAlternate) {
  session::SessionSizes sizes_with_room = session::SmallSizes();
  sizes_with_room.arena = sizes_with_room.text_index = 1 << 16;
  ForEachSeed(SeedsUpTo(20), [&](uint32_t seed) {
    const session::ScratchSession session(sizes_with_room);
    const session::TextTable texts = session.map().texts();
    KnownLayouts known = {};
    std::mt19937 random(seed);
    const auto pick = [&random](int64_t last) {
      return std::uniform_int_distribution<int64_t>(0, last)(random);
    };
    for (int i = 0; i < 300; ++i) {
      int64_t sizes[7], strides[7];
      for (int64_t& size : sizes) size = pick(20) == 0 ? 0 : 1 + pick(2);
      for (int64_t& stride : strides) stride = pick(2);
      const TensorRequest request = {static_cast<int8_t>(6 + pick(1)), sizes,
                                     pick(1) == 0 ? strides : nullptr,
                                     static_cast<uint64_t>(pick(7))};
      const std::string described = Described(request);
      for (int again = 0; again < 2; ++again) {
        const KnownLayouts::Known* found = known.Find(request, 1);
        const KnownLayouts::Known layout = found != nullptr ? *found : known.Add(request, 1, texts);
        ASSERT_EQ(layout.bytes == 0, described.empty());
        if (layout.bytes == 0) continue;
        ASSERT_EQ(session::ReadText(session.map(), layout.text), described);
      }
    }
  });
}

TEST(KnownLayoutsTest, PoolHasATableForEachOfTheFirstThreads) {
  const auto pool = std::make_unique<KnownLayoutsPool>();
  std::set<KnownLayouts*> taken;
  while (KnownLayouts* layouts = pool->Take()) taken.insert(layouts);
  EXPECT_THAT(taken, SizeIs(32));
  EXPECT_EQ(pool->Take(), nullptr);
}

TEST(KnownLayoutsTest, IsFoundAgainInTheSameRecordingOnly) {
  const session::ScratchSession session(session::SmallSizes());
  KnownLayouts known = {};
  const int64_t sizes[] = {3, 7};
  const TensorRequest request = {/*dtype=float*/ 6, sizes, nullptr, 2};
  EXPECT_EQ(known.Find(request, 1), nullptr);
  const uint32_t text = known.Add(request, 1, session.map().texts()).text;
  ASSERT_NE(known.Find(request, 1), nullptr);
  EXPECT_EQ(known.Find(request, 1)->text, text);
  EXPECT_EQ(known.Find(request, 2), nullptr);
}

}  // namespace
}  // namespace gmt::preload
