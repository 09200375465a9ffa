// gpumemtrace snapshot: makes the collector of a running process record what is allocated now.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "answers/json.h"
#include "cli/command.h"
#include "cli/live/control_session.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "format/printable.h"
#include "format/recording_writer.h"
#include "format/snapshot_copy.h"

namespace gmt::cli {
namespace {

struct SnapshotArguments {
  std::string session, name, output;
  bool force = false, json = false;
};

absl::Status Extract(const control::SnapshotDone& done, OutputFile* output) {
  const std::string path = done.recording();
  if (path.empty())
    return absl::FailedPreconditionError("the recording has no path to take the snapshot from");
  auto sink = format::FileSink(output->path(), format::IfExists::kOverwrite);
  if (!sink.ok()) return sink.status();
  if (absl::Status status = format::CopySnapshot(path, done.name(), *std::move(sink)); !status.ok())
    return status;
  return output->Commit();
}

void Print(const SnapshotArguments& options, const control::SnapshotDone& done) {
  const std::string file = options.output.empty() ? done.recording() : options.output;
  if (options.json) {
    nlohmann::ordered_json out = answers::NewJson("snapshot", file);
    out["name"] = done.name();
    out["t_ns"] = done.t_ns();
    out["exact"] = done.exact();
    out["inexact_because"] =
        done.exact() ? nullptr : nlohmann::ordered_json(std::string(done.inexact_because()));
    return PrintJson(out);
  }
  fmt::print("snapshot {} in {}\n", format::Printable(done.name()), format::Printable(file));
  if (!done.exact())
    PrintNote(fmt::format("the snapshot is not exact: {}", done.inexact_because()));
  PrintNote(fmt::format("to see what it holds: gpumemtrace report --at snapshot:{} {}", done.name(),
                        file));
}

absl::StatusOr<int> Snapshot(const SnapshotArguments& options) {
  // Created before the snapshot is taken: if the file cannot be written, no snapshot is requested.
  std::optional<OutputFile> output;
  if (!options.output.empty()) {
    absl::StatusOr<OutputFile> file = OutputFile::Create(options.output, options.force);
    if (!file.ok()) return file.status();
    output.emplace(*std::move(file));
  }
  auto controlled = ConnectToCollector(options.session);
  if (!controlled.ok()) return controlled.status();
  control::Request request;
  request.mutable_snapshot()->set_name(options.name);
  const absl::StatusOr<control::Reply> reply = controlled->client->Ask(request);
  if (!reply.ok()) return reply.status();
  if (output.has_value()) {
    if (absl::Status status = Extract(reply->snapshot(), &*output); !status.ok()) return status;
  }
  Print(options, reply->snapshot());
  return kDone;
}

}  // namespace

void AddSnapshot(Program& program) {
  auto options = std::make_shared<SnapshotArguments>();
  Command command = program.AddVerb("snapshot", "Take a snapshot of what a running process holds",
                                    [options](const Terminal&) { return Snapshot(*options); });
  command.Argument("PID", &options->session, "process ID, session file or session name");
  command.Option("--name", &options->name, "NAME", "name of the snapshot (default: snapshot)");
  command.Option("-o,--output", &options->output, "FILE",
                 "also write a recording that holds only this snapshot");
  command.Flag("--force", &options->force, "overwrite FILE");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
