// preload/stacks/unwind/testing/table_builder.h
//
// TableBuilder: builds .eh_frame_hdr and .eh_frame in memory, for tests that need tables no
// compiler would write. No code is needed: function addresses are just numbers near the tables.

#ifndef GMT_PRELOAD_STACKS_UNWIND_TESTING_TABLE_BUILDER_H_
#define GMT_PRELOAD_STACKS_UNWIND_TESTING_TABLE_BUILDER_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "preload/stacks/unwind/call_frame.h"
#include "preload/stacks/unwind/encoded_pointer.h"

namespace gmt::preload::testing {

// Returns a number in one of the formats of .eh_frame.
inline std::string Fixed(uint64_t number, size_t bytes) {
  return std::string(reinterpret_cast<const char*>(&number), bytes);
}

class TableBuilder {
 public:
  static constexpr uint64_t kFunctionSize = 256;

  // Contents of the CIE.
  std::string augmentation = "zR";
  uint8_t version = 1;
  uint8_t encoding = kPointerPcRelative | kPointerSigned4;
  std::string personality;  // bytes of P's pointer, beginning with its encoding
  bool is_64_bit = false;
  bool with_index = true;
  std::string common_program = {0x0c, 7, 8, '\x90', 1};  // CFA = rsp + 8, return address at CFA - 8

  // Adds a function that begins at Function(number) and has this program.
  void Add(std::string_view program) { programs_.emplace_back(program); }

  // Lays out the tables, replacing any previous build.
  void Build() {
    bytes_.assign(12 + 8 * programs_.size() + kRoom, 0);
    bytes_.resize(12 + 8 * programs_.size());
    bytes_.reserve(12 + 8 * programs_.size() + kRoom);
    const size_t records = bytes_.size();
    const size_t cie = Append(Cie());
    std::vector<size_t> fdes;
    for (size_t i = 0; i < programs_.size(); ++i) fdes.push_back(Append(Fde(cie, i)));
    Put(Fixed(0, 4));
    WriteIndex(records, fdes);
    header_ = {};
    header_.p_type = PT_LOAD;
    header_.p_flags = PF_R;
    header_.p_vaddr = index();
    header_.p_memsz = bytes_.size();
  }

  uint64_t index() const { return reinterpret_cast<uint64_t>(bytes_.data()); }
  uint64_t Function(size_t number) const { return index() + 0x10000 + number * kFunctionSize; }
  std::vector<uint8_t>& bytes() { return bytes_; }
  LoadedModule module() const {
    return {index(), index() + bytes_.size(), 0, &header_, 1, "", nullptr};
  }

  FoundFrame Read(uint64_t pc, CallFrame* frame) const {
    return ReadCallFrame(module(), index(), pc, frame);
  }

 private:
  static constexpr size_t kRoom = 1 << 16;  // records know their addresses: the bytes must not move

  void Put(std::string_view bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  uint64_t here() const { return index() + bytes_.size(); }

  // Appends the record, preceded by its length. Returns its offset.
  size_t Append(const std::string& record) {
    const size_t at = bytes_.size();
    Put(is_64_bit ? Fixed(0xffffffff, 4) + Fixed(record.size(), 8) : Fixed(record.size(), 4));
    Put(record);
    return at;
  }
  size_t IdSize() const { return is_64_bit ? 8 : 4; }

  std::string Cie() const {
    std::string data;
    for (const char letter : augmentation) {
      if (letter == 'R') data += static_cast<char>(encoding);
      if (letter == 'P') data += personality;
      if (letter == 'L') data += '\x1b';
    }
    std::string cie = Fixed(0, IdSize()) + static_cast<char>(version) + augmentation + '\0';
    cie += std::string({1, 0x78, 16});  // code alignment 1, data alignment -8, register 16
    if (augmentation[0] == 'z') cie += static_cast<char>(data.size()) + data;
    return cie + common_program;
  }

  std::string Fde(size_t cie, size_t number) const {
    const size_t id_at = bytes_.size() + (is_64_bit ? 12 : 4);
    std::string fde = Fixed(id_at - cie, IdSize());
    const uint64_t place = index() + id_at + IdSize();
    const size_t size = (encoding & 0x0f) == kPointerSigned4 ? 4 : 8;
    const bool relative = (encoding & 0x70) == kPointerPcRelative;
    fde += Fixed(Function(number) - (relative ? place : 0), size) + Fixed(kFunctionSize, size);
    if (augmentation[0] == 'z') fde += '\0';
    return fde + programs_[number];
  }

  void WriteIndex(size_t records, const std::vector<size_t>& fdes) {
    uint8_t* out = bytes_.data();
    const uint8_t head[] = {1, kPointerPcRelative | kPointerSigned4,
                            static_cast<uint8_t>(with_index ? 0x03 : kPointerOmitted),
                            kPointerDataRelative | kPointerSigned4};
    std::memcpy(out, head, 4);
    const auto put = [&](size_t at, uint64_t number) { std::memcpy(out + at, &number, 4); };
    put(4, records - 4);
    put(8, fdes.size());
    for (size_t i = 0; i < fdes.size(); ++i) {
      put(12 + 8 * i, Function(i) - index());
      put(16 + 8 * i, fdes[i]);
    }
  }

  std::vector<std::string> programs_;
  std::vector<uint8_t> bytes_;
  Elf64_Phdr header_ = {};
};

}  // namespace gmt::preload::testing

#endif  // GMT_PRELOAD_STACKS_UNWIND_TESTING_TABLE_BUILDER_H_
