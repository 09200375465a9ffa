// answers/ranks/rank_digest.h
//
// RankDigest: what a comparison of ranks needs of one recording. It is small, so that the
// recordings of a job need not be open at the same time.
//
// Thread safety: MakeDigest: one thread at a time for one recording.

#ifndef GMT_ANSWERS_RANKS_RANK_DIGEST_H_
#define GMT_ANSWERS_RANKS_RANK_DIGEST_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "answers/recording.h"

namespace gmt::answers {

struct RankDigest {
  std::string file;
  std::optional<int32_t> rank;
  std::string host;    // empty if unknown
  uint64_t pid = 0;    // 0 if unknown
  int32_t device = 0;  // the GPU with the highest peak; the following is of this GPU

  uint64_t peak_bytes = 0;  // most bytes recorded at one moment, each byte once
  int64_t peak_t_ns = 0;
  uint64_t reserved_bytes = 0;                                  // peak of a framework's segments
  std::array<uint64_t, analysis::kCategories> categories = {};  // at the peak
  std::map<std::string, uint64_t> stacks;     // at the peak: bytes by the line that allocated them
  std::map<std::string, uint64_t> libraries;  // at the peak: driver memory beside the framework
  std::optional<uint64_t> total_bytes;        // memory of the GPU
  uint64_t used_bytes = 0;  // by the driver at the peak, with all processes; 0 if unknown
  struct Process {
    uint64_t pid;
    uint64_t bytes;
  };
  std::vector<Process> others;  // other processes on the GPU, with the most that each had

  uint64_t steps = 0;
  uint64_t retries = 0;   // how often the allocator asked again for lack of memory
  uint64_t failures = 0;  // out of memory
  struct Leak {
    double bytes_per_step = 0;
    std::string place;       // "train.py:37"; empty if unknown
    bool is_likely = false;  // not certain yet
    std::optional<int64_t> eta_ns;
  };
  std::optional<Leak> leak;
};

RankDigest MakeDigest(const Recording& recording);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_RANK_DIGEST_H_
