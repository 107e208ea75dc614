/* Two ranks that exchange messages by MPI_Send and MPI_Recv. `cargo xtask parity --part mpi` compares
 * rdmascope with this program: rdmascope makes the same calls, also on a duplicate of MPI_COMM_WORLD,
 * in a library that it opens at run time. Usage: mpirun -np 2 pingpong BYTES ROUND_TRIPS. Each round
 * trip is stamped and kept, as in rdmascope; rank 0 prints the mean of half a round trip in ns. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { WARM_UP = 1000, ALIGNMENT = 4096, TAG = 1 };

static uint64_t wall_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t stamp(void) {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return wall_ns();
#endif
}

int main(int count, char **words) {
    int rank, size, received;
    MPI_Status status;
    MPI_Comm messages;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || count != 3) {
        fprintf(stderr, "usage: mpirun -np 2 pingpong BYTES ROUND_TRIPS; there are %d ranks\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &messages);
    int bytes = atoi(words[1]), n = atoi(words[2]), peer = 1 - rank;
    char *out = NULL, *in = NULL;
    uint64_t *kept = calloc((size_t)n, sizeof *kept);
    if (!kept || posix_memalign((void **)&out, ALIGNMENT, (size_t)bytes + 1) ||
        posix_memalign((void **)&in, ALIGNMENT, (size_t)bytes + 1)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(out, 'a', (size_t)bytes + 1);
    memset(in, 'b', (size_t)bytes + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t since_ns = 0, since = 0;
    for (int i = -WARM_UP; i < n; i++) {
        if (i == 0) {
            since_ns = wall_ns();
            since = stamp();
        }
        uint64_t start = stamp();
        if (rank == 0) {
            MPI_Send(out, bytes, MPI_BYTE, peer, TAG, messages);
            MPI_Recv(in, bytes, MPI_BYTE, peer, MPI_ANY_TAG, messages, &status);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, peer, MPI_ANY_TAG, messages, &status);
            MPI_Send(out, bytes, MPI_BYTE, peer, TAG, messages);
        }
        if (i >= 0) {
            kept[i] = stamp() - start;
        }
    }
    uint64_t ticks = stamp() - since;
    double ns_per_tick = (double)(wall_ns() - since_ns) / (double)ticks;
    MPI_Get_count(&status, MPI_BYTE, &received);
    if (received != bytes || in[0] != 'a' || status.MPI_TAG != TAG) {
        fprintf(stderr, "rank %d: a received message of %d bytes differs from the sent message\n", rank, received);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)kept[i];
    }
    if (rank == 0) {
        printf("%.3f\n", sum / n / 2 * ns_per_tick);
    }
    MPI_Comm_free(&messages);
    MPI_Finalize();
    return 0;
}
