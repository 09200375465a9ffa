// SIM_JUMP(symbol, target): makes `symbol` an alias of `target`, unless some file defines it.
#ifndef TESTS_SIMCUDA_JUMP_H_
#define TESTS_SIMCUDA_JUMP_H_

#if defined(__x86_64__)
#define SIM_JUMP_INSTRUCTION "jmp "
#define SIM_JUMP_TARGET(target) #target "@PLT"
#elif defined(__aarch64__)
#define SIM_JUMP_INSTRUCTION "b "
#define SIM_JUMP_TARGET(target) #target
#endif

#define SIM_JUMP(symbol, target)                                  \
  asm(".weak " #symbol "\n.type " #symbol ", @function\n" #symbol \
      ":\n  " SIM_JUMP_INSTRUCTION SIM_JUMP_TARGET(target) "\n");

#endif  // TESTS_SIMCUDA_JUMP_H_
