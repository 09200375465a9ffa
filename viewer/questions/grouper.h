// viewer/questions/grouper.h
//
// Grouper: maps blocks to the rows of a table. Groups are numbered in order of first use, so that
// sums can be kept in arrays.
//
// Thread safety: one thread at a time. Cost: a look-up per block (by stack in an array); the names
// of functions and files are computed once per stack.

#ifndef GMT_VIEWER_QUESTIONS_GROUPER_H_
#define GMT_VIEWER_QUESTIONS_GROUPER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

struct Recording;

class Grouper {
 public:
  // REQUIRES: `by` is not kBlock: each block is its own group.
  Grouper(Recording& recording, TableQuery::By by);

  uint32_t Of(uint32_t row);
  uint32_t count() const { return static_cast<uint32_t>(keys_.size()); }

  // The displayed texts of a group, and its id in the protocol: "stack/7", "stack/7+9" (memory of a
  // backward pass), "size/512".
  struct Name {
    std::string id, name, where;
  };
  // `row`: any of the group.
  Name NameOf(uint32_t group, uint32_t row) const;
  // Orders groups independently of the order of first use.
  bool Less(uint32_t a, uint32_t b) const;

 private:
  struct Key {
    bool known = true;
    // For a function or a file: index into labels_. For a stack: that of the forward pass in the
    // high half.
    uint64_t value = 0;

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.known, key.value);
    }
  };
  Key KeyOf(uint32_t row);
  Key LabelOf(uint32_t stack, uint32_t forward_stack);
  uint32_t Find(const Key& key);

  Recording& recording_;
  const TableQuery::By by_;
  std::vector<Key> keys_;  // by group
  absl::flat_hash_map<Key, uint32_t> groups_;
  Key last_key_;
  uint32_t last_group_ = UINT32_MAX;
  // For kStack, kFunction, kFile, of memory outside of backward passes: by stack; kNotSeen: no such
  // block of the stack was looked up yet.
  static constexpr uint32_t kNotSeen = UINT32_MAX;
  std::vector<uint32_t> of_stack_;
  // For kFunction, kFile.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, Key> by_stack_;  // and the forward pass's
  absl::flat_hash_map<std::string, uint64_t> by_label_;
  std::vector<std::string> labels_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_GROUPER_H_
