// analysis/leaks/marked_cycles.h
//
// MarkedCycles: finds the events of a running program that mark the ends of its loop's cycles:
// marks, ranges, the memory of an optimizer's step. It counts every candidate. Which candidate is
// right becomes more certain the longer the program runs; the order of preference is that of
// analysis/loop/phases.h.
//
// Memory: kMaxMarkers markers, and the open ranges. Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_LEAKS_MARKED_CYCLES_H_
#define GMT_ANALYSIS_LEAKS_MARKED_CYCLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/loop/optimizer_sites.h"
#include "format/definitions.h"
#include "format/event.h"

namespace gmt::analysis {

// In order of preference.
enum class CycleSource : uint8_t {
  kMark,
  kNamedRange,
  kOptimizerStep,
  kZeroGrad,
  kBackward,
  kOptimizerMemory,
  // Not marked: found by recurring stacks or by low-water marks, or not found.
  kAnchor,
  kLowWater,
  kEqualParts,
  kNothing,
};

class MarkedCycles {
 public:
  static constexpr size_t kMaxMarkers = 1024;
  static constexpr uint32_t kNoMarker = UINT32_MAX;

  struct Marker {
    CycleSource kind = CycleSource::kNothing;
    std::string source;  // as named by analysis/loop/phases.h
    uint64_t firings = 0;
    uint64_t time_ns = 0;  // total time spent in it, for a named range
    uint64_t last = 0;     // sequence number of its last firing
  };

  // REQUIRES: `definitions` outlives this object and contains what each event refers to.
  explicit MarkedCycles(const format::Definitions& definitions)
      : definitions_(definitions), optimizers_(definitions) {}

  // Returns the marker whose cycle ends or begins with this event; kNoMarker if none does.
  uint32_t OnEvent(const format::Event& event);
  // The same for the birth of memory; pass the kind of memory whose stacks are most informative.
  uint32_t OnBirth(uint32_t stack);

  const Marker& marker(uint32_t id) const { return markers_[id]; }
  // Returns the preferred marker among those that fired at least twice; kNoMarker if there is none.
  uint32_t Best() const;
  // Forgets which markers have fired, and keeps the markers themselves.
  void ForgetFirings();
  // Whether the first firing begins a cycle rather than ending one.
  static bool BeginsCycles(CycleSource kind) {
    return kind == CycleSource::kMark || kind == CycleSource::kNamedRange;
  }

 private:
  struct Key {
    CycleSource kind = CycleSource::kNothing;
    uint64_t a = 0, b = 0, c = 0;

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.kind, k.a, k.b, k.c);
    }
  };
  struct Open {
    uint32_t marker = kNoMarker;
    int64_t begin_t_ns = 0;
    bool outermost = false;
  };
  struct RangeName {
    CycleSource kind = CycleSource::kNothing;
    std::string source;  // of a named range: its name without a number
  };

  uint32_t OnRangeBegin(const format::Event& event);
  uint32_t OnRangeEnd(const format::Event& event);
  const RangeName& NameOfRange(const format::Event& begin);
  uint32_t Find(const Key& key, const std::string& source);
  uint32_t Fire(uint32_t id);

  const format::Definitions& definitions_;
  OptimizerSites optimizers_;
  std::vector<Marker> markers_;
  std::vector<uint32_t> depth_;  // by marker: number of open ranges of that name
  absl::flat_hash_map<Key, uint32_t> ids_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, RangeName> names_;  // by name and stack
  absl::flat_hash_map<uint64_t, Open> open_;                 // by the id that pairs them
  absl::flat_hash_map<uint32_t, std::vector<Open>> nested_;  // by thread
  // The optimizer's site that allocated last.
  uint64_t bursting_ = 0;
  uint64_t firings_ = 0;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_MARKED_CYCLES_H_
