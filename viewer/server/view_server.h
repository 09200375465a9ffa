// viewer/server/view_server.h
//
// ViewServer: recordings as a page. It answers as soon as it exists; files load in threads of their
// own. The questions are those of viewer/page/src/data/protocol.ts, viewer/README.md has the
// addresses. A recording that goes on is a file like the others, whose answers change.
//
//   auto server = ViewServer::Start(paths, backend, options);
//   fmt::print("{}\n", (*server)->url());
//   (*server)->Serve();
//
// Ownership: `backend` must outlive it. Its destructor waits for files that are being loaded.
// Thread safety: Serve() in one thread; Stop() from any thread and from signal handlers.

#ifndef GMT_VIEWER_SERVER_VIEW_SERVER_H_
#define GMT_VIEWER_SERVER_VIEW_SERVER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "viewer/live/live_source.h"
#include "viewer/live/live_window.h"
#include "viewer/server/http_server.h"
#include "viewer/server/recording.h"

namespace gmt::viewer {

struct ViewOptions {
  uint16_t port = 0;  // 0: any
  // After the last page was closed; nothing: for ever.
  std::optional<std::chrono::milliseconds> grace = std::chrono::seconds(5);
  std::string page;  // HTML
  HttpLimits limits;
  uint32_t window_rows = LiveWindow::kMaxRows;  // of a recording that goes on
};

class ViewServer {
 public:
  static absl::StatusOr<std::unique_ptr<ViewServer>> Start(const std::vector<std::string>& paths,
                                                           const Backend& backend,
                                                           const ViewOptions& options);
  // The same of processes that run and are recorded.
  static absl::StatusOr<std::unique_ptr<ViewServer>> StartLive(std::vector<LiveProcess> processes,
                                                               const Backend& backend,
                                                               const ViewOptions& options);
  virtual ~ViewServer() = default;

  // "http://127.0.0.1:41234/TOKEN/".
  virtual std::string url() const = 0;
  virtual uint16_t port() const = 0;
  // Until the last page was closed, or Stop().
  virtual void Serve() = 0;
  virtual void Stop() = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_VIEW_SERVER_H_
