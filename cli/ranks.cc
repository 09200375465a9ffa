// gpumemtrace ranks: compares the recordings of a job's ranks.

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "answers/ranks/rank_files.h"
#include "answers/ranks/ranks_answer.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/rank_digest.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

constexpr size_t kNotesShown = 10;

struct RanksArguments {
  std::vector<std::string> places;
  int64_t top = 0;
  bool json = false, steps = false, no_digest = false, digest_only = false;
  FrameOptions frames;
};

// Prints notes about single files; of many, the first ones and how many there are.
class FileNotes {
 public:
  void Add(const std::string& note) {
    if (++count_ <= kNotesShown) PrintNote(note);
  }
  void End() const {
    if (count_ > kNotesShown)
      PrintNote(absl::StrCat("and ", Plural(count_ - kNotesShown, "more such note")));
  }

 private:
  uint64_t count_ = 0;
};

// Writes the digests that are missing, and compares nothing.
absl::StatusOr<int> WriteDigests(const std::vector<std::string>& files) {
  int code = kDone;
  for (const std::string& file : files) {
    const auto read = ReadRank(file);
    const absl::Status status = read.ok() ? read->stored : read.status();
    if (status.ok()) continue;
    PrintNote(std::string(status.message()));
    code = kFailed;
  }
  return code;
}

absl::StatusOr<int> Ranks(const RanksArguments& arguments, const Terminal& terminal) {
  if (arguments.top < 0) return UsageError("--top: expected a number of ranks, 1 or more");
  if (arguments.steps && !arguments.json) return UsageError("--steps needs --json");
  if (arguments.digest_only && (arguments.no_digest || !arguments.frames.rules_file.empty()))
    return UsageError("--digest-only: not with --no-digest or --frames-rules");
  const auto files = answers::FilesOfRanks(arguments.places);
  if (!files.ok()) return files.status();
  if (arguments.digest_only) return WriteDigests(*files);
  auto rules = arguments.frames.Rules();
  if (!rules.ok()) return rules.status();

  // Stored digests have been made with the built-in rules.
  const bool reads_recordings = arguments.no_digest || !arguments.frames.rules_file.empty();
  using Keep = answers::JobDigests::Keep;
  answers::JobDigests digests(arguments.steps ? Keep::kSteps : Keep::kPeaks);
  std::vector<std::string> unread, unused;
  FileNotes lacks, not_used;
  bool has_noted = false;
  for (const std::string& file : *files) {
    auto read = reads_recordings ? ReadRankWith(*rules, file) : ReadRank(file);
    if (!read.ok()) {
      unread.emplace_back(read.status().message());
      continue;
    }
    answers::RankDigest& digest = read->digest;
    for (const std::string& lack : digest.notes)
      lacks.Add(absl::StrContains(lack, file) ? lack : absl::StrCat(file, ": ", lack));
    if (!read->unused.empty()) {
      not_used.Add(read->unused + "; its recording was read");
      unused.push_back(std::move(read->unused));
    }
    if (!has_noted) has_noted = NoteUnstored(read->stored);
    if (!arguments.json) MakePrintable(digest);
    digests.Add(std::move(digest));
  }
  lacks.End();
  not_used.End();
  if (digests.empty()) return absl::NotFoundError(unread.front());
  const answers::RanksAnswer answer(std::move(digests), std::move(unread), std::move(unused));
  const auto print = [](std::string_view text) { fmt::print("{}", text); };
  if (arguments.json) {
    answer.WriteJson(print);
  } else {
    print(answer.Text(terminal, static_cast<size_t>(arguments.top)));
  }
  return kDone;
}

}  // namespace

void AddRanks(Program& program) {
  auto arguments = std::make_shared<RanksArguments>();
  Command command = program.AddVerb(
      "ranks", "Show which rank of a job differs from the others, and why",
      [arguments](const Terminal& terminal) { return Ranks(*arguments, terminal); });
  command.Arguments("FILE", &arguments->places,
                    "recordings or their digests, or directories with them");
  command.Option("--top", &arguments->top, "N", "ranks shown");
  command.Flag("--digest-only", &arguments->digest_only,
               "write the digests that are missing beside recordings, and compare nothing");
  command.Flag("--no-digest", &arguments->no_digest,
               "read the recordings; neither use nor write digests");
  arguments->frames.AddTo(command);
  command.Flag("--json", &arguments->json, "print JSON");
  command.Flag("--steps", &arguments->steps, "in JSON, also the peaks of each rank by step");
}

}  // namespace gmt::cli
