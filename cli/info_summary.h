// cli/info_summary.h
//
// InfoSummary: what `info` reports about a recording, gathered in one pass, from its events or from
// the counts of its chunks (format/event_counts.h).
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_INFO_SUMMARY_H_
#define GMT_CLI_INFO_SUMMARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/trace/cross_check.h"
#include "answers/recording.h"
#include "format/definitions.h"
#include "format/recording_reader.h"
#include "interop/open_input.h"
#include "proto/gmt.pb.h"

namespace gmt::cli {

class InfoSummary : public format::RecordingVisitor {
 public:
  struct HeapCounts {
    uint64_t allocations = 0, frees = 0;
  };
  struct SnapshotInfo {
    std::string name, reason;
    int64_t t_ns = 0;
    bool exact = false;
    uint64_t live = 0;  // allocations
  };

  // `definitions` must outlive the summary.
  explicit InfoSummary(const format::Definitions* definitions)
      : definitions_(*definitions), cross_check_(*definitions) {}

  absl::Status OnHeader(const Header& value) override;
  absl::Status OnEvents(const format::EventBatch& batch) override;
  bool OnEventCounts(const std::vector<format::EventCount>& counts, int64_t t_ns) override;
  absl::Status OnSnapshot(const Snapshot& value) override;
  absl::Status OnFacts(const Facts& value) override;
  absl::Status OnLosses(const Losses& value) override;
  absl::Status OnAggregates(const Aggregates& value) override;

  uint64_t pid() const { return facts.has_pid() ? facts.pid() : header.pid(); }
  int64_t duration_ns() const;
  // The writer's own equation: written = delivered + overrun + holes + abandoned + backlog.
  bool losses_add_up() const;
  // Returns the result of the cross-check. Call it once, after everything was read.
  analysis::CrossCheckResult TakeCrossCheck() { return std::move(cross_check_).Result(); }
  uint64_t lost() const { return losses.overrun() + losses.holes() + losses.abandoned(); }

  Header header;  // the first
  Facts facts;    // later ones replace the fields they set
  Losses losses;  // the last
  uint64_t alloc = 0, free = 0, free_failed = 0, alloc_failed = 0, other = 0;
  uint64_t out_of_memory = 0;  // those of alloc_failed that lacked memory
  uint64_t role = 0;           // roles of allocations, and autograd nodes
  int64_t last_t_ns = 0;
  std::map<std::string, HeapCounts> heaps;
  std::vector<SnapshotInfo> snapshots;
  uint32_t parts = 0;                // files that were read
  std::optional<Aggregates> before;  // of events that are no longer kept

 private:
  void Count(const format::EventCount& row);

  const format::Definitions& definitions_;
  analysis::CrossCheck cross_check_;
  bool has_header_ = false;
};

// A file that has been read, and its summary, which refers to it.
struct Summarized {
  std::unique_ptr<interop::Input> input;
  std::unique_ptr<InfoSummary> summary;
};

// Reads a recording or a file of another format. Events are only counted, as far as that gives the
// same summary.
absl::StatusOr<Summarized> Summarize(const std::string& path, answers::TextForm form);

}  // namespace gmt::cli

#endif  // GMT_CLI_INFO_SUMMARY_H_
