/* server [--host ADDRESS] [--port P] [--sockbuf BYTES] [--check] [--lifeline]
 * ONC RPC over TCP, without a port mapper. A oneway is a procedure that does not reply.
 * --check: compare each element with what clients send, and end with 4 where one differs. */
#include "common.h"

void ttcp_1(struct svc_req *, SVCXPRT *);
void wide_1(struct svc_req *, SVCXPRT *);

static int check;
static u_quad_t count;

#define CHECK(type, n, same) \
  if (check) for (size_t i = 0; i < (n); i++) if (!(same)) differs(type, i, n)

/* No result: no reply is sent. */
#define SENDS(operation, Seq, type, each, same) \
  void *operation(Seq *q, struct svc_req *r) { \
    (void)r; \
    size_t n = q->Seq##_len; \
    CHECK(type, n, same); \
    count += n * each; \
    return NULL; \
  }
#define AT(Seq) q->Seq##_val[i]

SENDS(send_short_1_svc, ShortSeq, "short", 2, AT(ShortSeq) == pattern(i))
SENDS(send_long_1_svc, LongSeq, "long", 4, AT(LongSeq) == pattern(i))
SENDS(send_double_1_svc, DoubleSeq, "double", 8, AT(DoubleSeq) == pattern(i))
SENDS(send_char_1_svc, CharSeq, "char", 1, AT(CharSeq) == pattern(i))
SENDS(send_octet_1_svc, OctetSeq, "octet", 1, AT(OctetSeq) == pattern(i))

static int same(const BinStruct *a, size_t i) {
  Record r = record(i);
  return a->s == r.s && a->c == r.c && a->l == r.l && a->o == r.o && a->d == r.d;
}
SENDS(send_struct_1_svc, StructSeq, "struct", 24, same(&AT(StructSeq), i))

static void demand(const Packed *p) {
  if (p->kind >= KINDS) { fprintf(stderr, "kind %u\n", p->kind); _exit(1); }
  size_t each = width(kinds[p->kind]), n = p->data.data_len / each;
  char *sent = malloc(p->data.data_len + 1);
  if (!sent) die("malloc");
  fill(p->kind, sent, n);
  /* Whole elements, what is between their members too: it is sent as it lies. */
  for (size_t i = 0; i < n; i++)
    if (memcmp(sent + i * each, p->data.data_val + i * each, each)) differs(kinds[p->kind], i, n);
  free(sent);
}

void *send_packed_1_svc(Packed *p, struct svc_req *r) {
  (void)r;
  if (check) demand(p);
  count += p->data.data_len;
  return NULL;
}

u_quad_t *sync_1_svc(void *none, struct svc_req *r) {
  static u_quad_t counted;
  (void)none; (void)r;
  counted = count;
  count = 0;
  return &counted;
}

static char nothing;

void *ping_1_svc(void *none, struct svc_req *r) { (void)none; (void)r; return &nothing; }
OctetSeq *echo_octets_1_svc(OctetSeq *q, struct svc_req *r) { (void)r; return q; }
StructSeq *echo_structs_1_svc(StructSeq *q, struct svc_req *r) { (void)r; return q; }
Packed *echo_packed_1_svc(Packed *p, struct svc_req *r) { (void)r; return p; }

#define M(n) void *m##n##_1_svc(void *none, struct svc_req *r) { (void)none; (void)r; return &nothing; }
#define M10(t) M(t##0) M(t##1) M(t##2) M(t##3) M(t##4) M(t##5) M(t##6) M(t##7) M(t##8) M(t##9)
M10(00) M10(01) M10(02) M10(03) M10(04) M10(05) M10(06) M10(07) M10(08) M10(09)

int main(int argc, char **argv) {
  check = flag(argc, argv, "--check");
  lifeline(argc, argv);
  int l = listener(argc, argv);
  SVCXPRT *at = svctcp_create(l, 0, 0);
  /* Protocol 0: nobody but this process is told. */
  if (!at || !svc_register(at, TTCP, TTCP_1, ttcp_1, 0) || !svc_register(at, WIDE, WIDE_1, wide_1, 0)) {
    fprintf(stderr, "cannot serve\n");
    return 1;
  }
  ready(l);
  svc_run();
  return 1;
}
