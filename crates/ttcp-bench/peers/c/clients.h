/* Test clients: several clients at once, each in a thread of its own with a connection of its own. All begin together, and share
 * the calls, so that they end together. Each has an echo of its own octets first, which are compared. */
#include <stdatomic.h>

enum { OWN = 64 };

typedef struct {
  pthread_t thread;
  int number, argc, warm_up;
  char **argv;
  double *us;               /* of its calls */
  int calls;
  double began;             /* its first call */
} Client;

static atomic_int calls_left;
static pthread_barrier_t calls_begin;

static void client_call(Conn *c, uint32_t type, const void *in, size_t n, void *out) {
  Call q = {{type, n}, 1}, r;
  if (!put(c->fd, &q, sizeof q, in, n) || !get(c, &r, sizeof r)) die("call");
  if (r.id != q.id || r.h.len != n || (n && !get(c, out, n))) die("reply");
}

static void *client_run(void *arg) {
  Client *me = arg;
  Conn *c = calloc(1, sizeof *c);
  char own[OWN], back[OWN];
  memset(own, 'a' + me->number % 26, sizeof own);
  memcpy(own, &me->number, sizeof me->number);
  c->fd = connected(me->argc, me->argv);
  client_call(c, ECHO, own, sizeof own, back);
  if (memcmp(own, back, sizeof own)) { fprintf(stderr, "echo differs\n"); exit(1); }
  for (int i = 0; i < me->warm_up; i++) client_call(c, PING, NULL, 0, NULL);
  pthread_barrier_wait(&calls_begin);
  me->began = now();
  while (atomic_fetch_sub_explicit(&calls_left, 1, memory_order_relaxed) > 0) {
    double t = now();
    client_call(c, PING, NULL, 0, NULL);
    me->us[me->calls++] = (now() - t) * 1e6;
  }
  close(c->fd);
  free(c);
  return NULL;
}

/* The seconds that n calls of so many clients take; the time of each goes to us. */
static double clients(int count, int n, int argc, char **argv, double *us) {
  Client *all = calloc(count, sizeof *all);
  calls_left = n;
  if (!all || pthread_barrier_init(&calls_begin, NULL, count + 1)) die("clients");
  for (int i = 0; i < count; i++) {
    int warm_up = n / 10 / count;
    all[i] = (Client){.number = i, .argc = argc, .argv = argv, .warm_up = warm_up ? warm_up : 1};
    all[i].us = malloc(n * sizeof *us);
    if (!all[i].us || pthread_create(&all[i].thread, NULL, client_run, &all[i])) die("thread");
  }
  pthread_barrier_wait(&calls_begin);
  int done = 0;
  for (int i = 0; i < count; i++) pthread_join(all[i].thread, NULL);
  /* Since the first began, which may have been before this thread got a processor. */
  double ended = now(), t = 0;
  for (int i = 0; i < count; i++) if (ended - all[i].began > t) t = ended - all[i].began;
  for (int i = 0; i < count; i++) {
    memcpy(us + done, all[i].us, all[i].calls * sizeof *us);
    done += all[i].calls;
    free(all[i].us);
  }
  free(all);
  if (done != n) { fprintf(stderr, "%d calls of %d were made\n", done, n); exit(1); }
  return t;
}
