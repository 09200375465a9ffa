// The libraries that reloaded.cc loads: the same code, with frames of different sizes at the same
// addresses.

extern "C" __attribute__((visibility("default"))) void CallFromPlugin(void (*function)()) {
  volatile char memory[GMT_FRAME_SIZE];
  memory[0] = 1;
  memory[GMT_FRAME_SIZE - 1] = 2;
  function();
  memory[1] = memory[0];
}
