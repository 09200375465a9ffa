// gpumemtrace mark: puts a mark into the recording of a running process.

#include <fmt/format.h>

#include <string>

#include "cli/command.h"
#include "cli/live/control_session.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct MarkArguments {
  std::string session, name;
  int64_t index = -1;
};

absl::StatusOr<int> Mark(const MarkArguments& options) {
  auto controlled = ConnectToCollector(options.session);
  if (!controlled.ok()) return controlled.status();
  control::Request request;
  request.mutable_mark()->set_name(options.name);
  if (options.index >= 0) request.mutable_mark()->set_index(static_cast<uint64_t>(options.index));
  const absl::StatusOr<control::Reply> reply = controlled->client->Ask(request);
  if (!reply.ok()) return reply.status();
  return kDone;
}

}  // namespace

void AddMark(Program& program) {
  auto options = std::make_shared<MarkArguments>();
  Command command = program.AddVerb("mark", "Put a mark into the recording of a running process",
                                    [options](const Terminal&) { return Mark(*options); });
  command.Argument("PID", &options->session, "process ID, session file or session name");
  command.Argument("NAME", &options->name,
                   "name of the mark; repeated marks of one name delimit cycles");
  command.Option("--index", &options->index, "N", "number of this mark among those of its name");
}

}  // namespace gmt::cli
