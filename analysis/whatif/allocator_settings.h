// analysis/whatif/allocator_settings.h
//
// AllocatorSettings: the options of PyTorch's caching allocator that decide where blocks are placed
// and how much driver memory is reserved (PYTORCH_ALLOC_CONF; c10/core/AllocatorConfig.h of
// PyTorch). Options that do not (pinned memory, locks) are accepted and have no effect here.
//
// Thread safety: plain data; pure functions.

#ifndef GMT_ANALYSIS_WHATIF_ALLOCATOR_SETTINGS_H_
#define GMT_ANALYSIS_WHATIF_ALLOCATOR_SETTINGS_H_

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "analysis/trace/run_facts.h"

namespace gmt::analysis {

// Returns the smallest multiple of `unit` that is not below `bytes`.
constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Splits "a:1, b:[2:3,4:5]" at the commas outside brackets; the parts have no surrounding spaces,
// and empty ones are left out.
std::vector<std::string> SplitAllocatorOptions(std::string_view text);

struct TorchVersion {
  int major = 0, minor = 0;

  friend auto operator<=>(const TorchVersion&, const TorchVersion&) = default;
};

// The newest release whose rules are known.
inline constexpr TorchVersion kNewestKnownTorch{2, 15};

// "2.11.0+cu130". Returns nullopt for other texts.
std::optional<TorchVersion> ParseTorchVersion(std::string_view text);

// That of the library `torch`, if it is known.
std::optional<TorchVersion> TorchVersionOf(const std::vector<NamedText>& libraries);

// Returns the environment variable that configured PyTorch's allocator, or nullptr if none did.
// PYTORCH_CUDA_ALLOC_CONF decides, even if it is empty; since 2.10, and if the release is unknown,
// PYTORCH_ALLOC_CONF is read without it. (Tried with PyTorch 2.9, 2.10 and 2.11.)
const NamedText* AllocatorVariable(const std::vector<NamedText>& settings,
                                   const std::optional<TorchVersion>& torch);

// The first release that reads this option, among those since 2.1, or nullopt if all do. PyTorch
// refuses to start with an option that it does not know.
std::optional<TorchVersion> FirstWithOption(std::string_view key);

// In how many steps each power of two is divided, from 1 MiB to 32 GiB; 0: multiples of 512.
using RoundupDivisions = std::array<uint32_t, 16>;

// Reads "4", or "[256:1,512:2,>:4]": divisions from that many MiB up to the next one listed. Those
// for `>` begin behind the last size listed; before 2.10, at it. Returns false, and leaves
// `divisions` alone, if PyTorch refuses the value. `torch`: nullopt if unknown.
bool ReadRoundupDivisions(const std::string& value, const std::optional<TorchVersion>& torch,
                          RoundupDivisions* divisions);

struct AllocatorSettings {
  static constexpr uint64_t kUnlimited = UINT64_MAX;

  bool expandable_segments = false;
  // Blocks from this size are not split, and smaller requests do not use them.
  uint64_t max_split_bytes = kUnlimited;
  // How much larger than its request a block that may not be split can be.
  uint64_t max_non_split_rounding_bytes = 20 << 20;
  // Segments for requests below 10 MiB, and the pages of expandable segments.
  uint64_t large_segment_bytes = 20 << 20;
  RoundupDivisions roundup_divisions = {};
  double gc_threshold = 0;     // 0: no garbage collection
  double memory_fraction = 1;  // the part of the device that may be reserved

  // Changes the options named in `text`: "max_split_size_mb:128,expandable_segments:True"; `=`
  // separates a value as well as `:`. They are read as this release of PyTorch does, by default as
  // the newest. Returns INVALID_ARGUMENT for unknown options and values that PyTorch refuses, and
  // UNIMPLEMENTED for another backend than `native`; `*this` is then unchanged.
  absl::Status Change(std::string_view text, const std::optional<TorchVersion>& torch = {});
  // The options that differ from PyTorch's defaults, as Change() reads them; "" if none does.
  std::string Text() const;
  // Whether an option, "KEY=VALUE", decides nothing here.
  static bool IsWithoutEffect(std::string_view option);

  // The size of the block for a request of `bytes`.
  uint64_t BlockBytes(uint64_t bytes) const;
  // The size of the segment that is allocated for a block of that size.
  uint64_t SegmentBytes(uint64_t block_bytes) const;
  // Whether blocks of that size come from the pool of small blocks.
  static bool IsSmall(uint64_t block_bytes) { return block_bytes <= uint64_t{1} << 20; }

  friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_ALLOCATOR_SETTINGS_H_
