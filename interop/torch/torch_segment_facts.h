// interop/torch/torch_segment_facts.h
//
// TorchSegmentFacts: what is learnt about the segments of a device that hold blocks, where their
// first block is the first to tell. A segment is named by the driver memory or the mapping that it
// began with; segments that turn out to be one share what is known.
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
  void Join(Id a, Id b);  // one segment after all
  void Learn(Id id, const Facts& facts);
  // Of kNone: nothing is learnt.
  const Facts& Of(Id id) const;

 private:
  Id Root(Id id) const;
  absl::flat_hash_map<uint64_t, Id> ids_;
  std::vector<Facts> facts_;
  mutable std::vector<Id> parent_;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_SEGMENT_FACTS_H_
