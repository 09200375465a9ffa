// cli/live/status_text.h
//
// The status of a collector and its recording (proto/control.proto, Status), as `gpumemtrace
// status` prints it.
//
// Thread safety: pure functions.

#ifndef GMT_CLI_LIVE_STATUS_TEXT_H_
#define GMT_CLI_LIVE_STATUS_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/terminal.h"

namespace gmt::control {
class Hello;
class Status;
}  // namespace gmt::control

namespace gmt::cli {

std::string StatusText(const control::Hello& hello, const control::Status& status,
                       const Terminal& terminal);
nlohmann::ordered_json StatusJson(const control::Hello& hello, const control::Status& status);

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_STATUS_TEXT_H_
