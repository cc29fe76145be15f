// SPDX-License-Identifier: Apache-2.0

#include "capple.h"

#include <TargetConditionals.h>
#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#include <mach/mach.h>
#include <string.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#if TARGET_OS_IPHONE
#include <os/proc.h>
#endif

bool capple_read_ledgers(struct capple_ledgers *ledgers) {
  task_vm_info_data_t info;
  memset(&info, 0, sizeof info);
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  if (task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count) != KERN_SUCCESS) return false;
  ledgers->footprint = (int64_t)info.phys_footprint;
  ledgers->footprint_peak = info.ledger_phys_footprint_peak;
  ledgers->compressed = (int64_t)info.compressed;
  ledgers->neural = info.ledger_tag_neural_footprint;
  ledgers->neural_uncounted = info.ledger_tag_neural_nofootprint;
  return true;
}

int64_t capple_available_bytes(void) {
#if TARGET_OS_IPHONE
  return (int64_t)os_proc_available_memory();
#else
  return 0;
#endif
}

double capple_boot_time_s(void) {
  struct timeval booted;
  size_t size = sizeof booted;
  int name[] = {CTL_KERN, KERN_BOOTTIME};
  if (sysctl(name, 2, &booted, &size, NULL, 0) != 0) return 0;
  return (double)booted.tv_sec + (double)booted.tv_usec / 1e6;
}

void capple_system_text(const char *name, char *text, int capacity) {
  if (capacity < 1) return;
  size_t size = (size_t)capacity;
  if (sysctlbyname(name, text, &size, NULL, 0) != 0) size = 0;
  text[size < (size_t)capacity ? size : (size_t)capacity - 1] = 0;
}

bool capple_image_uuid(uint8_t uuid[16]) {
  const struct mach_header_64 *header = (const struct mach_header_64 *)_dyld_get_image_header(0);
  if (header == NULL || header->magic != MH_MAGIC_64) return false;
  const uint8_t *next = (const uint8_t *)(header + 1);
  for (uint32_t index = 0; index < header->ncmds; index++) {
    const struct load_command *command = (const struct load_command *)next;
    if (command->cmd == LC_UUID) {
      memcpy(uuid, ((const struct uuid_command *)command)->uuid, 16);
      return true;
    }
    next += command->cmdsize;
  }
  return false;
}
