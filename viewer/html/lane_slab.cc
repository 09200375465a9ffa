#include "viewer/html/lane_slab.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "analysis/categories/alive_texts.h"
#include "viewer/html/lane_omissions.h"
#include "viewer/html/lane_series.h"
#include "viewer/html/lane_walk.h"
#include "viewer/html/varint_columns.h"
#include "viewer/index/block_table.h"
#include "viewer/index/index_parts.h"
#include "viewer/index/names.h"
#include "viewer/slab/slab.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;
using analysis::Step;
using analysis::Trace;

// The attributes that blocks share, in the order of kKindColumns.
constexpr size_t kKindParts = 14;
using Kind = std::array<uint64_t, kKindParts>;
constexpr std::array<const char*, kKindParts> kKindColumns = {
    "kind.size",     "kind.rounding",   "kind.stack",  "kind.forward", "kind.free",
    "kind.category", "kind.confidence", "kind.reason", "kind.stream",  "kind.thread",
    "kind.pool",     "kind.name",       "kind.tensor", "kind.alive"};

using Codes = absl::flat_hash_map<uint64_t, uint64_t>;

// Maps values to their codes; code 0 means unknown.
Codes StreamCodes(const ViewIndex& index) {
  Codes codes;
  for (size_t code = 1; code < index.streams().size(); ++code) {
    uint64_t stream = 0;
    if (absl::SimpleHexAtoi(index.streams()[code], &stream)) codes.emplace(stream, code);
  }
  return codes;
}

Codes ThreadCodes(const ViewIndex& index) {
  Codes codes;
  for (size_t code = 1; code < index.threads().size(); ++code) {
    uint64_t thread = 0;
    if (absl::SimpleAtoi(index.threads()[code], &thread)) codes.emplace(thread, code);
  }
  return codes;
}

uint64_t CodeOf(const Codes& codes, uint64_t value) {
  const auto found = codes.find(value);
  return found == codes.end() ? 0 : found->second;
}

// Texts that few blocks have, stored once each: 0 is none, n is the n-th of the list.
class SharedTexts {
 public:
  template <typename MakeText>
  uint64_t Code(uint64_t key, const MakeText& make_text) {
    const auto [found, is_new] = codes_.try_emplace(key, codes_.size() + 1);
    if (is_new) texts_.push_back(make_text());
    return found->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  absl::flat_hash_map<uint64_t, uint64_t> codes_;
  std::vector<std::string> texts_;
};

class BlockColumns {
 public:
  BlockColumns(const StandaloneFile& file, const std::vector<Space>& spaces,
               absl::flat_hash_set<uint32_t>* stacks)
      : trace_(file.recording->trace()),
        definitions_(file.recording->definitions()),
        categories_(file.recording->categories()),
        alive_(file.recording->examination(), file.recording->categories()),
        streams_(StreamCodes(*file.index)),
        threads_(ThreadCodes(*file.index)),
        places_(file.index->parts().blocks.place),
        spaces_(spaces),
        stacks_(*stacks) {
    for (const analysis::Completion& completion : trace_.completions) {
      if (trace_.rows.Completed(completion.row) == completion.step) {
        completed_ns_.emplace(completion.row, completion.t_ns);
      }
    }
    std::sort(spaces_.begin(), spaces_.end(),
              [](const Space& a, const Space& b) { return a.address < b.address; });
  }

  // Called in order of birth.
  void Add(RowId row) {
    const analysis::Rows& rows = trace_.rows;
    const Step birth = rows.birth[row], death = rows.death[row];
    row_.Add(row);
    birth_.Add(birth);
    life_.Add(death == analysis::kNever ? 0 : death - birth);
    AddWait(row);
    AddPlace(rows.address[row], places_[row]);
    AddKind(KindOf(row));
    ++count_;
  }

  void Write(slab::Writer* writer) const {
    writer->AddField("blocks", count_);
    writer->AddField("waits", waits_);
    writer->AddField("kinds", kinds_.size());
    writer->AddArray("row", row_.bytes());
    writer->AddArray("birth", birth_.bytes());
    writer->AddArray("life", life_.bytes());
    writer->AddArray("wait.block", wait_block_.bytes());
    writer->AddArray("wait.events", wait_events_.bytes());
    writer->AddArray("wait.ns", wait_ns_.bytes());
    writer->AddField("mapped", mapped_);
    writer->AddArray("mapped.block", mapped_block_.bytes());
    writer->AddArray("mapped.place", mapped_place_.bytes());
    writer->AddArray("kind", kind_.bytes());
    writer->AddArray("space", space_.bytes());
    writer->AddArray("offset", offset_.bytes());
    for (size_t part = 0; part < kKindParts; ++part) {
      writer->AddArray(kKindColumns[part], kind_parts_[part].bytes());
    }
    writer->AddField("pools", pools_.texts());
    writer->AddField("tensors", tensors_.texts());
    writer->AddField("alives", alives_.texts());
    auto spaces = nlohmann::ordered_json::array();
    for (const Space& space : spaces_) {
      auto lives = nlohmann::ordered_json::array();
      for (const Life& life : space.lives) {
        nlohmann::ordered_json end = nullptr;  // never
        if (life.death != kNeverFreed) end = life.death;
        lives.push_back(nlohmann::ordered_json::array({life.birth, std::move(end)}));
      }
      spaces.push_back({{"place", space.place},
                        {"size", space.size},
                        {"address", absl::StrCat("0x", absl::Hex(space.address))},
                        {"label", space.label},
                        {"lives", std::move(lives)}});
    }
    writer->AddField("spaces", std::move(spaces));
  }

 private:
  Kind KindOf(RowId row) {
    const analysis::Rows& rows = trace_.rows;
    const auto requested = rows.Requested(row);
    const analysis::Categories::Assignment& assignment = categories_.Of(row);
    const bool has_stream = (rows.flags[row] & analysis::kRowHasStream) != 0;
    const bool has_thread = (rows.flags[row] & analysis::kRowHasThread) != 0;
    for (uint32_t stack : {rows.stack[row], rows.forward_stack[row], rows.FreeStack(row)}) {
      if (stack != 0) stacks_.insert(stack);
    }
    const int64_t rounding =
        requested.has_value() ? static_cast<int64_t>(rows.size[row] - *requested) : 0;
    return {rows.size[row], requested.has_value() ? Zigzag(rounding) + 1 : 0, rows.stack[row],
            rows.forward_stack[row], rows.FreeStack(row),
            static_cast<uint64_t>(assignment.category),
            static_cast<uint64_t>(assignment.confidence), assignment.reason,
            has_stream ? CodeOf(streams_, rows.stream[row]) : 0,
            has_thread ? CodeOf(threads_, rows.thread[row]) : 0,
            // Pool ids may need all 64 bits to be distinct, so the page shows them as text.
            rows.Pool(row).has_value() ? PoolCode(*rows.Pool(row)) : 0, rows.Name(row),
            TensorCode(row), AliveCode(row)};
  }

  uint64_t PoolCode(uint64_t pool) {
    return pools_.Code(pool, [pool] { return absl::StrCat("0x", absl::Hex(pool)); });
  }
  uint64_t TensorCode(RowId row) {
    const analysis::Rows& rows = trace_.rows;
    if (rows.Dtype(row) == 0) return 0;
    return tensors_.Code(uint64_t{rows.Dtype(row)} << 32 | rows.Shape(row),
                         [&] { return TensorText(definitions_, rows, row); });
  }
  uint64_t AliveCode(RowId row) {
    const uint32_t code = alive_.CodeOf(row);
    return code == 0 ? 0 : alives_.Code(code, [&] { return alive_.Of(row); });
  }

  void AddKind(const Kind& kind) {
    const auto [found, is_new] = kinds_.try_emplace(kind, kinds_.size());
    kind_.Add(is_new ? 0 : found->second + 1);
    if (!is_new) return;
    for (size_t part = 0; part < kKindParts; ++part) kind_parts_[part].Add(kind[part]);
  }

  // The wait of a block ends between two events, at a time of its own.
  void AddWait(RowId row) {
    const Step death = trace_.rows.death[row], completed = trace_.rows.Completed(row);
    const auto wait_end = completed_ns_.find(row);
    if (completed == death && wait_end == completed_ns_.end()) return;
    wait_block_.Add(count_);
    wait_events_.Add(completed == analysis::kNever ? 0 : completed - death + 1);
    const int64_t since =
        wait_end == completed_ns_.end() ? -1 : wait_end->second - trace_.TimeOf(death);
    wait_ns_.Add(static_cast<uint64_t>(std::max<int64_t>(since, -1) + 1));
    ++waits_;
  }

  // `place`: the position in the lane's address space plus 1; 0: none. Physical memory lies where
  // it is mapped; its own address is a handle and does not say where.
  void AddPlace(uint64_t address, uint64_t place) {
    // Blocks of a step lie where those of the previous step lay, so the last space is a good guess.
    if (last_space_ >= spaces_.size() || !Contains(spaces_[last_space_], address)) {
      const auto after = std::upper_bound(
          spaces_.begin(), spaces_.end(), address,
          [](uint64_t value, const Space& space) { return value < space.address; });
      last_space_ = after == spaces_.begin() ? spaces_.size()
                                             : static_cast<size_t>(after - spaces_.begin()) - 1;
      if (last_space_ < spaces_.size() && !Contains(spaces_[last_space_], address)) {
        last_space_ = spaces_.size();
      }
    }
    const bool known = last_space_ < spaces_.size();
    const uint64_t own =
        known ? spaces_[last_space_].place + (address - spaces_[last_space_].address) + 1 : 0;
    if (own != place) {
      mapped_block_.Add(count_);
      mapped_place_.Add(place);
      ++mapped_;
    }
    space_.Add(known ? last_space_ + 1 : 0);
    offset_.Add(known ? address - spaces_[last_space_].address : address);
  }

  static bool Contains(const Space& space, uint64_t address) {
    return address >= space.address && address - space.address < space.size;
  }

  const Trace& trace_;
  const format::Definitions& definitions_;
  const analysis::Categories& categories_;
  const analysis::AliveTexts alive_;
  const Codes streams_, threads_;
  const PackedColumn& places_;
  absl::flat_hash_map<RowId, int64_t> completed_ns_;
  std::vector<Space> spaces_;
  absl::flat_hash_set<uint32_t>& stacks_;
  size_t last_space_ = 0;

  uint64_t count_ = 0, waits_ = 0, mapped_ = 0;
  VarintDeltas row_, birth_, offset_, wait_block_, mapped_block_;
  VarintColumn life_, kind_, space_, wait_events_, wait_ns_, mapped_place_;
  absl::flat_hash_map<Kind, uint64_t> kinds_;
  SharedTexts pools_, tensors_, alives_;
  std::array<VarintColumn, kKindParts> kind_parts_;
};

}  // namespace

LaneSlab MakeLaneSlab(const StandaloneFile& file, uint32_t lane, uint64_t smaller_than,
                      absl::flat_hash_set<uint32_t>* stacks) {
  const Trace& trace = file.recording->trace();
  slab::Writer writer("lane");
  BlockColumns blocks(file, file.index->parts().spaces[lane].spaces, stacks);
  LaneOmissions omissions(file, lane);
  WalkLane(trace, file.index->lanes()[lane], [&](RowId row, bool is_death, Step step) {
    const bool left_out = trace.rows.size[row] < smaller_than;
    omissions.Note(row, is_death, step, left_out);
    if (!left_out && !is_death) blocks.Add(row);
  });
  blocks.Write(&writer);
  omissions.Write(&writer, stacks);
  WriteSeries(file, lane, &writer);
  return {std::move(writer).Finish(), omissions.blocks(), omissions.at_peak()};
}

}  // namespace gmt::viewer
