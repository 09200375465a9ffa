#include "cli/window_options.h"

namespace gmt::cli {
namespace {

constexpr double kMaxSeconds = 9e9;  // the range of an int64 in nanoseconds

int64_t Nanoseconds(double seconds) {
  if (seconds <= -kMaxSeconds) return INT64_MIN;
  if (seconds >= kMaxSeconds) return INT64_MAX;
  return std::llround(seconds * 1e9);
}

}  // namespace

void WindowOptions::AddTo(Command& command, const std::string& from_help,
                          const std::string& to_help) {
  command.Option("--from", &from, "SECONDS", from_help);
  command.Option("--to", &to, "SECONDS", to_help);
}

absl::StatusOr<analysis::Window> WindowOptions::Window() const {
  if (std::isnan(from) || std::isnan(to))
    return UsageError("--from, --to: expected a number of seconds");
  if (from > to) return UsageError("--from is later than --to");
  return analysis::Window{Nanoseconds(from), Nanoseconds(to)};
}

}  // namespace gmt::cli
