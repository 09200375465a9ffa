// collector/control/site_book.h
//
// SiteBook: what sites are called and how they change, for who watches a running collector. It is
// told names as the recording defines them, and copies of the counts; it works out text, order,
// growth and rate, so that the thread that drains has nothing to do with it.
//
// Growth is what a site's live bytes differ from those of a copy of about a minute ago (kWindow to
// twice that; less for who has just come). Two copies are kept for that, however many come.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_CONTROL_SITE_BOOK_H_
#define GMT_COLLECTOR_CONTROL_SITE_BOOK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "collector/control/desk.h"
#include "format/definitions.h"

namespace gmt::control {

class SiteBook {
 public:
  static constexpr int64_t kWindowNs = 60'000'000'000;
  static constexpr size_t kMaxFrames = 64;

  void AddNames(NameChunk chunk);
  // A copy with sites.
  void Take(std::shared_ptr<const Copy> copy);

  // Of the newest copy; empty before there is one.
  Top MakeTop(const Subscribe& wish) const;
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
  // Sites of one moment; those that differ in the stack of the forward pass alone are one.
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

// Frames as the wire has them, innermost first.
void AddFrames(const format::Definitions& names, uint32_t stack, size_t most, Site* site);

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_SITE_BOOK_H_
