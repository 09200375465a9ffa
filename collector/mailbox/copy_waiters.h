// collector/mailbox/copy_waiters.h
//
// CopyWaiters: callbacks that wait for a copy from the draining thread. That thread may be busy (a
// full disk, names to look up at the end), so a waiter gets the last suitable copy after kPatience.
// The copy's t_ns shows its age.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_MAILBOX_COPY_WAITERS_H_
#define GMT_COLLECTOR_MAILBOX_COPY_WAITERS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collector/mailbox/mailbox.h"

namespace gmt::control {

class CopyWaiters {
 public:
  using Clock = std::chrono::steady_clock;
  // Receives the copy; null if none arrived and there is no earlier one.
  using Done = std::function<void(std::shared_ptr<const Copy>)>;

  static constexpr std::chrono::milliseconds kPatience{2'000};

  explicit CopyWaiters(Mailbox* mailbox) : mailbox_(*mailbox) {}

  // Calls `done` with a copy that contains all of `needs`, a set of Mailbox::CopyKind.
  void Add(uint32_t needs, Done done);
  // Hands a new copy to the waiters that it satisfies.
  void Take(std::shared_ptr<const Copy> copy);
  // Serves the waiters that have waited for kPatience from earlier copies.
  void GiveUpOn(Clock::time_point now);

 private:
  struct Waiter {
    uint32_t needs;
    Clock::time_point until;
    Done done;
  };

  static bool Has(const Copy& copy, uint32_t needs);
  std::shared_ptr<const Copy> LastWith(uint32_t needs) const;

  Mailbox& mailbox_;
  std::vector<Waiter> waiters_;
  std::shared_ptr<const Copy> last_, last_with_sites_, last_with_leaks_, last_written_;
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_MAILBOX_COPY_WAITERS_H_
