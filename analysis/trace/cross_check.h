// analysis/trace/cross_check.h
//
// CrossCheck: compares the memory that interposition saw with the memory that CUPTI saw. CUPTI
// reports an allocation or free only when its record buffer is full, long after it happened. So an
// operation that one side reports waits for its counterpart from the other side.
//
//   ours      alloc A [t-dur, t]         free A      alloc B                    (waits)
//   CUPTI                        ...  witness alloc A, free A, ...  alloc C     (waits)
//   at the end                   matched: alloc A, free A; only ours: B; only CUPTI: C
//
// Two reports match if operation and address are equal and CUPTI's time, converted to our clock,
// lies within our call or close to it. A matched pair with different sizes is counted in
// sizes_differ.
//
// Not counted as missed by CUPTI, but counted separately: operations that it has no records for
// (cuMemCreate, imports, graphs; mappings and registered host memory unless it reports them),
// operations while it was off, and those just before it stopped, whose records may never have been
// delivered.
//
// Memory: the waiting operations, up to kMaxWaiting of each side. Thread safety: one thread at a
// time.

#ifndef GMT_ANALYSIS_TRACE_CROSS_CHECK_H_
#define GMT_ANALYSIS_TRACE_CROSS_CHECK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/cross_check_result.h"
#include "format/definitions.h"
#include "format/event.h"
#include "format/messages_fwd.h"

namespace gmt::analysis {

class CrossCheck {
 public:
  static constexpr size_t kListed = 100;
  static constexpr size_t kMaxWaiting = size_t{1} << 18;
  static constexpr int64_t kClockError_ns = 1'000'000;

  explicit CrossCheck(const format::Definitions& definitions) : definitions_(definitions) {}

  void OnEvent(const format::Event& event);
  void OnFacts(const Facts& facts);
  CrossCheckResult Result() &&;

 private:
  struct Waiting {
    Unmatched what;
    int64_t from_ns = 0, to_ns = 0;  // of the call
    uint32_t thread = 0;
    bool may_be_uncovered = false;
  };
  struct Key {
    uint64_t address = 0;
    bool is_free = false;

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.address, k.is_free);
    }
  };
  struct Side {
    absl::flat_hash_map<Key, std::vector<Waiting>> waiting;
    size_t count = 0;
  };

  void OnOurs(const format::Event& event);
  void OnOurFreeDone(const format::Event& event);
  void OnWitness(const format::Event& event);
  void OnSource(const format::Event& event);
  // Removes from `side` the waiting counterpart of `other`. Returns false if there is none.
  bool Match(Side& side, const Key& key, const Waiting& other);
  void Wait(Side& side, const Key& key, const Waiting& waiting);
  void Shrink(Side& side);
  void Close(const Waiting& waiting);
  void List(const Unmatched& what);
  bool IsLeftOut(const Unmatched& what) const;

  const format::Definitions& definitions_;
  CrossCheckResult result_;
  Side ours_, witnesses_;
  std::string heaps_;                             // the recording's option; empty: all heaps
  std::vector<std::pair<int64_t, int64_t>> off_;  // when CUPTI was not recording
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_CROSS_CHECK_H_
