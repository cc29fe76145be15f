// SPDX-License-Identifier: Apache-2.0

#include "chost.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { most_watches = 64 };

static int64_t or_errno(int64_t result) { return result < 0 ? -errno : result; }

int chost_open_append(const char *path) {
  return (int)or_errno(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

int chost_open_read(const char *path) { return (int)or_errno(open(path, O_RDONLY | O_CLOEXEC)); }

int chost_make_folder(const char *path) {
  if (mkdir(path, 0700) == 0 || errno == EEXIST) return 0;
  return -errno;
}

void chost_close(int descriptor) { close(descriptor); }

int64_t chost_read(int descriptor, void *bytes, int64_t count) {
  return or_errno(read(descriptor, bytes, (size_t)count));
}

int64_t chost_read_at(int descriptor, void *bytes, int64_t count, int64_t offset) {
  return or_errno(pread(descriptor, bytes, (size_t)count, offset));
}

int chost_write_all(int descriptor, const void *bytes, int64_t count) {
  const char *next = bytes;
  while (count > 0) {
    ssize_t written = write(descriptor, next, (size_t)count);
    if (written < 0) {
      if (errno == EINTR) continue;
      return -errno;
    }
    next += written;
    count -= written;
  }
  return 0;
}

int chost_sync(int descriptor) {
#if defined(__linux__)
  return (int)or_errno(fdatasync(descriptor));
#else
  return (int)or_errno(fsync(descriptor));
#endif
}

const char *chost_error_text(int code) { return strerror(code < 0 ? -code : code); }

bool chost_is_transient(int code) {
  return code == -EINTR || code == -EAGAIN || code == -EWOULDBLOCK;
}

int chost_set_nonblocking(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0) return -errno;
  return (int)or_errno(fcntl(descriptor, F_SETFL, flags | O_NONBLOCK));
}

static void close_on_exec(int descriptor) { fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

static int closed_with(int descriptor, int code) {
  close(descriptor);
  return -code;
}

static int listen_at(int descriptor, const struct sockaddr *address, socklen_t size) {
  close_on_exec(descriptor);
  if (bind(descriptor, address, size) != 0) return closed_with(descriptor, errno);
  if (listen(descriptor, 8) != 0) return closed_with(descriptor, errno);
  chost_set_nonblocking(descriptor);
  return descriptor;
}

static int unix_address(const char *path, struct sockaddr_un *address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address->sun_path) return -ENAMETOOLONG;
  memcpy(address->sun_path, path, strlen(path));
  return 0;
}

int chost_listen_unix(const char *path) {
  struct sockaddr_un address;
  int code = unix_address(path, &address);
  if (code < 0) return code;
  int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  if (descriptor < 0) return -errno;
  unlink(path);
  return listen_at(descriptor, (struct sockaddr *)&address, sizeof address);
}

int chost_listen_loopback(uint16_t port) {
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  if (descriptor < 0) return -errno;
  int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return listen_at(descriptor, (struct sockaddr *)&address, sizeof address);
}

int chost_connect_unix(const char *path) {
  struct sockaddr_un address;
  int code = unix_address(path, &address);
  if (code < 0) return code;
  int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  if (descriptor < 0) return -errno;
  close_on_exec(descriptor);
  if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
    return closed_with(descriptor, errno);
  }
  chost_set_nonblocking(descriptor);
  return descriptor;
}

int chost_accept(int listener) {
  int descriptor = accept(listener, NULL, NULL);
  if (descriptor < 0) return -errno;
  close_on_exec(descriptor);
  chost_set_nonblocking(descriptor);
#if !defined(__linux__)
  int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
  return descriptor;
}

int64_t chost_send(int descriptor, const void *bytes, int64_t count) {
#if defined(__linux__)
  return or_errno(send(descriptor, bytes, (size_t)count, MSG_NOSIGNAL));
#else
  return or_errno(send(descriptor, bytes, (size_t)count, 0));
#endif
}

void chost_end_output(int descriptor) { shutdown(descriptor, SHUT_WR); }

int chost_pipe(int ends[2]) {
  if (pipe(ends) != 0) return -errno;
  for (int end = 0; end < 2; end++) {
    close_on_exec(ends[end]);
    chost_set_nonblocking(ends[end]);
  }
  return 0;
}

int chost_poll(struct chost_watch *watches, int count, int timeout_ms) {
  if (count > most_watches) return -EINVAL;
  struct pollfd polled[most_watches];
  for (int i = 0; i < count; i++) {
    short events = (watches[i].wants_input ? POLLIN : 0) | (watches[i].wants_output ? POLLOUT : 0);
    polled[i] = (struct pollfd){.fd = watches[i].descriptor, .events = events};
  }
  int ready = poll(polled, (nfds_t)count, timeout_ms);
  if (ready < 0 && errno != EINTR) return -errno;
  for (int i = 0; i < count; i++) {
    short seen = ready > 0 ? polled[i].revents : 0;
    watches[i].input = (seen & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) != 0;
    watches[i].output = (seen & (POLLOUT | POLLERR)) != 0;
  }
  return ready < 0 ? 0 : ready;
}
