// Compares the split, the largest piece and the pins with a slow, obvious computation: a table with
// an entry for each byte of the allocator's memory, on random recordings. A failure prints its
// seed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "analysis/fragmentation/fragmentation.h"
#include "analysis/testing/event_script.h"
#include "tests/seeds/seeds.h"

namespace gmt::analysis {
namespace {

struct OracleBlock {
  uint64_t address = 0, size = 0;
  bool live = true;
};
struct OracleSegment {
  uint64_t address = 0, size = 0, page = 0;  // page: what can be released at once
  uint64_t stream = 0;
  bool is_private = false, was_used = false;
  std::vector<OracleBlock> blocks;
};

// A recording of an allocator that places blocks anywhere, and the contents of each segment.
class RandomRecording {
 public:
  explicit RandomRecording(uint64_t seed) : random_(seed) {
    const int segments = Pick(1, 12);
    for (int i = 0; i < segments; ++i) AddSegment();
    // Makes the recording report completions, so that none is inferred.
    Begin(segments_[0], 0, 1);
    script_.FreeBlock(segments_[0].blocks.back().address);
    script_.FreeBlockDone(segments_[0].blocks.back().address);
    segments_[0].blocks.clear();
    const int actions = Pick(0, 200);
    for (int i = 0; i < actions; ++i) Act();
  }
  EventScript& script() { return script_; }
  const std::vector<OracleSegment>& segments() const { return segments_; }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void AddSegment() {
    OracleSegment segment;
    segment.address = 0x100000 + segments_.size() * 0x10000;
    segment.stream = static_cast<uint64_t>(Pick(1, 3));
    const bool expandable = Pick(0, 2) == 0;
    const auto pages = static_cast<uint64_t>(expandable ? Pick(1, 6) : 1);
    segment.page = static_cast<uint64_t>(expandable ? Pick(20, 60) : Pick(50, 400));
    segment.size = pages * segment.page;
    segment.is_private = !expandable && Pick(0, 4) == 0;
    if (expandable) {
      script_.Reserve(segment.address, 0x8000);
      for (uint64_t i = 0; i < pages; ++i) {
        const uint64_t handle = 0x9000000 + segment.address + i;
        script_.Create(handle, segment.page);
        script_.Map(segment.address + i * segment.page, segment.page, handle);
      }
    } else {
      format::Event& event = script_.Alloc(segment.address, segment.size);
      if (segment.is_private) {
        event.present |= format::kHasPool;
        event.pool = 5;
        segment.was_used = true;  // its pool shows that it is the allocator's
      }
    }
    segments_.push_back(segment);
  }

  void Begin(OracleSegment& segment, uint64_t at, uint64_t size) {
    format::Event& event = script_.Block(segment.address + at, size);
    event.present |= format::kHasStream;
    event.stream = segment.stream;
    segment.was_used = true;
    segment.blocks.push_back({segment.address + at, size});
  }

  void Act() {
    OracleSegment& segment =
        segments_[static_cast<size_t>(Pick(0, static_cast<int>(segments_.size()) - 1))];
    const bool frees = Pick(0, 2) == 0 && !segment.blocks.empty();
    if (!frees) {
      const auto size = static_cast<uint64_t>(Pick(1, 40));
      if (size > segment.size) return;
      const auto at = static_cast<uint64_t>(Pick(0, static_cast<int>(segment.size - size)));
      const uint64_t address = segment.address + at;
      for (const OracleBlock& block : segment.blocks) {
        if (block.address < address + size && address < block.address + block.size) return;
      }
      return Begin(segment, at, size);
    }
    const auto which = Pick(0, static_cast<int>(segment.blocks.size()) - 1);
    OracleBlock& block = segment.blocks[static_cast<size_t>(which)];
    if (block.live) {
      script_.FreeBlock(block.address);
      if (Pick(0, 3) == 0) {
        block.live = false;
        return;
      }
    }
    script_.FreeBlockDone(block.address);
    segment.blocks.erase(segment.blocks.begin() + which);
  }

  std::mt19937_64 random_;
  EventScript script_;
  std::vector<OracleSegment> segments_;
};

struct OracleAnswer {
  uint64_t reserved = 0, allocated = 0, largest = 0;
  FragmentationSplit split;
  std::map<uint64_t, uint64_t> pins;  // by block address
};

// '.' free, 'L' live, 'A' awaiting; one letter per byte.
std::string BytesOf(const OracleSegment& segment) {
  std::string bytes(segment.size, '.');
  for (const OracleBlock& block : segment.blocks) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(block.address - segment.address),
                block.size, block.live ? 'L' : 'A');
  }
  return bytes;
}

uint64_t BlockAt(const OracleSegment& segment, uint64_t address) {
  for (const OracleBlock& block : segment.blocks) {
    if (block.address <= address && address < block.address + block.size) return block.address;
  }
  return 0;
}

void AskSegment(const OracleSegment& segment, uint64_t stream, OracleAnswer& answer) {
  const std::string bytes = BytesOf(segment);
  std::vector<bool> releasable(bytes.size(), false);
  for (uint64_t page = 0; page < segment.size; page += segment.page) {
    if (bytes.substr(page, segment.page) != std::string(segment.page, '.')) continue;
    std::fill_n(releasable.begin() + static_cast<std::ptrdiff_t>(page), segment.page, true);
  }
  const bool other = segment.stream != stream;
  uint64_t run = 0, fixed = 0;
  for (uint64_t i = 0; i <= bytes.size(); ++i) {
    const char byte = i < bytes.size() ? bytes[i] : 'E';
    if (byte == '.') {
      ++run;
      if (!releasable[i]) ++fixed;
      ++(segment.is_private ? answer.split.private_pool
         : releasable[i]    ? answer.split.releasable
         : other            ? answer.split.stream
                            : answer.split.pinned);
      continue;
    }
    if (!segment.is_private && !other) answer.largest = std::max(answer.largest, run);
    const bool left = i > run && bytes[i - run - 1] == 'L', right = byte == 'L';
    if (fixed > 0 && left) {
      answer.pins[BlockAt(segment, segment.address + i - run - 1)] += right ? fixed / 2 : fixed;
    }
    if (fixed > 0 && right) {
      answer.pins[BlockAt(segment, segment.address + i)] += left ? fixed - fixed / 2 : fixed;
    }
    run = fixed = 0;
    if (byte == 'L') ++answer.allocated;
    if (byte == 'A') ++answer.split.awaiting_stream;
  }
  answer.reserved += segment.size;
}

TEST(FragmentationOracleTest, RandomRecordingsMatchAByteTable) {
  ForEachSeed(SeedsUpTo(400), [](uint32_t seed) {
    RandomRecording recording(seed);
    const Trace trace = recording.script().Build();
    const Examination examination(trace, recording.script().definitions());
    for (uint64_t stream = 1; stream <= 3; ++stream) {
      OracleAnswer expected;
      for (const OracleSegment& segment : recording.segments()) {
        if (segment.was_used) AskSegment(segment, stream, expected);
      }
      const Fragmentation found =
          FragmentationAfter(examination, 0, trace.last_step(), {stream, std::nullopt});
      ASSERT_EQ(found.reserved_bytes, expected.reserved);
      ASSERT_EQ(found.allocated_bytes, expected.allocated);
      ASSERT_EQ(found.free_bytes, expected.split.sum());
      ASSERT_EQ(found.split.releasable, expected.split.releasable);
      ASSERT_EQ(found.split.pinned, expected.split.pinned);
      ASSERT_EQ(found.split.stream, expected.split.stream);
      ASSERT_EQ(found.split.private_pool, expected.split.private_pool);
      ASSERT_EQ(found.split.awaiting_stream, expected.split.awaiting_stream);
      ASSERT_EQ(found.largest_free_bytes, expected.largest);
      std::map<uint64_t, uint64_t> pins;
      for (const Pin& pin : found.pins) pins[trace.rows.address[pin.row]] = pin.pinned_bytes;
      std::erase_if(expected.pins, [](const auto& pin) { return pin.second == 0; });
      std::erase_if(pins, [](const auto& pin) { return pin.second == 0; });
      ASSERT_EQ(pins, expected.pins);
    }
  });
}

TEST(FragmentationOracleTest, PiecesCoverTheirSegmentInOrder) {
  ForEachSeed(SeedsUpTo(100), [](uint32_t seed) {
    RandomRecording recording(seed);
    const Trace trace = recording.script().Build();
    for (const SegmentMap& segment : SegmentsAfter(trace, 0, trace.last_step())) {
      uint64_t reached = segment.address;
      for (const Piece& piece : segment.pieces) {
        ASSERT_EQ(piece.address, reached);
        ASSERT_GT(piece.size, 0u);
        reached = piece.end();
      }
      ASSERT_EQ(reached, segment.end());
    }
  });
}

}  // namespace
}  // namespace gmt::analysis
