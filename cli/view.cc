// gpumemtrace view: recordings as a page in the browser, and with --live processes while they run.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/browser.h"
#include "cli/command.h"
#include "cli/live/live_session.h"
#include "cli/verbs.h"
#include "viewer/html/page_html.h"
#include "viewer/server/view_server.h"

namespace gmt::cli {
namespace {

// A page that is loaded again is back in less; a tunnel that broke takes longer.
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
  std::ifstream in(options.page, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || text.str().empty()) {
    return absl::NotFoundError(absl::StrCat(options.page, ": cannot be read, or is empty"));
  }
  return text.str();
}

// The server that a signal stops.
viewer::ViewServer* stopped_by_signals = nullptr;

void StopOnSignals(viewer::ViewServer* server) {
  stopped_by_signals = server;
  struct sigaction action = {};
  action.sa_handler = [](int) { stopped_by_signals->Stop(); };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    // Under nohup, or in the background of a script, it is meant to stay.
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

// The address is the first line, alone, for who reads it with a program.
void TellAddress(const ViewArguments& options, const viewer::ViewServer& server) {
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  const std::string browser = options.no_browser ? "" : BrowserCommand();
  if (!browser.empty() && OpenBrowser(browser, server.url())) return;
  if (!browser.empty()) PrintNote(absl::StrCat(browser, " cannot be run; open the address above"));
  if (!IsOverSsh()) return;
  PrintNote(absl::StrCat("on the machine where your browser is, run: ",
                         ForwardingCommand(server.port())));
  PrintNote("and open the address above there");
}

absl::StatusOr<std::unique_ptr<viewer::ViewServer>> StartServer(const ViewArguments& options,
                                                                const viewer::Backend& backend,
                                                                const viewer::ViewOptions& view) {
  if (!options.live) return viewer::ViewServer::Start(options.files, backend, view);
  auto processes = FindLiveProcesses(options.files);
  if (!processes.ok()) return processes.status();
  return viewer::ViewServer::StartLive(*std::move(processes), backend, view);
}

absl::StatusOr<int> View(const ViewArguments& options) {
  if (options.files.empty() && !options.live) {
    return UsageError("FILE is required; --live [PID] looks at a process that is being recorded");
  }
  if (options.port < 0 || options.port > kLastPort) {
    return UsageError("--port: a port of 1 to 65535; 0 for any that is free");
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
  TellAddress(options, **server);
  (*server)->Serve();
  // Files that are still being read are of no use to anyone now, and may take a minute.
  std::fflush(stdout);
  std::_Exit(kDone);
}

}  // namespace

void AddView(Program& program) {
  auto options = std::make_shared<ViewArguments>();
  Command command = program.AddVerb("view", "The recording as a page in the browser",
                                    [options](const Terminal&) { return View(*options); });
  command.OptionalArguments("FILE", &options->files,
                            "recordings; PyTorch snapshots and event logs too; with --live PIDs");
  command.Flag("--live", &options->live,
               "follow a process that is being recorded: its PID; none where there is only one");
  command.Option("--port", &options->port, "N", "listen on this port of 127.0.0.1; else on any");
  command.Flag("--keep", &options->keep, "go on when the page is closed, until Ctrl-C");
  command.Flag("--no-browser", &options->no_browser, "print the address and open nothing");
  command.Option("--page", &options->page, "FILE", "this page instead of the built-in one");
}

}  // namespace gmt::cli
