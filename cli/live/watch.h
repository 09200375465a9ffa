// cli/live/watch.h
//
// What `attach --watch` prints while it watches a program: the memory from before the attach, a
// line when the known leaks change and at intervals, and at the end the answer, or what it still
// needs.
//
//   before attach: 61.2 GiB in PyTorch's blocks (3,412 blocks), 0.9 GiB of other driver memory
//   [ 2 m] 16 steps watched, a verdict needs 100: too early to tell
//   [14 m] 108 steps: possibly a leak: 11.6 MiB per step on GPU 0 at server.py:88
//   [28 m] 216 steps: leak: 11.6 MiB per step on GPU 0 at server.py:88; GPU 0 is full in about 3 h
//
// On a terminal, the last line is rewritten until there is news. With JSON, each update is an
// object on its own line (docs/schemas/watch.schema.json). If several processes are watched, each
// line names its process, and no line is rewritten:
//
//   4711 rank 0: [ 2 m] 16 steps watched, a verdict needs 100: too early to tell
//   4712 rank 1: [ 2 m] 15 steps watched, a verdict needs 100: too early to tell
//
// Thread safety: Watch() may be called from several threads, one per process; their lines do not
// mix. Everything else: one thread at a time.

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
  std::string label;        // label before each line, "4711 rank 1"; "" if only one is watched
  std::string recording;    // path
  int64_t duration_ns = 0;  // 0: until `stopped`
  bool json = false;
  std::function<bool()> stopped;  // set by ^C or by the end of the program
  Terminal terminal;
};

// Formats the answers of a watch. Returns text for stdout, or "" for nothing.
class WatchText {
 public:
  explicit WatchText(const WatchOptions& options) : options_(options) {}

  // `elapsed_ns` is the time since the watch began.
  std::string OnAnswer(const gmt::LeakAnswer& answer, int64_t elapsed_ns);
  // Called after the last answer. Returns what a longer watch needs, or "" if there is a verdict.
  std::string AtEnd(int64_t elapsed_ns);

 private:
  std::string Json(const gmt::LeakAnswer& answer, int64_t elapsed_ns) const;
  std::string Line(const gmt::LeakAnswer& answer, int64_t elapsed_ns) const;

  const WatchOptions& options_;
  std::optional<gmt::LeakAnswer> last_;
  bool printed_before_attach_ = false, line_open_ = false;
  int64_t printed_ns_ = 0;
};

// Returns "before attach: 61.2 GiB in PyTorch's blocks (3,412 blocks), ...", or "" if none was
// reported.
std::string BeforeAttachText(const gmt::LeakAnswer& answer);

// Prints the answers until the watch ends. `subscribe` passes the collector's replies to a callback
// until that returns false, as control::Client::Subscribe does. Returns kDone.
using Subscribe = std::function<absl::Status(const std::function<bool(const control::Reply&)>&)>;
absl::StatusOr<int> Watch(const WatchOptions& options, const Subscribe& subscribe);

// Prints the whole answer once the recording is complete. If several processes are watched, prints
// only its first line; `leaks` prints all of it.
absl::Status PrintFinalLeaks(const WatchOptions& options);

// Returns `text` with the label `label` before each line, or unchanged if `label` is "".
std::string WithLabel(const std::string& label, const std::string& text);

}  // namespace gmt::cli

#endif  // GMT_CLI_LIVE_WATCH_H_
