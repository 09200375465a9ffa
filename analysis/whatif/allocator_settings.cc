#include "analysis/whatif/allocator_settings.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "format/units.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kBlockUnit = 512;
constexpr uint64_t kLargeRequest = 10 * kMiB;  // larger ones get a segment of their own
constexpr uint64_t kSmallSegment = 2 * kMiB;

// PyTorch refuses lower values; releases before 2.10 refuse 20 MiB, too.
constexpr uint64_t kLeastSplitMiB = 20;
constexpr uint64_t kLeastSegmentMiB = kLargeRequest / kMiB + 1;

// Whether the options are read by the code that all kinds of devices have in common.
bool HasCommonParser(const std::optional<TorchVersion>& torch) {
  return !torch || *torch >= TorchVersion{2, 10};
}

absl::Status Refuse(const std::string& key, const std::string& value, const std::string& wanted) {
  return absl::InvalidArgumentError(absl::StrCat(key, " is ", wanted, ", not \"", value, "\""));
}

absl::Status ReadMiB(const std::string& key, const std::string& value, uint64_t least,
                     uint64_t& bytes) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < least || number > UINT64_MAX / kMiB)
    return Refuse(key, value, absl::StrCat("a number of MiB from ", least));
  bytes = number * kMiB;
  return absl::OkStatus();
}

absl::Status ReadFraction(const std::string& key, const std::string& value, bool may_be_one,
                          double& fraction) {
  double number = 0;
  const bool is_number = absl::SimpleAtod(value, &number);
  if (!is_number || !(number > 0 && (number < 1 || (may_be_one && number == 1)))) {
    return Refuse(key, value,
                  may_be_one ? "a number above 0, at most 1" : "a number above 0, below 1");
  }
  fraction = number;
  return absl::OkStatus();
}

absl::Status ReadSwitch(const std::string& key, const std::string& value, bool& is_on) {
  if (value != "True" && value != "False") return Refuse(key, value, "True or False");
  is_on = value == "True";
  return absl::OkStatus();
}

bool ReadDivisions(const std::string& text, uint32_t& divisions) {
  return absl::SimpleAtoi(text, &divisions) && (divisions == 0 || std::has_single_bit(divisions));
}

// The same as one number, or as a list of the interval from 1 MiB, 2 MiB, ... on.
std::string DivisionsText(const RoundupDivisions& all) {
  const bool is_uniform =
      std::all_of(all.begin(), all.end(), [&](uint32_t each) { return each == all.front(); });
  if (is_uniform) return absl::StrCat(all.front());
  std::string text;
  for (size_t i = 0; i < all.size(); ++i)
    absl::StrAppend(&text, i == 0 ? "" : ",", uint64_t{1} << i, ":", all[i]);
  return absl::StrCat("[", text, "]");
}

bool HasNoEffectHere(std::string_view key) {
  return key.starts_with("pinned_") || key == "release_lock_on_cudamalloc" ||
         key == "graph_capture_record_stream_reuse" || key == "throw_on_cudamalloc_oom";
}

std::string KeyOf(std::string_view option) {
  std::string key(option.substr(0, option.find_first_of(":=")));
  absl::StripAsciiWhitespace(&key);
  return key;
}

absl::Status ChangeOne(const std::string& option, const std::optional<TorchVersion>& torch,
                       AllocatorSettings& settings) {
  const size_t at = option.find_first_of(":=");
  if (at == std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("\"", option, "\" has no value: KEY=VALUE"));
  const std::string key = KeyOf(option);
  std::string value = option.substr(at + 1);
  absl::StripAsciiWhitespace(&value);
  if (key == "expandable_segments") return ReadSwitch(key, value, settings.expandable_segments);
  if (key == "max_split_size_mb")
    return ReadMiB(key, value, kLeastSplitMiB, settings.max_split_bytes);
  if (key == "max_non_split_rounding_mb")
    return ReadMiB(key, value, kLeastSplitMiB, settings.max_non_split_rounding_bytes);
  if (key == "large_segment_size_mb")
    return ReadMiB(key, value, kLeastSegmentMiB, settings.large_segment_bytes);
  if (key == "roundup_power2_divisions") {
    return ReadRoundupDivisions(value, torch, &settings.roundup_divisions)
               ? absl::OkStatus()
               : Refuse(key, value, "a power of two, or a list like [256:1,512:2,>:4]");
  }
  if (key == "garbage_collection_threshold")
    return ReadFraction(key, value, false, settings.gc_threshold);
  if (key == "per_process_memory_fraction")
    return ReadFraction(key, value, true, settings.memory_fraction);
  if (key == "backend") {
    return value == "native" ? absl::OkStatus()
                             : absl::UnimplementedError(absl::StrCat(
                                   "backend:", value, ": only the allocator `native` is replayed"));
  }
  if (HasNoEffectHere(key)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", key, "\" is not an option of PyTorch's allocator"));
}

}  // namespace

std::optional<TorchVersion> ParseTorchVersion(std::string_view text) {
  TorchVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, version.major);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  if (std::from_chars(dot + 1, end, version.minor).ec != std::errc()) return std::nullopt;
  return version;
}

std::optional<TorchVersion> TorchVersionOf(const std::vector<NamedText>& libraries) {
  for (const NamedText& library : libraries) {
    if (library.name == "torch") return ParseTorchVersion(library.text);
  }
  return std::nullopt;
}

const NamedText* AllocatorVariable(const std::vector<NamedText>& settings,
                                   const std::optional<TorchVersion>& torch) {
  const auto named = [&](std::string_view name) -> const NamedText* {
    const auto found = std::find_if(settings.begin(), settings.end(),
                                    [&](const NamedText& one) { return one.name == name; });
    return found == settings.end() ? nullptr : &*found;
  };
  const NamedText* const of_cuda = named("PYTORCH_CUDA_ALLOC_CONF");
  if (of_cuda != nullptr || !HasCommonParser(torch)) return of_cuda;
  return named("PYTORCH_ALLOC_CONF");
}

std::optional<TorchVersion> FirstWithOption(std::string_view key) {
  static constexpr std::pair<std::string_view, TorchVersion> kNewer[] = {
      {"max_non_split_rounding_mb", {2, 6}},
      {"per_process_memory_fraction", {2, 10}},
      {"large_segment_size_mb", {2, 11}},
      {"throw_on_cudamalloc_oom", {2, 12}}};
  for (const auto& [newer, first] : kNewer) {
    if (key == newer) return first;
  }
  return std::nullopt;
}

std::vector<std::string> SplitAllocatorOptions(std::string_view text) {
  std::vector<std::string> options;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    std::string option(text.substr(begin, i - begin));
    absl::StripAsciiWhitespace(&option);
    if (!option.empty()) options.push_back(option);
    begin = i + 1;
  }
  return options;
}

bool ReadRoundupDivisions(const std::string& value, const std::optional<TorchVersion>& torch,
                          RoundupDivisions* divisions) {
  uint32_t each = 0;
  if (!value.starts_with('[')) {
    if (!ReadDivisions(value, each)) return false;
    divisions->fill(each);
    return true;
  }
  if (!value.ends_with(']')) return false;
  RoundupDivisions read = {};
  size_t last = 0;
  bool is_first = true;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(value.substr(1, value.size() - 2), ','))) {
    std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits(':', 1));
    absl::StripAsciiWhitespace(&pair.first);
    absl::StripAsciiWhitespace(&pair.second);
    const std::string& from = pair.first;
    if (!ReadDivisions(pair.second, each)) return false;
    if (from == ">") {
      const size_t begin = last + (HasCommonParser(torch) ? 1 : 0);
      std::fill(read.begin() + static_cast<ptrdiff_t>(begin), read.end(), each);
      continue;
    }
    uint64_t mib = 0;
    if (!absl::SimpleAtoi(from, &mib) || !std::has_single_bit(mib)) return false;
    const size_t index = std::min<size_t>(std::bit_width(mib) - 1, read.size() - 1);
    // The first entry covers all smaller sizes.
    if (is_first) std::fill_n(read.begin(), index, each);
    is_first = false;
    read[index] = each;
    last = index;
  }
  *divisions = read;
  return true;
}

absl::Status AllocatorSettings::Change(std::string_view text,
                                       const std::optional<TorchVersion>& torch) {
  AllocatorSettings changed = *this;
  for (const std::string& option : SplitAllocatorOptions(text)) {
    if (absl::Status status = ChangeOne(option, torch, changed); !status.ok()) return status;
  }
  *this = changed;
  return absl::OkStatus();
}

std::string AllocatorSettings::Text() const {
  const AllocatorSettings defaults;
  std::vector<std::string> options;
  const auto add = [&](bool differs, const char* key, const std::string& value) {
    if (differs) options.push_back(absl::StrCat(key, ":", value));
  };
  const auto mib = [](uint64_t bytes) { return absl::StrCat(bytes / kMiB); };
  add(expandable_segments, "expandable_segments", "True");
  add(max_split_bytes != defaults.max_split_bytes, "max_split_size_mb", mib(max_split_bytes));
  add(max_non_split_rounding_bytes != defaults.max_non_split_rounding_bytes,
      "max_non_split_rounding_mb", mib(max_non_split_rounding_bytes));
  add(large_segment_bytes != defaults.large_segment_bytes, "large_segment_size_mb",
      mib(large_segment_bytes));
  add(roundup_divisions != defaults.roundup_divisions, "roundup_power2_divisions",
      DivisionsText(roundup_divisions));
  add(gc_threshold != defaults.gc_threshold, "garbage_collection_threshold",
      absl::StrCat(gc_threshold));
  add(memory_fraction != defaults.memory_fraction, "per_process_memory_fraction",
      absl::StrCat(memory_fraction));
  return absl::StrJoin(options, ",");
}

bool AllocatorSettings::IsWithoutEffect(std::string_view option) {
  return HasNoEffectHere(KeyOf(option));
}

uint64_t AllocatorSettings::BlockBytes(uint64_t bytes) const {
  if (bytes < kBlockUnit) return kBlockUnit;
  const auto interval = static_cast<size_t>(
      std::clamp<int>(static_cast<int>(std::bit_width(bytes)) - 21, 0, 15));  // 0: up to 2 MiB
  const uint64_t divisions = roundup_divisions[interval];
  if (divisions <= 1 || bytes <= kBlockUnit * divisions) return RoundUp(bytes, kBlockUnit);
  if (std::has_single_bit(bytes)) return bytes;
  const uint64_t power = std::bit_floor(bytes);
  const uint64_t unit = power / divisions;
  return unit == 0 ? 2 * power : RoundUp(bytes, unit);
}

uint64_t AllocatorSettings::SegmentBytes(uint64_t block_bytes) const {
  if (IsSmall(block_bytes)) return kSmallSegment;
  return block_bytes < kLargeRequest ? large_segment_bytes : RoundUp(block_bytes, 2 * kMiB);
}

}  // namespace gmt::analysis
