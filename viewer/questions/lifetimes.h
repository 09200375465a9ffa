// viewer/questions/lifetimes.h
//
// Lifetimes of blocks.
//
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_LIFETIMES_H_
#define GMT_VIEWER_QUESTIONS_LIFETIMES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/trace.h"

namespace gmt::viewer {

// Returns nullopt for a block from before the recording, or one that was never freed.
std::optional<int64_t> LifetimeOf(const analysis::Trace& trace, analysis::RowId row);

// Computes the median lifetime by group. With more than kMaxLifetimes blocks (table.h), only every
// n-th block counts.
class LifetimeMedians {
 public:
  // `blocks`: the number that will be added; `groups`: the groups of interest.
  LifetimeMedians(uint64_t blocks, const std::vector<uint32_t>& groups);

  void Add(uint32_t group, const analysis::Trace& trace, analysis::RowId row);
  absl::flat_hash_map<uint32_t, int64_t> Find() &&;

 private:
  uint64_t stride_ = 1, seen_ = 0;
  absl::flat_hash_map<uint32_t, std::vector<int64_t>> lifetimes_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_LIFETIMES_H_
