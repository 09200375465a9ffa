// TorchModel (interop/torch/torch_model.h): blocks, and making room for them.

#include <iterator>
#include <vector>

#include "interop/torch/torch_model.h"

namespace gmt::interop {
namespace {

using analysis::RowId;
using analysis::Rows;

// PyTorch keeps requests of up to this size (rounded) in separate segments.
constexpr uint64_t kSmallRequest = 1 << 20;

}  // namespace

void TorchModel::BeginBlock(uint64_t address, uint64_t size, RowId row) {
  if (!ClearBlocks(address, address + size, row)) {
    ++counts_.left_out;
    return;
  }
  auto segment = SegmentOf(address, address + size);
  if (segment == segments_.end() && Overlaps(address, address + size)) {
    ++counts_.left_out;  // reaches beyond its segment
    return;
  }
  if (segment == segments_.end()) {
    BeginSegment(address, size, row, true);
    segment = segments_.find(address);
  }
  const Rows& rows = trace_.rows;
  const bool has_stream = (rows.flags[row] & analysis::kRowHasStream) != 0;
  const uint64_t stream = has_stream ? rows.stream[row] : segment->second.stream;
  if (mode_ == Mode::kLearn) {
    facts_.Learn(segment->second.facts,
                 {stream, rows.Pool(row).value_or(0), size <= kSmallRequest, true});
  }
  blocks_[address] = {size, stream, row, false};
  block_bytes_ += size;
  Emit(TorchEvent::kAlloc, address, size, stream, row, rows.stack[row]);
}

void TorchModel::EndBlock(Blocks::iterator block, bool awaited) {
  const auto [address, ended] = *block;
  if (!ended.pending) {
    Emit(TorchEvent::kFreeRequested, address, ended.size, ended.stream, ended.row, 0);
    block->second.pending = true;
  }
  if (!awaited) Complete(block);
}

void TorchModel::Complete(Blocks::iterator block, uint32_t stack) {
  const auto [address, ended] = *block;
  block_bytes_ -= ended.size;
  blocks_.erase(block);
  Emit(TorchEvent::kFreeCompleted, address, ended.size, ended.stream, ended.row, stack);
  const auto segment = segments_.find(address);
  if (segment != segments_.end() && segment->second.assumed && segment->second.row == ended.row) {
    EndSegment(segment, 0);
  }
}

// Makes room for a new block. Returns false if the new block is inside a block of another heap.
bool TorchModel::ClearBlocks(uint64_t address, uint64_t end, RowId for_row) {
  auto block = blocks_.upper_bound(address);
  if (block != blocks_.begin()) --block;
  std::vector<uint64_t> in_the_way;
  for (; block != blocks_.end() && block->first < end; ++block) {
    if (block->first + block->second.size <= address) continue;
    const bool same_heap = trace_.rows.heap[block->second.row] == trace_.rows.heap[for_row];
    if (!same_heap && !block->second.pending) return false;
    in_the_way.push_back(block->first);
  }
  for (uint64_t at : in_the_way) {
    const auto old = blocks_.find(at);
    if (old == blocks_.end()) continue;
    // A reused address was free, although the end of the wait for it was not recorded.
    if (!old->second.pending) ++counts_.made_up;
    EndBlock(old, false);
  }
  return true;
}

void TorchModel::EndBlocks(uint64_t address, uint64_t end) {
  for (auto block = blocks_.upper_bound(address);;) {
    if (block != blocks_.begin()) {
      const auto before = std::prev(block);
      if (before->first + before->second.size > address) block = before;
    }
    if (block == blocks_.end() || block->first >= end) return;
    if (!block->second.pending) ++counts_.made_up;
    const uint64_t at = block->first;
    EndBlock(block, false);
    block = blocks_.upper_bound(at);
  }
}

}  // namespace gmt::interop
