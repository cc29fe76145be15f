// SPDX-License-Identifier: Apache-2.0

#include "chost.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <malloc.h>
#include <sys/prctl.h>
#else
#include <mach/mach.h>
#include <malloc/malloc.h>
#include <sys/sysctl.h>
#endif

static int64_t nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t chost_monotonic_ns(void) { return nanoseconds(CLOCK_MONOTONIC); }

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t chost_thread_cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

int64_t chost_process_cpu_ns(void) { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

double chost_wall_time_s(void) { return (double)nanoseconds(CLOCK_REALTIME) / 1e9; }

int64_t chost_asleep_ns(void) {
#if defined(__linux__)
  return nanoseconds(CLOCK_BOOTTIME) - nanoseconds(CLOCK_MONOTONIC);
#else
  return nanoseconds(CLOCK_MONOTONIC) - nanoseconds(CLOCK_UPTIME_RAW);
#endif
}

void chost_sleep_until_ns(int64_t deadline_ns) {
#if defined(__linux__)
  struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
#else
  int64_t left_ns;
  while ((left_ns = deadline_ns - chost_monotonic_ns()) > 0) {
    struct timespec pause = {left_ns / 1000000000, left_ns % 1000000000};
    nanosleep(&pause, NULL);
  }
#endif
}

int64_t chost_page_bytes(void) { return sysconf(_SC_PAGESIZE); }

void *chost_map(int64_t count) {
  void *start = mmap(NULL, (size_t)count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  return start == MAP_FAILED ? NULL : start;
}

void chost_unmap(void *start, int64_t count) { munmap(start, (size_t)count); }

#if defined(__linux__)

// "size resident shared ..." in pages. Parsed by hand: sscanf and strtol bind a static binary to the newest glibc.
static const char *next_number(const char *text, int64_t *value) {
  while (*text == ' ') text++;
  *value = 0;
  while (*text >= '0' && *text <= '9') *value = *value * 10 + (*text++ - '0');
  return text;
}

int64_t chost_footprint_bytes(void) {
  // One descriptor for the life of the process: opening costs more than the read. Two threads that open it at once
  // leak one descriptor, once.
  static _Atomic int statm = -1;
  int descriptor = statm;
  if (descriptor < 0) {
    descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return -errno;
    statm = descriptor;
  }
  char text[128];
  ssize_t count = pread(descriptor, text, sizeof text - 1, 0);
  if (count < 0) return -errno;
  text[count] = 0;
  int64_t size, resident, shared;
  next_number(next_number(next_number(text, &size), &resident), &shared);
  return (resident - shared) * chost_page_bytes();
}

int64_t chost_physical_memory_bytes(void) { return (int64_t)sysconf(_SC_PHYS_PAGES) * chost_page_bytes(); }

int64_t chost_live_heap_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  return (int64_t)(info.uordblks + info.hblkhd);
}

void chost_die_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); }

void chost_no_huge_pages(void) { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

#else

int64_t chost_footprint_bytes(void) {
  task_vm_info_data_t info;
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  kern_return_t result = task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count);
  return result == KERN_SUCCESS ? (int64_t)info.phys_footprint : -EIO;
}

int64_t chost_physical_memory_bytes(void) {
  int64_t bytes = 0;
  size_t size = sizeof bytes;
  return sysctlbyname("hw.memsize", &bytes, &size, NULL, 0) == 0 ? bytes : -errno;
}

int64_t chost_live_heap_bytes(void) {
  malloc_statistics_t statistics;
  malloc_zone_statistics(NULL, &statistics);
  return (int64_t)statistics.size_in_use;
}

void chost_die_with_parent(void) {}

void chost_no_huge_pages(void) {}

#endif

double chost_exp(double value) { return exp(value); }

struct start {
  void (*body)(void *);
  void *context;
};

static void *run(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  start.body(start.context);
  return NULL;
}

int chost_start_thread(void (*body)(void *), void *context, int64_t stack_bytes) {
  struct start *start = malloc(sizeof *start);
  if (start == NULL) return -ENOMEM;
  *start = (struct start){body, context};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, (size_t)stack_bytes);
  pthread_t thread;
  int code = pthread_create(&thread, &attributes, run, start);
  pthread_attr_destroy(&attributes);
  if (code != 0) free(start);
  return -code;
}

int chost_process_id(void) { return getpid(); }

int chost_parent_id(void) { return getppid(); }

bool chost_is_alive(int process_id) { return kill(process_id, 0) == 0 || errno == EPERM; }

const char *chost_environment(const char *name) { return getenv(name); }

void chost_ignore_broken_pipes(void) { signal(SIGPIPE, SIG_IGN); }

void chost_exit_now(int status) { _exit(status); }

void chost_abort(void) { abort(); }
