// viewer/server/view_server.h
//
// ViewServer: serves recordings as a page. It answers as soon as it exists; files load in their own
// threads. Queries are those of viewer/page/src/data/protocol.ts; viewer/README.md describes the
// addresses. A recording in progress is a file like the others, except that its answers change.
//
//   auto server = ViewServer::Start(paths, backend, options);
//   fmt::print("{}\n", (*server)->url());
//   (*server)->Serve();
//
// Ownership: `backend` must outlive it. The destructor waits for files that are being loaded.
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
#include "viewer/served/recording.h"
#include "viewer/server/query_server.h"

namespace gmt::viewer {

struct ViewOptions {
  uint16_t port = 0;  // 0: any free port
  // How long the server outlives the last page; nullopt: until it is stopped.
  std::optional<std::chrono::milliseconds> grace = std::chrono::seconds(5);
  std::string page;  // HTML
  QueryLimits limits;
  uint32_t window_rows = LiveWindow::kMaxRows;  // of a recording in progress
  // Further recordings are loaded when the user opens them, because each needs memory.
  size_t loaded_at_start = 32;
};

class ViewServer {
 public:
  static absl::StatusOr<std::unique_ptr<ViewServer>> Start(const std::vector<std::string>& paths,
                                                           const Backend& backend,
                                                           const ViewOptions& options);
  // The same for running processes that are being recorded.
  static absl::StatusOr<std::unique_ptr<ViewServer>> StartLive(std::vector<LiveProcess> processes,
                                                               const Backend& backend,
                                                               const ViewOptions& options);
  virtual ~ViewServer() = default;

  // "http://127.0.0.1:41234/TOKEN/".
  virtual std::string url() const = 0;
  virtual uint16_t port() const = 0;
  // Serves until the last page is closed or Stop() is called.
  virtual void Serve() = 0;
  virtual void Stop() = 0;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_VIEW_SERVER_H_
