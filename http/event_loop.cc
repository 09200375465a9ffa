#include "http/event_loop.h"

namespace gmt::http {

EventOwned<event_base> MakeEventLoop() {
  event_set_log_callback([](int, const char*) {});
  event_config* config = event_config_new();
  event_config_require_features(config, EV_FEATURE_EARLY_CLOSE);
  EventOwned<event_base> loop(event_base_new_with_config(config));
  event_config_free(config);
  return loop;
}

}  // namespace gmt::http
