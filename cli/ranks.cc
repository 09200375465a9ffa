// gpumemtrace ranks: compares the recordings of a job's ranks.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "answers/ranks/ranks_answer.h"
#include "cli/command.h"
#include "cli/frame_options.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"

namespace gmt::cli {
namespace {

struct RanksArguments {
  std::vector<std::string> places;
  int64_t top = 0;
  bool json = false;
  FrameOptions frames;
};

// Returns the recordings that the words name, those of directories in the order of their names.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::vector<std::string>& places) {
  std::vector<std::string> files;
  for (const std::string& place : places) {
    std::error_code error;
    if (!std::filesystem::is_directory(place, error)) {
      files.push_back(place);
      continue;
    }
    const size_t first = files.size();
    for (auto entry = std::filesystem::recursive_directory_iterator(place, error);
         !error && entry != std::filesystem::recursive_directory_iterator();
         entry.increment(error)) {
      if (entry->path().extension() == ".gmt") files.push_back(entry->path().string());
    }
    if (error) return absl::UnknownError(absl::StrCat(place, ": ", error.message()));
    if (files.size() == first)
      return absl::NotFoundError(absl::StrCat(place, ": no recording (*.gmt) in this directory"));
    std::sort(files.begin() + static_cast<ptrdiff_t>(first), files.end());
  }
  return files;
}

absl::StatusOr<int> Ranks(const RanksArguments& arguments, const Terminal& terminal) {
  if (arguments.top < 0) return UsageError("--top: expected a number of ranks, 1 or more");
  const auto files = FilesOf(arguments.places);
  if (!files.ok()) return files.status();
  auto rules = arguments.frames.Rules();
  if (!rules.ok()) return rules.status();
  std::vector<answers::RankDigest> digests;
  std::vector<std::string> unread;
  for (const std::string& file : *files) {
    const auto recording = OpenRecording(file, {.frames = *rules, .text = FormFor(arguments.json)});
    if (recording.ok()) {
      digests.push_back(answers::MakeDigest(**recording));
      for (const std::string& lack : (*recording)->lacks()) PrintNote(lack);
    } else {
      unread.emplace_back(recording.status().message());
    }
  }
  if (digests.empty()) return absl::NotFoundError(unread.front());
  const answers::RanksAnswer answer(std::move(digests), std::move(unread));
  fmt::print("{}", arguments.json ? answer.Json()
                                  : answer.Text(terminal, static_cast<size_t>(arguments.top)));
  return kDone;
}

}  // namespace

void AddRanks(Program& program) {
  auto arguments = std::make_shared<RanksArguments>();
  Command command = program.AddVerb(
      "ranks", "Show which rank of a job differs from the others, and why",
      [arguments](const Terminal& terminal) { return Ranks(*arguments, terminal); });
  command.Arguments("FILE", &arguments->places, "recordings, or directories with recordings");
  command.Option("--top", &arguments->top, "N", "ranks shown");
  arguments->frames.AddTo(command);
  command.Flag("--json", &arguments->json, "print JSON");
}

}  // namespace gmt::cli
