/* Simulated NCCL: bytes over a connection. */
#define _GNU_SOURCE
#include "nccl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

int nccl_send_all(int socket, const void *data, size_t size)
{
    const char *at = data;
    while (size) {
        ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return NCCL_REMOTE_ERROR;
        at += sent;
        size -= (size_t)sent;
    }
    return NCCL_OK;
}

int nccl_receive_all(int socket, void *data, size_t size)
{
    char *at = data;
    while (size) {
        ssize_t got = recv(socket, at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NCCL_REMOTE_ERROR;
        at += got;
        size -= (size_t)got;
    }
    return NCCL_OK;
}

int nccl_exchange(int to, const void *out, size_t out_size, int from, void *in, size_t in_size)
{
    const char *source = out;
    char *target = in;
    while (out_size || in_size) {
        struct pollfd wait[2] = {{out_size ? to : -1, POLLOUT, 0}, {in_size ? from : -1, POLLIN, 0}};
        if (poll(wait, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return NCCL_SYSTEM_ERROR;
        }
        if (wait[0].revents) {
            ssize_t sent = send(to, source, out_size, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && errno != EAGAIN && errno != EINTR)
                return NCCL_REMOTE_ERROR;
            if (sent > 0) {
                source += sent;
                out_size -= (size_t)sent;
            }
        }
        if (wait[1].revents) {
            ssize_t got = recv(from, target, in_size, MSG_DONTWAIT);
            if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
                return NCCL_REMOTE_ERROR;
            if (got > 0) {
                target += got;
                in_size -= (size_t)got;
            }
        }
    }
    return NCCL_OK;
}
