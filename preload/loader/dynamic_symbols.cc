#include "preload/loader/dynamic_symbols.h"

namespace gmt::preload {
namespace {

constexpr uint16_t kHiddenVersion = 0x8000;  // flag in the version table: not the default version
constexpr uint16_t kFirstNamedVersion = 2;   // 0: local, 1: global without a version

uint32_t OldHash(const char* name) {
  uint32_t h = 0;
  for (; *name != '\0'; ++name) {
    h = (h << 4) + static_cast<unsigned char>(*name);
    h = (h ^ (h & 0xf0000000) >> 24) & 0x0fffffff;
  }
  return h;
}

template <typename T>
const T* Behind(const T* entry, uint64_t bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(entry) + bytes);
}

}  // namespace

DynamicSymbols::DynamicSymbols(uint64_t base, const ElfW(Dyn) * dynamic)
    : base_(base), dynamic_(dynamic) {
  for (const ElfW(Dyn)* d = dynamic; d->d_tag != DT_NULL; ++d) {
    // The loader relocates some of these in place but not others (DT_VERDEF, those of the vDSO).
    const uint64_t address = d->d_un.d_ptr < base_ ? base_ + d->d_un.d_ptr : d->d_un.d_ptr;
    if (d->d_tag == DT_GNU_HASH) hash_ = reinterpret_cast<const uint32_t*>(address);
    if (d->d_tag == DT_HASH) old_hash_ = reinterpret_cast<const uint32_t*>(address);
    if (d->d_tag == DT_SYMTAB) symbols_ = reinterpret_cast<const ElfW(Sym)*>(address);
    if (d->d_tag == DT_STRTAB) strings_ = reinterpret_cast<const char*>(address);
    if (d->d_tag == DT_VERSYM) versions_ = reinterpret_cast<const uint16_t*>(address);
    if (d->d_tag == DT_VERNEED) needed_versions_ = reinterpret_cast<const ElfW(Verneed)*>(address);
    if (d->d_tag == DT_VERDEF) defined_versions_ = reinterpret_cast<const ElfW(Verdef)*>(address);
  }
}

bool DynamicSymbols::Needs(const char* library) const {
  for (const ElfW(Dyn)* d = dynamic_; strings_ != nullptr && d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_NEEDED && Same(strings_ + d->d_un.d_val, library)) return true;
  }
  return false;
}

// Layout: binutils, "GNU Hash ELF Sections".
bool DynamicSymbols::MayDefine(uint32_t gnu_hash) const {
  constexpr uint32_t kBits = 8 * sizeof(ElfW(Addr));
  const uint32_t words = hash_[2], shift = hash_[3];
  const auto* filter = reinterpret_cast<const ElfW(Addr)*>(hash_ + 4);
  const ElfW(Addr) word = filter[gnu_hash / kBits % words];
  return ((word >> gnu_hash % kBits) & (word >> (gnu_hash >> shift) % kBits) & 1) != 0;
}

// Finds the first symbol that `matches`, or else the last one of that name.
template <typename Matches>
void* DynamicSymbols::FindByGnuHash(const char* name, Matches matches) const {
  const uint32_t bucket_count = hash_[0], first_symbol = hash_[1], filter_words = hash_[2];
  if (bucket_count == 0) return nullptr;
  const uint32_t* buckets = hash_ + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chains = buckets + bucket_count;
  const uint32_t wanted = GnuHash(name);
  void* found = nullptr;
  for (uint32_t i = buckets[wanted % bucket_count]; i >= first_symbol; ++i) {
    const uint32_t hash = chains[i - first_symbol];
    if ((hash | 1) == (wanted | 1) && Defines(i, name) && matches(i, &found)) break;
    if ((hash & 1) != 0) break;
  }
  return found;
}

// Layout: System V ABI, "Hash Table".
template <typename Matches>
void* DynamicSymbols::FindByOldHash(const char* name, Matches matches) const {
  const uint32_t bucket_count = old_hash_[0];
  if (bucket_count == 0) return nullptr;
  const uint32_t* buckets = old_hash_ + 2;
  const uint32_t* chains = buckets + bucket_count;
  void* found = nullptr;
  for (uint32_t i = buckets[OldHash(name) % bucket_count]; i != STN_UNDEF; i = chains[i]) {
    if (Defines(i, name) && matches(i, &found)) break;
  }
  return found;
}

template <typename Matches>
void* DynamicSymbols::Find(const char* name, Matches matches) const {
  if (!has_symbols()) return nullptr;
  return hash_ != nullptr       ? FindByGnuHash(name, matches)
         : old_hash_ != nullptr ? FindByOldHash(name, matches)
                                : nullptr;
}

void* DynamicSymbols::Find(const char* name, const char* version) const {
  if (version == nullptr || versions_ == nullptr) {
    return Find(name, [this](uint32_t i, void** found) {
      *found = Address(i);
      return IsDefault(i);
    });
  }
  return Find(name, [this, version](uint32_t i, void** found) {
    const char* own = Version(i);
    if (own != nullptr && !Same(own, version)) return false;
    *found = Address(i);
    return true;
  });
}

const char* DynamicSymbols::Version(uint32_t i) const {
  if (versions_ == nullptr) return nullptr;
  const auto number = static_cast<uint16_t>(versions_[i] & ~kHiddenVersion);
  if (number < kFirstNamedVersion) return nullptr;
  return IsDefined(i) ? DefinedVersion(number) : NeededVersion(number);
}

const char* DynamicSymbols::NeededVersion(uint16_t number) const {
  for (const auto* need = needed_versions_; need != nullptr; need = Behind(need, need->vn_next)) {
    const auto* version = reinterpret_cast<const ElfW(Vernaux)*>(
        Behind(reinterpret_cast<const char*>(need), need->vn_aux));
    for (uint16_t k = 0; k < need->vn_cnt; ++k, version = Behind(version, version->vna_next)) {
      if (version->vna_other == number) return strings_ + version->vna_name;
    }
    if (need->vn_next == 0) break;
  }
  return nullptr;
}

const char* DynamicSymbols::DefinedVersion(uint16_t number) const {
  for (const auto* own = defined_versions_; own != nullptr; own = Behind(own, own->vd_next)) {
    if (own->vd_ndx == number) {
      const auto* name = reinterpret_cast<const ElfW(Verdaux)*>(
          Behind(reinterpret_cast<const char*>(own), own->vd_aux));
      return strings_ + name->vda_name;
    }
    if (own->vd_next == 0) break;
  }
  return nullptr;
}

bool DynamicSymbols::IsDefault(uint32_t i) const {
  return versions_ == nullptr || (versions_[i] & kHiddenVersion) == 0;
}

bool DynamicSymbols::Defines(uint32_t i, const char* name) const {
  const ElfW(Sym)& s = symbols_[i];
  return s.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s.st_info) == STT_FUNC &&
         Same(strings_ + s.st_name, name);
}

}  // namespace gmt::preload
