// answers/ranks/rank_comparison.h
//
// Compares the ranks of a job: which of them differ from the others, by how much, and why.
//
// A rank differs if its peak is further from the median of all ranks than kMinDifference, a share
// of that median, and three times the usual distance (the median of all distances, scaled to a
// standard deviation: Leys et al., 2013); if contexts of other ranks are on its GPU; or if it
// leaks, fails or retries and most others do not.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_RANKS_RANK_COMPARISON_H_
#define GMT_ANSWERS_RANKS_RANK_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answers/ranks/rank_digest.h"

namespace gmt::answers {

inline constexpr uint64_t kMinDifference = uint64_t{32} << 20;

struct RankRow {
  RankDigest digest;
  std::string name;         // "rank 3", or the file if the rank is unknown
  int64_t delta_bytes = 0;  // peak less the median
  bool differs = false;
  std::vector<std::string> causes;  // most bytes first; empty unless it differs
};

struct RankComparison {
  std::vector<RankRow> rows;  // by rank
  uint64_t median_peak_bytes = 0, least_peak_bytes = 0, most_peak_bytes = 0;
  std::vector<size_t> outliers;  // indices of rows; the most different first
  // The rank that will be out of memory first: by its leak, otherwise by what is free at its peak.
  std::optional<size_t> next_to_fail;
  std::string why_next;  // "1.20 GiB free at its peak"
};

// REQUIRES: at least one digest.
RankComparison CompareRanks(std::vector<RankDigest> digests);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_RANK_COMPARISON_H_
