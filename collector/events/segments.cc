#include "collector/events/segments.h"

namespace gmt::collector {

using session::LiveValue;
using session::Space;

void Segments::OnBorn(const Place& place, const LiveValue& live) {
  Note(place, live);
  next_->OnBorn(place, live);
}

void Segments::OnEnded(const Place& place, const LiveValue& live) {
  if (place.space == Space::kDevice) {
    segments_.erase(place.value);
    without_blocks_.erase(place.value);
  }
  next_->OnEnded(place, live);
}

void Segments::OnRestored(const Place& place, const LiveValue& live) {
  Note(place, live);
  next_->OnRestored(place, live);
}

void Segments::Note(const Place& place, const LiveValue& live) {
  if (place.space == Space::kDevice) {
    without_blocks_[place.value] = place.value + live.size;
  } else if (place.space == Space::kBlock && !without_blocks_.empty()) {
    auto around = without_blocks_.upper_bound(place.value);
    if (around == without_blocks_.begin() || (--around)->second <= place.value) return;
    segments_.insert(around->first);
    without_blocks_.erase(around);
  }
}

}  // namespace gmt::collector
