// Random event streams, replayed by a slow, obvious program: a list of what is held, searched
// linearly at every event. The trace and its replay must agree with it in every state.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "analysis/examination/layers.h"
#include "analysis/examination/replay.h"
#include "analysis/testing/event_script.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kUnit = 0x1000;

struct Held {
  std::string heap;
  int32_t device;
  uint64_t address, size;
  bool physical = false, released = false;
  uint64_t mapped_at = 0;  // 0: not mapped
};

class Oracle {
 public:
  void Alloc(const std::string& heap, int32_t device, uint64_t address, uint64_t size) {
    Remove(heap, address);  // its free was lost
    held_.push_back({heap, device, address, size});
  }
  void Remove(const std::string& heap, uint64_t address) {
    std::erase_if(held_, [&](const Held& h) {
      return h.heap == heap && !h.physical && h.address == address;
    });
  }
  void Create(uint64_t handle, uint64_t size) {
    held_.push_back({"driver", 0, handle, size, true});
  }
  Held* Physical(uint64_t handle) {
    for (Held& h : held_) {
      if (h.physical && !h.released && h.address == handle) return &h;
    }
    return nullptr;
  }
  Held* MappedAt(uint64_t address) {
    for (Held& h : held_) {
      if (h.mapped_at == address) return &h;
    }
    return nullptr;
  }
  void DropEnded() {
    std::erase_if(held_, [](const Held& h) { return h.released && h.mapped_at == 0; });
  }
  std::map<std::pair<int32_t, std::string>, uint64_t> Totals() const {
    std::map<std::pair<int32_t, std::string>, uint64_t> totals;
    for (const Held& h : held_) totals[{h.device, h.heap}] += h.size;
    return totals;
  }

 private:
  std::vector<Held> held_;
};

using Totals = std::map<std::pair<int32_t, std::string>, uint64_t>;

Totals TotalsOf(const Trace& trace, Step step) {
  Totals totals;
  for (RowId row : HeldAfter(trace, step)) {
    totals[{trace.rows.device[row], trace.heaps[trace.rows.heap[row]]}] += trace.rows.size[row];
  }
  return totals;
}

// Writes the same random events into a script and an oracle.
class Story {
 public:
  explicit Story(uint32_t seed) : random_(seed) {}

  void Write(int events) {
    for (int i = 0; i < events; ++i) {
      WriteOne();
      oracle_.DropEnded();
      after_.push_back(oracle_.Totals());
      for (const auto& [key, bytes] : after_.back()) {
        peak_[key] = std::max(peak_[key], bytes);
      }
    }
  }

  EventScript script_;
  std::vector<Totals> after_;  // after each event
  Totals peak_;

 private:
  uint64_t Pick(uint64_t count) { return random_() % count; }

  void WriteOne() {
    const uint64_t address = (1 + Pick(20)) * 64 * kUnit;
    const uint64_t handle = 1 + Pick(6);
    switch (Pick(10)) {
      case 0:
      case 1: {
        const auto device = static_cast<int32_t>(Pick(2));
        const uint64_t size = (1 + Pick(64)) * kUnit;
        // One address space for all devices, as on a real machine.
        const uint64_t place = address + static_cast<uint64_t>(device) * (uint64_t{1} << 40);
        script_.Alloc(place, size).device = static_cast<uint32_t>(device);
        return oracle_.Alloc("driver", device, place, size);
      }
      case 2:
        script_.Free(address);
        return oracle_.Remove("driver", address);
      case 3: {
        const uint64_t block = address + Pick(32) * kUnit;
        const uint64_t size = (1 + Pick(8)) * kUnit;
        script_.Block(block, size);
        return oracle_.Alloc("pytorch", 0, block, size);
      }
      case 4: {
        const uint64_t block = address + Pick(32) * kUnit;
        script_.FreeBlock(block);
        return oracle_.Remove("pytorch", block);
      }
      case 5:
        script_.Pinned(address, 10 * kUnit);
        return oracle_.Alloc("host", kHostDevice, address, 10 * kUnit);
      case 6:
        if (oracle_.Physical(handle) != nullptr) return WriteOne();
        script_.Create(handle, 2 * kUnit);
        return oracle_.Create(handle, 2 * kUnit);
      case 7: {
        const uint64_t place = (uint64_t{1} << 44) + Pick(8) * 2 * kUnit;
        Held* physical = oracle_.Physical(handle);
        if (physical == nullptr || physical->mapped_at != 0 || oracle_.MappedAt(place) != nullptr) {
          return WriteOne();
        }
        script_.Map(place, 2 * kUnit, handle);
        physical->mapped_at = place;
        return;
      }
      case 8: {
        const uint64_t place = (uint64_t{1} << 44) + Pick(8) * 2 * kUnit;
        script_.Unmap(place, 2 * kUnit);
        if (Held* mapped = oracle_.MappedAt(place)) mapped->mapped_at = 0;
        return;
      }
      default:
        script_.Release(handle);
        if (Held* physical = oracle_.Physical(handle)) physical->released = true;
        return;
    }
  }

  std::mt19937 random_;
  Oracle oracle_;
};

struct RecordedStory {
  explicit RecordedStory(uint32_t seed) : story(seed) {
    story.Write(400);
    trace = story.script_.Build();
  }
  Story story;
  Trace trace;
};

TEST(ReplayOracleTest, EveryStateHoldsTheSameBytes) {
  ForEachSeed(SeedsUpTo(25), [](uint32_t seed) {
    const RecordedStory recorded(seed);
    for (size_t i = 0; i < recorded.story.after_.size(); ++i) {
      const auto t_ns = static_cast<int64_t>(i + 1) * EventScript::kStep_ns;
      ASSERT_EQ(TotalsOf(recorded.trace, StepAt(recorded.trace, t_ns)), recorded.story.after_[i])
          << "event " << i;
    }
  });
}

TEST(ReplayOracleTest, PeaksOfHeapsAreTheSame) {
  ForEachSeed(SeedsUpTo(25), [](uint32_t seed) {
    const RecordedStory recorded(seed);
    const Replay replay(recorded.trace);
    Totals peaks;
    for (const auto& [key, totals] : replay.heaps()) {
      peaks[{key.first, recorded.trace.heaps[key.second]}] = totals.bytes.peak;
    }
    EXPECT_EQ(peaks, recorded.story.peak_);
  });
}

// Page by page: a byte belongs to the block that covers it, otherwise to its driver memory.
TEST(ReplayOracleTest, EachByteHasOneOwner) {
  ForEachSeed(SeedsUpTo(25), [](uint32_t seed) {
    const RecordedStory recorded(seed);
    const Step step = recorded.trace.last_step();
    std::map<std::pair<int32_t, uint64_t>, bool> pages;  // -> whether it is in a block
    uint64_t placeless = 0;
    const Rows& rows = recorded.trace.rows;
    const auto cover = [&](int32_t device, uint64_t address, uint64_t size, bool block) {
      for (uint64_t page = address; page < address + size; page += kUnit)
        pages[{device, page}] |= block;
    };
    for (RowId row : HeldAfter(recorded.trace, step)) {
      if (rows.heap[row] == kHostHeap) continue;
      if ((rows.flags[row] & kRowHandle) != 0) {
        placeless += rows.size[row];
      } else {
        cover(rows.device[row], rows.address[row], rows.size[row], rows.heap[row] > kHostHeap);
      }
    }
    uint64_t in_blocks = 0;
    for (const auto& [page, block] : pages) in_blocks += block ? kUnit : 0;
    uint64_t own_blocks = 0, own_driver = 0, own_placeless = 0;
    for (const OwnBytes& own : OwnBytesAfter(recorded.trace, step)) {
      if (rows.heap[own.row] == kHostHeap) continue;
      const bool handle = (rows.flags[own.row] & kRowHandle) != 0;
      (handle                           ? own_placeless
       : rows.heap[own.row] > kHostHeap ? own_blocks
                                        : own_driver) += own.bytes;
    }
    EXPECT_EQ(own_placeless, placeless) << "no block lies in a mapping here";
    // Unlike real blocks, random blocks may overlap: their own bytes may then exceed the covered
    // pages, but never the other way round. Driver memory loses exactly its covered pages.
    EXPECT_GE(own_blocks, in_blocks);
    uint64_t driver_pages = 0, covered = 0;
    for (RowId row : HeldAfter(recorded.trace, step)) {
      if (rows.heap[row] != kDriverHeap || (rows.flags[row] & kRowHandle) != 0) continue;
      for (uint64_t page = 0; page < rows.size[row]; page += kUnit) {
        driver_pages += kUnit;
        covered += pages[{rows.device[row], rows.address[row] + page}] ? kUnit : 0;
      }
    }
    EXPECT_EQ(own_driver, driver_pages - covered);
  });
}

}  // namespace
}  // namespace gmt::analysis
