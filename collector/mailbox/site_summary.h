// collector/mailbox/site_summary.h
//
// SiteSummary: the sites of a running process with names, growth and rate, for clients that watch
// its collector. It receives names as the recording defines them, and copies of the counts. It
// computes texts, order, growth and rates, so that the draining thread need not.
//
// Growth is the change of a site's live bytes since a copy that is between kWindowNs and twice that
// old (younger shortly after the start). Only two copies are kept for this purpose.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_MAILBOX_SITE_SUMMARY_H_
#define GMT_COLLECTOR_MAILBOX_SITE_SUMMARY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "collector/mailbox/mailbox.h"
#include "format/definitions.h"

namespace gmt::control {

class SiteSummary {
 public:
  static constexpr int64_t kWindowNs = 60'000'000'000;
  static constexpr size_t kMaxFrames = 64;

  void AddNames(NameChunk chunk);
  // Adds a copy. Ignored if it has no sites.
  void Take(std::shared_ptr<const Copy> copy);

  // Returns the top sites of the newest copy; empty if there is none yet.
  Top MakeTop(const Subscribe& subscription) const;
  const format::Definitions& definitions() const { return names_; }

 private:
  struct Key {
    uint32_t heap, stack;
    bool other;

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.heap, k.stack, k.other);
    }
  };
  struct Counts {
    uint64_t live_bytes = 0, live_count = 0, allocations = 0, allocated_bytes = 0;
  };
  // The sites of one moment. Sites that differ only in the stack of the forward pass are merged.
  struct Moment {
    int64_t t_ns = 0;
    absl::flat_hash_map<Key, Counts> sites;
  };
  static Moment MakeMoment(const Copy& copy);

  format::Definitions names_;
  std::shared_ptr<const Copy> copy_;
  Moment now_, base_, next_base_;
  bool has_base_ = false;
};

// Adds at most `most` frames of a stack in wire format, innermost first.
void AddFrames(const format::Definitions& names, uint32_t stack, size_t most, Site* site);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_MAILBOX_SITE_SUMMARY_H_
