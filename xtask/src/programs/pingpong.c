/* An MPI program that `cargo xtask programs` runs on softdev over UCX: two ranks exchange messages of
 * many sizes and verify them. Usage: mpirun -np 2 pingpong [NS]. With NS, it also fails if half a
 * round trip of 8 B takes less than NS nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_BYTES = 1 << 20, ROUND_TRIPS = 20, SMALL_ROUND_TRIPS = 2000 };

static int rank;
static unsigned char message[MOST_BYTES];

static void fail(const char *why, int number) {
    fprintf(stderr, "rank %d: %s: %d\n", rank, why, number);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Byte i of the message that a rank sends in round trip n. */
static unsigned char byte_of(int from, int n, int i) {
    return (unsigned char)(i * 7 + n * 31 + from * 101 + i / 253);
}

static void send_message(int n, int bytes) {
    for (int i = 0; i < bytes; i++) {
        message[i] = byte_of(rank, n, i);
    }
    MPI_Send(message, bytes, MPI_BYTE, 1 - rank, bytes, MPI_COMM_WORLD);
}

static void receive_message(int n, int bytes) {
    MPI_Status status;
    int count;
    MPI_Recv(message, MOST_BYTES, MPI_BYTE, 1 - rank, bytes, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != bytes) {
        fail("a received message has a wrong length, in bytes", count);
    }
    for (int i = 0; i < bytes; i++) {
        if (message[i] != byte_of(1 - rank, n, i)) {
            fail("a received message has wrong content; its length in bytes", bytes);
        }
    }
}

/* The mean of half a round trip in nanoseconds. */
static double exchange(int bytes, int round_trips) {
    double start = MPI_Wtime();
    for (int n = 0; n < round_trips; n++) {
        if (rank == 0) {
            send_message(n, bytes);
            receive_message(n, bytes);
        } else {
            receive_message(n, bytes);
            send_message(n, bytes);
        }
    }
    return (MPI_Wtime() - start) / (2.0 * round_trips) * 1e9;
}

int main(int count, char **words) {
    int size;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        fail("two ranks are needed, not", size);
    }
    /* Sizes around every power of two: UCX changes from inline sends to copies and to a rendezvous. */
    for (int bytes = 1; bytes <= MOST_BYTES; bytes *= 2) {
        exchange(bytes - 1, ROUND_TRIPS);
        exchange(bytes, ROUND_TRIPS);
        exchange(bytes + bytes / 2 < MOST_BYTES ? bytes + bytes / 2 : bytes, ROUND_TRIPS);
    }
    double ns = exchange(8, SMALL_ROUND_TRIPS);
    if (count > 1 && ns < atof(words[1])) {
        fail("half a round trip takes less than the latency of the link, in ns", (int)ns);
    }
    MPI_Finalize();
    return 0;
}
