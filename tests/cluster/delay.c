/* Delays every packet between two network namespaces, both ways, for kernels without netem.
 *
 * delay HOST_NAMESPACE SWITCH_NAMESPACE SWITCH_INTERFACE DELAY_MS
 *
 * Makes a TAP eth0 in the host's namespace and a TAP in the switch's, and hands frames from one to the other when their
 * time has come. The interfaces end with the program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST_FRAME = 65536, MOST_WAITING = 65536, FRAMES_A_TURN = 64 };

struct frame {
    double due_s;
    ssize_t size;
    char *bytes;
};
/* What waits to leave one end: a ring, in the order of arrival. */
struct line {
    struct frame frame[MOST_WAITING];
    unsigned first, last;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int open_tap(const char *namespace, const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int space = open(namespace, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET))
        fail(namespace);
    close(space);
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &request))
        fail("/dev/net/tun");
    return tap;
}

/* Frames that are due leave; returns when the next one is, or a second from now. */
static double send_due(struct line *line, int to, double now)
{
    while (line->first != line->last && line->frame[line->first % MOST_WAITING].due_s <= now) {
        struct frame *frame = &line->frame[line->first++ % MOST_WAITING];
        if (write(to, frame->bytes, (size_t)frame->size) < 0 && errno != EAGAIN && errno != EIO)
            fail("write"); /* EIO: the interface is not up yet; such a frame is lost, as on a real cable */
        free(frame->bytes);
    }
    return line->first == line->last ? now + 1 : line->frame[line->first % MOST_WAITING].due_s;
}

static void take_in(struct line *line, int from, double delay_s)
{
    static char buffer[LARGEST_FRAME];
    for (int i = 0; i < FRAMES_A_TURN; i++) {
        ssize_t size = read(from, buffer, sizeof buffer);
        if (size <= 0)
            return;
        if (line->last - line->first == MOST_WAITING)
            continue; /* full: dropped, as by a router */
        char *bytes = malloc((size_t)size);
        if (!bytes)
            fail("malloc");
        memcpy(bytes, buffer, (size_t)size);
        line->frame[line->last++ % MOST_WAITING] = (struct frame){now_s() + delay_s, size, bytes};
    }
}

int main(int count, char **arguments)
{
    static struct line lines[2]; /* from the host, from the switch */
    if (count != 5) {
        fprintf(stderr, "usage: delay HOST_NAMESPACE SWITCH_NAMESPACE SWITCH_INTERFACE DELAY_MS\n");
        return 2;
    }
    double delay_s = atof(arguments[4]) / 1e3;
    int tap[2] = {open_tap(arguments[1], "eth0"), open_tap(arguments[2], arguments[3])};
    prctl(PR_SET_TIMERSLACK, 1000ul);
    for (;;) {
        double now = now_s(), next = now + 1;
        for (int i = 0; i < 2; i++) {
            double due = send_due(&lines[i], tap[1 - i], now);
            next = due < next ? due : next;
        }
        double wait = next - now_s();
        struct timespec pause = {0, wait <= 0 ? 0 : wait >= 0.9 ? 900000000 : (long)(wait * 1e9)};
        struct pollfd ready[2] = {{tap[0], POLLIN, 0}, {tap[1], POLLIN, 0}};
        if (ppoll(ready, 2, &pause, NULL) < 0 && errno != EINTR)
            fail("ppoll");
        for (int i = 0; i < 2; i++)
            take_in(&lines[i], tap[i], delay_s);
    }
}
