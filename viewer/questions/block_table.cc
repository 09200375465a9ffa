// The table block by block (table.h). A page shows fifty of fifty million blocks. They are found by
// counting the blocks in each part of the key range, and narrowing the range until the rest can be
// sorted.

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "viewer/questions/lifetimes.h"
#include "viewer/questions/scope_rows.h"
#include "viewer/questions/table.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

constexpr size_t kBins = 4096;
constexpr uint64_t kZero = uint64_t{1} << 63;  // zero of signed keys

struct RankedBlock {
  uint64_t key = 0;
  analysis::Step birth = 0;
  RowId row = analysis::kNoRow;
  int sign = 1;

  bool operator<(const RankedBlock& other) const {
    return std::tie(key, birth, row) < std::tie(other.key, other.birth, other.row);
  }
};

// Ranks rows by label.
class NameRanks {
 public:
  explicit NameRanks(Recording& recording) : recording_(recording) {}

  uint64_t Of(RowId row) {
    if (ranks_.empty()) Rank();
    const auto found = ranks_.find(StacksOf(row));
    return found == ranks_.end() ? 0 : found->second;
  }

 private:
  // The stack, with that of the forward pass in the high half.
  uint64_t StacksOf(RowId row) const {
    const analysis::Rows& rows = recording_.rows();
    return uint64_t{rows.forward_stack[row]} << 32 | rows.stack[row];
  }
  void Rank() {
    std::vector<std::pair<std::string, uint64_t>> labels;
    const analysis::Rows& rows = recording_.rows();
    for (RowId row = 0; row < rows.count(); ++row) {
      if (!ranks_.try_emplace(StacksOf(row), 0).second) continue;
      labels.emplace_back(recording_.frames.Label(rows.stack[row], rows.forward_stack[row]),
                          StacksOf(row));
    }
    std::sort(labels.begin(), labels.end());
    uint64_t rank = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (i == 0 || labels[i].first != labels[i - 1].first) ++rank;
      ranks_[labels[i].second] = rank;
    }
  }

  Recording& recording_;
  absl::flat_hash_map<uint64_t, uint64_t> ranks_;
};

class BlockTableMaker {
 public:
  BlockTableMaker(Recording& recording, const TableQuery& query, RowFilter& filter,
                  size_t max_sorted)
      : recording_(recording),
        query_(query),
        filter_(filter),
        max_sorted_(max_sorted),
        ranks_(recording) {}

  Table Make() {
    CountScope();
    const uint64_t begin = std::min(query_.offset, table_.total_rows);
    const uint64_t end = begin + std::min<uint64_t>(query_.limit, table_.total_rows - begin);
    if (begin == end) return std::move(table_);
    const uint64_t before = Narrow(begin, end);
    std::vector<RankedBlock> candidates = Collect(begin - before);
    const auto from = candidates.begin() + static_cast<std::ptrdiff_t>(begin - before - skipped_);
    const auto to = from + static_cast<std::ptrdiff_t>(end - begin);
    std::nth_element(candidates.begin(), from, candidates.end());
    std::partial_sort(from, to, candidates.end());
    for (auto candidate = from; candidate != to; ++candidate) {
      table_.rows.push_back(RowOf(*candidate));
    }
    return std::move(table_);
  }

 private:
  // Returns a key by which blocks are sorted in ascending order, whatever order is requested.
  uint64_t KeyOf(RowId row, int sign) {
    const uint64_t key = AscendingKeyOf(row, sign);
    return query_.descending ? ~key : key;
  }
  uint64_t AscendingKeyOf(RowId row, int sign) {
    const uint64_t size = recording_.rows().size[row];
    switch (query_.sort) {
      case TableQuery::kBytes:
      case TableQuery::kGrowth: {
        const uint64_t bounded = std::min(size, kZero - 1);
        return sign > 0 ? kZero + bounded : kZero - bounded;
      }
      case TableQuery::kPeak:
        return size;
      case TableQuery::kBlocks:
      case TableQuery::kRate:
        return kZero + static_cast<uint64_t>(int64_t{sign});
      case TableQuery::kLifetime:
        return static_cast<uint64_t>(LifetimeOf(recording_.trace(), row).value_or(INT64_MAX));
      case TableQuery::kName:
        return ranks_.Of(row);
    }
    return 0;
  }

  void CountScope() {
    uint64_t bytes = 0, blocks = 0;
    low_ = UINT64_MAX;
    high_ = 0;
    ForEachRow(recording_, query_.scope, filter_, [&](RowId row, int sign) {
      const uint64_t size = recording_.rows().size[row];
      bytes += sign > 0 ? size : -size;
      blocks += static_cast<uint64_t>(int64_t{sign});
      ++table_.total_rows;
      const uint64_t key = KeyOf(row, sign);
      low_ = std::min(low_, key);
      high_ = std::max(high_, key);
      return true;
    });
    table_.total_bytes = static_cast<int64_t>(bytes);
    table_.total_blocks = static_cast<int64_t>(blocks);
  }

  // Finds the key of the block at `rank` in the order of keys.
  struct Search {
    uint64_t rank = 0;
    uint64_t low = 0, high = 0;  // bounds of the key
    uint64_t before = 0;         // number of blocks with keys below `low`
    std::array<uint64_t, kBins> bins = {};

    uint64_t width() const { return (high - low) / kBins + 1; }
    void Count(uint64_t key) {
      if (key >= low && key <= high) ++bins[(key - low) / width()];
    }
    void Narrow() {
      size_t bin = 0;
      while (before + bins[bin] <= rank) before += bins[bin++];
      const uint64_t of_bin = width();
      if (bin < (high - low) / of_bin) high = low + (bin + 1) * of_bin - 1;
      low += bin * of_bin;
      bins = {};
    }
  };

  // If there are too many blocks to sort, narrows low_ and high_ to the keys of the page's first
  // and last block. Returns the number of blocks before low_.
  uint64_t Narrow(uint64_t begin, uint64_t end) {
    single_keys_ = table_.total_rows > max_sorted_;
    if (!single_keys_) return 0;
    Search first{begin, low_, high_}, last{end - 1, low_, high_};
    while (first.low < first.high || last.low < last.high) {
      ForEachRow(recording_, query_.scope, filter_, [&](RowId row, int sign) {
        const uint64_t key = KeyOf(row, sign);
        first.Count(key);
        last.Count(key);
        return true;
      });
      first.Narrow();
      last.Narrow();
    }
    low_ = first.low;
    high_ = last.low;
    return first.before;
  }

  // Returns the blocks with keys from low_ to high_. Blocks are visited by birth, which is also the
  // order among equal keys. Blocks with the first key that precede the page can thus be skipped,
  // and of each key no more than a page of blocks is needed.
  std::vector<RankedBlock> Collect(uint64_t to_skip) {
    std::vector<RankedBlock> candidates;
    absl::flat_hash_map<uint64_t, uint64_t> taken;  // by key
    const bool leaves_out = single_keys_ && query_.scope.of != Scope::kGrowth;
    ForEachRow(recording_, query_.scope, filter_, [&](RowId row, int sign) {
      const uint64_t key = KeyOf(row, sign);
      if (key < low_ || key > high_) return true;
      if (leaves_out && key == low_ && skipped_ < to_skip) return ++skipped_, true;
      if (leaves_out && taken[key]++ >= query_.limit) return true;
      candidates.push_back({key, recording_.rows().birth[row], row, sign});
      return true;
    });
    return candidates;
  }

  TableRow RowOf(const RankedBlock& candidate) {
    const analysis::Rows& rows = recording_.rows();
    const RowId id = candidate.row;
    TableRow row;
    row.id = absl::StrCat("block/", id);
    row.stack = rows.stack[id];
    row.name = recording_.frames.definitions().string(rows.Name(id));
    if (row.name.empty()) row.name = recording_.frames.Label(row.stack, rows.forward_stack[id]);
    row.bytes = static_cast<int64_t>(candidate.sign > 0 ? rows.size[id] : -rows.size[id]);
    row.blocks = candidate.sign;
    row.peak_bytes = rows.size[id];
    row.mean_size = static_cast<double>(rows.size[id]);
    row.median_lifetime_ns = LifetimeOf(recording_.trace(), id);
    row.block = {rows.address[id], std::string(analysis::NameOf(recording_.CategoryOf(id))),
                 rows.birth[id], recording_.trace().TimeOf(rows.birth[id])};
    for (uint32_t column = 0; column < query_.sparkline; ++column) {
      const analysis::Step event =
          LiveSamples::EventOf(recording_.trace(), column, query_.sparkline);
      row.sparkline.push_back(rows.HeldAfter(id, event) ? row.mean_size : 0);
    }
    return row;
  }

  Recording& recording_;
  const TableQuery& query_;
  RowFilter& filter_;
  const size_t max_sorted_;
  NameRanks ranks_;
  uint64_t low_ = 0, high_ = 0;  // key range around the page
  bool single_keys_ = false;     // whether they are exactly the page's first and last key
  uint64_t skipped_ = 0;         // blocks with the first key, before the page
  Table table_;
};

}  // namespace

Table MakeBlockTable(Recording& recording, const TableQuery& query, RowFilter& filter,
                     size_t max_sorted) {
  return BlockTableMaker(recording, query, filter, max_sorted).Make();
}

}  // namespace gmt::viewer
