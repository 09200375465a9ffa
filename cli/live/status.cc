// gpumemtrace status: the state of a running process's recording.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "answers/json.h"
#include "cli/command.h"
#include "cli/live/control_session.h"
#include "cli/live/status_text.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct StatusArguments {
  std::string session;
  bool json = false;
};

absl::StatusOr<int> Status(const StatusArguments& options, const Terminal& terminal) {
  auto controlled = ConnectToCollector(options.session);
  if (!controlled.ok()) return controlled.status();
  if (!options.json) controlled->client->MakeStringsPrintable();
  control::Request request;
  request.mutable_status();
  const absl::StatusOr<control::Reply> reply = controlled->client->Ask(request);
  if (!reply.ok()) return reply.status();
  if (options.json) {
    PrintJson(StatusJson(controlled->client->hello(), reply->status()));
  } else {
    fmt::print("{}", StatusText(controlled->client->hello(), reply->status(), terminal));
  }
  return kDone;
}

}  // namespace

void AddStatus(Program& program) {
  auto options = std::make_shared<StatusArguments>();
  Command command =
      program.AddVerb("status", "Show the state of a running process's recording",
                      [options](const Terminal& terminal) { return Status(*options, terminal); });
  command.Argument("PID", &options->session, "process ID, session file or session name");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
