#include "collector/output/history.h"

#include <algorithm>

namespace gmt::collector {
namespace {

// A part is at least this many times as large as its base.
constexpr uint64_t kBasesInPart = 3;

// Returns the maximum size of a part.
uint64_t PartBytes(const HistoryLimits& limits, uint32_t parts, uint64_t base) {
  const uint64_t wanted = limits.max_bytes != 0 ? limits.max_bytes / parts : History::kPartBytes;
  const uint64_t bytes = std::max(wanted, kBasesInPart * base);
  if (limits.max_bytes == 0) return bytes;
  // Leaves room for the previous part and for the base of the next one.
  const uint64_t taken = base + History::kSlack;
  const uint64_t most = limits.max_bytes > taken ? (limits.max_bytes - taken) / 2 : 0;
  return std::max(std::min(bytes, most), base + base / 2);
}

}  // namespace

HistoryLimits LimitsOf(const session::Options& options) {
  return {options.max_bytes, options.max_ns, options.parts};
}

History::History(const HistoryLimits& limits, uint64_t now_ns)
    : limits_(limits),
      parts_(limits.parts != 0 ? limits.parts : kParts),
      begin_ns_(now_ns),
      part_bytes_(PartBytes(limits, parts_, 0)) {}

const char* History::WhyToEnd(uint64_t bytes, bool has_events, uint64_t now_ns) const {
  if (!has_events) return nullptr;
  const bool by_bytes = limits_.max_bytes != 0 || limits_.max_ns == 0;
  if (by_bytes && bytes >= part_bytes_) return limits_.max_bytes != 0 ? "max_size" : "rotate";
  if (limits_.max_ns != 0 && now_ns - begin_ns_ >= limits_.max_ns / parts_) return "max_time";
  return nullptr;
}

void History::BeginPart(uint64_t ended_bytes, uint64_t base_bytes, uint64_t now_ns) {
  older_.push_back({newest_++, ended_bytes, begin_ns_});
  older_bytes_ += ended_bytes;
  begin_ns_ = now_ns;
  base_bytes_ = base_bytes;
  part_bytes_ = PartBytes(limits_, parts_, base_bytes);
  if (limits_.max_bytes == 0) return;
  // Prefers a smaller part to dropping the previous one.
  const uint64_t taken = ended_bytes + base_bytes + kSlack;
  const uint64_t room = limits_.max_bytes > taken ? limits_.max_bytes - taken : 0;
  if (room >= base_bytes + base_bytes / 2) part_bytes_ = std::min(part_bytes_, room);
}

std::optional<uint32_t> History::TakeDropped(uint64_t now_ns) {
  if (older_.empty()) return std::nullopt;
  const uint64_t needed = older_bytes_ + part_bytes_ + base_bytes_ + kSlack;
  const bool too_much = limits_.max_bytes != 0 && needed > limits_.max_bytes;
  const bool too_many = older_.size() + 1 > parts_;
  const uint64_t begin = older_.front().begin_ns;
  const bool too_old = limits_.max_ns != 0 && now_ns > begin && now_ns - begin > limits_.max_ns;
  return too_much || too_many || too_old ? TakeOldest() : std::nullopt;
}

std::optional<uint32_t> History::TakeOldest() {
  if (older_.empty()) return std::nullopt;
  const Part oldest = older_.front();
  older_.pop_front();
  older_bytes_ -= oldest.bytes;
  return oldest.number;
}

}  // namespace gmt::collector
