// Calls the constructors of a program. Until glibc 2.34 its startup code did that. Since then libc
// does it, and the startup code passes no function for it. This one is called by both
// (--wrap). Destructors are called by the dynamic linker of all releases.

typedef void Constructor(int argc, char** argv, char** environment);
typedef int Main(int argc, char** argv, char** environment);

extern Constructor* __preinit_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __preinit_array_end[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);

static void CallConstructors(int argc, char** argv, char** environment) {
  for (Constructor** each = __preinit_array_start; each != __preinit_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
  _init();
  for (Constructor** each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
}

int __real___libc_start_main(Main* main, int argc, char** argv, Constructor* constructors,
                             void (*destructors)(void), void (*loader_end)(void), void* stack);
int __wrap___libc_start_main(Main* main, int argc, char** argv, Constructor* constructors,
                             void (*destructors)(void), void (*loader_end)(void), void* stack);

int __wrap___libc_start_main(Main* main, int argc, char** argv, Constructor* constructors,
                             void (*destructors)(void), void (*loader_end)(void), void* stack) {
  (void)constructors;
  return __real___libc_start_main(main, argc, argv, CallConstructors, destructors, loader_end,
                                  stack);
}
