// A library with so many bytes of thread-local memory that must lie beside the thread's own: what is
// opened late takes that from a small reserve of the process.
thread_local __attribute__((tls_model("initial-exec"))) char thread_locals[THREAD_LOCALS] = {};
extern "C" __attribute__((visibility("default"))) char* ThreadLocals() { return thread_locals; }
