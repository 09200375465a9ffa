#include "preload/stacks/unwind/frame_tables.h"

#include <elf.h>

#include "preload/stacks/unwind/encoded_pointer.h"

namespace gmt::preload {
namespace {

// Reads one record of .eh_frame past its length; `body` begins with the id. Returns false at the
// terminator, and if the record does not fit.
bool ReadRecord(uint64_t address, const Extent& segment, ByteReader* body, bool* is_64_bit) {
  ByteReader reader(address, segment.end);
  uint64_t length = reader.Fixed<uint32_t>();
  *is_64_bit = length == 0xffffffff;
  if (*is_64_bit) length = reader.Fixed<uint64_t>();
  if (length == 0) return false;
  *body = reader.Part(length);
  return reader.ok();
}

// The properties announced by the letters of an augmentation.
struct Augmentation {
  uint8_t pointer_encoding = 0;
  bool is_signal_frame = false;
  bool has_data = false;  // in the FDE as well
};

// `letters` is positioned at the augmentation string, `record` at the data that belongs to it.
// After an unknown letter the data cannot be interpreted. The data has its own length, so the rest
// of the record remains readable.
bool ReadAugmentation(ByteReader letters, ByteReader* record, Augmentation* a) {
  char letter = letters.Fixed<char>();
  if (letter == '\0') return true;
  if (letter != 'z') return false;
  a->has_data = true;
  ByteReader data = record->Part(record->Uleb());
  while ((letter = letters.Fixed<char>()) != '\0') {
    switch (letter) {
      case 'R':
        a->pointer_encoding = data.Fixed<uint8_t>();
        break;
      case 'P': {
        const auto encoding = data.Fixed<uint8_t>();
        // Only skipped, so its base does not matter: the personality is not called here.
        ReadEncodedPointer(encoding == kPointerAligned ? encoding : encoding & 0x0f, 0, &data);
        break;
      }
      case 'L':
        data.Skip(1);
        break;
      case 'S':
        a->is_signal_frame = true;
        break;
      case 'B':
        break;
      default:
        return false;
    }
  }
  return letters.ok() && data.ok();
}

bool ReadCommonRecord(uint64_t address, const Extent& segment, FrameTables* tables,
                      Augmentation* augmentation) {
  ByteReader record;
  bool is_64_bit;
  if (!ReadRecord(address, segment, &record, &is_64_bit)) return false;
  const uint64_t id = is_64_bit ? record.Fixed<uint64_t>() : record.Fixed<uint32_t>();
  const auto version = record.Fixed<uint8_t>();
  if (id != 0 || (version != 1 && version != 3)) return false;
  const ByteReader letters = record;
  while (record.Fixed<char>() != '\0') {
  }
  tables->code_alignment = record.Uleb();
  tables->data_alignment = record.Sleb();
  tables->return_register = version == 1 ? record.Fixed<uint8_t>() : record.Uleb();
  if (!record.ok() || !ReadAugmentation(letters, &record, augmentation)) return false;
  tables->pointer_encoding = augmentation->pointer_encoding;
  tables->is_signal_frame = augmentation->is_signal_frame;
  tables->common_program = record;
  return record.ok();
}

FoundTables ReadFunctionRecord(uint64_t address, const Extent& segment, uint64_t pc,
                               FrameTables* tables) {
  ByteReader record;
  bool is_64_bit;
  if (!ReadRecord(address, segment, &record, &is_64_bit)) return FoundTables::kDamaged;
  const uint64_t id_at = record.at();
  const uint64_t id = is_64_bit ? record.Fixed<uint64_t>() : record.Fixed<uint32_t>();
  const uint64_t common = id_at - id;
  Augmentation augmentation;
  if (id == 0 || !segment.Holds(common, sizeof(uint32_t)) ||
      !ReadCommonRecord(common, segment, tables, &augmentation)) {
    return FoundTables::kDamaged;
  }
  const uint8_t encoding = augmentation.pointer_encoding;
  if ((encoding & kPointerIndirect) != 0) return FoundTables::kDamaged;
  tables->first_pc = ReadEncodedPointer(encoding, 0, &record);
  const uint64_t size = ReadEncodedNumber(encoding, &record);
  if (augmentation.has_data) record.Skip(record.Uleb());
  if (!record.ok()) return FoundTables::kDamaged;
  if (pc < tables->first_pc || pc - tables->first_pc >= size) return FoundTables::kNone;
  tables->function_program = record;
  tables->segment_end = segment.end;
  return FoundTables::kFound;
}

// The table of .eh_frame_hdr: pairs of a function's first address and its FDE, both relative to the
// start of .eh_frame_hdr, sorted.
struct IndexEntry {
  int32_t first_pc, record;
};

// Returns the FDE of the last function that begins at or below `pc`; 0: none.
uint64_t SearchIndex(ByteReader table, uint64_t count, uint64_t index, uint64_t pc) {
  const uint64_t begin = table.at();
  const auto entry_at = [begin](uint64_t i) {
    ByteReader entry(begin + i * sizeof(IndexEntry), begin + (i + 1) * sizeof(IndexEntry));
    return entry.Fixed<IndexEntry>();
  };
  const auto address = [index](int32_t relative) {
    return index + static_cast<uint64_t>(int64_t{relative});
  };
  uint64_t low = 0,
           high = count;  // entries below `low` begin at or below pc, those from high above
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (address(entry_at(middle).first_pc) <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : address(entry_at(low - 1).record);
}

// Used if there is no table of the usual form: searches the records one by one.
FoundTables SearchRecords(uint64_t first, const Extent& segment, uint64_t pc, FrameTables* tables) {
  ByteReader record;
  bool is_64_bit;
  for (uint64_t at = first;
       segment.Holds(at, sizeof(uint32_t)) && ReadRecord(at, segment, &record, &is_64_bit);) {
    const uint64_t next = record.at() + record.left();
    const uint64_t id = is_64_bit ? record.Fixed<uint64_t>() : record.Fixed<uint32_t>();
    if (id != 0) {
      const FoundTables found = ReadFunctionRecord(at, segment, pc, tables);
      if (found != FoundTables::kNone) return found;
    }
    at = next;
  }
  return FoundTables::kNone;
}

}  // namespace

FoundTables FindFrameTables(const LoadedModule& module, uint64_t index, uint64_t pc,
                            FrameTables* tables) {
  const Extent index_segment = module.SegmentAt(index, PF_R);
  ByteReader header(index, index_segment.end);
  const auto version = header.Fixed<uint8_t>();
  const auto records_encoding = header.Fixed<uint8_t>();
  const auto count_encoding = header.Fixed<uint8_t>();
  const auto table_encoding = header.Fixed<uint8_t>();
  if (!header.ok() || version != 1) return FoundTables::kDamaged;
  const uint64_t records = ReadEncodedPointer(records_encoding, index, &header);
  const Extent segment = module.SegmentAt(records, PF_R);
  if (!header.ok() || !segment.Holds(records, sizeof(uint32_t))) return FoundTables::kDamaged;
  if (count_encoding == kPointerOmitted ||
      table_encoding != (kPointerDataRelative | kPointerSigned4)) {
    return SearchRecords(records, segment, pc, tables);
  }
  const uint64_t count = ReadEncodedPointer(count_encoding, index, &header);
  if (!header.ok() || count > header.left() / sizeof(IndexEntry)) return FoundTables::kDamaged;
  const uint64_t record = SearchIndex(header, count, index, pc);
  if (record == 0) return FoundTables::kNone;
  if (!segment.Holds(record, sizeof(uint32_t))) return FoundTables::kDamaged;
  return ReadFunctionRecord(record, segment, pc, tables);
}

}  // namespace gmt::preload
