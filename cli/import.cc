// gpumemtrace import: makes a recording from a file of another tool.

#include <fmt/format.h>

#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/verbs.h"
#include "format/recording_writer.h"
#include "interop/event_log/event_log.h"
#include "interop/event_log/writer_target.h"
#include "interop/open_input.h"
#include "interop/torch_import/torch_import.h"
#include "proto/gmt.pb.h"

namespace gmt::cli {
namespace {

using format::RecordingWriter;

struct ImportArguments {
  std::string input, output;
  bool force = false;
};

absl::StatusOr<std::unique_ptr<RecordingWriter>> CreateWriter(const std::string& output,
                                                              const Header& header) {
  auto sink = format::FileSink(output, format::IfExists::kOverwrite);
  if (!sink.ok()) return sink.status();
  return RecordingWriter::Create(*std::move(sink), header, {});
}

absl::Status ImportLog(const interop::InputFile& log, const std::string& output) {
  const absl::StatusOr<Header> header = interop::HeaderOfLog(log);
  if (!header.ok()) return header.status();
  const auto writer = CreateWriter(output, *header);
  if (!writer.ok()) return writer.status();
  interop::WriterTarget target(writer->get());
  interop::Notes notes;
  bool is_whole = true;
  absl::Status status =
      interop::ConvertLog(log, (*writer)->definitions(), target, &notes, &is_whole);
  for (const std::string& note : notes) PrintNote(note);
  return status.ok() ? (*writer)->Finish() : status;
}

absl::Status ImportTorch(const interop::InputFile& file, const std::string& output) {
  const auto snapshot = interop::TorchImport::Open(file.source, file.path);
  if (!snapshot.ok()) return snapshot.status();
  const auto writer = CreateWriter(output, (*snapshot)->header());
  if (!writer.ok()) return writer.status();
  interop::WriterTarget target(writer->get());
  absl::Status status = (*snapshot)->Read((*writer)->definitions(), target);
  if (status.ok()) status = (*writer)->Finish();
  if (!status.ok()) return status;
  const interop::TorchImportSummary& summary = (*snapshot)->summary();
  PrintNote(fmt::format("{}: {} of {}, {}, {} with {} in use", file.path,
                        Plural(summary.events, "event"), Plural(summary.devices, "device"),
                        Plural(summary.annotations, "annotation"),
                        Plural(summary.segments, "segment"), Plural(summary.blocks, "block")));
  for (const std::string& note : (*snapshot)->notes()) PrintNote(note);
  return absl::OkStatus();
}

absl::Status ImportFile(const std::string& input, const std::string& output) {
  const absl::StatusOr<interop::InputFile> file = interop::OpenInputFile(input);
  if (!file.ok()) return file.status();
  switch (file->format) {
    case interop::InputFile::Format::kRecording:
      return absl::InvalidArgumentError(absl::StrCat(input, " is a recording already"));
    case interop::InputFile::Format::kTorchSnapshot:
      return ImportTorch(*file, output);
    default:
      return ImportLog(*file, output);
  }
}

absl::StatusOr<int> Import(const ImportArguments& options) {
  absl::StatusOr<OutputFile> output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  absl::Status status = ImportFile(options.input, output->path());
  if (status.ok()) status = output->Commit();
  if (!status.ok()) return status;
  return kDone;
}

}  // namespace

void AddImport(Program& program) {
  auto options = std::make_shared<ImportArguments>();
  Command command = program.AddVerb("import",
                                    "Make a recording from another tool's file, without executing "
                                    "anything in it",
                                    [options](const Terminal&) { return Import(*options); });
  command.Argument("X", &options->input,
                   "a memory snapshot of PyTorch (.pickle, .pickle.gz), a device memory profile of "
                   "JAX, a log of RMM (.csv) or an event log (JSON lines)");
  command.RequiredOption("-o,--output", &options->output, "FILE", "the recording to write");
  command.Flag("--force", &options->force, "overwrite FILE");
}

}  // namespace gmt::cli
