// collector/output/history.h
//
// History: how much of the past a recording keeps on disk (docs/long-runs.md). It is written in
// parts, and the oldest part goes as a whole when another needs its room or when it has become too
// old.
//
//   limit   |<------------------------ max_bytes ------------------------->|
//   disk    | part 3 | part 4 | part 5 |  part 6, being written  |  room   |
//             dropped next
//
// Invariants
//   H1  bytes of the parts + what the newest may still take + the base of the next one <= max_bytes,
//       as long as the base (what a part begins with: definitions, aggregates, live set) is less than
//       a sixth of max_bytes. Else the newest part may be all that is kept.
//   H2  No event is older than max_ns when the oldest part is dropped by age.
//
// Thread safety: plain arithmetic, one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_HISTORY_H_
#define GMT_COLLECTOR_OUTPUT_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "session/options.h"

namespace gmt::collector {

struct HistoryLimits {
  uint64_t max_bytes = 0;  // of all parts; 0: none
  uint64_t max_ns = 0;     // how old an event may become; 0: none
  uint32_t parts = 0;      // 0: none

  bool bounded() const { return max_bytes != 0 || max_ns != 0 || parts != 0; }
};

HistoryLimits LimitsOf(const session::Options& options);

class History {
 public:
  static constexpr uint32_t kParts = 8;             // where the user says nothing
  static constexpr uint64_t kPartBytes = 1u << 30;  // where only a number of parts is given
  // What may be written between two looks at a part's size: chunks of what is drained at once.
  static constexpr uint64_t kSlack = 1u << 20;

  History(const HistoryLimits& limits, uint64_t now_ns);

  // Why the newest part, of so many bytes and with or without events, is to be ended now: "max_size",
  // "max_time" or "rotate"; null: it is not.
  const char* WhyToEnd(uint64_t bytes, bool has_events, uint64_t now_ns) const;

  // The newest part has ended with so many bytes; the next one begins with `base_bytes`.
  void BeginPart(uint64_t ended_bytes, uint64_t base_bytes, uint64_t now_ns);

  // The number of a part to drop now, oldest first; nullopt: all may stay.
  std::optional<uint32_t> TakeDropped(uint64_t now_ns);
  // As that, though there is room: something else needs it.
  std::optional<uint32_t> TakeOldest();

  uint32_t newest() const { return newest_; }
  size_t older_count() const { return older_.size(); }
  uint64_t older_bytes() const { return older_bytes_; }
  uint64_t part_bytes() const { return part_bytes_; }

 private:
  struct Part {
    uint32_t number;
    uint64_t bytes;
    uint64_t begin_ns;
  };

  const HistoryLimits limits_;
  const uint32_t parts_;
  uint32_t newest_ = 0;
  uint64_t begin_ns_;  // of the newest
  uint64_t base_bytes_ = 0, part_bytes_ = 0, older_bytes_ = 0;
  std::deque<Part> older_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_HISTORY_H_
