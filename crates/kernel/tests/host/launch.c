/* Runs kernels on the host: reads one request from standard input, writes the answer to standard output.
 * A block is BLOCK threads, so that barriers and shared memory are real; blocks run one after another. A block of one lane
 * waits for nobody and needs no thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

_Thread_local u32 host_local_id, host_group_id;
static pthread_barrier_t barrier;

void host_barrier(void) {
    pthread_barrier_wait(&barrier);
}

static u32 group;
static void (*entry)(void);

static void *run_lane(void *id) {
    host_local_id = (u32)(uintptr_t)id;
    host_group_id = group;
    entry();
    return NULL;
}

static void launch(void (*kernel)(void), u32 blocks) {
    pthread_t threads[BLOCK];
    entry = kernel;
    pthread_barrier_init(&barrier, NULL, BLOCK);
    for (group = 0; group < blocks; group++) {
        if (BLOCK == 1) {
            run_lane(0);
            continue;
        }
        for (uintptr_t i = 0; i < BLOCK; i++) pthread_create(&threads[i], NULL, run_lane, (void *)i);
        for (u32 i = 0; i < BLOCK; i++) pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&barrier);
}

static void *read_words(u64 n) {
    void *words = aligned_alloc(16, (n * 4 + 31) / 16 * 16);
    if (fread(words, 4, n, stdin) != n) exit(3);
    return words;
}
