// gpumemtrace import: makes a recording of somebody else's file.

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "format/byte_source.h"
#include "format/recording_writer.h"
#include "interop/event_log.h"

namespace gmt::cli {
namespace {

struct Options {
  std::string input, output;
  bool force = false;
};

// Tells the kinds of input apart by their first bytes.
absl::Status CheckInput(const std::string& path) {
  absl::StatusOr<std::unique_ptr<format::ByteSource>> source = format::OpenFile(path);
  if (!source.ok()) return source.status();
  std::string head;
  absl::Status status = (*source)->Read(0, 64 << 10, &head);
  if (!status.ok() || interop::LooksLikeEventLog({head.data(), head.size()})) return status;
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " is no event log: its first line must be a JSON object with a \"kind\" (docs/format.md)"));
}

absl::Status ImportLog(const std::string& input, const std::string& output, interop::Notes* notes) {
  absl::StatusOr<Header> header = interop::ReadEventLogHeader(input);
  if (!header.ok()) return header.status();
  absl::StatusOr<std::unique_ptr<format::Sink>> sink =
      format::FileSink(output, format::IfExists::kOverwrite);
  if (!sink.ok()) return sink.status();
  absl::StatusOr<std::unique_ptr<format::RecordingWriter>> writer =
      format::RecordingWriter::Create(*std::move(sink), *header, {});
  if (!writer.ok()) return writer.status();
  absl::Status status = interop::ImportEventLog(input, **writer, notes);
  return status.ok() ? (*writer)->Finish() : status;
}

absl::StatusOr<int> Import(const Options& options) {
  absl::Status status = CheckInput(options.input);
  if (!status.ok()) return status;
  absl::StatusOr<OutputFile> output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  interop::Notes notes;
  status = ImportLog(options.input, output->path(), &notes);
  for (const std::string& note : notes) PrintNote(note);
  if (!status.ok()) return status;
  status = output->Commit();
  if (!status.ok()) return status;
  return kDone;
}

}  // namespace

void AddImport(Program& program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.AddVerb("import", "Make a recording of another tool's file; nothing in it is run",
                      [options](const Terminal&) { return Import(*options); });
  command.Argument("X", &options->input, "an event log (JSON lines)");
  command.RequiredOption("-o,--output", &options->output, "FILE", "the recording to write");
  command.Flag("--force", &options->force, "overwrite FILE");
}

}  // namespace gmt::cli
