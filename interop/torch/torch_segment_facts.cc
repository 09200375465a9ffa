#include "interop/torch/torch_segment_facts.h"

namespace gmt::interop {

TorchSegmentFacts::Id TorchSegmentFacts::IdOf(uint64_t name) {
  const auto [it, is_new] = ids_.try_emplace(name, static_cast<Id>(facts_.size()));
  if (is_new) {
    facts_.emplace_back();
    parent_.push_back(it->second);
  }
  return it->second;
}

const TorchSegmentFacts::Facts& TorchSegmentFacts::Of(Id id) const {
  static constexpr Facts kNothing;
  return id == kNone ? kNothing : facts_[Root(id)];
}

TorchSegmentFacts::Id TorchSegmentFacts::Root(Id id) const {
  while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
  return id;
}

void TorchSegmentFacts::Join(Id a, Id b) {
  const Id root = Root(a), other = Root(b);
  if (root == other) return;
  if (!facts_[root].learnt) facts_[root] = facts_[other];
  parent_[other] = root;
}

void TorchSegmentFacts::Learn(Id id, const Facts& facts) {
  if (id == kNone) return;
  Facts& known = facts_[Root(id)];
  if (!known.learnt) known = facts;
}

}  // namespace gmt::interop
