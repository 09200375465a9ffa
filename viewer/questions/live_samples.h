// viewer/questions/live_samples.h
//
// What is held at the midpoint of each of a number of equal parts of a recording, for sparklines.
// It is found once; after that, any selection of blocks can be summed without a walk over the
// events.
//
// Thread safety: one thread at a time. Memory: kMaxIds rows; samples beyond that are not cached.

#ifndef GMT_VIEWER_QUESTIONS_LIVE_SAMPLES_H_
#define GMT_VIEWER_QUESTIONS_LIVE_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/questions/held_rows.h"

namespace gmt::viewer {

class LiveSamples {
 public:
  static constexpr size_t kMaxIds = size_t{8} << 20;

  // Returns the event at the midpoint of part `i` of `parts`.
  static analysis::Step EventOf(const analysis::Trace& trace, uint32_t i, uint32_t parts);

  // Calls visit(part, row) for each row held at each part's midpoint.
  template <typename Visit>
  void ForEach(const analysis::Trace& trace, HeldRows& held, uint32_t parts, const Visit& visit) {
    Choose(parts);
    for (uint32_t part = 0; part < parts; ++part) {
      const analysis::Step event = EventOf(trace, part, parts);
      if (part < samples_.size()) {
        for (const analysis::RowId row : samples_[part]) visit(part, row);
        continue;
      }
      std::vector<analysis::RowId> rows = held.After(event);
      std::erase_if(rows, [&](analysis::RowId row) { return !trace.rows.HeldAfter(row, event); });
      for (const analysis::RowId row : rows) visit(part, row);
      Keep(part, std::move(rows));
    }
  }

 private:
  void Choose(uint32_t parts);
  void Keep(uint32_t part, std::vector<analysis::RowId> rows);

  uint32_t parts_ = 0;
  size_t ids_ = 0;
  std::vector<std::vector<analysis::RowId>> samples_;  // of the first parts
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_LIVE_SAMPLES_H_
