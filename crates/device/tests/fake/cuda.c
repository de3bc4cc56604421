/* A CUDA driver and an NVRTC in one small library, for tests of the host code without a GPU.
 *
 * Memory is the host's, work is done at once, and the "compiler" keeps the text as it is: a kernel exists when
 * the text names it, and `add` and `blend` do what their text says. Faults are chosen when this file is compiled:
 *   NO_NVRTC       leave NVRTC's functions out
 *   NO_SYMBOL      leave cuLaunchKernel out           INIT_CODE=n     what cuInit returns
 *   DEVICES=n      how many devices there are         LAUNCHES=n      launches until one crashes, sticky from then on
 *   KNOWN=n        the one target NVRTC knows         EVENT_CODE=n    what cuEventSynchronize returns
 * Live objects are counted; the library's end prints the count, so that tests see leaks. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef INIT_CODE
#define INIT_CODE 0
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef LAUNCHES
#define LAUNCHES -1
#endif
#ifndef KNOWN
#define KNOWN 90
#endif
#ifndef EVENT_CODE
#define EVENT_CODE 0
#endif

typedef unsigned long long u64;
typedef unsigned int u32;

static int live, contexts, broken, launches, flags_set, wrong;
static __thread void *current;

__attribute__((destructor)) static void end(void) {
    fprintf(stderr, "fake: live %d contexts %d flags %d wrong %d\n", live, contexts, flags_set, wrong);
}

/* Every call that needs a context checks that it is current on this thread. */
#define ENTER() do { if (!current) { wrong++; return 201; } if (broken) return broken; } while (0)
/* Releases are counted even on a broken device. */
#define LEAVE() do { if (!current) { wrong++; return 201; } live--; } while (0)

int cuInit(u32 flags) { (void)flags; return INIT_CODE; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuGetErrorName(int code, const char **s) {
    *s = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 1 ? "CUDA_ERROR_INVALID_VALUE" : 0;
    return *s ? 0 : 1;
}
int cuGetErrorString(int code, const char **s) {
    *s = code == 700 ? "an illegal memory access was encountered" : 0;
    return *s ? 0 : 1;
}
int cuDeviceGetCount(int *n) { *n = DEVICES; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDeviceGetName(char *s, int n, int d) { snprintf(s, (size_t)n, "Fake %d", d); return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
    switch (a) {
    case 8: *v = 49152; break;
    case 9: *v = 65536; break;
    case 16: *v = 132; break;
    case 20: *v = d == 1 ? 2 : 0; break; /* The second device is prohibited. */
    case 33: *v = 0x65 + d; break;
    case 34: *v = 2; break;
    case 39: *v = 2048; break;
    case 50: *v = 1; break;
    case 75: *v = 9; break;
    case 76: *v = 0; break;
    default: return 1;
    }
    return 0;
}
int cuDeviceTotalMem_v2(size_t *n, int d) { (void)d; *n = 1 << 30; return 0; }
int cuDevicePrimaryCtxSetFlags_v2(int d, u32 flags) { (void)d; flags_set = (int)flags; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { (void)d; *c = &contexts; contexts++; return 0; }
int cuDevicePrimaryCtxRelease_v2(int d) {
    (void)d;
    if (--contexts == 0) broken = 0, launches = 0; /* A fresh context is well again. */
    return 0;
}
int cuCtxSetCurrent(void *c) { current = c; return 0; }

int cuModuleLoadDataEx(void **m, const void *image, u32 n, int *options, void **values) {
    ENTER();
    if (strstr(image, "refuse me")) {
        for (u32 i = 0; i < n; i++)
            if (options[i] == 5) strcpy(values[i], "ptxas says no");
        return 218;
    }
    *m = strdup(image);
    live++;
    return 0;
}
int cuModuleUnload(void *m) { LEAVE(); free(m); return 0; }
static const char *const names[] = {"add", "blend", "huge"};
int cuModuleGetFunction(void **f, void *m, const char *name) {
    ENTER();
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i]) && strstr(m, name)) { *f = (void *)names[i]; return 0; }
    return 500;
}
static u32 table[4];
int cuModuleGetGlobal_v2(u64 *p, size_t *n, void *m, const char *name) {
    (void)m;
    ENTER();
    if (strcmp(name, "table")) return 500;
    *p = (u64)table;
    *n = sizeof table;
    return 0;
}
int cuFuncGetAttribute(int *v, int a, void *f) { (void)f; ENTER(); *v = 100 + a; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int threads, size_t s) {
    (void)f, (void)s;
    ENTER();
    *n = 2048 / threads;
    return 0;
}
#ifndef NO_SYMBOL
int cuLaunchKernel(void *f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, void *stream, void **params, void **extra) {
    (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)stream;
    ENTER();
    if (params || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]) return 1;
    const char *block = extra[1];
    size_t size = *(size_t *)extra[3];
    if (bx > 1024) return 1;
    if (launches++ == LAUNCHES) return broken = 700;
    u32 n = gx * bx;
    if (f == names[0]) {
        if (size != 12) return 701;
        u32 *words = *(u32 **)block;
        for (u32 i = 0; i < n; i++) words[i] += *(u32 *)(block + 8);
    } else if (f == names[1]) {
        if (size != 36) return 701;
        u64 *out = *(u64 **)block, offset = *(u64 *)(block + 24);
        u32 *in = *(u32 **)(block + 8), factor = *(u32 *)(block + 16), last = *(u32 *)(block + 32);
        for (u32 i = 0; i < n; i++) out[i] = (u64)in[i] * factor + offset + last;
    }
    return 0;
}
#endif
int cuMemAlloc_v2(u64 *p, size_t n) {
    ENTER();
    if (n > 1 << 30) return 2;
    *p = (u64)malloc(n);
    live++;
    return 0;
}
int cuMemFree_v2(u64 p) { LEAVE(); free((void *)p); return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { ENTER(); *f = 12345678; *t = 1 << 30; return 0; }
int cuMemHostAlloc(void **p, size_t n, u32 flags) { ENTER(); if (flags) return 1; *p = malloc(n); live++; return 0; }
int cuMemFreeHost(void *p) { LEAVE(); free(p); return 0; }
int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t n, void *s) { (void)s; ENTER(); memcpy((void *)to, from, n); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t n, void *s) { (void)s; ENTER(); memcpy(to, (void *)from, n); return 0; }
int cuMemsetD8Async(u64 p, unsigned char x, size_t n, void *s) { (void)s; ENTER(); memset((void *)p, x, n); return 0; }
int cuStreamCreate(void **s, u32 flags) { ENTER(); if (flags != 1) return 1; *s = malloc(1); live++; return 0; }
int cuStreamDestroy_v2(void *s) { LEAVE(); free(s); return 0; }
int cuStreamSynchronize(void *s) { (void)s; ENTER(); return 0; }
int cuStreamWaitEvent(void *s, void *e, u32 flags) { (void)s, (void)e; ENTER(); return flags ? 1 : 0; }
int cuEventCreate(void **e, u32 flags) { ENTER(); if (!(flags & 1)) return 1; *e = malloc(1); live++; return 0; }
int cuEventDestroy_v2(void *e) { LEAVE(); free(e); return 0; }
int cuEventRecord(void *e, void *s) { (void)e, (void)s; ENTER(); return 0; }
int cuEventQuery(void *e) { (void)e; ENTER(); return 600; } /* Never done: the host must wait. */
int cuEventSynchronize(void *e) { (void)e; ENTER(); return EVENT_CODE; }
int cuEventElapsedTime(float *ms, void *a, void *b) { (void)a, (void)b; ENTER(); *ms = 1.5f; return 0; }

#ifndef NO_NVRTC
struct unit { char *text; int failed; };
int nvrtcVersion(int *a, int *b) { *a = 13; *b = 0; return 0; }
int nvrtcGetNumSupportedArchs(int *n) { *n = 1; return 0; }
int nvrtcGetSupportedArchs(int *list) { list[0] = KNOWN; return 0; }
int nvrtcCreateProgram(void **p, const char *text, const char *name, int n, const char *const *h, const char *const *i) {
    (void)name, (void)n, (void)h, (void)i;
    struct unit *u = malloc(sizeof *u);
    u->text = strdup(text);
    u->failed = 0;
    *p = u;
    live++;
    return 0;
}
int nvrtcDestroyProgram(void **p) { struct unit *u = *p; free(u->text); free(u); *p = 0; live--; return 0; }
int nvrtcCompileProgram(void *p, int n, const char *const *options) {
    struct unit *u = p;
    (void)n;
    char want[64];
    snprintf(want, sizeof want, "--gpu-architecture=%s_%d", KNOWN == 90 ? "sm" : "compute", KNOWN);
    if (strcmp(options[0], want)) return 5;
    u->failed = strstr(u->text, "undeclared") != 0;
    return u->failed ? 6 : 0;
}
static const char *log_of(struct unit *u) { return u->failed ? "walk.h(41): error: identifier is undeclared\n1 error" : "a warning"; }
int nvrtcGetProgramLogSize(void *p, size_t *n) { *n = strlen(log_of(p)) + 1; return 0; }
int nvrtcGetProgramLog(void *p, char *s) { strcpy(s, log_of(p)); return 0; }
int nvrtcGetPTXSize(void *p, size_t *n) { *n = strlen(((struct unit *)p)->text) + 1; return 0; }
int nvrtcGetPTX(void *p, char *s) { strcpy(s, ((struct unit *)p)->text); return 0; }
int nvrtcGetCUBINSize(void *p, size_t *n) { return KNOWN == 90 ? nvrtcGetPTXSize(p, n) : 7; }
int nvrtcGetCUBIN(void *p, char *s) { return KNOWN == 90 ? nvrtcGetPTX(p, s) : 7; }
#endif
