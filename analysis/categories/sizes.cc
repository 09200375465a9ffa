#include "analysis/categories/sizes.h"

#include <algorithm>

namespace gmt::analysis {
namespace {

// What PyTorch's allocator leaves unsplit in its large pool.
constexpr uint64_t kUnsplit = uint64_t{1} << 20;

}  // namespace

void Sizes::AddGradient(uint64_t size, uint32_t pass) {
  Uses& uses = sizes_[size];
  if (uses.pass != pass) uses.in_pass = 0;
  uses.pass = pass;
  uses.gradients = std::max(uses.gradients, ++uses.in_pass);
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

uint64_t Sizes::GradientsOf(uint64_t size) const {
  const auto found = sizes_.find(size);
  return found == sizes_.end() ? 0 : found->second.gradients;
}

bool Sizes::LacksParameters(uint64_t size) const {
  const auto found = sizes_.find(size);
  return found != sizes_.end() && found->second.gradients > found->second.parameters;
}

}  // namespace gmt::analysis
