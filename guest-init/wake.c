/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-init/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/bytes.h"
#include "base/fd.h"

#define NS_PER_SECOND 1000000000u

int wake_decode(const void *data, size_t len, struct wake *ret_wake, struct err *err)
{
    struct bytes_reader r = bytes_reader_init(data, len);
    struct wake wake;

    wake.realtime_ns = bytes_get_u64(&r);
    bytes_get(&r, wake.entropy, sizeof(wake.entropy));
    if (!bytes_done(&r))
        return err_set(err, EPROTO, "WAKE of %zu bytes", len);
    *ret_wake = wake;
    return 0;
}

static int add_entropy(const uint8_t *entropy, struct err *err)
{
    union {
        struct rand_pool_info info;
        uint8_t room[sizeof(struct rand_pool_info) + PROTO_ENTROPY_SIZE];
    } pool = {
        .info = {.entropy_count = 8 * PROTO_ENTROPY_SIZE, .buf_size = PROTO_ENTROPY_SIZE}};
    _cleanup_fd_ int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return err_set_errno(err, errno, "cannot open /dev/urandom");
    memcpy(pool.room + offsetof(struct rand_pool_info, buf), entropy, PROTO_ENTROPY_SIZE);
    if (ioctl(fd, RNDADDENTROPY, &pool) < 0)
        return err_set_errno(err, errno, "cannot add entropy");
    /* Without it the new entropy would first be used at the next periodic reseed. */
    if (ioctl(fd, RNDRESEEDCRNG) < 0)
        return err_set_errno(err, errno, "cannot reseed");
    return 0;
}

int wake_apply(const struct wake *wake, struct err *err)
{
    struct timespec now = {.tv_sec = (time_t)(wake->realtime_ns / NS_PER_SECOND),
                           .tv_nsec = (long)(wake->realtime_ns % NS_PER_SECOND)};

    if (clock_settime(CLOCK_REALTIME, &now) < 0)
        return err_set_errno(err, errno, "cannot set the clock");
    return add_entropy(wake->entropy, err);
}
