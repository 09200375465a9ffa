// gpumemtrace cat: prints the events of a recording, as text or as an event log.

#include <cstdio>

#include "cli/cat_text.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "interop/event_log/event_log.h"
#include "interop/open_input.h"

namespace gmt::cli {
namespace {

struct CatArguments {
  std::string input;
  bool json = false;
};

class Nothing : public format::RecordingVisitor {
 public:
  absl::Status OnEvents(const format::EventBatch&) override { return absl::OkStatus(); }
};

absl::Status PutLine(absl::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  return std::ferror(stdout) != 0 ? absl::UnavailableError("cannot write to standard output")
                                  : absl::OkStatus();
}

// Reads the recording twice: its symbols are at its end, but the log needs them at its beginning.
absl::Status CatAsLog(const interop::InputFile& file, interop::Input* input) {
  absl::StatusOr<std::unique_ptr<interop::Input>> first = interop::OpenInput(file);
  if (!first.ok()) return first.status();
  Nothing nothing;
  absl::Status status = (*first)->Read(nothing);
  if (!status.ok()) return status;
  interop::EventLogWriter writer(&(*first)->definitions(), PutLine);
  status = input->Read(writer, format::Returns::kAsRecorded);
  return status.ok() ? writer.End() : status;
}

absl::StatusOr<int> Cat(const CatArguments& options) {
  const absl::StatusOr<interop::InputFile> file = interop::OpenInputFile(options.input);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::unique_ptr<interop::Input>> input = interop::OpenInput(*file);
  if (!input.ok()) return input.status();
  if (!options.json) (*input)->MakeStringsPrintable();
  CatText text(&(*input)->definitions());
  absl::Status status = options.json ? CatAsLog(*file, input->get())
                                     : (*input)->Read(text, format::Returns::kCompleted);
  if (!status.ok()) return status;
  for (const std::string& note : (*input)->notes()) PrintNote(note);
  return kDone;
}

}  // namespace

void AddCat(Program& program) {
  auto options = std::make_shared<CatArguments>();
  Command command = program.AddVerb("cat", "Print the events of a recording",
                                    [options](const Terminal&) { return Cat(*options); });
  command.Argument("FILE", &options->input, "a recording or an event log");
  command.Flag("--json", &options->json, "print an event log, one JSON object per line");
}

}  // namespace gmt::cli
