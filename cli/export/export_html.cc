#include "cli/export/export_html.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "format/version.h"
#include "viewer/html/page_html.h"
#include "viewer/html/standalone_file.h"
#include "viewer/html/standalone_page.h"
#include "viewer/served/recording.h"
#include "viewer/served/served_ranks.h"

namespace gmt::cli {
namespace {

using nlohmann::ordered_json;
using viewer::ServedRecording;

// Every two files are compared in both directions, and each comparison is a separate answer.
constexpr size_t kMaxCompared = 4;

ordered_json Parse(const std::string& text) {
  return ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// The recordings as `view` has them, completely loaded.
class Recordings {
 public:
  absl::Status Load(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const auto file = static_cast<uint32_t>(recordings_.size());
      recordings_.push_back(std::make_shared<ServedRecording>(file, path, backend_, [] {}));
      // A standalone file leaves no caches behind.
      recordings_.back()->Load(ServedRecording::Keep::kNothing);
      const absl::Status status = Take(*recordings_.back());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const std::vector<viewer::StandaloneFile>& files() const { return files_; }

  uint64_t events() const {
    uint64_t events = 0;
    for (const viewer::StandaloneFile& file : files_) events += file.index->events();
    return events;
  }

  // Returns the answers about several recordings, by the name of their part of the page.
  ordered_json AboutSeveral() const {
    ordered_json answers = {{"compare", Comparisons()}};
    if (recordings_.size() > 1) answers["ranks"] = Ranks();
    return answers;
  }

 private:
  ordered_json Comparisons() const {
    auto all = ordered_json::array();
    if (recordings_.size() > kMaxCompared) return all;
    for (size_t file = 0; file < recordings_.size(); ++file) {
      for (size_t other = 0; other < recordings_.size(); ++other) {
        if (file == other) continue;
        const auto compare = ServedRecording::CompareOf(*recordings_[file], *recordings_[other]);
        if (!compare.ok()) continue;
        all.push_back({{"file", file}, {"other", other}, {"compare", Parse(*compare)}});
      }
    }
    return all;
  }

  ordered_json Ranks() const {
    viewer::ServedRanks ranks(recordings_);
    for (;;) {
      ordered_json answer = Parse(ranks.Answer());
      if (!answer.value("has_more", false)) return answer;
    }
  }

  absl::Status Take(ServedRecording& recording) {
    viewer::StandaloneFile file;
    // No other thread uses these recordings, so references to what is examined here may be kept.
    const absl::Status status =
        recording.Examine([&](const answers::Recording& recorded, viewer::Questions& questions) {
          file.recording = &recorded;
          file.questions = &questions;
          return absl::OkStatus();
        });
    if (!status.ok()) return status;
    file.index = recording.index();
    file.meta = recording.meta();
    for (const char* verb : {"report", "oom", "leaks", "ledger", "frag"}) {
      // If a verb has no answer, the page shows the reason.
      const auto answer = recording.AnswerOf(verb);
      if (answer.ok()) file.answers.push_back(Parse(*answer));
    }
    files_.push_back(std::move(file));
    return absl::OkStatus();
  }

  const viewer::Backend backend_{};
  std::vector<std::shared_ptr<ServedRecording>> recordings_;
  std::vector<viewer::StandaloneFile> files_;
};

absl::Status Write(const std::string& html, const HtmlExport& options, OutputFile& output) {
  std::ofstream stream(output.path(), std::ios::binary | std::ios::trunc);
  stream.write(html.data(), static_cast<std::streamsize>(html.size()));
  stream.close();
  if (!stream) return absl::UnknownError(absl::StrCat(options.output, ": cannot be written"));
  return output.Commit();
}

void PrintSummary(const viewer::StandalonePage& page, const HtmlExport& options) {
  PrintNote(fmt::format("{}: {:.1f} MB, {}", options.output,
                        static_cast<double>(page.html.size()) / 1e6, Plural(page.blocks, "block")));
  if (page.omitted_blocks > 0) {
    PrintNote(
        fmt::format("{} smaller than {} are not shown individually; totals, curves and answers "
                    "include them. To keep more of them: --max-mb {:.0f} or higher",
                    Plural(page.omitted_blocks, "block"), Bytes(page.smaller_than),
                    static_cast<double>(page.html.size()) * 2 / 1e6 + 1));
  }
  if (page.time_error_ns > 0) {
    PrintNote(fmt::format("times of individual events are exact to {:.3g} ms",
                          static_cast<double>(page.time_error_ns) / 1e6));
  }
}

}  // namespace

absl::Status ExportHtml(const HtmlExport& options) {
  if (viewer::PageHtml().empty()) {
    return absl::FailedPreconditionError(std::string(viewer::PageMissing()));
  }
  auto output = OutputFile::Create(options.output, options.force);
  if (!output.ok()) return output.status();
  Recordings recordings;
  if (absl::Status status = recordings.Load(options.files); !status.ok()) return status;
  Progress progress(absl::StrCat("writing ", options.output));
  const auto page = viewer::MakeStandalonePage(
      viewer::PageHtml(), std::string(format::ToolVersion()), recordings.files(),
      recordings.AboutSeveral(),
      options.max_bytes.value_or(viewer::DefaultStandaloneSize(recordings.events())));
  if (!page.ok()) return page.status();
  if (absl::Status status = Write(page->html, options, *output); !status.ok()) return status;
  PrintSummary(*page, options);
  return absl::OkStatus();
}

}  // namespace gmt::cli
