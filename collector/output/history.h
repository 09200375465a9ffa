// collector/output/history.h
//
// History: decides how much of the past a recording keeps on disk (docs/long-runs.md). The
// recording is written in parts. The oldest part is dropped as a whole when another one needs its
// space or when it has become too old.
//
//   limit   |<------------------------ max_bytes ------------------------->|
//   disk    | part 3 | part 4 | part 5 |  part 6, being written  |  room   |
//             dropped next
//
// Invariants
//   H1  bytes of the parts + what the newest may still take + the base of the next one <= max_bytes,
//       provided that the base (what a part begins with: definitions, aggregates, live set) is less
//       than a sixth of max_bytes. Otherwise the newest part may be all that is kept.
//   H2  When the oldest part is dropped by age, no remaining event is older than max_ns.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_HISTORY_H_
#define GMT_COLLECTOR_OUTPUT_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "session/options.h"

namespace gmt::collector {

struct HistoryLimits {
  uint64_t max_bytes = 0;  // of all parts; 0: unlimited
  uint64_t max_ns = 0;     // maximum age of an event; 0: unlimited
  uint32_t parts = 0;      // maximum number of parts; 0: the default

  bool bounded() const { return max_bytes != 0 || max_ns != 0 || parts != 0; }
};

HistoryLimits LimitsOf(const session::Options& options);

class History {
 public:
  static constexpr uint32_t kParts = 8;             // unless the user gives a number
  static constexpr uint64_t kPartBytes = 1u << 30;  // if only a number of parts is given
  // The maximum that is written between two checks of a part's size: the chunks of one drain.
  static constexpr uint64_t kSlack = 1u << 20;

  History(const HistoryLimits& limits, uint64_t now_ns);

  // Returns the reason to end the newest part now: "max_size", "max_time" or "rotate"; null if
  // there is none. `bytes` and `has_events` describe that part.
  const char* WhyToEnd(uint64_t bytes, bool has_events, uint64_t now_ns) const;

  // Records that the newest part has ended with `ended_bytes` and that the next one begins with
  // `base_bytes`.
  void BeginPart(uint64_t ended_bytes, uint64_t base_bytes, uint64_t now_ns);

  // Returns the number of a part to drop now, oldest first; nullopt if all may stay.
  std::optional<uint32_t> TakeDropped(uint64_t now_ns);
  // Like TakeDropped(), even if there is room: something else needs it.
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
