#include "answers/recording.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/text.h"
#include "analysis/trace/before_attach.h"
#include "analysis/trace/trace_builder.h"
#include "answers/peak_search.h"
#include "format/printable.h"
#include "interop/open_input.h"
#include "proto/gmt.pb.h"
#include "symbols/frame_rules.h"
#include "symbols/symbolize_recording.h"

namespace gmt::answers {
namespace {

constexpr size_t kModulesNamed = 3;
constexpr char kBeforeAttach[] = "before attach: ";

void AddIf(uint64_t count, const std::string& text, std::vector<std::string>& lacks) {
  if (count > 0) lacks.push_back(text);
}

std::string NameOfHeap(const std::string& heap) {
  return heap == "pytorch" ? "PyTorch's blocks"
         : heap == "host"  ? "pinned memory"
                           : heap + " memory";
}

// Adds the memory that was allocated before the attach.
void AddBeforeAttach(const analysis::Trace& trace, std::vector<std::string>& lacks) {
  for (const analysis::HeldBefore& before : analysis::FindHeldBefore(trace)) {
    std::string text =
        absl::StrCat(kBeforeAttach, Bytes(before.bytes), " in ", NameOfHeap(before.heap), " (",
                     Plural(before.blocks, "block"), ")");
    if (before.device != analysis::kHostDevice) absl::StrAppend(&text, " on GPU ", before.device);
    absl::StrAppend(&text, ", without stacks; ", Bytes(before.freed_bytes), " of it freed since");
    if (before.unknown_freed_blocks > 0)
      absl::StrAppend(&text, ", plus ", Bytes(before.unknown_freed_bytes),
                      " that were not known at attach");
    lacks.push_back(std::move(text));
  }
}

void AddLosses(const analysis::Trace& trace, std::vector<std::string>& lacks) {
  const Losses losses = trace.losses ? *trace.losses : Losses();
  const uint64_t lost = losses.overrun() + losses.holes() + losses.abandoned();
  AddIf(lost,
        absl::StrCat(Plural(lost, "event"), " lost: ", Count(losses.overrun()), " overwritten, ",
                     Count(losses.holes()), " never finished, ", Count(losses.abandoned()),
                     " abandoned"),
        lacks);
  const analysis::Unknowns& unknowns = trace.unknowns;
  AddIf(unknowns.frees_lost,
        absl::StrCat(Plural(unknowns.frees_lost, "free"),
                     " not seen; their memory counts as live until its address is reused"),
        lacks);
  AddBeforeAttach(trace, lacks);
  AddIf(unknowns.rows_from_before,
        absl::StrCat(Plural(unknowns.rows_from_before, "allocation"), " from before the recording"),
        lacks);
  if (trace.before) {
    lacks.push_back(absl::StrCat(Plural(trace.before->events(), "event"), " before ",
                                 Duration(trace.before->t_ns()),
                                 " of the recording: only their sums are kept"));
  }
  AddIf(unknowns.frees_unmatched,
        absl::StrCat(Plural(unknowns.frees_unmatched, "free"), " of unknown addresses"), lacks);
  AddIf(losses.stacks_full(),
        absl::StrCat(Plural(losses.stacks_full(), "event"),
                     " without a stack: the stack table was full"),
        lacks);
}

// Adds what was not read because the answer does not need it.
void AddNotRead(const format::TimeRange& read, std::vector<std::string>& lacks) {
  std::vector<std::string> skipped;
  if (read.from_ns != INT64_MIN) skipped.push_back(absl::StrCat("before ", Duration(read.from_ns)));
  if (read.to_ns != INT64_MAX) skipped.push_back(absl::StrCat("after ", Duration(read.to_ns)));
  if (skipped.empty()) return;
  lacks.push_back(
      absl::StrCat("events ", absl::StrJoin(skipped, " and "),
                   " were not read, so steps, streams, calls of the driver and its own figures are "
                   "those of the rest, and memory that was freed later counts as held; --json "
                   "reads everything"));
}

// Adds the modules with the most unnamed frames, and why these have no names.
void AddUnnamedModules(const format::Definitions& definitions, symbols::Symbolizer& symbolizer,
                       std::vector<std::string>& unnamed) {
  std::map<std::pair<std::string, std::string>, uint64_t> frames;
  for (const auto& request : symbols::UnnamedFrames(definitions)) {
    ++frames[{request.module.path, request.module.build_id}];
  }
  std::vector<std::pair<uint64_t, symbols::ModuleKey>> modules;
  for (const auto& [module, count] : frames)
    modules.push_back({count, {module.first, module.second}});
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  // Modules whose frames are folded anyway, such as a stripped interpreter, come last.
  std::stable_partition(modules.begin(), modules.end(), [](const auto& module) {
    return !IsNoise(symbols::FrameRules::BuiltIn().RoleOf({.module = module.second.path}));
  });
  for (size_t i = 0; i < std::min(modules.size(), kModulesNamed); ++i) {
    const auto& [count, module] = modules[i];
    const symbols::ModuleState state = symbolizer.StateOf(module);
    const char* why =
        state == symbols::ModuleState::kUsable ? "has no symbol at that address" : Describe(state);
    unnamed.push_back(
        absl::StrCat(Plural(count, "frame"), " without a name: ", module.path, " ", why));
  }
}

// Reports progress after each batch of events.
class ListenedBuilder : public analysis::TraceBuilder {
 public:
  ListenedBuilder(const interop::Input& input, const LoadListener& listener)
      : TraceBuilder(input.definitions()), input_(input), listener_(listener) {}

  absl::Status OnEvents(const format::EventBatch& batch) override {
    absl::Status status = TraceBuilder::OnEvents(batch);
    events_ += batch.events.size();
    if (listener_)
      listener_({LoadProgress::kReadingEvents, events_, input_.share_read(), so_far()});
    return status;
  }
  absl::Status OnCheckpoint(const Checkpoint& checkpoint) override {
    sums_before_ = std::make_shared<Aggregates>(checkpoint.so_far());
    return TraceBuilder::OnCheckpoint(checkpoint);
  }
  uint64_t events() const { return events_; }
  // Returns the sums of what came before the first event that was read; null if that was nothing.
  std::shared_ptr<const Aggregates> sums_before() const { return sums_before_; }

 private:
  const interop::Input& input_;
  const LoadListener& listener_;
  uint64_t events_ = 0;
  std::shared_ptr<const Aggregates> sums_before_;
};

// Recording::sums() will return `sums`. Sets `*read` to the range whose events have been read.
absl::StatusOr<std::unique_ptr<Recording>> Load(const interop::InputFile& file,
                                                const LoadListener& listener, ReadOptions options,
                                                std::shared_ptr<const Aggregates> sums,
                                                format::TimeRange* read) {
  auto input = interop::OpenInput(file);
  if (!input.ok()) return input.status();
  if (options.text == TextForm::kPrintable) (*input)->MakeStringsPrintable();
  ListenedBuilder builder(**input, listener);
  absl::Status status =
      options.range ? (*input)->ReadRange(builder, *options.range) : (*input)->Read(builder);
  if (!status.ok()) return status;
  *read = (*input)->range_read();

  RecordingParts parts;
  const uint64_t events = builder.events();
  parts.path = options.text == TextForm::kPrintable ? format::Printable(file.path) : file.path;
  const std::shared_ptr<const Aggregates> before = builder.sums_before();
  parts.trace = std::move(builder).Build();
  parts.definitions = (*input)->definitions();
  parts.lacks = (*input)->notes();
  parts.complete = (*input)->complete();
  parts.sums = std::move(sums);
  AddLosses(parts.trace, parts.lacks);
  if (before != nullptr && options.range->from_ns == kTheEnd.from_ns) parts.trace.before = before;
  AddNotRead(*read, parts.lacks);
  if (listener) listener({LoadProgress::kNamingFrames, events, 1, parts.trace});
  symbols::Symbolizer symbolizer({});
  const auto named = symbols::SymbolizeInPlace(parts.definitions, symbolizer);
  if (!named.ok()) return named.status();
  AddUnnamedModules(parts.definitions, symbolizer, parts.unnamed);
  return std::make_unique<Recording>(std::move(parts), std::move(options));
}

// Returns the part of the recording that has the peak; null if everything has to be read.
absl::StatusOr<std::unique_ptr<Recording>> LoadPeak(const interop::InputFile& file,
                                                    const LoadListener& listener,
                                                    ReadOptions options) {
  if (file.format != interop::InputFile::Format::kRecording) return nullptr;
  auto search = PeakSearch::Begin(*file.source, options.min_events_to_skip, options.device);
  if (!search.ok()) return search.status();
  if (!search->has_value()) return nullptr;
  while ((options.range = (*search)->range())) {
    format::TimeRange read;
    auto recording = Load(file, listener, options, (*search)->sums(), &read);
    if (!recording.ok()) return recording;
    if (!(*search)->Found((*recording)->examination(), read)) continue;
    (*recording)->set_peaks_elsewhere((*search)->elsewhere());
    return recording;
  }
  return nullptr;
}

}  // namespace

Recording::Recording(RecordingParts parts, ReadOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      examination_(parts_.trace, parts_.definitions, options_.frames) {}

std::vector<std::string> Recording::LacksWithoutBeforeAttach() const {
  std::vector<std::string> lacks = parts_.lacks;
  std::erase_if(lacks, [](const std::string& lack) { return lack.starts_with(kBeforeAttach); });
  return lacks;
}

const analysis::Categories& Recording::categories() const {
  if (categories_ == nullptr) {
    categories_ = std::make_unique<analysis::Categories>(
        analysis::Categorize(examination_, options_.categories));
  }
  return *categories_;
}

absl::Status Recording::InFile(const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat(path(), ": ", status.message()));
}

absl::StatusOr<std::unique_ptr<Recording>> LoadRecording(const std::string& path,
                                                         const LoadListener& listener,
                                                         ReadOptions options) {
  const auto file = interop::OpenInputFile(path);
  if (!file.ok()) return file.status();
  const bool is_about_peak = options.range && options.range->from_ns > options.range->to_ns;
  if (is_about_peak) {
    auto recording = LoadPeak(*file, listener, options);
    if (!recording.ok() || *recording != nullptr) return recording;
    options.range.reset();
  }
  format::TimeRange read;
  return Load(*file, listener, std::move(options), nullptr, &read);
}

std::unique_ptr<Recording> RecordingSoFar(const std::string& path, analysis::Trace trace,
                                          format::Definitions definitions) {
  RecordingParts parts;
  parts.path = path;
  parts.trace = std::move(trace);
  parts.definitions = std::move(definitions);
  parts.complete = false;
  AddLosses(parts.trace, parts.lacks);
  return std::make_unique<Recording>(std::move(parts));
}

}  // namespace gmt::answers
