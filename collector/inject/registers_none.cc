// The implementation for processors without support.

#include "collector/inject/registers.h"

#if !defined(__x86_64__)

namespace gmt::inject {

bool IsSupported() { return false; }
uint64_t Registers::pc() const { return 0; }
uint64_t Registers::sp() const { return 0; }
int64_t Registers::syscall() const { return kNoSyscall; }
bool ReadRegisters(pid_t, Registers*) { return false; }
bool WriteGeneralRegisters(pid_t, const Registers&) { return false; }
bool WriteVectorRegisters(pid_t, const Registers&) { return false; }
bool IsWaiting(int64_t) { return false; }
bool IsFutex(int64_t) { return false; }
size_t CallCodeSize() { return 0; }
std::vector<uint8_t> MakeCallCode(const Registers&) { return {}; }
bool IsInWait(uint64_t, uint64_t) { return false; }
uint64_t RedZone() { return 0; }
void SaveInto(const Registers&, CallData*) {}
Registers CallRegisters(const Registers&, uint64_t, uint64_t, uint64_t) { return {}; }

}  // namespace gmt::inject

#endif  // !__x86_64__
