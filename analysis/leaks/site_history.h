// analysis/leaks/site_history.h
//
// SiteHistory: what one allocating place of the program did over all cycles, in bounded memory.
// Cycles are counted in chunks of 1, 2, 4, ... cycles. When there would be more than kMaxChunks,
// neighbours are merged and the chunk length doubles.
//
//   cycle        0 1 2 3 4 5 6 7        births of a chunk: blocks born in it
//   chunk of 2   | 0 | 1 | 2 | 3 |      alive: those of them that are not freed yet
//                                       least: the minimum of bytes held during it
//
// A chunk without events has no entry: its values equal those at the end of the previous one.
//
// Thread safety: one thread at a time. Cost: constant per event, 64 bytes per chunk with events.

#ifndef GMT_ANALYSIS_LEAKS_SITE_HISTORY_H_
#define GMT_ANALYSIS_LEAKS_SITE_HISTORY_H_

#include <array>
#include <cstdint>
#include <vector>

namespace gmt::analysis {

// The division of cycles into chunks, shared by all sites.
class ChunkGrid {
 public:
  static constexpr uint32_t kMaxChunks = 128;

  uint32_t cycle() const { return cycle_; }  // the current one, from 0
  uint32_t level() const { return level_; }
  uint32_t cycles_per_chunk() const { return 1u << level_; }
  uint32_t ChunkOf(uint32_t cycle) const { return cycle >> level_; }
  // The number of chunks whose cycles have all ended.
  uint32_t complete() const { return cycle_ >> level_; }
  void EndCycle() {
    ++cycle_;
    if (ChunkOf(cycle_) >= kMaxChunks) ++level_;
  }

 private:
  uint32_t cycle_ = 0, level_ = 0;
};

// A histogram of how many cycles freed blocks had lived, accurate to a fifth.
class Lifetimes {
 public:
  void Add(uint32_t cycles) { ++counts_[BucketOf(cycles)]; }
  // The number of those that lived at least `least` cycles.
  uint64_t CountFrom(uint32_t least) const;
  uint32_t Quantile(double q, uint32_t least) const;  // 0 if there are none

 private:
  static constexpr uint32_t kExact = 16, kPerOctave = 4;
  static constexpr uint32_t kBuckets = kExact + kPerOctave * 28;
  static uint32_t BucketOf(uint32_t cycles);
  static uint32_t LongestOf(uint32_t bucket);
  std::array<uint32_t, kBuckets> counts_{};
};

// Recognizes memory that accumulates over several cycles and is then freed nearly all at once: what
// waits for a garbage collector, or a list that is cleared now and then.
class Bursts {
 public:
  // `held`: number of blocks held before this one is freed.
  void AddFree(uint32_t cycle, uint32_t birth_cycle, uint64_t held);
  // Whether several cycles freed nearly all blocks that outlived their own cycle, each of them most
  // of what was held then, from at least kMinCycles cycles.
  bool are_usual() const { return count_ >= kMinBursts && 4 * freed_ >= 3 * freed_later_; }
  // REQUIRES: are_usual().
  uint32_t CyclesBetween() const { return (last_ - first_) / (count_ - 1); }

 private:
  static constexpr uint32_t kMinCycles = 4, kMinBursts = 3;

  void EndCycle();

  uint32_t count_ = 0, first_ = 0, last_ = 0;
  uint64_t freed_ = 0, freed_later_ = 0;
  // The cycle of the last free.
  uint32_t cycle_ = 0, oldest_ = 0, newest_ = 0;
  uint64_t held_before_ = 0, freed_now_ = 0;
};

class SiteHistory {
 public:
  struct Chunk {
    uint32_t index = 0;
    uint32_t births = 0, alive = 0;
    uint64_t alive_bytes = 0;
    uint64_t least = 0, at_end = 0;  // bytes held
  };
  // One value per complete chunk.
  struct Series {
    std::vector<double> births, alive, alive_bytes, least;
  };

  // `held`: bytes held from the beginning.
  explicit SiteHistory(uint64_t held = 0) : held_at_first_(held), live_(held) {}

  void Birth(const ChunkGrid& grid, uint64_t bytes);
  void Free(const ChunkGrid& grid, uint64_t bytes, uint32_t birth_cycle);
  // Revokes a birth because the memory belongs elsewhere. The sizes seen remain.
  void TakeBack(const ChunkGrid& grid, uint64_t bytes, uint32_t birth_cycle);

  uint64_t live() const { return live_; }
  uint64_t live_count() const { return live_count_; }
  uint64_t most() const { return most_; }  // maximum of bytes held at once
  uint64_t births() const { return births_; }
  uint32_t first_birth() const { return first_birth_; }  // cycle
  uint64_t min_size() const { return min_size_; }
  uint64_t max_size() const { return max_size_; }
  // Births of a size that no earlier one had reached.
  uint32_t new_maxima() const { return new_maxima_; }
  const Lifetimes& lifetimes() const { return lifetimes_; }
  const Bursts& bursts() const { return bursts_; }
  Series SeriesOn(const ChunkGrid& grid) const;

 private:
  Chunk& Now(const ChunkGrid& grid);
  Chunk* Find(uint32_t index);  // null if nothing happened in it
  void Merge(uint32_t level);

  std::vector<Chunk> chunks_;
  uint32_t level_ = 0, first_birth_ = 0;
  uint64_t held_at_first_ = 0;
  uint64_t live_ = 0, live_count_ = 0, most_ = 0, births_ = 0;
  uint64_t min_size_ = UINT64_MAX, max_size_ = 0;
  uint32_t new_maxima_ = 0;
  Lifetimes lifetimes_;
  Bursts bursts_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_SITE_HISTORY_H_
