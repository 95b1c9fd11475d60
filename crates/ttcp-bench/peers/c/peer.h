/* What peers in C and C++ share: options, sockets, what buffers hold, and how results are told. */
#ifndef PEER_H
#define PEER_H
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct { int16_t s; char c; int32_t l; uint8_t o; double d; } Record;

static inline void die(const char *what) { perror(what); exit(1); }

/* The value of option --name, or dflt. */
static inline const char *opt(int argc, char **argv, const char *name, const char *dflt) {
  for (int i = 1; i + 1 < argc; i++) if (!strcmp(argv[i], name)) return argv[i + 1];
  return dflt;
}
static inline int flag(int argc, char **argv, const char *name) {
  for (int i = 1; i < argc; i++) if (!strcmp(argv[i], name)) return 1;
  return 0;
}

/* User bytes of an element; 0 for an unknown type. */
static inline size_t width(const char *type) {
  static const char *const types[] = {"octet", "char", "short", "long", "double", "struct", "struct32"};
  static const size_t widths[] = {1, 1, 2, 4, 8, 24, 32};
  for (int i = 0; i < 7; i++) if (!strcmp(type, types[i])) return widths[i];
  return 0;
}

/* What test buffers hold at position i. */
static inline char pattern(size_t i) { return 'a' + i % 26; }

/* Ends a server that checks: element i of n is not what was sent. */
static inline void differs(const char *type, size_t i, size_t n) {
  fprintf(stderr, "contents differ: element %zu of a sequence of %zu (%s) is not what was sent\n", i, n, type);
  _exit(4);
}

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static inline void tune(int fd, int sockbuf, int nodelay) {
  int one = 1;
  if (nodelay) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (sockbuf) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sockbuf, sizeof sockbuf);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &sockbuf, sizeof sockbuf);
  }
}

/* --host and --port: IPv4, 127.0.0.1 by default. */
static inline struct sockaddr_in address(int argc, char **argv) {
  struct sockaddr_in a;
  memset(&a, 0, sizeof a);
  a.sin_family = AF_INET;
  a.sin_port = htons(atoi(opt(argc, argv, "--port", "47001")));
  if (inet_pton(AF_INET, opt(argc, argv, "--host", "127.0.0.1"), &a.sin_addr) != 1) {
    fprintf(stderr, "--host takes an IPv4 address\n");
    exit(2);
  }
  return a;
}

/* A socket that listens; the sockets that it accepts have its buffer sizes. */
static inline int listener(int argc, char **argv) {
  int one = 1, l = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  tune(l, atoi(opt(argc, argv, "--sockbuf", "0")), 1);
  struct sockaddr_in a = address(argc, argv);
  if (bind(l, (struct sockaddr *)&a, sizeof a) || listen(l, 64)) die("bind");
  return l;
}

/* Says where a listening socket is reached. */
static inline void ready(int l) {
  struct sockaddr_in a;
  socklen_t len = sizeof a;
  char host[INET_ADDRSTRLEN];
  if (getsockname(l, (struct sockaddr *)&a, &len)) die("getsockname");
  printf("READY %s:%d\n", inet_ntop(AF_INET, &a.sin_addr, host, sizeof host), ntohs(a.sin_port));
  fflush(stdout);
}

static inline int connected(int argc, char **argv) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  tune(fd, atoi(opt(argc, argv, "--sockbuf", "0")), 1);
  struct sockaddr_in a = address(argc, argv);
  if (connect(fd, (struct sockaddr *)&a, sizeof a)) die("connect");
  return fd;
}

static void *until_stdin_ends(void *none) {
  char byte;
  (void)none;
  while (read(0, &byte, 1) > 0) { }
  _exit(0);
}

/* --lifeline: end when stdin ends. Who started this holds the other end, and the kernel closes it even when that is killed. */
static inline void lifeline(int argc, char **argv) {
  pthread_t t;
  if (!flag(argc, argv, "--lifeline")) return;
  if (pthread_create(&t, NULL, until_stdin_ends, NULL)) die("lifeline");
  pthread_detach(t);
}

static int slower(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The line of n calls that took so many microseconds each; also to the file samples, nanoseconds, a line each, unless its name is empty. */
static inline void told(const char *peer, const char *test, const char *more, double *us, int n, const char *samples) {
  double sum = 0;
  if (*samples) {
    FILE *f = fopen(samples, "w");
    if (!f) die(samples);
    for (int i = 0; i < n; i++) fprintf(f, "%.0f\n", us[i] * 1e3);
    if (fclose(f)) die(samples);
  }
  for (int i = 0; i < n; i++) sum += us[i];
  qsort(us, n, sizeof *us, slower);
  printf("{\"peer\":\"%s\",\"test\":\"%s\",%s\"n\":%d,\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f}\n",
         peer, test, more, n, sum / n, us[n / 2], us[(int)(n * 0.99)], us[n - 1]);
}

/* Times n calls, a tenth more before. */
static inline void latency(const char *peer, const char *test, const char *more, int n, const char *samples, void (*call)(void)) {
  double *us = (double *)malloc(n * sizeof *us);
  for (int i = 0; i < n / 10; i++) call();
  for (int i = 0; i < n; i++) {
    double t = now();
    call();
    us[i] = (now() - t) * 1e6;
  }
  told(peer, test, more, us, n, samples);
  free(us);
}
#endif
