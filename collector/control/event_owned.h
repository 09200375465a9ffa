// collector/control/event_owned.h
//
// Owning pointers to libevent objects.
//
// Thread safety: as that of the objects.

#ifndef GMT_COLLECTOR_CONTROL_EVENT_OWNED_H_
#define GMT_COLLECTOR_CONTROL_EVENT_OWNED_H_

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <sys/time.h>

#include <chrono>
#include <memory>

namespace gmt::control {

struct EventFreed {
  void operator()(event_base* base) const { event_base_free(base); }
  void operator()(event* one) const { event_free(one); }
  void operator()(bufferevent* one) const { bufferevent_free(one); }
  void operator()(evbuffer* buffer) const { evbuffer_free(buffer); }
  void operator()(evhttp* http) const { evhttp_free(http); }
};
template <typename T>
using EventOwned = std::unique_ptr<T, EventFreed>;

inline timeval TimeOf(std::chrono::milliseconds duration) {
  return {static_cast<time_t>(duration.count() / 1000),
          static_cast<suseconds_t>(duration.count() % 1000 * 1000)};
}

}  // namespace gmt::control

#endif  // GMT_COLLECTOR_CONTROL_EVENT_OWNED_H_
