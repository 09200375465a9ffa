#include "preload/stacks/unwind/call_frame.h"

#if GMT_HAS_NATIVE_WALK

#include <elf.h>
#include <string.h>

#include "preload/stacks/unwind/encoded_pointer.h"
#include "preload/stacks/unwind/frame_pointer.h"
#include "preload/stacks/unwind/frame_tables.h"

namespace gmt::preload {
namespace {

// Runs the program of a CIE and then that of an FDE, up to `pc`.
class Program {
 public:
  Program(const FrameTables& tables, uint64_t pc, CallFrame* frame)
      : tables_(tables), pc_(pc), location_(tables.first_pc), frame_(frame) {}

  bool Run() {
    if (!RunPart(tables_.common_program)) return false;
    initial_ = *frame_;
    return RunPart(tables_.function_program);
  }

 private:
  // Compilers need one, to restore the state after an early return.
  static constexpr uint32_t kMaxRemembered = 4;

  bool RunPart(ByteReader program) {
    while (!program.empty() && location_ <= pc_ && !failed_) {
      const auto code = program.Fixed<uint8_t>();
      const uint32_t low = code & 0x3f;
      switch (code >> 6) {
        case 1:  // DW_CFA_advance_loc
          location_ += low * tables_.code_alignment;
          break;
        case 2:  // DW_CFA_offset
          SaveAtCfa(low, Factored(program.Uleb()));
          break;
        case 3:  // DW_CFA_restore
          Restore(low);
          break;
        default:
          RunLong(code, &program);
      }
    }
    return program.ok() && !failed_;
  }

  void RunLong(uint8_t code, ByteReader* p) {
    switch (code) {
      case 0x00:  // DW_CFA_nop
        break;
      case 0x01:  // DW_CFA_set_loc
        location_ = ReadEncodedPointer(tables_.pointer_encoding, 0, p);
        break;
      case 0x02:  // DW_CFA_advance_loc1, 2, 4
        location_ += p->Fixed<uint8_t>() * tables_.code_alignment;
        break;
      case 0x03:
        location_ += p->Fixed<uint16_t>() * tables_.code_alignment;
        break;
      case 0x04:
        location_ += p->Fixed<uint32_t>() * tables_.code_alignment;
        break;
      case 0x0a:  // DW_CFA_remember_state
        if (remembered_count_ == kMaxRemembered) {
          failed_ = true;
        } else {
          remembered_[remembered_count_++] = *frame_;
        }
        break;
      case 0x0b:  // DW_CFA_restore_state
        if (remembered_count_ == 0) {
          failed_ = true;
        } else {
          *frame_ = remembered_[--remembered_count_];
        }
        break;
      case 0x2e:  // DW_CFA_GNU_args_size
        p->Uleb();
        break;
      default:
        if (!RunCfa(code, p) && !RunRegister(code, p)) failed_ = true;
    }
  }

  bool RunCfa(uint8_t code, ByteReader* p) {
    switch (code) {
      case 0x0c:  // DW_CFA_def_cfa, _register, _offset
        SetCfaRegister(p->Uleb());
        frame_->cfa_offset = static_cast<int64_t>(p->Uleb());
        return true;
      case 0x0d:
        SetCfaRegister(p->Uleb());
        return true;
      case 0x0e:
        frame_->cfa_offset = static_cast<int64_t>(p->Uleb());
        return true;
      case 0x0f:  // DW_CFA_def_cfa_expression
        frame_->cfa_expression = p->at();
        p->Skip(p->Uleb());
        return true;
      case 0x12:  // DW_CFA_def_cfa_sf, _offset_sf
        SetCfaRegister(p->Uleb());
        frame_->cfa_offset = SignedFactored(p->Sleb());
        return true;
      case 0x13:
        frame_->cfa_offset = SignedFactored(p->Sleb());
        return true;
      default:
        return false;
    }
  }

  bool RunRegister(uint8_t code, ByteReader* p) {
    const auto number = [p] { return p->Uleb(); };
    uint64_t which = 0;
    if (code >= 0x05) which = number();
    switch (code) {
      case 0x05:  // DW_CFA_offset_extended
        SaveAtCfa(which, Factored(number()));
        return true;
      case 0x06:  // DW_CFA_restore_extended
        Restore(which);
        return true;
      case 0x07:  // DW_CFA_undefined
        Save(which, {Saved::kUndefined, {0}});
        return true;
      case 0x08:  // DW_CFA_same_value
        Save(which, {Saved::kNot, {0}});
        return true;
      case 0x09:  // DW_CFA_register
        Save(which, {Saved::kRegister, {static_cast<int64_t>(number())}});
        return true;
      case 0x10:  // DW_CFA_expression
      case 0x16:  // DW_CFA_val_expression
        SaveExpression(which, code == 0x10 ? Saved::kAt : Saved::kIs, p);
        return true;
      case 0x11:  // DW_CFA_offset_extended_sf
        SaveAtCfa(which, SignedFactored(p->Sleb()));
        return true;
      case 0x14:  // DW_CFA_val_offset
        Save(which, {Saved::kIsCfa, {Factored(number())}});
        return true;
      case 0x15:  // DW_CFA_val_offset_sf
        Save(which, {Saved::kIsCfa, {SignedFactored(p->Sleb())}});
        return true;
      case 0x2f:  // DW_CFA_GNU_negative_offset_extended
        SaveAtCfa(which, -Factored(number()));
        return true;
      default:
        return false;
    }
  }

  int64_t Factored(uint64_t n) const {
    return static_cast<int64_t>(n * static_cast<uint64_t>(tables_.data_alignment));
  }
  int64_t SignedFactored(int64_t n) const { return Factored(static_cast<uint64_t>(n)); }

  void SetCfaRegister(uint64_t which) {
    if (which >= kRegisterCount) failed_ = true;
    frame_->cfa_register = static_cast<uint32_t>(which);
    frame_->cfa_expression = 0;
  }

  // Registers that no walk needs (vector and state registers) are not tracked.
  void Save(uint64_t which, SavedRegister how) {
    if (which < kRegisterCount) frame_->registers[which] = how;
  }
  void SaveAtCfa(uint64_t which, int64_t offset) { Save(which, {Saved::kAtCfa, {offset}}); }
  void SaveExpression(uint64_t which, Saved how, ByteReader* p) {
    SavedRegister saved = {how, {0}};
    saved.expression = p->at();
    Save(which, saved);
    p->Skip(p->Uleb());
  }
  void Restore(uint64_t which) {
    if (which < kRegisterCount) frame_->registers[which] = initial_.registers[which];
  }

  const FrameTables& tables_;
  const uint64_t pc_;
  uint64_t location_;
  CallFrame* const frame_;
  CallFrame initial_ = {};
  CallFrame remembered_[kMaxRemembered];
  uint32_t remembered_count_ = 0;
  bool failed_ = false;
};

// The frame between a signal handler and the code it interrupted, as expressions for all registers
// in DWARF's order: memory at stack pointer + offset.
constexpr int64_t kContextOffsets[kRegisterCount] = {
    144, 136, 152, 128, 112, 104, kContextBp, kContextSp, 40,
    48,  56,  64,  72,  80,  88,  96,         kContextPc};

struct SignalFrameTables {
  // Length, DW_OP_breg7, the offset in two bytes of LEB128; for the CFA also DW_OP_deref.
  uint8_t saved[kRegisterCount][4] = {};
  uint8_t cfa[5] = {4, 0x77, (kContextSp & 0x7f) | 0x80, kContextSp >> 7, 0x06};

  constexpr SignalFrameTables() {
    for (uint32_t i = 0; i < kRegisterCount; ++i) {
      saved[i][0] = 3;
      saved[i][1] = 0x77;
      saved[i][2] = static_cast<uint8_t>((kContextOffsets[i] & 0x7f) | 0x80);
      saved[i][3] = static_cast<uint8_t>(kContextOffsets[i] >> 7);
    }
  }
};
constexpr SignalFrameTables kSignalFrame;

void SetSignalFrame(CallFrame* frame) {
  *frame = {};
  frame->is_signal_frame = true;
  frame->cfa_expression = reinterpret_cast<uint64_t>(kSignalFrame.cfa);
  frame->tables_end = reinterpret_cast<uint64_t>(&kSignalFrame + 1);
  for (uint32_t i = 0; i < kRegisterCount; ++i) {
    frame->registers[i].how = Saved::kAt;
    frame->registers[i].expression = reinterpret_cast<uint64_t>(kSignalFrame.saved[i]);
  }
}

// Returns whether signal handlers return to this address: to the system call rt_sigreturn, whose
// code is fixed because debuggers also recognize it. Not every C library describes it in its
// tables.
bool IsSignalReturn(const Extent& code, uint64_t return_address) {
  static constexpr uint8_t kCode[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  return code.Holds(return_address, sizeof(kCode)) &&
         memcmp(reinterpret_cast<const void*>(return_address), kCode, sizeof(kCode)) == 0;
}

}  // namespace

FoundFrame ReadCallFrame(const LoadedModule& module, uint64_t index, uint64_t pc,
                         CallFrame* frame) {
  FrameTables tables;
  switch (FindFrameTables(module, index, pc, &tables)) {
    case FoundTables::kNone:
      return FoundFrame::kNoTable;
    case FoundTables::kDamaged:
      return FoundFrame::kDamaged;
    case FoundTables::kFound:
      break;
  }
  if (tables.return_register != kRegisterReturn) return FoundFrame::kDamaged;
  *frame = {};
  frame->tables_end = tables.segment_end;
  frame->is_signal_frame = tables.is_signal_frame;
  return Program(tables, pc, frame).Run() ? FoundFrame::kFound : FoundFrame::kDamaged;
}

FoundFrame FindCallFrame(uint64_t pc, CallFrame* frame) {
  LoadedModule module;
  if (FindLoadedModule(pc, &module) != FoundModule::kFound) return FoundFrame::kNoModule;
  if (!module.SegmentAt(pc, PF_X).Holds(pc, 1)) return FoundFrame::kNotCode;
  if (IsSignalReturn(module.SegmentAt(pc, PF_X | PF_R), pc + 1)) {
    SetSignalFrame(frame);
    return FoundFrame::kFound;
  }
  const uint64_t index = module.FindSegment(PT_GNU_EH_FRAME);
  if (index == 0) return FoundFrame::kNoTable;
  const FoundFrame found = ReadCallFrame(module, index, pc, frame);
  const bool begins_behind = found == FoundFrame::kNoTable &&
                             ReadCallFrame(module, index, pc + 1, frame) == FoundFrame::kFound;
  bool described;
  return begins_behind && !IsBehindCall(pc + 1, &described) ? FoundFrame::kNoCaller : found;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
