#include "analysis/categories/sizes.h"

#include <algorithm>

namespace gmt::analysis {
namespace {

// PyTorch's allocator leaves remainders below this unsplit in its large pool.
constexpr uint64_t kUnsplit = uint64_t{1} << 20;

}  // namespace

void Sizes::AddGradient(uint64_t size, uint32_t pass) {
  Uses& uses = sizes_[size];
  if (uses.pass != pass) uses.in_pass = 0;
  uses.pass = pass;
  uses.gradients = std::max(uses.gradients, ++uses.in_pass);
  ++uses.in_all_passes;
  if (pass != last_pass_) ++passes_;
  last_pass_ = pass;
}

template <typename Test>
bool Sizes::AnyNear(uint64_t size, Test test) const {
  const uint64_t reach = size > kUnsplit ? kUnsplit - 1 : 0;
  const uint64_t last = size > UINT64_MAX - reach ? UINT64_MAX : size + reach;
  for (auto it = sizes_.lower_bound(size - reach); it != sizes_.end() && it->first <= last; ++it) {
    if (test(it->second)) return true;
  }
  return false;
}

bool Sizes::IsGradients(uint64_t size) const {
  return AnyNear(size, [](const Uses& uses) { return uses.gradients > 0; });
}

bool Sizes::IsParameters(uint64_t size) const {
  return AnyNear(size, [](const Uses& uses) { return uses.parameters > 0; });
}

uint64_t Sizes::UsualGradientsOf(uint64_t size) const {
  const auto found = sizes_.find(size);
  // Rounds to the nearest integer.
  return found == sizes_.end() || passes_ == 0
             ? 0
             : (2 * found->second.in_all_passes + passes_) / (2 * passes_);
}

// Blocks are too big, not too small, so a size below is more likely. But the gradient's block may
// be the one that is never split.
uint64_t Sizes::GradientsFor(uint64_t size) const {
  const auto is_near = [](uint64_t one, uint64_t other) {
    return one == other || (one > kUnsplit && other > kUnsplit &&
                            std::max(one, other) - std::min(one, other) < kUnsplit);
  };
  const auto above = sizes_.upper_bound(size);
  for (auto it = above; it != sizes_.begin();) {
    --it;
    if (!is_near(it->first, size)) break;
    if (UsualGradientsOf(it->first) > 0) return it->first;
  }
  for (auto it = above; it != sizes_.end() && is_near(it->first, size); ++it) {
    if (UsualGradientsOf(it->first) > 0) return it->first;
  }
  return 0;
}

bool Sizes::LacksParameters(uint64_t size) const {
  const auto found = sizes_.find(size);
  return found != sizes_.end() && found->second.gradients > found->second.parameters;
}

}  // namespace gmt::analysis
