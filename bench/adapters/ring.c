/*
 * A ring of slots in a mapped file, one writer, one reader: nothing that a queue does but the bytes
 * crossing from one process to another. What it cannot do, no queue can do on the same machine.
 *
 *   ring produce|tail FILE COUNT WARM_UP SIZE RATE OUT
 *
 * Paces, prints, and writes its records and its run delay as interop's Latency.java does.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1 << 16, LINE = 64, BETWEEN_LOOKS = 1 << 10 };

/* At the start of the file, on a line of its own. */
struct head {
    _Atomic int64_t had; /* how many messages the reader has, told once in BETWEEN_LOOKS */
};

struct slot {
    _Atomic uint64_t number; /* of the message it holds, counted from 1 */
    char payload[];
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL)
        fail("malloc");
    return memset(memory, 1, bytes); /* its pages are there before the first message */
}

static void save(const char *path, const void *records, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(records, 1, bytes, file) != bytes || fclose(file) != 0)
        fail(path);
}

/* How long this thread was ready to run but had no CPU, or -1. */
static int64_t run_delay(void)
{
    long long delay = -1;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file != NULL) {
        if (fscanf(file, "%*d %lld", &delay) != 1)
            delay = -1;
        fclose(file);
    }
    return delay;
}

static void save_run_delay(const char *out, int64_t before)
{
    char path[4096];
    FILE *file;
    if (before < 0)
        return;
    snprintf(path, sizeof path, "%s-delay", out);
    file = fopen(path, "w");
    if (file == NULL || fprintf(file, "%lld", (long long)(run_delay() - before)) < 0 || fclose(file) != 0)
        fail(path);
}

/* Wait until the reader has what lies in the next slots: it must not be overtaken. */
static void wait_for_room(struct head *head, int64_t number)
{
    if (number % BETWEEN_LOOKS == 0)
        while (number - atomic_load_explicit(&head->had, memory_order_acquire) > SLOTS - 2 * BETWEEN_LOOKS)
            ;
}

static void produce(char *file, size_t stride, int64_t count, int64_t warm_up, size_t size, int64_t rate,
                    const char *out)
{
    int64_t before = -1;
    char *ring = file + LINE, *payload = allocate(size);
    int64_t *appends = allocate(2 * sizeof(int64_t) * count);
    int64_t first = now();
    for (int64_t number = 0; number < count; number++) {
        int64_t begin, due;
        struct slot *slot = (struct slot *)(ring + number % SLOTS * stride);
        if (number == warm_up) {
            before = run_delay();
            first = now() - number * 1000000000LL / rate;
        }
        due = first + number * 1000000000LL / rate;
        memcpy(payload, &number, 8);
        memcpy(payload + 8, &due, 8);
        wait_for_room((struct head *)file, number);
        while ((begin = now()) < due)
            ;
        memcpy(slot->payload, payload, size);
        atomic_store_explicit(&slot->number, number + 1, memory_order_release);
        appends[2 * number] = begin;
        appends[2 * number + 1] = now() - begin;
    }
    save_run_delay(out, before);
    save(out, appends, 2 * sizeof(int64_t) * count);
}

static void tail(char *file, size_t stride, int64_t count, int64_t warm_up, size_t size, const char *out)
{
    int64_t before = -1;
    struct head *head = (struct head *)file;
    char *ring = file + LINE, *payload = allocate(size);
    int64_t *records = allocate(3 * sizeof(int64_t) * count);
    puts("READY");
    fflush(stdout);
    for (int64_t number = 0; number < count; number++) {
        struct slot *slot = (struct slot *)(ring + number % SLOTS * stride);
        if (number == warm_up)
            before = run_delay();
        while (atomic_load_explicit(&slot->number, memory_order_acquire) != (uint64_t)number + 1)
            ;
        memcpy(payload, slot->payload, size);
        records[3 * number + 2] = now();
        memcpy(&records[3 * number], payload, 16);
        if (number % BETWEEN_LOOKS == 0)
            atomic_store_explicit(&head->had, number, memory_order_release);
    }
    save_run_delay(out, before);
    save(out, records, 3 * sizeof(int64_t) * count);
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: ring produce|tail FILE COUNT WARM_UP SIZE RATE OUT\n");
        return 2;
    }
    int64_t count = atoll(argv[3]), warm_up = atoll(argv[4]), rate = atoll(argv[6]);
    size_t size = (size_t)atoll(argv[5]);
    size_t stride = (sizeof(struct slot) + size + LINE - 1) / LINE * LINE;
    size_t bytes = LINE + SLOTS * stride;
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        fail(argv[2]);
    char *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (mapped == MAP_FAILED)
        fail("mmap");
    if (strcmp(argv[1], "produce") == 0)
        produce(mapped, stride, count, warm_up, size, rate, argv[7]);
    else
        tail(mapped, stride, count, warm_up, size, argv[7]);
    return 0;
}
