// Random histories of an allocator, of which a snapshot keeps the last part: the import must find
// the state before that part, and end in the final state, whatever was cut off or left out.

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "format/definitions_builder.h"
#include "format/live_columns.h"
#include "interop/testing/torch_import_fixture.h"
#include "proto/gmt.pb.h"
#include "tests/seeds/seeds.h"

namespace gmt::interop {
namespace {

using Json = nlohmann::ordered_json;

// What is held: blocks with their requested sizes, segments, mapped pages.
struct State {
  std::map<uint64_t, uint64_t> blocks;  // address -> requested
  std::set<uint64_t> pending;
  std::map<uint64_t, uint64_t> segments;  // address -> size
  std::set<uint64_t> pages;

  bool operator==(const State&) const = default;
};

std::ostream& operator<<(std::ostream& out, const State& state) {
  out << "blocks";
  for (const auto& [address, size] : state.blocks)
    out << " " << address << "+" << size << (state.pending.contains(address) ? "(pending)" : "");
  out << "\nsegments";
  for (const auto& [address, size] : state.segments) out << " " << address << "+" << size;
  out << "\npages";
  for (uint64_t page : state.pages) out << " " << page;
  return out;
}

// An allocator with fixed slots, so that addresses are reused. It records what it does.
class Allocator {
 public:
  static constexpr uint64_t kPage = 20 << 20, kPages = 12, kPageBase = uint64_t{1} << 40;
  static constexpr uint64_t kSegment = 2 << 20, kSegments = 6, kSegmentBase = uint64_t{1} << 41;
  static constexpr uint64_t kSlot = 512 << 10;  // four blocks in a segment, forty in a page

  explicit Allocator(uint64_t seed) : random_(seed) {}

  void Step() {
    switch (Below(9)) {
      case 0:
        return Map();
      case 1:
        return Unmap();
      case 2:
        return AddSegment();
      case 3:
        return FreeSegment();
      case 4:
      case 5:
        return Free();
      case 6:
        return Complete();
      default:
        return Allocate();
    }
  }

  const State& state() const { return state_; }
  const std::vector<Json>& events() const { return events_; }

  Json Segments() const {
    Json segments = Json::array();
    for (const auto& [address, size] : state_.segments)
      segments.push_back(Segment(address, size, false));
    for (auto it = state_.pages.begin(); it != state_.pages.end();) {
      const uint64_t first = *it;
      uint64_t end = first;
      for (; it != state_.pages.end() && *it == end; ++it) end += kPage;
      segments.push_back(Segment(first, end - first, true));
    }
    return segments;
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }

  Json Segment(uint64_t address, uint64_t size, bool expandable) const {
    Json blocks = Json::array();
    uint64_t reached = address;
    const auto add = [&](uint64_t from, uint64_t to, const char* state, uint64_t requested) {
      if (from == to) return;
      blocks.push_back({{"address", from},
                        {"size", to - from},
                        {"requested_size", requested},
                        {"state", state},
                        {"frames", Json::array()}});
    };
    for (auto it = state_.blocks.lower_bound(address);
         it != state_.blocks.end() && it->first < address + size; ++it) {
      add(reached, it->first, "inactive", 0);
      const bool pending = state_.pending.contains(it->first);
      add(it->first, it->first + kSlot, pending ? "active_pending_free" : "active_allocated",
          it->second);
      reached = it->first + kSlot;
    }
    add(reached, address + size, "inactive", 0);
    return {{"device", 0},     {"address", address},      {"total_size", size},
            {"stream", 0},     {"segment_type", "large"}, {"is_expandable", expandable},
            {"blocks", blocks}};
  }

  void Note(const char* action, uint64_t address, uint64_t size) {
    events_.push_back({{"action", action},
                       {"addr", address},
                       {"size", size},
                       {"stream", 0},
                       {"time_us", 1000 + events_.size()}});
  }

  bool IsEmpty(uint64_t address, uint64_t size) const {
    const auto it = state_.blocks.lower_bound(address);
    return it == state_.blocks.end() || it->first >= address + size;
  }

  void Allocate() {
    std::vector<uint64_t> places;
    for (const auto& [address, size] : state_.segments) places.push_back(address);
    for (uint64_t page : state_.pages) places.push_back(page);
    if (places.empty()) return;
    const uint64_t place = places[Below(places.size())];
    const uint64_t slots = (place >= kSegmentBase ? kSegment : kPage) / kSlot;
    const uint64_t address = place + kSlot * Below(slots);
    if (state_.blocks.contains(address)) return;
    const uint64_t requested = 1 + Below(kSlot);
    state_.blocks[address] = requested;
    Note("alloc", address, requested);
  }

  void Free() {
    if (state_.blocks.empty()) return;
    const auto block =
        std::next(state_.blocks.begin(), static_cast<std::ptrdiff_t>(Below(state_.blocks.size())));
    if (!state_.pending.insert(block->first).second) return;
    Note("free_requested", block->first, block->second);
    if (Below(4) > 0) Finish(block->first);
  }
  void Complete() {
    if (state_.pending.empty()) return;
    Finish(*std::next(state_.pending.begin(),
                      static_cast<std::ptrdiff_t>(Below(state_.pending.size()))));
  }
  void Finish(uint64_t address) {
    Note("free_completed", address, state_.blocks[address]);
    state_.pending.erase(address);
    state_.blocks.erase(address);
  }

  void AddSegment() {
    const uint64_t address = kSegmentBase + kSegment * Below(kSegments);
    if (!state_.segments.emplace(address, kSegment).second) return;
    Note("segment_alloc", address, kSegment);
  }
  void FreeSegment() {
    const uint64_t address = kSegmentBase + kSegment * Below(kSegments);
    if (!state_.segments.contains(address) || !IsEmpty(address, kSegment)) return;
    state_.segments.erase(address);
    Note("segment_free", address, kSegment);
  }

  // Maps one to three pages at once.
  void Map() {
    const uint64_t first = Below(kPages);
    uint64_t end = first;
    while (end < std::min(kPages, first + 3) && !state_.pages.contains(kPageBase + kPage * end))
      ++end;
    for (uint64_t page = first; page < end; ++page) state_.pages.insert(kPageBase + kPage * page);
    if (end > first) Note("segment_map", kPageBase + kPage * first, kPage * (end - first));
  }
  void Unmap() {
    const uint64_t first = Below(kPages);
    uint64_t end = first;
    for (; end < std::min(kPages, first + 2); ++end) {
      const uint64_t address = kPageBase + kPage * end;
      if (!state_.pages.contains(address) || !IsEmpty(address, kPage)) break;
    }
    for (uint64_t page = first; page < end; ++page) state_.pages.erase(kPageBase + kPage * page);
    if (end > first) Note("segment_unmap", kPageBase + kPage * first, kPage * (end - first));
  }

  std::mt19937_64 random_;
  State state_;
  std::vector<Json> events_;
};

// Replays the state of a recording, event by event, in the simplest way.
class Replay {
 public:
  void Apply(const format::Event& event) {
    const bool is_block = event.memory == BLOCK;
    switch (event.kind) {
      case ALLOC:
        if (is_block) {
          state.blocks[event.address] = event.requested;
          state.pending.erase(event.address);
        } else {
          state.segments[event.address] = event.size;
        }
        return;
      case FREE:
        if (!is_block) {
          state.segments.erase(event.address);
        } else {
          EXPECT_TRUE(state.blocks.contains(event.address)) << event.address;
          state.pending.insert(event.address);
        }
        return;
      case FREE_DONE:
        state.blocks.erase(event.address);
        state.pending.erase(event.address);
        return;
      case MAP:
        EXPECT_TRUE(handles_.insert(event.handle).second);
        pieces_[event.address] = event.size;
        return SetPages();
      case UNMAP:
        Unmap(event);
        return;
      default:
        return;
    }
  }

  State state;
  int cut_mappings = 0;  // mappings of which an unmap removed a part

 private:
  // Readers of the recording end mappings only as a whole.
  void Unmap(const format::Event& event) {
    const uint64_t end = event.address + event.size;
    for (auto it = pieces_.lower_bound(event.address); it != pieces_.end() && it->first < end;) {
      cut_mappings += it->first + it->second > end ? 1 : 0;
      it = pieces_.erase(it);
    }
    SetPages();
  }

  void SetPages() {
    state.pages.clear();
    for (const auto& [address, size] : pieces_) {
      for (uint64_t at = 0; at < size; at += Allocator::kPage) state.pages.insert(address + at);
    }
  }

  std::set<uint64_t> handles_;
  std::map<uint64_t, uint64_t> pieces_;  // address -> size
};

class TorchImportReplayTest : public TorchImportFixture {
 protected:
  format::Collected Import(const Json& segments, const std::vector<Json>& events) {
    const std::string recording =
        Record(Pickle({{"segments", segments}, {"device_traces", Json::array({events})}}));
    EXPECT_TRUE(status_.ok()) << status_;
    format::Collected all;
    auto reader = format::RecordingReader::FromBytes(recording, "a");
    EXPECT_TRUE(reader.ok() && (*reader)->Read(all).ok());
    return all;
  }

  // Returns the state after the events, and in *before the state when the recording's own time
  // begins.
  static Replay After(const format::Collected& all, State* before) {
    Replay replay;
    EXPECT_EQ(all.snapshots.front().name(), "begin");
    const auto live = format::DecodeLive(all.snapshots.front().live());
    EXPECT_TRUE(live.ok());
    for (const format::Event& event : *live) replay.Apply(event);
    bool has_begun = false;
    for (const format::Event& event : all.events) {
      // Reservations and frees that wait for a stream have no time. They belong to the beginning.
      if (!has_begun && event.has(format::kHasTime)) {
        *before = replay.state;
        has_begun = true;
      }
      replay.Apply(event);
    }
    return replay;
  }
};

TEST_F(TorchImportReplayTest, TheStateBeforeAHistoryIsFound) {
  ForEachSeed(SeedsUpTo(300), [&](uint32_t seed) {
    Allocator allocator(seed);
    for (int i = 0; i < 120; ++i) allocator.Step();
    const State before = allocator.state();
    const size_t kept_from = allocator.events().size();
    for (int i = 0; i < 120; ++i) allocator.Step();
    const std::vector<Json> kept(
        allocator.events().begin() + static_cast<std::ptrdiff_t>(kept_from),
        allocator.events().end());
    const format::Collected all = Import(allocator.Segments(), kept);
    State found_before;
    const Replay after = After(all, &found_before);
    ASSERT_EQ(after.state, allocator.state());
    ASSERT_EQ(after.cut_mappings, 0);
    ASSERT_EQ(found_before, before);
    ASSERT_THAT(notes_, testing::IsEmpty());
  });
}

TEST_F(TorchImportReplayTest, HistoryWithHolesEndsInTheFinalState) {
  ForEachSeed(SeedsUpTo(300), [&](uint32_t seed) {
    Allocator allocator(seed);
    for (int i = 0; i < 200; ++i) allocator.Step();
    std::mt19937_64 random(seed);
    std::vector<Json> kept = allocator.events();
    std::erase_if(kept, [&](const Json&) { return random() % 10 == 0; });
    const format::Collected all = Import(allocator.Segments(), kept);
    State before;
    const State after = After(all, &before).state;
    EXPECT_EQ(after.segments, allocator.state().segments);
    EXPECT_EQ(after.pages, allocator.state().pages);
    std::set<uint64_t> held, expected;
    for (const auto& [address, requested] : after.blocks) held.insert(address);
    for (const auto& [address, requested] : allocator.state().blocks) expected.insert(address);
    ASSERT_EQ(held, expected);
    ASSERT_EQ(after.pending, allocator.state().pending);
  });
}

}  // namespace
}  // namespace gmt::interop
