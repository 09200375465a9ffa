// answers/peak_search.h
//
// PeakSearch: finds the part of a long recording in which a device has its peak, so that a report
// about the peak need not read the rest. Each checkpoint of the collector bounds what was
// allocated on a device since the previous one (proto/gmt.proto, allocated_at_most). The interval
// with the highest bound is read first. What was allocated there at most is then known exactly, and
// an interval that was not read may have more only if its bound is higher:
//
//   checkpoints             C         C         C         C         C
//   bound         2 GiB     | 9 GiB   | 9 GiB   | 9 GiB   | 5 GiB   |
//   read        <-------------------------------->
//   peak                     9 GiB: no later interval has more
//
// Bounds are close: they differ from the maximum by driver memory in which no block lies yet.
//
// Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_PEAK_SEARCH_H_
#define GMT_ANSWERS_PEAK_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/examination/examination.h"
#include "format/byte_source.h"
#include "format/messages_fwd.h"
#include "format/time_range.h"

namespace gmt::answers {

class PeakSearch {
 public:
  // Without `device`, the one with the highest peak. Returns nothing if everything has to be read:
  // the recording has fewer events than `min_events`, or its checkpoints are not sufficient.
  static absl::StatusOr<std::optional<PeakSearch>> Begin(format::ByteSource& source,
                                                         uint64_t min_events,
                                                         std::optional<int32_t> device);

  // The range to read next; nothing if that would be most of the recording.
  std::optional<format::TimeRange> range() const;

  // Returns whether the allocated peak of the device is that of the recording. `examination` is
  // about the events in `read`. If not, range() then includes the intervals that may have more.
  bool Found(const analysis::Examination& examination, const format::TimeRange& read);

  // After Found(): the devices that may have their peaks elsewhere.
  const std::set<int32_t>& elsewhere() const { return elsewhere_; }

  // The sums of the whole recording.
  const std::shared_ptr<const Aggregates>& sums() const { return sums_; }

 private:
  struct Interval {
    int64_t from_ns = INT64_MIN, to_ns = 0;
    std::map<int32_t, uint64_t> at_most;  // bytes, by device
  };

  PeakSearch(std::vector<Interval> intervals, std::shared_ptr<const Aggregates> sums,
             std::optional<int32_t> device);
  void Include(size_t interval);

  std::vector<Interval> intervals_;
  std::shared_ptr<const Aggregates> sums_;
  int32_t device_ = 0;
  std::set<int32_t> elsewhere_;
  size_t first_ = SIZE_MAX, last_ = 0;  // the intervals to read
  bool gave_up_ = false;
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_PEAK_SEARCH_H_
