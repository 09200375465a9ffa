// A library with THREAD_LOCALS bytes of thread-local memory of the initial-exec model. If it is
// opened at run time, the memory comes from a small static TLS reserve of the process.
thread_local __attribute__((tls_model("initial-exec"))) char thread_locals[THREAD_LOCALS] = {};
extern "C" __attribute__((visibility("default"))) char* ThreadLocals() { return thread_locals; }
