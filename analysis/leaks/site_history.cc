#include "analysis/leaks/site_history.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gmt::analysis {
namespace {

void Fold(SiteHistory::Chunk& into, const SiteHistory::Chunk& later) {
  into.births += later.births;
  into.alive += later.alive;
  into.alive_bytes += later.alive_bytes;
  into.least = std::min(into.least, later.least);
  into.at_end = later.at_end;
}

}  // namespace

uint32_t Lifetimes::BucketOf(uint32_t cycles) {
  if (cycles < kExact) return cycles;
  const auto octave = static_cast<uint32_t>(std::bit_width(cycles)) - 5;  // 16..31: 0
  const uint32_t quarter = (cycles >> (octave + 2)) & (kPerOctave - 1);
  return kExact + octave * kPerOctave + quarter;
}

uint32_t Lifetimes::LongestOf(uint32_t bucket) {
  if (bucket < kExact) return bucket;
  const uint32_t octave = (bucket - kExact) / kPerOctave, quarter = (bucket - kExact) % kPerOctave;
  const uint64_t end = uint64_t{kPerOctave + quarter + 1} << (octave + 2);
  return static_cast<uint32_t>(std::min<uint64_t>(end - 1, UINT32_MAX));
}

uint64_t Lifetimes::CountFrom(uint32_t least) const {
  uint64_t count = 0;
  for (uint32_t bucket = BucketOf(least); bucket < kBuckets; ++bucket) count += counts_[bucket];
  return count;
}

uint32_t Lifetimes::Quantile(double q, uint32_t least) const {
  const uint64_t count = CountFrom(least);
  if (count == 0) return 0;
  const auto rank = static_cast<uint64_t>(std::ceil(q * static_cast<double>(count)));
  uint64_t seen = 0;
  for (uint32_t bucket = BucketOf(least); bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= std::max<uint64_t>(rank, 1)) return LongestOf(bucket);
  }
  return UINT32_MAX;
}

void SiteHistory::Merge(uint32_t level) {
  const uint32_t shift = level - level_;
  size_t kept = 0;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    Chunk chunk = chunks_[i];
    chunk.index >>= shift;
    if (kept > 0 && chunks_[kept - 1].index == chunk.index) {
      Fold(chunks_[kept - 1], chunk);
    } else {
      chunks_[kept++] = chunk;
    }
  }
  chunks_.resize(kept);
  level_ = level;
}

void Bursts::EndCycle() {
  const bool is_burst = freed_now_ >= kMinCycles && newest_ - oldest_ >= kMinCycles - 1 &&
                        4 * freed_now_ >= 3 * held_before_;
  if (is_burst) {
    if (count_++ == 0) first_ = cycle_;
    last_ = cycle_;
    freed_ += freed_now_;
  }
  freed_now_ = 0;
}

void Bursts::AddFree(uint32_t cycle, uint32_t birth_cycle, uint64_t held) {
  if (birth_cycle == cycle) return;
  if (cycle != cycle_) EndCycle();
  if (freed_now_ == 0) {
    cycle_ = cycle;
    held_before_ = held;
    oldest_ = newest_ = birth_cycle;
  }
  oldest_ = std::min(oldest_, birth_cycle);
  newest_ = std::max(newest_, birth_cycle);
  ++freed_now_;
  ++freed_later_;
}

SiteHistory::Chunk& SiteHistory::Now(const ChunkGrid& grid) {
  if (level_ != grid.level()) Merge(grid.level());
  const uint32_t index = grid.ChunkOf(grid.cycle());
  if (chunks_.empty() || chunks_.back().index != index) {
    Chunk chunk;
    chunk.index = index;
    chunk.least = chunk.at_end = live_;
    chunks_.push_back(chunk);
  }
  return chunks_.back();
}

// If every chunk had an entry, index - first would be its position. Chunks without events have
// none, so the position is at most that.
SiteHistory::Chunk* SiteHistory::Find(uint32_t index) {
  if (chunks_.empty() || index < chunks_.front().index) return nullptr;
  const size_t furthest = std::min<size_t>(index - chunks_.front().index, chunks_.size() - 1);
  if (chunks_[furthest].index == index) return &chunks_[furthest];
  const auto end = chunks_.begin() + static_cast<std::ptrdiff_t>(furthest);
  const auto found = std::lower_bound(chunks_.begin(), end, index,
                                      [](const Chunk& c, uint32_t i) { return c.index < i; });
  return found != end && found->index == index ? &*found : nullptr;
}

void SiteHistory::Birth(const ChunkGrid& grid, uint64_t bytes) {
  Chunk& now = Now(grid);
  if (births_ == 0) first_birth_ = grid.cycle();
  ++now.births;
  ++now.alive;
  now.alive_bytes += bytes;
  live_ += bytes;
  now.at_end = live_;
  ++live_count_;
  ++births_;
  most_ = std::max(most_, live_);
  min_size_ = std::min(min_size_, bytes);
  if (bytes > max_size_) {
    max_size_ = bytes;
    ++new_maxima_;
  }
}

void SiteHistory::Free(const ChunkGrid& grid, uint64_t bytes, uint32_t birth_cycle) {
  Chunk& now = Now(grid);
  const uint32_t cycle = std::min(birth_cycle, grid.cycle());
  bursts_.AddFree(grid.cycle(), cycle, live_count_);
  live_ -= std::min(bytes, live_);
  live_count_ -= live_count_ > 0 ? 1 : 0;
  now.at_end = live_;
  now.least = std::min(now.least, live_);
  lifetimes_.Add(grid.cycle() - cycle);
  Chunk* born = Find(grid.ChunkOf(cycle));
  if (born == nullptr || born->alive == 0) return;
  --born->alive;
  born->alive_bytes -= std::min(bytes, born->alive_bytes);
}

void SiteHistory::TakeBack(const ChunkGrid& grid, uint64_t bytes, uint32_t birth_cycle) {
  Chunk& now = Now(grid);
  live_ -= std::min(bytes, live_);
  live_count_ -= live_count_ > 0 ? 1 : 0;
  births_ -= births_ > 0 ? 1 : 0;
  now.at_end = live_;
  now.least = std::min(now.least, live_);
  const uint32_t born = grid.ChunkOf(std::min(birth_cycle, grid.cycle()));
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend() && chunk->index >= born; ++chunk) {
    if (chunk->index == born) {
      chunk->births -= chunk->births > 0 ? 1 : 0;
      chunk->alive -= chunk->alive > 0 ? 1 : 0;
      chunk->alive_bytes -= std::min(bytes, chunk->alive_bytes);
    } else if (&*chunk != &now) {
      chunk->least -= std::min(bytes, chunk->least);
      chunk->at_end -= std::min(bytes, chunk->at_end);
    }
  }
}

SiteHistory::Series SiteHistory::SeriesOn(const ChunkGrid& grid) const {
  SiteHistory merged;
  merged.chunks_ = chunks_;
  merged.level_ = level_;
  if (merged.level_ != grid.level()) merged.Merge(grid.level());
  const size_t count = grid.complete();
  Series series;
  for (auto* column : {&series.births, &series.alive, &series.alive_bytes, &series.least})
    column->assign(count, 0);
  uint64_t held = held_at_first_;
  size_t next = 0;
  for (const Chunk& chunk : merged.chunks_) {
    if (chunk.index >= count) break;
    for (; next < chunk.index; ++next) series.least[next] = static_cast<double>(held);
    series.births[next] = chunk.births;
    series.alive[next] = chunk.alive;
    series.alive_bytes[next] = static_cast<double>(chunk.alive_bytes);
    series.least[next++] = static_cast<double>(chunk.least);
    held = chunk.at_end;
  }
  for (; next < count; ++next) series.least[next] = static_cast<double>(held);
  return series;
}

}  // namespace gmt::analysis
