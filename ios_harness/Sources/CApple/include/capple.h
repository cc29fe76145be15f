// SPDX-License-Identifier: Apache-2.0
//
// What iOS tells of a process through C macros and globals that Swift 6 does not import: `mach_task_self()`, sysctl, and
// the load commands of the app's own image. Never built on Linux.

#ifndef CAPPLE_H
#define CAPPLE_H

#include <stdbool.h>
#include <stdint.h>

// Ledgers of this process in bytes, all of one call of task_info(TASK_VM_INFO).
struct capple_ledgers {
  int64_t footprint;         // phys_footprint: what jetsam looks at
  int64_t footprint_peak;    // ledger_phys_footprint_peak
  int64_t compressed;
  int64_t neural;            // ledger_tag_neural_footprint: counts against the limit
  int64_t neural_uncounted;  // ledger_tag_neural_nofootprint: owned by us, outside the footprint
};

// Returns false when the kernel does not answer.
bool capple_read_ledgers(struct capple_ledgers *ledgers);

// os_proc_available_memory: bytes to the limit, 0 when over it or not known.
int64_t capple_available_bytes(void);

// Seconds since 1970 when the phone booted; 0 when the kernel does not answer.
double capple_boot_time_s(void);

// A string of sysctl by name ("hw.machine", "kern.osversion"); empty when there is none.
void capple_system_text(const char *name, char *text, int capacity);

// LC_UUID of the app's own image, 16 bytes; false when it has none. dSYMs carry the same.
bool capple_image_uuid(uint8_t uuid[16]);

#endif
