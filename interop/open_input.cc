#include "interop/open_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "format/acquisition_history.h"
#include "format/definitions_builder.h"
#include "format/framing.h"
#include "format/parts.h"
#include "format/printable.h"
#include "interop/event_log/event_log.h"
#include "interop/foreign_input.h"
#include "interop/jax_profile/jax_profile.h"
#include "interop/pickle/byte_stream.h"
#include "interop/rmm_log/rmm_log.h"
#include "interop/torch_import/torch_import.h"
#include "proto/gmt.pb.h"

namespace gmt::interop {
namespace {

using format::Damage;
using format::RecordingReader;
using format::RecordingVisitor;
using format::Returns;

std::string WithCommas(uint64_t number) {
  if (number < 1000) return fmt::format("{}", number);
  return fmt::format("{},{:03}", WithCommas(number / 1000), number % 1000);
}

std::string Describe(const std::string& path, const Damage& damage) {
  return fmt::format(
      "{0}: chunk {1} at byte {2} is damaged ({3}); {4}. Repair a copy with: gpumemtrace repair "
      "{0} OUT.gmt",
      path, damage.chunk + 1, WithCommas(damage.offset), damage.what,
      damage.chunk == 1 ? "the chunk before it is readable"
                        : fmt::format("the {} chunks before it are readable", damage.chunk));
}

class RecordingInput : public Input {
 public:
  RecordingInput(std::string path, std::unique_ptr<RecordingReader> reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  absl::Status Read(RecordingVisitor& visitor, Returns returns) override {
    return reader_->Read(visitor, returns);
  }
  absl::Status ReadRange(RecordingVisitor& visitor, const format::TimeRange& range) override {
    return reader_->ReadRange(visitor, range);
  }
  format::TimeRange range_read() const override { return reader_->range_read(); }
  absl::StatusOr<bool> ReadCounts(RecordingVisitor& visitor) override {
    return reader_->ReadCounts(visitor);
  }
  void MakeStringsPrintable() override { reader_->MakeStringsPrintable(); }
  const format::Definitions& definitions() const override { return reader_->definitions(); }
  bool complete() const override { return reader_->complete(); }
  double share_read() const override {
    const uint64_t bytes = reader_->bytes();
    return bytes == 0 ? 0
                      : static_cast<double>(reader_->bytes_taken()) / static_cast<double>(bytes);
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    for (const Damage& damage : reader_->damage()) notes.push_back(Describe(path_, damage));
    if (notes.empty() && !reader_->complete()) {
      notes.push_back(fmt::format(
          "{} has no end: it is still being written, or its writer was killed. All of its {} "
          "complete chunks were read",
          path_, WithCommas(reader_->chunks())));
    }
    return notes;
  }

 private:
  const std::string path_;
  const std::unique_ptr<RecordingReader> reader_;
};

// Passes on the output of an import with its definitions first, completes frees as a recording's
// reader does, and makes text printable if the definitions do.
class Forward : public RecordingVisitor {
 public:
  Forward(RecordingVisitor* target, Returns returns, format::DefinitionsBuilder* builder,
          format::Definitions* definitions, bool printable)
      : target_(*target),
        returns_(returns),
        builder_(*builder),
        definitions_(*definitions),
        printable_(printable) {}

  absl::Status OnHeader(const Header& header) override { return target_.OnHeader(Copy(header)); }
  absl::Status OnFacts(const Facts& facts) override { return target_.OnFacts(Copy(facts)); }
  absl::Status OnLosses(const Losses& losses) override { return target_.OnLosses(losses); }
  absl::Status OnEvents(const format::EventBatch& batch) override {
    if (absl::Status status = Define(); !status.ok()) return status;
    format::EventBatch copy = Copy(batch);
    if (returns_ == Returns::kCompleted) {
      for (format::Event& event : copy.events) Complete(&event);
    }
    return target_.OnEvents(copy);
  }
  absl::Status OnSnapshot(const Snapshot& snapshot) override {
    absl::Status status = Define();
    return status.ok() ? target_.OnSnapshot(Copy(snapshot)) : status;
  }

 private:
  absl::Status Define() { return definitions_.Add(builder_.TakeNew()); }

  template <typename Message>
  Message Copy(Message message) const {
    if (printable_) format::MakePrintable(&message);
    return message;
  }

  void Complete(format::Event* event) {
    const format::Family family = format::FamilyOf(event->kind);
    if (family == format::Family::kAcquisition) history_.Add(*event);
    if (family != format::Family::kReturn && family != format::Family::kRole) return;
    const format::Acquired* acquired = history_.AcquisitionOf(*event);
    if (acquired == nullptr) return;
    family == format::Family::kReturn ? format::CompleteReturn(*acquired, event)
                                      : format::CompleteRole(*acquired, event);
  }

  RecordingVisitor& target_;
  const Returns returns_;
  format::AcquisitionHistory history_;
  format::DefinitionsBuilder& builder_;
  format::Definitions& definitions_;
  const bool printable_;
};

// A file of another format, converted while it is read.
class ConvertedInput : public Input {
 public:
  absl::Status Read(RecordingVisitor& visitor, Returns returns) override {
    format::DefinitionsBuilder builder;
    Forward forward(&visitor, returns, &builder, &definitions_, printable_);
    return Convert(builder, forward);
  }
  const format::Definitions& definitions() const override { return definitions_; }
  void MakeStringsPrintable() override {
    printable_ = true;
    definitions_.MakeStringsPrintable();
  }

 private:
  virtual absl::Status Convert(format::DefinitionsBuilder& builder, RecordingVisitor& visitor) = 0;

  bool printable_ = false;
  format::Definitions definitions_;
};

class LogInput : public ConvertedInput {
 public:
  explicit LogInput(InputFile file) : file_(std::move(file)) {}

  bool complete() const override { return is_whole_; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  absl::Status Convert(format::DefinitionsBuilder& builder, RecordingVisitor& visitor) override {
    return ConvertLog(file_, builder, visitor, &notes_, &is_whole_);
  }

  const InputFile file_;
  Notes notes_;
  bool is_whole_ = true;
};

class TorchInput : public ConvertedInput {
 public:
  explicit TorchInput(std::unique_ptr<TorchImport> snapshot) : snapshot_(std::move(snapshot)) {}

  bool complete() const override { return true; }  // a truncated pickle is an error
  std::vector<std::string> notes() const override { return snapshot_->notes(); }

 private:
  absl::Status Convert(format::DefinitionsBuilder& builder, RecordingVisitor& visitor) override {
    return snapshot_->Read(builder, visitor);
  }

  const std::unique_ptr<TorchImport> snapshot_;
};

using Format = InputFile::Format;

// A gzip file is a snapshot of PyTorch unless it is recognised as a profile.
std::optional<Format> FormatOf(absl::string_view head) {
  if (LooksLikeEventLog(head)) return Format::kEventLog;
  if (LooksLikeRmmLog(head)) return Format::kRmmLog;
  if (LooksLikePprof(head)) return Format::kJaxProfile;
  if (LooksLikeTorchSnapshot(head)) {
    const auto stream = StreamOf(format::BytesInMemory(std::string(head)), "");
    const auto unpacked = stream->Next();
    return unpacked.ok() && LooksLikePprof(*unpacked) ? Format::kJaxProfile
                                                      : Format::kTorchSnapshot;
  }
  if (format::LooksLikeRecording({head.data(), head.size()})) return Format::kRecording;
  return std::nullopt;
}

// Adds to the error of an unreadable snapshot what the file is, if that is recognised.
absl::Status WithWhatItIs(const absl::Status& status, const InputFile& file) {
  if (!absl::IsInvalidArgument(status) && !absl::IsDataLoss(status)) return status;
  const auto stream = StreamOf(file.source, file.path);
  const auto unpacked = stream->Next();
  const std::string head(unpacked.ok() ? *unpacked : "");
  return IsKnownForeign(file.path, head)
             ? absl::InvalidArgumentError(ForeignProblem(file.path, head))
             : status;
}

absl::StatusOr<std::unique_ptr<format::ByteSource>> Open(absl::string_view path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(std::string(path), ignored))
    return absl::InvalidArgumentError(FolderProblem(std::string(path)));
  auto source = format::OpenFile(path, [&](absl::string_view head) {
    return FormatOf(head).has_value() ? absl::OkStatus()
                                      : absl::InvalidArgumentError(ForeignProblem(path, head));
  });
  if (absl::IsNotFound(source.status())) return absl::NotFoundError(MissingProblem(path));
  return source;
}

}  // namespace

absl::StatusOr<InputFile> OpenInputFile(absl::string_view path) {
  absl::StatusOr<std::unique_ptr<format::ByteSource>> source = Open(path);
  if (!source.ok()) return source.status();
  std::string head;
  absl::Status status = (*source)->Read(0, format::kFileHeadBytes, &head);
  if (!status.ok()) return status;
  const std::optional<Format> format = FormatOf(head);
  if (!format.has_value()) return absl::InvalidArgumentError(ForeignProblem(path, head));
  if (format == Format::kRecording) source = format::WithOlderParts(*std::move(source), path);
  return InputFile{std::string(path), *format, *std::move(source)};
}

absl::StatusOr<std::unique_ptr<Input>> OpenInput(const InputFile& file) {
  if (file.format == Format::kTorchSnapshot) {
    auto snapshot = TorchImport::Open(file.source, file.path);
    if (!snapshot.ok()) return WithWhatItIs(snapshot.status(), file);
    return std::unique_ptr<Input>(new TorchInput(*std::move(snapshot)));
  }
  if (file.format != Format::kRecording) return std::unique_ptr<Input>(new LogInput(file));
  auto reader = RecordingReader::FromSource(file.source, file.path);
  if (!reader.ok()) return reader.status();
  return std::unique_ptr<Input>(new RecordingInput(file.path, *std::move(reader)));
}

absl::StatusOr<std::unique_ptr<Input>> OpenInput(absl::string_view path) {
  auto file = OpenInputFile(path);
  if (!file.ok()) return file.status();
  return OpenInput(*file);
}

absl::Status ConvertLog(const InputFile& file, format::DefinitionsBuilder& definitions,
                        RecordingVisitor& visitor, Notes* notes, bool* is_whole) {
  if (file.format == Format::kEventLog)
    return ReadEventLog(*file.source, file.path, definitions, visitor, notes, is_whole);
  absl::Status status = visitor.OnHeader(*HeaderOfLog(file));
  if (!status.ok()) return status;
  if (file.format == Format::kJaxProfile)
    return ReadJaxProfile(file.source, file.path, definitions, visitor, notes);
  return ReadRmmLog(*file.source, file.path, definitions, visitor, notes, is_whole);
}

absl::StatusOr<Header> HeaderOfLog(const InputFile& file) {
  if (file.format == Format::kEventLog) return ReadEventLogHeader(*file.source);
  Header header;
  header.set_imported_from(file.format == Format::kRmmLog ? kRmmLogImport : kJaxProfileImport);
  return header;
}

}  // namespace gmt::interop
