// http/event_loop.h
//
// Owning pointers to libevent objects, and the event loop that owns them.
//
// Thread safety: as that of the objects.

#ifndef GMT_HTTP_EVENT_LOOP_H_
#define GMT_HTTP_EVENT_LOOP_H_

#include <sys/time.h>

#include <chrono>
#include <memory>

struct bufferevent;
struct evbuffer;
struct event;
struct event_base;
struct evhttp;

namespace gmt::http {

struct EventFreed {
  void operator()(event_base* base) const;
  void operator()(event* one) const;
  void operator()(bufferevent* one) const;
  void operator()(evbuffer* buffer) const;
  void operator()(evhttp* http) const;
};
template <typename T>
using EventOwned = std::unique_ptr<T, EventFreed>;

// Returns an event loop that notices clients that disconnect while they wait; null if the kernel
// provides none. libevent's warnings, which are meant for developers, are not printed.
EventOwned<event_base> MakeEventLoop();

inline timeval TimeOf(std::chrono::milliseconds duration) {
  return {static_cast<time_t>(duration.count() / 1000),
          static_cast<suseconds_t>(duration.count() % 1000 * 1000)};
}

}  // namespace gmt::http

#endif  // GMT_HTTP_EVENT_LOOP_H_
