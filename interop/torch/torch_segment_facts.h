// interop/torch/torch_segment_facts.h
//
// TorchSegmentFacts: what is learnt about the segments of a device from their first block. A
// segment is identified by the driver memory or the mapping with which it began. Segments that turn
// out to be one share their facts.
//
// Thread safety: one thread at a time.

#ifndef GMT_INTEROP_TORCH_TORCH_SEGMENT_FACTS_H_
#define GMT_INTEROP_TORCH_TORCH_SEGMENT_FACTS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/trace.h"

namespace gmt::interop {

class TorchSegmentFacts {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;
  struct Facts {
    uint64_t stream = 0, pool = 0;
    bool small = false;
    bool learnt = false;
  };
  static uint64_t OfRow(analysis::RowId row) { return row; }
  static uint64_t OfMapping(uint32_t index) { return uint64_t{1} << 32 | index; }

  Id IdOf(uint64_t name);
  void Join(Id a, Id b);  // they are one segment
  void Learn(Id id, const Facts& facts);
  // For kNone: facts with nothing learnt.
  const Facts& Of(Id id) const;

 private:
  Id Root(Id id) const;
  absl::flat_hash_map<uint64_t, Id> ids_;
  std::vector<Facts> facts_;
  mutable std::vector<Id> parent_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_SEGMENT_FACTS_H_
