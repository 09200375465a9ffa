// viewer/questions/grouper.h
//
// Grouper: which row of a table a block belongs to. Groups get numbers as they are met, so that sums can
// be kept in arrays.
//
// Thread safety: one thread at a time. Cost: a look-up for a block, by stack one in an array; names of
// functions and files are found once for a stack.

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

  // What a person sees, and the id that says it to a program: "stack/7", "size/512".
  struct Name {
    std::string id, name, where;
  };
  // `stack`: one that the group has.
  Name NameOf(uint32_t group, uint32_t stack) const;
  // An order of groups that does not depend on what was met first.
  bool Less(uint32_t a, uint32_t b) const;

 private:
  struct Key {
    bool known = true;
    uint64_t value = 0;  // of a function or a file: index of labels_

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.known, key.value);
    }
  };
  Key KeyOf(uint32_t row);
  Key LabelOf(uint32_t stack);
  uint32_t Find(const Key& key);

  Recording& recording_;
  const TableQuery::By by_;
  std::vector<Key> keys_;  // by group
  absl::flat_hash_map<Key, uint32_t> groups_;
  Key last_key_;
  uint32_t last_group_ = UINT32_MAX;
  // kStack, kFunction, kFile: by stack; kNotMet: of none of its blocks was asked yet.
  static constexpr uint32_t kNotMet = UINT32_MAX;
  std::vector<uint32_t> of_stack_;
  // kFunction, kFile.
  absl::flat_hash_map<uint32_t, Key> by_stack_;
  absl::flat_hash_map<std::string, uint64_t> by_label_;
  std::vector<std::string> labels_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_GROUPER_H_
