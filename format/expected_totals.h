// format/expected_totals.h
//
// ExpectedTotals: predicts the totals that a framework's allocator reports after an event from its
// previous totals. The file holds the difference from this prediction, which is nearly always 0,
// instead of two numbers of five bytes per event.
//
//   event            allocated   expected   in the file
//   (chunk begins)                      0
//   alloc A  512          9216        512          8704
//   alloc B 1024         10240      10240             0
//   free  A  512          9728       9728             0
//
// Totals are tracked by heap and device, and start anew in each chunk. If the size of a free was
// in a lost chunk, the totals of the rest of the chunk are unknown (Lose()).
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
  // The values in the columns for an event's totals.
  struct Differences {
    int64_t allocated = 0, reserved = 0;
  };

  // `acquired`: the allocation that a free ends, or null.
  Differences Encode(const Event& event, const Acquired* acquired);
  // Sets the totals of `event`. REQUIRES: all its other fields are set.
  void Decode(Differences differences, const Acquired* acquired, Event* event);

  void Lose() { lost_ = true; }
  // Starts the next chunk.
  void Clear();

 private:
  struct Totals {
    uint64_t allocated = 0, reserved = 0;
  };
  Totals& Of(const Event& event) {
    const uint64_t key = uint64_t{event.heap} << 32 | event.device;
    if (last_ == nullptr || key != last_key_) {
      last_ = &totals_[key];
      last_key_ = key;
    }
    return *last_;
  }

  absl::flat_hash_map<uint64_t, Totals> totals_;  // by heap and device
  uint64_t last_key_ = 0;
  Totals* last_ = nullptr;  // most events belong to the same heap
  bool lost_ = false;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_EXPECTED_TOTALS_H_
