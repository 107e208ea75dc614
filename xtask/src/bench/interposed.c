/* Measures the cost of a call of write(2). With -DNOTHING this is a library whose write does nothing,
 * so that the system call does not hide a difference of a nanosecond; otherwise it is the program.
 * Prints the time of a call in ns: the smallest of many batches. */
#ifdef NOTHING

#include <stddef.h>
#include <sys/types.h>

ssize_t write(int fd, const void *from, size_t bytes)
{
    (void)fd;
    (void)from;
    return (ssize_t)bytes;
}

#else

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(void)
{
    enum { BATCHES = 200, CALLS = 100000 };
    double least = 1e9;
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now();
        for (int call = 0; call < CALLS; call++)
            if (write(9, "", 1) != 1)
                return 1;
        double each = (now() - start) / CALLS;
        if (each < least)
            least = each;
    }
    printf("%.3f\n", least);
    return 0;
}

#endif
