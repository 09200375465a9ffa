#include "collector/mailbox/copy_waiters.h"

#include <utility>

namespace gmt::control {

void CopyWaiters::Add(uint32_t needs, Done done) {
  waiters_.push_back({needs, Clock::now() + kPatience, std::move(done)});
  mailbox_.RequestCopy(needs);
}

bool CopyWaiters::Has(const Copy& copy, uint32_t needs) {
  return ((needs & Mailbox::kSites) == 0 || copy.sites.has_value()) &&
         ((needs & Mailbox::kLeaks) == 0 || copy.leaks.has_value()) &&
         ((needs & Mailbox::kWritten) == 0 || copy.written);
}

std::shared_ptr<const Copy> CopyWaiters::LastWith(uint32_t needs) const {
  if ((needs & Mailbox::kLeaks) != 0) return last_with_leaks_;
  if ((needs & Mailbox::kWritten) != 0) return last_written_;
  return (needs & Mailbox::kSites) != 0 ? last_with_sites_ : last_;
}

// A callback may add a waiter, so the list is taken first.
void CopyWaiters::Take(std::shared_ptr<const Copy> copy) {
  last_ = copy;
  if (copy->sites.has_value()) last_with_sites_ = copy;
  if (copy->leaks.has_value()) last_with_leaks_ = copy;
  if (copy->written) last_written_ = copy;
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    if (Has(*copy, waiter.needs)) {
      waiter.done(copy);
    } else {
      waiters_.push_back(std::move(waiter));
    }
  }
}

void CopyWaiters::GiveUpOn(Clock::time_point now) {
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    if (waiter.until <= now) {
      waiter.done(LastWith(waiter.needs));
    } else {
      waiters_.push_back(std::move(waiter));
    }
  }
}

}  // namespace gmt::control
