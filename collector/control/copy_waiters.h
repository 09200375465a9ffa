// collector/control/copy_waiters.h
//
// CopyWaiters: who waits for a copy from the drain, and for how long. A drain that is busy (a full
// disk, names to look up at the end) does not keep anybody waiting for ever: after kPatience the
// last copy must do, whose t_ns tells its age.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_CONTROL_COPY_WAITERS_H_
#define GMT_COLLECTOR_CONTROL_COPY_WAITERS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collector/control/desk.h"

namespace gmt::control {

class CopyWaiters {
 public:
  using Clock = std::chrono::steady_clock;
  // Null: there is none yet and none came.
  using Done = std::function<void(std::shared_ptr<const Copy>)>;

  static constexpr std::chrono::milliseconds kPatience{2'000};

  explicit CopyWaiters(Desk* desk) : desk_(*desk) {}

  // `needs`: a set of Desk::Wish.
  void Add(uint32_t needs, Done done);
  void Take(std::shared_ptr<const Copy> copy);
  void GiveUpOn(Clock::time_point now);

 private:
  struct Waiter {
    uint32_t needs;
    Clock::time_point until;
    Done done;
  };

  static bool Has(const Copy& copy, uint32_t needs);
  std::shared_ptr<const Copy> LastWith(uint32_t needs) const;

  Desk& desk_;
  std::vector<Waiter> waiters_;
  std::shared_ptr<const Copy> last_, last_with_sites_, last_with_leaks_, last_written_;
};

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_COPY_WAITERS_H_
