#include "preload/stacks/python/code_identity.h"

#include <link.h>
#include <string.h>

#include "preload/base/memory.h"

namespace gmt::preload {
namespace {

constexpr uint64_t kDestructor = 48;  // PyTypeObject.tp_dealloc: cpython/object.h, 3.8 to 3.11

// Returns 1 if the eight bytes at the address are in writable memory of the library.
int IsWritable(dl_phdr_info* library, size_t, void* argument) {
  const uint64_t address = *static_cast<const uint64_t*>(argument);
  bool writable = false, sealed = false;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& h = library->dlpi_phdr[i];
    const uint64_t offset = address - (library->dlpi_addr + h.p_vaddr);
    if (offset >= h.p_memsz || h.p_memsz - offset < sizeof(uint64_t)) continue;
    if (h.p_type == PT_LOAD) writable = (h.p_flags & PF_W) != 0;
    if (h.p_type == PT_GNU_RELRO) sealed = true;
  }
  return writable && !sealed ? 1 : 0;
}

class Hash {
 public:
  void Add(uint64_t word) {
    value_ = (value_ ^ word) * 0xd1b54a32d192ed03;
    value_ ^= value_ >> 32;
  }
  void Add(uint64_t bytes, uint64_t size) {
    Add(size);
    uint64_t i = 0;
    for (; i + 8 <= size; i += 8) Add(Load<uint64_t>(bytes + i));
    uint64_t rest = 0;
    for (; i < size; ++i) rest = rest << 8 | Load<uint8_t>(bytes + i);
    Add(rest);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0x8ebc6af09c88c6e3;
};

// Adds the characters as stored in memory.
void AddText(uint64_t text, const Layout& l, Hash* hash) {
  const auto length = Load<uint64_t>(text + l.text_length);
  const uint32_t state = Load<uint32_t>(text + l.text_state) >> l.text_kind_shift;
  const uint32_t character = state & 7;
  const bool compact = (state >> 3 & 1) != 0, ascii = (state >> 4 & 1) != 0;
  hash->Add(state & 0x1f);
  if (compact) hash->Add(text + (ascii ? l.ascii_text : l.compact_text), length * character);
}

}  // namespace

// Cache: code objects of the interpreter, of which a fork child has a copy.
constinit std::atomic<bool> CodeIdentity::counting_{false};
constinit std::atomic<uint64_t> CodeIdentity::deaths_{1};
constinit std::atomic<void (*)(void*)> CodeIdentity::destructor_{nullptr};
constinit CodeIdentity::Entry CodeIdentity::entries_[kEntries] = {};

void CodeIdentity::CountDeath(void* code) {
  deaths_.fetch_add(1, std::memory_order_acq_rel);
  destructor_.load(std::memory_order_acquire)(code);
}

void CodeIdentity::CountDeaths(uint64_t code_type, uint64_t text_start, uint64_t text_bytes) {
  uint64_t place = code_type + kDestructor;
  if (destructor_.load(std::memory_order_relaxed) != nullptr ||
      dl_iterate_phdr(IsWritable, &place) == 0) {
    return;
  }
  auto* slot = reinterpret_cast<void (**)(void*)>(place);
  const auto own = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (reinterpret_cast<uint64_t>(own) - text_start >= text_bytes) return;
  destructor_.store(own, std::memory_order_release);
  __atomic_store_n(slot, &CountDeath, __ATOMIC_RELEASE);
  counting_.store(true, std::memory_order_release);
}

uint64_t CodeIdentity::Read(uint64_t code, uint64_t generation, const Layout& l) {
  Hash hash;
  hash.Add(Load<uint32_t>(code + l.code_first_line));
  AddText(Load<uint64_t>(code + l.code_name), l, &hash);
  AddText(Load<uint64_t>(code + l.code_file), l, &hash);
  const auto table = Load<uint64_t>(code + l.code_line_table);
  hash.Add(table + l.bytes_data, Load<uint64_t>(table + l.object_size));
  const uint64_t identity = hash.value();
  Entry& entry = entries_[code / 16 % kEntries];
  entry.key.store(code ^ generation ^ identity, std::memory_order_relaxed);
  entry.identity.store(identity, std::memory_order_relaxed);
  return identity;
}

}  // namespace gmt::preload
