// SPDX-License-Identifier: Apache-2.0
//
// The operating system as the harness needs it: what is variadic, macro-only or spelled differently on Linux and
// Darwin, so that the Swift code holds neither `errno` nor platform branches.
//
// Unless said otherwise a call returns a value >= 0, or -errno.

#ifndef CHOST_H
#define CHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Time. Monotonic time goes on while the machine sleeps on Darwin, and stops on Linux.

int64_t chost_monotonic_ns(void);
double chost_wall_time_s(void);
// Processor time of the calling thread and of the process: what a busy machine does not stretch.
int64_t chost_thread_cpu_ns(void);
int64_t chost_process_cpu_ns(void);
// Time the machine spent asleep since boot, in nanoseconds.
int64_t chost_asleep_ns(void);
// Returns at `deadline_ns` of the monotonic clock, at once when it has passed.
void chost_sleep_until_ns(int64_t deadline_ns);

// Files. Descriptors are close-on-exec.

int chost_open_append(const char *path);
int chost_open_read(const char *path);
int chost_make_folder(const char *path);
void chost_close(int descriptor);
int64_t chost_read(int descriptor, void *bytes, int64_t count);
int64_t chost_read_at(int descriptor, void *bytes, int64_t count, int64_t offset);
// Writes all of it, through interruptions; blocks.
int chost_write_all(int descriptor, const void *bytes, int64_t count);
// fdatasync on Linux. On Darwin fsync: it reaches the drive, not the flash, which survives a kill of the process.
int chost_sync(int descriptor);
const char *chost_error_text(int code);
// Whether a failed call may succeed when it is made again: interrupted, or nothing there yet.
bool chost_is_transient(int code);

// Sockets, all non-blocking; a peer that has gone never raises SIGPIPE.

int chost_listen_unix(const char *path);
int chost_listen_loopback(uint16_t port);
int chost_connect_unix(const char *path);
int chost_accept(int listener);
// -EAGAIN when nothing can be sent now.
int64_t chost_send(int descriptor, const void *bytes, int64_t count);
void chost_end_output(int descriptor);
int chost_set_nonblocking(int descriptor);
// Fills ends[0] (read) and ends[1] (write), both non-blocking.
int chost_pipe(int ends[2]);

struct chost_watch {
  int descriptor;
  bool wants_input;
  bool wants_output;
  bool input;   // readable, or ended
  bool output;  // writable
};
// Waits until a descriptor is ready or `timeout_ms` has passed; -1 waits for ever.
int chost_poll(struct chost_watch *watches, int count, int timeout_ms);

// Memory.

int64_t chost_page_bytes(void);
// Anonymous private pages, or NULL.
void *chost_map(int64_t count);
void chost_unmap(void *start, int64_t count);
// Dirty memory: (resident - shared) of statm on Linux, phys_footprint on Darwin; -errno if unreadable.
int64_t chost_footprint_bytes(void);
int64_t chost_physical_memory_bytes(void);
// Bytes of malloc that are allocated and not freed.
int64_t chost_live_heap_bytes(void);

// e to the power of `value`: the C library has another name on each system.
double chost_exp(double value);

// Process.

// Runs `body(context)` on a detached thread with a stack of `stack_bytes`.
int chost_start_thread(void (*body)(void *), void *context, int64_t stack_bytes);
int chost_process_id(void);
int chost_parent_id(void);
bool chost_is_alive(int process_id);
// NULL when it is not set.
const char *chost_environment(const char *name);
// Linux: SIGKILL when the thread that started us ends; a no-op elsewhere.
void chost_die_with_parent(void);
// Linux: no huge pages, so that memory is counted page by page; a no-op elsewhere.
void chost_no_huge_pages(void);
void chost_ignore_broken_pipes(void);
void chost_exit_now(int status) __attribute__((noreturn));
// Ends the process by SIGABRT, as a failed assertion does.
void chost_abort(void) __attribute__((noreturn));

#endif
