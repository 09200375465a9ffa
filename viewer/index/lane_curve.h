// viewer/index/lane_curve.h
//
// Live memory by event. EventColumns has the size of each event and which of the curves it changes.
// A LaneCurve adds the bytes at every 64th event with the minimum and maximum in between, and the
// minimum and maximum of groups of 4, 16, 64 ... of those, so that the extremes of any range are
// found by reading a few values of each level.
//
//   level 1  |----- 0..255 -----|----- 256..511 -----|
//   level 0  | 0..63 | 64..127 | ...                       leaf: states after the events 0..63
//   events    .......                                      replayed inside a leaf only
//
// Thread safety: const methods from any thread. Cost: about a byte per event, and one leaf read for
// each end of a range.

#ifndef GMT_VIEWER_INDEX_LANE_CURVE_H_
#define GMT_VIEWER_INDEX_LANE_CURVE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "viewer/index/packed_column.h"

namespace gmt::viewer {

inline constexpr uint32_t kLeaf = static_cast<uint32_t>(PackedColumn::kChunk);
inline constexpr uint32_t kNoCurve = UINT32_MAX;

// Columns indexed by event number; event 0 is not an event.
struct EventColumns {
  // The curves that births and deaths of one kind change: live memory of a lane, and reserved
  // memory.
  struct Group {
    uint32_t live = kNoCurve, reserved = kNoCurve;
  };
  std::vector<Group> groups;
  PackedColumn code;  // 0: no change; 1 + 2 * group: a birth; 2 + 2 * group: a death
  PackedColumn size;  // bytes

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Items(groups);
    archive.Column(code);
    archive.Column(size);
  }
};

class LaneCurve {
 public:
  struct Extremes {
    uint64_t min = UINT64_MAX, max = 0;

    void Add(uint64_t value) {
      if (value < min) min = value;
      if (value > max) max = value;
    }
    void Add(const Extremes& other) {
      if (other.min < min) min = other.min;
      if (other.max > max) max = other.max;
    }
  };

  uint64_t peak() const { return peak_; }
  uint32_t peak_event() const { return peak_event_; }
  uint64_t end() const { return end_; }

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Value(peak_);
    archive.Value(peak_event_);
    archive.Value(end_);
    archive.Column(at_leaf_);
    archive.Column(births_);
    archive.Column(deaths_);
    archive.Each(levels_);
  }

 private:
  friend class LaneCurveBuilder;
  friend class CurveReader;
  struct Level {
    PackedColumn min, max;

    template <typename Archive>
    void Visit(Archive& archive) {
      archive.Column(min);
      archive.Column(max);
    }
  };

  uint64_t peak_ = 0, end_ = 0;
  uint32_t peak_event_ = 0;
  PackedColumn at_leaf_;          // bytes after the first event of each leaf
  PackedColumn births_, deaths_;  // counts up to there, including those of event 0
  std::vector<Level> levels_;
};

// Builds a curve from all events, in order, or from parts that are built independently: a part does
// not know how much is live when it begins, and is corrected when it is appended.
//
//   LaneCurveBuilder curve(bytes, blocks);               live and counted before the first part
//   LaneCurveBuilder part; part.Birth(..) ...            for each part
//   curve.Append(part) ...; curve.Finish()
//
// REQUIRES: parts begin with events whose numbers are multiples of kEventsOfChunk, and the first
// one with event 0.
class LaneCurveBuilder {
 public:
  // For each leaf a column has one value.
  static constexpr uint32_t kEventsOfChunk = kLeaf * static_cast<uint32_t>(PackedColumn::kChunk);

  LaneCurveBuilder() : LaneCurveBuilder(kUnknown, 0) { curve_.peak_ = 0; }
  LaneCurveBuilder(uint64_t bytes, uint64_t blocks) : live_(bytes), births_(blocks) {
    curve_.peak_ = bytes;
  }

  void Birth(uint64_t bytes) { live_ += bytes, ++births_, is_changed_ = true; }
  void Death(uint64_t bytes) { live_ -= bytes, ++deaths_, is_changed_ = true; }
  // Called after the changes of the event. Required for events that change the curve and for the
  // first event of a leaf.
  void EndEvent(uint32_t event);
  void Append(const LaneCurveBuilder& part);
  LaneCurve Finish();

 private:
  // What a part has when it begins. It may hold less later, but not less than nothing.
  static constexpr uint64_t kUnknown = uint64_t{1} << 62;

  void EndLeaf();
  void AddLevels();

  LaneCurve curve_;
  uint64_t live_, births_, deaths_ = 0;
  bool is_changed_ = false, is_in_leaf_ = false;
  LaneCurve::Extremes leaf_;
  PackedColumnBuilder at_leaf_, births_column_, deaths_column_, min_, max_;
};

// The recently read leaves, shared by all readers of the same window. For one thread.
class LeafCache {
 public:
  struct Leaf {
    uint32_t number = UINT32_MAX;
    PackedColumn::Values codes, sizes;
  };
  // `events` must outlive it.
  explicit LeafCache(const EventColumns& events) : events_(events) {}

  // The result is valid until three other leaves have been read.
  const Leaf& Read(uint32_t number);
  void PrefetchChunk(uint32_t number) const;
  void PrefetchWords(uint32_t number) const;  // called some time after PrefetchChunk()
  const EventColumns& events() const { return events_; }

 private:
  const EventColumns& events_;
  std::array<Leaf, 4> leaves_;
  size_t next_ = 0;
};

// Reads a curve. Fastest in ascending order, because it keeps the leaves read last. For one thread.
class CurveReader {
 public:
  // Selects one of a group's curves.
  enum class Of { kLive, kReserved };
  // `leaves` and `curve` must outlive it. `id` is the number of `curve` in the groups.
  CurveReader(LeafCache& leaves, const LaneCurve& curve, uint32_t id, Of of);

  // Returns the bytes after the event.
  uint64_t At(uint32_t event);
  // Returns the extremes of the states after the events first..last. REQUIRES: first <= last.
  LaneCurve::Extremes Over(uint32_t first, uint32_t last);
  // Returns the first of the events first..last after which most bytes are live.
  uint32_t PeakOver(uint32_t first, uint32_t last);
  // Return the number of births and deaths up to the event, including those of event 0.
  uint64_t BirthsUntil(uint32_t event);
  uint64_t DeathsUntil(uint32_t event);

 private:
  // Live bytes after each event of a leaf.
  struct States {
    uint32_t leaf = UINT32_MAX;
    PackedColumn::Values live;
  };
  const PackedColumn::Values& LiveIn(uint32_t leaf);
  uint64_t CountUntil(const PackedColumn& at_leaf, uint32_t event, int sign);
  LaneCurve::Extremes OverLeaves(uint32_t first, uint32_t last) const;
  LaneCurve::Extremes OverEvents(uint32_t first, uint32_t last);
  // Calls visit(level, i) for the fewest entries of levels that cover the leaves first..last.
  template <typename Visit>
  void ForEachEntry(uint32_t first, uint32_t last, Visit visit) const;
  struct Peak {
    uint64_t bytes = 0;
    uint32_t event = 0;
  };
  Peak PeakOfEvents(uint32_t first, uint32_t last);
  uint32_t PeakLeaf(uint32_t first, uint32_t last, uint64_t bytes) const;

  LeafCache& leaves_;
  const LaneCurve& curve_;
  std::vector<int8_t> sign_;  // by code
  std::array<States, 2> states_;
  size_t older_ = 0;  // index of the older states
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_LANE_CURVE_H_
