// cli/live/watch.h
//
// What `attach --watch` prints while it watches a program: what was there before, a line when what is
// known of leaks changes and every so often, at the end the answer, or what it still needs.
//
//   before attach: 61.2 GiB in PyTorch's blocks (3,412 blocks), 0.9 GiB of other driver memory
//   [ 2 m] 16 steps watched, a verdict needs 100: too early to tell
//   [14 m] 108 steps: possibly a leak: 11.6 MiB per step on GPU 0 at server.py:88
//   [28 m] 216 steps: leak: 11.6 MiB per step on GPU 0 at server.py:88; GPU 0 is full in about 3 h
//
// On a terminal the last line is rewritten until it says something new. With json each update is an
// object on a line of its own (docs/schemas/watch.schema.json). Of several processes each line says whose it
// is, and none is rewritten:
//
//   4711 rank 0: [ 2 m] 16 steps watched, a verdict needs 100: too early to tell
//   4712 rank 1: [ 2 m] 15 steps watched, a verdict needs 100: too early to tell
//
// Thread safety: Watch() from any thread, one for each process: lines of several do not mix. All else
// one thread at a time.

#ifndef GMT_CLI_LIVE_WATCH_H_
#define GMT_CLI_LIVE_WATCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/terminal.h"
#include "proto/control.pb.h"
#include "proto/leaks.pb.h"

namespace gmt::cli {

struct WatchOptions {
  int64_t pid = 0;
  std::string who;          // "4711 rank 1": where several are watched; "": before no line
  std::string recording;    // path
  int64_t duration_ns = 0;  // 0: until `stopped`
  bool json = false;
  std::function<bool()> stopped;  // ^C, or the program has ended
  Terminal terminal;
};

// What a watch prints of the answers that come in. Returns text for stdout, "" for nothing.
class WatchText {
 public:
  explicit WatchText(const WatchOptions& options) : options_(options) {}

  // `elapsed_ns`: since the watch began.
  std::string OnAnswer(const gmt::LeakAnswer& answer, int64_t elapsed_ns);
  // Behind the last answer: what a longer watch needs, or nothing where there is a verdict.
  std::string AtEnd(int64_t elapsed_ns);

 private:
  std::string Json(const gmt::LeakAnswer& answer, int64_t elapsed_ns) const;
  std::string Line(const gmt::LeakAnswer& answer, int64_t elapsed_ns) const;

  const WatchOptions& options_;
  std::optional<gmt::LeakAnswer> last_;
  bool told_before_ = false, line_open_ = false;
  int64_t printed_ns_ = 0;
};

// "before attach: 61.2 GiB in PyTorch's blocks (3,412 blocks), ..."; "" where nobody told of any.
std::string BeforeAttachText(const gmt::LeakAnswer& answer);

// `subscribe` gives the collector's replies to a callback until that returns false, as
// control::Client::Subscribe does. Returns the exit code of the watch alone: kDone.
using Subscribe = std::function<absl::Status(const std::function<bool(const control::Reply&)>&)>;
absl::StatusOr<int> Watch(const WatchOptions& options, const Subscribe& subscribe);

// The whole answer of the recording, once it is complete. Of one of several its first line: all of it is
// what `leaks` prints.
absl::Status PrintFinalLeaks(const WatchOptions& options);

// Each line of `text` with whose it is before it; as it is where `who` is "".
std::string WithWho(const std::string& who, const std::string& text);

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_WATCH_H_
