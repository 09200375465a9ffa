#include "session/intern_table.h"

#include <errno.h>
#include <sys/mman.h>

#include <cstring>

#include "session/slice.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace gmt::session {
namespace {

__extension__ typedef unsigned __int128 Uint128;

uint64_t Fold(uint64_t a, uint64_t b) {
  const Uint128 product = static_cast<Uint128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Two independent chains of 64 x 64 -> 128 bit multiplications: the words of a stack share most of
// their bits, and one chain would wait for each multiplication.
uint64_t Hash(const uint64_t* words, uint32_t count) {
  uint64_t a = 0x9e3779b97f4a7c15 ^ count, b = 0xd1b54a32d192ed03;
  uint32_t i = 0;
  for (; i + 1 < count; i += 2) {
    a = Fold(a ^ words[i], 0xa0761d6478bd642f);
    b = Fold(b ^ words[i + 1], 0xe7037ed1a0b428db);
  }
  if (i < count) a = Fold(a ^ words[i], 0x8ebc6af09c88c6e3);
  return Fold(a ^ 0x589965cc75374cc3, b ^ count);
}

constexpr uint64_t kOffsetMask = (uint64_t{1} << kArenaOffsetBits) - 1;
constexpr uint64_t kPageWords = 4096 / sizeof(uint64_t);
constexpr uint64_t kGrowthWords = (1 << 20) / sizeof(uint64_t);

// Puts memory behind whole pages of a shared file. 0, or errno: EFAULT where the file system is
// full, EINVAL before Linux 5.14. The caller's errno stays.
int Populate(void* pages, uint64_t bytes) {
  const int saved = errno;
  const int error = madvise(pages, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
  errno = saved;
  return error;
}

}  // namespace

bool InternTable::Equal(uint64_t offset, const uint64_t* words, uint32_t count) const {
  return offset + count <= Backed() &&
         std::memcmp(arena_ + offset, words, count * sizeof(uint64_t)) == 0;
}

// Words that may be touched.
uint64_t InternTable::Backed() const {
  if (growth_.backed == nullptr) return arena_words_;
  const uint64_t backed = growth_.backed->load(std::memory_order_acquire);
  return backed < arena_words_ ? backed : arena_words_;
}

// Puts memory behind the arena's next mebibyte; `backed` is what was seen. Threads that do so at
// once do the same.
bool InternTable::Grow(uint64_t backed) const {
  if (backed >= arena_words_ || growth_.error->load(std::memory_order_relaxed) != 0) return false;
  const uint64_t left = arena_words_ - backed;
  const uint64_t more = left < kGrowthWords ? left : kGrowthWords;
  const uint64_t first = backed / kPageWords * kPageWords;
  const int error = Populate(arena_ + first, (backed + more - first) * sizeof(uint64_t));
  if (error != 0) {
    growth_.error->store(static_cast<uint32_t>(error), std::memory_order_relaxed);
    return false;
  }
  growth_.backed->compare_exchange_strong(backed, backed + more, std::memory_order_acq_rel);
  return true;
}

uint64_t InternTable::Append(const uint64_t* words, uint32_t count) const {
  // Looked at before it is raised, so that a full arena does not count up for ever.
  // Compared by differences, so that a counter that was scribbled over cannot wrap around.
  const auto fits = [&](uint64_t from) {
    for (uint64_t backed = Backed(); from >= backed || count >= backed - from; backed = Backed()) {
      if (from >= arena_words_ || count >= arena_words_ - from || !Grow(backed)) return false;
    }
    return true;
  };
  if (!fits(used_->load(std::memory_order_relaxed))) return 0;
  const uint64_t used = used_->fetch_add(count, std::memory_order_relaxed);
  if (!fits(used)) return 0;
  const uint64_t offset = used + 1;
  std::memcpy(arena_ + offset, words, count * sizeof(uint64_t));
  return offset;
}

uint32_t InternTable::Intern(const uint64_t* words, uint32_t count, bool* is_new) const {
  *is_new = false;
  const uint64_t hash = Hash(words, count);
  const uint64_t tag = hash >> kArenaOffsetBits << kArenaOffsetBits;
  uint64_t appended = 0;
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    std::atomic<uint64_t>& word = index_[(hash + probe) & index_mask_];
    uint64_t seen = word.load(std::memory_order_acquire);
    if (seen == 0) {
      if (appended == 0) appended = Append(words, count);
      if (appended == 0) return 0;
      if (word.compare_exchange_strong(seen, tag | appended, std::memory_order_acq_rel)) {
        *is_new = true;
        return static_cast<uint32_t>(appended);
      }
    }
    if ((seen & ~kOffsetMask) == tag && Equal(seen & kOffsetMask, words, count)) {
      return static_cast<uint32_t>(seen & kOffsetMask);
    }
  }
  return 0;
}

uint32_t StackTable::Intern(Buffer* stack, uint32_t depth, uint16_t flags, uint32_t generation,
                            bool* is_new) const {
  const StackHeader header = {static_cast<uint16_t>(depth), flags, generation};
  std::memcpy(&stack->header, &header, sizeof(header));
  static_assert(offsetof(Buffer, frames) == sizeof(uint64_t));
  return table_.Intern(&stack->header, depth + 1, is_new);
}

uint32_t TextTable::Intern(std::string_view text) const {
  text = Slice(text, 0, kMaxTextLength);
  uint64_t words[1 + kMaxTextLength / sizeof(uint64_t)] = {};
  words[0] = text.size();
  if (!text.empty()) std::memcpy(words + 1, text.data(), text.size());
  bool is_new;
  return table_.Intern(words, static_cast<uint32_t>(1 + (text.size() + 7) / 8), &is_new);
}

}  // namespace gmt::session
