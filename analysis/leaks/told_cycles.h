// analysis/leaks/told_cycles.h
//
// ToldCycles: what in a running program says where a cycle of its loop ends, told from its events one
// by one: marks, ranges, the memory of an optimizer's step. Every place that may be one is counted;
// which of them is right is known better the longer the program runs, in the order of
// analysis/loop/phases.h.
//
// Memory: kMostTellers places and ranges that are open. Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_LEAKS_TOLD_CYCLES_H_
#define GMT_ANALYSIS_LEAKS_TOLD_CYCLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/loop/optimizer_sites.h"
#include "format/definitions.h"
#include "format/event.h"

namespace gmt::analysis {

// In the order in which they are believed.
enum class Telling : uint8_t {
  kMark,
  kNamedRange,
  kOptimizerStep,
  kZeroGrad,
  kBackward,
  kOptimizerMemory,
  // Not told: found by stacks that recur, by low-water marks, or not at all.
  kAnchor,
  kLowWater,
  kEqualParts,
  kNothing,
};

class ToldCycles {
 public:
  static constexpr size_t kMostTellers = 1024;
  static constexpr uint32_t kNobody = UINT32_MAX;

  struct Teller {
    Telling telling = Telling::kNothing;
    std::string source;  // as analysis/loop/phases.h says it
    uint64_t firings = 0;
    uint64_t time_ns = 0;  // that was spent in it, of a named range
    uint64_t last = 0;     // number of its last firing among all
  };

  // `definitions` must outlive it and grow ahead of the events.
  explicit ToldCycles(const format::Definitions& definitions)
      : definitions_(definitions), optimizers_(definitions) {}

  // The teller for which a cycle ends, or begins, with this event; kNobody.
  uint32_t OnEvent(const format::Event& event);
  // The same of memory that is born, of the kind whose stacks say most.
  uint32_t OnBirth(uint32_t stack);

  const Teller& teller(uint32_t id) const { return tellers_[id]; }
  // Whom to believe, of those that fired at least twice; kNobody.
  uint32_t Best() const;
  // Who fired before is known, and has not fired yet.
  void ForgetFirings();
  // Of what begins with the first firing rather than ends with it.
  static bool BeginsCycles(Telling telling) {
    return telling == Telling::kMark || telling == Telling::kNamedRange;
  }

 private:
  struct Key {
    Telling telling = Telling::kNothing;
    uint64_t a = 0, b = 0, c = 0;

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.telling, k.a, k.b, k.c);
    }
  };
  struct Open {
    uint32_t teller = kNobody;
    int64_t begin_t_ns = 0;
    bool outermost = false;
  };
  struct RangeName {
    Telling telling = Telling::kNothing;
    std::string source;  // of a named range: its name without a number
  };

  uint32_t OnRangeBegin(const format::Event& event);
  uint32_t OnRangeEnd(const format::Event& event);
  const RangeName& NameOfRange(const format::Event& begin);
  uint32_t Find(const Key& key, const std::string& source);
  uint32_t Fire(uint32_t id);

  const format::Definitions& definitions_;
  OptimizerSites optimizers_;
  std::vector<Teller> tellers_;
  std::vector<uint32_t> depth_;  // by teller: of named ranges, how many of it are open
  absl::flat_hash_map<Key, uint32_t> ids_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, RangeName> names_;  // by name and stack
  absl::flat_hash_map<uint64_t, Open> open_;                 // by the id that pairs them
  absl::flat_hash_map<uint32_t, std::vector<Open>> nested_;  // by thread
  uint64_t bursting_ = 0;                                    // optimizer's site that allocated last
  uint64_t firings_ = 0;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_TOLD_CYCLES_H_
