// analysis/whatif/settings_search.h
//
// Searches for the settings of PyTorch's allocator with which a recorded program would have
// reserved least, by replays without a limit (replay.h):
//
//   1. each option alone, with several values or its default
//   2. the best settings so far together with each other option, until that saves less than 1 %
//
// Only options that the recorded release of PyTorch has are tried. What is found is the best of
// what was tried, and its saving is that of the worst of replays in which frees come somewhat
// later and segments have other addresses.
//
// Thread safety: pure function. Cost: at most kMaxSettings replays on all processors, fewer if the
// recording is long; a replay ends as soon as it reserves more than the best one before.

#ifndef GMT_ANALYSIS_WHATIF_SETTINGS_SEARCH_H_
#define GMT_ANALYSIS_WHATIF_SETTINGS_SEARCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/whatif/allocator_history.h"
#include "analysis/whatif/allocator_settings.h"

namespace gmt::analysis {

inline constexpr uint64_t kMaxSettings = 64;

struct FoundSettings {
  AllocatorSettings settings;
  std::string options;          // the whole value of PYTORCH_CUDA_ALLOC_CONF; "" for the defaults
  uint64_t peak_reserved = 0;   // in a replay
  uint64_t worst_reserved = 0;  // in the worst of these replays
};

struct SettingsSearch {
  uint64_t tried = 0;              // settings
  uint64_t recorded_reserved = 0;  // with the recorded settings, in a replay without a limit
  // nullopt: none is certain to reserve less than the recorded ones.
  std::optional<FoundSettings> best;
};

SettingsSearch SearchSettings(const AllocatorHistory& history);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_SETTINGS_SEARCH_H_
