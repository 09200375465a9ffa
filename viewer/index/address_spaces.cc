#include "viewer/index/address_spaces.h"

#include <algorithm>
#include <utility>

namespace gmt::viewer {
namespace {

uint64_t EndOf(uint64_t address, uint64_t size) {
  uint64_t end;
  return __builtin_add_overflow(address, size, &end) ? UINT64_MAX : end;
}

// Sorts by birth and merges lives that touch or overlap.
void Simplify(std::vector<Life>& lives) {
  std::sort(lives.begin(), lives.end(),
            [](const Life& a, const Life& b) { return a.birth < b.birth; });
  size_t kept = 0;
  for (const Life& life : lives) {
    if (kept > 0 && life.birth <= lives[kept - 1].death) {
      lives[kept - 1].death = std::max(lives[kept - 1].death, life.death);
    } else {
      lives[kept++] = life;
    }
  }
  lives.resize(kept);
}

}  // namespace

void AddressSpaces::Add(uint64_t address, uint64_t size, Life life, const std::string& label,
                        bool joins) {
  const auto [it, is_new] = added_at_.try_emplace(address, added_.size());
  if (is_new) added_.push_back({address, address, joins, label, {}});
  Added& added = added_[it->second];
  added.end = std::max(added.end, EndOf(address, size));
  added.joins = added.joins && joins;
  if (added.lives.size() >= kMaxLives) {
    Simplify(added.lives);
    if (added.lives.size() >= kMaxLives) {
      const Life all = {added.lives.front().birth, added.lives.back().death};
      added.lives.assign(1, all);
    }
  }
  added.lives.push_back(life);
}

void AddressSpaces::Join(std::vector<Added>& sorted) {
  size_t kept = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    Added& added = sorted[i];
    Added* before = kept == 0 ? nullptr : &sorted[kept - 1];
    const bool overlaps = before != nullptr && added.address < before->end;
    const bool touches = before != nullptr && added.address == before->end;
    if (overlaps || (touches && before->joins && added.joins)) {
      before->end = std::max(before->end, added.end);
      before->joins = before->joins && added.joins;
      before->lives.insert(before->lives.end(), added.lives.begin(), added.lives.end());
    } else {
      if (kept != i) sorted[kept] = std::move(added);
      ++kept;
    }
  }
  sorted.resize(kept);
}

void AddressSpaces::Settle() {
  std::sort(added_.begin(), added_.end(),
            [](const Added& a, const Added& b) { return a.address < b.address; });
  Join(added_);
  added_at_.clear();
  spaces_.clear();
  uint64_t place = 0;
  for (size_t i = 0; i < added_.size(); ++i) {
    Added& added = added_[i];
    added_at_[added.address] = i;
    Simplify(added.lives);
    spaces_.push_back({added.address, added.end - added.address, place, added.label, added.lives});
    place += spaces_.back().size;
  }
  recent_.assign(kRecent, 0);
}

std::optional<uint64_t> AddressSpaces::PlaceOf(uint64_t address) const {
  const auto holds = [&](const Space& space) {
    return space.address <= address && address < space.end();
  };
  if (spaces_.empty()) return std::nullopt;
  uint32_t& recent = recent_[address / kGranule % kRecent];
  if (!holds(spaces_[recent])) {
    const auto after =
        std::upper_bound(spaces_.begin(), spaces_.end(), address,
                         [](uint64_t at, const Space& space) { return at < space.address; });
    if (after == spaces_.begin() || !holds(*(after - 1))) return std::nullopt;
    recent = static_cast<uint32_t>(after - spaces_.begin() - 1);
  }
  return spaces_[recent].place + (address - spaces_[recent].address);
}

std::vector<Space> AddressSpaces::Finish() && { return std::move(spaces_); }

}  // namespace gmt::viewer
