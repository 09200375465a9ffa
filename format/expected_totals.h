// format/expected_totals.h
//
// ExpectedTotals: what a framework's allocator will say of itself after an event, from what it said
// before. Nearly always right, so that the file need not hold two numbers of five bytes per event
// but the difference to this, which is 0.
//
//   event            allocated   expected   in the file
//   (chunk begins)                      0
//   alloc A  512          9216        512          8704
//   alloc B 1024         10240      10240             0
//   free  A  512          9728       9728             0
//
// Totals are followed by heap and device, anew in each chunk. Where the size of a free stood in a
// chunk that was lost, no total of the rest of the chunk is known (Lose()).
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_EXPECTED_TOTALS_H_
#define GMT_FORMAT_EXPECTED_TOTALS_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "format/acquisition_history.h"
#include "format/event.h"

namespace gmt::format {

class ExpectedTotals {
 public:
  // What the columns hold of an event's totals.
  struct Differences {
    int64_t allocated = 0, reserved = 0;
  };

  // `acquired`: what a free ends, or null.
  Differences Encode(const Event& event, const Acquired* acquired);
  // Sets the totals of `event`, all else of which is known.
  void Decode(const Differences& differences, const Acquired* acquired, Event* event);

  void Lose() { lost_ = true; }
  // Begins the next chunk.
  void Clear();

 private:
  struct Totals {
    uint64_t allocated = 0, reserved = 0;
  };
  Totals& Of(const Event& event);

  absl::flat_hash_map<uint64_t, Totals> totals_;  // by heap and device
  uint64_t last_key_ = 0;
  Totals* last_ = nullptr;  // most events are of one heap
  bool lost_ = false;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_EXPECTED_TOTALS_H_
