// Tests NVTX state without a session. Programs that call NVTX are tested in tests/e2e/nvtx.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "preload/base/thread_state.h"
#include "preload/nvtx/message.h"
#include "preload/nvtx/tables.h"
#include "session/layout.h"

namespace gmt::preload {

namespace {

using testing::ElementsAre;

// ---- Handles ------------------------------------------------------------------------------------

class HandleMapTest : public testing::Test {
 protected:
  // nullopt: not in the map.
  std::optional<uint64_t> Find(uint64_t key) {
    uint64_t value;
    return map_.Find(key, &value) ? std::optional(value) : std::nullopt;
  }
  std::optional<uint64_t> Take(uint64_t key) {
    uint64_t value;
    return map_.Take(key, &value) ? std::optional(value) : std::nullopt;
  }

  HandleMap<64> map_ = {};
};

TEST_F(HandleMapTest, FindsWhatWasPut) {
  EXPECT_TRUE(map_.Put(7, 70));
  EXPECT_TRUE(map_.Put(0, 1));
  EXPECT_EQ(Find(7), 70);
  EXPECT_EQ(Find(0), 1);
  EXPECT_EQ(Find(8), std::nullopt);
}

TEST_F(HandleMapTest, LaterValueReplacesTheEarlierOne) {
  map_.Put(7, 70);
  map_.Put(7, 71);
  EXPECT_EQ(Take(7), 71);
  EXPECT_EQ(Take(7), std::nullopt);
}

TEST_F(HandleMapTest, FullMapAcceptsNoMoreAndLosesNothing) {
  uint64_t taken = 0;
  while (map_.Put(taken * 1000, taken)) ++taken;
  EXPECT_EQ(taken, 64u);
  for (uint64_t i = 0; i < taken; ++i) EXPECT_EQ(Find(i * 1000), i);
  EXPECT_EQ(Take(5000), 5);
  EXPECT_TRUE(map_.Put(77, 1));
}

TEST_F(HandleMapTest, KeysReservedForStatesAreRefused) {
  for (uint64_t key = ~uint64_t{0} - 2; key != 0; ++key) EXPECT_FALSE(map_.Put(key, 1)) << key;
}

TEST_F(HandleMapTest, ConcurrentThreadsDoNotInterfere) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 20000; ++i) {
        const uint64_t key = t << 32 | i % 12;
        map_.Put(key, i);
        wrong += Take(key) == i ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// ---- Names --------------------------------------------------------------------------------------

class NvtxNamesTest : public testing::Test {
 protected:
  NvtxName* Enter(std::string_view text) { return names_->Enter(text); }

  // All-zero bytes are no names.
  std::unique_ptr<NvtxNames> names_{new NvtxNames()};
};

TEST_F(NvtxNamesTest, EqualTextsAreOneName) {
  NvtxName* name = Enter("loader");
  EXPECT_EQ(Enter(std::string("loader")), name);
  EXPECT_NE(Enter("loade"), name);
  EXPECT_EQ(names_->TextOf(*name), "loader");
}

TEST_F(NvtxNamesTest, OwnHandlesAreDistinguishedFromOthers) {
  NvtxName* name = Enter("loader");
  EXPECT_TRUE(names_->Contains(name));
  EXPECT_FALSE(names_->Contains(reinterpret_cast<char*>(name) + 1));
  int other;
  EXPECT_FALSE(names_->Contains(&other));
}

TEST_F(NvtxNamesTest, NamesThatDoNotFitShareOneNameWithoutText) {
  NvtxName* refused = nullptr;
  int entered = 0;
  for (; refused == nullptr; ++entered) {
    NvtxName* name = Enter("name " + std::to_string(entered));
    if (names_->IsRefused(name)) refused = name;
  }
  EXPECT_GT(entered, 4000);
  EXPECT_TRUE(names_->Contains(refused));
  EXPECT_EQ(names_->TextOf(*refused), "");
  EXPECT_EQ(names_->TextOf(*Enter("name 0")), "name 0");
}

TEST_F(NvtxNamesTest, LongTextsFillTheRoomForTexts) {
  int entered = 0;
  while (!names_->IsRefused(Enter(std::to_string(entered) + std::string(2000, 'x')))) ++entered;
  EXPECT_EQ(entered, NvtxNames::kBytes / session::kMaxTextLength);
  EXPECT_FALSE(names_->IsRefused(Enter("")));
}

TEST_F(NvtxNamesTest, ConcurrentThreadsFindTheSameTexts) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const std::string text = "text " + std::to_string(i);
        wrong += names_->TextOf(*Enter(text)) == text ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// ---- Messages -----------------------------------------------------------------------------------

nvtxEventAttributes_t Attributes(int32_t type, nvtxMessageValue_t value) {
  nvtxEventAttributes_t a = {};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.messageType = type;
  a.message = value;
  return a;
}

TEST(NvtxMessageTest, WideCharactersBecomeUtf8) {
  EXPECT_EQ(NvtxMessage(L"a\u00e4\u20ac\U0001F600").text(), "aä€😀");
  const wchar_t lone_surrogate[] = {0xd800, 0x110000, 0};
  EXPECT_EQ(NvtxMessage(lone_surrogate).text(), "\ufffd\ufffd");
}

TEST(NvtxMessageTest, LongWideTextIsCutAtACharacterBoundary) {
  const std::wstring text(1000, L'\u20ac');
  const NvtxMessage message(text.c_str());
  EXPECT_EQ(message.text().size() % 3, 0u);
  EXPECT_GT(message.text().size(), 200u);
}

TEST(NvtxMessageTest, NullTextIsNoMessage) {
  EXPECT_EQ(NvtxMessage(static_cast<const char*>(nullptr)).text(), "");
  EXPECT_EQ(NvtxMessage(static_cast<const wchar_t*>(nullptr)).text(), "");
  EXPECT_EQ(NvtxMessage(static_cast<const nvtxEventAttributes_t*>(nullptr)).text(), "");
  const auto unknown = Attributes(99, {.ascii = "never read"});
  EXPECT_EQ(NvtxMessage(&unknown).text(), "");
}

TEST(NvtxMessageTest, AttributesThatAreTooSmallAreNotRead) {
  auto attributes = Attributes(NVTX_MESSAGE_TYPE_ASCII, {.ascii = "text"});
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = 0xff0000ff;
  EXPECT_EQ(NvtxMessage(&attributes).text(), "text");
  EXPECT_EQ(NvtxMessage(&attributes).color(), 0xff0000ffu);
  attributes.size = 8;
  EXPECT_EQ(NvtxMessage(&attributes).text(), "");
}

TEST(NvtxMessageTest, RegisteredStringIsFoundByItsHandle) {
  NvtxTables* tables = NvtxTables::Map();
  ASSERT_NE(tables, nullptr);
  NvtxName* name = tables->names.Enter("registered");
  const auto by_us =
      Attributes(NVTX_MESSAGE_TYPE_REGISTERED, {.registered = (nvtxStringHandle_t)name});
  EXPECT_EQ(NvtxMessage(&by_us).registered(), name);
  tables->strings.Put(0x1230, reinterpret_cast<uint64_t>(name));
  const auto by_others =
      Attributes(NVTX_MESSAGE_TYPE_REGISTERED, {.registered = (nvtxStringHandle_t)0x1230});
  EXPECT_EQ(NvtxMessage(&by_others).registered(), name);
  const auto by_nobody =
      Attributes(NVTX_MESSAGE_TYPE_REGISTERED, {.registered = (nvtxStringHandle_t)0x4560});
  EXPECT_EQ(NvtxMessage(&by_nobody).registered(), nullptr);
}

// ---- Ranges that nest ---------------------------------------------------------------------------

class PushStackTest : public testing::Test {
 protected:
  PushStackTest() { thread_state.push_stack = 0; }

  NvtxName domains_[2] = {};
  std::unique_ptr<PushStacks> stacks_{new PushStacks()};
};

TEST_F(PushStackTest, LevelsAreCountedPerDomain) {
  PushStack* stack = stacks_->Mine();
  stack->Push()->domain = nullptr;
  stack->Push()->domain = &domains_[0];
  stack->Push()->domain = nullptr;
  EXPECT_EQ(stack->LevelsOf(nullptr), 2);
  EXPECT_EQ(stack->LevelsOf(&domains_[0]), 1);
  EXPECT_EQ(stack->Innermost(&domains_[0]), 1u);
  EXPECT_EQ(stack->Innermost(&domains_[1]), PushStack::kDepth);
  stack->Remove(1);
  EXPECT_EQ(stack->Innermost(nullptr), 1u);
  EXPECT_EQ(stack->depth, 2u);
}

TEST_F(PushStackTest, FullStackCountsWhatItDoesNotKeep) {
  PushStack* stack = stacks_->Mine();
  for (uint32_t i = 0; i < PushStack::kDepth; ++i) ASSERT_NE(stack->Push(), nullptr);
  EXPECT_EQ(stack->Push(), nullptr);
  EXPECT_EQ(stack->beyond, 1u);
}

TEST_F(PushStackTest, EachThreadHasItsOwn) {
  PushStack* mine = stacks_->Mine();
  EXPECT_EQ(stacks_->Mine(), mine);
  std::thread([&] {
    EXPECT_EQ(stacks_->MineIfAny(), nullptr);
    EXPECT_NE(stacks_->Mine(), mine);
  }).join();
}

TEST_F(PushStackTest, StacksOfEndedThreadsAreReused) {
  PushStack* mine = stacks_->Mine();
  mine->Push();
  for (uint32_t i = 0; i < 2 * PushStacks::kThreads; ++i) {
    std::thread([&] {
      PushStack* stack = stacks_->Mine();
      ASSERT_NE(stack, nullptr);
      EXPECT_EQ(stack->depth, 0u);
      stack->Push();
    }).join();
  }
  EXPECT_EQ(stacks_->Mine(), mine);
  EXPECT_EQ(mine->depth, 1u);
}

// ---- Labels and heaps ---------------------------------------------------------------------------

TEST(NvtxLabelsTest, LabelsAreTakenOnceByTheProcessThatKeptThem) {
  const std::unique_ptr<NvtxLabels> labels(new NvtxLabels());
  NvtxName name = {};
  labels->Keep(Labelled::kStream, 5, &name, 100);
  labels->Keep(Labelled::kThread, 6, &name, 200);
  std::vector<uint64_t> numbers;
  const auto visit = [&](Labelled, uint64_t number, NvtxName*) { numbers.push_back(number); };
  labels->TakeAll(100, visit);
  labels->TakeAll(200, visit);
  EXPECT_THAT(numbers, ElementsAre(5));
}

TEST(NvtxLabelsTest, LabelsThatDoNotFitAreCounted) {
  const std::unique_ptr<NvtxLabels> labels(new NvtxLabels());
  NvtxName name = {};
  for (uint64_t i = 0; i < 300; ++i) labels->Keep(Labelled::kDevice, i, &name, 1);
  uint64_t taken = 0;
  labels->TakeAll(1, [&](Labelled, uint64_t number, NvtxName*) { EXPECT_EQ(number, taken++); });
  EXPECT_EQ(taken + labels->TakeRefused(), 300u);
  EXPECT_EQ(labels->TakeRefused(), 0u);
}

TEST(NvtxHeapsTest, HeapIsFoundByHandleUntilItEnds) {
  const std::unique_ptr<NvtxHeaps> heaps(new NvtxHeaps());
  NvtxHeap* heap = heaps->Add(0x1000, 0x1000, 0x100, nullptr, nullptr);
  ASSERT_NE(heap, nullptr);
  EXPECT_EQ(heaps->Find(0x1000), heap);
  EXPECT_TRUE(heaps->Contain(0x10ff));
  EXPECT_FALSE(heaps->Contain(0x1100));
  EXPECT_FALSE(heaps->Contain(0xfff));
  NvtxHeaps::Remove(heap);
  EXPECT_EQ(heaps->Find(0x1000), nullptr);
  EXPECT_FALSE(heaps->Contain(0x1000));
}

}  // namespace
}  // namespace gmt::preload
