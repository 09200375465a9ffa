#include "http/event_loop.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

namespace gmt::http {

void EventFreed::operator()(event_base* base) const { event_base_free(base); }
void EventFreed::operator()(event* one) const { event_free(one); }
void EventFreed::operator()(bufferevent* one) const { bufferevent_free(one); }
void EventFreed::operator()(evbuffer* buffer) const { evbuffer_free(buffer); }
void EventFreed::operator()(evhttp* http) const { evhttp_free(http); }

EventOwned<event_base> MakeEventLoop() {
  event_set_log_callback([](int, const char*) {});
  event_config* config = event_config_new();
  event_config_require_features(config, EV_FEATURE_EARLY_CLOSE);
  EventOwned<event_base> loop(event_base_new_with_config(config));
  event_config_free(config);
  return loop;
}

}  // namespace gmt::http
