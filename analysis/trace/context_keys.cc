#include "analysis/trace/context_keys.h"

namespace gmt::analysis {

uint32_t ContextKeys::KeyOf(std::optional<uint32_t> context, std::optional<uint32_t> device) {
  if (context) return OfContext(*context, device);
  if (device) return OfDevice(*device);
  if (keys_.empty()) keys_.emplace_back();
  return keys_.size() == 1 ? 1 : kUnknown;
}

// A key created without its context or device gets it when it becomes known.
uint32_t ContextKeys::OfContext(uint32_t context, std::optional<uint32_t> device) {
  if (const auto known = by_context_.find(context); known != by_context_.end()) {
    Key& key = keys_[known->second - 1];
    if (device && !key.device) {
      key.device = device;
      last_device_.reset();
    }
    return known->second;
  }
  last_device_.reset();
  uint32_t found = 0;
  for (uint32_t i = 0; i < keys_.size() && found == 0; ++i) {
    Key& key = keys_[i];
    const bool fits = !key.device || (device && *key.device == *device);
    if (!key.context && fits) found = i + 1;
  }
  if (found == 0) {
    keys_.emplace_back();
    found = static_cast<uint32_t>(keys_.size());
  }
  keys_[found - 1].context = context;
  if (device) keys_[found - 1].device = device;
  by_context_[context] = found;
  return found;
}

uint32_t ContextKeys::OfDevice(uint32_t device) {
  if (last_device_ != device) {
    last_key_ = FindOrAddDevice(device);
    last_device_ = device;
  }
  return last_key_;
}

uint32_t ContextKeys::FindOrAddDevice(uint32_t device) {
  uint32_t found = 0, matches = 0, without = 0;
  for (uint32_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].device == device) found = i + 1, ++matches;
    if (!keys_[i].device) without = i + 1;
  }
  if (matches > 1) return kUnknown;
  if (matches == 1) return found;
  if (without == 0) {
    keys_.emplace_back();
    without = static_cast<uint32_t>(keys_.size());
  } else if (keys_[without - 1].context) {
    return kUnknown;  // belongs to a context whose device was never reported
  }
  keys_[without - 1].device = device;
  return without;
}

}  // namespace gmt::analysis
