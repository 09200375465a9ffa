// gpumemtrace view: shows recordings as a page in the browser, and with --live running processes.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "answers/ranks/digest_file.h"
#include "answers/ranks/rank_files.h"
#include "cli/browser.h"
#include "cli/command.h"
#include "cli/live/live_session.h"
#include "cli/verbs.h"
#include "format/byte_source.h"
#include "viewer/html/page_html.h"
#include "viewer/server/view_server.h"

namespace gmt::cli {
namespace {

// How long the server waits for the page to return. A reload takes less; a broken tunnel needs
// longer.
constexpr std::chrono::seconds kGrace{5}, kGraceOverSsh{120};
constexpr int64_t kLastPort = 65535;

struct ViewArguments {
  std::vector<std::string> files;
  int64_t port = 0;
  std::string page;
  bool keep = false, no_browser = false, live = false;
};

absl::StatusOr<std::string> Page(const ViewArguments& options) {
  if (options.page.empty()) {
    if (viewer::PageHtml().empty()) {
      return absl::FailedPreconditionError(std::string(viewer::PageMissing()));
    }
    return std::string(viewer::PageHtml());
  }
  const auto file = format::OpenFile(options.page);
  if (!file.ok()) return file.status();
  std::string page;
  if (absl::Status status = (*file)->Read(0, (*file)->size(), &page); !status.ok()) return status;
  if (page.empty()) return absl::NotFoundError(absl::StrCat(options.page, " is empty"));
  return page;
}

// The server that is stopped by signals.
viewer::ViewServer* stopped_by_signals = nullptr;

void StopOnSignals(viewer::ViewServer* server) {
  stopped_by_signals = server;
  struct sigaction action = {};
  action.sa_handler = [](int) { stopped_by_signals->Stop(); };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    // Under nohup, or in the background of a script, the server is meant to stay.
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

// Prints the address alone on the first line, for programs that read it.
void PrintAddress(const ViewArguments& options, const viewer::ViewServer& server) {
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  const std::string browser = options.no_browser ? "" : BrowserCommand();
  if (!browser.empty() && OpenBrowser(browser, server.url())) return;
  if (!browser.empty()) PrintNote(absl::StrCat(browser, " cannot be run; open the address above"));
  if (!IsOverSsh()) return;
  PrintNote(
      absl::StrCat("on the machine with your browser, run: ", ForwardingCommand(server.port())));
  PrintNote("and open the address above there");
}

// Returns the recordings in the files and directories that are named, without digests, which the
// page reads together with their recordings.
absl::StatusOr<std::vector<std::string>> RecordingsOf(const std::vector<std::string>& places) {
  auto files = answers::FilesOfRanks(places);
  if (!files.ok()) return files.status();
  const std::string first = files->front();
  std::erase_if(
      *files, [](const std::string& file) { return answers::RecordingOfDigest(file).has_value(); });
  if (files->empty()) {
    return absl::NotFoundError(absl::StrCat(
        first,
        " is the digest of a recording that is not there. To compare digests: gpumemtrace "
        "ranks"));
  }
  return files;
}

absl::StatusOr<std::unique_ptr<viewer::ViewServer>> StartServer(const ViewArguments& options,
                                                                const viewer::Backend& backend,
                                                                const viewer::ViewOptions& view) {
  if (!options.live) {
    auto files = RecordingsOf(options.files);
    if (!files.ok()) return files.status();
    return viewer::ViewServer::Start(*files, backend, view);
  }
  auto processes = FindLiveProcesses(options.files);
  if (!processes.ok()) return processes.status();
  return viewer::ViewServer::StartLive(*std::move(processes), backend, view);
}

absl::StatusOr<int> View(const ViewArguments& options) {
  if (options.files.empty() && !options.live) {
    return UsageError("FILE is required. To follow a process that is being recorded: --live [PID]");
  }
  if (options.port < 0 || options.port > kLastPort) {
    return UsageError("--port: expected 1 to 65535, or 0 for any free port");
  }
  auto page = Page(options);
  if (!page.ok()) return page.status();
  viewer::ViewOptions view;
  view.port = static_cast<uint16_t>(options.port);
  view.page = *std::move(page);
  view.grace = IsOverSsh() ? kGraceOverSsh : kGrace;
  if (options.keep) view.grace = std::nullopt;
  const viewer::Backend backend;
  auto server = StartServer(options, backend, view);
  if (!server.ok()) return server.status();
  StopOnSignals(server->get());
  PrintAddress(options, **server);
  (*server)->Serve();
  // Exits without waiting for files that are still being loaded, which may take a minute.
  std::fflush(stdout);
  std::_Exit(kDone);
}

}  // namespace

void AddView(Program& program) {
  auto options = std::make_shared<ViewArguments>();
  Command command = program.AddVerb("view", "Show recordings in the browser",
                                    [options](const Terminal&) { return View(*options); });
  command.OptionalArguments("FILE", &options->files,
                            "recordings, PyTorch snapshots or event logs, or directories with "
                            "recordings; with --live: PIDs");
  command.Flag("--live", &options->live,
               "follow processes that are being recorded; a single one needs no PID");
  command.Option("--port", &options->port, "N",
                 "listen on this port of 127.0.0.1 (default: any free port)");
  command.Flag("--keep", &options->keep, "keep serving after the page is closed, until Ctrl-C");
  command.Flag("--no-browser", &options->no_browser, "only print the address");
  command.Option("--page", &options->page, "FILE", "serve this page instead of the built-in one");
}

}  // namespace gmt::cli
